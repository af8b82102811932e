//! Fragments that are malformed, stop, or never end, in GIOP 1.1 and 1.2: the standard's response, a counter, and a
//! server that still serves.

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{Server, call, client_of};
use deckwatch_cdr::{DecodeFact, Write};
use deckwatch_giop::{
    ByteOrder, Codec, Format, Frame, Header, Message, MessageKind, Parts, Reply, ReplyStatus,
    RequestHeader, Response, SystemException, Target, Version, write_cancel_request,
};
use deckwatch_orb::Counter;

const MESSAGE_ERROR: u8 = 6;
const FRAGMENT_SIZE: usize = 64;

struct Peer {
    stream: TcpStream,
    octets: Vec<u8>,
}

impl Peer {
    fn of(server: &Server) -> Self {
        Self {
            stream: TcpStream::connect(server.address()).unwrap(),
            octets: Vec::new(),
        }
    }

    fn say(&mut self, octets: &[u8]) {
        let _ = self.stream.write_all(octets); // The server may have closed.
    }

    /// Reads the next message. Returns `None` if the server has closed the connection.
    fn hear(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Frame::Message(_, size) = Frame::parse(&self.octets, usize::MAX).unwrap() {
                return Some(self.octets.drain(..size).collect());
            }
            let mut some = [0; 4096];
            match self.stream.read(&mut some) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.octets.extend_from_slice(&some[..count]),
            }
        }
    }

    /// Whether the server sends MessageError and closes the connection.
    fn hears_complaint(&mut self) -> bool {
        self.hear()
            .is_some_and(|message| message[7] == MESSAGE_ERROR)
            && self.hear().is_none()
    }
}

fn format(version: Version, order: ByteOrder) -> Format {
    Format {
        codec: Codec::DEFAULT.with_version(version),
        order,
        fragment_size: Some(FRAGMENT_SIZE),
        ..Format::default()
    }
}

/// A request for the operation that echoes `octets`.
fn request(key: &[u8], id: u32, format: Format, octets: &[u8]) -> Vec<u8> {
    let header = RequestHeader {
        id,
        response: Response::Outcome,
        target: Target::Key(key),
        operation: "octets",
        contexts: &[],
    };
    let mut message = Vec::new();
    let open = header.begin(&mut message, format).unwrap();
    octets.write(&mut open.writer(&mut message)).unwrap();
    open.finish(&mut message).unwrap();
    message
}

fn parts(message: &[u8]) -> Vec<Vec<u8>> {
    Parts::of(message, FRAGMENT_SIZE)
        .unwrap()
        .map(|part| [part.header(), part.data].concat())
        .collect()
}

fn fragment(version: Version, id: u32, more: bool, data: &[u8]) -> Vec<u8> {
    let id = match version {
        Version::V1_2 => id.to_ne_bytes().to_vec(),
        _ => Vec::new(),
    };
    let header = Header {
        version,
        order: ByteOrder::NATIVE,
        more_fragments: more,
        kind: MessageKind::Fragment,
        size: (id.len() + data.len()) as u32,
    };
    [&header.to_octets()[..], &id, data].concat()
}

fn reply_octets(message: &[u8]) -> (u32, Vec<u8>) {
    let Ok(Message::Reply(Reply { id, mut body, .. })) = Message::parse(message) else {
        panic!("a reply")
    };
    (id, body.read_octet_sequence().unwrap().to_vec())
}

#[test]
fn requests_in_fragments_of_1_1_and_1_2_are_served_as_if_they_had_come_whole() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let key = bench.object_key().unwrap();
    for version in [Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut peer = Peer::of(&server);
            for len in [0, 1, 40, 63, 64, 1000] {
                let octets = vec![len as u8; len];
                let message = request(key, 7, format(version, order), &octets);
                let parts = parts(&message);
                assert!(parts.len() > 1, "the header alone is longer than a part");
                parts.iter().for_each(|part| peer.say(part));
                assert_eq!(reply_octets(&peer.hear().unwrap()), (7, octets));
            }
        }
    }
}

#[test]
fn fragments_that_do_not_belong_together_are_answered_by_a_message_error_and_counted() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let key = bench.object_key().unwrap();
    let (v1, v2) = (Version::V1_1, Version::V1_2);
    let first = |version, id| {
        parts(&request(
            key,
            id,
            format(version, ByteOrder::NATIVE),
            &[1; 200],
        ))[0]
            .clone()
    };
    let other_order = parts(&request(
        key,
        1,
        format(v2, ByteOrder::NATIVE.opposite()),
        &[1; 200],
    ));
    let cases: [(&str, Vec<Vec<u8>>); 9] = [
        ("1.2: of nothing", vec![fragment(v2, 1, false, b"x")]),
        ("1.1: of nothing", vec![fragment(v1, 1, false, b"x")]),
        (
            "1.2: of another",
            vec![first(v2, 1), fragment(v2, 2, true, b"x")],
        ),
        ("1.2: begun twice", vec![first(v2, 1), first(v2, 1)]),
        ("1.1: begun twice", vec![first(v1, 1), first(v1, 2)]),
        (
            "1.1 within 1.2",
            vec![first(v2, 1), fragment(v1, 1, false, b"x")],
        ),
        (
            "1.2 within 1.1",
            vec![first(v1, 1), fragment(v2, 1, false, b"x")],
        ),
        (
            "another byte order",
            vec![first(v2, 1), other_order[1].clone()],
        ),
        ("too many", (1..=9).map(|id| first(v2, id)).collect()),
    ];
    for (name, messages) in cases {
        let before = server.orb.counters().read(Counter::BadFragments);
        let mut peer = Peer::of(&server);
        messages.iter().for_each(|message| peer.say(message));
        assert!(peer.hears_complaint(), "{name}");
        let after = server.orb.counters().read(Counter::BadFragments);
        assert_eq!(after, before + 1, "{name}");
        assert_eq!(call(&bench, "ping"), Ok(()), "{name}");
    }
}

