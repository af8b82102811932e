//! A factory of event channels, as the clients of omniEvents use it, over IIOP on loopback.

use crate::access::rule;
use crate::shares::stranger;
use crate::support::{seen_by, serving_orb, try_pulled, wait_for};
use deckwatch_access::{Action, Rule, Table};
use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{EventChannelRef, ProxyPullSupplierRef};
use deckwatch_event::cos_life_cycle::{GenericFactoryCreateObjectError, NameValuePair};
use deckwatch_event::omni_events::event::EventChannelFactoryCreateChannelError;
use deckwatch_event::omni_events::{
    EventChannelFactoryRef, EventChannelRef as MonitoredChannelRef,
};
use deckwatch_event::{Access, ChannelOptions, EventChannelFactory, limits};
use deckwatch_orb::cos_naming::NameComponent;
use deckwatch_orb::{Orb, SystemExceptionKind as Kind};

/// A factory in one ORB, and a second ORB that uses it by its URL.
struct World {
    server: Orb,
    user: Orb,
    served: EventChannelFactory,
    factory: EventChannelFactoryRef,
}

impl World {
    fn new() -> Self {
        Self::with(ChannelOptions::default())
    }

    fn with(options: ChannelOptions) -> Self {
        let (server, user) = (serving_orb(), serving_orb());
        let served = EventChannelFactory::start(&server, options).unwrap();
        let mut world = Self {
            factory: served.reference().clone(),
            server,
            user,
            served,
        };
        let factory = world.at("omniEvents");
        world.factory = EventChannelFactoryRef::narrow(&factory)
            .unwrap()
            .expect("a factory");
        world
    }

    /// The object that a `corbaloc` URL with this key leads to.
    fn at(&self, key: &str) -> deckwatch_orb::ObjectRef {
        let endpoint = self.server.endpoints()[0].to_string();
        let url = format!("corbaloc::{endpoint}/{key}");
        self.user.string_to_object(&url).unwrap().expect("not nil")
    }

    fn create(
        &self,
        criteria: &[NameValuePair],
    ) -> Result<EventChannelRef, GenericFactoryCreateObjectError> {
        let channel = self.factory.create_object(&channel_key(), criteria)?;
        Ok(EventChannelRef::unchecked_narrow(channel.expect("not nil")))
    }

    fn end(&self) {
        self.server.shutdown(true).expect("it ends");
        self.user.shutdown(true).expect("it ends");
    }
}

fn channel_key() -> [NameComponent; 1] {
    [NameComponent {
        id: "EventChannel".to_owned(),
        kind: "object interface".to_owned(),
    }]
}

fn criterion(name: &str, value: Any) -> NameValuePair {
    let name = name.to_owned();
    NameValuePair { name, value }
}

fn named(key: &str) -> NameValuePair {
    criterion("InsName", Any::from_value(key).unwrap())
}

fn puller(channel: &EventChannelRef) -> ProxyPullSupplierRef {
    let admin = channel.for_consumers().unwrap().expect("not nil");
    let proxy = admin.obtain_pull_supplier().unwrap().expect("not nil");
    proxy.connect_pull_consumer(None).unwrap();
    proxy
}

fn push(channel: &EventChannelRef, event: &Any) {
    let admin = channel.for_suppliers().unwrap().expect("not nil");
    let proxy = admin.obtain_push_consumer().unwrap().expect("not nil");
    proxy.connect_push_supplier(None).unwrap();
    proxy.push(event).unwrap();
}

#[test]
fn a_factory_creates_channels_that_know_nothing_of_each_other() {
    let world = World::new();
    assert_eq!(world.factory.supports(&channel_key()), Ok(true));
    assert_eq!(world.factory.is_alive(), Ok(true));
    let (one, other) = (world.create(&[]).unwrap(), world.create(&[]).unwrap());
    let (near, far) = (puller(&one), puller(&other));
    push(&one, &Any::from_value(&7_u32).unwrap());
    assert_eq!(try_pulled(&near), Some(7));
    assert_eq!(try_pulled(&far), None);
    let monitored = MonitoredChannelRef::narrow(one.object()).unwrap();
    assert_eq!(
        monitored.expect("a channel of omniEvents").is_alive(),
        Ok(true)
    );
    assert_eq!(
        (world.served.channels(), world.served.counts().received),
        (2, 1)
    );
    one.destroy().unwrap();
    assert_eq!(
        (world.served.channels(), world.served.counts().received),
        (1, 1)
    );
    world.end();
}

#[test]
fn a_factory_makes_nothing_but_channels() {
    let world = World::new();
    let key = [NameComponent {
        id: "EventChannel".to_owned(),
        kind: String::new(),
    }];
    assert_eq!(world.factory.supports(&key), Ok(false));
    let Err(GenericFactoryCreateObjectError::NoFactory(refused)) =
        world.factory.create_object(&key, &[])
    else {
        panic!("an object of another kind");
    };
    assert_eq!(refused.search_key, key);
    world.end();
}

