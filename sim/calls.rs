//! Two ORBs in one thread, in virtual time: the protocol, the adapter and both sides of a connection, without sockets,
//! threads and clocks.

use std::sync::Arc;
use std::time::Duration;

use crate::support::world::World;
use crate::support::{Bench, call, call_back, call_octets, note, request, request_of, seen_by};
use deckwatch_cdr::{ByteOrder, Write, Writer};
use deckwatch_orb::transport::{StreamOptions, Transport};
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Orb, Policy, RebindMode, Servant, SetOverrideType, SyncScope,
    SystemExceptionKind as Kind,
};

const LATENCY_NS: u64 = 250_000;

fn serve(orb: &Orb) -> (Arc<Bench>, ObjectRef) {
    let root = orb.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let bench = Arc::new(Bench::default());
    let servant: Arc<dyn Servant> = bench.clone();
    (bench, root.servant_to_reference(&servant).unwrap())
}

/// A client, a server, and the client's reference to the server's object.
fn two(world: &World) -> (Orb, Orb, Arc<Bench>, ObjectRef) {
    let (client, server) = (world.orb("client"), world.orb("server"));
    let (bench, reference) = serve(&server);
    let reference = seen_by(&client, &reference);
    (client, server, bench, reference)
}

/// A client whose connections have this idle timeout, two servers, and the client's references to their objects.
fn client_of_two(world: &World, idle_timeout: Duration) -> (Orb, [Orb; 2], [ObjectRef; 2]) {
    let servers = ["one", "other"].map(|host| world.orb(host));
    let client = world.orb_with("client", |builder| {
        builder.client_idle_timeout(idle_timeout)
    });
    let references = servers
        .each_ref()
        .map(|server| seen_by(&client, &serve(server).1));
    (client, servers, references)
}

fn now(orb: &Orb) -> u64 {
    orb.transport().now().0
}

#[test]
fn a_call_takes_two_latencies_and_a_callback_four_of_virtual_time() {
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let (client, _server, _bench, reference) = two(&world);
    let begun = now(&client);
    assert_eq!(call_octets(&reference, b"abc").unwrap(), b"abc");
    assert_eq!(now(&client) - begun, 2 * LATENCY_NS);
    let (_own, here) = serve(&client);
    let begun = now(&client);
    assert_eq!(call_back(&reference, &here).unwrap(), b"called back");
    assert_eq!(now(&client) - begun, 4 * LATENCY_NS);
    world.end();
}

#[test]
fn a_cut_wire_interrupts_the_call_at_exactly_its_deadline() {
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let (client, _server, _bench, reference) = two(&world);
    call(&reference, "ping").unwrap();
    world.cut();
    let begun = now(&client);
    // An hour of virtual time takes no real time.
    let patient = reference.with_round_trip_timeout(Some(Duration::from_secs(3_600)));
    let raised = call(&patient, "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Timeout, Completion::Maybe)
    );
    assert_eq!(now(&client) - begun, 3_600_000_000_000);
    assert_eq!(client.counters().read(Counter::Timeouts), 1);
    world.end();
}

/// Makes calls and one-ways over a connection with varying latency; returns the trace of what was sent and when.
fn run(seed: u64) -> Vec<(u64, u64, usize)> {
    let world = World::new(seed, (1_000, 900_000));
    let (_client, server, bench, reference) = two(&world);
    for value in 0..40 {
        note(&reference, value).unwrap();
        let octets = vec![7; (value as usize * 997) % 40_000];
        assert_eq!(
            call_octets(&reference, &octets).unwrap(),
            octets,
            "seed {seed}"
        );
    }
    world.settle();
    assert!(
        bench.order.lock().unwrap().iter().copied().eq(0..40),
        "seed {seed}"
    );
    assert_eq!(server.counters().read(Counter::Requests), 40, "seed {seed}");
    let trace = world.trace();
    world.end();
    trace
}

#[test]
fn every_seed_keeps_order_and_gives_each_request_one_reply_and_repeats_exactly() {
    for seed in 0..200 {
        let trace = run(seed);
        assert_eq!(trace, run(seed), "seed {seed}");
    }
    assert_ne!(run(1), run(2));
}

fn count(orb: &Orb, counter: Counter) -> u64 {
    orb.counters().read(counter)
}

