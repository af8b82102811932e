//! Interfaces that a typed channel does not take, and clients without the object of one.

use std::sync::Arc;
use std::sync::mpsc::channel;

use super::{Consumer, ENGINE, NAV, PullNav, Supplier, World, moved};
use crate::shares::stranger;
use crate::support::{PATIENCE, seen_by};
use deckwatch_event::cos_event_channel_admin::{
    ProxyPullConsumerConnectPullSupplierError, ProxyPushSupplierConnectPushConsumerError,
};
use deckwatch_event::cos_event_comm::{PullSupplierRef, PushConsumerRef, PushConsumerSkeleton};
use deckwatch_event::cos_typed_event_channel_admin::{
    TypedConsumerAdminObtainTypedPullSupplierError, TypedConsumerAdminObtainTypedPushSupplierError,
    TypedEventChannelRef, TypedSupplierAdminObtainTypedPullConsumerError,
    TypedSupplierAdminObtainTypedPushConsumerError,
};
use deckwatch_event::cos_typed_event_comm::TypedPullSupplierSkeleton;
use deckwatch_event::{ChannelOptions, TypedInterface, limits};
use deckwatch_idl::Model;
use deckwatch_orb::{SystemExceptionKind as Kind, own_minor};

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
fn stranger_that_takes_its_share_of_typed_consumers_leaves_others_served() {
    let world = World::with(ChannelOptions {
        share_percent: 1,
        ..ChannelOptions::default()
    });
    let stranger = stranger();
    let channel = seen_by(&stranger, &world.server, world.served.reference().object());
    let channel = TypedEventChannelRef::unchecked_narrow(channel);
    let (consumer, _calls) = world.nav_consumer();
    let connect = || {
        let admin = channel.for_consumers().unwrap().expect("not nil");
        let proxy = admin.obtain_typed_push_supplier(NAV).unwrap();
        proxy
            .expect("not nil")
            .connect_push_consumer(Some(&consumer))
    };
    for _ in 0..limits::TYPED_CONSUMERS_MAX / 100 {
        connect().expect("a place");
    }
    match connect() {
        Err(ProxyPushSupplierConnectPushConsumerError::System(refused)) => assert_eq!(
            (refused.kind, refused.minor),
            (Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL)
        ),
        other => panic!("{other:?}"),
    }
    let served = world.connected_consumer();
    moved(7).push(&world.nav()).unwrap();
    assert_eq!(served.recv_timeout(PATIENCE), Ok(moved(7)));
    world.end();
    stranger.shutdown(true).expect("it ends");
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
