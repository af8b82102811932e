//! The output of a far host: its words, the lines of its part, and a file that comes back.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_scenario::fuzzing::far_end(octets));