#[test]
fn calls_that_are_given_up_never_get_the_reply_of_another_whatever_the_latencies() {
    let mut given_up = 0;
    for seed in 0..100 {
        let world = World::new(seed, (1_000, 900_000));
        let (client, server, _bench, reference) = two(&world);
        let hasty = reference.with_round_trip_timeout(Some(Duration::from_micros(800)));
        for number in 0..60_u32 {
            let octets = number.to_be_bytes().repeat(1 + seed as usize);
            match call_octets(&hasty, &octets) {
                Ok(answer) => assert_eq!(answer, octets, "seed {seed}"),
                Err(raised) => assert_eq!(raised.kind, Kind::Timeout, "seed {seed}"),
            }
        }
        world.settle();
        // All late replies have arrived; the connection can be used for the next call.
        let made = count(&client, Counter::ConnectionsMade);
        assert_eq!(call_octets(&reference, b"last").unwrap(), b"last");
        assert_eq!(count(&client, Counter::ConnectionsMade), made);
        assert_eq!(count(&client, Counter::RepliesToNobody), 0, "seed {seed}");
        let cancels = count(&client, Counter::CancelsSent);
        assert_eq!(count(&client, Counter::Timeouts), cancels, "seed {seed}");
        assert_eq!(count(&server, Counter::CancelRequests), cancels);
        given_up += cancels;
        world.end();
    }
    assert!(given_up > 100, "{given_up}");
}

#[test]
fn one_ways_keep_their_order_whatever_is_waited_for_and_given_up() {
    let scopes = [
        SyncScope::None,
        SyncScope::WithTransport,
        SyncScope::WithServer,
        SyncScope::WithTarget,
    ];
    for seed in 0..100 {
        let world = World::new(seed, (1_000, 900_000));
        let (client, _server, bench, reference) = two(&world);
        let hasty = reference.with_round_trip_timeout(Some(Duration::from_micros(1_200)));
        let by_scope = scopes.map(|scope| {
            let policies = [Policy::SyncScope(scope)];
            hasty
                .set_policy_overrides(&policies, SetOverrideType::AddOverride)
                .unwrap()
        });
        for value in 0..60 {
            let scope = (value as usize * 7 + seed as usize) % scopes.len();
            let sent = note(&by_scope[scope], value).map_err(|raised| raised.kind);
            assert!(matches!(sent, Ok(()) | Err(Kind::Timeout)), "seed {seed}");
        }
        world.settle();
        // The one-ways that timed out had been sent.
        let order = bench.order.lock().unwrap().clone();
        assert!(order.into_iter().eq(0..60), "seed {seed}");
        assert_eq!(count(&client, Counter::ConnectionsMade), 1, "seed {seed}");
        world.end();
    }
}

#[test]
fn replies_go_through_a_window_of_any_size_in_the_order_and_at_the_pace_of_their_reader() {
    for (seed, window) in [(1, 1), (2, 100), (3, 1_460), (4, 65_536)] {
        let world = World::new(seed, (1_000, 900_000));
        world.narrow(window);
        let (_client, server, bench, reference) = two(&world);
        let octets: Vec<u8> = (0..window * 40).map(|index| index as u8).collect();
        for value in 0..3 {
            note(&reference, value).unwrap();
            assert_eq!(call_octets(&reference, &octets).unwrap(), octets);
        }
        assert!(count(&server, Counter::RepliesQueued) >= 3);
        assert_eq!(count(&server, Counter::OutboundExhausted), 0);
        world.settle();
        assert_eq!(*bench.order.lock().unwrap(), [0, 1, 2]);
        world.end();
    }
}

#[test]
fn who_takes_a_reply_slowly_has_time_for_the_message_behind_it() {
    let limit = Duration::from_secs(2);
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let server = world.orb_with("server", |builder| builder.arrival_timeout(limit));
    let client = world.orb("client");
    let ((_bench, reference), (_own, here)) = (serve(&server), serve(&client));
    let peer = world
        .connect(&server.endpoints()[0], &StreamOptions::default(), None)
        .unwrap();
    let mut argument = Vec::new();
    let mut writer = Writer::new(&mut argument).with_order(ByteOrder::Big);
    here.ior().write(&mut writer).unwrap();
    let first = request_of(&reference, (1, 3), "call_back", &argument);
    let second = request(&reference, 2, 8);
    let (begun, rest) = second.split_at(20);
    // The second request starts to arrive while the first is served.
    peer.write_all(&first, None).unwrap();
    peer.write_all(begun, None).unwrap();
    world.narrow(16);
    let mut taken = 0;
    let mut take = |world: &World| {
        world.pass(Duration::from_secs(1));
        taken += peer.read_now(&mut [0; 4]).unwrap().unwrap_or(0);
        taken
    };
    let first_reply = 12 + 12 + 4 + 11;
    while take(&world) < first_reply - 16 {}
    assert_eq!(count(&server, Counter::SystemExceptions), 0);
    assert_eq!(count(&server, Counter::RepliesQueued), 1);
    world.narrow(1_000);
    peer.write_all(rest, None).unwrap();
    while take(&world) < first_reply + 12 + 12 + 4 + 8 {}
    assert_eq!(count(&server, Counter::ArrivalsTimedOut), 0);
    // A message that nothing delays has the usual time limit.
    peer.write_all(begun, None).unwrap();
    world.pass(limit * 2);
    assert_eq!(count(&server, Counter::ArrivalsTimedOut), 1);
    drop(peer);
    world.end();
}

