//! Events that go on to other channels, and circles of channels.

use super::{World, any_of, event, next};
use crate::support::wait_for;
use deckwatch_event::limits::TTL_MAX;
use deckwatch_event::rt::Loss;
use deckwatch_event::rtec_event_comm::PushConsumerRef;

/// Connects `from` as a supplier to `to`.
fn chain(from: &World, to: &World) {
    let into = to.supply(&[]);
    let text = to.user.object_to_string(into.object());
    let object = from.user.string_to_object(&text).unwrap().expect("not nil");
    from.proxy_supplier()
        .connect_push_consumer(
            Some(&PushConsumerRef::unchecked_narrow(object)),
            &any_of(&[(0, 20)]),
        )
        .expect("it connects");
}

#[test]
fn gateway_gets_events_with_a_bounded_ttl_and_none_without_one() {
    let world = World::new();
    let mut qos = any_of(&[(0, 20)]);
    let (_plain, plain) = world.connect(&qos);
    qos.is_gateway = true;
    let (_proxy, sets) = world.connect(&qos);
    let supplier = world.supply(&[]);
    let mut last = event(1, 20, "last hop");
    last.header.ttl = 0;
    supplier.push(&[last]).unwrap();
    let mut far = event(1, 20, "far");
    far.header.ttl = i32::MAX;
    supplier.push(&[event(1, 20, "near"), far]).unwrap();
    // TAO's gateways take one off by themselves.
    for (payload, ttl) in [("near", 1), ("far", TTL_MAX)] {
        let set = sets
            .recv_timeout(crate::support::PATIENCE)
            .unwrap()
            .unwrap();
        assert_eq!(set[0].data.payload, payload.as_bytes());
        assert_eq!(set[0].header.ttl, ttl);
    }
    assert_eq!(
        next(&plain),
        ["last hop"],
        "a plain consumer gets every event"
    );
    assert_eq!(world.served.counts().lost(Loss::TtlExpired), 1);
    world.end();
}

#[test]
fn event_in_a_circle_of_channels_ends_with_its_ttl() {
    let (one, other) = (World::new(), World::new());
    chain(&one, &other);
    chain(&other, &one);
    let (_proxy, sets) = one.connect(&any_of(&[(0, 20)]));
    let supplier = one.supply(&[]);
    let mut round = event(1, 20, "round");
    round.header.ttl = 5;
    supplier.push(&[round]).unwrap();
    for _ in 0..3 {
        assert_eq!(next(&sets), ["round"], "with ttl 5, 3 and 1");
    }
    wait_for(|| {
        let expired = |world: &World| world.served.counts().lost(Loss::TtlExpired);
        expired(&one) + expired(&other) == 1
    });
    assert_eq!(
        one.served.counts().received + other.served.counts().received,
        6
    );
    assert!(sets.try_recv().is_err());
    one.end();
    other.end();
}
