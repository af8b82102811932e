//! `deckwatch channel` among hosts: what a client on another host cannot have called.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use deckwatch_testbed::{Host, HostSpec, Testbed, preset};

/// The program in the network namespace of a host.
fn at(host: &Host) -> Command {
    let name = host.namespace_name().expect("a namespace");
    let mut command = Command::new("ip");
    command.args(["netns", "exec", name, env!("CARGO_BIN_EXE_deckwatch")]);
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// A channel at a host, killed when this is dropped.
struct Channel {
    process: Child,
    ior: String,
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it ends");
    }
}

impl Channel {
    fn start(host: &Host, options: &[&str]) -> Self {
        let mut process = at(host)
            .args(["channel", "--listen", &format!("{}:7000", host.address())])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("ip is there");
        let mut ior = String::new();
        let said = process.stdout.take().expect("a pipe");
        BufReader::new(said).read_line(&mut ior).expect("a line");
        let ior = ior.trim().to_owned();
        Self { process, ior }
    }

    /// Calls an operation from a host. Returns what it prints, behind the name of the result.
    fn call(&self, host: &Host, object: &str, arguments: &[&str]) -> String {
        let idl = format!("{}/../../idl/omg", env!("CARGO_MANIFEST_DIR"));
        let output = at(host)
            .args(["call", object])
            .args(arguments)
            .args([
                "--idl",
                &format!("{idl}/CosEventChannelAdmin.idl"),
                "-I",
                &idl,
            ])
            .output()
            .expect("ip is there");
        let both = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(both).expect("UTF-8");
        let text = text.trim();
        text.strip_prefix("return: ").unwrap_or(text).to_owned()
    }

    /// Connects a consumer from a host.
    fn connect(&self, host: &Host, consumer: &str) -> String {
        let admin = self.call(host, &self.ior, &["for_consumers"]);
        let proxy = self.call(host, &admin, &["obtain_push_supplier"]);
        self.call(host, &proxy, &["connect_push_consumer", consumer])
    }
}

#[test]
fn client_on_another_host_has_neither_loopback_nor_other_networks_called_unless_permitted() {
    if let Some(reason) = Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let network = preset("gigabit-ethernet").expect("a preset");
    let specs = [HostSpec::new("SERVER"), HostSpec::new("STRANGER")];
    let testbed = Testbed::create(&network, &specs).expect("namespaces");
    let [server, stranger] = [0, 1].map(|index| &testbed.hosts()[index]);
    let (own, other) = (server.address(), stranger.address());
    let connected = "returned; there are no results";
    let refused = |said: &str| said.contains("NO_PERMISSION") && said.contains("--reach NETWORK");

    let channel = Channel::start(server, &[]);
    for consumer in [
        "corbaloc::127.0.0.1:9/x".to_owned(),
        "corbaloc::[::1]:9/x".to_owned(),
        "corbaloc::192.0.2.1:9/x".to_owned(),
        format!("corbaloc::{own}:7000/x"),
    ] {
        let said = channel.connect(stranger, &consumer);
        assert!(refused(&said), "{consumer}: {said}");
    }
    let near = format!("corbaloc::{other}:9/x");
    assert_eq!(channel.connect(stranger, &near), connected);
    let local = "corbaloc::127.0.0.1:9/x";
    drop(channel);

    let channel = Channel::start(server, &["--reach", "192.0.2.0/24,127.0.0.1"]);
    let destroyed = channel.call(stranger, &channel.ior, &["destroy"]);
    assert!(destroyed.contains("NO_PERMISSION"), "{destroyed}");
    for permitted in ["corbaloc::192.0.2.1:9/x", local, near.as_str()] {
        assert_eq!(channel.connect(stranger, permitted), connected);
    }
    drop(channel);
    let channel = Channel::start(server, &["--reach", "any"]);
    assert_eq!(
        channel.connect(stranger, "corbaloc::192.0.2.1:9/x"),
        connected
    );
    assert!(refused(&channel.connect(stranger, local)));
}

#[test]
fn network_that_is_none_is_refused_with_what_to_write() {
    let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["names", "serve", "--reach", "10.1.2.3/16"])
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("'10.1.2.3/16' is no network: write 10.1.0.0/16, or the address alone"),
        "{said}"
    );
}
