//! An access file: TOML, shape, peers and ranges. Faults lie in the text and are said; a table can be asked anything, and
//! what it permits with one event it permits with some. Behind an octet 1 the rest makes a valid file with one lie.

#![no_main]

use std::net::IpAddr;
use std::path::Path;

use deckwatch_access::{Action, Asked, Events, Subject};
use deckwatch_fuzz::access_tables;
use deckwatch_scenario::access::parse;
use deckwatch_scenario::mission::LoadError;

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    // No text of TOML begins with it.
    if let [1, choices @ ..] = octets {
        return access_tables::play(choices);
    }
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match parse(Path::new("fuzz.toml"), text.into()) {
        Ok(table) => {
            let address = |octets: [u8; 4]| Subject::at(IpAddr::from(octets));
            for subject in [
                address([10, 1, 2, 3]),
                Subject::at(IpAddr::from(u128::MAX.to_be_bytes())),
                Subject::user(7),
                Subject {
                    name: Some("rts.ship"),
                    ..Subject::UNKNOWN
                },
                Subject::UNKNOWN,
            ] {
                for (action, _) in Action::ALL {
                    for number in [None, Some(0), Some(i32::MIN), Some(i32::MAX)] {
                        let events = Events {
                            event_type: number,
                            source: number,
                        };
                        let asked = Asked {
                            action: Some(action),
                            operation: b"resolve",
                            object: Some("ship/nav/rudder"),
                            events: Some(events),
                        };
                        let permits = table.permits(subject, &asked);
                        let of_some = Asked {
                            events: None,
                            ..asked
                        };
                        assert!(!permits || table.permits(subject, &of_some));
                        let of_operation = Asked {
                            action: None,
                            ..asked
                        };
                        assert!(permits || !table.permits(subject, &of_operation));
                    }
                }
            }
        }
        Err(LoadError::Malformed(faults)) => {
            assert!(!faults.list().is_empty());
            assert!(
                faults
                    .list()
                    .iter()
                    .all(|fault| fault.place.start <= text.len())
            );
            assert!(!faults.to_string().is_empty());
        }
        Err(error) => panic!("{error}"),
    }
});
