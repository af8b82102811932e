//! Faults of the host under a running program: its wall clock is set, or the program is stopped and goes on later.
//! Also under a run, whose stamps the clock has.

mod stamps;
mod steps;
mod stops;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin as cos;
use deckwatch_naming::user;
use deckwatch_orb::Orb;
use deckwatch_orb::cos_naming::NamingContextRef;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::watched::signal;

const DECKWATCH: &str = env!("CARGO_BIN_EXE_deckwatch");
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that serves, killed when this is dropped.
struct Server {
    process: Child,
    /// Its reference.
    reference: String,
}

impl Server {
    /// Starts it. Returns when it has written its reference.
    fn start(command: &mut Command) -> Self {
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        let spawned = command
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut process = spawned.expect("the program starts");
        let mut reference = String::new();
        let said = process.stdout.take().expect("a pipe");
        let read = BufReader::new(said).read_line(&mut reference);
        read.expect("a line");
        let reference = reference.trim().to_owned();
        assert!(reference.starts_with("IOR:"), "it serves: {reference}");
        Self { process, reference }
    }

    /// Stops it. Returns once it stands still.
    fn stop(&self) {
        stop(&self.process);
    }

    fn go_on(&self) {
        signal(&[self.process.id()], Signal::CONT);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill(); // It may have ended.
        let _ = self.process.wait();
    }
}

fn stop(process: &Child) {
    signal(&[process.id()], Signal::STOP);
    wait_for("it stands still", || {
        let file = format!("/proc/{}/stat", process.id());
        let stat = std::fs::read_to_string(file).expect("it is there");
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('T'))
    });
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

/// Waits until a program ends. Returns its exit status and what it printed.
pub(crate) fn end_of(mut process: Child) -> (Option<i32>, String) {
    let end = pidfd_open(Pid::from_child(&process), PidfdFlags::empty()).expect("it is ours");
    let patience = Timespec::try_from(PATIENCE).expect("a minute");
    let ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&patience));
    if ended != Ok(1) {
        process.kill().expect("it is ours");
        panic!("it does not end: {ended:?}");
    }
    let output = process.wait_with_output().expect("it has ended");
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    (
        output.status.code(),
        String::from_utf8(both).expect("UTF-8"),
    )
}

/// A client that serves too, and waits so long for replies.
fn client(timeout: Duration) -> Orb {
    let builder = Orb::builder().round_trip_timeout(timeout);
    let orb = builder
        .listen("127.0.0.1:0")
        .and_then(deckwatch_orb::OrbBuilder::build);
    let orb = orb.expect("an ORB");
    let root = orb.root_poa().expect("a root adapter");
    root.the_poa_manager().activate().expect("active");
    orb
}

fn names(orb: &Orb, server: &Server) -> NamingContextRef {
    let object = orb.string_to_object(&server.reference).expect("an IOR");
    NamingContextRef::unchecked_narrow(object.expect("not nil"))
}

/// Binds a name to the service itself. Returns the exception that this raised.
fn bind(root: &NamingContextRef, name: &str) -> Result<(), String> {
    let path = user::path(name).expect("a name");
    let bound = root.bind(&path, Some(root.object()));
    bound.map_err(|raised| raised.to_string())
}

/// Asserts that all these names are bound, by a client of its own.
fn assert_bound(server: &Server, bound: &[String]) {
    let orb = client(PATIENCE);
    let root = names(&orb, server);
    for name in bound {
        let path = user::path(name).expect("a name");
        let found = root.resolve(&path);
        found.unwrap_or_else(|raised| panic!("{name} was acknowledged: {raised}"));
    }
    orb.shutdown(true).expect("it ends");
}

fn cos_channel(orb: &Orb, server: &Server) -> cos::EventChannelRef {
    let object = orb.string_to_object(&server.reference).expect("an IOR");
    cos::EventChannelRef::unchecked_narrow(object.expect("not nil"))
}

/// A connected supplier of numbers.
fn supplier(channel: &cos::EventChannelRef) -> cos::ProxyPushConsumerRef {
    let admin = channel.for_suppliers().expect("an answer").expect("one");
    let proxy = admin.obtain_push_consumer().expect("an answer");
    let proxy = proxy.expect("one");
    proxy.connect_push_supplier(None).expect("connected");
    proxy
}

/// Pushes a number. Returns the exception that this raised.
fn push(supplier: &cos::ProxyPushConsumerRef, number: i32) -> Result<(), String> {
    let pushed = supplier.push(&Any::from_value(&number).expect("a long"));
    pushed.map_err(|raised| raised.to_string())
}

/// Takes numbers until all these have come.
fn take_all(taken: &Receiver<i32>, mut awaited: Vec<i32>) {
    let begun = Instant::now();
    while !awaited.is_empty() {
        let left = PATIENCE.saturating_sub(begun.elapsed());
        match taken.recv_timeout(left) {
            Ok(number) => awaited.retain(|other| *other != number),
            Err(_) => panic!("{awaited:?} were acknowledged and never came"),
        }
    }
}

/// Whether a call ended at its own time limit, or could not reach its server.
fn is_of_a_stop(raised: &str) -> bool {
    ["TIMEOUT", "TRANSIENT"]
        .iter()
        .any(|kind| raised.contains(kind))
}
