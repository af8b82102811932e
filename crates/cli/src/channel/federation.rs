//! `deckwatch channel --real-time --federate`: the gateways of a channel.

use std::cell::RefCell;

use anyhow::Context as _;
use deckwatch_event::federation::{Gateway, GatewayFailure, GatewayOptions};
use deckwatch_event::filter::Header;
use deckwatch_event::rt::RtEventChannel;
use deckwatch_orb::Orb;

use crate::output::errln;

/// Options of a channel that is one of several.
#[derive(clap::Args)]
#[command(next_help_heading = "Several hosts")]
pub(super) struct FederationArgs {
    /// Get what the consumers of this channel want from another real-time channel, ours or TAO's; may be repeated. A
    /// reference, or a file that holds it
    #[arg(long, value_name = "REFERENCE", requires = "real_time")]
    federate: Vec<String>,
    /// Get events of this type too, to pass them on to other channels, though no consumer of this one wants them; may be
    /// repeated
    #[arg(long, value_name = "TYPE", requires = "federate")]
    transit: Vec<i32>,
}

/// The gateways of one channel.
pub(super) struct Federation {
    gateways: Vec<Gateway>,
    /// What was last printed of each.
    printed: RefCell<Vec<Option<State>>>,
}

/// The state of a gateway.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Connected,
    Failing(GatewayFailure),
}

impl FederationArgs {
    /// Starts the gateways of a channel.
    pub(super) fn start(&self, orb: &Orb, channel: &RtEventChannel) -> anyhow::Result<Federation> {
        let start = |text: &String| {
            let remote = crate::reference::read(text)?;
            let transit = self.transit.iter().map(|event_type| Header {
                event_type: *event_type,
                source: 0,
            });
            let options = GatewayOptions {
                transit: transit.collect(),
                ..GatewayOptions::to(remote)
            };
            let gateway = Gateway::start(orb, channel, options);
            gateway.with_context(|| format!("cannot federate with `{}`", short(text)))
        };
        let gateways: Vec<_> = self.federate.iter().map(start).collect::<Result<_, _>>()?;
        Ok(Federation {
            printed: RefCell::new(vec![None; gateways.len()]),
            gateways,
        })
    }
}

impl Federation {
    /// Prints which gateways have connected or cannot connect since the last call.
    pub(super) fn print_changes(&self) {
        let mut printed = self.printed.borrow_mut();
        for (gateway, before) in self.gateways.iter().zip(printed.iter_mut()) {
            let state = match gateway.failure() {
                Some(failure) => State::Failing(failure),
                None if gateway.is_connected() => State::Connected,
                // Nobody wants an event.
                None => continue,
            };
            if before.replace(state) == Some(state) {
                continue;
            }
            let remote = short(gateway.remote());
            match state {
                State::Connected => errln!("gateway to {remote}: connected"),
                State::Failing(failure) => {
                    errln!("gateway to {remote}: not connected, trying again: {failure}");
                }
            }
        }
    }

    /// Ends the subscriptions at the remote channels.
    pub(super) fn close(&mut self) {
        self.gateways.iter_mut().for_each(Gateway::close);
    }

    pub(super) fn print_counts(&self) {
        for gateway in &self.gateways {
            let counts = gateway.counts();
            errln!(
                "gateway to {}: connected {} times, cut {}, failed attempts {}, subscriptions changed {}; events \
                 received {}, doubled {}, came back {}, ttl expired {}, malformed pushes {}",
                short(gateway.remote()),
                counts.connects,
                counts.cuts,
                counts.failures,
                counts.changes,
                counts.received,
                counts.doubled,
                counts.returned,
                counts.expired,
                counts.refused
            );
        }
    }
}

/// The beginning of a reference: an IOR is long.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short
}
