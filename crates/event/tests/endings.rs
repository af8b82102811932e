//! How an event channel, its threads and its programs end.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::around::Around;
use crate::raw::Silent;
use crate::support::{PATIENCE, World, number, pushed, wait_for};
use deckwatch_event::cos_event_channel_admin::EventChannelRef;
use deckwatch_event::cos_event_comm::{PushSupplier, PushSupplierSkeleton};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

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

/// A supplier that tells the test of its end.
struct Giver(Mutex<Sender<()>>);

impl PushSupplier for Giver {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        self.0
            .lock()
            .expect("whole")
            .send(())
            .expect("the test listens");
        Ok(())
    }
}

#[test]
fn channel_has_ended_once_its_last_consumer_has_its_events_and_its_suppliers_are_told() {
    let world = World::new();
    let (leave, leaves) = channel();
    let (consumer, events) = world.slow_consumer(leaves);
    world.connect(consumer);
    let (told, ends) = channel();
    let giver = PushSupplierSkeleton::new(Giver(Mutex::new(told)));
    let giver = world.activate(Arc::new(giver));
    let supplier = world.connect_supplier(Some(&giver)).unwrap();
    supplier.push(&number(7)).unwrap();
    world.channel.destroy().unwrap();
    ends.recv_timeout(PATIENCE).expect("it is told");
    for _ in 0..100 {
        assert_eq!(pushed(&supplier, 8), Err(Kind::ObjectNotExist));
        assert!(!world.served.has_ended(), "a consumer has an event to take");
    }
    leave.send(()).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(None));
    wait_for(|| world.served.has_ended());
    assert!(world.channel.destroy().is_err());
    world.end();
}

#[test]
fn channel_has_not_ended_while_a_supplier_is_being_told() {
    let world = World::new();
    let silent = Silent::new();
    let supplier = silent.object_of("IDL:omg.org/CosEventComm/PushSupplier:1.0", &world.user);
    let proxy = world.connect_supplier(Some(&supplier)).unwrap();
    world.channel.destroy().unwrap();
    silent.first.recv_timeout(PATIENCE).expect("it is called");
    assert!(!world.served.has_ended(), "it has not answered");
    wait_for(|| world.served.has_ended());
    assert_eq!(pushed(&proxy, 8), Err(Kind::ObjectNotExist));
    world.end();
}
