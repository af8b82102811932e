//! What a machine does to keep its clock right: the kernel's state, and the programs that steer it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of one machine's CLOCK_REALTIME. The rate of CLOCK_MONOTONIC is steered with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncState {
    /// Whether the kernel counts the clock as synchronised: a program steers it.
    pub synchronised: bool,
    /// The kernel's status flags (STA_* of adjtimex), for example `PLL|NANO`.
    pub status: String,
    /// What is left of the last correction, nanoseconds.
    pub offset_ns: i64,
    /// By how much the kernel corrects the rate, parts in 10^9.
    pub frequency_ppb: i64,
    /// The largest error that the program claims, microseconds.
    pub max_error_us: u64,
    /// The error that the program estimates, microseconds.
    pub estimated_error_us: u64,
    /// TAI less UTC, seconds; 0 if nobody has set it.
    pub tai_offset_s: i64,
    /// The programs that run of those that steer clocks ([`SERVICES`]).
    pub services: Vec<String>,
    /// How often the clock was set while it was watched.
    pub steps: u64,
}

/// The programs that steer clocks, by the kernel's name of their process: NTP, then PTP.
pub const SERVICES: [&str; 6] = [
    "chronyd",
    "ntpd",
    "systemd-timesyn",
    "ptp4l",
    "phc2sys",
    "timemaster",
];

impl SyncState {
    /// Returns it as the rest of a sentence, for example `synchronised by chronyd, within 120 us`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let by = match &self.services[..] {
            [] => "by nothing known".to_owned(),
            names => format!("by {}", names.join(" and ")),
        };
        let mut words = if self.synchronised {
            format!("synchronised {by}, within {} us", self.max_error_us)
        } else if self.services.is_empty() {
            "not synchronised".to_owned()
        } else {
            format!("not synchronised yet {by}")
        };
        if self.steps > 0 {
            words += &format!(", set {} times", self.steps);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_told_with_the_program_that_makes_it_and_the_steps() {
        let mut state = SyncState::default();
        assert_eq!(state.in_words(), "not synchronised");
        state.services = vec!["chronyd".to_owned(), "ptp4l".to_owned()];
        assert_eq!(
            state.in_words(),
            "not synchronised yet by chronyd and ptp4l"
        );
        (state.synchronised, state.max_error_us, state.steps) = (true, 120, 2);
        assert_eq!(
            state.in_words(),
            "synchronised by chronyd and ptp4l, within 120 us, set 2 times"
        );
    }
}
