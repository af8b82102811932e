//! The largest burst of late messages for which a verdict must hold.

use std::collections::BTreeSet;

use super::{Terms, nanoseconds};
use crate::limits::NEAR_MISSES;
use crate::result::AskedBy;
use crate::sample::Sample;
use crate::statistics::{Asked, longest_bursts};

/// Returns the burst that the mission asks for. If it asks for none: the longest disturbance that the judged messages
/// show at latencies below the deadline, and at least the number of messages due within a deadline, because a stall as
/// long as the deadline holds up so many. An excused message counts as prompt.
pub(super) fn asked(terms: &Terms, judged: &[&Sample], excused: impl Fn(&Sample) -> bool) -> Asked {
    if let Some(burst) = terms.clusters {
        return Asked::by_mission(burst);
    }
    let deadline = terms.arrivals.messages_within(terms.deadline);
    let latencies: Vec<i64> = judged
        .iter()
        .map(|sample| match sample {
            sample if excused(sample) => i64::MIN,
            sample if sample.flags.lost => i64::MAX,
            sample => sample.received_ns.saturating_sub(sample.due_ns),
        })
        .collect();
    let disturbance = longest_disturbance(nanoseconds(terms.deadline), &latencies);
    if disturbance > deadline {
        Asked {
            burst: disturbance,
            by: AskedBy::Disturbance,
        }
    } else {
        Asked {
            burst: deadline,
            by: AskedBy::Deadline,
        }
    }
}

/// Returns the sequence numbers of the messages that were `late` for a cause, and of those behind each of them that the
/// same stop still held up: up to the first that was as prompt as most.
pub(super) fn with_their_tails(
    terms: &Terms,
    judged: &[&Sample],
    late: impl Fn(&Sample) -> bool,
) -> BTreeSet<u64> {
    let received = judged.iter().filter(|sample| !sample.flags.lost);
    let latency_ns = |sample: &Sample| sample.received_ns.saturating_sub(sample.due_ns);
    let mut latencies: Vec<i64> = received.map(|sample| latency_ns(sample)).collect();
    if latencies.is_empty() {
        return BTreeSet::new();
    }
    let middle = latencies.len() / 2;
    let median_ns = *latencies.select_nth_unstable(middle).1;
    let slack_ns = nanoseconds(terms.deadline).saturating_sub(median_ns);
    let prompt_ns =
        median_ns.saturating_add(slack_ns.max(0) / NEAR_MISSES[NEAR_MISSES.len() - 1].0);
    let mut is_held = false;
    let mut held = BTreeSet::new();
    for sample in judged {
        let (is_late, is_slow) = (late(sample), latency_ns(sample) > prompt_ns);
        is_held = is_late || (is_held && is_slow && !sample.flags.late);
        if is_held {
            held.insert(sample.sequence);
        }
    }
    held
}

