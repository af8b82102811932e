//! `deckwatch events` on a real-time channel of its own process.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use deckwatch_cdr::Any;
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_orb::Orb;
use deckwatch_probe::events::channel::open;
use deckwatch_probe::events::recording::{Head, Recorder};
use deckwatch_probe::events::subscription::{Next, Subscription};
use deckwatch_probe::events::{Event, Moment, Received, selection::Selection};

use super::hand::{Hand, PATIENCE};
use super::{Events, nav, number};
use crate::watched::Folder;

/// `deckwatch channel --real-time`, killed when this is dropped.
struct Served {
    process: Child,
    ior: String,
}

impl Served {
    fn new(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(["channel", "--real-time"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut ior = String::new();
        let mut told = BufReader::new(process.stdout.take().expect("a pipe"));
        told.read_line(&mut ior).expect("a line");
        let ior = ior.trim().to_owned();
        assert!(ior.starts_with("IOR:"), "{ior}");
        Self { process, ior }
    }

    /// A channel with this table of access.
    fn guarded(folder: &Folder, table: &str) -> Self {
        let file = folder.path().join("access.toml");
        std::fs::write(&file, table).expect("written");
        Self::new(&["--access", file.to_str().expect("UTF-8")])
    }

    /// Connects a consumer of every event. Its ORB is returned to be kept.
    fn consumer(&self) -> (Orb, Subscription) {
        let orb = Orb::builder().build().expect("an ORB");
        let object = orb.string_to_object(&self.ior).expect("an IOR");
        let object = object.expect("not nil");
        let consumer = Subscription::connect(&object, None, Selection::default(), None);
        (orb, consumer.expect("connected"))
    }

    /// Pushes events, which the channel has taken when this returns.
    fn push(&self, events: &[Event]) {
        let orb = Orb::builder().build().expect("an ORB");
        let object = orb.string_to_object(&self.ior).expect("an IOR");
        let channel = open(&object.expect("not nil")).expect("a channel");
        let mut sink = channel.supply(&[(0, 0)]).expect("connected");
        for event in events {
            sink.push(event).expect("sent");
        }
        sink.flush().expect("taken");
    }

    fn events(&self, arguments: &[&str]) -> Events {
        Events::at(&self.ior, arguments)
    }

    /// Waits until the channel has so many consumers.
    fn wait_for_consumers(&self, count: u64) {
        loop {
            let list = self.events(&["list", "--interval", "1ms", "--json"]);
            let (status, output, errors) = list.end();
            assert_eq!((status, &*errors), (Some(0), ""));
            let rows: serde_json::Value = serde_json::from_str(&output).expect("JSON");
            assert_eq!(rows[0]["name"], "IOR", "{output}");
            assert_eq!(rows[0]["kind"], "real-time event channel");
            if rows[0]["consumers"] == count {
                return;
            }
        }
    }

    /// Ends the channel. Returns what it has printed on standard error.
    fn end(mut self) -> String {
        let id = i32::try_from(self.process.id()).expect("a process id");
        let id = rustix::process::Pid::from_raw(id).expect("a process id");
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
        let mut errors = String::new();
        let mut stderr = self.process.stderr.take().expect("a pipe");
        std::io::Read::read_to_string(&mut stderr, &mut errors).expect("UTF-8");
        errors
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails if it has ended, as it should.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn next(consumer: &mut Subscription) -> Event {
    match consumer.next(PATIENCE).expect("a channel") {
        Next::Event(received) => received.event,
        other => panic!("an event, not {other:?}"),
    }
}

fn head(event: &Event) -> (i32, i32) {
    let header = event.header.expect("a header");
    (header.r#type, header.source)
}

fn of_type(number: i32, source: i32, payload: &[u8], data: Any) -> Event {
    Event {
        header: Some(EventHeader {
            r#type: number,
            source,
            ttl: 1,
            creation_time: 140_000_000_000_000_000,
            ..EventHeader::default()
        }),
        payload: payload.to_vec(),
        data,
    }
}

/// Writes a recording of these events.
fn record(file: &Path, events: &[Event]) {
    let mut recorder = Recorder::create(file, &Head::default(), 0).expect("a new file");
    for event in events {
        let event = event.clone();
        let at = Moment::now();
        recorder.add(&Received { event, at }).expect("written");
    }
}

#[test]
fn a_supplier_publishes_what_it_sends_so_that_a_table_of_types_allows_it() {
    let folder = Folder::new("events-types");
    let table = "[[allow]]\nwho = [\"anyone\"]\nmay = [\"supply\"]\ntypes = [\"16\"]\n";
    let served = Served::guarded(&folder, table);
    let publish = |number: &str| {
        let arguments = ["publish", "--type", "long", "--event-type", number, "1"];
        served.events(&arguments).end()
    };
    let (status, _, errors) = publish("16");
    assert_eq!((status, &*errors), (Some(0), "Sent 1 event.\n"));
    let (status, _, errors) = publish("17");
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("may not supply (type 17, source 1)"),
        "{errors}"
    );
    // A recording is published by the headers in it.
    let file = folder.path().join("nav.events");
    record(
        &file,
        &[
            of_type(16, 3, &[], number(1)),
            of_type(17, 3, &[], number(2)),
        ],
    );
    let file = file.to_str().expect("UTF-8");
    let (status, _, errors) = served.events(&["replay", file]).end();
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("may not supply (type 17, source 3)"),
        "{errors}"
    );
    let (status, _, errors) = served
        .events(&["replay", file, "--type", "16", "--speed", "0"])
        .end();
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.ends_with("\nSent 1 event.\n"), "{errors}");
    // Who is refused before a servant is reached learns who and which rule, too, and is refused once.
    let (status, _, errors) = served.events(&["echo", "--for", "1ms"]).end();
    assert_eq!(status, Some(2));
    assert!(
        errors.contains("127.0.0.1:") && errors.contains("may not consume"),
        "{errors}"
    );
    assert!(errors.contains("add a rule for it to"), "{errors}");
    let told = served.end();
    assert_eq!(told.matches(" may not consume ").count(), 1, "{told}");
    assert!(!told.contains("may not observe"), "{told}");
}

#[test]
fn a_consumer_that_may_only_consume_is_refused_nothing_and_knows_its_own_losses() {
    let folder = Folder::new("events-consume");
    let table = "[[allow]]\nwho = [\"anyone\"]\nmay = [\"consume\"]\ntypes = [\"16\"]\n";
    let served = Served::guarded(&folder, table);
    let arguments = ["hz", "--type", "16", "--json", "--for", "1ms"];
    let (status, lines, errors) = served.events(&arguments).end();
    assert_eq!(status, Some(0), "{errors}");
    assert!(lines.contains("\"dropped_by_channel\":0"), "{lines}");
    let told = served.end();
    assert!(!told.contains(" may not "), "{told}");
}

#[test]
fn a_type_that_is_reserved_is_sent_with_a_warning() {
    let served = Served::new(&[]);
    for (number, warning) in [
        (
            "9",
            "Type 9 is reserved for filters, and a consumer cannot ask for it; 16 and above are free.\n",
        ),
        (
            "0",
            "Type 0 is any type: the events reach every consumer of their source.\n",
        ),
        ("16", ""),
    ] {
        let arguments = ["publish", "--type", "long", "--event-type", number, "1"];
        let (status, _, errors) = served.events(&arguments).end();
        assert_eq!(
            (status, errors),
            (Some(0), format!("{warning}Sent 1 event.\n"))
        );
    }
}

#[test]
fn the_lines_of_echo_are_published_with_their_headers_and_payloads() {
    let served = Served::new(&[]);
    let sent = [
        of_type(17, 3, &[], number(7)),
        of_type(18, 4, &[1, 0, 255], nav()),
        of_type(19, 5, &[9, 8], Any::empty()),
    ];
    let echo = served.events(&["echo", "--json", "--count", "3"]);
    served.wait_for_consumers(1);
    served.push(&sent);
    let (status, lines, errors) = echo.end();
    assert_eq!((status, &*errors), (Some(0), ""));
    let (_orb, mut consumer) = served.consumer();
    let mut publish = served.events(&["publish"]);
    publish.say(&lines);
    let (status, _, errors) = publish.end();
    assert_eq!((status, &*errors), (Some(0), "Sent 3 events.\n"), "{lines}");
    for event in &sent {
        let found = next(&mut consumer);
        assert_eq!(found.header, event.header);
        assert_eq!(found.payload, event.payload);
        assert_eq!(found.data.to_dynamic(), event.data.to_dynamic());
        assert!(found.data.type_code().equivalent(event.data.type_code()));
    }
    // A COS channel takes the values, and what it does not take is counted.
    let hand = Hand::new();
    let mut publish = Events::start(&hand, &["publish"]);
    publish.say(&lines);
    let (status, _, errors) = publish.end();
    let told = "Sent 3 events.\n2 events were sent without their payload: a COS channel takes the value alone.\n";
    assert_eq!((status, &*errors), (Some(0), told));
    assert_eq!(hand.pushed.try_iter().count(), 3);
}

#[test]
fn a_recording_without_headers_gets_one_and_one_with_headers_says_what_a_cos_channel_drops() {
    let folder = Folder::new("events-headers");
    let [cos, real_time] = ["cos.events", "rt.events"].map(|name| folder.path().join(name));
    record(&cos, &[Event::of(number(1)), Event::of(number(2))]);
    record(
        &real_time,
        &[
            of_type(17, 3, &[5], number(3)),
            of_type(18, 3, &[], number(4)),
        ],
    );
    let [cos, real_time] = [&cos, &real_time].map(|file| file.to_str().expect("UTF-8"));
    let served = Served::new(&[]);
    let (_orb, mut consumer) = served.consumer();
    for (more, header) in [
        (&[][..], (16, 1)),
        (&["--event-type", "21", "--event-source", "8"], (21, 8)),
    ] {
        let arguments = [&["replay", cos, "--speed", "0"][..], more].concat();
        let (status, _, errors) = served.events(&arguments).end();
        let told = format!(
            "2 events of the recording have no header: they are sent with type {} and source {} (`--event-type`, \
             `--event-source`).\n",
            header.0, header.1
        );
        assert_eq!(status, Some(0), "{errors}");
        assert!(errors.contains(&told), "{errors}");
        for expected in [1_u32, 2] {
            let event = next(&mut consumer);
            assert_eq!((head(&event), event.data.extract()), (header, Ok(expected)));
            assert_eq!(event.header.expect("a header").ttl, 1);
        }
    }
    let hand = Hand::new();
    let replay = Events::start(&hand, &["replay", real_time, "--speed", "0"]);
    let (status, _, errors) = replay.end();
    assert_eq!(status, Some(0), "{errors}");
    let told = "A COS channel takes the value alone: 2 events of the recording lose their header, and 1 of them their payload.\n";
    assert!(errors.contains(told), "{errors}");
}

#[test]
fn an_event_without_a_stamp_has_no_age() {
    let served = Served::new(&[]);
    let delay = served.events(&["delay", "--stamp", "measured_ns", "--count", "1"]);
    served.wait_for_consumers(1);
    served.push(&[of_type(16, 1, &[], nav())]);
    let (status, output, errors) = delay.end();
    assert_eq!(status, Some(2), "{output}");
    let told = "1 events have no stamp, the last because its stamp is 0; `--stamp` names another member.\n";
    assert!(errors.contains(told), "{errors}");
}
