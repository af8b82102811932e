//! A peer that takes its whole share of the places, and the others that are still served. The peers are two addresses
//! of loopback.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use crate::around::Around;
use crate::support::{
    PATIENCE, World, connected, number, pushed, seen_by, serving_orb_over, wait_for,
};
use deckwatch_event::ChannelOptions;
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPullConsumerConnectPullSupplierError,
    ProxyPullSupplierConnectPullConsumerError, ProxyPushConsumerRef,
    ProxyPushSupplierConnectPushConsumerError,
};
use deckwatch_event::cos_event_comm::{
    PullConsumerRef, PullSupplierRef, PushConsumerRef, PushSupplierRef,
};
use deckwatch_event::limits;
use deckwatch_orb::{Orb, SystemException, SystemExceptionKind as Kind, own_minor};

/// Percent of the places that a peer may hold in these tests.
const SHARE: u8 = 1;

const fn share_of(total: usize) -> usize {
    total * SHARE as usize / 100
}

/// An ORB that connects from another address than other ORBs of this host.
pub(crate) fn stranger() -> Orb {
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    serving_orb_over(Arc::new(Around::from_address(address)))
}

/// The channel of a world from the view of another ORB.
struct Stranger {
    orb: Orb,
    channel: EventChannelRef,
}

impl Stranger {
    fn to(world: &World) -> Self {
        let orb = stranger();
        let channel = seen_by(&orb, &world.server, world.served.reference().object());
        let channel = EventChannelRef::unchecked_narrow(channel);
        Self { orb, channel }
    }

    fn obtain_push_consumer(&self) -> ProxyPushConsumerRef {
        let admin = self.channel.for_suppliers().unwrap().expect("one");
        admin.obtain_push_consumer().unwrap().expect("a proxy")
    }

    fn connect_consumer(&self) -> Result<(), SystemException> {
        let admin = self.channel.for_consumers().unwrap().expect("one");
        let proxy = admin.obtain_push_supplier().unwrap().expect("a proxy");
        let nobody = self.orb.string_to_object("corbaloc::127.0.0.1:1/nobody");
        let nobody = PushConsumerRef::unchecked_narrow(nobody.unwrap().expect("not nil"));
        match proxy.connect_push_consumer(Some(&nobody)) {
            Ok(()) => Ok(()),
            Err(ProxyPushSupplierConnectPushConsumerError::System(refused)) => Err(refused),
            Err(other) => panic!("a system exception, not {other:?}"),
        }
    }

    fn connect_puller(&self) -> Result<(), SystemException> {
        let admin = self.channel.for_consumers().unwrap().expect("one");
        let proxy = admin.obtain_pull_supplier().unwrap().expect("a proxy");
        match proxy.connect_pull_consumer(None) {
            Ok(()) => Ok(()),
            Err(ProxyPullSupplierConnectPullConsumerError::System(refused)) => Err(refused),
            Err(other) => panic!("a system exception, not {other:?}"),
        }
    }

    fn connect_source(&self, supplier: &PullSupplierRef) -> Result<(), SystemException> {
        let admin = self.channel.for_suppliers().unwrap().expect("one");
        let proxy = admin.obtain_pull_consumer().unwrap().expect("a proxy");
        match proxy.connect_pull_supplier(Some(supplier)) {
            Ok(()) => Ok(()),
            Err(ProxyPullConsumerConnectPullSupplierError::System(refused)) => Err(refused),
            Err(other) => panic!("a system exception, not {other:?}"),
        }
    }
}

fn world_of_shares(clock: &Arc<Around>) -> World {
    let options = ChannelOptions {
        share_percent: SHARE,
        ..ChannelOptions::default()
    };
    World::over_with(clock.clone(), options)
}

/// Connects until a connect is refused. Returns the number of those that were not, and the refusal.
fn fill(mut connect: impl FnMut() -> Result<(), SystemException>) -> (usize, SystemException) {
    for count in 0.. {
        if let Err(refused) = connect() {
            return (count, refused);
        }
    }
    unreachable!("places have an end")
}

#[test]
fn stranger_that_takes_its_share_of_places_leaves_others_served() {
    let world = world_of_shares(&Arc::default());
    let stranger = Stranger::to(&world);
    // The channel calls no supplier of the stranger again within the test.
    let (pulled, _stock) = world.pulled_supplier();
    let kinds = [
        (limits::CONSUMERS_MAX, fill(|| stranger.connect_consumer())),
        (limits::PULLERS_MAX, fill(|| stranger.connect_puller())),
        (
            limits::SOURCES_MAX,
            fill(|| stranger.connect_source(&pulled)),
        ),
        (
            limits::SUPPLIERS_MAX,
            fill(|| {
                let outcome = stranger.obtain_push_consumer().connect_push_supplier(None);
                match connected(outcome) {
                    Ok(()) => Ok(()),
                    Err(kind) => Err(SystemException::new(
                        kind,
                        own_minor::SUPPLIER_SHARE_FULL,
                        deckwatch_orb::Completion::No,
                    )),
                }
            }),
        ),
    ];
    for (total, (count, refused)) in kinds {
        assert_eq!((count, refused.kind), (share_of(total), Kind::ImpLimit));
        let text = refused.to_string();
        assert!(text.contains("--share-per-peer"), "{text}");
    }
    assert_eq!(world.served.counts().refused, 4);

    let (consumer, events) = world.consumer();
    world.connect(consumer);
    let puller = world.puller();
    let supplier = world.supplier();
    supplier.push(&number(7)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(7)));
    assert!(puller.try_pull().expect("served").1);
    world.end();
    stranger.orb.shutdown(true).expect("it ends");
}

