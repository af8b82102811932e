//! The table of carriers. A new carrier is a file in `carriers/` and a line in [`CARRIERS`], or a program that
//! [`found`] finds.

pub mod corba;
pub mod event;
pub(crate) mod orb;
pub mod tcp;
pub mod udp;

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::carrier::Carrier;
use crate::external::{Adapters, External, folders, search};

/// All built-in carriers, the rawest first. Reports colour a carrier by its index here: append new carriers at the end.
pub static CARRIERS: [&dyn Carrier; 6] = [
    &udp::Udp,
    &tcp::Tcp,
    &corba::TWO_WAY,
    &corba::ONEWAY,
    &event::COS,
    &event::REAL_TIME,
];

/// The carriers in other languages that this process has found.
#[derive(Debug)]
pub struct Found {
    /// The folders that were searched, in this order.
    pub folders: Vec<PathBuf>,
    /// The adapters in them, by name.
    pub adapters: Adapters,
    /// For each adapter its carrier, if it is built.
    carriers: Vec<Option<CarrierRef>>,
}

static FOUND: OnceLock<Found> = OnceLock::new();

/// Returns the carriers in other languages. They are searched for once.
pub fn found() -> &'static Found {
    FOUND.get_or_init(|| Found::in_folders(folders(&[])))
}

/// Searches for carriers in other languages in these folders too, before the usual ones. Has no effect after
/// [`found`].
pub fn find_in(named: &[PathBuf]) {
    // It fails after an earlier search, whose result stays.
    let _ = FOUND.set(Found::in_folders(folders(named)));
}

impl Found {
    fn in_folders(folders: Vec<PathBuf>) -> Self {
        let adapters = search(&folders);
        let carrier = |adapter: &crate::external::Adapter| {
            let program = adapter.program.clone().ok()?;
            let external: &'static External = External::leak(adapter.manifest.clone(), program);
            Some(CarrierRef(external))
        };
        Self {
            carriers: adapters.adapters.iter().map(carrier).collect(),
            folders,
            adapters,
        }
    }

    /// Returns the carriers whose programs are built, by name.
    pub fn carriers(&self) -> impl Iterator<Item = CarrierRef> {
        self.carriers.iter().copied().flatten()
    }
}

/// A carrier in plans: serialized as its name, looked up in [`CARRIERS`] and in [`found`]. Two are equal if their names
/// are equal.
#[derive(Clone, Copy)]
pub struct CarrierRef(&'static dyn Carrier);

impl CarrierRef {
    /// A carrier that may be missing from the table. A plan with such a carrier cannot be read back.
    #[must_use]
    pub const fn new(carrier: &'static dyn Carrier) -> Self {
        Self(carrier)
    }

    /// All built-in carriers, in the order of [`CARRIERS`].
    pub fn all() -> impl Iterator<Item = Self> {
        CARRIERS.into_iter().map(Self)
    }

    /// Returns the place by which reports colour the carrier: its index in [`CARRIERS`], or after these its place among
    /// the [`found`] ones. Returns `None` if it is in neither.
    #[must_use]
    pub fn index(self) -> Option<u16> {
        let built_in = CARRIERS
            .iter()
            .position(|carrier| carrier.name() == self.name());
        let place = built_in.or_else(|| {
            let mut adapters = found().adapters.adapters.iter();
            let place = adapters.position(|adapter| adapter.manifest.name == self.name())?;
            Some(CARRIERS.len() + place)
        });
        place.and_then(|place| u16::try_from(place).ok())
    }
}

impl Deref for CarrierRef {
    type Target = dyn Carrier;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for CarrierRef {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for CarrierRef {}

impl fmt::Debug for CarrierRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CarrierRef({self})")
    }
}

impl fmt::Display for CarrierRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CarrierRef {
    type Err = UnknownCarrier;

    fn from_str(word: &str) -> Result<Self, UnknownCarrier> {
        if let Some(carrier) = Self::all().find(|carrier| carrier.name() == word) {
            return Ok(carrier);
        }
        let found = found();
        let mut adapters = found.adapters.adapters.iter().zip(&found.carriers);
        let known = adapters.find(|(adapter, _)| adapter.manifest.name == word);
        match known {
            Some((_, Some(carrier))) => Ok(*carrier),
            Some((adapter, None)) => Err(UnknownCarrier::NotBuilt {
                name: word.to_owned(),
                reason: adapter.program.clone().err().unwrap_or_default(),
            }),
            None => Err(UnknownCarrier::Unknown(word.to_owned())),
        }
    }
}

impl Serialize for CarrierRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for CarrierRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}

