//! The `deckwatch` command with foreign ORBs and dissectors.

#[path = "../common/mod.rs"]
mod common;
mod names;
mod services;
mod shell;
