//! The `deckwatch` command with foreign ORBs and with tshark.

#[path = "../common.rs"]
mod common;
mod event_examples;
mod gateway;
mod names;
mod omnievents;
mod services;
mod shell;
