//! Where the processes of a host run, and at which address the others send to them.

use std::net::IpAddr;

use deckwatch_os::namespace::Placement;
use deckwatch_testbed::{Host, Testbed};

use super::RunError;
use crate::mission::{Location, Mission};
use crate::reach::{PROGRAM, Reach};

/// A host of the run.
#[derive(Clone, Debug)]
pub(super) struct Station {
    pub(super) name: String,
    pub(super) address: IpAddr,
    pub(super) place: Place,
    /// Processors of its machine that its processes may use; empty for all.
    pub(super) processors: Vec<u32>,
}

/// Where the processes of a host run.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// On a host of the testbed.
    Emulated(Host),
    /// On this machine.
    Here,
    /// On another machine.
    Far(Reach),
}

/// The hosts whose packets one tap captures. Hosts that share interfaces have one tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interfaces {
    /// Those of this host.
    OfHost(usize),
    /// The loopback interface, which all emulated hosts share where emulation is not permitted.
    Loopback,
    /// Those of this machine.
    OfThisMachine,
}

impl Station {
    /// Returns the hosts of a mission. The emulated ones are those of the testbed, in the same order.
    pub(super) fn all(mission: &Mission, testbed: Option<&Testbed>) -> Vec<Self> {
        let mut emulated = testbed.into_iter().flat_map(Testbed::hosts);
        let station = |host: &crate::mission::Host| {
            let (address, place) = match &host.location {
                Location::Emulated => {
                    let host = emulated.next()?.clone();
                    (host.address().into(), Place::Emulated(host))
                }
                Location::Here { address } => (*address, Place::Here),
                Location::Far(reach) => (reach.address, Place::Far(reach.clone())),
            };
            Some(Self {
                name: host.name.clone(),
                address,
                place,
                processors: host.processors.clone(),
            })
        };
        mission.hosts.iter().filter_map(station).collect()
    }

    pub(super) const fn is_far(&self) -> bool {
        matches!(self.place, Place::Far(_))
    }

    /// Returns the interfaces that a tap captures on; empty for all that are up.
    pub(super) fn interfaces(&self) -> Vec<String> {
        match &self.place {
            Place::Emulated(host) => host.interfaces().iter().map(ToString::to_string).collect(),
            Place::Here | Place::Far(_) => Vec::new(),
        }
    }

    pub(super) fn tapped_with(&self, index: usize) -> Interfaces {
        match &self.place {
            Place::Emulated(host) if host.namespace().is_none() => Interfaces::Loopback,
            Place::Here => Interfaces::OfThisMachine,
            Place::Emulated(_) | Place::Far(_) => Interfaces::OfHost(index),
        }
    }

    /// Returns the words by which a user of this machine starts this program where `process` of this host runs.
    pub(super) fn program_words(&self, process: u32) -> String {
        match &self.place {
            Place::Emulated(host) => host.entering_words(process) + PROGRAM,
            Place::Here => PROGRAM.to_owned(),
            Place::Far(reach) => format!("{} {}", reach.in_words(), reach.program()),
        }
    }

    /// Configures a command of this machine so that its process runs on the host.
    pub(super) fn place(&self, command: &mut std::process::Command) -> Result<(), RunError> {
        let placement = match &self.place {
            Place::Emulated(host) => return Ok(host.place(command)?),
            Place::Here => Placement {
                processors: self.processors.clone(),
                ..PLACEMENT
            },
            // The command that reaches it has a placement of its own.
            Place::Far(_) => return Ok(()),
        };
        placement
            .apply(command)
            .map_err(|error| RunError::CannotStart {
                process: format!("process on {}", self.name),
                error,
            })
    }
}

const PLACEMENT: Placement = Placement {
    namespace: None,
    processors: Vec::new(),
    dies_with_parent: true,
    own_group: true,
    own_session: false,
};
