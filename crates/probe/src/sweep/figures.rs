//! The figures of a sweep, drawn as in the paper.

use deckwatch_meter::experiment::{
    AxisNote, Curve, ExperimentDocument, Figure, FigureKind, Measurement, Point,
};
use deckwatch_meter::metrics::{
    CHAIN, CLIENT_TO_SERVER, DATA_RECEIVED, END_TO_END_MESSAGES, END_TO_END_THROUGHPUT, Metric,
    RECEIVER_THROUGHPUT, SENDTO_ERRORS, SERVER_TO_CLIENT, TRANSACTION, TRANSMITTER_THROUGHPUT,
};

use super::SIZE;
use super::parts::{ONE_WAY, THROUGHPUT};

/// What the bars of a figure show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bars {
    /// From the mean less a standard deviation to the mean plus one.
    Deviation,
    /// From the minimum to the maximum (figure 7).
    Bounds,
}

/// A figure with a curve for each system: title, source, metric and bars.
type Row = (&'static str, &'static str, Metric, Bars);

/// The figures in front of those of single systems.
const FIRST: [Row; 2] = [
    (
        "Transaction time",
        "section 2.1, EQ 1",
        TRANSACTION,
        Bars::Deviation,
    ),
    (
        "End-to-end throughput",
        "figures 10 to 13, EQ 7",
        END_TO_END_THROUGHPUT,
        Bars::Deviation,
    ),
];

/// The figures of streams between parts, if an adapter is compared.
const BETWEEN_PARTS: [Row; 2] = [
    (
        "One-way latency between parts, messages by a schedule",
        "EQ 2; a supplier and a consumer, as in a run",
        ONE_WAY,
        Bars::Deviation,
    ),
    (
        "End-to-end throughput between parts",
        "EQ 7; a supplier and a consumer, as in a run",
        THROUGHPUT,
        Bars::Deviation,
    ),
];

/// The figure of ways over more than one hop.
const CHAINS: Row = (
    "Total communication latency of the chain",
    "figure 3, EQ 4",
    CHAIN,
    Bars::Deviation,
);

/// The figures of one-way latencies, one for each system.
pub(super) const WAYS: &str = "One-way latency each way";

/// The figures behind those of single systems.
const LAST: [Row; 4] = [
    (
        "Transaction time, least and greatest",
        "figure 7",
        TRANSACTION,
        Bars::Bounds,
    ),
    (
        "End-to-end messages a second",
        "section 2.3, EQ 10",
        END_TO_END_MESSAGES,
        Bars::Deviation,
    ),
    (
        "Data received",
        "figure 12, EQ 12",
        DATA_RECEIVED,
        Bars::Bounds,
    ),
    (
        "Sendto errors in an iteration",
        "section 2.4, EQ 11",
        SENDTO_ERRORS,
        Bars::Bounds,
    ),
];

/// Returns the figures of the measured points. `systems` are in the order of their colours.
pub(super) fn figures(systems: &[&str], points: &[Measurement]) -> Vec<Figure> {
    let one = |title: &str, source: &str, metric: Metric, bars: Bars| {
        let curves = systems
            .iter()
            .map(|system| curve(points, system, system, metric, bars));
        figure(title, source, metric, bars, curves.collect())
    };
    let each = |(title, axis): (&str, &str), source: &str, metrics: &[Metric]| -> Vec<Figure> {
        let of = |system: &&str| {
            let curves = metrics.iter();
            let curves =
                curves.map(|metric| curve(points, system, metric.name, *metric, Bars::Deviation));
            let title = format!("{title}, {system}");
            let bars = Bars::Deviation;
            let mut found = figure(&title, source, metrics[0], bars, curves.collect());
            found.y.label = axis.to_owned();
            found
        };
        systems.iter().map(of).collect()
    };
    let throughputs = [
        END_TO_END_THROUGHPUT,
        RECEIVER_THROUGHPUT,
        TRANSMITTER_THROUGHPUT,
    ];
    let way = "End-to-end against interface throughput";
    let of_all = |(title, source, metric, bars): &Row| one(title, source, *metric, *bars);
    let mut figures: Vec<Figure> = FIRST.iter().map(of_all).collect();
    if points
        .iter()
        .any(|of| of.runs.contains_key(&THROUGHPUT.run_key()))
    {
        figures.extend(BETWEEN_PARTS.iter().map(of_all));
    }
    figures.extend(each(
        (way, "throughput"),
        "figure 5, EQ 5 to 7",
        &throughputs,
    ));
    figures.extend(each(
        (WAYS, "one-way latency"),
        "section 2.1, EQ 2 and 3",
        &[CLIENT_TO_SERVER, SERVER_TO_CLIENT],
    ));
    if points.iter().any(|of| of.factors.contains_key("hops")) {
        figures.push(of_all(&CHAINS));
    }
    figures.extend(systems.iter().filter_map(|system| layers(points, system)));
    figures.extend(LAST.iter().map(of_all));
    figures
}

/// The throughput of the layers, if the network is known.
fn layers(points: &[Measurement], system: &str) -> Option<Figure> {
    let layers = [
        ("line", "end_to_end_line_mean_bit_s"),
        ("frame", "end_to_end_frame_mean_bit_s"),
        ("IP", "end_to_end_ip_mean_bit_s"),
        ("application", "end_to_end_mean_bit_s"),
    ];
    points
        .iter()
        .find(|of| of.system == system && of.values.contains_key(layers[0].1))?;
    let curves = layers.map(|(label, key)| {
        ExperimentDocument::curve(points, label, SIZE, key, |of| of.system == system)
    });
    Some(Figure {
        title: format!("Throughput at four layers, {system}"),
        source: "end-to-end, EQ 7".to_owned(),
        kind: FigureKind::Lines,
        x: AxisNote::new("message size", "octets", false),
        y: AxisNote::new("end-to-end throughput", "bit/s", false),
        curves: curves.into(),
        notes: vec![
            "The octets of the layers are computed from the MTU and the headers. A TCP stream counts as one of full segments, \
             without acknowledgements."
                .to_owned(),
        ],
    })
}

