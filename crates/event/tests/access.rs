//! Access tables: who may supply, consume, observe and administer.

use std::net::{IpAddr, Ipv4Addr};

use crate::shares::stranger;
use crate::support::{PATIENCE, World, number, pushed, seen_by, serving_orb};
use deckwatch_access::{Action, Network, Range, Ranges, Rule, Table, Who};
use deckwatch_event::cos_event_channel_admin::EventChannelRef;
use deckwatch_event::cos_event_comm::PushConsumerRef;
use deckwatch_event::{Access, ChannelOptions, ChannelStore, EventChannel};
use deckwatch_orb::{Caller, ObjectRef, Orb, SystemExceptionKind as Kind, own_minor};

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

const ALL: [Action; 3] = [Action::Supply, Action::Consume, Action::Administer];

/// Connects a consumer of the world's second ORB by the connection of another ORB.
fn connect_by(orb: &Orb, world: &World, consumer: &ObjectRef) {
    let admin = channel_seen_by(orb, world).for_consumers().unwrap();
    let proxy = admin.expect("one").obtain_push_supplier().unwrap();
    let consumer = seen_by(orb, &world.user, consumer);
    let consumer = PushConsumerRef::unchecked_narrow(consumer);
    let connected = proxy.expect("one").connect_push_consumer(Some(&consumer));
    connected.expect("permitted");
}

#[test]
fn another_table_disconnects_the_clients_that_it_refuses_and_others_miss_no_event() {
    let rules = vec![rule(HOME, &ALL, None), rule(STRANGER, &ALL, None)];
    let access = access(rules).expect("a table");
    let world = World::with(ChannelOptions {
        access: Some(access.clone()),
        ..ChannelOptions::default()
    });
    let stranger = stranger();
    let (near, events) = world.consumer();
    world.connect(near);
    let (far, far_events) = world.consumer();
    connect_by(&stranger, &world, &far);
    let channel = channel_seen_by(&stranger, &world);
    let consumers = channel.for_consumers().unwrap().expect("one");
    let puller = consumers.obtain_pull_supplier().unwrap().expect("a proxy");
    puller.connect_pull_consumer(None).expect("permitted");
    let suppliers = channel.for_suppliers().unwrap().expect("one");
    let proxy = suppliers.obtain_push_consumer().unwrap().expect("a proxy");
    proxy.connect_push_supplier(None).expect("permitted");
    assert_eq!(pushed(&proxy, 1), Ok(()));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    assert_eq!(far_events.recv_timeout(PATIENCE), Ok(Some(1)));

    let supplier = world.supplier();
    assert_eq!(access.replace(Table::new(vec![rule(HOME, &ALL, None)])), 3);
    assert_eq!(world.served.counts().denied, 3);
    let refusals = world.served.take_refusals();
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let is_stranger = |caller: Caller| matches!(caller, Caller::Tcp(peer) if peer.ip() == address);
    assert!(refusals.iter().all(|refusal| is_stranger(refusal.caller)));
    supplier.push(&number(2)).expect("permitted");
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(2)));
    assert_eq!(far_events.recv_timeout(PATIENCE), Ok(None), "disconnected");
    assert!(far_events.try_recv().is_err(), "no event after that");
    assert_eq!(access.replace(Table::new(vec![rule(HOME, &ALL, None)])), 0);
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn consumer_that_the_table_refuses_after_a_restart_is_not_connected_again() {
    let folder = std::env::temp_dir().join(format!("deckwatch-access-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let file = folder.join("store");
    let start = |rules| {
        let server = serving_orb();
        let store = ChannelStore::open(&file).expect("a store");
        let options = ChannelOptions {
            access: access(rules),
            ..ChannelOptions::default()
        };
        let channel = EventChannel::start_stored(&server, options, store);
        (server, channel.expect("a channel"))
    };
    let (server, channel) = start(vec![rule(HOME, &ALL, None), rule(STRANGER, &ALL, None)]);
    let world = World::serving(server, channel);
    let stranger = stranger();
    let (near, events) = world.consumer();
    world.connect(near);
    let (far, far_events) = world.consumer();
    connect_by(&stranger, &world, &far);
    let World {
        server,
        user,
        served,
        ..
    } = world;
    server.shutdown(true).expect("it ends");
    drop((served, server));

    let (server, channel) = start(vec![rule(HOME, &ALL, None)]);
    let again = World::serving(server, channel);
    assert_eq!(again.served.counts().denied, 1);
    let supplier = again.supplier();
    supplier.push(&number(7)).expect("permitted");
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    again.end();
    assert!(far_events.try_recv().is_err(), "it gets nothing");
    user.shutdown(true).expect("it ends");
    stranger.shutdown(true).expect("it ends");
    std::fs::remove_dir_all(&folder).expect("ours");
}
