//! `deckwatch bench`: what calls, messages, objects and priorities cost, beside raw TCP and beside other ORBs.
//!
//! Each end is a process of its own: this same program in a hidden role, or a foreign one built on demand. All of them stay alive and only one
//! pair works at a time. A round lets every peer run once, each directly behind a run of what it is compared with: mostly raw TCP with the octets
//! that our GIOP messages have on the wire; what is reported is the median of the ratios of those pairs, so that whatever else the machine does
//! falls on both.

pub(crate) mod case;
pub(crate) mod condition;
mod contest;
mod counts;
mod document;
pub(crate) mod end;
mod error;
mod figures;
pub(crate) mod foreign;
mod kind;
mod memory;
mod mirror;
pub(crate) mod peer;
pub(crate) mod process;
pub(crate) mod program;
mod run;
pub(crate) mod sockperf;
mod target;
mod variant;

pub use case::{Beside, Case, Operation};
pub use condition::Condition;
pub use document::{
    BaselineCheck, Bench, CaseResult, CountResult, MemoryResult, Pair, Part, PeerRatio, PeerResult,
    Ratio, RunSummary, Skip, Standing, json_schema,
};
pub use end::{EndPlan, Role, run_end};
pub use error::BenchError;
pub use foreign::PEERS;
pub use kind::Kind;
pub use mirror::Inserted;
pub use run::{Progress, Settings, run};
pub use variant::Variant;

/// The kind of the warning in a document of what could not go on to its end; the text has the reason.
pub const BROKEN_OFF: &str = "broken-off";

/// The kind of the warning in a document of what the user ended before its end.
pub const ENDED_EARLY: &str = "ended-early";

/// The interfaces that are called.
#[allow(
    clippy::redundant_closure,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "generated: what the first suggests is not general enough over lifetimes, and the bench calls some operations of many"
)]
pub(crate) mod idl {
    include!(concat!(env!("OUT_DIR"), "/echo.rs"));
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
    include!(concat!(env!("OUT_DIR"), "/experiment.rs"));
}
