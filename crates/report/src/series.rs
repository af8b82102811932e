//! The data for the figures of one flow over one carrier at one destination.

use deckwatch_meter::blame::Splitter;
use deckwatch_meter::sample::{NO_STAMP, Sample};

use crate::layers::{self, Segment};
use crate::limits::LATE_MESSAGES_MAX;

/// The gap between an arrival and the arrival before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Sequence number of the later message.
    pub(crate) sequence: u64,
    /// The gap in nanoseconds.
    pub(crate) ns: u64,
    /// Whether the run itself found the gap greater than period plus deadline.
    pub(crate) late: bool,
}

/// A late message that arrived, with the time of each layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LateMessage {
    /// Its sequence number.
    pub(crate) sequence: u64,
    /// Time from due to received, in nanoseconds.
    pub(crate) latency_ns: u64,
    /// The time of each layer, in the order of the path.
    pub(crate) segments: Vec<Segment>,
    /// Name of the layer that is blamed.
    pub(crate) blame: Option<&'static str>,
}

/// The judged samples of one destination, prepared for drawing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    /// Latencies of the received messages in nanoseconds, ascending.
    pub(crate) latencies_ns: Vec<u64>,
    /// Gaps between arrivals, in order of arrival.
    pub(crate) gaps: Vec<Gap>,
    /// The late messages with the greatest latency, the greatest first; at most [`LATE_MESSAGES_MAX`].
    pub(crate) worst: Vec<LateMessage>,
    /// Number of late messages that arrived.
    pub(crate) late_arrived: u64,
    /// Number of messages that never arrived.
    pub(crate) lost: u64,
}

impl Series {
    /// Makes the series from all samples of one destination, in any order. `splitter` finds the layers. `names` are the
    /// names under which the flow reports them.
    pub(crate) fn of(samples: &mut [Sample], splitter: &Splitter<'_>, names: &[String]) -> Self {
        samples.sort_unstable_by_key(|sample| (sample.received_ns, sample.sequence));
        // Missing stamps sort first.
        let arrived = &samples[samples.partition_point(|sample| sample.received_ns == NO_STAMP)..];
        let judged = || arrived.iter().filter(|sample| !sample.flags.warm_up);
        let mut latencies_ns: Vec<u64> = judged().map(latency_ns).collect();
        latencies_ns.sort_unstable();
        let mut late: Vec<&Sample> = judged().filter(|sample| sample.flags.late).collect();
        late.sort_unstable_by_key(|sample| {
            (std::cmp::Reverse(latency_ns(sample)), sample.sequence)
        });
        let worst = late
            .iter()
            .take(LATE_MESSAGES_MAX)
            .map(|sample| late_message(sample, splitter, names));
        let lost = samples
            .iter()
            .filter(|sample| sample.received_ns == NO_STAMP && !sample.flags.warm_up);
        Self {
            latencies_ns,
            gaps: gaps(arrived),
            worst: worst.collect(),
            late_arrived: late.len() as u64,
            lost: lost.count() as u64,
        }
    }

    /// Returns the number of judged messages.
    pub(crate) fn due(&self) -> u64 {
        self.latencies_ns.len() as u64 + self.lost
    }
}

fn gaps(arrived: &[Sample]) -> Vec<Gap> {
    let judged = arrived.windows(2).filter(|pair| !pair[1].flags.warm_up);
    judged
        .map(|pair| Gap {
            sequence: pair[1].sequence,
            ns: pair[1]
                .received_ns
                .saturating_sub(pair[0].received_ns)
                .unsigned_abs(),
            late: pair[1].flags.late_by_inter_arrival,
        })
        .collect()
}

/// Returns the time from due to received. A message cannot arrive before it is due, so that a negative difference
/// counts as 0.
fn latency_ns(sample: &Sample) -> u64 {
    u64::try_from(sample.received_ns.saturating_sub(sample.due_ns)).unwrap_or(0)
}

fn late_message(sample: &Sample, splitter: &Splitter<'_>, names: &[String]) -> LateMessage {
    LateMessage {
        sequence: sample.sequence,
        latency_ns: latency_ns(sample),
        segments: layers::of_parts(&splitter.split(sample), names),
        blame: sample.blame.map(|layer| layer.name()),
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_meter::blame::{Road, calls};
    use deckwatch_meter::sample::SampleFlags;

    use super::*;

    fn sample(sequence: u64, received_ns: i64, flags: SampleFlags) -> Sample {
        let due_ns = sequence as i64 * 100;
        Sample {
            sequence,
            due_ns,
            sent_ns: due_ns,
            returned_ns: due_ns,
            received_ns,
            handled_ns: received_ns,
            flags,
            ..Sample::NONE
        }
    }

    fn series(samples: &[Sample]) -> Series {
        let road = Road::RAW;
        let supplier = calls(road, samples.iter());
        let splitter = Splitter::new(road, samples, &supplier);
        Series::of(&mut samples.to_vec(), &splitter, &road.names(samples))
    }

    #[test]
    fn gaps_follow_the_order_of_arrival_and_warm_up_only_starts_them() {
        let warm_up = SampleFlags {
            warm_up: true,
            ..SampleFlags::default()
        };
        let none = SampleFlags::default();
        let series = series(&[
            sample(0, 10, warm_up),
            sample(1, 350, none),
            sample(2, 250, none),
        ]);
        assert_eq!(
            series
                .gaps
                .iter()
                .map(|gap| (gap.sequence, gap.ns))
                .collect::<Vec<_>>(),
            [(2, 240), (1, 100)]
        );
        assert_eq!(series.latencies_ns, [50, 250]);
    }

    #[test]
    fn lost_messages_are_counted_and_have_no_latency() {
        let lost = SampleFlags {
            lost: true,
            late: true,
            ..SampleFlags::default()
        };
        let series = series(&[
            sample(0, NO_STAMP, lost),
            sample(1, 120, SampleFlags::default()),
        ]);
        assert_eq!(
            (series.lost, series.due(), series.latencies_ns.len()),
            (1, 2, 1)
        );
        assert!(series.worst.is_empty());
    }

    #[test]
    fn only_the_worst_late_messages_are_kept() {
        let late = SampleFlags {
            late: true,
            ..SampleFlags::default()
        };
        let samples: Vec<Sample> = (0..5000)
            .map(|n| sample(n, n as i64 * 101 + 7, late))
            .collect();
        let series = series(&samples);
        assert_eq!(series.late_arrived, 5000);
        assert_eq!(series.worst.len(), LATE_MESSAGES_MAX);
        assert_eq!(series.worst[0].sequence, 4999);
        assert!(
            series
                .worst
                .windows(2)
                .all(|pair| pair[0].latency_ns >= pair[1].latency_ns)
        );
    }
}
