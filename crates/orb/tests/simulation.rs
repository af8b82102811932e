//! Two ORBs in one thread, in virtual time: the protocol, the adapter and both sides of a connection without a socket,
//! a thread or a clock.

mod support;

use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::{Completion, Counter, ObjectRef, Orb, Servant, SystemExceptionKind as Kind};
use support::world::World;
use support::{Bench, call, call_back, call_octets, note};

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
    let reference = client
        .string_to_object(&reference.to_string())
        .unwrap()
        .unwrap();
    (client, server, bench, reference)
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
    // An hour costs no time.
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

/// Calls and one-ways over a wire of uneven latency; what was sent when.
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
