//! The ratios to other instruments, and their verdicts.

use super::*;
use crate::laboratory::program::Place;

fn places(condition: Condition) -> Places {
    let place = Place {
        processor: Some(1),
        fifo: Some(50),
    };
    Places {
        condition,
        is_refused: false,
        server: place,
        client: place,
        own: vec![0],
    }
}

/// A point of this carrier with six ratios to each instrument.
fn point(system: &str, ratio: f64) -> Measurement {
    let around = |scale: f64| -> Vec<f64> {
        let six = [0.98, 1.01, 0.99, 1.02, 1.0, 0.97];
        six.map(|of| of * scale).to_vec()
    };
    let mut point = Measurement {
        system: system.to_owned(),
        case: String::new(),
        group: String::new(),
        factors: BTreeMap::from([(SIZE.to_owned(), 64.0)]),
        values: BTreeMap::new(),
        runs: BTreeMap::from([
            (TRANSACTION.key("p50"), around(ratio)),
            (END_TO_END_THROUGHPUT.run_key(), around(ratio)),
        ]),
        ends: Vec::new(),
        samples: 0,
        histogram: Vec::new(),
    };
    let one = |instrument: &Instrument| (instrument.keys().0, vec![1.0; 6]);
    let others = Others {
        values: Instrument::ALL.iter().map(one).collect(),
        counts: BTreeMap::new(),
    };
    add_ratios(&mut point, &others);
    point
}

#[test]
fn every_instrument_has_a_ratio_and_the_fastest_are_targets() {
    let points = [point("tcp", 2.0)];
    let found = standings(&points, &places(Condition::Pinned));
    let rows: Vec<(&str, &str)> = found
        .iter()
        .map(|one| (one.measure.as_str(), one.target.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            (
                "tcp at 64 octets: median transaction time over that of sockperf",
                "at most 1.00"
            ),
            (
                "tcp at 64 octets: end-to-end throughput over that of iperf3",
                "at least 1.00"
            ),
            (
                "tcp at 64 octets: median transaction time over that of irtt",
                "shown beside it"
            ),
            (
                "tcp at 64 octets: end-to-end throughput over that of nuttcp",
                "shown beside it"
            ),
        ]
    );
    assert!(found.iter().all(|one| one.ours.is_some()));
    assert!(found[2].verdict.is_none() && found[2].reason.is_none());
}

#[test]
fn a_point_without_others_has_no_standing() {
    let mut alone = point("udp", 1.0);
    let short = Others {
        values: BTreeMap::from([(Instrument::Iperf3.keys().0, vec![1.0; 5])]),
        counts: BTreeMap::new(),
    };
    alone.runs.retain(|key, _| !key.contains("over"));
    add_ratios(&mut alone, &short);
    assert!(standings(&[alone], &places(Condition::Pinned)).is_empty());
}

#[test]
fn a_target_is_judged_only_where_runs_can_be_repeated() {
    // A debug build judges nothing.
    for (instrument, condition, is_judged) in [
        (Instrument::Sockperf, Condition::Pinned, true),
        (Instrument::Sockperf, Condition::TwoCores, false),
        (Instrument::Iperf3, Condition::Pinned, false),
        (Instrument::Iperf3, Condition::TwoCores, true),
        (Instrument::Sockperf, Condition::Default, false),
    ] {
        let found = not_judged(instrument, &places(condition));
        let expected = is_judged && !cfg!(debug_assertions);
        assert_eq!(found.is_none(), expected, "{instrument:?} {condition:?}");
    }
}
