//! Gateways over IIOP.

use super::*;
use crate::realtime::{Told, list, next};
use crate::support::{PATIENCE, serving_orb, serving_orb_at};
use deckwatch_event::federation::GatewayFailure;
use deckwatch_event::filter::designator::CONJUNCTION;
use deckwatch_event::rtec_event_comm::Event;
use deckwatch_orb::{Orb, SystemExceptionKind as Kind};

/// Pushes an event of type 20 that may make so many ways.
fn push(supplier: &ProxyPushConsumerRef, ttl: i32, payload: &str) {
    let mut event = event(1, 20, payload);
    event.header.ttl = ttl;
    supplier.push(&[event]).expect("it is sent");
}

/// What stays in the queue of a consumer once all events before a last one are there.
#[track_caller]
fn until_last(sets: &Told<Vec<Event>>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let payload = next(sets).remove(0);
        if payload == "last" {
            return all;
        }
        all.push(payload);
    }
}

#[test]
fn events_go_both_ways_once_and_with_the_data_as_pushed() {
    let (mut one, mut other) = (Site::new(), Site::new());
    one.federate(&other);
    other.federate(&one);
    let (_first, at_one) = one.world.connect(&any_of(&wanted()));
    let (_second, at_other) = other.world.connect(&any_of(&wanted()));
    one.await_connected();
    other.await_connected();
    let (from_one, from_other) = (one.world.supply(&[]), other.world.supply(&[]));
    let mut whole = event(1, 20, "from one");
    whole.header.ttl = 9;
    from_one.push(&[whole.clone()]).unwrap();
    let there = at_other.recv_timeout(PATIENCE).unwrap().expect("a set");
    whole.header.ttl = 8;
    assert_eq!(there, [whole]);
    push(&from_other, 9, "from other");
    assert_eq!(next(&at_other), ["from other"]);
    push(&from_one, 9, "last");
    push(&from_other, 9, "last");
    assert_eq!(until_last(&at_other), [""; 0]);
    // The two suppliers are served by different connections.
    let mut got = [next(&at_one), next(&at_one), next(&at_one), next(&at_one)].concat();
    got.sort();
    assert_eq!(got, ["from one", "from other", "last", "last"]);
    wait_for(|| one.counts(0).received == 2 && other.counts(0).received == 2);
    for site in [&one, &other] {
        let counts = site.counts(0);
        assert_eq!((counts.connects, counts.cuts, counts.returned), (1, 0, 0));
        assert_eq!(site.world.served.counts().forwarded, 2, "and none back");
    }
    one.end();
    other.end();
}

#[test]
fn only_what_a_consumer_wants_crosses_and_a_change_reaches_the_remote() {
    let (mut near, far) = (Site::new(), Site::new());
    near.federate(&far);
    let supplier = far.world.supply(&[]);
    supplier.push(&[event(1, 20, "nobody wants it")]).unwrap();
    wait_for(|| far.world.served.counts().unwanted == 1);
    assert!(!near.gateways[0].is_connected(), "nothing is wanted yet");

    let (first, twenty) = near.world.connect(&any_of(&[(0, 20)]));
    near.await_connected();
    supplier
        .push(&[event(1, 21, "unwanted"), event(1, 20, "a")])
        .unwrap();
    assert_eq!(next(&twenty), ["a"]);
    assert_eq!(far.world.served.counts().unwanted, 2);

    let (second, other) = near.world.connect(&any_of(&[(3, 21)]));
    wait_for(|| near.counts(0).changes == 1);
    supplier
        .push(&[event(1, 21, "of another source"), event(3, 21, "b")])
        .unwrap();
    assert_eq!(next(&other), ["b"]);
    assert_eq!(far.world.served.counts().unwanted, 3);
    assert_eq!(
        far.world.served.consumers().len(),
        1,
        "the old subscription ended"
    );

    first.disconnect_push_supplier().unwrap();
    second.disconnect_push_supplier().unwrap();
    wait_for(|| far.world.served.consumers().is_empty());
    wait_for(|| !near.gateways[0].is_connected());
    let counts = near.counts(0);
    assert_eq!((counts.connects, counts.cuts, counts.received), (1, 0, 2));
    near.end();
    far.end();
}

