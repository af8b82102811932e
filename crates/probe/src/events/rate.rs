//! The rate of a stream of events, its inter-arrival times, and gaps in it.
//!
//! Jitter is the standard deviation of the inter-arrival times. A gap is an inter-arrival time above
//! [`GAP_PERIODS`] expected periods; without a stated period, the median of the
//! window's inter-arrival times stands for it.

use std::time::Duration;

use deckwatch_meter::histogram::LatencyHistogram;

use crate::limits::GAP_PERIODS;

/// Collects the events of one window, or of the whole stream.
#[derive(Default)]
pub struct RateWindow {
    period: Option<Duration>,
    events: u64,
    intervals: LatencyHistogram,
    first_ns: Option<i64>,
    last_ns: i64,
    min_ns: i64,
    max_ns: i64,
    /// Mean of the inter-arrival times, and the sum of squared differences from it (Welford's recurrence).
    mean_ns: f64,
    squares_ns2: f64,
}

/// The figures of one window.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Rate {
    /// Events received.
    pub events: u64,
    /// Inter-arrival times among them; the first one ends at the first event of the window.
    pub intervals: u64,
    /// Intervals a second; `None` without any.
    pub rate_hz: Option<f64>,
    /// The inter-arrival times; `None` without any.
    pub inter_arrival: Option<InterArrival>,
}

/// The inter-arrival times of one window.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct InterArrival {
    /// The shortest, nanoseconds.
    pub min_ns: i64,
    /// The median to three digits, nanoseconds.
    pub p50_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: i64,
    /// The standard deviation, nanoseconds.
    pub jitter_ns: f64,
    /// Gaps: intervals much longer than the period.
    pub gaps: u64,
}

impl RateWindow {
    /// Returns an empty window. `period` is the expected one, if it is known.
    #[must_use]
    pub fn new(period: Option<Duration>) -> Self {
        Self {
            period,
            ..Self::default()
        }
    }

    /// Counts an event that was received at this time of CLOCK_MONOTONIC.
    pub fn add(&mut self, received_ns: i64) {
        self.events += 1;
        if self.first_ns.is_some() {
            self.add_interval(received_ns.saturating_sub(self.last_ns));
        } else {
            self.first_ns = Some(received_ns);
        }
        self.last_ns = received_ns;
    }

    fn add_interval(&mut self, interval_ns: i64) {
        let is_first = self.intervals.count() == 0;
        self.intervals.record(interval_ns);
        self.min_ns = if is_first {
            interval_ns
        } else {
            self.min_ns.min(interval_ns)
        };
        self.max_ns = if is_first {
            interval_ns
        } else {
            self.max_ns.max(interval_ns)
        };
        let off = interval_ns as f64 - self.mean_ns;
        self.mean_ns += off / self.intervals.count() as f64;
        self.squares_ns2 += off * (interval_ns as f64 - self.mean_ns);
    }

    /// Returns the figures, and begins the next window at the last event.
    pub fn take(&mut self) -> Rate {
        let rate = self.rate();
        self.intervals.clear();
        self.first_ns = self.first_ns.map(|_| self.last_ns);
        (self.events, self.mean_ns, self.squares_ns2) = (0, 0.0, 0.0);
        rate
    }

    /// Returns the figures.
    #[must_use]
    pub fn rate(&self) -> Rate {
        let intervals = self.intervals.count();
        let spread = |first_ns: i64| self.last_ns.saturating_sub(first_ns);
        let lasted_ns = self.first_ns.map_or(0, spread);
        Rate {
            events: self.events,
            intervals,
            rate_hz: (lasted_ns > 0).then(|| intervals as f64 * 1e9 / lasted_ns as f64),
            inter_arrival: (intervals > 0).then(|| self.inter_arrival(intervals)),
        }
    }

    fn inter_arrival(&self, intervals: u64) -> InterArrival {
        let of = |end_ns: i64| u64::try_from(end_ns).unwrap_or(0);
        // The histogram returns the upper bound of a bucket.
        let p50_ns = self.intervals.quantile_ns(0.5);
        let p50_ns = p50_ns.clamp(of(self.min_ns), of(self.max_ns));
        let stated_ns = self.period.map(|period| period.as_nanos() as f64);
        let gap_ns = stated_ns.unwrap_or(p50_ns as f64) * GAP_PERIODS;
        let long = self
            .intervals
            .recorded()
            .filter(|(upper_ns, _)| *upper_ns as f64 > gap_ns);
        InterArrival {
            min_ns: self.min_ns,
            p50_ns,
            max_ns: self.max_ns,
            jitter_ns: (self.squares_ns2 / intervals as f64).max(0.0).sqrt(),
            gaps: long.map(|(_, count)| count).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn a_regular_stream_has_its_rate_and_no_jitter() {
        let mut window = RateWindow::new(None);
        for number in 0..21 {
            window.add(number * 50 * MS);
        }
        let rate = window.rate();
        assert_eq!((rate.events, rate.intervals), (21, 20));
        assert_eq!(rate.rate_hz, Some(20.0));
        let inter = rate.inter_arrival.expect("intervals");
        assert_eq!(
            (inter.min_ns, inter.p50_ns, inter.max_ns, inter.gaps),
            (50 * MS, 50_000_000, 50 * MS, 0)
        );
        assert!(inter.jitter_ns < 1e-6, "{inter:?}");
    }

    #[test]
    fn jitter_is_the_standard_deviation_and_long_intervals_are_gaps() {
        // Intervals of 45, 55, 45, 55 ms have a standard deviation of 5 ms; 120 ms is a gap.
        let mut window = RateWindow::new(None);
        for at_ms in [0, 45, 100, 145, 200] {
            window.add(at_ms * MS);
        }
        let inter = window.rate().inter_arrival.expect("intervals");
        assert!((inter.jitter_ns - 5e6).abs() < 1.0, "{inter:?}");
        assert_eq!(inter.gaps, 0);
        window.add(320 * MS);
        let inter = window.rate().inter_arrival.expect("intervals");
        assert_eq!((inter.gaps, inter.max_ns), (1, 120 * MS));
        let mut stated = RateWindow::new(Some(Duration::from_millis(20)));
        for at_ms in [0, 40, 60] {
            stated.add(at_ms * MS);
        }
        assert_eq!(stated.rate().inter_arrival.expect("intervals").gaps, 1);
    }

    #[test]
    fn the_interval_between_two_windows_belongs_to_the_second() {
        let mut window = RateWindow::new(None);
        for at_ms in [0, 10] {
            window.add(at_ms * MS);
        }
        assert_eq!(window.take().intervals, 1);
        assert_eq!(window.rate().events, 0);
        window.add(30 * MS);
        let rate = window.take();
        assert_eq!(
            (rate.events, rate.intervals, rate.rate_hz),
            (1, 1, Some(50.0))
        );
        let quiet = window.take();
        assert_eq!(
            (quiet.events, quiet.rate_hz, quiet.inter_arrival),
            (0, None, None)
        );
    }
}
