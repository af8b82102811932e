//! `deckwatch channel --real-time --federate --multicast`: two processes, and the clients of each.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A `deckwatch` process, killed when this is dropped.
struct Process {
    child: Child,
    /// What it prints on standard error.
    errors: BufReader<ChildStderr>,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if it has ended, as it should.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(arguments)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, errors }
    }

    /// Starts a real-time channel with these further arguments. Returns it with its IOR.
    fn channel(arguments: &[&str]) -> (Self, String) {
        let mut channel = Self::start(&[&["channel", "--real-time"], arguments].concat());
        let mut ior = String::new();
        let output = channel.child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut ior).expect("a line");
        (channel, ior.trim().to_owned())
    }

    /// Reads lines of standard error up to one with this text.
    #[track_caller]
    fn await_line(&mut self, text: &str) {
        let mut all = String::new();
        while !all.lines().last().is_some_and(|line| line.contains(text)) {
            let read = self.errors.read_line(&mut all).expect("a line");
            assert!(read > 0, "no line has `{text}`: {all}");
        }
    }

    /// Ends it with SIGTERM. Returns the rest of standard error.
    fn end(mut self) -> String {
        let id = i32::try_from(self.child.id()).expect("a process id");
        kill_process(Pid::from_raw(id).expect("a process id"), Signal::TERM).expect("it runs");
        let mut rest = String::new();
        self.errors.read_to_string(&mut rest).expect("UTF-8");
        assert!(self.child.wait().expect("it ends").success(), "{rest}");
        rest
    }
}

/// Publishes events of this type until the process has ended in order. A push is a one-way, so that the first may come
/// behind the end of its supplier.
#[track_caller]
fn publish_until_ended(ior: &str, event_type: &str, ended: &mut Process) {
    for _ in 0..100 {
        let publish = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args([
                "events",
                "publish",
                "--ior",
                ior,
                "--event-type",
                event_type,
            ])
            .arg("{type: \"unsigned long\", value: 7}")
            .output()
            .expect("the program starts");
        let errors = String::from_utf8_lossy(&publish.stderr);
        assert!(publish.status.success(), "{errors}");
        if let Some(status) = ended.child.try_wait().expect("a child") {
            return assert!(status.success());
        }
    }
    panic!("no event has arrived");
}

#[test]
fn event_published_at_one_channel_is_printed_by_a_consumer_of_the_other() {
    let (ship, at_ship) = Process::channel(&[]);
    let (mut shore, at_shore) = Process::channel(&["--federate", &at_ship]);
    let mut echo = Process::start(&[
        "events", "echo", "--ior", &at_shore, "--type", "17", "--count", "1",
    ]);
    // The consumer's subscription has reached the other channel.
    shore.await_line("connected");
    publish_until_ended(&at_ship, "17", &mut echo);
    let mut printed = String::new();
    let output = echo.child.stdout.take().expect("a pipe");
    BufReader::new(output)
        .read_line(&mut printed)
        .expect("a line");
    assert!(
        printed.contains("type 17") && printed.contains('7'),
        "{printed}"
    );

    let told = shore.end();
    assert!(
        told.contains("connected 1 times, cut 0, failed attempts 0")
            && told.contains(", doubled 0, came back 0,"),
        "{told}"
    );
    let told = ship.end();
    assert!(!told.contains("to other channels 0"), "{told}");
    assert!(
        told.contains("consumers lost 0"),
        "the gateway has disconnected: {told}"
    );
}

#[test]
fn gateway_without_a_remote_channel_says_so_and_the_channel_serves() {
    let nobody = "corbaloc::127.0.0.1:1/NAV";
    let (mut channel, ior) = Process::channel(&["--federate", nobody]);
    let mut echo = Process::start(&["events", "echo", "--ior", &ior, "--count", "1"]);
    channel.await_line("gateway to corbaloc::127.0.0.1:1/NAV: not connected, trying again");
    publish_until_ended(&ior, "16", &mut echo);
    channel.end();
}

#[test]
fn event_published_at_one_channel_crosses_a_multicast_group_on_loopback() {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let group = format!("239.255.77.3:{}", free.local_addr().expect("bound").port());
    let arguments = ["--multicast", &group, "--multicast-interface", "127.0.0.1"];
    let (ship, at_ship) = Process::channel(&arguments);
    let (shore, at_shore) = Process::channel(&arguments);
    let mut echo = Process::start(&["events", "echo", "--ior", &at_shore, "--count", "1"]);
    publish_until_ended(&at_ship, "16", &mut echo);
    let told = ship.end();
    assert!(
        !told.contains("events sent 0,") && told.contains("not sent 0, received 0;"),
        "{told}"
    );
    let told = shore.end();
    assert!(
        told.contains("events sent 0, not sent 0,") && !told.contains("received 0;"),
        "{told}"
    );
}

