//! Servers and clients over TLS as a user starts them: certificates by files, refusals in words, new certificates by
//! SIGHUP.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

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
    fn names(own: &Issued, authorities: &Path) -> Self {
        let mut command =
            deckwatch(&["names", "serve", "--listen", "127.0.0.1:0", "--tls-require"]);
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

    /// Sends SIGHUP, and returns what the server says of it.
    fn reload(&mut self) -> String {
        let process = i32::try_from(self.process.id()).expect("a process id");
        kill_process(Pid::from_raw(process).expect("not 0"), Signal::HUP).expect("it runs");
        self.line()
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
    let mut server = Server::names(&nav, folder.path());
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
