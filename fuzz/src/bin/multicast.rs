//! Datagrams of a multicast group, joined to requests, and the sets of events in them.

#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| deckwatch_event::fuzzing::multicast(octets));
