//! An IDL file from octets: the model, its TypeCodes, and the Rust made of it.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_idl::fuzzing::file(octets));
