//! Location forwards, temporary and permanent, and operations that every object has.

use std::io::Write;
use std::net::TcpStream;

use crate::support::fake::{fake_server, ior_octets, read_request, reply, try_read_message};
use crate::support::{Server, TEST_ID, call, client_of};
use deckwatch_orb::limits::{FORWARDS_MAX, PERMANENT_FORWARDS_MAX};
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Orb, SystemExceptionKind as Kind, minor, own_minor,
};

const FORWARD: u8 = 3;
const FORWARD_PERM: u8 = 4;

/// A server for one connection; `answer` returns status and body of each reply.
fn answering(
    mut answer: impl FnMut(usize, &[u8]) -> (u8, Vec<u8>) + Send + 'static,
) -> (Orb, ObjectRef) {
    fake_server(move |mut stream| {
        for count in 0.. {
            let Some(request) = try_read_message(&mut stream) else {
                return;
            };
            let (status, body) = answer(count, &request);
            reply(&mut stream, &request, status, &body);
        }
    })
}

#[test]
fn a_forward_holds_for_the_calls_that_follow_and_leaves_the_reference_as_it_is() {
    let server = Server::start();
    let (_, target) = client_of(&server);
    let body = ior_octets(&target);
    let (orb, reference) = answering(move |_, _| (FORWARD, body.clone()));
    let before = reference.to_string();
    for _ in 0..3 {
        assert_eq!(call(&reference, "ping"), Ok(()));
    }
    assert_eq!(orb.counters().read(Counter::Forwards), 1);
    assert_eq!(reference.to_string(), before);
    assert_ne!(reference, target);
}

#[test]
fn a_forward_that_fails_falls_back_to_the_reference_itself() {
    let first = Server::start();
    let (_, target) = client_of(&first);
    let body = ior_octets(&target);
    let (orb, reference) = answering(move |count, _| match count {
        0 => (FORWARD, body.clone()),
        _ => (0, Vec::new()),
    });
    assert_eq!(call(&reference, "ping"), Ok(()));
    first.orb.shutdown(true).expect("it ends");
    assert_eq!(call(&reference, "ping"), Ok(()));
    assert_eq!(orb.counters().read(Counter::Forwards), 1);
    assert_eq!(orb.counters().read(Counter::ConnectFailures), 1);
}

#[test]
fn a_forward_for_good_replaces_the_reference() {
    let server = Server::start();
    let (_, target) = client_of(&server);
    let body = ior_octets(&target);
    let (orb, reference) = answering(move |_, _| (FORWARD_PERM, body.clone()));
    let hash = reference.hash(u32::MAX);
    assert_eq!(call(&reference, "ping"), Ok(()));
    assert_eq!(reference, target);
    assert_eq!(reference.to_string(), target.to_string());
    assert!(reference.is_equivalent(&target));
    assert_eq!(reference.type_id(), TEST_ID);
    // The hash of a reference does not change after a permanent forward.
    assert_eq!(reference.hash(u32::MAX), hash);
    assert!(reference.hash(6) <= 6);
    server.orb.shutdown(true).expect("it ends");
    // The reference does not fall back to the old address.
    assert_eq!(call(&reference, "ping").unwrap_err().kind, Kind::Transient);
    assert_eq!(orb.counters().read(Counter::Forwards), 1);
}

#[test]
fn forwards_for_good_in_a_circle_end_and_leave_no_endless_chain() {
    let body = std::sync::Arc::new(std::sync::OnceLock::<Vec<u8>>::new());
    let (orb, reference) = answering({
        let body = body.clone();
        move |_, _| (FORWARD_PERM, body.wait().clone())
    });
    body.set(ior_octets(&reference)).unwrap();
    for round in 1..=3_u64 {
        let raised = call(&reference, "ping").unwrap_err();
        assert_eq!(
            (raised.kind, raised.minor),
            (Kind::Transient, own_minor::FORWARD_CIRCLE)
        );
        let forwards = orb.counters().read(Counter::Forwards);
        assert_eq!(forwards, round * FORWARDS_MAX as u64);
    }
    assert!(usize::from(PERMANENT_FORWARDS_MAX) <= FORWARDS_MAX);
}

