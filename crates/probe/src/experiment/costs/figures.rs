//! The figures of `deckwatch costs`.

use deckwatch_meter::experiment::{AxisNote, Curve, Figure, FigureKind, Measurement, Point};

use super::{CLIENT, LEFT, SERVER, costs_of, name};
use crate::counters::Counted;
use crate::laboratory::{OMNIORB, OURS, RAW};

/// A count, the title of its figure, and a note for the reader.
const COUNTED: [(Counted, &str, &str); 4] = [
    (
        Counted::MutexLocks,
        "User-level locks",
        "Calls that take a mutex of the C library, contended or not; for our ORB its own locks too, and in a build without optimisation those of Rust's library.",
    ),
    (
        Counted::FutexWaits,
        "Contended locks",
        "System calls that wait for a lock or a condition: the kernel-level locks of today.",
    ),
    (
        Counted::SystemCalls,
        "System calls",
        "All system calls of all threads of the process.",
    ),
    (
        Counted::Allocations,
        "Heap allocations",
        "Calls of malloc and its relatives, of the ORB and of the generated code.",
    ),
];

/// A value, the title of its figure, its unit and its axis.
const SHARES: [(&str, &str, &str, &str); 2] = [
    (
        "factoring_left_share",
        "Processor left to the factoring thread",
        "share",
        "numbers factored, of those without calls",
    ),
    (
        "processor_per_request_ns",
        "Processor taken from it by a request",
        "ns",
        "processor time of the server for a request",
    ),
];

const FACTORING_NOTE: &str = "The thread factors on the server's processor, in the time-sharing class; every run is compared with one directly before it in which nobody calls.";

pub(super) fn figures(rates_hz: &[f64], measurements: &[Measurement]) -> Vec<Figure> {
    let counted = COUNTED.map(|(what, title, note)| {
        let value = format!("{}_per_request", name(what));
        let mut x = AxisNote::new("ORB", "", false);
        x.words = [OURS, OMNIORB].map(str::to_owned).to_vec();
        let side = |side: &str| {
            let of = |system| find(measurements, system, &costs_of(side), None, &value);
            curve(side, [OURS, OMNIORB].map(of))
        };
        Figure {
            title: format!("{title} per request"),
            source: "slide 13".to_owned(),
            kind: FigureKind::Bars,
            x,
            y: AxisNote::new(&format!("{} per request", title.to_lowercase()), "", false),
            curves: vec![side(CLIENT), side(SERVER)],
            notes: vec![note.to_owned()],
        }
    });
    let left = SHARES.map(|(value, title, unit, label)| {
        let mut x = AxisNote::new("calls a second", "", false);
        let word = |rate: &f64| match rate {
            0.0 => "without pause".to_owned(),
            rate => format!("{rate}"),
        };
        x.words = rates_hz.iter().map(word).collect();
        let of_system = |system: &str| {
            let of = |rate: &f64| find(measurements, system, LEFT, Some(*rate), value);
            curve(system, rates_hz.iter().map(of))
        };
        Figure {
            title: title.to_owned(),
            source: "slides 17 and 18".to_owned(),
            kind: FigureKind::Bars,
            x,
            y: AxisNote::new(label, unit, false),
            curves: [OURS, OMNIORB, RAW].map(of_system).to_vec(),
            notes: vec![FACTORING_NOTE.to_owned()],
        }
    });
    counted.into_iter().chain(left).collect()
}

/// A value of one system in one case, and at one rate if the case has rates.
fn find(
    measurements: &[Measurement],
    system: &str,
    case: &str,
    rate: Option<f64>,
    value: &str,
) -> Option<f64> {
    let found = measurements.iter().find(|one| {
        one.system == system
            && one.case == case
            && one.factors.get("calls_asked_hz").copied() == rate
    })?;
    found.values.get(value).copied()
}

/// One bar for each value that is there.
fn curve(label: &str, values: impl IntoIterator<Item = Option<f64>>) -> Curve {
    let placed = (0..).zip(values);
    let point = |(place, value): (i32, Option<f64>)| Some(Point::new(f64::from(place), value?));
    Curve {
        label: label.to_owned(),
        points: placed.filter_map(point).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn measured(system: &str, case: &str, rate: Option<f64>, value: (&str, f64)) -> Measurement {
        let rate = rate.map(|rate| ("calls_asked_hz".to_owned(), rate));
        Measurement {
            system: system.to_owned(),
            case: case.to_owned(),
            group: String::new(),
            factors: rate.into_iter().collect(),
            values: BTreeMap::from([(value.0.to_owned(), value.1)]),
            runs: BTreeMap::new(),
            ends: Vec::new(),
            samples: 1,
            histogram: Vec::new(),
        }
    }

    /// The curves of the figure with a title: label, and the bars by place and height.
    fn curves<'f>(figures: &'f [Figure], title: &str) -> Vec<(&'f str, Vec<(f64, f64)>)> {
        let figure = figures.iter().find(|figure| figure.title == title);
        let of = |curve: &'f Curve| {
            let bars = curve.points.iter().map(|at| (at.x, at.y));
            (curve.label.as_str(), bars.collect())
        };
        figure.expect("a title").curves.iter().map(of).collect()
    }

    #[test]
    fn each_bar_is_the_value_of_its_system_side_and_rate() {
        let (client, server) = (costs_of(CLIENT), costs_of(SERVER));
        let locks = "locks_per_request";
        let left = "factoring_left_share";
        let measurements = [
            measured(OURS, &client, None, (locks, 1.0)),
            measured(OMNIORB, &client, None, (locks, 2.0)),
            measured(OMNIORB, &server, None, (locks, 4.0)),
            measured(OURS, &server, Some(7.0), (locks, 8.0)),
            measured(RAW, LEFT, Some(100.0), (left, 0.75)),
            measured(OURS, LEFT, Some(0.0), (left, 0.25)),
            measured(OURS, LEFT, Some(100.0), (left, 0.5)),
        ];
        let figures = figures(&[100.0, 0.0], &measurements);
        assert_eq!(figures.len(), 6);
        assert_eq!(
            curves(&figures, "User-level locks per request"),
            [
                (CLIENT, vec![(0.0, 1.0), (1.0, 2.0)]),
                (SERVER, vec![(1.0, 4.0)])
            ]
        );
        assert_eq!(
            curves(&figures, "Processor left to the factoring thread"),
            [
                (OURS, vec![(0.0, 0.5), (1.0, 0.25)]),
                (OMNIORB, vec![]),
                (RAW, vec![(0.0, 0.75)])
            ]
        );
        let titled = "Heap allocations per request";
        assert_eq!(
            curves(&figures, titled),
            [(CLIENT, vec![]), (SERVER, vec![])]
        );
        assert_eq!(figures[5].x.words, ["100", "without pause"]);
    }
}
