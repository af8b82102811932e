//! Consumers that pull, over IIOP on loopback: what they receive, and what they cost the channel.

use std::sync::Arc;
use std::time::Duration;

use crate::around::Around;
use crate::support::{PATIENCE, World, number, try_pulled, wait_for, whole};
use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    ProxyPullSupplierConnectPullConsumerError, ProxyPullSupplierRef,
};
use deckwatch_event::cos_event_comm::PullSupplierPullError;
use deckwatch_event::{ChannelOptions, WhenFull, limits};
use deckwatch_orb::SystemExceptionKind as Kind;

/// Calls `pull` in a thread. Returns once the call waits in the channel.
fn waiting_pull(
    world: &World,
    proxy: &ProxyPullSupplierRef,
) -> std::thread::JoinHandle<Result<u32, PullSupplierPullError>> {
    let before = world.served.pulls_waiting();
    let proxy = proxy.clone();
    let pull = std::thread::spawn(move || {
        let event = proxy.pull()?;
        Ok(event.extract::<u32>().expect("an unsigned long"))
    });
    wait_for(|| world.served.pulls_waiting() > before);
    pull
}

#[test]
fn pulling_consumers_get_every_pushed_event_in_order() {
    let world = World::new();
    let pullers: Vec<_> = (0..3).map(|_| world.puller()).collect();
    let supplier = world.supplier();
    for value in 0..50 {
        supplier.push(&number(value)).unwrap();
    }
    for puller in &pullers {
        for value in 0..25 {
            assert_eq!(puller.pull().unwrap().extract::<u32>(), Ok(value));
        }
        for value in 25..50 {
            assert_eq!(try_pulled(puller), Some(value));
        }
        assert_eq!(try_pulled(puller), None);
    }
    let counts = world.served.counts();
    assert_eq!((counts.received, counts.delivered), (50, 150));
    world.end();
}

#[test]
fn pulled_events_of_suppliers_reach_consumers_of_both_kinds() {
    let world = World::new();
    let (reference, pushed) = world.consumer();
    world.connect(reference);
    let puller = world.puller();
    let (supplier, stock) = world.pulled_supplier();
    stock.events.lock().unwrap().extend(0..50);
    let proxy = world.obtain_pull_consumer();
    proxy.connect_pull_supplier(Some(&supplier)).unwrap();
    for value in 0..50 {
        assert_eq!(pushed.recv_timeout(PATIENCE), Ok(Some(value)));
        assert_eq!(puller.pull().unwrap().extract::<u32>(), Ok(value));
    }
    assert_eq!(world.served.counts().received, 50);
    world.end();
}

#[test]
fn a_pull_waits_for_its_event() {
    let world = World::new();
    let puller = world.puller();
    let pull = waiting_pull(&world, &puller);
    world.supplier().push(&number(7)).unwrap();
    assert_eq!(pull.join().unwrap(), Ok(7));
    assert_eq!(world.served.pulls_waiting(), 0);
    world.end();
}

#[test]
fn a_disconnect_ends_a_waiting_pull() {
    let world = World::new();
    let puller = world.puller();
    let pull = waiting_pull(&world, &puller);
    puller.disconnect_pull_supplier().unwrap();
    let ended = pull.join().unwrap().unwrap_err();
    assert!(matches!(ended, PullSupplierPullError::Disconnected(_)));
    let gone = puller.object().is_a("IDL:nobody/Asks:1.0").unwrap_err();
    assert_eq!(gone.kind, Kind::ObjectNotExist);
    world.end();
}

#[test]
fn the_end_of_the_channel_ends_a_waiting_pull() {
    let world = World::new();
    let puller = world.puller();
    let pull = waiting_pull(&world, &puller);
    world.channel.destroy().unwrap();
    let ended = pull.join().unwrap().unwrap_err();
    assert!(matches!(ended, PullSupplierPullError::Disconnected(_)));
    world.end();
}

#[test]
fn a_shutdown_of_the_orb_ends_a_waiting_pull() {
    let world = World::new();
    let puller = world.puller();
    let pull = waiting_pull(&world, &puller);
    world.server.shutdown(true).expect("it ends");
    let Err(PullSupplierPullError::System(ended)) = pull.join().unwrap() else {
        panic!("an event of a channel that has ended");
    };
    assert_eq!(ended.kind, Kind::Transient, "the request was abandoned");
    world.user.shutdown(true).expect("it ends");
}

