//! Sessions of GIOP with one lie, at a whole ORB in memory.

#![no_main]

use deckwatch_fuzz::{counted::Counted, giop_sessions::play};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| play(octets));
