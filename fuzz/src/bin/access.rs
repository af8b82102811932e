//! An access file: TOML, shape, peers and ranges. Faults lie in the text and are said; a table can be asked anything, and
//! what it permits with one event it permits with some.

#![no_main]

use std::net::IpAddr;
use std::path::Path;

use deckwatch_access::{Action, Events, Subject};
use deckwatch_scenario::access::parse;
use deckwatch_scenario::mission::LoadError;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match parse(Path::new("fuzz.toml"), text.into()) {
        Ok(table) => {
            let address = |octets: [u8; 4]| Subject::Address(IpAddr::from(octets));
            for subject in [
                address([10, 1, 2, 3]),
                Subject::Address(IpAddr::from(u128::MAX.to_be_bytes())),
                Subject::User(7),
                Subject::Unknown,
            ] {
                for (action, _) in Action::ALL {
                    for number in [None, Some(0), Some(i32::MIN), Some(i32::MAX)] {
                        let events = Events {
                            event_type: number,
                            source: number,
                        };
                        let permits = table.permits(subject, action, Some("NAV"), events);
                        let some = table.permits_some(subject, action, Some("NAV"));
                        assert!(some || !permits);
                    }
                }
            }
        }
        Err(LoadError::Malformed(faults)) => {
            assert!(!faults.list().is_empty());
            assert!(faults.list().iter().all(|fault| fault.place.start <= text.len()));
            assert!(!faults.to_string().is_empty());
        }
        Err(error) => panic!("{error}"),
    }
});
