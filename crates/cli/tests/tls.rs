//! Servers and clients over TLS as a user starts them: certificates by files, refusals in words, new certificates by
//! SIGHUP.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use deckwatch_audit::{Event, Record};
use deckwatch_testkit::certificates::{Authority, Issued};
use rustix::process::{Pid, Signal, kill_process};

/// A program that serves over TLS alone, killed when this is dropped, and the lines that it prints.
struct Server {
    process: Child,
    said: Lines<BufReader<ChildStderr>>,
    /// Where it serves names.
    url: String,
}

fn deckwatch(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

fn with_own<'c>(command: &'c mut Command, own: &Issued, authorities: &Path) -> &'c mut Command {
    command
        .arg("--tls-certificate")
        .arg(&own.chain)
        .arg("--tls-key")
        .arg(&own.key);
    command.arg("--tls-authorities").arg(authorities)
}

impl Server {
    fn names(own: &Issued, authorities: &Path, more: &[&str]) -> Self {
        let mut command =
            deckwatch(&["names", "serve", "--listen", "127.0.0.1:0", "--tls-require"]);
        command.args(more);
        with_own(&mut command, own, authorities);
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the program starts");
        let pipe = process.stderr.take().expect("a pipe");
        let mut server = Self {
            process,
            said: BufReader::new(pipe).lines(),
            url: String::new(),
        };
        let line = server.line();
        let url = line.strip_prefix("serving names at ");
        server.url = url.unwrap_or_else(|| panic!("{line}")).to_owned();
        server
    }

    fn line(&mut self) -> String {
        self.said.next().expect("a line").expect("UTF-8")
    }

    fn signal(&self, signal: Signal) {
        let process = i32::try_from(self.process.id()).expect("a process id");
        kill_process(Pid::from_raw(process).expect("not 0"), signal).expect("it runs");
    }

    /// Sends SIGHUP, and returns the line that the server prints about it.
    fn reload(&mut self) -> String {
        self.signal(Signal::HUP);
        loop {
            let line = self.line();
            if !line.starts_with("refused: ") {
                return line;
            }
        }
    }

    /// Lists the names with these certificates. Returns the exit status and what is printed.
    fn list(&self, own: &Issued, authorities: &Path) -> (Option<i32>, String) {
        let mut command = deckwatch(&["names", "list", "--names", &self.url]);
        let output = with_own(&mut command, own, authorities)
            .output()
            .expect("it starts");
        let both = [&output.stdout[..], &output.stderr[..]].concat();
        (
            output.status.code(),
            String::from_utf8(both).expect("UTF-8"),
        )
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }
}

#[test]
fn names_are_served_over_tls_and_a_client_is_refused_once_its_revocation_is_read_by_sighup() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "fleet");
    let nav = authority.issue("nav", &["127.0.0.1"]);
    let [bridge, other] = ["bridge", "other"].map(|name| authority.issue(name, &[]));
    // Authority and revocation list stand in one folder, with the certificates.
    let mut server = Server::names(&nav, folder.path(), &[]);
    assert!(
        server.url.starts_with("corbaloc:ssliop:1.2@127.0.0.1:"),
        "{}",
        server.url
    );
    let refused = |told: &str| told.contains("refuses the certificate");
    assert_eq!(
        server.list(&bridge, &authority.file()),
        (Some(0), String::new())
    );
    authority.revoke(&[&bridge]);
    assert_eq!(server.reload(), "SIGHUP: the certificates are read again.");
    let (status, told) = server.list(&bridge, &authority.file());
    assert!(status == Some(2) && refused(&told), "{status:?} {told}");
    assert_eq!(server.list(&other, &authority.file()).0, Some(0));
    // What cannot be read changes nothing.
    std::fs::write(&nav.chain, "half").expect("it is written");
    let told = server.reload();
    assert!(
        told.contains("holds no certificate") && told.contains("stay in use"),
        "{told}"
    );
    assert_eq!(server.list(&other, &authority.file()).0, Some(0));
    let output = deckwatch(&["names", "list", "--names", &server.url]).output();
    let told = String::from_utf8(output.expect("it starts").stderr).expect("UTF-8");
    assert!(
        told.contains("TLS alone") && told.contains("--tls-authorities"),
        "{told}"
    );
}

