//! Consumers that read events in the message that brought them, behind their servants.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::realtime::{self, any_of, event};
use crate::support::{PATIENCE, World, number};
use deckwatch_event::cos_event_comm::{self, Disconnected, PushConsumerPushError};
use deckwatch_event::received::{
    AnyConsumer, AnyConsumerServant, EventConsumer, EventConsumerServant, ReceivedAny,
    ReceivedEvents,
};
use deckwatch_event::rtec_event_comm::{self, EventHeader};
use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;
use deckwatch_orb::{ObjectRef, Orb, SystemException, SystemExceptionKind as Kind};

/// Sends each event to the test, and `None` when it is disconnected.
struct Taker(Mutex<Sender<Option<u32>>>);

impl Taker {
    fn new() -> (Self, Receiver<Option<u32>>) {
        let (taken, events) = channel();
        (Self(Mutex::new(taken)), events)
    }

    fn take(&self, what: Option<u32>) {
        self.0
            .lock()
            .expect("whole")
            .send(what)
            .expect("the test listens");
    }
}

/// The event that the consumer refuses.
const REFUSED: u32 = 13;

impl AnyConsumer for Taker {
    fn push(&self, event: ReceivedAny<'_>) -> Result<(), PushConsumerPushError> {
        let event = event.decode().map_err(SystemException::from)?;
        let value = event.extract::<u32>().expect("an unsigned long");
        if value == REFUSED {
            return Err(Disconnected {}.into());
        }
        self.take(Some(value));
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.take(None);
        Ok(())
    }
}

impl EventConsumer for Taker {
    fn push(&self, events: ReceivedEvents<'_>) -> Result<(), SystemException> {
        for event in events {
            let EventHeader { r#type, .. } = event?.header;
            self.take(Some(r#type as u32));
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.take(None);
        Ok(())
    }
}

/// A reference to the same object that says nothing of its type.
fn untyped(object: &ObjectRef, orb: &Orb) -> ObjectRef {
    let profile = object.ior().iiop_profiles().next();
    let profile = profile.expect("a profile").expect("whole");
    let profile = IiopProfile::new(&profile.host, profile.port, &profile.object_key);
    let ior = Ior::with_iiop("", &profile).expect("a reference");
    let object = orb.string_to_object(&ior.to_string()).expect("sound");
    object.expect("not nil")
}

#[track_caller]
fn check_interface(object: &ObjectRef, orb: &Orb, interface: &str, other: &str) {
    assert_eq!(object.type_id(), interface);
    let object = untyped(object, orb);
    assert_eq!(object.is_a(interface), Ok(true));
    assert_eq!(object.is_a(other), Ok(false));
    let unknown: Result<(), SystemException> =
        object.invoke("pull", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
    assert_eq!(unknown.unwrap_err().kind, Kind::BadOperation);
}

#[test]
fn consumer_of_a_cos_channel_takes_events_until_it_is_disconnected() {
    let world = World::new();
    let (taker, events) = Taker::new();
    // As an `Arc`, which the program may keep.
    let servant = AnyConsumerServant::new(Arc::new(taker));
    let object = world.activate(Arc::new(servant));
    check_interface(
        &object,
        &world.server,
        cos_event_comm::PushConsumerRef::REPOSITORY_ID,
        rtec_event_comm::PushConsumerRef::REPOSITORY_ID,
    );
    let proxy = world.connect(object);
    let supplier = world.supplier();
    supplier.push(&number(7)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    proxy.disconnect_push_supplier().unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(None));
    world.end();
}

#[test]
fn consumer_that_raises_disconnected_is_removed() {
    let world = World::new();
    let (taker, events) = Taker::new();
    world.connect(world.activate(Arc::new(AnyConsumerServant::new(taker))));
    let supplier = world.supplier();
    for value in [7, REFUSED] {
        supplier.push(&number(value)).unwrap();
    }
    crate::support::wait_for(|| world.served.counts().consumers_lost == 1);
    assert_eq!(world.served.counts().failed, 1);
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    world.end();
}

#[test]
fn consumer_of_a_real_time_channel_takes_events_until_it_is_disconnected() {
    let world = realtime::World::new();
    let (taker, events) = Taker::new();
    let servant = EventConsumerServant::new(Arc::new(taker));
    let object = world.activate(Arc::new(servant));
    check_interface(
        &object,
        &world.server,
        rtec_event_comm::PushConsumerRef::REPOSITORY_ID,
        cos_event_comm::PushConsumerRef::REPOSITORY_ID,
    );
    let consumer = rtec_event_comm::PushConsumerRef::unchecked_narrow(object);
    let proxy = world.proxy_supplier();
    proxy
        .connect_push_consumer(Some(&consumer), &any_of(&[(0, 20), (0, 21)]))
        .unwrap();
    let supplier = world.supply(&[]);
    supplier
        .push(&[event(1, 20, "first"), event(1, 21, "second")])
        .unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(20)));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(21)));
    world.channel.destroy().unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(None));
    world.end();
}

#[test]
fn measured_consumer_of_either_kind_counts_its_pushes() {
    use deckwatch_event::handler_times::{HandlerTimes, MeasuredConsumer};
    use deckwatch_event::rtec_event_comm::{Event, PushConsumer, PushConsumerSkeleton};

    struct Decoded(Taker);

    impl PushConsumer for Decoded {
        fn push(&self, data: &[Event]) -> Result<(), SystemException> {
            data.iter()
                .for_each(|event| self.0.take(Some(event.header.r#type as u32)));
            Ok(())
        }

        fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
            self.0.take(None);
            Ok(())
        }
    }

    for is_decoded in [true, false] {
        let world = realtime::World::new();
        let (taker, events) = Taker::new();
        let times = Arc::new(HandlerTimes::new(std::time::Duration::from_secs(1)));
        let servant: Arc<dyn deckwatch_orb::Servant> = if is_decoded {
            let consumer = MeasuredConsumer::new(Decoded(taker), Arc::clone(&times));
            Arc::new(PushConsumerSkeleton::new(consumer))
        } else {
            let consumer = MeasuredConsumer::new(taker, Arc::clone(&times));
            Arc::new(EventConsumerServant::new(consumer))
        };
        let consumer = world.activate(servant);
        let consumer = rtec_event_comm::PushConsumerRef::unchecked_narrow(consumer);
        let proxy = world.proxy_supplier();
        proxy
            .connect_push_consumer(Some(&consumer), &any_of(&[(0, 20)]))
            .unwrap();
        let supplier = world.supply(&[]);
        for _ in 0..3 {
            supplier.push(&[event(1, 20, "a")]).unwrap();
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(20)));
        }
        crate::support::wait_for(|| times.read().executions == 3);
        world.channel.destroy().unwrap();
        assert_eq!(events.recv_timeout(PATIENCE), Ok(None));
        assert_eq!(times.read().executions, 3);
        world.end();
    }
}
