//! Typed event channels over IIOP on loopback: the events are calls of an interface that is known at run time only.

mod access;
mod outward;
mod refusals;
mod slow;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::support::{PATIENCE, Stock, number, serving, serving_orb};
use deckwatch_cdr::{Any, Parse as _, Write as _, Writer};
use deckwatch_event::cos_event_channel_admin::{
    ProxyPullConsumerConnectPullSupplierError, ProxyPushConsumerConnectPushSupplierError,
    ProxyPushSupplierConnectPushConsumerError,
};
use deckwatch_event::cos_event_comm::{
    PullSupplier, PullSupplierPullError, PullSupplierRef, PullSupplierSkeleton,
    PullSupplierTryPullError, PushConsumer, PushConsumerPushError, PushConsumerRef,
    PushConsumerSkeleton,
};
use deckwatch_event::cos_typed_event_channel_admin::{
    TypedConsumerAdminRef, TypedEventChannelRef, TypedProxyPushConsumerRef, TypedSupplierAdminRef,
};
use deckwatch_event::cos_typed_event_comm::{
    TypedPullSupplier, TypedPullSupplierSkeleton, TypedPushConsumer, TypedPushConsumerSkeleton,
};
use deckwatch_event::{ChannelOptions, TypedEventChannel, TypedInterface};
use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;
use deckwatch_idl::Model;
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Servant, ServerRequest, SystemException,
    SystemExceptionKind as Kind,
};

const IDL: &str = "
    module Ship {
        struct Position { double latitude; double longitude; };
        interface Named { void renamed(in string name); };
        interface Nav : Named { void moved(in Position to, in unsigned long knots); };
        interface Engine { void stopped(); };
    };";
const NAV: &str = "IDL:Ship/Nav:1.0";
const ENGINE: &str = "IDL:Ship/Engine:1.0";

/// A call of `moved` or `renamed`.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Moved(f64, f64, u32),
    Renamed(String),
    /// The consumer has been disconnected.
    Ended,
}

fn moved(knots: u32) -> Call {
    Call::Moved(54.5, 10.25, knots)
}

impl Call {
    const fn operation(&self) -> &'static str {
        match self {
            Self::Moved(..) => "moved",
            Self::Renamed(_) => "renamed",
            Self::Ended => "ended",
        }
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<(), deckwatch_cdr::EncodeError> {
        match self {
            Self::Moved(latitude, longitude, knots) => {
                latitude.write(w)?;
                longitude.write(w)?;
                knots.write(w)
            }
            Self::Renamed(name) => name.write(w),
            Self::Ended => Ok(()),
        }
    }

    /// Calls the operation of an object.
    fn push(&self, object: &ObjectRef) -> Result<(), SystemException> {
        let write = |w: &mut Writer<'_>| self.write(w);
        object.invoke(self.operation(), write, |_| Ok(()), |_, _| Ok(None))
    }
}

/// An object of the interface `Ship::Nav`.
struct Nav(Sender<Call>);

impl Servant for Nav {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[NAV, "IDL:Ship/Named:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let mut r = request.arguments();
        let call = match request.operation() {
            b"moved" => Call::Moved(
                f64::parse(&mut r)?,
                f64::parse(&mut r)?,
                u32::parse(&mut r)?,
            ),
            b"renamed" => Call::Renamed(String::parse(&mut r)?),
            other => panic!("{}", String::from_utf8_lossy(other)),
        };
        self.0.send(call).expect("the test listens");
        Ok(())
    }
}

/// A typed consumer.
struct Consumer {
    object: ObjectRef,
    calls: Sender<Call>,
}

impl PushConsumer for Consumer {
    fn push<'a>(&'a self, _data: &'a Any) -> Result<(), PushConsumerPushError> {
        panic!("pushed without a type")
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.calls.send(Call::Ended).expect("the test listens");
        Ok(())
    }
}

impl TypedPushConsumer for Consumer {
    fn get_typed_consumer(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.object.clone()))
    }
}

/// An object of the interface `Ship::PullNav` with these numbers of knots.
struct PullNav(Mutex<Vec<u32>>);

/// An object of the interface `Ship::PullNav` with these names.
struct PullNames(Mutex<Vec<String>>);