/// Returns the codepoints of the connected sockets of a process, in order. `kind`: `-t` for TCP, `-u` for UDP.
fn codepoints(kind: &str, of: &Process) -> Vec<u32> {
    let told = Command::new("ss")
        .args(["-npH", "--tos", kind])
        .output()
        .expect("it starts");
    let told = String::from_utf8(told.stdout).expect("plain words");
    let process = format!("pid={},", of.child.id());
    let words = told.lines().filter(|line| line.contains(&process));
    let words = words.flat_map(str::split_whitespace);
    // `ss` writes 0 without its usual 0x.
    let tos = words.filter_map(|word| word.strip_prefix("tos:"));
    let mut found: Vec<_> = tos
        .map(|tos| u32::from_str_radix(tos.trim_start_matches("0x"), 16).expect("a number") >> 2)
        .collect();
    found.sort_unstable();
    found
}

/// The codepoints of a channel's connections with one consumer, and of the socket that sends to its group.
fn marked(dscp: &[&str]) -> [Vec<u32>; 2] {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
    let group = format!("239.255.77.4:{}", free.local_addr().expect("bound").port());
    let group = ["--multicast", &group, "--multicast-interface", "127.0.0.1"];
    let (channel, ior) = Process::channel(&[dscp, &group].concat());
    let mut echo = Process::start(&["events", "echo", "--ior", &ior, "--count", "2"]);
    let mut printed = String::new();
    let publish = || {
        let publish = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(["events", "publish", "--ior", &ior])
            .arg("{type: \"unsigned long\", value: 7}")
            .stdout(Stdio::null())
            .status();
        assert!(publish.expect("the program starts").success());
    };
    let output = echo.child.stdout.take().expect("a pipe");
    let (line, lines) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        BufReader::new(output)
            .read_line(&mut printed)
            .expect("a line");
        line.send(printed).expect("somebody waits");
    });
    // A push is a one-way: the first may come before the consumer.
    while lines.try_recv().is_err() {
        publish();
    }
    reader.join().expect("it has read");
    let found = [codepoints("-t", &channel), codepoints("-u", &channel)];
    drop(echo);
    channel.end();
    found
}

#[test]
fn packets_of_a_channel_carry_the_codepoint_of_its_option() {
    if deckwatch_testkit::program("ss").is_none() {
        return;
    }
    let [tcp, group] = marked(&["--dscp", "46"]);
    // One to push, one to take the calls of the consumer, and maybe that of a supplier.
    assert!(tcp.len() >= 2 && tcp.iter().all(|it| *it == 46), "{tcp:?}");
    assert_eq!(group, [46]);
    // The consumer and the subscription of the group have no RT_Info: their priority is 0.
    for dscp in [&["--dscp", "by-priority"][..], &[]] {
        let [tcp, group] = marked(dscp);
        assert!(tcp.len() >= 2 && tcp.iter().all(|it| *it == 0), "{tcp:?}");
        assert_eq!(group, [0]);
    }
}

#[test]
fn options_of_a_federation_are_checked() {
    let refused = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .arg("channel")
            .args(arguments)
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = refused(&["--federate", "corbaloc::ship:1/NAV"]);
    assert!(told.contains("--real-time"), "{told}");
    let told = refused(&["--real-time", "--federate", "NAV"]);
    assert!(
        told.contains("neither IOR:, corbaloc: nor corbaname:"),
        "{told}"
    );
    let told = refused(&["--real-time", "--multicast", "192.0.2.1:7"]);
    assert!(told.contains("239.255.0.1:10001"), "{told}");
    let told = refused(&["--real-time", "--multicast-ttl", "2"]);
    assert!(told.contains("--multicast <"), "{told}");
    let nowhere = [
        "--multicast",
        "239.255.0.1:7",
        "--multicast-interface",
        "203.0.113.9",
    ];
    let told = refused(&[&["--real-time"], &nowhere[..]].concat());
    assert!(
        told.contains("cannot join the group") && told.contains("ip address"),
        "{told}"
    );
    let told = refused(&["--real-time", "--federate", "IOR:zz"]);
    assert!(told.contains("cannot federate with `IOR:zz`"), "{told}");
}
