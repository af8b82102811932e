//! A server dies at each stage of a call: the exception, its minor code, and its completion status.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::support::fake::{fake_listener, fake_server, read_kind, read_request, reply};
use crate::support::{Server, call, call_octets, client_of};
use deckwatch_orb::limits::STALE_CHECK_AFTER;
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Orb, Policy, SetOverrideType, SyncScope, SystemException,
    SystemExceptionKind as Kind, own_minor,
};

/// More than the buffers of both sockets can hold.
const LARGE: usize = 15 << 20;

type Verdict = (Kind, u32, Completion);

const LOST: Verdict = (
    Kind::CommFailure,
    own_minor::CONNECTION_LOST,
    Completion::Maybe,
);

fn verdict(raised: SystemException) -> Verdict {
    (raised.kind, raised.minor, raised.completed)
}

/// The exception of a call whose server does this with its connection.
fn dying(serve: impl FnOnce(TcpStream) + Send + 'static) -> Verdict {
    let (_orb, reference) = fake_server(serve);
    verdict(call(&reference, "ping").unwrap_err())
}

fn reference_to(orb: &Orb, address: std::net::SocketAddr) -> ObjectRef {
    let url = format!("corbaloc:iiop:1.2@{address}/Fake");
    orb.string_to_object(&url).unwrap().unwrap()
}

#[test]
fn before_there_is_a_connection_nothing_was_done() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let orb = Orb::builder().build().unwrap();
    let raised = call(&reference_to(&orb, address), "ping").unwrap_err();
    let refused = own_minor::CONNECT_REFUSED;
    assert_eq!(verdict(raised), (Kind::Transient, refused, Completion::No));
}

#[test]
fn an_end_after_the_request_has_gone_may_have_been_served() {
    // First an orderly close, after the request is read. Then a close with unread data, for which the kernel resets the
    // connection.
    assert_eq!(dying(|mut stream| drop(read_request(&mut stream))), LOST);
    let reset = dying(|mut stream| {
        let mut some = [0; 4];
        stream.read_exact(&mut some).unwrap();
    });
    assert_eq!(reset, LOST);
}

#[test]
fn an_end_within_the_request_says_that_nothing_was_done() {
    let (_orb, reference) = fake_server(|mut stream| {
        let mut some = vec![0; 1 << 16];
        stream.read_exact(&mut some).unwrap();
    });
    let raised = call_octets(&reference, &vec![0; LARGE]).unwrap_err();
    let failed = own_minor::SEND_FAILED;
    assert_eq!(verdict(raised), (Kind::CommFailure, failed, Completion::No));
}

#[test]
fn an_end_within_the_replys_header_or_body_may_have_been_served() {
    for len in [1, 6, 11, 12, 13, 23] {
        let died = dying(move |mut stream| {
            let request = read_request(&mut stream);
            let whole = [b"GIOP\x01\x02\x01\x01\x0c\0\0\0", &request[..4], &[0; 8]].concat();
            stream.write_all(&whole[..len]).unwrap();
        });
        assert_eq!(died, LOST, "after {len} octets");
    }
}

#[test]
fn a_farewell_instead_of_a_reply_says_that_nothing_was_done() {
    let closed = dying(|mut stream| {
        read_request(&mut stream);
        stream.write_all(b"GIOP\x01\x02\x01\x05\0\0\0\0").unwrap();
    });
    let expected = own_minor::CONNECTION_CLOSED;
    assert_eq!(closed, (Kind::CommFailure, expected, Completion::No));
}

#[test]
fn a_complaint_or_nonsense_instead_of_a_reply_is_told_apart() {
    let answered = |octets: &'static [u8]| {
        let (_, minor, _) = dying(move |mut stream| {
            read_request(&mut stream);
            stream.write_all(octets).unwrap();
        });
        minor
    };
    assert_eq!(
        answered(b"GIOP\x01\x02\x01\x06\0\0\0\0"),
        own_minor::MESSAGE_REFUSED
    );
    assert_eq!(
        answered(b"HTTP/1.1 200 OK\r\n\r\n"),
        own_minor::REPLY_MALFORMED
    );
}

fn rest() {
    let rested = Instant::now();
    while rested.elapsed() <= STALE_CHECK_AFTER {
        std::thread::yield_now();
    }
}

/// A server that replies to one request on each of two connections, then sends these octets and closes.
fn ending(farewell: &'static [u8]) -> (Orb, ObjectRef, std::sync::mpsc::Receiver<()>) {
    let (ended, ends) = channel();
    let (orb, reference) = fake_listener("1.2", move |listener| {
        for _ in 0..2 {
            let mut stream = listener.accept().unwrap().0;
            let request = read_request(&mut stream);
            reply(&mut stream, &request, 0, &[]);
            stream.write_all(farewell).unwrap();
            drop(stream);
            let _ = ended.send(()); // The receiver may be gone.
        }
    });
    (orb, reference, ends)
}

