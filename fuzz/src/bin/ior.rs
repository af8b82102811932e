//! Text of references: `IOR:`, `corbaloc:`, `corbaname:`.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_giop::fuzzing::reference(octets));
