//! Tests of the ORB beyond single clauses of the standard: robustness, resources, and simulations in virtual time
//! (`sim/`).

#[path = "../../../conformance"]
mod conformance {
    pub(crate) mod common;
}
#[path = "support/counting.rs"]
mod counting;
#[path = "support/masked.rs"]
mod masked;
#[path = "../examples/mirror/mod.rs"]
mod mirror;
mod support;

use conformance::common;
use conformance::common::around;

mod access;
mod addressing;
mod asynchronous_connect;
mod callers;
mod calls;
mod connections;
mod contexts;
mod deadlines;
mod deaths;
mod echo;
mod endpoints;
mod forwards;
mod hostile {
    mod fragments;
    mod messages;
    mod replies;
    mod shares;
    mod values;
}
mod life;
mod pipelined;
mod poa {
    mod activators;
    mod current;
    mod life_cycle;
    mod main_thread;
    mod managers;
    mod policies;
    mod servant_managers;
    mod storm;
}
mod policies;
mod reach;
mod resources {
    mod allocations;
    mod exhaustion;
    mod frames;
    mod idle_memory;
    #[cfg(rtsan)]
    mod realtime_sanitizer;
    mod road;
    mod spinning;
    mod waiting_memory;
}
mod rt {
    mod protocols;
    mod storm;
    mod threads;
    mod turns;
}
mod shared_memory;
#[path = "../../../sim/mod.rs"]
mod sim;
mod stress;
mod tls {
    mod calls;
    mod certificates;
    mod hostile;
    mod reload;
    mod shares;
    mod support;
}
mod trace;
mod unix;
