//! Standard output or standard error on a full disk, or with a reader that has closed the pipe. The command reports an
//! error or none, and never panics.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn deckwatch(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.args(words).env("NO_COLOR", "1");
    command
}

/// Opens `/dev/full`, a disk without room that every Linux system has.
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .expect("it is there")
        .into()
}

fn from_root(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path).display().to_string()
}

#[test]
fn what_cannot_be_printed_is_an_error_in_words() {
    let (echo, mission) = (
        from_root("idl/deckwatch/echo.idl"),
        from_root("scenarios/nav.toml"),
    );
    let reference = "corbaloc::127.0.0.1:2809/NameService";
    let commands: [&[&str]; 12] = [
        &["version"],
        &["version", "--json"],
        &["schema"],
        &["ior", reference],
        &["idl", &echo],
        &["idl", &echo, "--list"],
        &["call", "--list", "--idl", &echo],
        &["check", &mission],
        &["doctor"],
        &["testbed", "list"],
        &["names", "serve"],
        &["channel"],
    ];
    for words in commands {
        let output = deckwatch(words).stdout(full()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains("standard output cannot be written"),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn a_naming_service_serves_though_nobody_takes_what_it_says_of_itself() {
    let mut serving = deckwatch(&["names", "serve"])
        .stdout(Stdio::piped())
        .stderr(full())
        .spawn()
        .expect("it runs");
    let mut reference = String::new();
    let mut said = BufReader::new(serving.stdout.take().expect("piped"));
    said.read_line(&mut reference).expect("readable");
    assert!(reference.starts_with("IOR:"), "{reference}");
    let listed = deckwatch(&["names", "list", "--names", reference.trim()]).output();
    assert!(listed.expect("it runs").status.success());
    let told = Command::new("kill").arg(serving.id().to_string()).status();
    assert!(told.expect("kill is there").success());
    assert!(serving.wait().expect("it ends").success());
}

#[test]
fn a_reader_who_has_heard_enough_is_no_error() {
    let mut listing = deckwatch(&["schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(listing.stdout.take());
    let output = listing.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn what_was_there_stays_where_there_is_no_room_for_the_new() {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let disk = std::env::temp_dir().join(format!("deckwatch-small-{}", std::process::id()));
    std::fs::create_dir_all(&disk).expect("writable");
    // A disk of two pages in a mount namespace of this test. One page is in use.
    let script = "mount -t tmpfs -o size=8k tmpfs \"$1\" && cd \"$1\" && echo old > x.rs && \"$2\" idl \"$3\" -o x.rs; echo $?; cat x.rs; ls";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(env!("CARGO_BIN_EXE_deckwatch"))
        .arg(from_root("idl/deckwatch/echo.idl"))
        .output()
        .expect("util-linux is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write x.rs"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\nold\nx.rs\n");
    std::fs::remove_dir(&disk).expect("empty");
}
