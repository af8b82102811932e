//! A schedule file: TOML, shape, cross-checks, and the schedule under each strategy. Faults lie in the text and are
//! said; no set of operations makes the analysis panic or hang.

#![no_main]

use std::path::Path;

use deckwatch_scenario::mission::LoadError;
use deckwatch_scenario::schedule::ScheduleFile;
use deckwatch_sched::{Settings, Strategy};

libfuzzer_sys::fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    let check = |error: LoadError| {
        let LoadError::Malformed(faults) = error else {
            panic!("{error}");
        };
        assert!(!faults.list().is_empty());
        assert!(faults.list().iter().all(|fault| fault.place.start <= text.len()));
        assert!(!faults.to_string().is_empty());
    };
    match ScheduleFile::parse(Path::new("fuzz.toml"), text) {
        Ok(file) => {
            for strategy in Strategy::ALL {
                let settings = Settings {
                    strategy,
                    ..file.settings
                };
                if let Err(error) = file.schedule(settings) {
                    check(error);
                }
            }
        }
        Err(error) => check(error),
    }
});
