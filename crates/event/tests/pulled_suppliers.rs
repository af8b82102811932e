//! Suppliers that the channel pulls from: how often it asks, and what a dead or silent one costs.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use crate::support::{PATIENCE, World, number, wait_for};
use deckwatch_event::cos_event_comm::{Disconnected, PullSupplierRef, PullSupplierTryPullError};
use deckwatch_event::{ChannelOptions, limits};
use deckwatch_orb::{Completion, SystemException, SystemExceptionKind as Kind};

/// Connects a supplier that the channel pulls from.
fn pull_from(world: &World, supplier: &PullSupplierRef) {
    let proxy = world.obtain_pull_consumer();
    proxy.connect_pull_supplier(Some(supplier)).unwrap();
}

#[test]
fn a_supplier_that_always_has_an_event_gets_its_share_of_a_period_alone() {
    let world = World::with(ChannelOptions {
        pull_period: limits::PULL_PERIOD_MAX,
        ..ChannelOptions::default()
    });
    let (greedy, stock) = world.pulled_supplier();
    stock.events.lock().unwrap().extend(0..1_000);
    pull_from(&world, &greedy);
    let share = limits::SOURCE_BURST_MAX as usize;
    wait_for(|| stock.calls.load(SeqCst) == share);
    // The channel asks in the order of connecting: it has come past the first supplier.
    let (other, others) = world.pulled_supplier();
    others.events.lock().unwrap().extend(0..3);
    pull_from(&world, &other);
    wait_for(|| others.calls.load(SeqCst) == 4);
    wait_for(|| world.served.counts().received == share as u64 + 3);
    assert_eq!(stock.calls.load(SeqCst), share);
    world.end();
}

#[test]
fn a_supplier_without_events_is_asked_again() {
    let world = World::with(ChannelOptions {
        pull_period: Duration::from_millis(1),
        ..ChannelOptions::default()
    });
    let (supplier, stock) = world.pulled_supplier();
    pull_from(&world, &supplier);
    wait_for(|| stock.calls.load(SeqCst) >= 10);
    assert_eq!(world.served.counts().received, 0);
    world.end();
}

#[test]
fn a_supplier_that_has_ended_is_let_go_at_once() {
    let world = World::new();
    let (supplier, stock) = world.pulled_supplier();
    let ended = PullSupplierTryPullError::from(Disconnected {});
    stock.failures.lock().unwrap().push_back(ended);
    pull_from(&world, &supplier);
    wait_for(|| world.served.counts().suppliers_lost == 1);
    assert_eq!(stock.calls.load(SeqCst), 1);
    world.end();
}

#[test]
fn a_supplier_that_fails_now_and_then_stays() {
    let world = World::with(ChannelOptions {
        pull_period: Duration::from_millis(1),
        ..ChannelOptions::default()
    });
    let (supplier, stock) = world.pulled_supplier();
    let failure = SystemException::new(Kind::NoResources, 0, Completion::No);
    pull_from(&world, &supplier);
    for value in 0..=limits::FAILURES_MAX {
        stock.failures.lock().unwrap().push_back(failure.into());
        stock.events.lock().unwrap().push_back(value);
        wait_for(|| world.served.counts().received > u64::from(value));
    }
    assert_eq!(world.served.counts().suppliers_lost, 0);
    world.end();
}

#[test]
fn dead_and_silent_suppliers_are_let_go_and_the_others_are_served() {
    let world = World::new();
    pull_from(&world, &PullSupplierRef::unchecked_narrow(world.nobody()));
    // It accepts connections and never replies.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("corbaloc::{}/silent", silent.local_addr().unwrap());
    let silent = world.user.string_to_object(&url).unwrap().expect("not nil");
    pull_from(&world, &PullSupplierRef::unchecked_narrow(silent));
    let (live, stock) = world.pulled_supplier();
    pull_from(&world, &live);
    let (reference, events) = world.consumer();
    world.connect(reference);
    let mut value = 0;
    while world.served.counts().suppliers_lost < 2 {
        stock.events.lock().unwrap().push_back(value);
        assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
        value += 1;
    }
    stock.events.lock().unwrap().push_back(value);
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
    world.supplier().push(&number(value + 1)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value + 1)));
    world.end();
}
