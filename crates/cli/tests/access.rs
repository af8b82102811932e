//! Who may do what at `names serve`: strangers on another host of an emulated network, with and without a table.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};

use deckwatch_audit::{Event, Record};
use deckwatch_testbed::{Host, HostSpec, Testbed, preset};
use rustix::process::Signal;

use crate::watched::signal;

const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");

/// A server, killed when this is dropped.
struct Server {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Server {
    /// Starts a server on a host. Returns when it has written its reference.
    fn start(host: &Host, words: &[&str]) -> Self {
        let mut command = Command::new(DECKWATCH);
        command
            .args(words)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        host.place(&mut command).expect("a placement");
        let mut process = command.spawn().expect("it starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("a reference");
        let errors = process.stderr.take().expect("a pipe");
        let lines = BufReader::new(errors).lines();
        Self { process, lines }
    }

    /// The next line about something refused.
    fn refused(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(|line| line.expect("text"));
        let line = lines.find(|line| line.starts_with("refused: "));
        line.expect("a line for the refusal")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill(); // It may have ended.
        let _ = self.process.wait();
    }
}

/// Runs a command on a host. Returns its exit status and all that it prints.
fn run(host: &Host, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(DECKWATCH);
    command
        .args(words)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    host.place(&mut command).expect("a placement");
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    let both = String::from_utf8([stdout, stderr].concat()).expect("UTF-8");
    (status.code(), both)
}

fn done(host: &Host, words: &[&str]) -> String {
    let (status, text) = run(host, words);
    assert_eq!(status, Some(0), "{words:?}: {text}");
    text
}

fn refused(host: &Host, words: &[&str]) -> String {
    let (status, text) = run(host, words);
    assert_eq!(status, Some(2), "{words:?}: {text}");
    assert!(text.contains("NO_PERMISSION"), "{words:?}: {text}");
    text
}

/// Two hosts and the network between them; `None` and a counted skip where that cannot be.
fn two_hosts() -> Option<Testbed> {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return None;
    }
    let network = preset("gigabit-ethernet").expect("a preset");
    let hosts = [HostSpec::new("SHIP"), HostSpec::new("SHORE")];
    Some(Testbed::create(&network, &hosts).expect("a testbed"))
}

/// A command of `deckwatch names` at a service.
fn names<'a>(words: &[&'a str], url: &'a str) -> Vec<&'a str> {
    [&["names"], words, &["--names", url]].concat()
}

const OBJECT: &str = "corbaloc::ship:7000/NAV";

