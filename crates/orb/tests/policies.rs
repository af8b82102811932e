//! Policies of the module Messaging: sync scopes, timeouts and rebinding, at each of the three levels.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::support;
use crate::support::fake::{fake_listener, fake_server, ior_octets, read_request, reply};
use crate::support::{Server, call, client_of, note, noted, wait_for};
use deckwatch_cdr::EncodeError;
use deckwatch_orb::limits::{QUEUED_ONEWAYS_SIZE_MAX, STALE_CHECK_AFTER};
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Orb, Policy, PolicyType, RebindMode, SetOverrideType,
    SyncScope, SystemException, SystemExceptionKind as Kind, minor, own_minor,
};

const SCOPES: [SyncScope; 4] = [
    SyncScope::None,
    SyncScope::WithTransport,
    SyncScope::WithServer,
    SyncScope::WithTarget,
];

fn with(reference: &ObjectRef, policy: Policy) -> ObjectRef {
    let changed = reference.set_policy_overrides(&[policy], SetOverrideType::AddOverride);
    changed.unwrap()
}

fn oneway(reference: &ObjectRef, operation: &str) -> Result<(), SystemException> {
    reference.invoke_oneway(operation, |_| Ok(()))
}

/// The response flags octet that a server of this GIOP version receives, for each sync scope.
fn response_octets(version: &'static str) -> Vec<u8> {
    let (tell, seen) = channel();
    let (_orb, reference) = fake_listener(version, move |listener| {
        let mut stream = listener.accept().unwrap().0;
        for _ in SCOPES {
            let request = read_request(&mut stream);
            // Before GIOP 1.2, the (empty) service context list comes first.
            let place = if version == "1.2" { 4 } else { 8 };
            let octet = request[place];
            tell.send(octet).unwrap();
            if octet != 0 && version == "1.2" {
                reply(&mut stream, &request, 0, &[]);
            } else if octet != 0 {
                let head = [b"GIOP\x01\x00\x01\x01\x0c\0\0\0\0\0\0\0", &request[4..8]].concat();
                std::io::Write::write_all(&mut stream, &[&head[..], &[0; 4]].concat()).unwrap();
            }
        }
    });
    for scope in SCOPES {
        oneway(&with(&reference, Policy::SyncScope(scope)), "ping").unwrap();
    }
    seen.iter().take(SCOPES.len()).collect()
}

#[test]
fn each_sync_scope_asks_for_the_response_that_the_standard_gives_it() {
    assert_eq!(response_octets("1.2"), [0, 0, 1, 3]);
    assert_eq!(response_octets("1.0"), [0, 0, 1, 1]);
}

#[test]
fn a_oneway_with_server_returns_before_the_servant_and_one_with_target_after_it() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let with_server = with(&bench, Policy::SyncScope(SyncScope::WithServer));
    // The gate is closed: the servant waits, the caller does not.
    assert_eq!(oneway(&with_server, "meet"), Ok(()));
    server.bench.gate.wait_for_arrivals(1);
    server.bench.gate.open();
    // An exception of the servant comes after the reply, so the caller does not get it.
    assert_eq!(oneway(&with_server, "fail"), Ok(()));
    let with_target = with(&bench, Policy::SyncScope(SyncScope::WithTarget));
    assert_eq!(oneway(&with_target, "ping"), Ok(()));
    let raised = oneway(&with_target, "fail").unwrap_err();
    assert_eq!((raised.kind, raised.minor), (Kind::NoPermission, 7));
}

#[test]
fn a_oneway_that_waits_behind_another_is_interrupted_at_its_own_deadline() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let with_target = with(&bench, Policy::SyncScope(SyncScope::WithTarget));
    let first = std::thread::spawn(move || oneway(&with_target, "meet"));
    server.bench.gate.wait_for_arrivals(1);
    let hurried = with(
        &bench,
        Policy::RelativeRoundtripTimeout(Duration::from_millis(30)),
    );
    let raised = oneway(&hurried, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.minor, raised.completed),
        (Kind::Timeout, own_minor::TIMED_OUT_SENDING, Completion::No)
    );
    server.bench.gate.open();
    assert_eq!(first.join().unwrap(), Ok(()));
    let patient = with(
        &bench,
        Policy::RelativeRoundtripTimeout(Duration::from_secs(20)),
    );
    assert_eq!(oneway(&patient, "ping"), Ok(()));
}

#[test]
fn a_oneway_with_server_learns_that_the_object_is_not_there() {
    let server = Server::start();
    let (orb, _) = client_of(&server);
    let url = format!("corbaloc::{}/Nobody", server.address());
    let nobody = orb.string_to_object(&url).unwrap().unwrap();
    assert_eq!(oneway(&nobody, "ping"), Ok(()));
    let raised = oneway(
        &with(&nobody, Policy::SyncScope(SyncScope::WithServer)),
        "ping",
    );
    let raised = raised.unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::ObjectNotExist, Completion::No)
    );
}

