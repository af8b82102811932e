//! The hosts of a sweep and the processes on them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::Command;

use deckwatch_testbed::{Environment, Host, HostSpec, NetworkSpec, Testbed};

use super::Sweep;
use super::channel::Channels;
use super::far::{FarClock, FarEnd};
use super::parts::{Between, Streams};
use super::ring::{Ring, Rings, Side};
use super::variant::Variant;
use crate::laboratory::condition::Places;
use crate::laboratory::process::End;
use crate::laboratory::program::Shape;
use crate::laboratory::session::Session;
use crate::laboratory::{LaboratoryError, Role};

/// An emulated network between the ends.
#[derive(Clone, Debug)]
pub struct Network {
    /// The network.
    pub spec: NetworkSpec,
    /// The client's host.
    pub from: String,
    /// The hosts that pass messages on, in the order of the way. Of fewer hops, the first ones do.
    pub via: Vec<String>,
    /// The server's host.
    pub to: String,
    /// Drops the first frame to the server and each so many after it, to check that the loss shows.
    pub lose_every: Option<NonZeroU32>,
}

impl Network {
    /// The hosts along a way of so many hops.
    fn hosts(&self, hops: u32) -> Vec<&str> {
        let between = self.via.iter().take(hops as usize - 1);
        let from = std::iter::once(&self.from);
        let all = from.chain(between).chain(std::iter::once(&self.to));
        all.map(String::as_str).collect()
    }

    /// Refuses a way of more hops than there are hosts.
    pub(super) fn check(&self, hops: u32) -> Result<(), LaboratoryError> {
        let named = self.via.len();
        if named + 1 < hops as usize {
            return Err(LaboratoryError::TooFewHosts { hops, named });
        }
        Ok(())
    }

    /// Makes the hosts and the network.
    pub(super) fn make(&self, hops: u32) -> Result<Testbed, LaboratoryError> {
        let hosts: Vec<HostSpec> = self.hosts(hops).into_iter().map(HostSpec::new).collect();
        let bed = Testbed::create(&self.spec, &hosts)?;
        if let Environment::Loopback { reason } = bed.environment() {
            return Err(LaboratoryError::NotEmulated {
                network: self.spec.name.clone(),
                reason,
            });
        }
        if let Some(every_nth) = self.lose_every {
            bed.port(&self.to)?.lose_every(every_nth)?;
        }
        Ok(bed)
    }

    pub(super) fn words(&self, hops: u32) -> String {
        let Self { spec, to, .. } = self;
        let lost = self.lose_every;
        let lost = lost.map_or(String::new(), |nth| {
            format!("; every {nth}th frame to {to} is dropped")
        });
        let way = self.hosts(hops).join(" to ");
        format!("{spec}; from {way}{lost}")
    }
}

/// The host of a process.
#[derive(Clone, Copy)]
pub(super) enum Site<'s> {
    /// This machine, on loopback.
    Loopback,
    /// An emulated host.
    Emulated(&'s Host),
    /// A host of its own.
    Real(&'s FarEnd),
}

impl Site<'_> {
    pub(super) fn address(self) -> IpAddr {
        match self {
            Self::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Self::Emulated(host) => IpAddr::V4(host.address()),
            Self::Real(end) => end.address,
        }
    }

    /// The end of a process's name.
    pub(super) fn suffix(self) -> String {
        match self {
            Self::Loopback | Self::Emulated(_) => String::new(),
            Self::Real(end) => format!(" on {}", end.name),
        }
    }

    /// The command of a process there: `near` at a host of this machine, that of `real` at a host of its own.
    pub(super) fn command(
        self,
        mut near: Command,
        real: impl FnOnce(&FarEnd) -> Command,
    ) -> Result<Command, LaboratoryError> {
        match self {
            Self::Loopback => {}
            Self::Emulated(host) => host.place(&mut near)?,
            Self::Real(end) => return Ok(real(end)),
        }
        Ok(near)
    }

    /// Whether it is another machine, where a process has a private folder, and writes beats.
    pub(super) const fn is_far(self) -> bool {
        matches!(self, Self::Real(end) if end.run.is_some())
    }
}

