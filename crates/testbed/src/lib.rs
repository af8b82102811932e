//! Emulated hosts and links: namespaces, shapers; everything undone on drop.
//!
//! ```no_run
//! use std::process::Command;
//! use deckwatch_testbed::{HostSpec, NetworkSpec, Testbed};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! Testbed::clean_leftovers()?;
//! let hosts = [HostSpec::new("RTS").on([0]), HostSpec::new("SONAR").on([1])];
//! let testbed = Testbed::create(&NetworkSpec::gigabit_ethernet(), &hosts)?;
//! let mut ping = Command::new("ping");
//! ping.arg("-c1").arg(testbed.host("SONAR")?.address().to_string());
//! testbed.host("RTS")?.place(&mut ping)?;
//! ping.status()?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod bed;
mod error;
mod fault;
mod host;
pub mod leftovers;
pub mod limits;
pub mod load;
mod network;
mod owner;
mod recipe;
mod tool;

pub use bed::{Environment, Testbed};
pub use error::TestbedError;
pub use host::{Host, HostSpec};
pub use leftovers::{HostDescription, Standing, StandingDescription};
pub use network::{LinkLayer, NetworkSpec};
pub use owner::Owner;
pub use tool::Tool;