fn figure(title: &str, source: &str, metric: Metric, bars: Bars, curves: Vec<Curve>) -> Figure {
    let note = match bars {
        Bars::Deviation => {
            "A point is the mean; its bar reaches one standard deviation up and down."
        }
        Bars::Bounds => {
            "A point is the mean; its bar reaches from the least value to the greatest."
        }
    };
    Figure {
        title: title.to_owned(),
        source: source.to_owned(),
        kind: FigureKind::Lines,
        x: AxisNote::new("message size", "octets", false),
        y: AxisNote::new(metric.name, metric.unit.axis(), false),
        curves,
        notes: vec![note.to_owned()],
    }
}

/// The means of a metric over the sizes, with their bars.
fn curve(points: &[Measurement], system: &str, label: &str, metric: Metric, bars: Bars) -> Curve {
    let point = |of: &Measurement| {
        let value = |statistic: &str| of.values.get(&metric.key(statistic)).copied();
        let mean = value("mean")?;
        let (low, high) = match bars {
            Bars::Bounds => (value("min"), value("max")),
            Bars::Deviation => {
                let deviation = value("sd");
                let low = deviation.map(|sd| (mean - sd).max(0.0));
                (low, deviation.map(|sd| mean + sd))
            }
        };
        Some(Point {
            low,
            high,
            ..Point::new(*of.factors.get(SIZE)?, mean)
        })
    };
    let own = points.iter().filter(|of| of.system == system);
    let mut points: Vec<Point> = own.filter_map(point).collect();
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    Curve {
        label: label.to_owned(),
        points,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn point(system: &str, size: f64, values: &[(&str, f64)]) -> Measurement {
        let named = |(name, value): &(&str, f64)| ((*name).to_owned(), *value);
        Measurement {
            system: system.to_owned(),
            case: String::new(),
            group: String::new(),
            factors: BTreeMap::from([(SIZE.to_owned(), size)]),
            values: values.iter().map(named).collect(),
            runs: BTreeMap::new(),
            ends: Vec::new(),
            samples: 1,
            histogram: Vec::new(),
        }
    }

    fn titles(figures: &[Figure]) -> Vec<&str> {
        figures.iter().map(|figure| figure.title.as_str()).collect()
    }

    #[test]
    fn a_point_is_a_mean_with_the_bar_of_its_figure() {
        let statistics = |mean: f64, sd: f64| {
            let all = [("mean", mean), ("sd", sd), ("min", 3.0), ("max", 90.0)];
            all.map(|(name, value)| (TRANSACTION.key(name), value))
        };
        let of = |system, size, mean, sd| {
            let all = statistics(mean, sd);
            let all: Vec<(&str, f64)> = all.iter().map(|(key, it)| (key.as_str(), *it)).collect();
            point(system, size, &all)
        };
        let points = [
            of("tcp", 64.0, 20.0, 4.0),
            of("udp", 16.0, 1.0, 1.0),
            // Its bar ends at 0.
            of("tcp", 16.0, 10.0, 12.0),
            point("tcp", 32.0, &[]),
        ];
        let bars = |bars| curve(&points, "tcp", "it", TRANSACTION, bars);
        let bar = |x, y, low, high| Point {
            low: Some(low),
            high: Some(high),
            ..Point::new(x, y)
        };
        let deviation = bars(Bars::Deviation);
        assert_eq!(deviation.label, "it");
        let due = [bar(16.0, 10.0, 0.0, 22.0), bar(64.0, 20.0, 16.0, 24.0)];
        assert_eq!(deviation.points, due);
        let due = [bar(16.0, 10.0, 3.0, 90.0), bar(64.0, 20.0, 3.0, 90.0)];
        assert_eq!(bars(Bars::Bounds).points, due);
    }

    #[test]
    fn figures_are_those_of_what_was_measured() {
        let plain = [point("udp", 16.0, &[])];
        let systems = ["udp", "tcp"];
        let always = [
            "Transaction time",
            "End-to-end throughput",
            "End-to-end against interface throughput, udp",
            "End-to-end against interface throughput, tcp",
            "One-way latency each way, udp",
            "One-way latency each way, tcp",
            "Transaction time, least and greatest",
            "End-to-end messages a second",
            "Data received",
            "Sendto errors in an iteration",
        ];
        let found = figures(&systems, &plain);
        assert_eq!(titles(&found), always);
        assert_eq!(found[0].curves.len(), 2);
        assert_eq!(found[2].curves.len(), 3);
        assert_eq!(found[2].y.label, "throughput");
        assert_eq!(found[4].curves.len(), 2);

        let mut rich = point("tcp", 16.0, &[("end_to_end_line_mean_bit_s", 5.0)]);
        rich.runs.insert(THROUGHPUT.run_key(), vec![1.0]);
        rich.factors.insert("hops".to_owned(), 2.0);
        let found = figures(&systems, &[plain[0].clone(), rich]);
        let mut all = always.to_vec();
        all.splice(6..6, [CHAINS.0, "Throughput at four layers, tcp"]);
        all.splice(2..2, BETWEEN_PARTS.map(|row| row.0));
        assert_eq!(titles(&found), all);
        let layers = &found[9];
        let points: Vec<usize> = layers.curves.iter().map(|of| of.points.len()).collect();
        assert_eq!(points, [1, 0, 0, 0]);
    }
}