#[test]
fn oneways_keep_their_order_whatever_they_wait_for() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let by_scope = SCOPES.map(|scope| with(&bench, Policy::SyncScope(scope)));
    for value in 0..200_u32 {
        note(&by_scope[value as usize % SCOPES.len()], value).unwrap();
    }
    wait_for(|| noted(&bench).unwrap() == 200);
    let order = server.bench.order.lock().unwrap();
    assert!(order.iter().copied().eq(0..200));
}

#[test]
fn a_oneway_with_server_follows_a_forward_and_a_plain_one_is_not_told_of_it() {
    let (server, desk) = (Server::start(), Server::start());
    let (orb, bench) = client_of(&server);
    let target = desk.orb.string_to_object(&server.text).unwrap().unwrap();
    desk.orb.register_plain_key(b"Bench", &target).unwrap();
    let url = format!("corbaloc::{}/Bench", desk.address());
    let forwarded = orb.string_to_object(&url).unwrap().unwrap();
    let forwarded = with(&forwarded, Policy::SyncScope(SyncScope::WithServer));
    note(&forwarded, 1).unwrap();
    assert_eq!(orb.counters().read(Counter::Forwards), 1);
    wait_for(|| noted(&bench).unwrap() != 0);
}

#[test]
fn a_oneway_with_sync_none_does_not_wait_for_a_server_that_does_not_read() {
    let (hold, held) = channel::<()>();
    let (orb, reference) = fake_server(move |stream| {
        let _ = held.recv(); // Until the test drops its end.
        drop(stream);
    });
    let carefree = with(&reference, Policy::SyncScope(SyncScope::None));
    let octets = vec![0; QUEUED_ONEWAYS_SIZE_MAX / 8];
    let send = || carefree.invoke_oneway("octets", |w| w.write_octet_sequence(&octets));
    // The sockets hold some one-ways, and the queue holds some more. Then the call raises at once.
    let refused = (0..).find_map(|_| send().err()).unwrap();
    assert_eq!(
        (refused.kind, refused.minor, refused.completed),
        (Kind::Transient, minor::REQUEST_DISCARDED, Completion::No)
    );
    assert_ne!(orb.counters().read(Counter::OnewaysLost), 0);
    drop(hold);
}

#[test]
fn what_is_in_the_box_is_sent_before_the_orb_ends_and_wrong_arguments_are_told() {
    let server = Server::start();
    let (orb, bench) = client_of(&server);
    let carefree = with(&bench, Policy::SyncScope(SyncScope::None));
    for value in 0..100 {
        note(&carefree, value).unwrap();
    }
    let refused = carefree.invoke_oneway("note", |_| Err::<(), _>(EncodeError::BoundExceeded));
    let told = SystemException::from(EncodeError::BoundExceeded);
    assert_eq!(refused, Err(told));
    orb.shutdown(true).unwrap();
    let (_other, bench) = client_of(&server);
    wait_for(|| noted(&bench).unwrap() >= 100);
    assert!(
        server
            .bench
            .order
            .lock()
            .unwrap()
            .iter()
            .copied()
            .eq(0..100)
    );
}

#[test]
fn a_oneway_with_sync_none_goes_to_the_next_address_where_the_first_is_dead() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start();
    let own = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &own).unwrap();
    let dead = gone.local_addr().unwrap();
    drop(gone);
    let (orb, bench) = client_of(&server);
    let url = format!(
        "corbaloc:iiop:1.2@{dead},iiop:1.2@{}/Bench",
        server.address()
    );
    let carefree = orb.string_to_object(&url).unwrap().unwrap();
    note(&with(&carefree, Policy::SyncScope(SyncScope::None)), 7).unwrap();
    wait_for(|| noted(&bench).unwrap() != 0);
}

#[test]
fn a_oneway_with_sync_none_is_not_told_that_nobody_listens_and_the_operator_is() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("corbaloc:iiop:1.2@{}/Gone", listener.local_addr().unwrap());
    drop(listener);
    let orb = Orb::builder().build().unwrap();
    let gone = orb.string_to_object(&url).unwrap().unwrap();
    let carefree = with(&gone, Policy::SyncScope(SyncScope::None));
    assert_eq!(oneway(&carefree, "ping"), Ok(()));
    wait_for(|| orb.counters().read(Counter::OnewaysLost) != 0);
    assert_eq!(oneway(&gone, "ping").unwrap_err().kind, Kind::Transient);
}

fn effective(reference: &ObjectRef) -> Option<Policy> {
    let policy = reference.client_policy(PolicyType::RELATIVE_RT_TIMEOUT);
    policy.unwrap()
}