#[test]
fn each_consumer_of_a_triangle_gets_an_event_once_whatever_its_ttl() {
    let mut sites = [Site::new(), Site::new(), Site::new()];
    for at in 0..3 {
        let others = [(at + 1) % 3, (at + 2) % 3].map(|other| reference(&sites[other].world));
        for remote in others {
            sites[at].federate_with(options(&remote));
        }
    }
    let consumers = sites
        .each_ref()
        .map(|site| site.world.connect(&any_of(&wanted())).1);
    sites.iter().for_each(Site::await_connected);
    let supplier = sites[0].world.supply(&[]);
    for number in 0..50 {
        push(&supplier, 60, &number.to_string());
    }
    let expected: Vec<_> = (0..50).map(|number| number.to_string()).collect();
    for sets in &consumers {
        let mut got: Vec<_> = (0..50).map(|_| next(sets).remove(0)).collect();
        got.sort_by_key(|text| text.parse::<u32>().ok());
        assert_eq!(got, expected);
    }
    // The other two send each event on to each other, unless it came from there first.
    let sum = |site: &Site, of: fn(GatewayCounts) -> u64| of(site.counts(0)) + of(site.counts(1));
    wait_for(|| {
        let doubled = sites[1..]
            .iter()
            .map(|site| sum(site, |counts| counts.doubled));
        doubled.sum::<u64>() >= 50
    });
    for (site, expected) in sites.iter().zip([0, 50, 50]) {
        // An event is counted behind its delivery.
        wait_for(|| sum(site, |counts| counts.received) == expected);
        assert_eq!(sum(site, |counts| counts.returned), 0, "not even sent back");
    }
    for sets in &consumers {
        assert!(sets.try_recv().is_err());
    }
    sites.into_iter().for_each(Site::end);
}

#[test]
fn event_goes_as_many_ways_as_its_ttl_has_and_the_middle_may_have_no_consumer() {
    let (first, mut middle, mut last) = (Site::new(), Site::new(), Site::new());
    let mut through = options(&reference(&first.world));
    through.transit = vec![Header {
        event_type: 20,
        source: 0,
    }];
    middle.federate_with(through);
    last.federate(&middle);
    let (_proxy, sets) = last.world.connect(&any_of(&wanted()));
    middle.await_connected();
    last.await_connected();
    let supplier = first.world.supply(&[]);
    push(&supplier, 0, "stays");
    push(&supplier, 1, "to the middle");
    push(&supplier, 2, "to the end");
    assert_eq!(next(&sets), ["to the end"]);
    let expired = |site: &Site| site.world.served.counts().lost(Loss::TtlExpired);
    wait_for(|| expired(&first) == 1 && expired(&middle) == 1);
    assert!(sets.try_recv().is_err());
    first.end();
    middle.end();
    last.end();
}

#[test]
fn gateway_of_a_foreign_kind_gets_the_event_as_it_is_and_a_push_takes_one_off() {
    // What a TAO between two of our channels does: it passes sets on, and no identity.
    let (mut near, far) = (Site::new(), Site::new());
    near.federate(&far);
    let (_proxy, sets) = near.world.connect(&any_of(&wanted()));
    near.await_connected();
    let mut qos = any_of(&wanted());
    qos.is_gateway = true;
    let (_foreign, foreign) = far.world.connect(&qos);
    let supplier = far.world.supply(&[]);
    push(&supplier, 1, "of ttl 1");
    let at_foreign = foreign.recv_timeout(PATIENCE).unwrap().expect("a set");
    assert_eq!(at_foreign[0].header.ttl, 1, "it takes one off by itself");
    let at_near = sets.recv_timeout(PATIENCE).unwrap().expect("a set");
    assert_eq!(at_near[0].header.ttl, 0);
    near.end();
    far.end();
}

#[test]
fn gateway_that_is_cut_off_connects_again_and_local_events_go_on() {
    let mut near = Site::new();
    let far = World::new();
    let address = far.server.object_to_string(far.served.reference().object());
    near.federate_with(options(&address));
    let (_proxy, sets) = near.world.connect(&any_of(&wanted()));
    near.await_connected();
    // The channel is destroyed: it says so. Its ORB is shut down: then nobody answers.
    far.channel.destroy().unwrap();
    wait_for(|| near.counts(0).cuts == 1);
    wait_for(|| near.counts(0).failures >= 1);
    assert!(matches!(
        near.gateways[0].failure(),
        Some(GatewayFailure::System(raised)) if raised.kind == Kind::ObjectNotExist
    ));
    far.end();
    let before = near.counts(0).failures;
    wait_for(|| near.counts(0).failures > before);
    let supplier = near.world.supply(&[]);
    push(&supplier, 1, "local");
    assert_eq!(next(&sets), ["local"]);
    assert_eq!(near.counts(0).connects, 1);
    near.end();
}

