//! Asynchronous calls between two ORBs in one thread, in virtual time: replies in any order, handlers, deadlines, one
//! outcome for each call.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::world::World;
use crate::support::{Bench, seen_by};
use deckwatch_cdr::{DecodeError, Reader, Write};
use deckwatch_dynamic::Poller;
use deckwatch_orb::{
    Counter, Deliver, ObjectRef, Orb, Servant, SystemException, SystemExceptionKind as Kind,
};

const LATENCY_NS: u64 = 250_000;

/// A client, a server, and the client's reference to the server's object.
fn two(world: &World) -> (Orb, Orb, ObjectRef) {
    let (client, server) = (world.orb("client"), world.orb("server"));
    let reference = reference_to(&client, &server);
    (client, server, reference)
}

/// The client's reference to a new object of the server.
fn reference_to(client: &Orb, server: &Orb) -> ObjectRef {
    let root = server.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let bench: Arc<dyn Servant> = Arc::new(Bench::default());
    seen_by(client, &root.servant_to_reference(&bench).unwrap())
}

fn text_of(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    deckwatch_cdr::Parse::parse(r)
}

fn send(reference: &ObjectRef, text: &str) -> Poller {
    let sent = Poller::send(reference, "text", |w| text.write(w));
    sent.unwrap()
}

fn poll(poller: &Poller) -> Result<String, SystemException> {
    poller.poll("text", u32::MAX, text_of, |_, _| Ok(None))
}

#[test]
fn many_calls_take_two_latencies_together() {
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let (client, _server, reference) = two(&world);
    let begun = client.transport().now();
    let pollers: Vec<_> = (0..50)
        .map(|index| send(&reference, &index.to_string()))
        .collect();
    for (index, poller) in pollers.iter().enumerate().rev() {
        assert_eq!(poll(poller), Ok(index.to_string()));
    }
    let took = client.transport().now().since(begun);
    assert_eq!(took, Duration::from_nanos(2 * LATENCY_NS));
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
    world.end();
}

#[test]
fn calls_that_last_longer_than_a_connection_may_idle_go_over_one_connection() {
    let limit = Duration::from_secs(60);
    let latency = limit.as_nanos() as u64;
    let world = World::new(1, (latency, latency));
    let server = world.orb_with("server", |builder| builder.idle_timeout(limit * 10));
    let client = world.orb_with("client", |builder| builder.client_idle_timeout(limit));
    let reference = reference_to(&client, &server);
    for index in 0..4 {
        let text = index.to_string();
        assert_eq!(poll(&send(&reference, &text)), Ok(text));
    }
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
    world.end();
}

#[test]
fn a_cut_wire_ends_calls_at_exactly_their_deadline() {
    let world = World::new(1, (LATENCY_NS, LATENCY_NS));
    let (client, _server, reference) = two(&world);
    assert_eq!(poll(&send(&reference, "before")), Ok("before".to_owned()));
    let limit = Duration::from_millis(40);
    let hurried = reference.with_round_trip_timeout(Some(limit));
    world.cut();
    let begun = client.transport().now();
    let late = poll(&send(&hurried, "lost")).unwrap_err();
    assert_eq!(late.kind, Kind::Timeout);
    assert_eq!(client.transport().now().since(begun), limit);
    world.end();
}

/// With any latencies, each call gets one outcome, its own.
#[test]
fn every_call_is_told_to_its_handler_once_whatever_the_latencies() {
    for seed in 0..300 {
        let world = World::new(seed, (1_000, 5_000_000));
        let (client, _server, reference) = two(&world);
        let told = Arc::new(Mutex::new([0; 20]));
        let (wrong, wrongs) = channel();
        for index in 0..20 {
            let (told, wrong) = (Arc::clone(&told), wrong.clone());
            let expected = format!("call {index}");
            let text = expected.clone();
            let deliver: Deliver = Box::new(move |reply| {
                told.lock().unwrap()[index] += 1;
                let given = reply.results(text_of);
                if given.as_ref() != Ok(&expected) {
                    wrong.send(given).unwrap();
                }
                Ok(())
            });
            reference
                .send_callback("text", |w| text.write(w), Some(deliver))
                .unwrap();
        }
        world.pass(Duration::from_millis(100));
        assert_eq!(*told.lock().unwrap(), [1; 20], "seed {seed}");
        assert!(wrongs.try_recv().is_err(), "seed {seed}");
        assert_eq!(client.counters().read(Counter::CallbacksFailed), 0);
        world.end();
    }
}
