//! The event channel with suppliers and consumers of the tests' own, and its dispatching in virtual time (`sim/`).

#[path = "../../orb/tests/support/around.rs"]
mod around;
#[path = "../../orb/tests/support/counting.rs"]
mod counting;
#[path = "../../orb/tests/support/masked.rs"]
mod masked;
#[path = "../../../sim"]
mod sim {
    mod dispatching;
    mod seeds;
}
#[path = "../../orb/tests/support"]
mod simulated {
    #[allow(
        dead_code,
        unreachable_pub,
        reason = "the simulations of the ORB use the rest"
    )]
    pub(crate) mod world;
}
mod support;

mod access;
mod channel;
mod churn;
mod connecting;
mod endings;
mod factory;
mod failures;
mod federation;
mod group;
mod many;
mod pull_protocol;
mod pulled_suppliers;
mod pulling;
mod raw;
mod reach;
mod realtime;
mod received;
mod report;
mod scheduler;
mod serving;
mod shares;
mod slow;
mod stored;
mod suppliers;
mod tls;
mod typed;
mod unwritten;
mod ways;
mod wire;
