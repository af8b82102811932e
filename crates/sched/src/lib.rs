//! Scheduling theory: declared operations in; priorities, worst response times and advice out.
//!
//! The crate is pure: it reads no clock, starts no thread and knows nothing of CORBA. Times are nanoseconds in 64 bits;
//! a sum that does not fit is an error.
//!
//! * [`Operations`] holds declarations ([`RtInfo`]) as TAO's scheduling service does.
//! * [`Schedule::compute`] assigns priorities by a [`Strategy`], propagates rates along dependencies, and analyses
//!   whether each operation meets its deadline.
//! * [`fixed`] and [`edf`] are the analyses, for tasks of any origin; [`bounds`] are the papers' utilisation bounds.
//! * [`Measurements`] compares declared execution times with measured ones.
//! * [`sensitivity`] finds what to change, [`admit`] decides at run time, [`simulate`] draws a schedule.

#![forbid(unsafe_code)]

mod admission;
mod anomaly;
pub mod bounds;
pub mod edf;
mod error;
pub mod fixed;
mod graph;
mod info;
pub mod limits;
mod measured;
mod operations;
mod picture;
mod schedule;
mod segments;
pub mod sensitivity;
pub mod simulate;
mod strategy;
mod task;
mod words;

pub use admission::{Refusal, RefusalFact, admit, admit_change};
pub use anomaly::{Anomaly, AnomalyFact, Severity};
pub use error::SchedError;
pub use info::{CallKind, Criticality, Dependency, Enabled, Handle, Importance, InfoKind, RtInfo};
pub use measured::{Measured, Measurements};
pub use operations::Operations;
pub use picture::{Picture, PictureJob};
pub use schedule::{Assigned, Bounds, Level, Schedule, Settings, periods};
pub use segments::Segment;
pub use strategy::{Dispatch, Strategy};
pub use task::{Response, Task};
pub use words::in_words;