#[test]
fn an_end_between_two_calls_costs_the_second_nothing() {
    for farewell in [&b"GIOP\x01\x02\x01\x05\0\0\0\0"[..], b""] {
        let (orb, reference, ends) = ending(farewell);
        assert_eq!(call(&reference, "ping"), Ok(()));
        ends.recv().unwrap();
        rest();
        assert_eq!(call(&reference, "ping"), Ok(()));
        assert_eq!(orb.counters().read(Counter::ConnectionsMade), 2);
    }
}

#[test]
fn a_farewell_that_crosses_the_next_request_costs_it_nothing_either() {
    // The connection is not idle long enough for a check. The client reads CloseConnection in place of the reply, or
    // finds the connection closed.
    let (orb, reference, ends) = ending(b"GIOP\x01\x02\x01\x05\0\0\0\0");
    assert_eq!(call(&reference, "ping"), Ok(()));
    ends.recv().unwrap();
    assert_eq!(call(&reference, "ping"), Ok(()));
    assert_eq!(orb.counters().read(Counter::ConnectionsMade), 2);
}

#[test]
fn a_server_that_has_died_between_two_calls_is_transient() {
    let (ended, ends) = channel();
    let (_orb, reference) = fake_listener("1.2", move |listener| {
        let mut stream = listener.accept().unwrap().0;
        drop(listener);
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 0, &[]);
        drop(stream);
        ended.send(()).unwrap();
    });
    assert_eq!(call(&reference, "ping"), Ok(()));
    ends.recv().unwrap();
    rest();
    let raised = call(&reference, "ping").unwrap_err();
    let refused = own_minor::CONNECT_REFUSED;
    assert_eq!(verdict(raised), (Kind::Transient, refused, Completion::No));
}

#[test]
fn the_next_address_is_tried_where_the_first_cannot_be_reached() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "corbaloc:iiop:1.2@{},iiop:1.2@{}/Fake",
        gone.local_addr().unwrap(),
        listener.local_addr().unwrap()
    );
    drop(gone);
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 0, &[]);
    });
    let orb = Orb::builder().build().unwrap();
    let reference = orb.string_to_object(&url).unwrap().unwrap();
    assert_eq!(call(&reference, "ping"), Ok(()));
}

#[test]
fn each_stage_that_takes_too_long_has_its_own_minor_code() {
    let limit = Some(Duration::from_millis(60));
    let (hold, held) = channel::<()>();
    let (_orb, reference) = fake_server(move |stream| {
        let _ = held.recv(); // Until the test drops its end.
        drop(stream);
    });
    let hurried = reference.with_round_trip_timeout(limit);
    // The peer does not read, and the request is larger than the buffers.
    let raised = call_octets(&hurried, &vec![0; LARGE]).unwrap_err();
    let sending = own_minor::TIMED_OUT_SENDING;
    assert_eq!(verdict(raised), (Kind::Timeout, sending, Completion::No));
    drop(hold);
    let (hold, held) = channel::<()>();
    let (_orb, reference) = fake_server(move |stream| {
        let _ = held.recv(); // Until the test drops its end.
        drop(stream);
    });
    let hurried = reference.with_round_trip_timeout(limit);
    let raised = call(&hurried, "ping").unwrap_err();
    let waiting = own_minor::TIMED_OUT_WAITING;
    assert_eq!(verdict(raised), (Kind::Timeout, waiting, Completion::Maybe));
    drop(hold);
}

const CANCEL_REQUEST: u8 = 2;

#[test]
fn a_call_that_is_given_up_is_cancelled_and_its_late_reply_hurts_nobody() {
    let (late, came_late) = channel();
    let (orb, reference) = fake_server(move |mut stream| {
        let (_, first) = read_kind(&mut stream).unwrap();
        let (kind, cancelled) = read_kind(&mut stream).unwrap();
        assert_eq!((kind, &cancelled[..]), (CANCEL_REQUEST, &first[..4]));
        reply(&mut stream, &first, 0, &[]);
        late.send(()).unwrap();
        let (_, second) = read_kind(&mut stream).unwrap();
        reply(&mut stream, &second, 0, &[]);
    });
    let hurried = reference.with_round_trip_timeout(Some(Duration::from_millis(30)));
    assert_eq!(call(&hurried, "ping").unwrap_err().kind, Kind::Timeout);
    came_late.recv().unwrap();
    assert_eq!(call(&reference, "ping"), Ok(()));
    let counted = |counter| orb.counters().read(counter);
    assert_eq!(counted(Counter::CancelsSent), 1);
    assert_eq!(counted(Counter::LateReplies), 1);
    assert_eq!(counted(Counter::RepliesToNobody), 0);
    assert_eq!(counted(Counter::ConnectionsMade), 1);
}