#[test]
fn a_policy_of_the_reference_wins_over_the_threads_and_that_over_the_orbs() {
    let timeout = |ms| Policy::RelativeRoundtripTimeout(Duration::from_millis(ms));
    let server = Server::start();
    let orb = Orb::builder().build().unwrap();
    let bench = orb.string_to_object(&server.text).unwrap().unwrap();
    assert_eq!(effective(&bench), None);
    let add = SetOverrideType::AddOverride;
    orb.policy_manager()
        .set_policy_overrides(&[timeout(60)], add)
        .unwrap();
    assert_eq!(effective(&bench), Some(timeout(60)));
    // Each of the three policies ends a call that would wait forever.
    let interrupted = |reference: &ObjectRef| call(reference, "meet").unwrap_err().kind;
    assert_eq!(interrupted(&bench), Kind::Timeout);
    let current = orb.policy_current();
    current.set_policy_overrides(&[timeout(40)], add).unwrap();
    assert_eq!(effective(&bench), Some(timeout(40)));
    assert_eq!(interrupted(&bench), Kind::Timeout);
    let hurried = with(&bench, timeout(20));
    assert_eq!(effective(&hurried), Some(timeout(20)));
    assert_eq!(hurried.policy_overrides(&[]), [timeout(20)]);
    assert_eq!(interrupted(&hurried), Kind::Timeout);
    // Policies of one thread do not hold in another thread, nor those of one ORB in another ORB.
    let elsewhere = std::thread::spawn({
        let bench = bench.clone();
        move || effective(&bench)
    });
    assert_eq!(elsewhere.join().unwrap(), Some(timeout(60)));
    let (_other, stranger) = client_of(&server);
    assert_eq!(effective(&stranger), Some(timeout(20_000)));
    current
        .set_policy_overrides(&[], SetOverrideType::SetOverride)
        .unwrap();
    assert_eq!(effective(&bench), Some(timeout(60)));
    server.bench.gate.open();
}

#[test]
fn a_kind_of_policy_that_is_not_known_and_two_of_one_kind_raise_what_the_standard_says() {
    let server = Server::start();
    let (orb, bench) = client_of(&server);
    let unknown = bench.policy(PolicyType(4_711)).unwrap_err();
    assert_eq!(unknown.kind, Kind::InvPolicy);
    let twice = [Policy::SyncScope(SyncScope::None); 2];
    let how = SetOverrideType::SetOverride;
    for refused in [
        bench.set_policy_overrides(&twice, how).map(drop),
        orb.policy_manager().set_policy_overrides(&twice, how),
        orb.policy_current().set_policy_overrides(&twice, how),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(
            (refused.kind, refused.minor),
            (Kind::BadParam, minor::omg(30))
        );
    }
}

#[test]
fn a_request_that_cannot_be_delivered_in_time_is_a_timeout_that_was_not_completed() {
    // The peer does not read, and the request is larger than the socket buffers.
    let (hold, held) = channel::<()>();
    let (_orb, reference) = fake_server(move |stream| {
        let _ = held.recv(); // Until the test drops its end.
        drop(stream);
    });
    let hurried = with(
        &reference,
        Policy::RelativeRequestTimeout(Duration::from_millis(60)),
    );
    let octets = vec![0; 12 << 20];
    let raised = support::call_octets(&hurried, &octets).unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Timeout, Completion::No)
    );
    drop(hold);
}

#[test]
fn a_bound_reference_that_must_not_rebind_raises_rebind_when_it_is_forwarded() {
    let server = Server::start();
    let (_, target) = client_of(&server);
    let body = ior_octets(&target);
    let (orb, reference) = fake_server(move |mut stream| {
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 0, &[]);
        let request = read_request(&mut stream);
        reply(&mut stream, &request, 3, &body);
    });
    let fixed = with(&reference, Policy::Rebind(RebindMode::NoRebind));
    assert_eq!(call(&fixed, "ping"), Ok(()));
    let raised = call(&fixed, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Rebind, Completion::No)
    );
    drop(orb);
}

#[test]
fn a_reference_that_must_not_reconnect_raises_rebind_where_others_connect_again() {
    for (mode, expected) in [
        (RebindMode::NoReconnect, Err(Kind::Rebind)),
        (RebindMode::NoRebind, Ok(())),
        (RebindMode::Transparent, Ok(())),
    ] {
        let (closed, closes) = channel();
        let (_orb, reference) = fake_listener("1.2", move |listener| {
            for _ in 0..2 {
                let mut stream = listener.accept().unwrap().0;
                let request = read_request(&mut stream);
                reply(&mut stream, &request, 0, &[]);
                drop(stream);
                let _ = closed.send(()); // The receiver may be gone.
            }
        });
        let reference = with(&reference, Policy::Rebind(mode));
        assert_eq!(call(&reference, "ping"), Ok(()));
        closes.recv().unwrap();
        // Only a connection that has been idle is checked before it is used.
        let rested = Instant::now();
        while rested.elapsed() <= STALE_CHECK_AFTER {
            std::thread::yield_now();
        }
        let outcome = call(&reference, "ping").map_err(|raised| raised.kind);
        assert_eq!(outcome, expected, "{mode:?}");
    }
}
