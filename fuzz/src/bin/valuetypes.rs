//! Values of valuetypes as generated code reads them: chunks, indirections, truncation, custom code, fragments.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_cdr::fuzzing::valuetypes(octets));
