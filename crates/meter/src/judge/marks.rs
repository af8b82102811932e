//! Marks each sample: late, lost, out of order, or late by the gap to the arrival before.

use super::{Terms, nanoseconds};
use crate::sample::{NO_STAMP, Sample, SampleFlags};

/// Sorts samples by sequence number and fills in their flags, except `warm_up`, `clock_step`,
/// `waited_for_room` and `duplicates`, which the caller sets.
/// Messages of the warm-up are not judged and get no flags and no blame. They do count as arrivals before the first
/// judged message.
///
/// *Late*: received more than the deadline after due, or lost. *Late by inter-arrival* (periodic flows only): the gap
/// to the arrival before is greater than period plus deadline (Talbert and Weaver, 2002, section V). *Out of order*: a
/// message with a higher sequence number arrived before it.
pub fn mark(samples: &mut [Sample], terms: &Terms) {
    samples.sort_by_key(|sample| sample.sequence);
    let deadline_ns = nanoseconds(terms.deadline);
    for sample in samples.iter_mut() {
        let SampleFlags {
            warm_up,
            clock_step,
            waited_for_room,
            duplicates,
            ..
        } = sample.flags;
        let lost = !warm_up && sample.received_ns == NO_STAMP;
        let late =
            !warm_up && (lost || sample.received_ns.saturating_sub(sample.due_ns) > deadline_ns);
        sample.flags = SampleFlags {
            warm_up,
            clock_step,
            waited_for_room,
            duplicates,
            lost,
            late,
            ..SampleFlags::default()
        };
        sample.blame = None;
    }
    let gap_max_ns = terms
        .arrivals
        .period()
        .map(|period| nanoseconds(period).saturating_add(deadline_ns));
    let mut before: Option<(u64, i64)> = None;
    for index in in_order_of_arrival(samples) {
        let sample = &mut samples[index];
        if let Some((highest, before_ns)) = before
            && !sample.flags.warm_up
        {
            sample.flags.out_of_order = sample.sequence < highest;
            let gap_ns = sample.received_ns.saturating_sub(before_ns);
            sample.flags.late_by_inter_arrival =
                gap_max_ns.is_some_and(|gap_max_ns| gap_ns > gap_max_ns);
        }
        let highest = before.map_or(sample.sequence, |(highest, _)| highest.max(sample.sequence));
        before = Some((highest, sample.received_ns));
    }
}

/// Returns the gaps that end at the arrival of a judged message, in order of arrival.
pub(super) fn gaps(samples: &[Sample]) -> Vec<i64> {
    let order = in_order_of_arrival(samples);
    let pairs = order
        .iter()
        .zip(order.iter().skip(1))
        .map(|(before, after)| (&samples[*before], &samples[*after]));
    pairs
        .filter(|(_, after)| !after.flags.warm_up)
        .map(|(before, after)| after.received_ns.saturating_sub(before.received_ns))
        .collect()
}

/// Returns the positions of the received samples in order of arrival; at one instant, the lower sequence number first.
fn in_order_of_arrival(samples: &[Sample]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples.len())
        .filter(|index| samples[*index].received_ns != NO_STAMP)
        .collect();
    order.sort_by_key(|index| (samples[*index].received_ns, samples[*index].sequence));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::tests::{MS, prompt};
    use crate::judge::tests::terms;

    #[test]
    fn a_message_is_out_of_order_behind_any_that_has_a_higher_number() {
        let mut samples: Vec<Sample> = (0..4).map(prompt).collect();
        // The messages arrive in the order 0, 3, 1, 2.
        for (place, sequence) in [(0, 0), (1, 3), (2, 1), (3, 2)] {
            samples[sequence].received_ns = 1_000 * MS + place * MS;
        }
        mark(&mut samples, &terms());
        let marked: Vec<bool> = samples
            .iter()
            .map(|sample| sample.flags.out_of_order)
            .collect();
        assert_eq!(marked, [false, true, true, false]);
    }
    #[test]
    fn what_the_caller_has_marked_stays() {
        let mut samples: Vec<Sample> = (0..2).map(prompt).collect();
        samples[0].flags = SampleFlags {
            warm_up: true,
            clock_step: true,
            waited_for_room: true,
            duplicates: 3,
            ..SampleFlags::default()
        };
        let marked = samples[0].flags;
        mark(&mut samples, &terms());
        assert_eq!(samples[0].flags, marked);
        assert_eq!(samples[1].flags, SampleFlags::default());
    }
}