#[test]
fn a_message_that_ended_while_the_server_was_stopped_is_served() {
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let server = world.orb("server");
    let (_bench, reference) = serve(&server);
    let peer = world
        .connect(&server.endpoints()[0], &StreamOptions::default(), None)
        .unwrap();
    let request = request(&reference, 2, 8);
    let (begun, rest) = request.split_at(20);
    for stopped in [20, 60, 600] {
        peer.write_all(begun, None).unwrap();
        world.pass(Duration::from_secs(5));
        world.stall("server", Duration::from_secs(stopped));
        peer.write_all(rest, None).unwrap();
        world.pass(Duration::from_secs(stopped + 1));
        assert!(peer.read_now(&mut [0; 256]).unwrap().is_some(), "{stopped}");
    }
    assert_eq!(count(&server, Counter::ArrivalsTimedOut), 0);
    // The time limit holds for a peer that is silent, and a stop does not remove it.
    peer.write_all(begun, None).unwrap();
    world.pass(Duration::from_secs(5));
    world.stall("server", Duration::from_secs(60));
    world.pass(Duration::from_secs(63));
    assert_eq!(count(&server, Counter::ArrivalsTimedOut), 1);
    drop(peer);
    world.end();
}

#[test]
fn idle_connections_close_at_their_time_on_either_side_and_calls_connect_again() {
    let limit = Duration::from_secs(60);
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let server = world.orb_with("server", |builder| builder.idle_timeout(limit));
    let client = world.orb_with("client", |builder| builder.client_idle_timeout(2 * limit));
    let (_bench, reference) = serve(&server);
    let reference = seen_by(&client, &reference);
    call(&reference, "ping").unwrap();
    world.pass(limit - Duration::from_secs(1));
    assert_eq!(count(&server, Counter::ConnectionsClosed), 0);
    call(&reference, "ping").unwrap();
    world.pass(limit - Duration::from_secs(1));
    assert_eq!(count(&server, Counter::ConnectionsIdle), 0);
    world.pass(limit);
    assert_eq!(count(&server, Counter::ConnectionsIdle), 1);
    // The client has read CloseConnection: no request is lost or sent twice.
    call(&reference, "ping").unwrap();
    assert_eq!(count(&client, Counter::ConnectionsMade), 2);
    assert_eq!(count(&server, Counter::Requests), 3);
    world.end();
}

#[test]
fn calls_that_last_longer_than_a_connection_may_idle_go_over_one_connection() {
    let limit = Duration::from_secs(60);
    let latency = limit.as_nanos() as u64;
    let world = World::new(1, (latency, latency));
    let server = world.orb_with("server", |builder| builder.idle_timeout(limit * 10));
    let client = world.orb_with("client", |builder| builder.client_idle_timeout(limit));
    let reference = seen_by(&client, &serve(&server).1);
    let own = [Policy::Rebind(RebindMode::NoReconnect)];
    let fixed = reference.set_policy_overrides(&own, SetOverrideType::AddOverride);
    let fixed = fixed.unwrap();
    for _ in 0..4 {
        assert_eq!(call(&fixed, "ping"), Ok(()));
    }
    assert_eq!(count(&server, Counter::ConnectionsAccepted), 1);
    assert_eq!(count(&client, Counter::ClientConnectionsIdle), 0);
    world.end();
}

#[test]
fn idle_connections_are_looked_for_behind_a_reply_and_not_before_a_request() {
    let limit = Duration::from_secs(60);
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let (client, servers, [one, other]) = client_of_two(&world, limit);
    call(&one, "ping").unwrap();
    for _ in 0..2 {
        call(&other, "ping").unwrap();
    }
    world.pass(limit / 2);
    call(&other, "ping").unwrap();
    world.pass(limit / 2);
    call(&other, "ping").unwrap();
    assert_eq!(count(&client, Counter::ClientConnectionsIdle), 1);
    // A close sent before the request would have arrived with it.
    assert_eq!(count(&servers[0], Counter::ConnectionsClosed), 0);
    world.settle();
    assert_eq!(count(&servers[0], Counter::ConnectionsClosed), 1);
    world.end();
}

#[test]
fn a_connection_that_was_set_aside_for_a_late_reply_is_not_kept_for_ever() {
    let limit = Duration::from_secs(60);
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let (client, servers, [one, other]) = client_of_two(&world, limit);
    call(&other, "ping").unwrap();
    let hasty = one.with_round_trip_timeout(Some(Duration::from_nanos(LATENCY_NS)));
    world.cut();
    assert_eq!(call(&hasty, "ping").unwrap_err().kind, Kind::Timeout);
    world.mend();
    assert_eq!(count(&servers[0], Counter::ConnectionsClosed), 0);
    for _ in 0..3 {
        world.pass(limit / 2);
        call(&other, "ping").unwrap();
    }
    world.settle();
    assert_eq!(count(&servers[0], Counter::ConnectionsClosed), 1);
    assert_eq!(count(&client, Counter::ClientConnectionsIdle), 1);
    call(&one, "ping").unwrap();
    world.end();
}