/// A channel under a fixed key and port, as one that has been started anew.
fn restarted(port: u16) -> (Orb, RtEventChannel) {
    let orb = serving_orb_at(&format!("127.0.0.1:{port}"));
    let served = RtEventChannel::start(&orb, RtChannelOptions::default()).unwrap();
    orb.register_plain_key(b"NAV", served.reference().object())
        .expect("a new key");
    (orb, served)
}

#[test]
fn remote_channel_that_dies_and_starts_again_is_found_by_its_corbaloc() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let mut near = Site::new();
    near.federate_with(options(&format!("corbaloc::127.0.0.1:{port}/NAV")));
    let (_proxy, sets) = near.world.connect(&any_of(&wanted()));
    wait_for(|| near.counts(0).failures >= 1);
    for run in 1..=2 {
        let (orb, served) = restarted(port);
        wait_for(|| near.counts(0).connects == run);
        near.await_connected();
        let user = serving_orb();
        let text = orb.object_to_string(served.reference().object());
        let channel = user.string_to_object(&text).unwrap().expect("not nil");
        let admin = EventChannelRef::unchecked_narrow(channel).for_suppliers();
        let proxy = admin.unwrap().unwrap().obtain_push_consumer();
        let supplier = proxy.unwrap().expect("a proxy");
        supplier
            .connect_push_supplier(None, &crate::realtime::publishing(&[]))
            .unwrap();
        push(&supplier, 1, &run.to_string());
        assert_eq!(next(&sets), [run.to_string()]);
        // Without a word: the ORB goes before the channel.
        orb.shutdown(true).expect("it ends");
        user.shutdown(true).expect("it ends");
        wait_for(|| near.counts(0).cuts == run);
    }
    near.end();
}

#[test]
fn gateway_to_its_own_channel_to_nothing_and_with_malformed_text_is_named() {
    let mut site = Site::new();
    site.federate_with(options(&reference(&site.world)));
    let no_channel = site
        .world
        .server
        .object_to_string(site.world.supply(&[]).object());
    site.federate_with(options(&no_channel));
    let (_proxy, _sets) = site.world.connect(&any_of(&wanted()));
    wait_for(|| {
        site.gateways
            .iter()
            .all(|gateway| gateway.failure().is_some())
    });
    assert_eq!(site.gateways[0].failure(), Some(GatewayFailure::OwnChannel));
    assert_eq!(site.gateways[1].failure(), Some(GatewayFailure::NoChannel));
    let refused = Gateway::start(&site.world.server, &site.world.served, options("IOR:zz"));
    assert_eq!(
        refused.err().map(|raised| raised.kind),
        Some(Kind::BadParam)
    );
    assert!(
        site.world
            .served
            .consumers()
            .iter()
            .all(|each| !each.is_hop)
    );
    site.end();
}

#[test]
fn gateway_with_a_filter_that_keeps_events_is_refused() {
    use deckwatch_event::deckwatch_federation::GatewayConsumerRef;
    let site = Site::new();
    let (consumer, _sets) = site.world.consumer();
    let mut ior = consumer.object().ior().clone();
    ior.type_id = GatewayConsumerRef::REPOSITORY_ID.to_owned();
    let gateway = site.world.user.string_to_object(&ior.to_string()).unwrap();
    let gateway = GatewayConsumerRef::unchecked_narrow(gateway.expect("not nil"));
    let qos = list(&[(2, CONJUNCTION), (0, 20), (0, 21)]);
    let outcome = site
        .world
        .proxy_supplier()
        .connect_push_consumer(Some(&gateway.into()), &qos);
    assert!(outcome.is_err());
    site.end();
}

/// Keys of all objects that an ORB may have, with the incarnation in a reference of it: by slot, and by adapter with an
/// id that is made up.
fn guessed(reference: &deckwatch_orb::ObjectRef) -> Vec<Vec<u8>> {
    let own = reference.object_key().expect("a key").to_vec();
    let (magic, incarnation) = (&own[..3], &own[4..12]);
    let mut keys = Vec::new();
    for slot in 0..24_u32 {
        for generation in 0..4_u32 {
            let slot = [slot.to_be_bytes(), generation.to_be_bytes()].concat();
            keys.push([magic, b"T", incarnation, &slot, &[0; 8]].concat());
            keys.push([magic, b"I", incarnation, &slot, &[7; 16]].concat());
        }
    }
    keys
}

