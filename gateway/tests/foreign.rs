//! Programs of zenoh that know nothing of gateways, and programs that pretend to be one.

use std::sync::mpsc::{Receiver, channel};

use deckwatch_cdr::{Any, ByteOrder, Write as _, Writer};
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_gateway::{Gateway, InCounts};
use tempfile::{TempDir, tempdir};
use zenoh::Wait as _;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::{Locality, Sample};

use crate::support::{Channel, PATIENCE, event, free_endpoint, gateway, only, session, until};

const BOTH: &str = "[[map]]\ndirection = \"both\"\ntype = \"16..=99\"\nkey = \"ship/{type}/{source}\"\n\
                    priority = \"interactive_high\"\ncongestion = \"block\"\nexpress = true\n";

/// A channel with a gateway both ways, and a program of zenoh that the gateway hears.
struct World {
    near: Channel,
    gateway: Gateway,
    program: zenoh::Session,
    _folder: TempDir,
}

impl World {
    fn new(maps: &str) -> Self {
        let folder = tempdir().expect("a folder");
        let near = Channel::start(folder.path(), "near");
        let endpoint = free_endpoint();
        let gateway = gateway(&near, &format!("listen = [{endpoint:?}]"), maps);
        let program = session("peer", &[], &[&endpoint]);
        let publisher = program
            .declare_publisher("ship/17/-4")
            .wait()
            .expect("declared");
        until("the gateway listens", || {
            publisher.matching_status().wait().expect("open").matching()
        });
        drop(publisher);
        Self {
            near,
            gateway,
            program,
            _folder: folder,
        }
    }

    /// What the program hears.
    fn heard(&self) -> Receiver<Sample> {
        let (told, heard) = channel();
        let subscriber = self.program.declare_subscriber("ship/**");
        let subscriber = subscriber
            .allowed_origin(Locality::Remote)
            .callback(move |sample| {
                // The test may have all that it waits for.
                let _ = told.send(sample);
            });
        subscriber.background().wait().expect("declared");
        until("the program is heard of", || {
            self.near.push(event(98, 1, 1, b"hello"));
            only(&self.gateway.counts())
                .out
                .expect("both ways")
                .published
                > 0
        });
        self.near.push(event(98, 1, 1, b"last"));
        while heard
            .recv_timeout(PATIENCE)
            .expect("a sample")
            .payload()
            .to_bytes()
            != &b"last"[..]
        {}
        while self.near.next().data.payload != b"last" {}
        heard
    }

    fn put(&self, key: &str, payload: &[u8], attachment: Option<Vec<u8>>) {
        let put = self.program.put(key, payload);
        put.attachment(attachment).wait().expect("sent");
    }

    fn came(&self) -> InCounts {
        only(&self.gateway.counts()).r#in.expect("it goes in")
    }
}

/// An attachment as the book describes it.
fn attachment(gateway: u64, number: u64, event_type: i32, source: i32) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(ByteOrder::Big);
    w.write_octets(&[0, 1]).expect("room");
    w.write_u32(0x4457_4757).expect("room");
    gateway.write(&mut w).expect("room");
    number.write(&mut w).expect("room");
    let header = EventHeader {
        r#type: event_type,
        source,
        ttl: 3,
        creation_time: 5,
        ..EventHeader::default()
    };
    header.write(&mut w).expect("room");
    Any::from_value(&7_u32)
        .expect("a value")
        .write(&mut w)
        .expect("room");
    octets
}

