//! `deckwatch names` as a user sees it: each command on a service of its own, and the content of a store after its
//! service was killed.

mod lying;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .arg("names")
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// Returns the exit status and the printed text.
fn said(output: &Output) -> (Option<i32>, String) {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(both).expect("UTF-8");
    (output.status.code(), text.trim_end().to_owned())
}

/// A `deckwatch names serve` process, killed when this is dropped.
struct Service {
    process: Child,
    url: String,
}

impl Service {
    fn start(listen: &str, store: Option<&Path>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        command.args(["names", "serve", "--listen", listen]);
        if let Some(store) = store {
            command.arg("--store").arg(store);
        }
        let mut process = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut heard = BufReader::new(process.stderr.take().expect("a pipe"));
        let mut line = String::new();
        heard.read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("serving names at ");
        let url = url.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { process, url }
    }

    fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns host and port of a service over TCP.
    fn address(&self) -> &str {
        let address = self.url.strip_prefix("corbaloc::");
        let address = address.and_then(|url| url.strip_suffix("/NameService"));
        address.expect("it listens by TCP")
    }

    fn names(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let url = self.url();
        let mut all = arguments.to_vec();
        all.extend(["--names", &url]);
        said(&run(&all))
    }

    /// Runs a command that must succeed. Returns its output.
    fn done(&self, arguments: &[&str]) -> String {
        let (status, text) = self.names(arguments);
        assert_eq!(status, Some(0), "{arguments:?}: {text}");
        text
    }

