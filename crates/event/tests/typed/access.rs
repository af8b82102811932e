//! Access tables of a typed channel: its objects have interfaces that no table knows.

use super::{NAV, World, moved, pull_moved, try_moved};
use crate::access::{access, rule};
use crate::shares::stranger;
use crate::support::{PATIENCE, seen_by};
use deckwatch_access::{Action, Table};
use deckwatch_event::ChannelOptions;
use deckwatch_event::cos_typed_event_channel_admin::TypedEventChannelRef;
use deckwatch_orb::SystemExceptionKind as Kind;

const ALL: [Action; 3] = [Action::Supply, Action::Consume, Action::Administer];

#[test]
fn calls_of_typed_objects_need_what_their_proxies_need() {
    let world = World::with(ChannelOptions {
        access: access(vec![
            rule("127.0.0.1", &ALL, None),
            rule("127.0.0.2", &[Action::Consume], None),
            rule("127.0.0.3", &[Action::Supply], None),
        ]),
        ..ChannelOptions::default()
    });
    let stranger = stranger();
    let (nav, pulling) = (world.nav(), world.pull_nav());
    let stolen = seen_by(&stranger, &world.user, &nav);
    let denied = moved(1).push(&stolen).expect_err("not permitted");
    assert_eq!(denied.kind, Kind::NoPermission);
    moved(2).push(&nav).expect("permitted");
    let seen = seen_by(&stranger, &world.user, &pulling);
    assert_eq!(pull_moved(&seen), Ok(moved(2)));

    assert_eq!(world.served.counts().denied, 1);
    let refusals = world.served.take_refusals();
    let actions: Vec<_> = refusals.iter().map(|refusal| refusal.action).collect();
    assert_eq!(actions, [Some(Action::Supply)]);
    assert!(world.served.take_refusals().is_empty());
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn another_table_disconnects_the_typed_consumers_that_it_refuses() {
    let first = vec![
        rule("127.0.0.1", &ALL, None),
        rule("127.0.0.2", &[Action::Consume], None),
    ];
    let access = access(first).expect("a table");
    let world = World::with(ChannelOptions {
        access: Some(access.clone()),
        ..ChannelOptions::default()
    });
    let stranger = stranger();
    let channel = seen_by(&stranger, &world.server, world.served.reference().object());
    let channel = TypedEventChannelRef::unchecked_narrow(channel);
    let consumers = channel.for_consumers().unwrap().expect("not nil");
    let (consumer, refused) = world.nav_consumer();
    let proxy = consumers.obtain_typed_push_supplier(NAV).unwrap();
    let connected = proxy
        .expect("not nil")
        .connect_push_consumer(Some(&consumer));
    connected.expect("permitted");
    let proxy = consumers.obtain_typed_pull_supplier(NAV).unwrap();
    let proxy = proxy.expect("not nil");
    proxy.connect_pull_consumer(None).expect("permitted");
    let pulling = proxy.get_typed_supplier().unwrap().expect("not nil");
    let events = world.connected_consumer();
    let nav = world.nav();
    moved(1).push(&nav).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(moved(1)));
    assert_eq!(refused.recv_timeout(PATIENCE), Ok(moved(1)));
    assert_eq!(try_moved(&pulling), Some(moved(1)));

    let now = vec![
        rule("127.0.0.1", &ALL, None),
        rule("127.0.0.2", &[Action::Supply], None),
    ];
    assert_eq!(access.replace(Table::new(now.clone())), 2);
    moved(2).push(&nav).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(moved(2)));
    let gone = pull_moved(&pulling).expect_err("disconnected");
    assert_eq!(gone.kind, Kind::ObjectNotExist);
    assert_eq!(access.replace(Table::new(now)), 0);
    world.end();
    assert!(refused.try_iter().all(|call| call != moved(2)));
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn peer_that_may_only_supply_does_not_pull_from_a_typed_object() {
    let world = World::with(ChannelOptions {
        access: access(vec![
            rule("127.0.0.1", &ALL, None),
            rule("127.0.0.2", &[Action::Supply], None),
        ]),
        ..ChannelOptions::default()
    });
    let stranger = stranger();
    let (nav, pulling) = (world.nav(), world.pull_nav());
    let seen = seen_by(&stranger, &world.user, &nav);
    moved(1).push(&seen).expect("permitted");
    let stolen = seen_by(&stranger, &world.user, &pulling);
    let denied = pull_moved(&stolen).expect_err("not permitted");
    assert_eq!(denied.kind, Kind::NoPermission);
    assert_eq!(try_moved(&pulling), Some(moved(1)));
    world.end();
    stranger.shutdown(true).expect("it ends");
}
