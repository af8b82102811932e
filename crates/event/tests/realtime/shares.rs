//! A peer that takes its whole share of a real-time channel, and suppliers whose process is gone.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::{World, any_of, event, giver, next, publishing, report};
use crate::shares::stranger;
use crate::support::{PATIENCE, seen_by, serving_orb, wait_for};
use deckwatch_event::filter::designator::INTERVAL_TIMEOUT;
use deckwatch_event::limits;
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, EventChannelAppendObserverError as ObserverError, EventChannelRef, ObserverRef,
    ProxyPushConsumerConnectPushSupplierError as SupplierError, ProxyPushConsumerRef,
    ProxyPushSupplierConnectPushConsumerError as ConsumerError, ProxyPushSupplierRef,
};
use deckwatch_event::rtec_event_comm::{PushConsumerRef, PushSupplierRef};
use deckwatch_orb::{Orb, SystemException, SystemExceptionKind as Kind, own_minor};

const SHARE: u8 = 1;

fn world() -> World {
    World::with(RtChannelOptions {
        share_percent: SHARE,
        ..RtChannelOptions::default()
    })
}

/// The channel from the view of another ORB.
pub(super) fn channel_seen_by(orb: &Orb, world: &World) -> EventChannelRef {
    let channel = seen_by(orb, &world.server, world.served.reference().object());
    EventChannelRef::unchecked_narrow(channel)
}

/// Connects a supplier of these events. Returns its proxy.
fn supply_with(
    channel: &EventChannelRef,
    events: &[(i32, i32)],
) -> Result<ProxyPushConsumerRef, SystemException> {
    let admin = channel.for_suppliers()?.expect("an admin");
    let proxy = admin.obtain_push_consumer()?.expect("a proxy");
    match proxy.connect_push_supplier(None, &publishing(events)) {
        Ok(()) => Ok(proxy),
        Err(SupplierError::System(refused)) => Err(refused),
        Err(other) => panic!("a system exception, not {other:?}"),
    }
}

fn supply(channel: &EventChannelRef) -> Result<ProxyPushConsumerRef, SystemException> {
    supply_with(channel, &[])
}

/// Connects a consumer with this filter. Returns its proxy.
pub(super) fn connect(
    channel: &EventChannelRef,
    consumer: &PushConsumerRef,
    qos: &ConsumerQOS,
) -> Result<ProxyPushSupplierRef, SystemException> {
    let admin = channel.for_consumers()?.expect("an admin");
    let proxy = admin.obtain_push_supplier()?.expect("a proxy");
    match proxy.connect_push_consumer(Some(consumer), qos) {
        Ok(()) => Ok(proxy),
        Err(ConsumerError::System(refused)) => Err(refused),
        Err(other) => panic!("a system exception, not {other:?}"),
    }
}

/// A consumer at an address where there is none.
fn nobody_at(orb: &Orb, address: &str) -> PushConsumerRef {
    let url = format!("corbaloc::{address}/nobody");
    let nobody = orb.string_to_object(&url).unwrap();
    PushConsumerRef::unchecked_narrow(nobody.expect("not nil"))
}

fn consume_with(
    orb: &Orb,
    channel: &EventChannelRef,
    qos: &ConsumerQOS,
) -> Result<ProxyPushSupplierRef, SystemException> {
    connect(channel, &nobody_at(orb, "127.0.0.1:1"), qos)
}

fn consume(orb: &Orb, channel: &EventChannelRef) -> Result<(), SystemException> {
    consume_with(orb, channel, &any_of(&[(1, 20)])).map(drop)
}

#[test]
fn stranger_that_takes_its_share_of_a_channel_leaves_others_served() {
    let world = world();
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let consumers = limits::CONSUMERS_MAX * usize::from(SHARE) / 100;
    for _ in 0..consumers {
        consume(&stranger, &channel).expect("a place");
    }
    let refused = consume(&stranger, &channel).expect_err("no place");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL)
    );
    let suppliers = limits::SUPPLIERS_MAX * usize::from(SHARE) / 100;
    let held: Vec<_> = (0..suppliers)
        .map(|_| supply(&channel).expect("a place"))
        .collect();
    let refused = supply(&channel).expect_err("no place");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::ImpLimit, own_minor::SUPPLIER_SHARE_FULL)
    );
    assert_eq!(world.served.counts().refused, 2);
    assert_eq!(report(&world).refused, 2);
    assert_eq!(world.served.counts().suppliers_lost, 0, "all are connected");

    let (_proxy, sets) = world.connect(&any_of(&[(1, 20)]));
    world.supply(&[]).push(&[event(1, 20, "it")]).unwrap();
    assert_eq!(next(&sets), ["it"]);
    held[0].disconnect_push_consumer().unwrap();
    supply(&channel).expect("the place that was given back");
    world.end();
    stranger.shutdown(true).expect("it ends");
}

