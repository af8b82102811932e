//! The wall clock of a program is set forward and back, by a day and by decades. A suspended machine looks the same to a
//! program: CLOCK_REALTIME goes on, CLOCK_MONOTONIC does not.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use deckwatch_audit::Record;
use deckwatch_orb::{Orb, TlsOptions};
use deckwatch_os::clock::realtime_ns;
use deckwatch_testkit::certificates::Authority;

use super::*;

const DAY: i64 = 86_400;

/// The wall clock of the programs that are started with it.
pub(super) struct Wall {
    folder: tempfile::TempDir,
    library: PathBuf,
    step: File,
}

impl Wall {
    /// `None` and a counted skip without a C compiler.
    pub(super) fn new() -> Option<Self> {
        let compiler = deckwatch_testkit::program("cc")?;
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("wall.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/wall.c");
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-o"]);
        let status = command.arg(&library).arg(source).arg("-ldl").status();
        assert!(status.expect("it runs").success(), "wall.c compiles");
        let step = File::create(folder.path().join("step")).expect("a file");
        let wall = Self {
            folder,
            library,
            step,
        };
        wall.set(0);
        Some(wall)
    }

    /// Sets the clock to so many seconds ahead of the machine's.
    fn set(&self, ahead_s: i64) {
        self.write(0, ahead_s * 1_000_000_000);
    }

    /// Steps the clock, and the kernel's stamps from now on.
    pub(super) fn step(&self, step_ns: i64) {
        self.write(8, realtime_ns());
        self.write(0, step_ns);
    }

    fn write(&self, at: u64, ns: i64) {
        let written = self.step.write_all_at(&ns.to_ne_bytes(), at);
        written.expect("it is written");
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(DECKWATCH);
        command.args(words).env("LD_PRELOAD", &self.library);
        command.env("DECKWATCH_TEST_WALL", self.folder.path().join("step"));
        command
    }

    fn file(&self, name: &str) -> String {
        let file = self.folder.path().join(name);
        file.to_str().expect("UTF-8").to_owned()
    }
}

#[test]
fn names_are_bound_and_found_while_the_clock_jumps_and_the_audit_log_has_its_times() {
    let Some(wall) = Wall::new() else { return };
    let (store, audit) = (wall.file("names.redb"), wall.file("audit.jsonl"));
    let words = ["names", "serve", "--listen", "127.0.0.1:0"];
    let more = ["--store", &store, "--audit", &audit];
    let server = Server::start(&mut wall.command(&[&words[..], &more[..]].concat()));
    let orb = client(PATIENCE);
    let root = names(&orb, &server);
    let mut bound = Vec::new();
    for (round, ahead) in [0, DAY, -DAY, 20_000 * DAY, 0].into_iter().enumerate() {
        for number in 0..5 {
            let name = format!("ship{round}-{number}");
            bind(&root, &name).expect("the service answers");
            bound.push(name);
        }
        wall.set(ahead);
        assert_bound(&server, &bound);
    }
    // The log is written by a thread of its own.
    let years = || {
        let text = std::fs::read_to_string(&audit).expect("it is there");
        let of = |line: &str| serde_json::from_str::<Record>(line).ok();
        let records = text.lines().filter_map(of);
        records
            .filter_map(|record| record.time.get(..4)?.parse::<i32>().ok())
            .collect::<Vec<_>>()
    };
    let now = years()[0];
    wait_for("a record of after each step", || {
        let years = years();
        years.iter().any(|year| *year > now + 50) && years.last() == Some(&now)
    });
    orb.shutdown(true).expect("it ends");
}

/// A server that a test plays. Returns a connection on which a request has arrived.
fn called(listener: &TcpListener) -> (TcpStream, Vec<u8>) {
    let (mut stream, _) = listener.accept().expect("a caller");
    let mut request = vec![0; 12];
    stream.read_exact(&mut request).expect("a header");
    let size = u32::from_le_bytes([request[8], request[9], request[10], request[11]]);
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body).expect("a body");
    request.extend(body);
    (stream, request)
}

