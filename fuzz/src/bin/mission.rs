//! A mission file: TOML, shape, cross-checks, and what is foretold of it. Faults lie in the text and are said; IDL
//! files are not opened.

#![no_main]

use std::path::Path;

use deckwatch_scenario::forecast::forecast;
use deckwatch_scenario::mission::{LoadError, Mission};

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match Mission::parse(Path::new("fuzz.toml"), text, None) {
        Ok(mission) => {
            for variant in &mission.variants {
                drop(Mission::parse(Path::new("fuzz.toml"), text, Some(variant)));
            }
            drop(forecast(&mission));
        }
        Err(LoadError::Malformed(faults)) => {
            assert!(!faults.list().is_empty());
            assert!(faults.list().iter().all(|fault| fault.place.start <= text.len()));
            assert!(!faults.to_string().is_empty());
        }
        Err(_) => {}
    }
});