#[test]
fn a_cancelled_train_of_either_version_is_forgotten_and_what_follows_of_it_is_refused() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let key = bench.object_key().unwrap();
    for version in [Version::V1_1, Version::V1_2] {
        let format = format(version, ByteOrder::NATIVE);
        let parts = parts(&request(key, 7, format, &[1; 200]));
        let mut cancel = Vec::new();
        write_cancel_request(&mut cancel, format, 7).unwrap();
        let mut peer = Peer::of(&server);
        peer.say(&parts[0]);
        peer.say(&cancel);
        // The request id can be used again, and in GIOP 1.1 the connection too.
        self::parts(&request(key, 7, format, b"again"))
            .iter()
            .for_each(|part| peer.say(part));
        assert_eq!(reply_octets(&peer.hear().unwrap()), (7, b"again".to_vec()));
        peer.say(&parts[1]);
        assert!(peer.hears_complaint(), "{version}");
    }
}

#[test]
fn fragments_without_octets_are_passed_over_however_many() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let key = bench.object_key().unwrap();
    for version in [Version::V1_1, Version::V1_2] {
        let parts = parts(&request(
            key,
            7,
            format(version, ByteOrder::NATIVE),
            &[5; 100],
        ));
        let mut peer = Peer::of(&server);
        for part in &parts {
            if part[7] == MessageKind::Fragment as u8 {
                peer.say(&fragment(version, 7, true, b"").repeat(10_000));
            }
            peer.say(part);
        }
        assert_eq!(reply_octets(&peer.hear().unwrap()), (7, vec![5; 100]));
    }
}

#[test]
fn a_value_that_is_broken_across_two_fragments_of_1_1_is_marshal() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let key = bench.object_key().unwrap();
    let whole = Format {
        fragment_size: None,
        ..format(Version::V1_1, ByteOrder::NATIVE)
    };
    let message = request(key, 7, whole, &[]);
    // The length of the octet sequence is the last value; two of its four octets go into the next fragment.
    let cut = message.len() - 2;
    let mut first = message[..cut].to_vec();
    first[6] |= 2;
    first[8..12].copy_from_slice(&(cut as u32 - 12).to_ne_bytes());
    let mut peer = Peer::of(&server);
    peer.say(&first);
    peer.say(&fragment(Version::V1_1, 7, false, &message[cut..]));
    let answer = peer.hear().unwrap();
    let Ok(Message::Reply(mut reply)) = Message::parse(&answer) else {
        panic!("a reply")
    };
    assert_eq!(reply.status, ReplyStatus::SystemException);
    let raised = <SystemException as deckwatch_cdr::Parse>::parse(&mut reply.body).unwrap();
    assert_eq!(raised, SystemException::from_fact(DecodeFact::ValueDivided));
    peer.say(&request(key, 8, whole, b"on it goes"));
    assert_eq!(
        reply_octets(&peer.hear().unwrap()),
        (8, b"on it goes".to_vec())
    );
}

#[test]
fn a_train_that_never_ends_is_given_up_though_whole_requests_come_between_its_fragments() {
    let server = Server::shaped(|builder| builder.arrival_timeout(Duration::from_millis(300)));
    let (_orb, bench) = client_of(&server);
    let key = bench.object_key().unwrap();
    let format = format(Version::V1_2, ByteOrder::NATIVE);
    let parts = parts(&request(key, 7, format, &[5; 100]));
    let mut peer = Peer::of(&server);
    peer.say(&parts[0]);
    let mut served = 0_u64;
    loop {
        peer.say(&fragment(Version::V1_2, 7, true, b""));
        peer.say(&request(
            key,
            8,
            Format {
                fragment_size: None,
                ..format
            },
            b"between",
        ));
        match peer.hear() {
            Some(reply) if reply[7] == MessageKind::Reply as u8 => served += 1,
            _ => break,
        }
    }
    assert_ne!(served, 0);
    assert_eq!(server.orb.counters().read(Counter::ArrivalsTimedOut), 1);
    assert_eq!(call(&bench, "ping"), Ok(()));
}
