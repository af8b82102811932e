//! `deckwatch bench`: the cost of calls, messages, objects and priorities, beside raw TCP and other ORBs.
//!
//! A round lets every system run once in each case, directly after a run of its baseline. The baseline is mostly raw
//! TCP with the octets of our GIOP messages. The result is the median of the ratios of those pairs, because what else
//! the machine does falls on both runs of a pair.

mod case;
mod contest;
mod counts;
mod figures;
mod kind;
mod memory;
mod part;
mod run;
mod sockperf;
mod target;

pub use case::{Beside, Case, Operation};
pub use kind::Kind;
pub use run::{Settings, run};