#[test]
fn a_channel_with_a_key_is_found_by_it_until_it_is_destroyed() {
    let world = World::new();
    let first = world.create(&[named("nav")]).unwrap();
    let found = EventChannelRef::narrow(&world.at("nav")).unwrap();
    let reader = puller(&found.expect("a channel"));
    push(&first, &Any::from_value(&7_u32).unwrap());
    assert_eq!(try_pulled(&reader), Some(7));
    assert!(world.factory.join_channel("nav").unwrap().is_some());
    for taken in ["nav", "omniEvents"] {
        let Err(GenericFactoryCreateObjectError::InvalidCriteria(invalid)) =
            world.create(&[named(taken)])
        else {
            panic!("two objects with the key {taken}");
        };
        assert_eq!(invalid.invalid_criteria[0].name, "InsName");
    }
    assert!(matches!(
        world.factory.create_channel("nav"),
        Err(EventChannelFactoryCreateChannelError::NameAlreadyUsed(_))
    ));
    first.destroy().unwrap();
    assert!(world.factory.join_channel("nav").is_err());
    let second = world.factory.create_channel("nav").unwrap().expect("one");
    let found = EventChannelRef::unchecked_narrow(world.at("nav"));
    let reader = puller(&found);
    push(&second, &Any::from_value(&8_u32).unwrap());
    assert_eq!(try_pulled(&reader), Some(8));
    world.end();
}

#[test]
fn criteria_bound_the_queue_the_pullers_and_the_types_of_a_channel() {
    let world = World::new();
    let number = |name: &str, value: u32| criterion(name, Any::from_value(&value).unwrap());
    let filter = Any::from_value("IDL:omg.org/CosNaming/NameComponent:1.0").unwrap();
    let channel = world
        .create(&[
            number("MaxQueueLength", 2),
            number("MaxNumProxies", 1),
            criterion("FilterId", filter),
        ])
        .unwrap();
    let reader = puller(&channel);
    let passed = Any::from_value(&channel_key()[0]).unwrap();
    for _ in 0..3 {
        push(&channel, &passed);
    }
    // An event of another type would displace one of these.
    push(&channel, &Any::from_value(&7_u32).unwrap());
    for _ in 0..2 {
        let (event, has_event) = reader.try_pull().unwrap();
        assert!(has_event);
        assert_eq!(
            event.extract::<NameComponent>(),
            Ok(channel_key()[0].clone())
        );
    }
    assert!(!reader.try_pull().unwrap().1);
    let admin = channel.for_consumers().unwrap().expect("not nil");
    let second = admin.obtain_pull_supplier().unwrap().expect("not nil");
    assert!(second.connect_pull_consumer(None).is_err());
    world.end();
}

#[test]
fn channels_of_a_factory_are_bounded() {
    let world = World::new();
    let all: Vec<_> = (0..limits::CHANNELS_MAX)
        .map(|_| world.create(&[]).expect("a channel"))
        .collect();
    let Err(GenericFactoryCreateObjectError::System(refused)) = world.create(&[]) else {
        panic!("one channel too many");
    };
    assert_eq!(refused.kind, Kind::NoResources);
    all[0].destroy().unwrap();
    world
        .create(&[])
        .expect("in the place of the destroyed one");
    world.end();
}

#[test]
fn refusals_of_a_factory_and_of_its_channels_are_counted_together() {
    let everywhere = |address, may: &[Action]| Rule {
        on: None,
        ..rule(address, may, None)
    };
    let all = [Action::Supply, Action::Consume, Action::Administer];
    let table = Table::new(vec![
        everywhere("127.0.0.1", &all),
        everywhere("127.0.0.2", &[Action::Supply]),
    ]);
    let world = World::with(ChannelOptions {
        access: Some(Access::new(table)),
        ..ChannelOptions::default()
    });
    let stranger = stranger();
    let factory = seen_by(&stranger, &world.server, world.served.reference().object());
    let factory = EventChannelFactoryRef::unchecked_narrow(factory);
    for _ in 0..2 {
        assert!(factory.create_channel("nav").is_err());
    }
    let channels = [world.create(&[]).unwrap(), world.create(&[]).unwrap()];
    for channel in &channels {
        let channel = seen_by(&stranger, &world.user, channel.object());
        let channel = EventChannelRef::unchecked_narrow(channel);
        let admin = channel.for_consumers().unwrap().expect("not nil");
        assert!(admin.obtain_pull_supplier().is_err());
    }
    assert_eq!(world.served.counts().denied, 4);
    let refusals = world.served.take_refusals();
    let actions: Vec<_> = refusals.iter().filter_map(|one| one.action).collect();
    let (administer, consume) = (Action::Administer, Action::Consume);
    assert_eq!(actions, [administer, administer, consume, consume]);
    assert!(world.served.take_refusals().is_empty());
    // Those of a destroyed channel stay in the sum.
    channels[0].destroy().unwrap();
    assert_eq!(world.served.channels(), 1);
    assert_eq!(world.served.counts().denied, 4);
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn a_channel_is_alive_until_it_is_destroyed() {
    let world = World::new();
    let channel = world.create(&[]).unwrap();
    let monitored = MonitoredChannelRef::unchecked_narrow(channel.object().clone());
    assert_eq!(monitored.is_alive(), Ok(true));
    channel.destroy().unwrap();
    wait_for(|| monitored.is_alive().is_err());
    world.end();
}