/// A filter of so many timeouts of a millisecond.
fn timeouts(count: usize) -> ConsumerQOS {
    let mut qos = any_of(&vec![(0, INTERVAL_TIMEOUT); count]);
    for entry in &mut qos.dependencies[1..] {
        entry.event.header.creation_time = 10_000;
    }
    qos
}

#[test]
fn stranger_that_takes_its_share_of_filters_leaves_others_served() {
    const PERCENT: usize = SHARE as usize;
    let world = world();
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let full = |refused: SystemException| (refused.kind, refused.minor);
    let no_room = (Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL);

    // A filter has an entry for its group too.
    let events: Vec<_> = (1..limits::FILTER_ENTRIES_MAX as i32)
        .map(|event_type| (1, 16 + event_type))
        .collect();
    let filters = limits::CHANNEL_ENTRIES_MAX * PERCENT / 100 / limits::FILTER_ENTRIES_MAX;
    assert!(filters > 0);
    let held: Vec<_> = (0..filters)
        .map(|_| consume_with(&stranger, &channel, &any_of(&events)).expect("room"))
        .collect();
    let refused = consume_with(&stranger, &channel, &any_of(&events)).map(drop);
    assert_eq!(refused.map_err(full), Err(no_room));

    let timers = limits::CHANNEL_TIMEOUT_RATE_MAX * PERCENT / 100 / 1_000;
    assert_eq!(timers, 0, "not one of a millisecond");
    let refused = consume_with(&stranger, &channel, &timeouts(1)).map(drop);
    assert_eq!(refused.map_err(full), Err(no_room));

    let published = limits::CHANNEL_PUBLICATIONS_MAX * PERCENT / 100;
    let all: Vec<_> = (0..=published as i32)
        .map(|number| (1, 16 + number))
        .collect();
    let publish = |events| supply_with(&channel, events).map_err(full);
    let supplier = publish(&all[1..]).expect("its share");
    let no_room = (Kind::ImpLimit, own_minor::SUPPLIER_SHARE_FULL);
    assert_eq!(publish(&all[..1]).map(drop), Err(no_room));
    assert_eq!(world.served.counts().refused, 3);

    // Others are served, and room that is released can be taken again.
    let (_proxy, sets) = world.connect(&any_of(&[(9, 20)]));
    world
        .supply(&[(9, 20)])
        .push(&[event(9, 20, "it")])
        .unwrap();
    assert_eq!(next(&sets), ["it"]);
    held[0].disconnect_push_supplier().unwrap();
    consume_with(&stranger, &channel, &any_of(&events)).expect("room again");
    supplier.disconnect_push_consumer().unwrap();
    publish(&all[..1]).expect("room again");
    world.end();
    stranger.shutdown(true).expect("it ends");
}

/// An address where a connection is neither accepted nor refused, and what keeps it so.
fn silent_address() -> (String, (TcpListener, Vec<TcpStream>)) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("a port");
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(100));
    let waiting = std::iter::from_fn(|| connect().ok()).collect();
    (address.to_string(), (listener, waiting))
}

#[test]
fn consumers_that_leave_slowly_hold_their_places_until_their_farewell() {
    let world = World::with(RtChannelOptions {
        share_percent: SHARE,
        disconnect_callbacks: true,
        ..RtChannelOptions::default()
    });
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let (address, silent) = silent_address();
    let nobody = nobody_at(&stranger, &address);
    let filter = any_of(&[(1, 20)]);
    for _ in 0..limits::CONSUMERS_MAX * usize::from(SHARE) / 100 {
        let proxy = connect(&channel, &nobody, &filter).expect("a place");
        proxy.disconnect_push_supplier().expect("once");
    }
    let refused = connect(&channel, &nobody, &filter).expect_err("no place");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL)
    );

    let (_proxy, sets) = world.connect(&any_of(&[(1, 20)]));
    world.supply(&[]).push(&[event(1, 20, "it")]).unwrap();
    assert_eq!(next(&sets), ["it"]);
    // The connection is refused now: their farewell cannot be said.
    drop(silent);
    wait_for(|| connect(&channel, &nobody, &filter).is_ok());
    world.end();
    stranger.shutdown(true).expect("it ends");
}