#[test]
fn a_late_reply_to_a_request_that_was_never_made_ends_its_connection() {
    // One more than the request that was given up, and one less.
    for off_by in [1, u32::MAX] {
        let (late, came_late) = channel();
        let (orb, reference) = fake_listener("1.2", move |listener| {
            let mut stream = listener.accept().unwrap().0;
            let (_, first) = read_kind(&mut stream).unwrap();
            let (kind, _) = read_kind(&mut stream).unwrap();
            assert_eq!(kind, CANCEL_REQUEST);
            let id = u32::from_le_bytes(first[..4].try_into().unwrap());
            reply(&mut stream, &id.wrapping_add(off_by).to_le_bytes(), 0, &[]);
            late.send(()).unwrap();
            assert_eq!(read_kind(&mut stream), None, "nothing more is sent over it");
            let mut stream = listener.accept().unwrap().0;
            let request = read_request(&mut stream);
            reply(&mut stream, &request, 0, &[]);
        });
        let hurried = reference.with_round_trip_timeout(Some(Duration::from_millis(30)));
        assert_eq!(call(&hurried, "ping").unwrap_err().kind, Kind::Timeout);
        came_late.recv().unwrap();
        assert_eq!(call(&reference, "ping"), Ok(()));
        let counted = |counter| orb.counters().read(counter);
        assert_eq!(counted(Counter::LateReplies), 0);
        assert_eq!(counted(Counter::ConnectionsMade), 2);
    }
}

#[test]
fn the_next_call_does_not_wait_behind_one_that_was_given_up() {
    let (orb, reference) = fake_listener("1.2", move |listener| {
        // The server does not use the first connection.
        let silent = listener.accept().unwrap().0;
        let mut stream = listener.accept().unwrap().0;
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 0, &[]);
        let _ = read_kind(&mut stream); // Until the client closes.
        drop(silent);
    });
    let hurried = reference.with_round_trip_timeout(Some(Duration::from_millis(30)));
    assert_eq!(call(&hurried, "ping").unwrap_err().kind, Kind::Timeout);
    assert_eq!(call(&reference, "ping"), Ok(()));
    assert_eq!(orb.counters().read(Counter::ConnectionsMade), 2);
}

#[test]
fn a_late_receipt_of_a_oneway_is_passed_over_by_the_next() {
    let scope = Policy::SyncScope(SyncScope::WithServer);
    let (orb, reference) = fake_server(|mut stream| {
        let (_, first) = read_kind(&mut stream).unwrap();
        let (kind, _) = read_kind(&mut stream).unwrap();
        assert_eq!(kind, CANCEL_REQUEST);
        // The reply to the first request is sent only now, after the next request.
        let (_, second) = read_kind(&mut stream).unwrap();
        reply(&mut stream, &first, 0, &[]);
        reply(&mut stream, &second, 0, &[]);
    });
    let how = SetOverrideType::AddOverride;
    let reference = reference.set_policy_overrides(&[scope], how).unwrap();
    let hurried = reference.with_round_trip_timeout(Some(Duration::from_millis(30)));
    let oneway = |reference: &ObjectRef| reference.invoke_oneway("note", |_| Ok(()));
    assert_eq!(oneway(&hurried).unwrap_err().kind, Kind::Timeout);
    assert_eq!(oneway(&reference), Ok(()));
    assert_eq!(orb.counters().read(Counter::LateReplies), 1);
    assert_eq!(orb.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn callers_that_give_up_and_go_on_never_get_anothers_reply() {
    const CALLERS: u32 = 4;
    const ROUNDS: u32 = 20;
    // Each timed-out call keeps a thread of the server busy until the gate opens.
    let server = Server::shaped(|builder| builder.dynamic_threads((CALLERS * ROUNDS) as usize + 8));
    let (orb, bench) = client_of(&server);
    let go_on = |caller: u32, gives_up: bool| {
        let hurried = bench.with_round_trip_timeout(Some(Duration::from_millis(3)));
        for round in 0..ROUNDS {
            if gives_up {
                assert_eq!(call(&hurried, "meet").unwrap_err().kind, Kind::Timeout);
            }
            let sent = [caller.to_le_bytes(), round.to_le_bytes()].concat();
            assert_eq!(call_octets(&bench, &sent), Ok(sent));
        }
    };
    for gives_up in [true, false] {
        std::thread::scope(|threads| {
            for caller in 0..CALLERS {
                threads.spawn(move || go_on(caller, gives_up));
            }
        });
        server.bench.gate.open();
    }
    let counted = |counter| orb.counters().read(counter);
    assert_eq!(counted(Counter::RepliesToNobody), 0);
    assert_eq!(counted(Counter::CommFailures), 0);
    // A connection attempt that completed after its call timed out has sent no request, so there is nothing to cancel.
    assert!(counted(Counter::CancelsSent) <= u64::from(CALLERS * ROUNDS));
    assert_ne!(counted(Counter::CancelsSent), 0);
}
