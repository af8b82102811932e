//! Emulated hosts and links, made of namespaces and shapers. Dropping a testbed removes them.
//!
//! ```no_run
//! use std::process::Command;
//! use deckwatch_testbed::{HostSpec, Testbed, TestbedError, preset};
//!
//! fn a_command_on_a_host(command: &mut Command) -> Result<Testbed, TestbedError> {
//!     Testbed::clean_leftovers()?;
//!     let hosts = [HostSpec::new("RTS").on([0]), HostSpec::new("SONAR").on([1])];
//!     let testbed = Testbed::create(&preset("gigabit-ethernet")?, &hosts)?;
//!     command.arg(testbed.host("SONAR")?.address().to_string());
//!     testbed.host("RTS")?.place(command)?;
//!     // The hosts are there until the testbed is dropped.
//!     Ok(testbed)
//! }
//! ```

#![forbid(unsafe_code)]

mod bed;
pub mod chain;
mod error;
mod fidelity;
mod host;
mod layout;
pub mod leftovers;
pub mod limits;
mod link;
mod network;
mod owner;
mod port;
mod presets;
mod recipe;
pub mod relay;
mod switch;
mod tool;

pub use bed::{Environment, Testbed};
pub use error::TestbedError;
pub use fidelity::Fidelity;
pub use host::{Host, HostSpec};
pub use layout::{Layout, LayoutError, Link, Node};
pub use leftovers::{HostDescription, Standing, StandingDescription};
pub use link::{Impairment, LinkLayer, LinkSpec};
pub use network::{Emulation, NetworkSpec};
pub use owner::Owner;
pub use port::Port;
pub use presets::{LOOPBACK, PRESETS, Preset, preset, preset_names};
pub use relay::process::RelayProgram;
pub use tool::Tool;
