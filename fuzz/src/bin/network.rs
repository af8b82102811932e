//! A network file: TOML, shape, cross-checks, and a relay of what it describes. Faults lie in the text and are said.

#![no_main]

use std::path::Path;

use deckwatch_scenario::mission::LoadError;
use deckwatch_scenario::network::parse;
use deckwatch_testbed::relay::{Band, Destination, Head, Relay};

/// The hosts that send a frame.
const SENDERS: usize = 4;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match parse(Path::new("fuzz.toml"), text.into()) {
        Ok(network) => {
            let layout = network.layout.expect("a network file has a layout");
            let mut relay = Relay::new(&layout, network.seed).expect("it was checked");
            for host in 0..layout.hosts.len().min(SENDERS) {
                for to in [Destination::All, Destination::Host(0)] {
                    let head = Head {
                        to,
                        packet_bytes: 1_000,
                        band: Band::Middle,
                    };
                    relay.arrive(host as u64, host, head, ());
                }
            }
            while relay.poll(u64::MAX, 0).is_some() {}
            let ledger = relay.ledger();
            assert!(ledger.adds_up() && ledger.inside == 0, "{ledger:?}");
        }
        Err(LoadError::Malformed(faults)) => {
            assert!(!faults.list().is_empty());
            assert!(faults.list().iter().all(|fault| fault.place.start <= text.len()));
            assert!(!faults.to_string().is_empty());
        }
        Err(error) => panic!("{error}"),
    }
});
