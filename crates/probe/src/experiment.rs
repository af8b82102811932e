//! The experiments of the papers: `invert`, `costs`, `invoke` and `marshal`.
//!
//! The document keeps every measurement with its whole histogram, and the paper's figures as numbers.

mod costs;
mod invert;
mod invoke;
mod marshal;

pub use costs::{Costs, costs};
pub use invert::{Invert, invert};
pub use invoke::{Invoke, invoke};
pub use marshal::{Marshal, marshal};