impl Servant for PullNames {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:Ship/PullNav:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if request.operation() == b"try_moved" {
            return request.reply_with(|w| {
                false.write(w)?;
                moved(0).write(w)
            });
        }
        let name = self.0.lock().expect("whole").pop();
        request.reply_with(|w| {
            name.is_some().write(w)?;
            name.unwrap_or_default().write(w)
        })
    }
}

impl Servant for PullNav {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:Ship/PullNav:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let knots = match request.operation() {
            b"try_moved" => self.0.lock().expect("whole").pop(),
            b"try_renamed" => {
                return request.reply_with(|w| {
                    false.write(w)?;
                    "".write(w)
                });
            }
            other => panic!("{}", String::from_utf8_lossy(other)),
        };
        request.reply_with(|w| {
            knots.is_some().write(w)?;
            moved(knots.unwrap_or_default()).write(w)
        })
    }
}

/// A typed supplier.
struct Supplier(ObjectRef);

impl PullSupplier for Supplier {
    fn pull(&self) -> Result<Any, PullSupplierPullError> {
        Err(SystemException::new(Kind::NoImplement, 0, Completion::No).into())
    }

    fn try_pull(&self) -> Result<(Any, bool), PullSupplierTryPullError> {
        panic!("pulled without a type")
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

impl TypedPullSupplier for Supplier {
    fn get_typed_supplier(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.0.clone()))
    }
}

struct World {
    server: Orb,
    user: Orb,
    served: TypedEventChannel,
    channel: TypedEventChannelRef,
}

impl World {
    fn new() -> Self {
        Self::with(ChannelOptions::default())
    }

    fn with(options: ChannelOptions) -> Self {
        Self::of(serving_orb(), options)
    }

    fn of(server: Orb, options: ChannelOptions) -> Self {
        let user = serving_orb();
        let model = Model::parse("ship.idl", IDL).unwrap();
        let interfaces = [NAV, ENGINE].map(|id| TypedInterface::of(&model, id).unwrap());
        let served = TypedEventChannel::start(&server, interfaces.to_vec(), options).unwrap();
        let text = server.object_to_string(served.reference().object());
        let channel = user.string_to_object(&text).unwrap().expect("not nil");
        Self {
            channel: TypedEventChannelRef::unchecked_narrow(channel),
            server,
            user,
            served,
        }
    }

    fn activate(&self, servant: Arc<dyn Servant>) -> ObjectRef {
        let poa = self.user.root_poa().unwrap();
        let id = poa.activate_object(servant).unwrap();
        poa.id_to_reference(&id).unwrap()
    }

    fn consumers(&self) -> TypedConsumerAdminRef {
        self.channel.for_consumers().unwrap().expect("not nil")
    }

    fn suppliers(&self) -> TypedSupplierAdminRef {
        self.channel.for_suppliers().unwrap().expect("not nil")
    }

    /// A consumer of `Ship::Nav`, and what it receives.
    fn nav_consumer(&self) -> (PushConsumerRef, Receiver<Call>) {
        let (calls, received) = channel();
        let object = self.activate(Arc::new(Nav(calls.clone())));
        let consumer = TypedPushConsumerSkeleton::new(Consumer { object, calls });
        let consumer = self.activate(Arc::new(consumer));
        (PushConsumerRef::unchecked_narrow(consumer), received)
    }

    fn connected_consumer(&self) -> Receiver<Call> {
        let (consumer, calls) = self.nav_consumer();
        let proxy = self.consumers().obtain_typed_push_supplier(NAV).unwrap();
        let proxy = proxy.expect("not nil");
        proxy.connect_push_consumer(Some(&consumer)).unwrap();
        calls
    }

    fn push_consumer(&self) -> TypedProxyPushConsumerRef {
        let proxy = self.suppliers().obtain_typed_push_consumer(NAV);
        proxy.unwrap().expect("not nil")
    }

    /// The object that a connected supplier of `Ship::Nav` calls.
    fn nav(&self) -> ObjectRef {
        let proxy = self.push_consumer();
        proxy.connect_push_supplier(None).unwrap();
        proxy.get_typed_consumer().unwrap().expect("not nil")
    }

