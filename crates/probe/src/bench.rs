//! `deckwatch bench call`: what a two-way call costs beside raw TCP ping-pong and beside other ORBs.
//!
//! Each end is a process of its own: this same program in a hidden role, or a foreign one built on demand. All of them stay alive and only one
//! pair works at a time. A round lets every peer run once, each directly behind a run of raw TCP with the octets that our GIOP messages have on
//! the wire; what is reported is the median of the ratios of those pairs, so that whatever else the machine does falls on both.

pub(crate) mod case;
mod document;
pub(crate) mod end;
mod error;
mod mirror;
pub(crate) mod omniorb;
pub(crate) mod peer;
mod run;
pub(crate) mod sockperf;

pub use case::{Case, CaseKind};
pub use document::{BaselineCheck, CallBench, CaseResult, Pair, PeerResult, Ratio, Skip};
pub use end::{EndPlan, Role, run_end};
pub use error::BenchError;
pub use run::{Condition, Progress, Settings, run};

/// The interfaces that are called.
#[allow(
    clippy::redundant_closure,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "generated: what the first suggests is not general enough over lifetimes, and the bench calls two operations of many"
)]
pub(crate) mod idl {
    include!(concat!(env!("OUT_DIR"), "/echo.rs"));
    include!(concat!(env!("OUT_DIR"), "/experiment.rs"));
}
