//! `deckwatch channel --real-time --federate --multicast`: the gateways and the groups of a channel.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

use anyhow::Context as _;
use deckwatch_event::federation::{
    Gateway, GatewayFailure, GatewayOptions, Multicast, MulticastOptions,
};
use deckwatch_event::filter::Header;
use deckwatch_event::rt::RtEventChannel;
use deckwatch_orb::Orb;

use crate::marking::Marking;
use crate::output::errln;

/// Options of a channel that is one of several.
#[derive(clap::Args)]
#[command(next_help_heading = "Several hosts")]
pub(super) struct FederationArgs {
    /// Get what the consumers of this channel want from another real-time channel, ours or TAO's; may be repeated. A
    /// reference, or a file that holds it
    #[arg(long, value_name = "REFERENCE", requires = "real_time")]
    federate: Vec<String>,
    /// Get events of this type too, to pass them on to other channels, though no consumer of this one wants them; may
    /// be repeated
    #[arg(long, value_name = "TYPE", requires = "federate")]
    transit: Vec<i32>,
    /// Send events to a UDP multicast group, and take those that come from it, as TAO's gateways do: all types, or
    /// these; may be repeated
    #[arg(long, value_name = "GROUP:PORT[=TYPE,TYPE...]", requires = "real_time")]
    multicast: Vec<GroupArg>,
    /// Address of the interface for all groups; without it the routes choose
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::UNSPECIFIED, requires = "multicast")]
    multicast_interface: Ipv4Addr,
    /// Networks that a datagram may cross: 1 for no router
    #[arg(long, value_name = "NETWORKS", default_value_t = 1, requires = "multicast",
        value_parser = clap::value_parser!(u8).range(1..))]
    multicast_ttl: u8,
}

/// `--multicast`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GroupArg {
    group: SocketAddrV4,
    types: Vec<i32>,
}

impl FromStr for GroupArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (group, types) = text.split_once('=').unwrap_or((text, ""));
        let types = types.split(',').filter(|each| !each.is_empty());
        let parsed: Option<Self> = group
            .parse::<SocketAddrV4>()
            .ok()
            .filter(|group| group.ip().is_multicast() && group.port() != 0)
            .zip(types.map(|each| each.parse().ok()).collect())
            .map(|(group, types)| Self { group, types });
        parsed.ok_or_else(|| {
            "write a group of 224.0.0.0 to 239.255.255.255 and a port, and types if not all are sent: \
             239.255.0.1:10001=16,17"
                .to_owned()
        })
    }
}

/// The gateways and the groups of one channel.
pub(super) struct Federation {
    gateways: Vec<Gateway>,
    groups: Vec<(SocketAddrV4, Multicast)>,
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
    /// Starts the gateways of a channel, and joins its groups. Their datagrams have this marking.
    pub(super) fn start(
        &self,
        orb: &Orb,
        channel: &RtEventChannel,
        marking: Option<Marking>,
    ) -> anyhow::Result<Federation> {
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
        let join = |each: &GroupArg| {
            let sent = each.types.iter().map(|event_type| Header {
                event_type: *event_type,
                source: 0,
            });
            let options = MulticastOptions {
                group: each.group,
                interface: self.multicast_interface,
                ttl: self.multicast_ttl,
                network_priority: marking.and_then(Marking::of_multicast),
                sent: sent.collect(),
            };
            let joined = Multicast::start(orb, channel, &options).with_context(|| {
                format!(
                    "cannot join the group {} at the interface {}; `ip address` lists the addresses of interfaces",
                    each.group, self.multicast_interface
                )
            });
            joined.map(|joined| (each.group, joined))
        };
        let groups: Vec<_> = self.multicast.iter().map(join).collect::<Result<_, _>>()?;
        let gateways: Vec<_> = self.federate.iter().map(start).collect::<Result<_, _>>()?;
        Ok(Federation {
            printed: RefCell::new(vec![None; gateways.len()]),
            gateways,
            groups,
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

    /// Ends the subscriptions at the remote channels, and leaves the groups.
    pub(super) fn close(&mut self) {
        self.gateways.iter_mut().for_each(Gateway::close);
        for (_, group) in &mut self.groups {
            group.close();
        }
    }

    pub(super) fn print_counts(&self) {
        for gateway in &self.gateways {
            let counts = gateway.counts();
            errln!(
                "gateway to {}: connected {} times, cut {}, failed attempts {}, subscriptions \
                 changed {}; events received {}, doubled {}, came back {}, ttl expired {}, \
                 malformed pushes {}",
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
        for (group, joined) in &self.groups {
            let counts = joined.counts();
            errln!(
                "group {group}: events sent {}, not sent {}, received {}; requests without all \
                 fragments {}, displaced {}; datagrams doubled {}, malformed {}, with a wrong \
                 checksum {}, dropped for a full buffer {}, own {}",
                counts.sent,
                counts.unsent,
                counts.received,
                counts.incomplete,
                counts.displaced,
                counts.doubled,
                counts.malformed,
                counts.corrupt,
                counts.overflowed,
                counts.own
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_has_a_port_and_maybe_types() {
        let group = "239.255.0.1:10001".parse().expect("an address");
        let parsed = |text: &str| text.parse::<GroupArg>();
        let types = vec![];
        assert_eq!(parsed("239.255.0.1:10001"), Ok(GroupArg { group, types }));
        let types = vec![16, 17];
        assert_eq!(
            parsed("239.255.0.1:10001=16,17"),
            Ok(GroupArg { group, types })
        );
        for wrong in [
            "239.255.0.1",
            "192.0.2.1:7",
            "239.255.0.1:0",
            "239.255.0.1:7=x",
            "ship:7",
        ] {
            assert!(
                parsed(wrong).is_err_and(|told| told.contains("239.255.0.1:10001")),
                "{wrong}"
            );
        }
    }
}
