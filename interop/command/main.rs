//! The `deckwatch` command with foreign ORBs and with tshark.

#[path = "../common/mod.rs"]
mod common;
mod names;
mod services;
mod shell;
