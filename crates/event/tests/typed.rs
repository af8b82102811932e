//! Typed event channels over IIOP on loopback: the events are calls of an interface that is known at run time only.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::support::{PATIENCE, number, serving_orb, wait_for};
use deckwatch_cdr::{Any, Parse as _, Write as _, Writer};
use deckwatch_event::cos_event_channel_admin::{
    ProxyPullConsumerConnectPullSupplierError, ProxyPushSupplierConnectPushConsumerError,
};
use deckwatch_event::cos_event_comm::{
    PullSupplier, PullSupplierPullError, PullSupplierRef, PullSupplierTryPullError, PushConsumer,
    PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_event::cos_typed_event_channel_admin::{
    TypedConsumerAdminObtainTypedPullSupplierError, TypedConsumerAdminObtainTypedPushSupplierError,
    TypedConsumerAdminRef, TypedEventChannelRef, TypedProxyPushConsumerRef,
    TypedSupplierAdminObtainTypedPullConsumerError, TypedSupplierAdminObtainTypedPushConsumerError,
    TypedSupplierAdminRef,
};
use deckwatch_event::cos_typed_event_comm::{
    TypedPullSupplier, TypedPullSupplierSkeleton, TypedPushConsumer, TypedPushConsumerSkeleton,
};
use deckwatch_event::{ChannelOptions, TypedEventChannel, TypedInterface, limits};
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
struct PullNav(std::sync::Mutex<Vec<u32>>);

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
        let (server, user) = (serving_orb(), serving_orb());
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
fn an_interface_that_the_channel_does_not_know_is_refused() {
    use TypedConsumerAdminObtainTypedPullSupplierError as PullSupplierError;
    use TypedConsumerAdminObtainTypedPushSupplierError as PushSupplierError;
    use TypedSupplierAdminObtainTypedPullConsumerError as PullConsumerError;
    use TypedSupplierAdminObtainTypedPushConsumerError as PushConsumerError;
    let world = World::new();
    let (consumers, suppliers) = (world.consumers(), world.suppliers());
    let other = "IDL:Ship/Sonar:1.0";
    assert!(matches!(
        consumers.obtain_typed_pull_supplier(other),
        Err(PullSupplierError::InterfaceNotSupported(_))
    ));
    assert!(matches!(
        suppliers.obtain_typed_push_consumer(other),
        Err(PushConsumerError::InterfaceNotSupported(_))
    ));
    assert!(matches!(
        consumers.obtain_typed_push_supplier(other),
        Err(PushSupplierError::NoSuchImplementation(_))
    ));
    assert!(matches!(
        suppliers.obtain_typed_pull_consumer(other),
        Err(PullConsumerError::NoSuchImplementation(_))
    ));
    world.end();
}

#[test]
fn a_client_without_an_object_of_the_interface_gets_a_type_error() {
    let world = World::new();
    let (untyped, _events) = channel();
    let untyped = PushConsumerSkeleton::new(Consumer {
        object: world.channel.object().clone(),
        calls: untyped,
    });
    let untyped = PushConsumerRef::unchecked_narrow(world.activate(Arc::new(untyped)));
    let (nav, _calls) = world.nav_consumer();
    for (consumer, interface) in [(untyped, NAV), (nav, ENGINE)] {
        let proxy = world.consumers().obtain_typed_push_supplier(interface);
        let proxy = proxy.unwrap().expect("not nil");
        assert!(matches!(
            proxy.connect_push_consumer(Some(&consumer)),
            Err(ProxyPushSupplierConnectPushConsumerError::TypeError(_))
        ));
    }
    let object = world.activate(Arc::new(PullNav(Vec::new().into())));
    let supplier = world.activate(Arc::new(TypedPullSupplierSkeleton::new(Supplier(object))));
    let proxy = world.suppliers().obtain_typed_pull_consumer(ENGINE);
    let proxy = proxy.unwrap().expect("not nil");
    assert!(matches!(
        proxy.connect_pull_supplier(Some(&PullSupplierRef::unchecked_narrow(supplier))),
        Err(ProxyPullConsumerConnectPullSupplierError::TypeError(_))
    ));
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
    let object = world.activate(Arc::new(Nav(calls.clone())));
    let consumer = Consumer {
        object: object.clone(),
        calls,
    };
    let consumer = world.activate(Arc::new(TypedPushConsumerSkeleton::new(consumer)));
    let proxy = world.consumers().obtain_typed_push_supplier(NAV).unwrap();
    let consumer = PushConsumerRef::unchecked_narrow(consumer);
    let proxy = proxy.expect("not nil");
    proxy.connect_push_consumer(Some(&consumer)).unwrap();
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

#[test]
fn an_interface_that_is_none_of_events_is_refused_with_its_place() {
    let told = |idl: &str, interface: &str| {
        let model = Model::parse("it.idl", idl).unwrap();
        TypedInterface::of(&model, interface)
            .expect_err("refused")
            .to_string()
    };
    for (declared, expected) in [
        (
            "long o();",
            "it.idl:1:36: `o` is no event: it returns a value",
        ),
        (
            "void o(out long a);",
            "it has an `out` or `inout` parameter",
        ),
        ("void o() raises (E);", "it raises exceptions"),
        (
            "void o(); void try_o();",
            "another operation has its name with `try_`",
        ),
        (
            "readonly attribute long a;",
            "`a` is no event: it returns a value",
        ),
        ("", "`I` has no operation, or too many"),
    ] {
        let said = told(
            &format!("exception E {{}}; interface I {{ {declared} }};"),
            "I",
        );
        assert!(said.contains(expected), "{declared}: {said}");
    }
    let many: String = (0..=limits::OPERATIONS_MAX)
        .map(|place| format!("void o{place}();"))
        .collect();
    let many = told(&format!("interface I {{ {many} }};"), "I");
    assert!(many.contains("too many"), "{many}");
    assert!(told("interface I;", "IDL:I:1.0").contains("only declared"));
    assert!(told("struct S { long a; };", "S").contains("no interface `S`"));
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
    let try_renamed = || {
        let read = |r: &mut deckwatch_cdr::Reader<'_>| {
            let has_event = bool::parse(r)?;
            let name = Call::Renamed(String::parse(r)?);
            Ok(has_event.then_some(name))
        };
        let called: Result<_, SystemException> =
            live.invoke("try_renamed", |_| Ok(()), read, |_, _| Ok(None));
        called.expect("an answer")
    };
    for knots in 0..EVENTS {
        moved(knots as u32).push(&nav).unwrap();
        name.push(&nav).unwrap();
        assert_eq!(try_renamed().as_ref(), Some(&name));
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

/// An object of the interface `Ship::Nav` that answers no call before the test ends.
struct StuckNav(std::sync::Mutex<Receiver<()>>);

impl Servant for StuckNav {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[NAV, "IDL:Ship/Named:1.0"]
    }

    fn dispatch(&self, _: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let _ = self.0.lock().expect("whole").recv(); // The test drops the sender.
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
    let (calls, _ended) = channel();
    let object = world.activate(Arc::new(StuckNav(std::sync::Mutex::new(released))));
    let stuck = TypedPushConsumerSkeleton::new(Consumer { object, calls });
    let stuck = PushConsumerRef::unchecked_narrow(world.activate(Arc::new(stuck)));
    let proxy = world.consumers().obtain_typed_push_supplier(NAV).unwrap();
    let proxy = proxy.expect("not nil");
    proxy.connect_push_consumer(Some(&stuck)).unwrap();
    let (nav, live) = (world.nav(), world.pull_nav());
    let name = Call::Renamed("x".repeat(limits::CHANNEL_SIZE_MIN / 16));
    for knots in 0..EVENTS {
        name.push(&nav).unwrap();
        moved(knots as u32).push(&nav).unwrap();
        assert_eq!(try_moved(&live), Some(moved(knots as u32)));
        let size = world.served.size();
        assert!(size <= limits::CHANNEL_SIZE_MIN / 4, "{size} octets");
    }
    assert!(world.served.counts().displaced >= EVENTS - 4);
    drop(release);
    world.end();
}
