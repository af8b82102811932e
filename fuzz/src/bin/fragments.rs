//! Values in a message that is divided and joined again, and a stream of messages behind it.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_giop::fuzzing::fragments(octets));
