//! Handshakes of TLS, cut, changed or divided, at the entrance of a listener.

#![no_main]

use deckwatch_fuzz::{counted::Counted, tls_handshakes::play};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| play(octets));
