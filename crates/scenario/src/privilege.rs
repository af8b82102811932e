//! The privileges that a mission needs, and whether this process has them.

use deckwatch_carrier::scheduling::{Scheduling, SchedulingClass};
use deckwatch_os::namespace::Capability;
use serde::Serialize;

use crate::mission::Mission;

/// A privilege that a mission needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Privilege {
    /// The capability's name.
    pub capability: &'static str,
    /// The purpose of the privilege.
    pub purpose: &'static str,
    /// The effect of running without it.
    pub otherwise: &'static str,
    /// Whether this process has it.
    pub held: bool,
}

/// Returns the privileges that `mission` needs.
#[must_use]
pub fn needed(mission: &Mission) -> Vec<Privilege> {
    let privilege = |capability: Capability, purpose, otherwise| Privilege {
        capability: capability.name(),
        purpose,
        otherwise,
        held: capability.is_held(),
    };
    let scheduling = |wants: fn(&Scheduling) -> bool| {
        mission.flows.iter().any(|flow| {
            wants(&flow.supplier_scheduling) || flow.consumer_scheduling.iter().any(wants)
        })
    };
    let mut needed = Vec::new();
    if mission.emulates() && !mission.is_on_loopback() {
        let otherwise = "the mission runs on plain loopback, without an emulated network";
        needed.push(privilege(
            Capability::SysAdmin,
            "hosts in network namespaces",
            otherwise,
        ));
        needed.push(privilege(
            Capability::NetAdmin,
            "links, shapers and addresses between hosts",
            otherwise,
        ));
    }
    let otherwise = "layers between the stamps that are left are reported merged";
    needed.push(privilege(
        Capability::NetRaw,
        "packet taps, which stamp what the ORB sends and receives",
        otherwise,
    ));
    if scheduling(|scheduling| scheduling.class != SchedulingClass::Other) {
        let otherwise = "processes run in the time-sharing class, unless RLIMIT_RTPRIO allows more, and the result says so";
        needed.push(privilege(
            Capability::SysNice,
            "real-time scheduling classes",
            otherwise,
        ));
    }
    if scheduling(|scheduling| scheduling.lock_memory) {
        let otherwise = "memory is locked as far as RLIMIT_MEMLOCK allows, and the result says so";
        needed.push(privilege(Capability::IpcLock, "locked memory", otherwise));
    }
    needed
}