/// A word that is not the name of a carrier of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCarrier {
    /// There is no carrier of this name.
    #[error("`{0}` is not a carrier. Name one of {names}{unbuilt}.", names = names(), unbuilt = unbuilt())]
    Unknown(String),
    /// The carrier's program is missing.
    #[error("The carrier `{name}` cannot be used: {reason}")]
    NotBuilt {
        /// The carrier.
        name: String,
        /// The reason, with the remedy.
        reason: String,
    },
}

/// The names of all carriers of this machine, separated by commas.
#[must_use]
pub fn names() -> String {
    let all = CarrierRef::all().chain(found().carriers());
    let names: Vec<&str> = all.map(|carrier| carrier.0.name()).collect();
    names.join(", ")
}

/// The adapters that are not built, as the end of a sentence.
fn unbuilt() -> String {
    let adapters = found().adapters.adapters.iter();
    let unbuilt = adapters.filter(|adapter| adapter.program.is_err());
    let names: Vec<&str> = unbuilt.map(|adapter| &*adapter.manifest.name).collect();
    if names.is_empty() {
        return String::new();
    }
    let names = names.join(", ");
    format!("; or build an adapter first, as `deckwatch carriers` says: {names}")
}

/// The names of all built-in carriers, separated by commas.
#[must_use]
pub fn built_in_names() -> String {
    let names: Vec<&str> = CARRIERS.iter().map(|carrier| carrier.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::time::Duration;

    use deckwatch_testkit::alone;

    use super::*;
    use crate::arrival::Shared;
    use crate::body::{Body, BodyPlan};
    use crate::carrier::{ListenAt, NetworkPriority, ReceiverSettings};
    use crate::scheduling::Scheduling;

    /// The sockets of this process that are bound to every address: of TCP those that listen, and all of UDP.
    fn wildcards() -> Vec<String> {
        let open = std::fs::read_dir("/proc/self/fd").expect("the kernel lists them");
        let open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let own: Vec<String> = open
            .filter_map(|link| {
                let link = link.to_str()?.to_owned();
                let inode = link.strip_prefix("socket:[")?.strip_suffix(']')?;
                Some(inode.to_owned())
            })
            .collect();
        let mut found = Vec::new();
        for (table, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
            let text =
                std::fs::read_to_string(format!("/proc/self/net/{table}")).unwrap_or_default();
            for line in text.lines().skip(1) {
                let words: Vec<&str> = line.split_whitespace().collect();
                let [_, local, _, its_state, ..] = words[..] else {
                    continue;
                };
                let (address, _) = local.split_once(':').expect("address and port");
                let is_own = words
                    .get(9)
                    .is_some_and(|inode| own.iter().any(|it| it == inode));
                if is_own && its_state == state && address.bytes().all(|digit| digit == b'0') {
                    found.push(format!("{table} {local}"));
                }
            }
        }
        found
    }

    #[test]
    fn part_listens_at_the_address_of_its_host_and_at_no_other() {
        alone(|| {
            let all = UdpSocket::bind("0.0.0.0:0").expect("a port");
            assert_eq!(wildcards().len(), 1, "the look finds one");
            drop(all);
            let shared = Arc::new(Shared::default());
            let body = Body::new(&BodyPlan::Octets { size_bytes: 64 }).expect("a body");
            let at = ListenAt {
                address: [127, 0, 0, 1].into(),
                channel: None,
                settings: ReceiverSettings::default(),
                scheduling: &Scheduling::default(),
                priority: None,
                network_priority: NetworkPriority::default(),
                deadline: Duration::from_secs(5),
                body: &body,
                shared: &shared,
            };
            let direct = CARRIERS.iter().filter(|it| it.needs().channel.is_none());
            let listening = direct.map(|carrier| carrier.listen(&at).expect("a free port"));
            let listening: Vec<_> = listening.collect();
            assert_eq!(listening.len(), 4);
            // Channels and their consumers listen with this.
            let (orb, bound) = orb::serving_orb(
                at.deadline,
                (at.address, 0).into(),
                1,
                at.scheduling,
                at.network_priority,
            )
            .expect("a free port");
            assert!(bound.ip().is_loopback());
            assert_eq!(wildcards(), [""; 0]);
            orb.shutdown(true).expect("it ends");
        });
    }

    #[test]
    fn carriers_are_read_by_the_names_they_are_written_with() {
        for (carrier, index) in CarrierRef::all().zip(0..) {
            assert_eq!(carrier.to_string().parse(), Ok(carrier));
            let written = serde_json::to_value(carrier).expect("a word");
            assert_eq!(written, serde_json::Value::from(carrier.name()));
            assert_eq!(carrier.index(), Some(index), "names are unique");
        }
        let unknown = "dds".parse::<CarrierRef>().expect_err("not in the table");
        assert!(unknown.to_string().contains("corba-oneway"), "{unknown}");
    }
}
