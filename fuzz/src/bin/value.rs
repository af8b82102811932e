//! A type and a value of it as people write them: what is accepted is printed, and reads back.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_idl::fuzzing::value(octets));
