//! The figures of a grid: averages and maxima by message size, as the tables of the thesis' appendix A, and the
//! distributions in bins of a millisecond.

use deckwatch_meter::experiment::{AxisNote, Curve, Figure, FigureKind, Measurement, Point};
use deckwatch_meter::metrics::TRANSACTION;

use super::{CLIENT, SERVER, SIZE, STATES, bins};

/// Returns the figures: averages, then maxima, then distributions.
pub(super) fn figures(points: &[Measurement]) -> Vec<Figure> {
    let mut places: Vec<(String, u64)> = Vec::new();
    for point in points {
        let place = (point.system.clone(), size(point));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let of = |place: &(String, u64)| -> Vec<&Measurement> {
        let is_of =
            |point: &&Measurement| (point.system.as_str(), size(point)) == (&place.0, place.1);
        points.iter().filter(is_of).collect()
    };
    let table = |statistic: &'static str, name: &'static str| {
        places
            .iter()
            .map(move |place| bars(place, &of(place), statistic, name))
    };
    let mut all: Vec<Figure> = table("mean", "average").collect();
    all.extend(table("max", "maximum"));
    all.extend(places.iter().map(|place| distribution(place, &of(place))));
    all
}

fn size(point: &Measurement) -> u64 {
    point.factors.get(SIZE).copied().unwrap_or_default() as u64
}

fn state(point: &Measurement, factor: &str) -> Option<f64> {
    point.factors.get(factor).copied()
}

/// A group of bars for each state of the server, with a bar for each state of the client.
fn bars(
    (system, size): &(String, u64),
    points: &[&Measurement],
    statistic: &str,
    name: &str,
) -> Figure {
    let curve = |(client, word): (usize, &&str)| {
        let own = points
            .iter()
            .filter(|of| state(of, CLIENT) == Some(client as f64));
        let point = |of: &&Measurement| {
            let value = of.values.get(&TRANSACTION.key(statistic))?;
            Some(Point::new(state(of, SERVER)?, *value))
        };
        Curve {
            label: format!("client {word}"),
            points: own.filter_map(point).collect(),
        }
    };
    let mut x = AxisNote::new("state of the server's processor", "", false);
    x.words = STATES.map(str::to_owned).into();
    Figure {
        title: format!("{system}, {size} octets: {name} transaction time"),
        source: "appendix A".to_owned(),
        kind: FigureKind::Bars,
        x,
        y: AxisNote::new("transaction time", "ns", false),
        curves: STATES.iter().enumerate().map(curve).collect(),
        notes: Vec::new(),
    }
}

/// A line for each state, up to the last bin that has a sample.
fn distribution((system, size): &(String, u64), points: &[&Measurement]) -> Figure {
    let all: Vec<(String, Vec<f64>)> = points
        .iter()
        .map(|of| (of.group.clone(), bins(of)))
        .collect();
    let is_used = |bin: &usize| all.iter().any(|(_, bins)| bins[*bin] > 0.0);
    let last = (0..=crate::limits::GRID_BINS)
        .rev()
        .find(is_used)
        .unwrap_or(0);
    let curve = |(label, bins): &(String, Vec<f64>)| Curve {
        label: label.clone(),
        points: (0..)
            .zip(&bins[..=last])
            .map(|(bin, share)| Point::new(f64::from(bin), *share))
            .collect(),
    };
    Figure {
        title: format!("{system}, {size} octets: distribution"),
        source: "section 3.2.2, bins of 1 ms".to_owned(),
        kind: FigureKind::Lines,
        x: AxisNote::new("transaction time, from so many milliseconds", "", false),
        y: AxisNote::new("samples", "share", false),
        curves: all.iter().map(curve).collect(),
        notes: vec![
            "The last bin of 100 has everything longer. The result document has all samples to three digits.".to_owned(),
        ],
    }
}