#[test]
fn waiting_pulls_are_bounded_and_leave_threads_for_others() {
    let world = World::new();
    let pullers: Vec<_> = (0..limits::PULLS_WAITING_SHARE)
        .map(|_| world.puller())
        .collect();
    let pulls: Vec<_> = pullers
        .iter()
        .map(|puller| waiting_pull(&world, puller))
        .collect();
    let late = world.puller();
    let Err(PullSupplierPullError::System(refused)) = late.pull() else {
        panic!("one pull too many waits");
    };
    assert_eq!(refused.kind, Kind::Transient);
    assert_eq!(world.served.counts().pulls_refused, 1);
    assert_eq!(try_pulled(&late), None);
    world.supplier().push(&number(7)).unwrap();
    assert!(pulls.into_iter().all(|pull| pull.join().unwrap() == Ok(7)));
    assert_eq!(late.pull().unwrap().extract::<u32>(), Ok(7));
    world.end();
}

#[test]
fn a_consumer_that_does_not_pull_keeps_the_newest_events() {
    let world = World::with(ChannelOptions {
        queue_len: 4,
        ..ChannelOptions::default()
    });
    let puller = world.puller();
    let supplier = world.supplier();
    for value in 0..20 {
        supplier.push(&number(value)).unwrap();
    }
    for value in 16..20 {
        assert_eq!(try_pulled(&puller), Some(value));
    }
    assert_eq!(try_pulled(&puller), None);
    assert_eq!(world.served.counts().displaced, 16);
    world.end();
}

#[test]
fn a_quiet_consumer_gives_way_where_there_is_room_for_no_other() {
    let clock = Arc::new(Around::default());
    let world = World::over_with(clock.clone(), whole());
    let all: Vec<_> = (0..limits::PULLERS_MAX).map(|_| world.puller()).collect();
    let connect = || world.obtain_pull_supplier().connect_pull_consumer(None);
    let Err(ProxyPullSupplierConnectPullConsumerError::System(refused)) = connect() else {
        panic!("connected in the place of one that has just connected");
    };
    assert_eq!(refused.kind, Kind::NoResources);
    clock.pass(limits::PULLER_QUIET_MIN - Duration::from_secs(1));
    assert_eq!(try_pulled(&all[0]), None);
    clock.pass(Duration::from_secs(1));
    connect().expect("connected in the place of a quiet one");
    assert_eq!(try_pulled(&all[0]), None, "who pulls has lost its place");
    let gone = |proxy: &&ProxyPullSupplierRef| proxy.try_pull().is_err();
    assert_eq!(all.iter().filter(gone).count(), 1);
    assert_eq!(world.served.counts().consumers_lost, 1);
    world.end();
}

#[test]
fn events_that_nobody_pulls_take_a_share_of_the_bound_and_cost_the_others_nothing() {
    const EVENTS: u64 = 40;
    let world = World::with(ChannelOptions {
        size_max: limits::CHANNEL_SIZE_MIN,
        ..ChannelOptions::default()
    });
    let silent = [world.puller(), world.puller()];
    let live = world.puller();
    let (reference, pushed) = world.consumer();
    let small = world.supplier();
    let large = Any::from_value(&vec![7_u8; limits::CHANNEL_SIZE_MIN / 16]).expect("it fits");
    let supplier = world.supplier();
    for _ in 0..EVENTS {
        supplier.push(&large).unwrap();
        let (event, has_event) = live.try_pull().expect("an answer");
        assert!(has_event && event == large);
        let size = world.served.size();
        assert!(size <= limits::CHANNEL_SIZE_MIN / 2, "{size} octets");
    }
    let counts = world.served.counts();
    assert!(counts.displaced > 2 * (EVENTS - 5), "{counts:?}");
    world.connect(reference);
    small.push(&number(7)).unwrap();
    assert_eq!(pushed.recv_timeout(PATIENCE), Ok(Some(7)));
    // The newest are kept, and nothing stays counted without an owner.
    for puller in &silent {
        let mut kept = 0;
        while puller.try_pull().expect("an answer").1 {
            kept += 1;
        }
        assert!(kept > 1, "{kept} events");
    }
    assert_eq!(
        live.try_pull().expect("an answer").0.extract::<u32>(),
        Ok(7)
    );
    wait_for(|| world.served.size() == 0);
    world.end();
}

#[test]
fn queue_of_a_puller_keeps_the_oldest_or_the_newest_by_the_policy() {
    for (when_full, kept) in [
        (WhenFull::DropNewest, [0, 1]),
        (WhenFull::DropOldest, [3, 4]),
    ] {
        let world = World::with(ChannelOptions {
            queue_len: 2,
            when_full,
            ..ChannelOptions::default()
        });
        let puller = world.puller();
        let supplier = world.supplier();
        for value in 0..5 {
            supplier.push(&number(value)).unwrap();
        }
        let pulled = [try_pulled(&puller), try_pulled(&puller)];
        assert_eq!(pulled, kept.map(Some));
        assert_eq!(try_pulled(&puller), None);
        assert_eq!(world.served.counts().displaced, 3);
        world.end();
    }
}