#[test]
fn a_plain_publication_becomes_an_event_and_does_not_come_back() {
    let world = World::new(BOTH);
    let heard = world.heard();
    world.put("ship/17/-4", &[7, 8, 9], None);
    let came = world.near.next();
    assert_eq!(
        (came.header.r#type, came.header.source, came.header.ttl),
        (17, -4, 1)
    );
    assert_eq!(came.data.payload, [7, 8, 9]);
    assert!(came.data.any_value.is_empty());
    // 2020 in units of 100 ns since 1582.
    assert!(came.header.creation_time > 137_971_296_000_000_000);
    // An event of the channel comes after all that might have come back.
    world.near.push(event(30, 1, 1, b"own"));
    let next = heard.recv_timeout(PATIENCE).expect("a sample");
    assert_eq!(next.key_expr().as_str(), "ship/30/1");
    let counts = world.gateway.stop();
    let (out, r#in) = (only(&counts).out, only(&counts).r#in);
    assert_eq!(out.expect("both ways").returned, 1);
    assert_eq!(r#in.expect("both ways").pushed, 1);
}

#[test]
fn a_program_of_zenoh_gets_the_payload_with_the_settings_of_the_mapping() {
    let world = World::new(BOTH);
    let heard = world.heard();
    world.near.push(event(17, 3, 1, &[1, 0, 2]));
    let sample = heard.recv_timeout(PATIENCE).expect("a sample");
    assert_eq!(sample.key_expr().as_str(), "ship/17/3");
    assert_eq!(sample.payload().to_bytes(), &[1, 0, 2][..]);
    assert_eq!(sample.priority(), Priority::InteractiveHigh);
    assert_eq!(sample.congestion_control(), CongestionControl::Block);
    assert!(sample.express());
}

#[test]
fn an_attachment_restores_the_event_and_gaps_are_counted() {
    let world = World::new(BOTH);
    for (number, lost) in [(4, 0), (5, 0), (8, 2)] {
        world.put(
            "ship/17/3",
            &[number as u8],
            Some(attachment(77, number, 17, 3)),
        );
        let came = world.near.next();
        let header = came.header;
        assert_eq!(
            (
                header.r#type,
                header.source,
                header.ttl,
                header.creation_time
            ),
            (17, 3, 3, 5)
        );
        assert_eq!(came.data.payload, [number as u8]);
        assert_eq!(came.data.any_value.extract::<u32>(), Ok(7));
        assert_eq!(world.came().lost, lost);
    }
}

#[test]
fn what_must_not_come_in_is_counted_and_does_not() {
    let world = World::new(BOTH);
    let own = u64::from_str_radix(&world.gateway.counts().gateway, 16).expect("an identity");
    let mut cut = attachment(77, 0, 17, 3);
    cut.pop();
    world.put("ship/17/3", b"malformed", Some(cut));
    world.put("ship/17/3", b"of another program", Some(b"stamp".to_vec()));
    world.put("ship/17/3", b"another type", Some(attachment(77, 0, 18, 3)));
    world.put(
        "ship/17/3",
        b"another source",
        Some(attachment(77, 0, 17, 4)),
    );
    world.put("ship/17/3", b"own", Some(attachment(own, 0, 17, 3)));
    world.put("ship/100/3", b"another mapping's", None);
    world.put("ship/x/3", b"no number", None);
    world.program.delete("ship/17/3").wait().expect("sent");
    world.put("ship/17/3", b"last", None);
    assert_eq!(world.near.next().data.payload, b"last");
    let came = world.gateway.stop();
    let expected = InCounts {
        received: 9,
        pushed: 1,
        own: 1,
        malformed: 4,
        unmapped: 3,
        ..InCounts::default()
    };
    assert_eq!(only(&came).r#in, Some(expected));
}

#[test]
fn one_key_stands_for_a_type_and_a_source_that_the_mapping_names() {
    let map = "[[map]]\ndirection = \"both\"\ntype = 17\nsource = 3\nkey = \"ship/17/-4\"\n";
    let world = World::new(map);
    world.put("ship/17/-4", b"plain", None);
    let came = world.near.next();
    assert_eq!((came.header.r#type, came.header.source), (17, 3));
    world.put(
        "ship/17/-4",
        b"with another source",
        Some(attachment(77, 0, 17, 4)),
    );
    world.put("ship/17/-4", b"fitting", Some(attachment(77, 0, 17, 3)));
    assert_eq!(world.near.next().data.payload, b"fitting");
    assert_eq!(world.came().malformed, 1);
}

#[test]
fn every_event_that_was_pushed_before_the_gateway_stops_is_in_the_channel() {
    const COUNT: u64 = 500;
    let world = World::new(BOTH);
    for _ in 0..COUNT {
        let put = world.program.put("ship/17/3", b"one of many");
        let put = put.congestion_control(CongestionControl::Block);
        put.wait().expect("sent");
    }
    until("the gateway has them", || world.came().received == COUNT);
    let came = only(&world.gateway.stop()).r#in.expect("it goes in");
    assert_eq!(came.pushed, COUNT, "{came:?}");
    // The pushes are one-way: the gateway flushes them before it disconnects.
    assert_eq!(world.near.served.counts().received, COUNT);
}