    /// The object by which a connected consumer pulls.
    fn pull_nav(&self) -> ObjectRef {
        let proxy = self.consumers().obtain_typed_pull_supplier(NAV);
        let proxy = proxy.unwrap().expect("not nil");
        proxy.connect_pull_consumer(None).unwrap();
        proxy.get_typed_supplier().unwrap().expect("not nil")
    }

    fn end(&self) {
        self.server.shutdown(true).expect("it ends");
        self.user.shutdown(true).expect("it ends");
    }
}

fn read_moved(r: &mut deckwatch_cdr::Reader<'_>) -> Result<Call, deckwatch_cdr::DecodeError> {
    Ok(Call::Moved(f64::parse(r)?, f64::parse(r)?, u32::parse(r)?))
}

/// Calls `try_moved`.
fn try_moved(object: &ObjectRef) -> Option<Call> {
    let read = |r: &mut deckwatch_cdr::Reader<'_>| Ok((bool::parse(r)?, read_moved(r)?));
    let called: Result<_, SystemException> =
        object.invoke("try_moved", |_| Ok(()), read, |_, _| Ok(None));
    let (has_event, call) = called.expect("an answer");
    has_event.then_some(call)
}

/// Calls `moved` of an object by which a consumer pulls.
fn pull_moved(object: &ObjectRef) -> Result<Call, SystemException> {
    object.invoke("moved", |_| Ok(()), read_moved, |_, _| Ok(None))
}

#[test]
fn calls_of_a_supplier_reach_consumers_of_both_kinds_in_order() {
    let world = World::new();
    let pushed = [world.connected_consumer(), world.connected_consumer()];
    let pulling = world.pull_nav();
    let nav = world.nav();
    assert_eq!(nav.is_a(NAV), Ok(true));
    assert_eq!(nav.is_a("IDL:Ship/Named:1.0"), Ok(true), "a base");
    assert_eq!(nav.is_a(ENGINE), Ok(false));
    assert_eq!(pulling.is_a("IDL:Ship/PullNav:1.0"), Ok(true));
    for knots in 0..20 {
        moved(knots).push(&nav).unwrap();
    }
    Call::Renamed("Kiel".to_owned()).push(&nav).unwrap();
    for events in &pushed {
        for knots in 0..20 {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(moved(knots)));
        }
        let renamed = events.recv_timeout(PATIENCE);
        assert_eq!(renamed, Ok(Call::Renamed("Kiel".to_owned())));
    }
    for knots in 0..10 {
        assert_eq!(try_moved(&pulling), Some(moved(knots)));
    }
    for knots in 10..20 {
        assert_eq!(pull_moved(&pulling), Ok(moved(knots)));
    }
    assert_eq!(try_moved(&pulling), None);
    assert_eq!(world.served.counts().received, 21);
    world.end();
}

#[test]
fn a_typed_supplier_is_pulled_by_its_operations() {
    let world = World::new();
    let pushed = world.connected_consumer();
    let object = world.activate(Arc::new(PullNav(vec![3, 2, 1].into())));
    let supplier = world.activate(Arc::new(TypedPullSupplierSkeleton::new(Supplier(object))));
    let supplier = PullSupplierRef::unchecked_narrow(supplier);
    let proxy = world.suppliers().obtain_typed_pull_consumer(NAV);
    let proxy = proxy.unwrap().expect("not nil");
    proxy.connect_pull_supplier(Some(&supplier)).unwrap();
    assert!(matches!(
        proxy.connect_pull_supplier(Some(&supplier)),
        Err(ProxyPullConsumerConnectPullSupplierError::AlreadyConnected(
            _
        ))
    ));
    for knots in 1..=3 {
        assert_eq!(pushed.recv_timeout(PATIENCE), Ok(moved(knots)));
    }
    world.end();
}

#[test]
fn each_operation_of_a_typed_supplier_is_pulled() {
    let world = World::new();
    let pushed = world.connected_consumer();
    let names = vec!["second".to_owned(), "first".to_owned()];
    let object = world.activate(Arc::new(PullNames(names.into())));
    let supplier = world.activate(Arc::new(TypedPullSupplierSkeleton::new(Supplier(object))));
    let proxy = world.suppliers().obtain_typed_pull_consumer(NAV);
    let proxy = proxy.unwrap().expect("not nil");
    let supplier = PullSupplierRef::unchecked_narrow(supplier);
    proxy.connect_pull_supplier(Some(&supplier)).unwrap();
    for name in ["first", "second"] {
        let renamed = Call::Renamed(name.to_owned());
        assert_eq!(pushed.recv_timeout(PATIENCE), Ok(renamed));
    }
    world.end();
}