#[test]
fn peer_that_guesses_the_keys_of_a_gateway_neither_pushes_nor_changes_what_is_subscribed_to() {
    let (mut near, far) = (Site::new(), Site::new());
    near.federate(&far);
    let (_consumer, at_near) = near.world.connect(&any_of(&wanted()));
    near.await_connected();
    let stranger = Orb::builder().build().expect("an ORB");
    let channel = near.world.served.reference().object();
    let place = near.world.server.endpoints()[0].to_string();
    let subscribed = any_of(&[(9, 99)]);
    for key in guessed(channel) {
        let key: String = key.iter().map(|octet| format!("%{octet:02x}")).collect();
        let url = format!("corbaloc:iiop:1.2@{place}/{key}");
        let object = stranger
            .string_to_object(&url)
            .expect("a URL")
            .expect("not nil");
        // Most lead to no object, or to one of another kind.
        let forged =
            deckwatch_event::rtec_event_comm::PushConsumerRef::unchecked_narrow(object.clone());
        let _ = forged.push(&[event(1, 20, "forged")]);
        let observer =
            deckwatch_event::rtec_event_channel_admin::ObserverRef::unchecked_narrow(object);
        let _ = observer.update_consumer(&subscribed);
    }
    let supplier = far.world.supply(&[]);
    push(&supplier, 9, "last");
    assert_eq!(until_last(&at_near), [""; 0]);
    assert_eq!(near.counts(0).connects, 1, "the subscription is the same");
    near.end();
    far.end();
}

/// A gateway that does not ask its remote channel within a test.
fn unasked(remote: &World) -> GatewayOptions {
    GatewayOptions {
        period: Duration::from_secs(3_600),
        ..options(&reference(remote))
    }
}

#[test]
fn gateway_that_is_closed_or_dropped_leaves_nothing_behind() {
    let (mut near, far) = (Site::new(), Site::new());
    for is_closed in [true, false] {
        near.federate_with(unasked(&far.world));
        // What is wanted changes: it does not wait for its period.
        let (consumer, _sets) = near.world.connect(&any_of(&wanted()));
        near.await_connected();
        assert_eq!(near.gateways[0].remote(), reference(&far.world));
        assert_eq!(far.world.served.consumers().len(), 1);
        let mut gateway = near.gateways.remove(0);
        if is_closed {
            gateway.close();
            assert!(!gateway.is_connected());
            assert!(far.world.served.consumers().is_empty());
        }
        drop(gateway);
        assert!(far.world.served.consumers().is_empty());
        consumer.disconnect_push_supplier().unwrap();
    }
    near.end();
    far.end();
}

#[test]
fn end_of_the_remote_channel_is_noticed_when_it_is_told() {
    let (mut near, far) = (Site::new(), Site::new());
    let (_consumer, _sets) = near.world.connect(&any_of(&wanted()));
    near.federate_with(unasked(&far.world));
    near.await_connected();
    far.world.channel.destroy().unwrap();
    wait_for(|| near.counts(0).cuts == 1);
    wait_for(|| near.counts(0).failures > 0);
    assert!(!near.gateways[0].is_connected());
    near.end();
    far.end();
}

#[test]
fn consumers_that_come_and_go_do_not_make_a_gateway_call_a_dead_remote_more_often() {
    use deckwatch_event::limits::GATEWAY_RETRY_MIN;
    let mut near = Site::new();
    let began = std::time::Instant::now();
    near.federate_with(options("corbaloc::127.0.0.1:1/nobody"));
    for _ in 0..200 {
        let (proxy, _sets) = near.world.connect(&any_of(&wanted()));
        proxy.disconnect_push_supplier().unwrap();
    }
    let (_consumer, _sets) = near.world.connect(&any_of(&wanted()));
    wait_for(|| near.counts(0).failures > 1);
    let pauses = began.elapsed().as_nanos() / GATEWAY_RETRY_MIN.as_nanos();
    let failures = u128::from(near.counts(0).failures);
    assert!(failures <= pauses + 2, "{failures} in {pauses} pauses");
    near.end();
}

#[test]
fn failures_are_said_in_words() {
    assert!(GatewayFailure::Nil.to_string().contains("nil"));
    assert!(
        GatewayFailure::NoChannel
            .to_string()
            .contains("EventChannel")
    );
    assert!(GatewayFailure::OwnChannel.to_string().contains("itself"));
}

#[test]
fn closed_gateway_leaves_no_adapter_behind() {
    let (mut near, far) = (Site::new(), Site::new());
    let (_consumer, _sets) = near.world.connect(&any_of(&wanted()));
    let root = near.world.server.root_poa().unwrap();
    let adapters = || root.the_children().expect("it serves").len();
    assert_eq!(adapters(), 0);
    near.federate(&far);
    near.await_connected();
    assert!(adapters() > 0, "it serves the consumer of the remote");
    near.gateways[0].close();
    wait_for(|| adapters() == 0);
    near.end();
    far.end();
}