/// The processes of each variant of a carrier, started when it is first measured.
#[derive(Default)]
pub(super) struct Pairs {
    pub(super) started: BTreeMap<String, Rings>,
    /// The server's clock.
    pub(super) clock: FarClock,
    /// Streams between parts, if the sweep has an adapter.
    pub(super) between: Option<Streams>,
}

impl Pairs {
    /// Whether the variant is one of an adapter that has failed.
    pub(super) fn has_failed(&self, variant: &Variant) -> bool {
        let mut between = self.between.iter();
        between.any(|between| between.failed.contains(variant.carrier.name()))
    }

    /// Measures an iteration between parts. A carrier that fails is left out from then on, with its reason: of a built-in
    /// one, the streams between parts.
    pub(super) fn iterate_between(
        &mut self,
        session: &mut Session<'_>,
        variant: Variant,
        size: u32,
    ) -> Option<Between> {
        if self.has_failed(&variant) || !variant.is_plain() {
            return None;
        }
        let between = self.between.as_mut()?;
        let carrier = variant.carrier;
        match between.iterate(carrier, size) {
            Ok(found) => Some(found),
            Err(reason) => {
                if carrier.external().is_some() {
                    between.failed.insert(carrier.name());
                    session.skip(carrier.name(), &format!("{size} octets: {reason}"));
                } else {
                    session.skip(&format!("{carrier}, between parts"), &reason);
                }
                None
            }
        }
    }
}

/// Starts the ends of a carrier. `folder` is a name that is free for its channels.
pub(super) fn start(
    session: &mut Session<'_>,
    asked: &Sweep,
    (places, bed): (&Places, Option<&Testbed>),
    (variant, folder): (Variant, &Path),
) -> Result<Rings, LaboratoryError> {
    let sites: Vec<Site<'_>> = match (&asked.network, bed, &asked.far) {
        (Some(network), Some(bed), _) => {
            let hosts = network.hosts(variant.hops).into_iter();
            let hosts = hosts.map(|name| bed.host(name).map(Site::Emulated));
            hosts.collect::<Result<_, _>>()?
        }
        (_, _, Some(ends)) => ends.iter().map(Site::Real).collect(),
        _ => vec![Site::Loopback; variant.hops as usize + 1],
    };
    let rings = (0..variant.streams).map(|stream| {
        let folder = folder.with_extension(stream.to_string());
        ring(session, asked, (places, &sites), (variant, &folder))
    });
    Ok(Rings::new(rings.collect::<Result<_, _>>()?))
}

/// Starts the ends of one stream.
fn ring(
    session: &mut Session<'_>,
    asked: &Sweep,
    (places, sites): (&Places, &[Site<'_>]),
    (variant, folder): (Variant, &Path),
) -> Result<Ring, LaboratoryError> {
    let own = session.own();
    let carrier = variant.carrier;
    let last = sites.len() - 1;
    let mut sides = Vec::new();
    for (number, &site) in sites.iter().enumerate() {
        let (what, place) = match number {
            0 => ("client".to_owned(), places.client),
            _ if number == last => ("server".to_owned(), places.server),
            _ => (format!("hop {number}"), places.server),
        };
        let near = own.command(Role::Sweep, place, None, &Shape::default());
        let command = site.command(near, FarEnd::start)?;
        let what = format!("The {what} of {carrier}{}", site.suffix());
        let mut end = End::start(what, command)?;
        let (is_fifo, _) = end.greeting()?;
        if site.is_far() {
            end.expect_beats();
        }
        session.is_placed &= is_fifo == place.fifo.is_some();
        let address = site.address();
        sides.push(Side { end, address });
    }
    let channels = carrier.needs().channel.map(|_| {
        let of = (carrier, asked.network_priority);
        Channels::start(&own.path, of, sites, folder.to_owned())
    });
    Ok(Ring {
        sides,
        network_priority: asked.network_priority,
        channels: channels.transpose()?,
    })
}
