//! Typed consumers that are slow or gone. The other consumers get their events all the same, and the octets of all
//! events have a bound. A typed channel ends behind their last call.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Call, Consumer, NAV, Nav, World, moved, pull_moved, try_moved};
use crate::raw::Silent;
use crate::support::{PATIENCE, wait_for};
use deckwatch_cdr::{Parse as _, Reader};
use deckwatch_event::cos_event_channel_admin::ProxyPushSupplierRef;
use deckwatch_event::cos_event_comm::PushConsumerRef;
use deckwatch_event::cos_typed_event_comm::TypedPushConsumerSkeleton;
use deckwatch_event::{ChannelOptions, limits};
use deckwatch_orb::{
    ObjectRef, Servant, ServerRequest, SystemException, SystemExceptionKind as Kind,
};

impl World {
    /// Connects a consumer with this typed object. Returns its proxy, and what it is told of its end.
    fn connect_object(&self, object: ObjectRef) -> (ProxyPushSupplierRef, Receiver<Call>) {
        let (calls, ended) = channel();
        let consumer = TypedPushConsumerSkeleton::new(Consumer { object, calls });
        let consumer = PushConsumerRef::unchecked_narrow(self.activate(Arc::new(consumer)));
        let proxy = self.consumers().obtain_typed_push_supplier(NAV).unwrap();
        let proxy = proxy.expect("not nil");
        proxy.connect_push_consumer(Some(&consumer)).unwrap();
        (proxy, ended)
    }
}

/// Calls `try_renamed`.
fn try_renamed(object: &ObjectRef) -> Option<Call> {
    let read = |r: &mut Reader<'_>| {
        let has_event = bool::parse(r)?;
        let name = Call::Renamed(String::parse(r)?);
        Ok(has_event.then_some(name))
    };
    let called: Result<_, SystemException> =
        object.invoke("try_renamed", |_| Ok(()), read, |_, _| Ok(None));
    called.expect("an answer")
}

#[test]
fn typed_consumer_that_stops_reading_delays_nobody() {
    /// More than the buffers of a connection take.
    const SIZE: usize = 15 << 20;
    let world = World::with(ChannelOptions {
        push_timeout: Duration::from_secs(3_600),
        ..ChannelOptions::default()
    });
    let silent = Silent::new();
    let (_proxy, _ended) = world.connect_object(silent.object_of(NAV, &world.user));
    let (live, nav) = (world.connected_consumer(), world.nav());
    let name = Call::Renamed("x".repeat(SIZE));
    name.push(&nav).unwrap();
    silent
        .first
        .recv_timeout(PATIENCE)
        .expect("its first octet");
    moved(1).push(&nav).unwrap();
    for call in [name, moved(1)] {
        assert!(live.recv_timeout(PATIENCE).expect("a call") == call);
    }
    world.end();
}

#[test]
fn typed_consumer_that_disconnects_is_notified_and_called_no_more() {
    let world = World::new();
    let (calls, received) = channel();
    let object = world.activate(Arc::new(Nav(calls)));
    let (proxy, ended) = world.connect_object(object);
    let nav = world.nav();
    moved(1).push(&nav).unwrap();
    assert_eq!(received.recv_timeout(PATIENCE), Ok(moved(1)));
    proxy.disconnect_push_supplier().unwrap();
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(Call::Ended));
    let live = world.connected_consumer();
    moved(2).push(&nav).unwrap();
    assert_eq!(live.recv_timeout(PATIENCE), Ok(moved(2)));
    assert!(received.try_recv().is_err());
    assert_eq!(world.served.counts().consumers_lost, 0);
    world.end();
}

#[test]
fn a_typed_consumer_that_does_not_pull_keeps_the_newest_calls() {
    let world = World::with(ChannelOptions {
        queue_len: 4,
        ..ChannelOptions::default()
    });
    let (pulling, nav) = (world.pull_nav(), world.nav());
    for knots in 0..20 {
        moved(knots).push(&nav).unwrap();
    }
    for knots in 16..20 {
        assert_eq!(try_moved(&pulling), Some(moved(knots)));
    }
    assert_eq!(try_moved(&pulling), None);
    assert_eq!(world.served.counts().displaced, 16);
    world.end();
}

#[test]
fn a_typed_consumer_that_has_gone_is_let_go_and_the_others_go_on() {
    let world = World::new();
    let live = world.connected_consumer();
    let (calls, _gone) = channel();
    let object = world.activate(Arc::new(Nav(calls)));
    let (_proxy, _ended) = world.connect_object(object.clone());
    let poa = world.user.root_poa().unwrap();
    let id = poa.reference_to_id(&object).unwrap();
    poa.deactivate_object(&id).unwrap();
    let nav = world.nav();
    moved(1).push(&nav).unwrap();
    wait_for(|| world.served.counts().consumers_lost == 1);
    moved(2).push(&nav).unwrap();
    assert_eq!(live.recv_timeout(PATIENCE), Ok(moved(1)));
    assert_eq!(live.recv_timeout(PATIENCE), Ok(moved(2)));
    world.end();
}

