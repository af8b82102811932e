//! How long a measurement takes: from its plan, and from how long the finished part of the plan took.

use std::time::{Duration, Instant};

/// The plan of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Forecast {
    /// The planned time of the whole.
    planned: Duration,
    /// The planned time of what is done.
    done: Duration,
    since: Option<Instant>,
}

impl Forecast {
    /// Begins with a plan, which has no time for building foreign programs.
    pub(super) fn begin(planned: Duration, now: Instant) -> Self {
        Self {
            planned,
            done: Duration::ZERO,
            since: Some(now),
        }
    }

    /// Notes that so much of the plan is done.
    pub(super) fn set_done(&mut self, done: Duration) {
        self.done = done.min(self.planned);
    }

    /// Leaves out time that was not planned, so that it does not count in the pace.
    pub(super) fn leave_out(&mut self, unplanned: Duration) {
        self.since = self.since.map(|since| since + unplanned);
    }

    pub(super) fn done(&self) -> Duration {
        self.done
    }

    /// The whole time and the time left. Both are zero without a plan, and until the pace is known: a plan has the
    /// right proportions, and not the right size.
    pub(super) fn at(&self, now: Instant) -> (Duration, Duration) {
        let elapsed = self.since.map_or(Duration::ZERO, |since| now - since);
        // A short beginning is no measure of the rest.
        if self.done < self.planned / MEASURE_SHARE || self.done.is_zero() {
            return (Duration::ZERO, Duration::ZERO);
        }
        let pace = elapsed.as_secs_f64() / self.done.as_secs_f64();
        let left = (self.planned - self.done).mul_f64(pace);
        (elapsed + left, left)
    }
}

/// A twentieth of the plan shows how fast it goes.
const MEASURE_SHARE: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_pace_and_is_unknown_before() {
        let seconds = Duration::from_secs;
        let begun = Instant::now();
        let mut forecast = Forecast::begin(seconds(100), begun);
        let unknown = (seconds(0), seconds(0));
        assert_eq!(forecast.at(begun), unknown);
        // Two seconds of the plan are too few to show that it takes twice as long.
        forecast.set_done(seconds(2));
        assert_eq!(forecast.at(begun + seconds(4)), unknown);
        forecast.set_done(seconds(50));
        assert_eq!(
            forecast.at(begun + seconds(100)),
            (seconds(200), seconds(100))
        );
        forecast.set_done(seconds(120));
        assert_eq!(
            forecast.at(begun + seconds(190)),
            (seconds(190), seconds(0))
        );
        assert_eq!(Forecast::default().at(begun), (seconds(0), seconds(0)));
    }

    #[test]
    fn a_build_of_minutes_does_not_slow_the_pace() {
        let seconds = Duration::from_secs;
        let begun = Instant::now();
        let mut forecast = Forecast::begin(seconds(100), begun);
        forecast.leave_out(seconds(600));
        forecast.set_done(seconds(50));
        assert_eq!(
            forecast.at(begun + seconds(650)),
            (seconds(100), seconds(50))
        );
    }
}