#[test]
fn a_call_neither_ends_early_nor_waits_on_when_the_clock_is_set_meanwhile() {
    let Some(wall) = Wall::new() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("it listens");
    let url = format!("corbaloc:iiop:1.2@{at}/Nobody");
    let call = |timeout: &str| {
        let mut command = wall.command(&["call", &url, "_non_existent", "--timeout", timeout]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    // Forward: a call of ten seconds is still there a day later.
    let process = call("10s");
    let (mut stream, request) = called(&listener);
    wall.set(DAY);
    let mut reply = b"GIOP\x01\x02\x01\x01\x0d\x00\x00\x00".to_vec();
    reply.extend(&request[12..16]);
    reply.extend([0; 9]);
    stream.write_all(&reply).expect("it waits");
    let (status, said) = end_of(process);
    assert_eq!(status, Some(0), "{said}");
    // Back: a call that gets no answer ends by its own time.
    let process = call("500ms");
    let _silent = called(&listener);
    wall.set(-DAY);
    let (status, said) = end_of(process);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("TIMEOUT"), "{said}");
}

#[test]
fn a_pull_that_waits_and_events_that_follow_do_not_notice_a_step() {
    let Some(wall) = Wall::new() else { return };
    let words = ["channel", "--listen", "127.0.0.1:0"];
    let server = Server::start(&mut wall.command(&words));
    let orb = client(PATIENCE);
    let channel = cos_channel(&orb, &server);
    let consumers = channel.for_consumers().expect("an answer").expect("one");
    let pulled = consumers.obtain_pull_supplier().expect("an answer");
    let pulled = pulled.expect("one");
    pulled.connect_pull_consumer(None).expect("connected");
    let supplier = supplier(&channel);
    for (number, ahead) in (0..).zip([DAY, -DAY, 0]) {
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pulled.pull().expect("an event"));
            wall.set(ahead);
            push(&supplier, number).expect("the channel answers");
            let event = waiting.join().expect("it returns");
            assert_eq!(event.extract::<i32>().ok(), Some(number));
        });
    }
    orb.shutdown(true).expect("it ends");
}

#[test]
fn certificates_are_judged_by_the_wall_clock_and_open_connections_go_on() {
    let Some(wall) = Wall::new() else { return };
    let authority = Authority::new(wall.folder.path(), "fleet");
    let own = authority.issue("nav", &["127.0.0.1"]);
    let bridge = authority.issue("bridge", &[]);
    let mut words = wall.command(&["names", "serve", "--listen", "127.0.0.1:0"]);
    let words = words.arg("--tls-require").arg("--tls-authorities");
    let words = words.arg(authority.file()).arg("--tls-certificate");
    let words = words.arg(&own.chain).arg("--tls-key").arg(&own.key);
    let server = Server::start(words);
    let connect = || {
        let options = TlsOptions::default()
            .certificate(&bridge.chain, &bridge.key)
            .authorities(authority.file())
            .require();
        let tls = options.load().expect("sound files");
        let builder = Orb::builder().tls(&tls).round_trip_timeout(PATIENCE);
        builder.build().expect("an ORB")
    };
    let first = connect();
    let open = names(&first, &server);
    bind(&open, "a").expect("the service answers");
    // The certificates of the tests end in 2096.
    wall.set(100 * 366 * DAY);
    let late = connect();
    let raised = bind(&names(&late, &server), "b").expect_err("the certificate has expired");
    assert!(raised.contains("NO_PERMISSION"), "{raised}");
    bind(&open, "c").expect("an open connection goes on");
    wall.set(0);
    let again = connect();
    bind(&names(&again, &server), "d").expect("the certificate is valid again");
    for orb in [first, late, again] {
        orb.shutdown(true).expect("it ends");
    }
}
