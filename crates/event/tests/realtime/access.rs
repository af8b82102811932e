//! Access tables of a real-time channel: types of subscriptions, of publications and of each event.

use super::observers::{await_update, watcher};
use super::{World, any_of, event, list, next, publishing};
use crate::access::{access, rule};
use crate::support::{PATIENCE, wait_for};
use deckwatch_access::{Action, Table};
use deckwatch_event::deckwatch::ChannelStatusRef;
use deckwatch_event::filter::designator::NEGATION;
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, EventChannelRemoveObserverError,
    ProxyPushConsumerConnectPushSupplierError as SupplierError,
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

#[test]
fn another_table_disconnects_who_subscribes_or_publishes_a_type_that_it_refuses() {
    let may = |last| {
        let rule = |action| rule("127.0.0.1", &[action], Some((16, last)));
        vec![rule(Action::Consume), rule(Action::Supply)]
    };
    let access = access(may(31)).expect("a table");
    let world = World::with(RtChannelOptions {
        access: Some(access.clone()),
        ..RtChannelOptions::default()
    });
    let (_stays, sets) = world.connect(&any_of(&[(0, 16)]));
    let (_goes, refused_sets) = world.connect(&any_of(&[(0, 16), (0, 25)]));
    let allowed = world.supply(&[(1, 16)]);
    let refused = world.supply(&[(1, 25)]);
    allowed.push(&[event(1, 16, "before")]).expect("permitted");
    assert_eq!(next(&sets), ["before"]);
    assert_eq!(next(&refused_sets), ["before"]);
    assert_eq!(access.replace(Table::new(may(20))), 2);
    allowed.push(&[event(1, 16, "after")]).expect("permitted");
    assert_eq!(next(&sets), ["after"]);
    let end = refused_sets.recv_timeout(PATIENCE).expect("told");
    assert!(end.is_none(), "disconnected, without an event");
    assert_eq!(world.served.counts().denied, 2);
    assert!(refused.push(&[event(1, 16, "late")]).is_ok(), "a one-way");
    assert_eq!(access.replace(Table::new(may(20))), 0);
    world.end();
}

#[test]
fn observers_that_another_table_refuses_are_let_go_and_no_longer_told() {
    let may = |actions| vec![rule("127.0.0.1", actions, Some((16, 31)))];
    let all = [Action::Consume, Action::Supply, Action::Observe];
    let access = access(may(&all)).expect("a table");
    let world = World::with(RtChannelOptions {
        access: Some(access.clone()),
        ..RtChannelOptions::default()
    });
    let (watcher, updates) = watcher(&world);
    let handle = world.channel.append_observer(Some(&watcher)).unwrap();
    await_update(&updates, &('S', vec![]));
    // A rule for some events is enough to observe: the observer stays.
    assert_eq!(access.replace(Table::new(may(&all))), 0);
    let _first = world.connect(&any_of(&[(0, 16)]));
    await_update(&updates, &('C', vec![(0, 16)]));

    assert_eq!(access.replace(Table::new(may(&all[..2]))), 1);
    let refusal = world.served.take_refusals()[0].to_string();
    assert!(
        refusal.ends_with(" may not observe (call append_observer of NAV)"),
        "{refusal}"
    );
    let _second = world.connect(&any_of(&[(0, 17)]));
    assert!(world.channel.append_observer(Some(&watcher)).is_err());
    // One thread calls the observers, the earliest first.
    assert_eq!(access.replace(Table::new(may(&all))), 0);
    let removed = world.channel.remove_observer(handle);
    assert!(matches!(
        removed,
        Err(EventChannelRemoveObserverError::CANTREMOVEOBSERVER(_))
    ));
    let (later, told) = self::watcher(&world);
    world.channel.append_observer(Some(&later)).unwrap();
    await_update(&told, &('C', vec![(0, 16), (0, 17)]));
    let late: Vec<_> = updates.try_iter().collect();
    assert!(late.is_empty(), "{late:?}");
    world.end();
}
