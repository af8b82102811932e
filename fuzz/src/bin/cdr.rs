//! An Any from octets: its TypeCode, its value, and both again in the other byte order.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_cdr::fuzzing::any(octets));
