//! A channel, its suppliers and its consumers over TLS alone.

use crate::support::{PATIENCE, World, number, seen_by};
use deckwatch_event::cos_event_channel_admin::EventChannelRef;
use deckwatch_event::{ChannelOptions, EventChannel};
use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{Orb, TlsOptions};
use deckwatch_testkit::certificates::Authority;

#[test]
fn events_reach_their_consumers_over_tls_in_order() {
    const EVENTS: u32 = 2_000;
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::new(folder.path(), "fleet");
    let orb = |name: &str| {
        let own = authority.issue(name, &["127.0.0.1"]);
        let options = TlsOptions::default().certificate(&own.chain, &own.key);
        let tls = options.authorities(authority.file()).require().load();
        let builder = Orb::builder().tls(&tls.expect("its files are there"));
        let orb = builder
            .listen("tls:127.0.0.1:0")
            .expect("an endpoint")
            .build()
            .expect("an ORB");
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        orb
    };
    let (server, user) = (orb("channel"), orb("user"));
    assert!(matches!(server.endpoints()[..], [Endpoint::Tls { .. }]));
    let options = ChannelOptions {
        queue_len: EVENTS as usize,
        ..ChannelOptions::default()
    };
    let served = EventChannel::start(&server, options).expect("a channel");
    let channel = seen_by(&user, &server, served.reference().object());
    let channel = EventChannelRef::unchecked_narrow(channel);
    let world = World {
        server,
        user,
        served,
        channel,
    };
    let consumers = [world.consumer(), world.consumer()];
    let events = consumers.map(|(consumer, events)| {
        world.connect(consumer);
        events
    });
    let supplier = world.supplier();
    for value in 0..EVENTS {
        supplier.push(&number(value)).expect("it takes events");
    }
    for events in &events {
        for value in 0..EVENTS {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(value)));
        }
    }
    world.end();
}
