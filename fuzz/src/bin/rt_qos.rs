//! A ConsumerQOS or SupplierQOS from octets, the filter of its list, and a match of the events that the list names.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_event::fuzzing::qos(octets));