#[test]
fn without_a_table_a_stranger_reads_names_and_changes_none() {
    let Some(testbed) = two_hosts() else { return };
    let [ship, shore] = ["SHIP", "SHORE"].map(|name| testbed.host(name).expect("a host"));
    // At every address the references of contexts would have the name of the machine, which is no host of the network.
    let listen = format!("{}:2809", ship.address());
    let mut server = Server::start(ship, &["names", "serve", "--listen", &listen]);
    let url = format!("corbaloc::{listen}/NameService");
    // The host's own address is this host, as loopback is.
    done(ship, &names(&["bind", "NAV", OBJECT], &url));
    done(ship, &names(&["new-context", "fleet"], &url));

    let stranger = |words: &[&'static str]| names(words, &url);
    done(shore, &stranger(&["resolve", "NAV"]));
    let listed = done(shore, &stranger(&["list"]));
    assert!(
        listed.contains("NAV") && listed.contains("fleet"),
        "{listed}"
    );
    let address = shore.address().to_string();
    for words in [
        &["bind", "OTHER", OBJECT][..],
        &["bind", "NAV", OBJECT, "--replace"],
        &["new-context", "other"],
        &["unbind", "NAV"],
        &["destroy", "fleet"],
    ] {
        let told = refused(shore, &stranger(words));
        assert!(told.contains(&format!("{address}:")), "{told}");
        assert!(told.contains("may not bind"), "{told}");
        assert!(told.contains("--access FILE"), "{told}");
    }
    let told = refused(shore, &names(&["bind-context", "other", &url], &url));
    assert!(told.contains("(call bind_context of names)"), "{told}");
    let line = server.refused();
    assert!(
        line.contains(&address) && line.contains("may not bind (call bind of names)"),
        "{line}"
    );
    let listed = done(ship, &names(&["list"], &url));
    assert!(
        listed.contains("NAV") && listed.contains("fleet"),
        "{listed}"
    );
    assert!(
        !listed.contains("OTHER") && !listed.contains("other"),
        "{listed}"
    );
}

#[test]
fn table_permits_a_stranger_what_it_says_and_refusals_name_the_file() {
    let Some(testbed) = two_hosts() else { return };
    let [ship, shore] = ["SHIP", "SHORE"].map(|name| testbed.host(name).expect("a host"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("names-access.toml");
    let rules = format!(
        "[[allow]]\nwho = [\"this-host\"]\nmay = [\"resolve\"]\n\
         [[allow]]\nwho = [\"{}\"]\nmay = [\"bind\"]\noperations = [\"resolve\"]\non = [\"names\"]\n",
        shore.address()
    );
    std::fs::write(&file, rules).expect("written");
    let file = file.to_str().expect("UTF-8");
    let serve = [
        "names",
        "serve",
        "--listen",
        "0.0.0.0:2809",
        "--access",
        file,
    ];
    let mut server = Server::start(ship, &serve);
    let url = format!("corbaloc::{}:2809/NameService", ship.address());
    let with = |words: &[&'static str]| names(words, &url);
    done(shore, &with(&["bind", "NAV", OBJECT]));
    done(shore, &with(&["resolve", "NAV"]));
    refused(shore, &with(&["list"]));
    assert!(
        server
            .refused()
            .contains("may not resolve (call list of names)")
    );
    done(ship, &with(&["list"]));
    let told = refused(ship, &with(&["unbind", "NAV"]));
    assert!(
        told.contains("may not bind (call unbind of names)"),
        "{told}"
    );
    assert!(told.contains(file), "{told}");
}

#[test]
fn audit_log_has_who_bound_what_and_who_was_refused() {
    let Some(testbed) = two_hosts() else { return };
    let [ship, shore] = ["SHIP", "SHORE"].map(|name| testbed.host(name).expect("a host"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("audit.jsonl");
    let path = file.to_str().expect("UTF-8");
    let serve = [
        "names",
        "serve",
        "--listen",
        "0.0.0.0:2809",
        "--audit",
        path,
    ];
    let mut server = Server::start(ship, &serve);
    let url = format!("corbaloc::{}:2809/NameService", ship.address());
    let with = |words: &[&'static str]| names(words, &url);
    done(
        ship,
        &with(&["bind", "fleet/NAV\u{1b}[2J", OBJECT, "--contexts"]),
    );
    done(shore, &with(&["list"]));
    refused(shore, &with(&["unbind", "fleet"]));
    signal(&[server.process.id()], Signal::TERM);
    assert!(server.process.wait().expect("it ends").success());

    let text = std::fs::read_to_string(&file).expect("a log");
    assert!(
        !text.contains('\u{1b}'),
        "control characters are escaped: {text}"
    );
    let records: Vec<Record> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let events: Vec<Event> = records.iter().map(|record| record.event).collect();
    assert_eq!(events.first(), Some(&Event::Started));
    assert_eq!(events.last(), Some(&Event::Ended));
    let of = |event: Event, host: &Host| -> Vec<&Record> {
        let address = format!("{}:", host.address());
        let is_of = |record: &&Record| {
            let peer = record.peer.as_deref().unwrap_or("");
            record.event == event && peer.starts_with(&address)
        };
        records.iter().filter(is_of).collect()
    };
    let bound: Vec<_> = of(Event::Administered, ship)
        .iter()
        .map(|record| (record.operation.as_deref(), record.about.as_deref()))
        .collect();
    let expected = [
        (Some("bind_new_context"), Some("fleet")),
        (Some("bind"), Some("fleet/NAV\u{1b}[2J")),
    ];
    assert_eq!(bound, expected);
    assert!(of(Event::Administered, shore).is_empty());
    let [refused] = of(Event::Refused, shore)[..] else {
        panic!("one refusal: {text}");
    };
    assert_eq!(refused.action.as_deref(), Some("bind"));
    assert_eq!(refused.operation.as_deref(), Some("unbind"));
    assert_eq!(refused.object.as_deref(), Some("names"));
    assert!(of(Event::Refused, ship).is_empty());
    assert_eq!(of(Event::Connected, shore).len(), 2, "{text}");
}

#[test]
fn member_of_a_group_is_called_by_the_hosts_of_its_list_alone() {
    let Some(testbed) = two_hosts() else { return };
    let [ship, shore] = ["SHIP", "SHORE"].map(|name| testbed.host(name).expect("a host"));
    let idl = format!(
        "{}/../../idl/deckwatch/channel_group.idl",
        env!("CARGO_MANIFEST_DIR")
    );
    let own = format!("{}:7000", ship.address());
    let url = format!("corbaloc::{own}/ChannelMember");
    let operation = "ChannelGroup::Member::report_standing";
    let ask = ["call", &url, operation, "--idl", &idl];
    let serve = |other: &str| {
        let group = format!("{own},{other}");
        let words = [
            "channel",
            "--real-time",
            "--group",
            &group,
            "--listen",
            &own,
        ];
        Server::start(ship, &words)
    };
    let server = serve(&format!("{}:7001", ship.address()));
    let told = refused(shore, &ask);
    let words = "may not administer (call report_standing of";
    assert!(told.contains(words), "{told}");
    done(ship, &ask);
    drop(server);
    let _server = serve(&format!("{}:7000", shore.address()));
    done(shore, &ask);
}