#[test]
fn a_typed_object_lives_as_long_as_its_proxy_is_connected() {
    let world = World::new();
    let proxy = world.push_consumer();
    let nav = proxy.get_typed_consumer().unwrap().expect("not nil");
    let early = moved(1).push(&nav).unwrap_err();
    assert_eq!(early.kind, Kind::BadInvOrder);
    proxy.connect_push_supplier(None).unwrap();
    moved(2).push(&nav).unwrap();
    let Err(PushConsumerPushError::System(untyped)) = proxy.push(&number(1)) else {
        panic!("a typed proxy has taken an event without a type");
    };
    assert_eq!(untyped.kind, Kind::NoImplement);
    let unknown = Call::Ended.push(&nav).unwrap_err();
    assert_eq!(unknown.kind, Kind::BadOperation);
    let short = |w: &mut Writer<'_>| 1_u32.write(w);
    let short: Result<(), SystemException> =
        nav.invoke("moved", short, |_| Ok(()), |_, _| Ok(None));
    assert_eq!(short.unwrap_err().kind, Kind::Marshal);
    proxy.disconnect_push_consumer().unwrap();
    let late = moved(3).push(&nav).unwrap_err();
    assert_eq!(late.kind, Kind::ObjectNotExist);
    assert_eq!(world.served.counts().received, 1);
    world.end();
}

#[test]
fn the_untyped_side_is_a_channel_of_its_own() {
    let world = World::new();
    let pulling = world.pull_nav();
    let proxy = world.consumers().obtain_pull_supplier();
    let reader = proxy.unwrap().expect("not nil");
    reader.connect_pull_consumer(None).unwrap();
    let proxy = world.suppliers().obtain_push_consumer();
    let supplier = proxy.unwrap().expect("not nil");
    supplier.connect_push_supplier(None).unwrap();
    moved(1).push(&world.nav()).unwrap();
    supplier.push(&number(7)).unwrap();
    let (event, has_event) = reader.try_pull().unwrap();
    assert_eq!((event.extract::<u32>(), has_event), (Ok(7), true));
    assert!(!reader.try_pull().unwrap().1);
    assert_eq!(try_moved(&pulling), Some(moved(1)));
    assert_eq!(try_moved(&pulling), None);
    world.end();
}

