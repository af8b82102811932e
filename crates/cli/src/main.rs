//! The deckwatch command.

#![forbid(unsafe_code)]
fn main() {}
