//! Channels on several hosts: gateways over IIOP on loopback, each channel in an ORB of its own.

mod foreign;
mod gateways;
mod multicast;

use deckwatch_event::federation::{Gateway, GatewayCounts, GatewayOptions};
use deckwatch_event::filter::Header;
use deckwatch_event::rt::{Loss, RtChannelOptions, RtEventChannel};
use deckwatch_event::rtec_event_channel_admin::{EventChannelRef, ProxyPushConsumerRef};
use std::time::Duration;

use crate::realtime::{World, any_of, event};
use crate::support::wait_for;

/// A channel and its gateways.
struct Site {
    world: World,
    gateways: Vec<Gateway>,
}

impl Site {
    fn new() -> Self {
        Self::of(World::new())
    }

    fn of(world: World) -> Self {
        Self {
            world,
            gateways: Vec::new(),
        }
    }

    /// Gets what its consumers want from another site.
    fn federate(&mut self, other: &Self) {
        self.federate_with(options(&reference(&other.world)));
    }

    fn federate_with(&mut self, options: GatewayOptions) {
        let gateway = Gateway::start(&self.world.server, &self.world.served, options);
        self.gateways.push(gateway.expect("a gateway"));
    }

    fn counts(&self, gateway: usize) -> GatewayCounts {
        self.gateways[gateway].counts()
    }

    #[track_caller]
    fn await_connected(&self) {
        wait_for(|| self.gateways.iter().all(Gateway::is_connected));
    }

    fn end(mut self) {
        for gateway in &mut self.gateways {
            gateway.close();
        }
        self.world.end();
    }
}

/// The IOR of a site's channel.
fn reference(world: &World) -> String {
    world
        .server
        .object_to_string(world.served.reference().object())
}

/// A gateway that asks often, so that a test of it does not wait.
fn options(remote: &str) -> GatewayOptions {
    GatewayOptions {
        period: Duration::from_millis(20),
        ..GatewayOptions::to(remote)
    }
}

/// Events of source 1 and type 20.
fn wanted() -> Vec<(i32, i32)> {
    vec![(0, 20)]
}
