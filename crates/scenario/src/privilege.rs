//! The privileges that a mission needs, and whether this process has them.

use deckwatch_carrier::scheduling::{Scheduling, SchedulingClass};
use deckwatch_os::namespace::Capability;
use deckwatch_testbed::Testbed;
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
    /// Whether the run will have it, without root, in a user namespace of its own, into which it moves.
    pub in_user_namespace: bool,
}

impl Privilege {
    /// Whether the run will have it.
    #[must_use]
    pub const fn is_there(&self) -> bool {
        self.held || self.in_user_namespace
    }
}

/// Returns the privileges that `mission` needs.
#[must_use]
pub fn needed(mission: &Mission) -> Vec<Privilege> {
    let isolates = mission.stays_here() && Testbed::will_isolate();
    let privilege = |capability: Capability, purpose, otherwise| {
        let held = capability.is_held();
        Privilege {
            capability: capability.name(),
            purpose,
            otherwise,
            held,
            in_user_namespace: !held && isolates && IN_USER_NAMESPACE.contains(&capability),
        }
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

/// What the kernel grants over the network of a user namespace. It grants no real-time class there.
const IN_USER_NAMESPACE: [Capability; 3] = [
    Capability::SysAdmin,
    Capability::NetAdmin,
    Capability::NetRaw,
];
