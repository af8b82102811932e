//! Suppliers of an event channel that are replaced at the maximum.

use std::sync::Arc;

use crate::around::Around;
use crate::support::{World, connected, number, pushed, whole};
use deckwatch_event::cos_event_channel_admin::ProxyPushConsumerConnectPushSupplierError;
use deckwatch_event::cos_event_comm::{PushSupplier, PushSupplierSkeleton};
use deckwatch_event::limits;
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

/// A supplier that still exists.
struct Present;

impl PushSupplier for Present {
    fn disconnect_push_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn suppliers_that_have_died_give_way_where_there_is_room_for_no_other() {
    let clock = Arc::new(Around::default());
    let world = World::over_with(clock.clone(), whole());
    let present = world.activate(Arc::new(PushSupplierSkeleton::new(Present)));
    let quiet = world.connect_supplier(Some(&present)).unwrap();
    let pushing = world.supplier();
    pushing.push(&number(1)).unwrap();
    let dead = world.nobody();
    let dead: Vec<_> = (2..limits::SUPPLIERS_MAX)
        .map(|_| world.connect_supplier(Some(&dead)).unwrap())
        .collect();
    assert_eq!(
        connected(world.connect_supplier(None)),
        Err(Kind::NoResources),
        "connected in the place of one that has just connected"
    );
    assert_eq!(world.served.counts().suppliers_lost, 0);
    clock.pass(limits::SUPPLIER_QUIET_MIN);
    pushing.push(&number(1)).unwrap();
    for _ in 0..limits::SUPPLIERS_ASKED_MAX {
        let newcomer = world.supplier();
        newcomer.push(&number(2)).unwrap();
    }
    assert_eq!(
        pushed(&dead[0], 3),
        Err(Kind::ObjectNotExist),
        "a dead supplier has kept its place"
    );
    quiet.push(&number(4)).unwrap();
    pushing.push(&number(5)).unwrap();
    let lost = limits::SUPPLIERS_ASKED_MAX as u64;
    assert_eq!(world.served.counts().suppliers_lost, lost);
    world.end();
}

#[test]
fn suppliers_without_a_reference_give_way_only_while_they_are_quiet() {
    let clock = Arc::new(Around::default());
    let world = World::over_with(clock.clone(), whole());
    let all: Vec<_> = (0..limits::SUPPLIERS_MAX)
        .map(|_| world.supplier())
        .collect();
    for supplier in &all {
        supplier.push(&number(1)).unwrap();
    }
    // The second attempt comes immediately after the first, before any supplier was due to push.
    for _ in 0..2 {
        assert_eq!(
            connected(world.connect_supplier(None)),
            Err(Kind::NoResources),
            "connected in the place of one that pushes"
        );
    }
    clock.pass(limits::SUPPLIER_QUIET_MIN);
    all[0].push(&number(2)).unwrap();
    let again = all[0].connect_push_supplier(None);
    let Err(ProxyPushConsumerConnectPushSupplierError::AlreadyConnected(_)) = again else {
        panic!("connected twice: {again:?}");
    };
    assert_eq!(world.served.counts().suppliers_lost, 0, "let go for nobody");
    world.supplier();
    all[0].push(&number(3)).unwrap();
    assert_eq!(
        pushed(&all[1], 3),
        Err(Kind::ObjectNotExist),
        "the one that has been quiet for the longest has kept its place"
    );
    world.end();
}
