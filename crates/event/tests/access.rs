//! Access tables: who may supply, consume, observe and administer.

use std::net::{IpAddr, Ipv4Addr};

use crate::shares::stranger;
use crate::support::{PATIENCE, World, number, pushed, seen_by};
use deckwatch_access::{Action, Network, Range, Ranges, Rule, Table, Who};
use deckwatch_event::cos_event_channel_admin::EventChannelRef;
use deckwatch_event::{Access, ChannelOptions};
use deckwatch_orb::{Caller, Orb, SystemExceptionKind as Kind, own_minor};

/// A rule for the peers at one address.
pub(crate) fn rule(address: &str, may: &[Action], types: Option<(i32, i32)>) -> Rule {
    let network: Network = address.parse().expect("an address");
    Rule {
        who: vec![Who::Network(network)],
        may: may.to_vec(),
        on: Some(vec!["NAV".to_owned()]),
        types: types.map(|(first, last)| Ranges::new(vec![Range { first, last }])),
        ..Rule::default()
    }
}

pub(crate) fn access(rules: Vec<Rule>) -> Option<Access> {
    Some(Access::new(Table::new(rules)).named(Some("NAV".to_owned())))
}

const HOME: &str = "127.0.0.1";
const STRANGER: &str = "127.0.0.2";

fn world(rules: Vec<Rule>) -> World {
    World::with(ChannelOptions {
        access: access(rules),
        ..ChannelOptions::default()
    })
}

fn channel_seen_by(orb: &Orb, world: &World) -> EventChannelRef {
    let channel = seen_by(orb, &world.server, world.served.reference().object());
    EventChannelRef::unchecked_narrow(channel)
}

#[test]
fn stranger_does_what_the_table_permits_and_nothing_else() {
    let world = world(vec![
        rule(
            HOME,
            &[Action::Supply, Action::Consume, Action::Administer],
            None,
        ),
        rule(STRANGER, &[Action::Consume], None),
    ]);
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let denied = channel.destroy().expect_err("not permitted");
    assert_eq!(
        (denied.kind, denied.minor),
        (Kind::NoPermission, own_minor::ACCESS_DENIED)
    );
    assert!(denied.to_string().contains("--access"), "{denied}");
    let suppliers = channel.for_suppliers().unwrap().expect("one");
    let denied = suppliers.obtain_push_consumer().expect_err("not permitted");
    assert_eq!(denied.kind, Kind::NoPermission);
    let consumers = channel.for_consumers().unwrap().expect("one");
    let puller = consumers.obtain_pull_supplier().unwrap().expect("a proxy");
    puller.connect_pull_consumer(None).expect("permitted");

    let (consumer, events) = world.consumer();
    world.connect(consumer);
    let supplier = world.supplier();
    supplier.push(&number(7)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    assert!(puller.try_pull().expect("permitted").1);

    // The stranger knows the proxy of another peer.
    let text = supplier.object().to_string();
    let stolen = stranger.string_to_object(&text).unwrap().expect("not nil");
    let stolen =
        deckwatch_event::cos_event_channel_admin::ProxyPushConsumerRef::unchecked_narrow(stolen);
    assert_eq!(pushed(&stolen, 8), Err(Kind::NoPermission));
    supplier.push(&number(9)).expect("still permitted");

    assert_eq!(world.served.counts().denied, 3);
    let refusals = world.served.take_refusals();
    let actions: Vec<_> = refusals
        .iter()
        .filter_map(|refusal| refusal.action)
        .collect();
    assert_eq!(
        actions,
        [Action::Administer, Action::Supply, Action::Supply]
    );
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let is_stranger = |caller: Caller| matches!(caller, Caller::Tcp(peer) if peer.ip() == address);
    assert!(refusals.iter().all(|refusal| is_stranger(refusal.caller)));
    assert!(world.served.take_refusals().is_empty());
    world.channel.destroy().expect("permitted");
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn rule_with_types_does_not_permit_a_channel_without_types() {
    let world = world(vec![rule(HOME, &[Action::Supply], Some((16, 31)))]);
    let admin = world.channel.for_suppliers().unwrap().expect("one");
    let denied = admin.obtain_push_consumer().expect_err("not permitted");
    assert_eq!(denied.kind, Kind::NoPermission);
    world.end();
}
