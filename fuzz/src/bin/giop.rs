//! A stream of GIOP messages: framing, joining, parsing, and what is lazily read of them.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_giop::fuzzing::stream(octets));
