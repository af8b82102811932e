//! The machinery of [`crate::bench`] and [`crate::experiment`]: processes, turns, samples and the result document.
//!
//! Each end is a process of its own: this program in the hidden role [`Role`], or a foreign program that is built on
//! demand. All ends stay alive, and only one system works at a time. The systems take turns within every round, and the
//! system that begins changes with each round. What else the machine does falls on all of them alike.

pub(crate) mod caution;
pub(crate) mod certificates;
pub(crate) mod condition;
pub(crate) mod element;
pub(crate) mod end;
mod error;
pub(crate) mod examined;
pub(crate) mod foreign;
mod inserted;
mod load_end;
pub(crate) mod payload;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod samples;
pub(crate) mod session;
pub(crate) mod system;
mod variant;

pub use condition::Condition;
pub use element::ElementKind;
pub use end::{EndPlan, Role, beat, run_end};
pub use error::LaboratoryError;
pub use foreign::PEERS;
pub use inserted::Inserted;
pub use load_end::{LOAD_WORDS, LoadEnd};
pub use process::REFUSED;
pub use session::{Progress, Setup};
pub use variant::Variant;

/// The kind of the warning in a result that could not be finished; its text has the reason.
pub const BROKEN_OFF: &str = "broken-off";

/// The kind of the warning in a result that the user ended early.
pub const ENDED_EARLY: &str = "ended-early";

/// Names of the systems in every result.
pub(crate) const OURS: &str = "deckwatch";
pub(crate) const OMNIORB: &str = "omniorb";
pub(crate) const RAW: &str = "raw TCP";

/// The interfaces that the ends call.
#[allow(
    clippy::redundant_closure,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "generated: the suggested function is not general enough over lifetimes, and the ends call only some operations"
)]
pub(crate) mod idl {
    include!(concat!(env!("OUT_DIR"), "/echo.rs"));
    include!(concat!(env!("OUT_DIR"), "/bench.rs"));
    include!(concat!(env!("OUT_DIR"), "/experiment.rs"));
}
