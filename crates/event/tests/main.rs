//! The event channel with suppliers and consumers of the tests' own.

#[path = "../../orb/tests/support/around.rs"]
mod around;
mod support;

mod channel;
mod connecting;
mod endings;
mod factory;
mod failures;
mod pull_protocol;
mod pulled_suppliers;
mod pulling;
mod suppliers;
mod unwritten;
mod wire;
