//! The origin of a number: facts of the machine, and the disturbances during a run. This module only reads kernel
//! files.

mod facts;
mod readings;
mod time;

use std::time::SystemTime;

pub use facts::machine;
pub use readings::Readings;
pub use time::rfc3339;

use crate::disturbance::Disturbance;
use crate::result::{ClockNote, Provenance};

/// Facts of a run that the caller provides.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Version of the program, with its commit if that is known.
    pub version: String,
    /// The mission file's path.
    pub mission_path: String,
    /// The mission file's whole text.
    pub mission_text: String,
    /// The accuracy of the stamps.
    pub clock: ClockNote,
}

/// Returns the provenance of a run that started at `started_at` with this disturbance. It consists of this process's
/// command line and profile, this machine's facts, and the caller's facts.
#[must_use]
pub fn provenance(run: Run, started_at: SystemTime, disturbance: &Disturbance) -> Provenance {
    Provenance {
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        version: run.version,
        profile: if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        }
        .to_owned(),
        started_at: rfc3339(started_at),
        duration_s: disturbance.duration.as_secs_f64(),
        mission_path: run.mission_path,
        mission_text: run.mission_text,
        machine: machine(),
        disturbance: disturbance.to_map(),
        clock: run.clock,
    }
}

#[cfg(test)]
pub(crate) use readings::tests::Tree;

#[cfg(test)]
mod tests {
    //! Checks that hold on every machine.

    use super::*;

    #[test]
    fn the_provenance_of_this_process_names_its_command_and_kernel() {
        let clock = ClockNote {
            shared: true,
            note: String::new(),
            conversion_error_ns: 0,
            latency_error_ns: None,
            latency_assumed_ns: None,
            sync: Default::default(),
        };
        let run = Run {
            version: "0.0.0".to_owned(),
            mission_path: "a.toml".to_owned(),
            mission_text: String::new(),
            clock,
        };
        let before = Readings::take();
        let disturbance = before.until(&Readings::take());
        let provenance = provenance(run, SystemTime::now(), &disturbance);
        assert_eq!(provenance.command.first(), std::env::args().next().as_ref());
        assert!(
            provenance.machine.contains_key("kernel"),
            "{:?}",
            provenance.machine
        );
        assert!(provenance.started_at.ends_with('Z') && provenance.started_at.starts_with("20"));
        assert!(disturbance.processors > 0);
    }
}
