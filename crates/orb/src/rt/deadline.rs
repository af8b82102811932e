//! Start and end times of requests and replies (CORBA 3.3 part 1, clause 17.2.4), and how they compare with the clock.
//!
//! The caller applies its own times by its own clock: it waits for a start time, and does not send after the end time.
//! The times are sent as UTC in the service context INVOCATION_POLICIES.
//!
//! The server's clock may differ from the caller's. So a server applies the times only under two conditions:
//! - the error bound of its clock is known ([`crate::OrbBuilder::clock_bound`]);
//! - the result is certain within that bound and the inaccuracy that the caller states.
//!
//! For the same reason a caller converts relative timeouts to end times only if the bound of its own clock is known.

use std::time::Duration;

use deckwatch_giop::UtcT;
use deckwatch_giop::invocation::Times;

use crate::transport::Instant64;

/// How to proceed with a request that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may be delivered to its servant.
    Due,
    /// It may be delivered after this duration.
    Early(Duration),
    /// It must be dropped: its end time, or that of its reply, has passed.
    Late,
}

/// One point in time on the clock of the transport and in UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: Instant64,
    /// Nanoseconds since 1970.
    pub(crate) utc_ns: u64,
}

impl Moment {
    /// Returns the transport's time that corresponds to the UTC time `time`, if neither clock is set in between.
    pub(crate) fn instant(&self, time: UtcT) -> Instant64 {
        let unix_ns = time.unix_ns();
        let ahead = unix_ns.saturating_sub(self.utc_ns);
        let behind = self.utc_ns.saturating_sub(unix_ns);
        Instant64(self.now.0.saturating_add(ahead).saturating_sub(behind))
    }

    /// Returns the UTC time `wait` from now, with `bound` as the error bound of this clock.
    pub(crate) fn utc_after(&self, wait: Duration, bound: Duration) -> UtcT {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        UtcT::from_unix_ns(self.utc_ns.saturating_add(wait_ns), bound)
    }
}

/// Compares the times of a request with the clock: `utc_ns`, with an error of at most `bound`.
pub(crate) fn verdict(times: &Times, has_reply: bool, utc_ns: u64, bound: Duration) -> Verdict {
    let bound_ns = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX);
    let latest_ns = |time: UtcT| {
        let error_ns = time.inaccuracy_ns().saturating_add(bound_ns);
        time.unix_ns().saturating_add(error_ns)
    };
    let reply_end = times.reply_end.filter(|_| has_reply);
    let ends = [times.request_end, reply_end];
    if ends
        .into_iter()
        .flatten()
        .any(|end| utc_ns > latest_ns(end))
    {
        return Verdict::Late;
    }
    let earliest_ns = |time: UtcT| {
        let error_ns = time.inaccuracy_ns().saturating_add(bound_ns);
        time.unix_ns().saturating_sub(error_ns)
    };
    match times.request_start.map(earliest_ns) {
        Some(start_ns) if start_ns > utc_ns => {
            Verdict::Early(Duration::from_nanos(start_ns - utc_ns))
        }
        _ => Verdict::Due,
    }
}

/// Returns the earlier of two end times.
pub(crate) fn earlier(one: Option<UtcT>, other: Option<UtcT>) -> Option<UtcT> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.time < one.time { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON_NS: u64 = 1_800_000_000_000_000_000;

    fn at(offset_ns: i64, error: Duration) -> Option<UtcT> {
        let unix_ns = NOON_NS.saturating_add_signed(offset_ns);
        Some(UtcT::from_unix_ns(unix_ns, error))
    }

    #[test]
    fn an_end_counts_once_it_has_certainly_passed() {
        let (ms, bound) = (Duration::from_millis(1), Duration::from_millis(2));
        for (offset_ns, expected) in [
            (1_000_000, Verdict::Due),
            (0, Verdict::Due),
            (-3_000_000, Verdict::Due),
            (-3_000_100, Verdict::Late),
        ] {
            let times = Times {
                request_end: at(offset_ns, ms),
                ..Times::default()
            };
            assert_eq!(verdict(&times, true, NOON_NS, bound), expected);
        }
        let unknown = Times {
            request_end: Some(UtcT::new(
                at(-3_600_000_000_000, ms).unwrap().time,
                u64::MAX,
                0,
            )),
            ..Times::default()
        };
        assert_eq!(verdict(&unknown, true, NOON_NS, bound), Verdict::Due);
    }

    #[test]
    fn the_end_of_a_reply_counts_where_there_is_one() {
        let times = Times {
            reply_end: at(-1_000, Duration::ZERO),
            ..Times::default()
        };
        let exact = Duration::ZERO;
        assert_eq!(verdict(&times, true, NOON_NS, exact), Verdict::Late);
        assert_eq!(verdict(&times, false, NOON_NS, exact), Verdict::Due);
    }

    #[test]
    fn a_start_is_waited_for_while_it_has_certainly_not_come() {
        let times = Times {
            request_start: at(5_000_000, Duration::from_millis(1)),
            ..Times::default()
        };
        let of = |bound_ms| verdict(&times, true, NOON_NS, Duration::from_millis(bound_ms));
        assert_eq!(of(1), Verdict::Early(Duration::from_millis(3)));
        assert_eq!(of(4), Verdict::Due);
    }

    #[test]
    fn a_time_is_found_on_the_other_clock_and_back() {
        let moment = Moment {
            now: Instant64(1_000),
            utc_ns: NOON_NS,
        };
        assert_eq!(
            moment.instant(at(500, Duration::ZERO).unwrap()),
            Instant64(1_500)
        );
        assert_eq!(
            moment.instant(at(-500, Duration::ZERO).unwrap()),
            Instant64(500)
        );
        assert_eq!(moment.instant(UtcT::default()), Instant64(0));
        let later = moment.utc_after(Duration::from_nanos(300), Duration::from_nanos(1));
        assert_eq!(moment.instant(later), Instant64(1_300));
        assert_eq!(later.inaccuracy(), 1);
        assert_eq!(
            moment.utc_after(Duration::MAX, Duration::ZERO).unix_ns() / 1_000_000_000,
            u64::MAX / 1_000_000_000
        );
        let (one, two) = (at(1, Duration::ZERO), at(2_000, Duration::ZERO));
        assert_eq!(earlier(one, two), one);
        assert_eq!(earlier(two, one), one);
        assert_eq!(earlier(None, two), two);
    }
}
