//! `deckwatch bench`: the cost of calls, messages, objects, priorities and events, beside raw TCP and other ORBs.
//!
//! A round lets every system run once in each case, directly beside a run of its baseline; which of the two is first
//! alternates. The baseline is mostly raw TCP with the octets of our GIOP messages, and sockperf guards it. The result
//! is the median of the ratios of those pairs with its 95% interval, because what else the machine does falls on both
//! runs of a pair.

mod attack;
mod case;
mod command;
mod contest;
mod counts;
mod events;
mod figures;
mod guard;
mod kind;
mod memory;
mod mission;
mod part;
mod plan;
mod run;
mod sockperf;
mod state;
mod target;

pub use attack::Attack;
pub use case::{Beside, Case, Consumers, Operation};
pub(crate) use case::{real_time_event, resolved_name};
pub use kind::Kind;
pub use run::{Settings, run};