#[test]
fn events_of_a_channel_over_tls_alone_are_printed_by_a_consumer_with_a_certificate() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "fleet");
    // The channel calls the consumer, so that both names are checked.
    let [nav, display] = ["nav", "display"].map(|name| authority.issue(name, &["127.0.0.1"]));
    let start = |own: &Issued, arguments: &[&str]| {
        let mut command = deckwatch(arguments);
        with_own(command.arg("--tls-require"), own, &authority.file());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        Started(command.spawn().expect("the program starts"))
    };
    let mut channel = start(&nav, &["channel", "--listen", "127.0.0.1:0"]);
    let ior = channel.line();
    let mut echo = start(&display, &["events", "echo", "--ior", &ior, "--count", "1"]);
    // What is published before the consumer is connected does not reach it.
    let begun = Instant::now();
    while echo.0.try_wait().expect("a child").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no event came");
        let mut publish = start(&display, &["events", "publish", "--ior", &ior, EVENT]);
        let status = publish.0.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
    assert!(echo.line().contains('7'));
}

const EVENT: &str = "{type: \"unsigned long\", value: 7}";

/// A program whose standard output is read, killed when this is dropped.
struct Started(Child);

impl Started {
    fn line(&mut self) -> String {
        let output = self.0.stdout.as_mut().expect("a pipe");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("UTF-8");
        line.trim().to_owned()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_rule_for_a_certificate_holds_over_tls_and_another_table_by_sighup() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "fleet");
    let nav = authority.issue("nav", &["127.0.0.1"]);
    let [bridge, engine] =
        ["bridge", "engine"].map(|name| authority.issue(name, &[&format!("{name}.ship")]));
    let [file, log] = ["access.toml", "audit.jsonl"].map(|name| folder.path().join(name));
    let permit = |who: &str| {
        let rule = format!("[[allow]]\nwho = [\"cert:{who}\"]\nmay = [\"resolve\"]\n");
        std::fs::write(&file, rule).expect("it is written");
    };
    permit("Bridge.ship");
    let [access, audit] = [&file, &log].map(|path| path.to_str().expect("UTF-8"));
    let options = ["--access", access, "--audit", audit];
    let mut server = Server::names(&nav, &authority.file(), &options);
    let denied = |(status, told): (Option<i32>, String), name: &str| {
        let words = format!(" ({name}.ship) may not resolve (call list of names)");
        assert!(status == Some(2) && told.contains(&words), "{told}");
    };
    assert_eq!(server.list(&bridge, &authority.file()).0, Some(0));
    // It is this host, which no rule names.
    denied(server.list(&engine, &authority.file()), "engine");

    permit("engine.ship");
    assert_eq!(server.reload(), "SIGHUP: the certificates are read again.");
    let told = server.line();
    assert_eq!(
        told,
        format!("SIGHUP: the access table {access} is read again.")
    );
    assert_eq!(server.list(&engine, &authority.file()).0, Some(0));
    denied(server.list(&bridge, &authority.file()), "bridge");

    std::fs::write(
        &file,
        "[[allow]]\nwho = [\"nobody\"]\nmay = [\"resolve\"]\n",
    )
    .expect("written");
    server.reload();
    while !server
        .line()
        .ends_with("the access table in use stays in use.")
    {}
    assert_eq!(server.list(&engine, &authority.file()).0, Some(0));
    denied(server.list(&bridge, &authority.file()), "bridge");

    let own = Authority::new(&folder.path().join(""), "pirate").issue("bridge", &["bridge.ship"]);
    assert_eq!(server.list(&own, &authority.file()).0, Some(2));
    server.signal(Signal::TERM);
    assert!(server.process.wait().expect("it ends").success());
    let text = std::fs::read_to_string(&log).expect("a log");
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<Record>(line).expect(line));
    let records: Vec<Record> = records.collect();
    let about = |event| {
        let of = records.iter().filter(move |record| record.event == event);
        of.map(|record| record.about.clone().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    let table = format!("access table {access}");
    let reloaded = about(Event::Reloaded);
    assert_eq!(reloaded, ["certificates", &table, "certificates"]);
    let untrusted = "No trusted authority has signed the certificate of the peer.";
    assert_eq!(about(Event::ConnectionRefused), [untrusted]);
    let names = |event| {
        let of = records.iter().filter(move |record| record.event == event);
        of.map(|record| record.certificate.clone().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(Event::Refused),
        ["engine.ship", "bridge.ship", "bridge.ship"]
    );
    assert!(!text.contains("PRIVATE KEY"));
}

#[test]
fn options_of_tls_that_cannot_be_are_told_with_what_to_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("none.pem");
    let missing = missing.to_str().expect("UTF-8");
    for (options, words) in [
        (&["--tls-certificate", missing][..], "--tls-key"),
        (&["--tls-require"], "give the file of its certificate"),
        (&["--tls-authorities", missing], "none.pem cannot be read"),
    ] {
        let mut command = deckwatch(&["names", "list"]);
        let output = command.args(options).output().expect("it starts");
        let told = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(words), "{told}");
    }
}
