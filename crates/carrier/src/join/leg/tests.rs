//! Legs of hand-made packets.

use std::borrow::Cow;

use deckwatch_giop::{ByteOrder, Format, ReplyHeader, ReplyStatus};
use etherparse::PacketBuilder;

use super::*;
use crate::giop_messages::tests::{body, request_of};
use crate::part::playing::{CORBA, stream};
use crate::plan::{CaptureAt, JoinDestination};

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 4_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 5_000);

/// Returns the plan of a stream of two-way calls from RTS to SONAR, with a capture of each host.
fn plan() -> JoinPlan {
    let capture = |host: &str| CaptureAt {
        hosts: vec![host.to_owned()],
        capture: host.into(),
    };
    JoinPlan {
        far: std::collections::BTreeMap::new(),
        stream: stream(CORBA, 300, 5),
        from: "RTS".to_owned(),
        supplier_records: "supplier".into(),
        channel_endpoint: None,
        destinations: vec![JoinDestination {
            index: 0,
            host: "SONAR".to_owned(),
            listening: Some(SERVER.into()),
            records: "consumer".into(),
        }],
        captures: vec![capture("RTS"), capture("SONAR")],
    }
}

/// One host's capture of one connection, packet by packet.
struct Wire<'p> {
    legs: Legs<'p>,
    now_ns: i64,
    /// The next sequence number from the client, and from the server.
    at: [u32; 2],
}

impl<'p> Wire<'p> {
    fn new(plan: &'p JoinPlan) -> Self {
        let mut legs = Legs::of(plan, &body(), 5);
        for capture in [0, 1] {
            legs.set_clock(capture, Eras::default());
        }
        Self {
            legs,
            now_ns: 0,
            at: [70, 900],
        }
    }

    /// Passes one packet, at one nanosecond after the packet before.
    fn pass(&mut self, capture: usize, from_client: bool, syn: bool, octets: &[u8]) {
        let (from, to) = if from_client {
            (CLIENT, SERVER)
        } else {
            (SERVER, CLIENT)
        };
        let at = &mut self.at[usize::from(!from_client)];
        let tcp = PacketBuilder::ethernet2([0; 6], [0; 6])
            .ipv4(from.0, to.0, 64)
            .tcp(from.1, to.1, *at, 100);
        let mut packet = Vec::new();
        if syn {
            tcp.syn().write(&mut packet, octets).expect("written");
        } else {
            tcp.write(&mut packet, octets).expect("written");
        }
        *at += u32::from(syn) + u32::try_from(octets.len()).expect("small");
        self.now_ns += 1;
        let leaves = from_client == (capture == 0);
        self.legs.take(
            capture,
            &Captured {
                realtime_ns: self.now_ns,
                direction: Some(if leaves {
                    Direction::Leaving
                } else {
                    Direction::Arriving
                }),
                octets: Cow::Owned(packet),
            },
        );
    }

    /// Opens the connection, or opens it again from the same port.
    fn connect(&mut self, capture: usize) {
        self.at = [self.at[0] + 100_000, self.at[1] + 100_000];
        self.pass(capture, true, true, b"");
        self.pass(capture, false, true, b"");
    }

    /// Returns the stamps of messages and of replies at a host.
    fn stamps(mut self, host: &str, direction: Direction) -> [Vec<Option<i64>>; 2] {
        self.legs.finish();
        let stamps = self.legs.stamps(host, direction, SERVER.into());
        let stamps = stamps.expect("it has a capture");
        [stamps.messages, stamps.replies].map(|stamps| {
            let known = |&stamp: &i64| (stamp != NO_STAMP).then_some(stamp);
            stamps.iter().map(known).collect()
        })
    }
}

fn call(sequence: u64, size_max: usize) -> Vec<u8> {
    request_of(
        "deliver",
        Response::Outcome,
        sequence,
        ByteOrder::NATIVE,
        size_max,
    )
}

/// Encodes the reply to the call with this sequence number.
fn reply(sequence: u64) -> Vec<u8> {
    let mut message = Vec::new();
    let header = ReplyHeader {
        id: 7 + u32::try_from(sequence).expect("small"),
        status: ReplyStatus::NoException,
        contexts: &[],
    };
    let open = header.begin(&mut message, Format::default()).expect("room");
    open.finish(&mut message).expect("a size");
    message
}

#[test]
fn the_first_stamp_of_a_sequence_number_counts() {
    let mut stamps = Stamps::new(2);
    for (sequence, stamp_ns) in [(Some(1), 5), (Some(1), 9), (None, 3), (Some(2), 4)] {
        stamps.note(sequence, stamp_ns);
    }
    assert_eq!(stamps.0, [NO_STAMP, 5]);
    // A supplier that sends a message again, in a call with another id.
    let plan = plan();
    let mut wire = Wire::new(&plan);
    wire.connect(0);
    wire.pass(0, true, false, &call(1, 4096));
    wire.pass(0, true, false, &call(1, 4096));
    let [messages, _] = wire.stamps("RTS", Direction::Leaving);
    assert_eq!(messages, [None, Some(3), None, None, None]);
}

#[test]
fn a_train_of_fragments_that_a_break_ends_leaves_nothing_for_the_next_connection() {
    let plan = plan();
    let mut wire = Wire::new(&plan);
    wire.connect(0);
    // The connection breaks after the first packet of a call in several fragments. The client sends the call again.
    let train = call(2, 64);
    wire.pass(0, true, false, &train[..100]);
    wire.connect(0);
    wire.pass(0, true, false, &call(2, 4096));
    wire.pass(0, true, false, &train);
    // The connection breaks between two whole fragments.
    let train = call(3, 64);
    let Ok(deckwatch_giop::Frame::Message(_, first)) = deckwatch_giop::Frame::parse(&train, 4096)
    else {
        panic!("a first part")
    };
    wire.pass(0, true, false, &train[..first]);
    wire.connect(0);
    wire.pass(0, true, false, &call(3, 64));
    let [messages, _] = wire.stamps("RTS", Direction::Leaving);
    assert_eq!(messages, [None, None, Some(6), Some(11), None]);
}

#[test]
fn a_reply_is_stamped_where_it_leaves_and_where_it_arrives_and_finds_its_call_by_the_request_id() {
    let plan = plan();
    for (capture, host, direction) in [
        (0, "RTS", Direction::Leaving),
        (1, "SONAR", Direction::Arriving),
    ] {
        let mut wire = Wire::new(&plan);
        wire.connect(capture);
        wire.pass(capture, true, false, &call(0, 4096));
        wire.pass(capture, true, false, &call(1, 64));
        // The replies come in another order; the second is cut in two packets. The last belongs to no call.
        wire.pass(capture, false, false, &reply(1));
        let second = reply(0);
        wire.pass(capture, false, false, &second[..13]);
        wire.pass(capture, false, false, &second[13..]);
        wire.pass(capture, false, false, &reply(3));
        let [messages, replies] = wire.stamps(host, direction);
        assert_eq!(messages, [Some(3), Some(4), None, None, None]);
        assert_eq!(replies, [Some(7), Some(5), None, None, None]);
    }
}

#[test]
fn a_reply_of_a_connection_before_is_not_that_of_a_call_with_the_same_id() {
    let plan = plan();
    let mut wire = Wire::new(&plan);
    wire.connect(0);
    wire.pass(0, true, false, &call(0, 4096));
    wire.connect(0);
    wire.pass(0, false, false, &reply(0));
    let [messages, replies] = wire.stamps("RTS", Direction::Leaving);
    assert_eq!((messages[0], replies[0]), (Some(3), None));
}
