//! Where a channel is led by consumers that peers over the network give, also after a restart from its store.

use std::sync::Arc;

use crate::masked::Masked;
use crate::support::{seen_by, serving, wait_for};
use deckwatch_event::cos_event_channel_admin::{
    EventChannelRef, ProxyPushSupplierConnectPushConsumerError,
};
use deckwatch_event::cos_event_comm::PushConsumerRef;
use deckwatch_event::deckwatch::ChannelStatusRef;
use deckwatch_event::{ChannelOptions, ChannelStore, EventChannel};
use deckwatch_orb::{Orb, OrbBuilder, SystemException, SystemExceptionKind as Kind, own_minor};

const NOBODY: &str = "corbaloc::127.0.0.1:1/nobody";

/// An ORB with this reach, whose peers over TCP are strangers if the transport masks them.
fn orb_with(reach: &str, mask: impl FnOnce(OrbBuilder) -> OrbBuilder) -> Orb {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    serving(mask(builder).reach(reach.parse().expect("networks")))
}

fn masked(builder: OrbBuilder) -> OrbBuilder {
    builder.transport(Arc::new(Masked::default()))
}

/// Connects a consumer by a client's own connection.
fn connect(server: &Orb, channel: &EventChannel) -> Result<(), SystemException> {
    let orb = Orb::builder().build().expect("an ORB");
    let channel = seen_by(&orb, server, channel.reference().object());
    let channel = EventChannelRef::unchecked_narrow(channel);
    let admin = channel.for_consumers().expect("served").expect("one");
    let proxy = admin.obtain_push_supplier().expect("served");
    let nobody = orb.string_to_object(NOBODY).expect("sound");
    let nobody = PushConsumerRef::unchecked_narrow(nobody.expect("not nil"));
    let connected = proxy.expect("a proxy").connect_push_consumer(Some(&nobody));
    connected.map_err(|error| match error {
        ProxyPushSupplierConnectPushConsumerError::System(refused) => refused,
        other => panic!("a system exception, not {other:?}"),
    })
}

/// How many consumers a channel pushes to.
fn consumers(channel: &EventChannel) -> u32 {
    let status = ChannelStatusRef::unchecked_narrow(channel.reference().object().clone());
    status.report().expect("it answers").consumers
}

#[test]
fn consumer_that_a_stranger_gives_is_connected_only_where_it_may_lead() {
    let outcome = |orb: Orb| {
        let channel = EventChannel::start(&orb, ChannelOptions::default()).expect("a channel");
        let outcome = connect(&orb, &channel);
        if outcome.is_err() {
            // A consumer that was refused does not keep the channel.
            channel.reference().destroy().expect("it ends");
            wait_for(|| channel.has_ended());
        }
        outcome
    };
    let refused = outcome(orb_with("any", masked)).expect_err("loopback");
    assert_eq!(
        (refused.kind, refused.minor),
        (Kind::NoPermission, own_minor::OUT_OF_REACH)
    );
    assert_eq!(outcome(orb_with("127.0.0.0/8", masked)), Ok(()));
    assert_eq!(outcome(orb_with("any", |builder| builder)), Ok(()));
}

#[test]
fn consumer_that_a_stranger_gave_leads_no_further_after_a_restart() {
    let folder = std::env::temp_dir().join(format!("deckwatch-reach-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    type Mask = fn(OrbBuilder) -> OrbBuilder;
    // A consumer that a stranger gave, and one that a peer at loopback gave.
    for (name, mask, is_kept) in [
        ("stranger", masked as Mask, false),
        ("neighbour", (|builder| builder) as Mask, true),
    ] {
        let file = folder.join(name);
        let start = |reach, mask| {
            let orb = orb_with(reach, mask);
            let store = ChannelStore::open(&file).expect("a store");
            let channel = EventChannel::start_stored(&orb, ChannelOptions::default(), store);
            (orb, channel.expect("a channel"))
        };
        let (orb, channel) = start("127.0.0.0/8", mask);
        assert_eq!(connect(&orb, &channel), Ok(()), "{name}");
        assert_eq!(consumers(&channel), 1);
        orb.shutdown(true).expect("it ends");
        drop(channel);
        // After a restart the new options hold: some consumers that were connected are refused.
        let (orb, channel) = start("any", mask);
        assert_eq!(consumers(&channel), u32::from(is_kept), "{name}");
        orb.shutdown(true).expect("it ends");
    }
    std::fs::remove_dir_all(&folder).expect("ours");
}
