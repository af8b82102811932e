//! A peer that takes its whole share of a real-time channel, and suppliers whose process is gone.

use super::{World, any_of, event, next, publishing};
use crate::shares::stranger;
use crate::support::{seen_by, serving_orb, wait_for};
use deckwatch_event::limits;
use deckwatch_event::rt::RtChannelOptions;
use deckwatch_event::rtec_event_channel_admin::{
    EventChannelRef, ProxyPushConsumerConnectPushSupplierError as SupplierError,
    ProxyPushConsumerRef, ProxyPushSupplierConnectPushConsumerError as ConsumerError,
};
use deckwatch_event::rtec_event_comm::PushConsumerRef;
use deckwatch_orb::{Orb, SystemException, SystemExceptionKind as Kind, own_minor};

const SHARE: u8 = 1;

fn world() -> World {
    World::with(RtChannelOptions {
        share_percent: SHARE,
        ..RtChannelOptions::default()
    })
}

/// The channel from the view of another ORB.
fn channel_seen_by(orb: &Orb, world: &World) -> EventChannelRef {
    let channel = seen_by(orb, &world.server, world.served.reference().object());
    EventChannelRef::unchecked_narrow(channel)
}

fn supply(channel: &EventChannelRef) -> Result<ProxyPushConsumerRef, SystemException> {
    let admin = channel.for_suppliers()?.expect("an admin");
    let proxy = admin.obtain_push_consumer()?.expect("a proxy");
    match proxy.connect_push_supplier(None, &publishing(&[])) {
        Ok(()) => Ok(proxy),
        Err(SupplierError::System(refused)) => Err(refused),
        Err(other) => panic!("a system exception, not {other:?}"),
    }
}

fn consume(orb: &Orb, channel: &EventChannelRef) -> Result<(), SystemException> {
    let admin = channel.for_consumers()?.expect("an admin");
    let proxy = admin.obtain_push_supplier()?.expect("a proxy");
    let nobody = orb.string_to_object("corbaloc::127.0.0.1:1/nobody");
    let nobody = PushConsumerRef::unchecked_narrow(nobody.unwrap().expect("not nil"));
    match proxy.connect_push_consumer(Some(&nobody), &any_of(&[(1, 20)])) {
        Ok(()) => Ok(()),
        Err(ConsumerError::System(refused)) => Err(refused),
        Err(other) => panic!("a system exception, not {other:?}"),
    }
}

#[test]
fn stranger_that_takes_its_share_of_a_channel_leaves_others_served() {
    let world = world();
    let stranger = stranger();
    let channel = channel_seen_by(&stranger, &world);
    let consumers = limits::CONSUMERS_MAX * usize::from(SHARE) / 100;
    for _ in 0..consumers {
        consume(&stranger, &channel).expect("a place");
    }
    let refused = consume(&stranger, &channel).expect_err("no place");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::ImpLimit, own_minor::CONSUMER_SHARE_FULL)
    );
    let suppliers = limits::SUPPLIERS_MAX * usize::from(SHARE) / 100;
    let held: Vec<_> = (0..suppliers)
        .map(|_| supply(&channel).expect("a place"))
        .collect();
    let refused = supply(&channel).expect_err("no place");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::ImpLimit, own_minor::SUPPLIER_SHARE_FULL)
    );
    assert_eq!(world.served.counts().refused, 2);
    assert_eq!(world.served.counts().suppliers_lost, 0, "all are connected");

    let (_proxy, sets) = world.connect(&any_of(&[(1, 20)]));
    world.supply(&[]).push(&[event(1, 20, "it")]).unwrap();
    assert_eq!(next(&sets), ["it"]);
    held[0].disconnect_push_consumer().unwrap();
    supply(&channel).expect("the place that was given back");
    world.end();
    stranger.shutdown(true).expect("it ends");
}

#[test]
fn suppliers_whose_connection_is_closed_give_way_at_the_share_of_their_peer() {
    let world = world();
    let dead = serving_orb();
    let channel = channel_seen_by(&dead, &world);
    let suppliers = limits::SUPPLIERS_MAX * usize::from(SHARE) / 100;
    for _ in 1..suppliers {
        supply(&channel).expect("a place");
    }
    let living = world.supply(&[]);
    supply(&world.channel).expect_err("all are connected");
    dead.shutdown(true).expect("it ends");
    wait_for(|| supply(&world.channel).is_ok());
    assert_eq!(world.served.counts().suppliers_lost, suppliers as u64 - 1);
    living.push(&[event(1, 20, "it")]).unwrap();
    wait_for(|| world.served.counts().received == 1);
    world.end();
}