#[test]
fn a_forward_to_no_object_is_inv_objref_and_the_next_call_asks_again() {
    let nil = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
    let (_orb, reference) = answering(move |count, _| match count {
        0 => (FORWARD, nil.clone()),
        _ => (0, Vec::new()),
    });
    let raised = call(&reference, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.minor, raised.completed),
        (Kind::InvObjref, own_minor::FORWARD_TO_NIL, Completion::No)
    );
    assert_eq!(call(&reference, "ping"), Ok(()));
}

/// Replies to the LocateRequests of one connection with these statuses and bodies.
fn locating(answers: Vec<(u8, Vec<u8>)>) -> (Orb, ObjectRef) {
    fake_server(move |mut stream: TcpStream| {
        for (status, body) in answers {
            let request = read_request(&mut stream);
            let size = u32::try_from(8 + body.len()).unwrap();
            let head = [
                b"GIOP\x01\x02\x01\x04",
                &size.to_le_bytes()[..],
                &request[..4],
                &[status, 0, 0, 0],
            ];
            let message = [&head.concat()[..], &body].concat();
            stream.write_all(&message).unwrap();
        }
    })
}

#[test]
fn validating_asks_where_the_object_is() {
    let (orb, reference) = locating(vec![(1, Vec::new()), (0, Vec::new())]);
    assert_eq!(reference.validate_connection(), Ok(true));
    assert_eq!(reference.validate_connection(), Ok(false));
    assert_eq!(orb.counters().read(Counter::RequestsSent), 2);
}

#[test]
fn validating_follows_what_the_server_says() {
    let server = Server::start();
    let (_, target) = client_of(&server);
    for (status, forwards) in [(2, 1), (3, 1)] {
        let (orb, reference) = locating(vec![(status, ior_octets(&target))]);
        assert_eq!(reference.validate_connection(), Ok(true));
        assert_eq!(call(&reference, "ping"), Ok(()));
        assert_eq!(orb.counters().read(Counter::Forwards), forwards);
        assert_eq!(reference == target, status == 3);
    }
    assert_eq!(server.orb.counters().read(Counter::LocateRequests), 2);
}

#[test]
fn our_server_says_where_an_object_is_here_elsewhere_or_nowhere() {
    let (server, desk) = (Server::start(), Server::start());
    let (orb, bench) = client_of(&server);
    let target = desk.orb.string_to_object(&server.text).unwrap().unwrap();
    desk.orb.register_plain_key(b"Bench", &target).unwrap();
    let at = |key: &str| {
        let url = format!("corbaloc::{}/{key}", desk.address());
        orb.string_to_object(&url).unwrap().unwrap()
    };
    assert_eq!(bench.validate_connection(), Ok(true));
    assert_eq!(at("Bench").validate_connection(), Ok(true));
    assert_eq!(orb.counters().read(Counter::Forwards), 1);
    assert_eq!(at("Nobody").validate_connection(), Ok(false));
}

#[test]
fn every_object_answers_what_every_object_can_be_asked() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    assert_eq!(bench.repository_id().as_deref(), Ok(TEST_ID));
    assert_eq!(bench.component(), Ok(None));
    assert_eq!(bench.is_a("IDL:deckwatch.test/Base:1.0"), Ok(true));
    assert_eq!(bench.non_existent(), Ok(false));
    let raised = bench.interface().unwrap_err();
    assert_eq!(
        (raised.kind, raised.minor),
        (Kind::IntfRepos, minor::INTERFACE_REPOSITORY_ABSENT)
    );
}

#[test]
fn a_server_that_knows_only_the_old_name_is_asked_by_it() {
    let (_orb, reference) = answering(|_, request| {
        let asks = |name: &[u8]| request.windows(name.len()).any(|window| window == name);
        if asks(b"_not_existent\0") {
            return (0, vec![1]);
        }
        let id = b"IDL:omg.org/CORBA/BAD_OPERATION:1.0\0";
        let exception = [&36_u32.to_le_bytes()[..], id, &[0; 4], &1_u32.to_le_bytes()];
        (2, exception.concat())
    });
    assert_eq!(reference.non_existent(), Ok(true));
}
