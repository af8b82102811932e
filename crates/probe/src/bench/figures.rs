//! The figures of a bench: ratios, counts and memory as bars.

use deckwatch_meter::experiment::{AxisNote, Curve, Figure, FigureKind, Measurement, Point};

use super::case::{Beside, Case};
use super::counts::COUNTS;
use super::part::Part;

const RATIOS: [(&str, &str); 3] = [
    ("p50_ratio", "p50 over what it is beside"),
    ("p99_ratio", "p99 over what it is beside"),
    ("rate_ratio", "rate over what it is beside"),
];

/// One bar: the label of its curve, its place and its height.
type Bar = (String, usize, f64);

/// All figures of `part` that have bars.
pub(super) fn figures(part: &Part) -> Vec<Figure> {
    let figure = |what: &str, words: Vec<String>, unit: &str, bars: Vec<Bar>| Figure {
        title: format!("{}{}: {what}", part.kind.word(), part.variant.words()),
        source: part.condition.clone(),
        kind: FigureKind::Bars,
        x: AxisNote {
            words,
            ..AxisNote::new("", "", false)
        },
        y: AxisNote::new(what, unit, false),
        curves: curves(bars),
        notes: Vec::new(),
    };
    let mut figures = Vec::new();
    let word = |case: &Case| match case.beside {
        Beside::NoAttack(attack) => attack.word().to_owned(),
        _ => format!(
            "{}{} {}",
            case.operation.word(),
            case.consumers.words(),
            case.size
        ),
    };
    let cases: Vec<String> = part.cases.iter().map(word).collect();
    for (key, what) in RATIOS {
        let bar = |(case, found): (Case, &Measurement)| {
            let place = part.cases.iter().position(|it| *it == case)?;
            Some((found.system.clone(), place, *found.values.get(key)?))
        };
        let bars = part.cases().filter_map(bar).collect();
        figures.push(figure(what, cases.clone(), "", bars));
    }
    let counts = part.counts().flat_map(|(variant, found)| {
        let label = format!("{}{}", found.system, variant.words());
        let all = COUNTS.iter().enumerate();
        all.filter_map(move |(place, (_, key))| {
            Some((label.clone(), place, *found.values.get(*key)?))
        })
    });
    let words = COUNTS.map(|(name, _)| name.to_owned()).to_vec();
    figures.push(figure("counts of a request", words, "", counts.collect()));
    let sizes = part.connections();
    let memory = part.memory().filter_map(|(connections, found)| {
        let place = sizes.iter().position(|size| *size == connections)?;
        let octets = *found.values.get("resident_octets")?;
        Some((found.system.clone(), place, octets))
    });
    let memory = memory.collect();
    let words = sizes.iter().map(|it| format!("{it} connections")).collect();
    figures.push(figure("resident memory", words, "octets", memory));
    figures.retain(|figure| !figure.curves.is_empty());
    figures
}

/// One curve for each label.
fn curves(bars: Vec<Bar>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for (label, place, y) in bars {
        let point = Point::new(place as f64, y);
        match curves.iter_mut().find(|curve| curve.label == label) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve {
                label,
                points: vec![point],
            }),
        }
    }
    curves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::attack::Attack;
    use crate::bench::case::{Consumers, Operation};
    use crate::bench::kind::{self, Kind};
    use crate::bench::part::About;
    use crate::laboratory::samples::Samples;
    use crate::laboratory::{OMNIORB, OURS, Variant};

    fn measured(name: &str, value: f64, system: &str) -> Measurement {
        let mut samples = Samples::default();
        samples.add_value(name, value);
        samples.measurement(system, "here", &[]).expect("a value")
    }

    /// The bars of a figure: label, place and height.
    fn bars(figure: &Figure) -> Vec<(&str, f64, f64)> {
        let mut bars = Vec::new();
        for curve in &figure.curves {
            let own = curve.points.iter();
            bars.extend(own.map(|at| (curve.label.as_str(), at.x, at.y)));
        }
        bars
    }

    #[test]
    fn each_ratio_count_and_memory_is_a_bar_at_the_place_of_its_case() {
        let attack = Attack::ALL[0];
        let cases = [
            kind::SMALL,
            Case::push(Operation::Push, 384, Consumers::apart(3)),
            Case::under(attack),
        ];
        let mut part = Part {
            kind: Kind::Call,
            condition: "here".to_owned(),
            is_judged: true,
            variant: Variant::Tls,
            cases: cases.to_vec(),
            rows: Vec::new(),
        };
        part.add(About::Case(cases[2]), measured("p50_ratio", 3.0, OURS));
        part.add(About::Case(cases[0]), measured("p50_ratio", 1.5, OMNIORB));
        part.add(About::Case(cases[0]), measured("p50_ratio", 1.25, OURS));
        part.add(About::Case(cases[1]), measured("rate_ratio", 0.5, OURS));
        let counts = About::Counts(Variant::SharedPoller);
        part.add(counts, measured("system_calls", 3.0, OURS));
        for (connections, octets) in [(1_000, 7e6), (0, 5e6)] {
            let found = measured("resident_octets", octets, OURS);
            part.add(About::Memory(connections), found);
        }
        let figures = figures(&part);
        let titles: Vec<&str> = figures.iter().map(|of| of.title.as_str()).collect();
        let head = "call, over TLS: ";
        let due = [
            "p50 over what it is beside",
            "rate over what it is beside",
            "counts of a request",
            "resident memory",
        ];
        assert_eq!(titles, due.map(|what| format!("{head}{what}")));
        let p50 = [(OURS, 2.0, 3.0), (OURS, 0.0, 1.25), (OMNIORB, 0.0, 1.5)];
        assert_eq!(bars(&figures[0]), p50);
        assert_eq!(bars(&figures[1]), [(OURS, 1.0, 0.5)]);
        let label = format!("{OURS}, through a shared poller");
        assert_eq!(bars(&figures[2]), [(label.as_str(), 5.0, 3.0)]);
        assert_eq!(bars(&figures[3]), [(OURS, 1.0, 7e6), (OURS, 0.0, 5e6)]);
        let words = [
            "octets 64",
            "push to 3 consumers, an endpoint each 384",
            attack.word(),
        ];
        assert_eq!(figures[0].x.words, words);
        assert_eq!(figures[3].x.words, ["0 connections", "1000 connections"]);
    }
}