#[test]
fn typed_events_that_nobody_pulls_take_a_share_of_the_bound() {
    const EVENTS: u64 = 40;
    let world = World::with(ChannelOptions {
        size_max: limits::CHANNEL_SIZE_MIN,
        ..ChannelOptions::default()
    });
    let (_silent, live) = (world.pull_nav(), world.pull_nav());
    let nav = world.nav();
    let name = Call::Renamed("x".repeat(limits::CHANNEL_SIZE_MIN / 16));
    for knots in 0..EVENTS {
        moved(knots as u32).push(&nav).unwrap();
        name.push(&nav).unwrap();
        assert_eq!(try_renamed(&live).as_ref(), Some(&name));
        let size = world.served.size();
        assert!(size <= limits::CHANNEL_SIZE_MIN / 4, "{size} octets");
    }
    assert!(world.served.counts().displaced >= EVENTS - 4);
    for knots in 0..EVENTS {
        assert_eq!(
            try_moved(&live),
            Some(moved(knots as u32)),
            "small ones stay"
        );
    }
    world.end();
}

/// An object of the interface `Ship::Nav` that answers no call before the test drops the sender.
struct StuckNav {
    released: Mutex<Receiver<()>>,
    called: Arc<Mutex<Vec<String>>>,
}

impl StuckNav {
    fn new(released: Receiver<()>) -> Self {
        Self {
            released: Mutex::new(released),
            called: Arc::default(),
        }
    }
}

impl Servant for StuckNav {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[NAV, "IDL:Ship/Named:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let operation = String::from_utf8_lossy(request.operation()).into_owned();
        self.called.lock().expect("whole").push(operation);
        let _ = self.released.lock().expect("whole").recv(); // The sender is dropped.
        Ok(())
    }
}

#[test]
fn typed_events_for_a_consumer_that_does_not_answer_take_a_share_of_the_bound() {
    const EVENTS: u64 = 40;
    let world = World::with(ChannelOptions {
        size_max: limits::CHANNEL_SIZE_MIN,
        ..ChannelOptions::default()
    });
    let (release, released) = channel();
    let object = world.activate(Arc::new(StuckNav::new(released)));
    let (_proxy, _ended) = world.connect_object(object);
    let (nav, live) = (world.nav(), world.pull_nav());
    let name = Call::Renamed("x".repeat(limits::CHANNEL_SIZE_MIN / 16));
    for knots in 0..EVENTS {
        name.push(&nav).unwrap();
        moved(knots as u32).push(&nav).unwrap();
        assert_eq!(try_moved(&live), Some(moved(knots as u32)));
        assert_eq!(try_renamed(&live).as_ref(), Some(&name));
        let size = world.served.size();
        assert!(size <= limits::CHANNEL_SIZE_MIN / 4, "{size} octets");
    }
    assert!(world.served.counts().displaced >= EVENTS - 4);
    drop(release);
    world.end();
}

#[test]
fn a_typed_channel_has_not_ended_while_a_consumer_is_called_and_only_the_consumer_is_told() {
    let world = World::new();
    let (release, released) = channel();
    let stuck = StuckNav::new(released);
    let called = Arc::clone(&stuck.called);
    let (_proxy, ended) = world.connect_object(world.activate(Arc::new(stuck)));
    moved(1).push(&world.nav()).unwrap();
    let called = || called.lock().expect("whole").clone();
    wait_for(|| called() == ["moved"]);
    world.channel.destroy().unwrap();
    // There is no supplier to notify.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(10));
        assert!(!world.served.has_ended());
    }
    drop(release);
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(Call::Ended));
    wait_for(|| world.served.has_ended());
    assert_eq!(called(), ["moved"]);
    world.end();
}

#[test]
fn the_end_of_a_typed_channel_is_told_behind_the_last_call() {
    let world = World::new();
    let pushed = world.connected_consumer();
    let (nav, pulling) = (world.nav(), world.pull_nav());
    for knots in 0..10 {
        moved(knots).push(&nav).unwrap();
    }
    assert!(!world.served.has_ended());
    world.channel.destroy().unwrap();
    for knots in 0..10 {
        assert_eq!(pushed.recv_timeout(PATIENCE), Ok(moved(knots)));
    }
    assert_eq!(pushed.recv_timeout(PATIENCE), Ok(Call::Ended));
    wait_for(|| world.served.has_ended());
    assert_eq!(moved(1).push(&nav).unwrap_err().kind, Kind::ObjectNotExist);
    let pulled = pull_moved(&pulling).unwrap_err();
    assert_eq!(pulled.kind, Kind::ObjectNotExist);
    world.end();
}
