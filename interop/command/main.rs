//! The `deckwatch` command with foreign ORBs and with tshark.

#[path = "../common.rs"]
mod common;
mod names;
mod omnievents;
mod services;
mod shell;
