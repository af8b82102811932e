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
