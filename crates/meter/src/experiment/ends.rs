//! The ends of a measurement as the kernel describes them, and the state of the machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One process of a measurement, read back during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndNote {
    /// `server`, `client` or `load`; with the program's name if it is not that of the measured system.
    pub end: String,
    /// The scheduling class and the processor that were asked for, in words.
    pub asked: String,
    /// Scheduling classes of the threads that worked, in words.
    pub classes: Vec<String>,
    /// Processors that these threads may run on.
    pub processors: Vec<u32>,
    /// SO_SNDBUF of its TCP connections, in the kernel's own count: the largest that was requested, or the largest.
    /// Absent without TCP, or if this program may not read it.
    #[serde(default)]
    pub send_buffer_octets: Option<u32>,
    /// The size of the send buffer was requested; otherwise the kernel lets it grow.
    #[serde(default)]
    pub is_send_buffer_fixed: Option<bool>,
    /// SO_RCVBUF, as the send buffer.
    #[serde(default)]
    pub receive_buffer_octets: Option<u32>,
    /// The size of the receive buffer was requested.
    #[serde(default)]
    pub is_receive_buffer_fixed: Option<bool>,
    /// Its sockets are in blocking mode.
    #[serde(default)]
    pub is_blocking: Option<bool>,
    /// The difference from what was asked for, in words.
    #[serde(default)]
    pub differs: Option<String>,
}

impl EndNote {
    /// The end and its difference from what was asked for, in words.
    #[must_use]
    pub fn difference(&self) -> Option<String> {
        let differs = self.differs.as_ref()?;
        Some(format!("the {}: {differs}", self.end))
    }
}

/// What the simplest operations take on this machine at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineState {
    /// `before` or `after` the measurements of the condition.
    pub when: String,
    /// Processors and scheduling class, in words.
    pub condition: String,
    /// Median round trip of 64 octets over raw TCP.
    pub raw_p50_ns: f64,
    /// Number of these round trips.
    pub raw_round_trips: u64,
    /// Median of the cheapest system call (getppid).
    pub system_call_p50_ns: f64,
    /// Number of these calls.
    pub system_calls: u64,
}

impl MachineState {
    /// The state in a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "State of the machine {}, {}: raw TCP 64 octets both ways p50 {:.2} us ({} round trips), a system call p50 {:.3} us \
             ({} calls).",
            self.when,
            self.condition,
            self.raw_p50_ns / 1e3,
            self.raw_round_trips,
            self.system_call_p50_ns / 1e3,
            self.system_calls,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_names_its_end_and_an_end_as_asked_has_none() {
        let as_asked = EndNote {
            end: "client".to_owned(),
            ..EndNote::default()
        };
        assert_eq!(as_asked.difference(), None);
        let other = EndNote {
            differs: Some("it has SCHED_OTHER".to_owned()),
            ..as_asked
        };
        let words = "the client: it has SCHED_OTHER";
        assert_eq!(other.difference().as_deref(), Some(words));
    }

    #[test]
    fn the_state_of_the_machine_is_a_sentence_with_units_and_counts() {
        let state = MachineState {
            when: "before".to_owned(),
            condition: "both ends on processor 1".to_owned(),
            raw_p50_ns: 13_104.0,
            raw_round_trips: 22_000,
            system_call_p50_ns: 214.5,
            system_calls: 900,
        };
        assert_eq!(
            state.words(),
            "State of the machine before, both ends on processor 1: raw TCP 64 octets both ways p50 13.10 us (22000 round trips), \
             a system call p50 0.214 us (900 calls)."
        );
    }
}
