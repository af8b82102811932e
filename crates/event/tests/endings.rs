//! How an event channel, its threads and its programs end.

use std::sync::Arc;
use std::time::Duration;

use crate::around::Around;
use crate::support::{PATIENCE, World, number, wait_for};
use deckwatch_event::cos_event_channel_admin::EventChannelRef;

#[test]
fn channel_ends_at_once_though_a_consumer_and_a_supplier_do_not_answer() {
    let world = World::new();
    assert!(!world.served.has_ended());
    // It accepts connections and never replies.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("corbaloc::{}/silent", silent.local_addr().unwrap());
    let nobody = world.user.string_to_object(&url).unwrap().expect("not nil");
    world.connect(nobody.clone());
    let (reference, events) = world.consumer();
    world.connect(reference);
    let proxy = world.connect_supplier(Some(&nobody)).unwrap();
    proxy.push(&number(1)).unwrap();
    let hurried = world
        .channel
        .object()
        .with_round_trip_timeout(Some(Duration::from_secs(5)));
    EventChannelRef::unchecked_narrow(hurried)
        .destroy()
        .expect("nobody is waited for");
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(None), "the end is told");
    world.user.shutdown(true).expect("it ends");
    world.server.shutdown(true).expect("it ends");
}

#[test]
fn the_end_of_the_orb_ends_the_thread_of_a_channel_that_nobody_has_destroyed() {
    // The thread holds the transport.
    let held = Arc::new(Around::default());
    let world = World::over(held.clone());
    let (reference, events) = world.consumer();
    world.connect(reference);
    world.supplier().push(&number(7)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    world.server.shutdown(true).expect("it ends");
    world.user.shutdown(true).expect("it ends");
    drop(world);
    wait_for(|| Arc::strong_count(&held) == 1);
}
