//! Access tables of a real-time channel: types of subscriptions, of publications and of each event.

use super::{World, any_of, event, list, next, publishing};
use crate::access::{access, rule};
use crate::support::wait_for;
use deckwatch_access::Action;
use deckwatch_event::deckwatch::ChannelStatusRef;
use deckwatch_event::filter::designator::NEGATION;
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, ProxyPushConsumerConnectPushSupplierError as SupplierError,
    ProxyPushSupplierConnectPushConsumerError as ConsumerError,
};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

fn consume(world: &World, qos: &ConsumerQOS) -> Result<(), SystemException> {
    let (consumer, _sets) = world.consumer();
    match world
        .proxy_supplier()
        .connect_push_consumer(Some(&consumer), qos)
    {
        Ok(()) => Ok(()),
        Err(ConsumerError::System(refused)) => Err(refused),
        Err(other) => panic!("a system exception, not {other:?}"),
    }
}

#[test]
fn types_of_subscriptions_publications_and_events_are_checked() {
    let world = World::with(RtChannelOptions {
        access: access(vec![
            rule("127.0.0.1", &[Action::Consume], Some((16, 31))),
            rule("127.0.0.1", &[Action::Supply], Some((16, 20))),
        ]),
        ..RtChannelOptions::default()
    });
    let is_denied = |outcome: Result<(), SystemException>| {
        assert_eq!(outcome.expect_err("not permitted").kind, Kind::NoPermission);
    };
    consume(&world, &any_of(&[(0, 16), (3, 31)])).expect("permitted");
    is_denied(consume(&world, &any_of(&[(0, 16), (3, 32)])));
    is_denied(consume(&world, &any_of(&[(3, 0)])));
    is_denied(consume(&world, &list(&[(0, NEGATION), (0, 16)])));

    let refused = world
        .proxy_consumer()
        .connect_push_supplier(None, &publishing(&[(1, 16), (1, 21)]));
    assert!(
        matches!(refused, Err(SupplierError::System(raised)) if raised.kind == Kind::NoPermission)
    );
    let (_proxy, sets) = world.connect(&any_of(&[(0, 20), (0, 21)]));
    let declared = world.supply(&[(1, 20)]);
    let undeclared = world.supply(&[]);
    declared.push(&[event(1, 21, "forged")]).unwrap();
    undeclared
        .push(&[event(1, 20, "good"), event(1, 21, "forged")])
        .unwrap();
    undeclared.push(&[event(1, 0, "of any type")]).unwrap();
    wait_for(|| world.served.counts().denied == 7);
    undeclared.push(&[event(1, 20, "permitted")]).unwrap();
    assert_eq!(next(&sets), ["permitted"]);
    assert_eq!(world.served.counts().received, 1, "refused events are none");

    let status = ChannelStatusRef::unchecked_narrow(world.channel.object().clone());
    is_denied(status.report().map(drop));
    is_denied(world.channel.destroy());
    assert_eq!(world.served.counts().denied, 9);
    let refusal = world.served.take_refusals()[0].to_string();
    assert!(
        refusal.ends_with(" may not consume (type 32, source 3)"),
        "{refusal}"
    );
    world.end();
}