/// Returns the longest burst, beyond chance, of messages whose latency exceeds a threshold below the deadline. The
/// thresholds divide the slack, the deadline less the median latency. A low threshold that many messages exceed is left
/// out ([`NEAR_MISSES`]).
fn longest_disturbance(deadline_ns: i64, latencies: &[i64]) -> u64 {
    let mut sorted = latencies.to_vec();
    let middle = sorted.len() / 2;
    if sorted.is_empty() {
        return 0;
    }
    let median_ns = *sorted.select_nth_unstable(middle).1;
    let slack_ns = deadline_ns.saturating_sub(median_ns);
    if slack_ns <= 0 {
        return 0;
    }
    let beyond = |threshold_ns: i64| -> Vec<u64> {
        (0..)
            .zip(latencies)
            .filter(|&(_, &latency_ns)| latency_ns > threshold_ns)
            .map(|(position, _)| position)
            .collect()
    };
    NEAR_MISSES
        .iter()
        .map(|(divisor, share_max)| {
            (
                beyond(median_ns.saturating_add(slack_ns / divisor)),
                share_max,
            )
        })
        .filter(|(beyond, share_max)| beyond.len() as f64 <= latencies.len() as f64 * *share_max)
        .map(|(beyond, _)| longest_bursts(latencies.len() as u64, &beyond).beyond_chance)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::blame::tests::{MS, hold_up, prompt};
    use crate::sample::Layer;
    use crate::statistics::simulated::{Process, Random};

    fn terms(deadline_ms: u64, clusters: Option<u64>) -> Terms {
        Terms {
            deadline: Duration::from_millis(deadline_ms),
            clusters,
            ..crate::judge::tests::terms()
        }
    }

    fn asked_by(terms: &Terms, samples: &[Sample]) -> (u64, AskedBy) {
        let judged: Vec<&Sample> = samples.iter().collect();
        let asked = asked(terms, &judged, |_| false);
        (asked.burst, asked.by)
    }

    #[test]
    fn the_deadline_in_periods_is_asked_for_at_least() {
        let samples: Vec<Sample> = (0..1_000).map(prompt).collect();
        for (deadline_ms, burst) in [(20, 1), (50, 1), (51, 2), (500, 10)] {
            let found = asked_by(&terms(deadline_ms, None), &samples);
            assert_eq!(found, (burst, AskedBy::Deadline), "{deadline_ms} ms");
        }
        assert_eq!(asked_by(&terms(50, None), &[]), (1, AskedBy::Deadline));
    }

    #[test]
    fn a_disturbance_that_made_no_message_late_is_asked_for() {
        let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
        for sample in &mut samples[400..407] {
            hold_up(sample, Layer::Network, 30 * MS);
        }
        let found = asked_by(&terms(50, None), &samples);
        assert_eq!(found, (7, AskedBy::Disturbance));
        let asked = asked_by(&terms(50, Some(3)), &samples);
        assert_eq!(asked, (3, AskedBy::Mission), "the mission decides");
    }

    #[test]
    fn a_disturbance_is_seen_from_an_eighth_of_the_slack_on() {
        // The slack is 46 ms, its eighth 5.75 ms.
        let eighth_ns = 5_750_000;
        for (ns, found) in [
            (eighth_ns, (1, AskedBy::Deadline)),
            (eighth_ns + 1, (7, AskedBy::Disturbance)),
        ] {
            let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
            for sample in &mut samples[400..407] {
                hold_up(sample, Layer::Network, ns);
            }
            assert_eq!(asked_by(&terms(50, None), &samples), found, "{ns} ns");
        }
    }

    #[test]
    fn a_stop_holds_up_the_messages_behind_a_late_one_until_one_is_prompt() {
        // Two messages take 1 ms, most 4 ms. The slack is 46 ms, its eighth 5.75 ms.
        let mut samples: Vec<Sample> = (0..21).map(prompt).collect();
        for sample in &mut samples[..2] {
            sample.received_ns = sample.due_ns + MS;
        }
        let mut hold = |index: usize, ns: i64, is_late: bool| {
            hold_up(&mut samples[index], Layer::WakeUp, ns);
            samples[index].flags.late = is_late;
        };
        hold(5, 60 * MS, true);
        hold(6, 5_750_001, false);
        hold(7, 5_750_000, false);
        hold(8, 30 * MS, false);
        hold(10, 60 * MS, true);
        // Late for another cause.
        hold(11, 70 * MS, true);
        hold(12, 30 * MS, false);
        let judged: Vec<&Sample> = samples.iter().collect();
        let held = with_their_tails(&terms(50, None), &judged, |sample| {
            sample.flags.late && sample.sequence != 11
        });
        assert_eq!(held, BTreeSet::from([5, 6, 10]));
    }

    #[test]
    fn the_slack_begins_at_the_median_and_not_at_the_shortest_latency() {
        let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
        for sample in &mut samples[..2] {
            sample.received_ns = sample.due_ns + MS;
        }
        // An eighth of 49 ms beyond 1 ms, but not an eighth of 46 ms beyond 4 ms.
        for sample in &mut samples[400..407] {
            hold_up(sample, Layer::Network, 4 * MS);
        }
        let found = asked_by(&terms(50, None), &samples);
        assert_eq!(found, (1, AskedBy::Deadline));
    }

    #[test]
    fn a_threshold_that_many_messages_exceed_is_left_out_and_the_next_one_decides() {
        // A third of the messages, one at a time, is a little slower than the others; a disturbance is slower still.
        for (jitter_ms, disturbance_ms) in [(8, 15), (15, 30)] {
            let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
            for sample in samples.iter_mut().step_by(3) {
                hold_up(sample, Layer::Network, jitter_ms * MS);
            }
            let with_jitter = asked_by(&terms(50, None), &samples);
            assert_eq!(with_jitter, (1, AskedBy::Deadline), "{jitter_ms} ms");
            for (sequence, sample) in (401..).zip(&mut samples[401..408]) {
                *sample = prompt(sequence);
                hold_up(sample, Layer::Network, disturbance_ms * MS);
            }
            let found = asked_by(&terms(50, None), &samples);
            assert_eq!(found, (7, AskedBy::Disturbance), "{disturbance_ms} ms");
        }
    }

    #[test]
    fn lost_messages_next_to_each_other_are_a_disturbance() {
        let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
        for sample in &mut samples[400..407] {
            sample.flags.lost = true;
        }
        let found = asked_by(&terms(50, None), &samples);
        assert_eq!(found, (7, AskedBy::Disturbance));
    }

    #[test]
    fn a_flow_that_is_usually_late_shows_no_near_miss() {
        let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
        for sample in &mut samples[..7] {
            hold_up(sample, Layer::Network, 30 * MS);
        }
        // The median latency is 4 ms.
        assert_eq!(asked_by(&terms(4, None), &samples).0, 1);
        assert_eq!(asked_by(&terms(3, None), &samples).0, 1);
    }

    #[test]
    fn of_a_low_threshold_that_more_than_a_twentieth_of_the_messages_exceed_nothing_is_learnt() {
        // A quarter of the slack is 11.5 ms, half of it 23 ms.
        for (ms, slow, found) in [
            (8, 50, (50, AskedBy::Disturbance)),
            (8, 51, (1, AskedBy::Deadline)),
            (23, 50, (50, AskedBy::Disturbance)),
            (23, 51, (1, AskedBy::Deadline)),
        ] {
            let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
            for sample in &mut samples[400..400 + slow] {
                hold_up(sample, Layer::Network, ms * MS);
            }
            let asked = asked_by(&terms(50, None), &samples);
            assert_eq!(asked, found, "{slow} slow by {ms} ms");
        }
    }

    #[test]
    fn a_long_disturbance_that_takes_half_of_the_slack_is_asked_for() {
        for slow in [51, 60, 400, 499] {
            let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
            for sample in &mut samples[300..300 + slow] {
                hold_up(sample, Layer::Network, 24 * MS);
            }
            let found = asked_by(&terms(50, None), &samples);
            assert_eq!(found, (slow as u64, AskedBy::Disturbance));
        }
    }

    #[test]
    fn neighbours_by_chance_are_no_disturbance() {
        // Independent messages, some of which are next to each other.
        let (mut random, mut seen) = (Random::new(3), 0);
        for _ in 0..20 {
            let positions = Process::Independent.positions(1_000, 0.03, &mut random);
            let longest = longest_bursts(1_000, &positions);
            if positions.len() > 50 || longest.beyond_chance > 1 {
                continue;
            }
            let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
            for position in positions {
                hold_up(&mut samples[position as usize], Layer::Network, 8 * MS);
            }
            let found = asked_by(&terms(50, None), &samples);
            assert_eq!(found, (1, AskedBy::Deadline));
            seen = longest.seen.max(seen);
        }
        assert!(seen > 1, "no two were neighbours");
    }

    #[test]
    fn ordinary_jitter_is_no_disturbance() {
        let mut samples: Vec<Sample> = (0..1_000).map(prompt).collect();
        for sample in &mut samples[400..500] {
            hold_up(sample, Layer::Network, 2 * MS);
        }
        let found = asked_by(&terms(50, None), &samples);
        assert_eq!(found, (1, AskedBy::Deadline));
    }
}