#[test]
fn calls_that_need_the_calling_side_of_the_orb_name_their_operation() {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let world = World::of(
        serving(builder.fragment_size(1_024)),
        ChannelOptions::default(),
    );
    let (pushed, nav) = (world.connected_consumer(), world.nav());
    let name = Call::Renamed("x".repeat(4_096));
    for call in [&name, &moved(1)] {
        call.push(&nav).unwrap();
        assert_eq!(pushed.recv_timeout(PATIENCE).as_ref(), Ok(call));
    }
    world.channel.destroy().unwrap();
    assert_eq!(pushed.recv_timeout(PATIENCE), Ok(Call::Ended));
    world.end();
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

#[test]
fn typed_objects_answer_for_their_interfaces_alone() {
    let world = World::new();
    assert_eq!(world.nav().type_id(), NAV);
    assert_eq!(world.pull_nav().type_id(), "IDL:Ship/PullNav:1.0");
    let nav = untyped(&world.nav(), &world.user);
    for (interface, is_its) in [(NAV, true), ("IDL:Ship/Named:1.0", true), (ENGINE, false)] {
        assert_eq!(nav.is_a(interface), Ok(is_its), "{interface}");
    }
    let pulling = untyped(&world.pull_nav(), &world.user);
    for (interface, is_its) in [("IDL:Ship/PullNav:1.0", true), (NAV, false)] {
        assert_eq!(pulling.is_a(interface), Ok(is_its), "{interface}");
    }
    world.end();
}

#[test]
fn a_typed_proxy_of_a_consumer_that_pulls_returns_no_event_of_another_form() {
    let world = World::new();
    let proxy = world.consumers().obtain_typed_pull_supplier(NAV);
    let proxy = proxy.unwrap().expect("not nil");
    let object = proxy.get_typed_supplier().unwrap().expect("not nil");
    assert_eq!(pull_moved(&object).unwrap_err().kind, Kind::BadInvOrder);
    proxy.connect_pull_consumer(None).unwrap();
    moved(1).push(&world.nav()).unwrap();
    let no_implement = |refused: SystemException| assert_eq!(refused.kind, Kind::NoImplement);
    match proxy.pull() {
        Err(PullSupplierPullError::System(refused)) => no_implement(refused),
        other => panic!("{other:?}"),
    }
    match proxy.try_pull() {
        Err(PullSupplierTryPullError::System(refused)) => no_implement(refused),
        other => panic!("{other:?}"),
    }
    assert_eq!(pull_moved(&object), Ok(moved(1)));
    proxy.disconnect_pull_supplier().unwrap();
    assert_eq!(pull_moved(&object).unwrap_err().kind, Kind::ObjectNotExist);
    world.end();
}

#[test]
fn pull_that_waits_ends_with_its_channel() {
    let world = World::new();
    let pulling = world.pull_nav();
    let ended = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pull_moved(&pulling).expect_err("no event comes"));
        for _ in 0..50 {
            assert_eq!(try_moved(&pulling), None);
        }
        world.channel.destroy().unwrap();
        waiting.join().expect("no panic")
    });
    assert_eq!(ended.kind, Kind::ObjectNotExist);
    world.end();
}

#[test]
fn a_typed_proxy_takes_one_client() {
    let world = World::new();
    let proxy = world.push_consumer();
    proxy.connect_push_supplier(None).unwrap();
    assert!(matches!(
        proxy.connect_push_supplier(None),
        Err(ProxyPushConsumerConnectPushSupplierError::AlreadyConnected(
            _
        ))
    ));
    let (consumer, _calls) = world.nav_consumer();
    let proxy = world.consumers().obtain_typed_push_supplier(NAV).unwrap();
    let proxy = proxy.expect("not nil");
    proxy.connect_push_consumer(Some(&consumer)).unwrap();
    assert!(matches!(
        proxy.connect_push_consumer(Some(&consumer)),
        Err(ProxyPushSupplierConnectPushConsumerError::AlreadyConnected(
            _
        ))
    ));
    proxy.disconnect_push_supplier().unwrap();
    world.end();
}

#[test]
fn events_that_wait_in_a_typed_channel_take_room() {
    let world = World::new();
    assert_eq!(world.served.size(), 0);
    let pulling = world.pull_nav();
    let name = Call::Renamed("x".repeat(1_000));
    name.push(&world.nav()).unwrap();
    assert!(world.served.size() >= 1_000, "{}", world.served.size());
    assert_eq!(try_moved(&pulling), None);
    world.end();
}

#[test]
fn untyped_clients_of_a_typed_channel_are_pushed_to_and_pulled_from() {
    let world = World::new();
    let (events, consumer) = {
        let (taken, events) = channel();
        let taker = PushConsumerSkeleton::new(Untyped(taken));
        (events, world.activate(Arc::new(taker)))
    };
    let proxy = world.consumers().obtain_push_supplier().unwrap();
    let consumer = PushConsumerRef::unchecked_narrow(consumer);
    let connected = proxy
        .expect("not nil")
        .connect_push_consumer(Some(&consumer));
    connected.unwrap();
    let stock = Arc::new(Stock::default());
    stock.events.lock().expect("whole").push_back(7);
    let supplier = world.activate(Arc::new(PullSupplierSkeleton::new(stock)));
    let proxy = world.suppliers().obtain_pull_consumer().unwrap();
    let supplier = PullSupplierRef::unchecked_narrow(supplier);
    let connected = proxy
        .expect("not nil")
        .connect_pull_supplier(Some(&supplier));
    connected.unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(7));
    world.end();
}

/// A consumer of numbers.
struct Untyped(Sender<u32>);

impl PushConsumer for Untyped {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        let number = data.extract::<u32>().expect("an unsigned long");
        self.0.send(number).expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}