    /// Runs a command that must fail. Returns the reason that it prints.
    fn refused(&self, arguments: &[&str]) -> String {
        let (status, text) = self.names(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {text}");
        text
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }
}

const THING: &str = "corbaloc::127.0.0.1:9/thing";

#[test]
fn names_are_bound_listed_resolved_and_removed() {
    let service = Service::start("127.0.0.1:0", None);
    service.done(&["bind", "fleet/alpha.ship", THING, "--contexts"]);
    service.done(&["new-context", "fleet/harbour"]);
    service.done(&["bind", r"fleet/harbour/quay\.1", THING]);
    service.done(&["bind-context", "again", &service.url()]);
    assert_eq!(service.done(&["list"]), "again/\nfleet/");
    assert_eq!(service.done(&["list", "fleet"]), "alpha.ship\nharbour/");
    assert_eq!(
        service.done(&["list", "-r"]),
        "again/\nagain/again/  (listed already)\nagain/fleet/\nagain/fleet/alpha.ship\nagain/fleet/harbour/\n\
         again/fleet/harbour/quay\\.1\nfleet/  (listed already)"
    );
    let url = format!("corbaname::{}#fleet/harbour", service.address());
    assert_eq!(
        said(&run(&["list", &url, "--long"])).1,
        "quay\\.1  (no type)  127.0.0.1:9"
    );
    let json = service.done(&["list", "fleet", "--json", "--long"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json[0]["name"], &json[0]["context"]),
        (&"alpha.ship".into(), &false.into())
    );
    assert_eq!(
        json[1]["type_id"],
        "IDL:omg.org/CosNaming/NamingContextExt:1.0"
    );
    assert!(
        service
            .done(&["resolve", "fleet/alpha.ship"])
            .starts_with("IOR:")
    );
    assert!(
        service
            .done(&["resolve", "fleet/alpha.ship", "--explain"])
            .contains("port 9")
    );
    let url = format!("corbaname::{}#fleet/harbour/quay%5c.1", service.address());
    assert!(said(&run(&["resolve", &url])).1.starts_with("IOR:"));
    service.done(&["bind", "fleet/alpha.ship", THING, "--replace"]);
    service.done(&["unbind", "again"]);
    service.done(&["destroy", "fleet", "--recursive"]);
    assert_eq!(service.done(&["list"]), "");
}

#[test]
fn what_is_destroyed_with_all_it_holds_ends_where_another_service_begins() {
    // The path must be short: that of a unix socket has at most about a hundred octets.
    let folder = std::env::temp_dir().join(format!("deckwatch-names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let socket = |name: &str| format!("unix:{}", folder.join(name).display());
    for (one, other) in [
        ("127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned()),
        (socket("one"), socket("other")),
    ] {
        let (one, other) = (Service::start(&one, None), Service::start(&other, None));
        other.done(&["bind", "kept/inner/thing", THING, "--contexts"]);
        one.done(&["bind", "mine/inner/thing", THING, "--contexts"]);
        let kept = other.done(&["resolve", "kept"]);
        one.done(&["bind-context", "mine/theirs", &kept]);
        one.done(&["destroy", "mine", "--recursive"]);
        assert_eq!(one.done(&["list"]), "");
        assert_eq!(
            other.done(&["list", "-r"]),
            "kept/\nkept/inner/\nkept/inner/thing"
        );
    }
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn what_stands_in_the_way_is_said_in_words() {
    let service = Service::start("127.0.0.1:0", None);
    service.done(&["bind", "a/b", THING, "--contexts"]);
    let cases: &[(&[&str], &str)] = &[
        (
            &["resolve", "a/c"],
            "error: cannot resolve a/c\n  because: `a` has no `c`",
        ),
        (
            &["resolve", "x/y"],
            "error: cannot resolve x/y\n  because: the context asked has no `x`",
        ),
        (
            &["resolve", "a/b/c"],
            "error: cannot resolve a/b/c\n  because: `b` in `a` is bound to an object, not to a context",
        ),
        (
            &["bind", "a/b", THING],
            "error: cannot bind a/b\n  because: it is bound already",
        ),
        (
            &["bind", "a", THING, "--replace"],
            "error: cannot bind a\n  because: `a` in the context asked is bound to a context, not to an object",
        ),
        (
            &["bind", "z/b", THING],
            "error: cannot bind z/b\n  because: the context asked has no `z`",
        ),
        (
            &["new-context", "a"],
            "error: cannot make a\n  because: it is bound already",
        ),
        (
            &["destroy", "a"],
            "error: cannot destroy a\n  because: the context still holds names",
        ),
        (&["list", "a/b"], "error: the context a/b does not answer"),
        (
            &["resolve", "a//b"],
            "error: `a//b` is not a name\n  because: a component is empty at octet 2; an empty component is written as a single dot",
        ),
    ];
    for (arguments, expected) in cases {
        let told = service.refused(arguments);
        assert!(told.starts_with(expected), "{arguments:?}: {told}");
    }
    let at = format!("corbaloc::{}/Nobody", service.address());
    let (_, told) = said(&run(&["list", "--names", &at]));
    assert!(
        told.starts_with("error: no naming service answers at corbaloc::"),
        "{told}"
    );
    assert!(told.contains("OBJECT_NOT_EXIST"), "{told}");
    let nobody = "corbaloc::127.0.0.1:1/NameService";
    let (status, told) = said(&run(&["list", "--names", nobody]));
    assert_eq!(status, Some(2));
    assert!(
        told.contains("`deckwatch names serve` starts one") && told.contains("nobody listens"),
        "{told}"
    );
}

#[test]
fn the_service_is_named_by_a_file_too() {
    let service = Service::start("127.0.0.1:0", None);
    service.done(&["bind", "a", THING]);
    let file = std::env::temp_dir().join(format!("deckwatch-names-{}.ior", std::process::id()));
    std::fs::write(&file, service.url()).expect("a file");
    let listed = said(&run(&["list", "--names", file.to_str().expect("UTF-8")]));
    assert_eq!(listed, (Some(0), "a".to_owned()));
    std::fs::remove_file(file).expect("the file goes");
}

#[test]
fn a_store_that_is_none_is_told_once() {
    let this = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let file = this.to_str().expect("UTF-8");
    let (status, told) = said(&run(&["serve", "--store", file]));
    assert_eq!(status, Some(2));
    assert_eq!(told.matches("Not a redb database").count(), 1, "{told}");
}

#[test]
fn a_trace_tells_each_message_and_why_nobody_answered() {
    let service = Service::start("127.0.0.1:0", None);
    let (status, traced) = service.names(&["list", "--trace"]);
    assert_eq!(status, Some(0), "{traced}");
    for told in [
        "connected to 127.0.0.1:",
        "\"list\" of \"NameService\", wants a reply",
        "to \"list\": results, after",
    ] {
        assert!(traced.contains(told), "no `{told}` in {traced}");
    }
    let gone = service.url();
    drop(service);
    let (status, traced) = said(&run(&["list", "--trace", "--names", &gone]));
    assert_eq!(status, Some(2), "{traced}");
    for told in [
        "TRANSIENT raised by this ORB for \"_is_a\" of \"NameService\", not completed",
        "    tried 127.0.0.1:",
        "    What to do: check that the server runs",
    ] {
        assert!(traced.contains(told), "no `{told}` in {traced}");
    }
}

fn port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

#[test]
fn what_was_acknowledged_survives_a_service_that_is_killed_at_any_moment() {
    const ROUNDS: usize = 3;
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("names-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let store = folder.join("names.redb");
    let listen = format!("127.0.0.1:{}", port());
    let orb = deckwatch_orb::Orb::builder().build().expect("an ORB");
    let url = format!("corbaloc::{listen}/NameService");
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let mut service = Service::start(&listen, Some(&store));
        let root = orb
            .string_to_object(&url)
            .expect("a corbaloc")
            .expect("not nil");
        let root = deckwatch_orb::cos_naming::NamingContextRef::unchecked_narrow(root);
        let path = |text: &str| deckwatch_naming::user::path(text).expect("a name");
        // Another thread kills the service during the binds, by a signal that cannot be caught.
        let (bound, enough) = std::sync::mpsc::channel();
        let killer = std::thread::spawn(move || {
            (0..40).for_each(|_| enough.recv().expect("binds go on"));
            service.process.kill().expect("it is ours");
            service
        });
        for number in 0.. {
            let context = path(&format!("round{round}-{number}"));
            if root.bind_new_context(&context).is_err() {
                break;
            }
            let name = path(&format!("round{round}-{number}/thing"));
            let made = root.bind(&name, Some(root.object()));
            acknowledged.push((context, made.is_ok().then_some(name)));
            let _killed = bound.send(());
        }
        drop(killer.join().expect("the killer ends"));
    }
    assert!(acknowledged.len() >= 40 * ROUNDS, "{}", acknowledged.len());
    let service = Service::start(&listen, Some(&store));
    let root = orb
        .string_to_object(&service.url())
        .expect("a corbaloc")
        .expect("not nil");
    let root = deckwatch_orb::cos_naming::NamingContextRef::unchecked_narrow(root);
    for (context, name) in &acknowledged {
        let found = root
            .resolve(context)
            .expect("it was acknowledged")
            .expect("a context");
        let found = deckwatch_orb::cos_naming::NamingContextRef::unchecked_narrow(found);
        found.list(1).expect("a context that answers");
        if let Some(name) = name {
            root.resolve(name).expect("it was acknowledged");
        }
    }
    // No bind is incomplete: each name resolves to its reference, whether its bind was acknowledged or not.
    let listed = service.done(&["list", "-r", "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&listed).expect("JSON");
    assert!(rows.len() >= acknowledged.len());
    assert!(
        rows.iter().all(|row| row.get("closed").is_none()),
        "{listed}"
    );
    drop(service);
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn a_store_is_checked_exported_and_made_anew_from_its_export() {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("exports-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let (store, copy, export) = (path("a.redb"), path("b.redb"), path("a.jsonl"));
    let done = |arguments: &[&str]| {
        let (status, text) = said(&run(arguments));
        assert_eq!(status, Some(0), "{arguments:?}: {text}");
        text
    };
    let refused = |arguments: &[&str]| {
        let (status, text) = said(&run(arguments));
        assert_eq!(status, Some(2), "{arguments:?}: {text}");
        text
    };
    {
        let service = Service::start("127.0.0.1:0", Some(Path::new(&store)));
        service.done(&["bind", "fleet/alpha.ship", THING, "--contexts"]);
        for arguments in [
            &["check", &store][..],
            &["gc", "--store", &store],
            &["gc", "--store", &store, "--sweep"],
            &["export", "--store", &store],
            &["import", "--store", &store, "-"],
        ] {
            let told = refused(arguments);
            let wanted = format!("{store} is in use by another process: stop the service");
            assert!(told.contains(&wanted), "{arguments:?}: {told}");
        }
    }
    let whole = format!("{store} is whole: 2 contexts, 2 names");
    assert_eq!(done(&["check", &store]), whole);
    let counted = "2 contexts and 2 names exported";
    assert_eq!(done(&["export", "--store", &store, &export]), counted);
    let text = std::fs::read_to_string(&export).expect("an export");
    for private in [&store, &export] {
        let permissions = std::fs::metadata(private).expect("a file").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600, "{private}");
    }
    assert!(done(&["export", "--store", &store]).starts_with(text.trim_end()));
    done(&["import", "--store", &copy, &export]);
    assert!(refused(&["import", "--store", &copy, &export]).contains("--merge"));
    assert_eq!(
        done(&["import", "--store", &copy, "--merge", &export]),
        "0 contexts made, 0 names bound, 2 bound already, 0 left out: their contexts are gone"
    );
    {
        let service = Service::start("127.0.0.1:0", Some(Path::new(&copy)));
        assert_eq!(
            service.done(&["list", "-r"]),
            "fleet/\nfleet/alpha.ship",
            "with the names of the first"
        );
    }
    {
        let service = Service::start("127.0.0.1:0", Some(Path::new(&copy)));
        service.done(&["new-context", "lost"]);
        service.done(&["unbind", "lost"]);
        service.done(&["bind", "fleet/beta", THING]);
    }
    assert!(done(&["gc", "--store", &copy]).starts_with("0 contexts that no name leads to"));
    let listed = done(&["gc", "--store", &copy, "--older", "1ns"]);
    assert!(listed.starts_with("context 2: 0 names, made "), "{listed}");
    assert!(listed.contains("by 127.0.0.1, no longer bound"), "{listed}");
    let swept = done(&["gc", "--store", &copy, "--older", "1ns", "--sweep"]);
    assert!(swept.ends_with("1 contexts destroyed"), "{swept}");
    assert_eq!(
        done(&["check", &copy]),
        format!("{copy} is whole: 2 contexts, 3 names")
    );
    let mut octets = std::fs::read(&store).expect("a store");
    // The reference of the only name that is bound to an object, in all pages that have or had it.
    for at in 0..octets.len() - 8 {
        if octets[at..].starts_with(b"IOR:") {
            octets[at + 7] ^= 1;
        }
    }
    std::fs::write(&store, &octets).expect("a store");
    let told = refused(&["check", &store]);
    assert!(
        told.contains("the name `alpha.ship` in context 1 is damaged"),
        "{told}"
    );
    assert!(refused(&["serve", "--store", &store]).contains("deckwatch names check"));
    let rest = done(&["export", "--damaged", "--store", &store]);
    assert!(rest.contains("2 contexts and 1 names exported"), "{rest}");
    octets.truncate(octets.len() / 2);
    std::fs::write(&store, octets).expect("a store");
    for told in [
        refused(&["check", &store]),
        refused(&["serve", "--store", &store]),
    ] {
        assert!(told.contains(&store), "{told}");
        assert!(told.contains("deckwatch names import --store"), "{told}");
    }
    std::fs::write(&export, text.replace("\"in\":0", "\"in\":7")).expect("an export");
    let none = path("none.redb");
    let told = refused(&["import", "--store", &none, &export]);
    assert!(told.contains("line 3: context 7 has no line"), "{told}");
    assert!(!Path::new(&none).exists(), "nothing is left behind");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}