#[test]
fn place_that_is_given_back_is_taken_again() {
    let world = world_of_shares(&Arc::default());
    let mut held: Vec<_> = (0..share_of(limits::SUPPLIERS_MAX))
        .map(|_| world.supplier())
        .collect();
    for _ in 0..3 {
        assert_eq!(connected(world.connect_supplier(None)), Err(Kind::ImpLimit));
        held.pop().expect("one").disconnect_push_consumer().unwrap();
        held.push(world.supplier());
    }
    world.end();
}

#[test]
fn quiet_clients_of_a_peer_at_its_share_give_way_to_others_of_that_peer() {
    let clock = Arc::new(Around::default());
    let world = world_of_shares(&clock);
    let stranger = Stranger::to(&world);
    let strange = stranger.obtain_push_consumer();
    strange.connect_push_supplier(None).unwrap();
    let suppliers: Vec<_> = (0..share_of(limits::SUPPLIERS_MAX))
        .map(|_| world.supplier())
        .collect();
    let pullers: Vec<_> = (0..share_of(limits::PULLERS_MAX))
        .map(|_| world.puller())
        .collect();
    let pull = || world.obtain_pull_supplier().connect_pull_consumer(None);
    assert!(pull().is_err());
    assert_eq!(connected(world.connect_supplier(None)), Err(Kind::ImpLimit));
    clock.pass(limits::SUPPLIER_QUIET_MIN);
    world.supplier();
    pull().expect("in the place of a quiet one");
    assert_eq!(pushed(&suppliers[0], 1), Err(Kind::ObjectNotExist));
    assert!(pullers.iter().any(|puller| puller.try_pull().is_err()));
    strange
        .push(&number(2))
        .expect("a client of another peer stays");
    let counts = world.served.counts();
    assert_eq!((counts.suppliers_lost, counts.consumers_lost), (1, 1));
    world.end();
    stranger.orb.shutdown(true).expect("it ends");
}

#[test]
fn proxies_that_a_stranger_obtains_do_not_displace_those_of_others() {
    let world = world_of_shares(&Arc::default());
    let stranger = Stranger::to(&world);
    let waiting = world.obtain_push_consumer();
    let first = stranger.obtain_push_consumer();
    for _ in 0..share_of(limits::PROXIES_WAITING_MAX) {
        stranger.obtain_push_consumer();
    }
    assert_eq!(
        connected(first.connect_push_supplier(None)),
        Err(Kind::ObjectNotExist)
    );
    assert_eq!(connected(waiting.connect_push_supplier(None)), Ok(()));
    world.end();
    stranger.orb.shutdown(true).expect("it ends");
}

#[test]
fn clients_that_leave_slowly_hold_no_serving_thread() {
    const PORT: u16 = 1;
    let threads: Arc<Mutex<Vec<String>>> = Arc::default();
    let connecting = Arc::clone(&threads);
    let transport = Around::asking(move |endpoint, _| {
        if endpoint.port() == Some(PORT) {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default().to_owned();
            connecting.lock().expect("whole").push(name);
        }
        Ok(())
    });
    let world = World::over(Arc::new(transport));
    let stranger = Stranger::to(&world);
    let url = format!("corbaloc::127.0.0.1:{PORT}/client");
    let client = stranger.orb.string_to_object(&url);
    let client = client.unwrap().expect("not nil");

    let proxy = stranger.obtain_push_consumer();
    let supplier = PushSupplierRef::unchecked_narrow(client.clone());
    proxy.connect_push_supplier(Some(&supplier)).unwrap();
    proxy.disconnect_push_consumer().unwrap();

    let admin = stranger.channel.for_suppliers().unwrap().expect("one");
    let proxy = admin.obtain_pull_consumer().unwrap().expect("a proxy");
    let supplier = PullSupplierRef::unchecked_narrow(client.clone());
    proxy.connect_pull_supplier(Some(&supplier)).unwrap();
    proxy.disconnect_pull_consumer().unwrap();

    let admin = stranger.channel.for_consumers().unwrap().expect("one");
    let proxy = admin.obtain_pull_supplier().unwrap().expect("a proxy");
    let consumer = PullConsumerRef::unchecked_narrow(client);
    proxy.connect_pull_consumer(Some(&consumer)).unwrap();
    proxy.disconnect_pull_supplier().unwrap();

    let seen = |is: fn(&str) -> bool| {
        let threads = threads.lock().expect("whole");
        threads.iter().any(|name| is(name))
    };
    let is_other = |name: &str| !["event-farewell", "channel-pull"].contains(&name);
    assert!(!seen(is_other), "{threads:?}");
    wait_for(|| seen(|name| name == "event-farewell"));
    world.end();
    stranger.orb.shutdown(true).expect("it ends");
}
