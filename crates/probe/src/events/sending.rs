//! Sending events by an absolute schedule.

use std::time::Duration;

use deckwatch_os::clock::{monotonic_ns, sleep_until};

use crate::limits::{LATE_SEND_NS, WAIT_STEP_NS};

/// Keeps an absolute schedule, and counts the sends that begin late. A due time never depends on earlier sends: overdue
/// events are sent at once, and none is skipped.
#[derive(Debug)]
pub struct Pacer {
    start_ns: i64,
    counts: SendCounts,
}

/// How well a schedule was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct SendCounts {
    /// Events sent.
    pub sent: u64,
    /// Events whose sending began more than [`LATE_SEND_NS`] after they were due.
    pub late: u64,
    /// The longest time from due to sent, nanoseconds.
    pub lateness_ns_max: i64,
}

impl Pacer {
    /// Returns a schedule that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            start_ns: monotonic_ns(),
            counts: SendCounts::default(),
        }
    }

    /// Waits until an event is due, `after` the start. Returns false if `is_over` holds before.
    pub fn wait(&self, after: Duration, is_over: impl Fn() -> bool) -> bool {
        let due_ns = self.due_ns(after);
        loop {
            if is_over() {
                return false;
            }
            let now_ns = monotonic_ns();
            if now_ns >= due_ns {
                return true;
            }
            // A signal must not wait for the next event.
            sleep_until(due_ns.min(now_ns.saturating_add(WAIT_STEP_NS)));
        }
    }

    /// Counts an event whose sending begins now; `after` is as in [`Pacer::wait`], or `None` for an event that has no
    /// due time.
    pub fn count(&mut self, after: Option<Duration>) {
        self.counts.sent += 1;
        if let Some(after) = after {
            let lateness_ns = monotonic_ns().saturating_sub(self.due_ns(after));
            self.counts.add_lateness(lateness_ns);
        }
    }

    /// The counts.
    #[must_use]
    pub const fn counts(&self) -> SendCounts {
        self.counts
    }

    fn due_ns(&self, after: Duration) -> i64 {
        let after_ns = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
        self.start_ns.saturating_add(after_ns)
    }
}

impl SendCounts {
    fn add_lateness(&mut self, lateness_ns: i64) {
        self.late += u64::from(lateness_ns > LATE_SEND_NS);
        self.lateness_ns_max = self.lateness_ns_max.max(lateness_ns);
    }
}

/// A number of events a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendRate(f64);

impl SendRate {
    /// Returns the due time of an event after the start. Each is computed on its own, so that rounding does not add up.
    #[must_use]
    pub fn due(self, number: u64) -> Duration {
        Duration::try_from_secs_f64(number as f64 / self.0).unwrap_or(Duration::MAX)
    }
}

impl std::str::FromStr for SendRate {
    type Err = &'static str;

    /// Parses `20/s`, `20`, `20Hz`, `0.5/s`, `6/min` or `100/h`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected a number of events and a unit (/s, /min, /h), for example 20/s";
        let number_len = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(number_len.unwrap_or(text.len()));
        let seconds = match unit.trim() {
            "" | "/s" | "Hz" => 1.0,
            "/min" => 60.0,
            "/h" => 3600.0,
            _ => return Err(EXPECTED),
        };
        let rate = number.parse::<f64>().map_err(|_| EXPECTED)? / seconds;
        // Slower rates have due times that no clock reaches; faster ones are sent without a rate.
        if (1e-6..=1e9).contains(&rate) {
            Ok(Self(rate))
        } else {
            Err("a rate is from 0.0036/h to 1000000000/s")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_with_their_unit() {
        for (text, period_ms) in [
            ("20/s", 50),
            ("20", 50),
            ("0.5Hz", 2_000),
            ("6/min", 10_000),
        ] {
            let rate: SendRate = text.parse().expect(text);
            assert_eq!(rate.due(1), Duration::from_millis(period_ms), "{text}");
        }
        for text in ["", "fast", "-1/s", "0/s", "20/fortnight", "1e3/s", "inf"] {
            assert!(text.parse::<SendRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn rounding_does_not_add_up() {
        let rate: SendRate = "3/s".parse().expect("a rate");
        assert_eq!(rate.due(3_000_000), Duration::from_secs(1_000_000));
    }

    #[test]
    fn a_send_beyond_the_tolerance_is_late() {
        let mut counts = SendCounts::default();
        for lateness_ns in [0, LATE_SEND_NS, LATE_SEND_NS + 1, -5] {
            counts.add_lateness(lateness_ns);
        }
        assert_eq!((counts.late, counts.lateness_ns_max), (1, LATE_SEND_NS + 1));
    }

    #[test]
    fn waiting_ends_when_it_is_over() {
        let pacer = Pacer::start();
        assert!(!pacer.wait(Duration::MAX, || true));
        assert!(pacer.wait(Duration::ZERO, || false));
    }
}