/// The threads of this process that call suppliers back.
fn farewells() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the kernel lists them");
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "event-farewell").count()
}

#[test]
fn suppliers_that_leave_slowly_hold_few_threads() {
    const SUPPLIERS: usize = 4 * limits::FAREWELLS_MAX;
    let world = World::with(RtChannelOptions {
        disconnect_callbacks: true,
        ..RtChannelOptions::default()
    });
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let (address, silent) = silent_address();
    let nobody = nobody_at(&stranger, &address).object().clone();
    let nobody = PushSupplierRef::unchecked_narrow(nobody);
    for _ in 0..SUPPLIERS {
        let admin = channel
            .for_suppliers()
            .expect("an answer")
            .expect("an admin");
        let proxy = admin.obtain_push_consumer().expect("an answer");
        let proxy = proxy.expect("a proxy");
        let connected = proxy.connect_push_supplier(Some(&nobody), &publishing(&[]));
        connected.expect("a place");
        proxy.disconnect_push_consumer().expect("once");
    }
    // Other tests of this process may have some.
    let found = farewells();
    assert!(found < SUPPLIERS / 2, "{found}");

    // A supplier of another peer is called back meanwhile.
    let (reference, end) = giver(&world);
    let proxy = world.proxy_consumer();
    let connected = proxy.connect_push_supplier(Some(&reference), &publishing(&[]));
    connected.expect("a place");
    proxy.disconnect_push_consumer().expect("once");
    assert_eq!(end.recv_timeout(PATIENCE), Ok(None));
    drop(silent);
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn clients_that_connect_again_hold_what_they_have_now() {
    let world = World::with(RtChannelOptions {
        share_percent: SHARE,
        reconnect: true,
        ..RtChannelOptions::default()
    });
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let (consumer, _sets) = world.consumer();
    let again = |proxy: &ProxyPushSupplierRef, qos: &ConsumerQOS| {
        let outcome = proxy.connect_push_consumer(Some(&consumer), qos);
        match outcome {
            Ok(()) => Ok(()),
            Err(ConsumerError::System(refused)) => Err((refused.kind, refused.minor)),
            Err(other) => panic!("a system exception, not {other:?}"),
        }
    };
    let events: Vec<_> = (1..limits::FILTER_ENTRIES_MAX as i32 - 1)
        .map(|event_type| (1, 16 + event_type))
        .collect();
    // One more than the share has room for, each with a timeout that leaves room for no other.
    let mut timed = any_of(&[&events[..], &[(0, INTERVAL_TIMEOUT)]].concat());
    let last = timed.dependencies.last_mut().expect("the timeout");
    last.event.header.creation_time = 20_000;
    let small = any_of(&[(1, 20)]);
    let proxies: Vec<_> = (0..3)
        .map(|_| consume_with(&stranger, &channel, &small).expect("room"))
        .collect();
    let large = any_of(&events);
    for proxy in &proxies[..2] {
        assert_eq!(again(proxy, &large), Ok(()));
    }
    let no_room = Err((Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL));
    assert_eq!(again(&proxies[2], &timed), no_room);
    // The refused one holds no timeout, and fewer entries make room.
    assert_eq!(again(&proxies[0], &small), Ok(()));
    assert_eq!(again(&proxies[0], &timed), Ok(()));

    let supplier = supply(&channel).expect("a place");
    let all: Vec<_> = (0..limits::CHANNEL_PUBLICATIONS_MAX as i32 / 100)
        .map(|number| (1, 16 + number))
        .collect();
    let publish = |proxy: &ProxyPushConsumerRef, events: &[(i32, i32)]| {
        proxy
            .connect_push_supplier(None, &publishing(events))
            .is_ok()
    };
    assert!(publish(&supplier, &all));
    let other = supply(&channel).expect("a place");
    assert!(!publish(&other, &all[..1]));
    assert!(publish(&supplier, &all[1..]) && publish(&other, &all[..1]));
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn stranger_that_takes_its_share_of_observers_leaves_others_served() {
    let world = World::with(RtChannelOptions {
        share_percent: 10,
        ..RtChannelOptions::default()
    });
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let nobody = stranger.string_to_object("corbaloc::127.0.0.1:1/nobody");
    let nobody = ObserverRef::unchecked_narrow(nobody.unwrap().expect("not nil"));
    // An observer that cannot be called keeps its place for some failures.
    let refused = (0..limits::OBSERVERS_MAX)
        .map(|_| channel.append_observer(Some(&nobody)))
        .find_map(Result::err);
    match refused {
        Some(ObserverError::System(refused)) => assert_eq!(
            (refused.kind, refused.minor),
            (Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL)
        ),
        other => panic!("{other:?}"),
    }
    let handle = world.channel.append_observer(Some(&nobody)).expect("room");
    world.channel.remove_observer(handle).expect("it is there");
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn suppliers_whose_connection_is_closed_give_way_at_the_share_of_their_peer() {
    let world = world();
    let dead = serving_orb();
    let channel = channel_seen_by(&dead, &world);
    let suppliers = limits::SUPPLIERS_MAX * usize::from(SHARE) / 100;
    for _ in 1..suppliers {
        supply(&channel).expect("a place");
    }
    let living = world.supply(&[]);
    supply(&world.channel).expect_err("all are connected");
    dead.shutdown(true).expect("it ends");
    wait_for(|| supply(&world.channel).is_ok());
    assert_eq!(world.served.counts().suppliers_lost, suppliers as u64 - 1);
    living.push(&[event(1, 20, "it")]).unwrap();
    wait_for(|| world.served.counts().received == 1);
    world.end();
}

#[test]
fn suppliers_whose_connection_is_closed_stay_where_there_is_room_and_at_the_share_of_another() {
    let world = world();
    let dead = serving_orb();
    let kept = supply(&channel_seen_by(&dead, &world)).expect("a place");
    dead.shutdown(true).expect("it ends");
    let gone = stranger();
    let channel = channel_seen_by(&gone, &world);
    let suppliers = limits::SUPPLIERS_MAX * usize::from(SHARE) / 100;
    for _ in 0..suppliers {
        supply(&channel).expect("a place");
    }
    gone.shutdown(true).expect("it ends");
    // Its connection was closed before those of the stranger.
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    wait_for(|| supply(&channel).is_ok());
    assert_eq!(world.served.counts().suppliers_lost, suppliers as u64);
    // There is room now.
    world.supply(&[]);
    supply(&channel).expect("a place");
    let counts = world.served.counts();
    let report = report(&world);
    assert_eq!(report.suppliers, 4, "it has stayed");
    assert_eq!(
        (report.suppliers_lost, report.refused),
        (suppliers as u64, counts.refused)
    );
    let object = seen_by(&world.user, &world.server, kept.object());
    let kept = ProxyPushConsumerRef::unchecked_narrow(object);
    kept.push(&[event(1, 20, "it")]).unwrap();
    wait_for(|| world.served.counts().received == 1);
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn supplier_of_another_peer_gives_way_at_the_maximum_of_all() {
    let world = World::new();
    let dead = serving_orb();
    supply(&channel_seen_by(&dead, &world)).expect("a place");
    let first = stranger();
    supply(&channel_seen_by(&first, &world)).expect("a place");
    // Clients in the process of the channel have no share.
    let own = world.served.reference();
    for _ in 2..limits::SUPPLIERS_MAX {
        supply(own).expect("a place");
    }
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let refused = supply(&channel).expect_err("all are connected");
    assert_eq!(refused.kind, Kind::NoResources);
    dead.shutdown(true).expect("it ends");
    wait_for(|| supply(&channel).is_ok());
    assert_eq!(world.served.counts().suppliers_lost, 1);
    assert_eq!(
        supply(&channel).expect_err("full again").kind,
        Kind::NoResources
    );
    world.end();
    first.shutdown(true).expect("it ends");
    stranger.shutdown(true).expect("it ends");
}
