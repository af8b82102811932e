//! The experiments of the papers: `invert`, `costs`, `invoke` and `marshal`.
//!
//! As in [`crate::bench`] each end is a process of its own, started once; the systems that are compared take turns within every round, and the
//! one that begins changes with each. A document keeps every measurement with its whole histogram, and the paper's figures as numbers.

mod calls;
mod costs;
mod end;
mod factor;
mod invert;
mod invoke;
mod kind;
mod marshal;
mod raw;
mod stage;
mod subject;

pub use costs::{Costs, costs};
pub use end::{EndRole, ExperimentEnd, run_experiment_end};
pub use invert::{Invert, invert};
pub use invoke::{Invoke, invoke};
pub use kind::ElementKind;
pub use marshal::{Marshal, marshal};
pub use stage::Staging;
