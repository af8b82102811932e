//! `deckwatch overhead`: what middleware adds to the transports below it. A sweep over the carriers and the transports,
//! whose iterations alternate: each is compared with the transport's iteration beside it.

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{
    AxisNote, Curve, ExperimentDocument, Figure, FigureKind, Measurement, Point, Ratio,
};
use deckwatch_meter::metrics::{END_TO_END_THROUGHPUT, Metric, TRANSACTION};

use super::parts::{ONE_WAY, THROUGHPUT};
use super::{SIZE, Sweep, sweep};
use crate::laboratory::{LaboratoryError, Progress};
use crate::limits::OVERHEAD_SIZES_DRAWN_MAX;

/// The transports that middleware is compared with.
pub const TRANSPORTS: [&str; 2] = ["tcp", "udp"];

/// Measures all points, and compares each carrier with the transports.
///
/// # Errors
/// As [`sweep`].
pub fn overhead(
    asked: &Sweep,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, LaboratoryError> {
    Ok(compared(sweep(asked, tell)?))
}

/// The document of a sweep with the comparison as its figures, and with the compared values in its measurements.
fn compared(mut document: ExperimentDocument) -> ExperimentDocument {
    let points = document.measurements.clone();
    for point in &mut document.measurements {
        for transport in TRANSPORTS {
            for (key, values) in against(point, &points, transport) {
                point
                    .values
                    .extend(Ratio::of(values.clone()).map(|found| (key.clone(), found.median)));
                point.runs.insert(key, values);
            }
        }
    }
    document.experiment = "overhead".to_owned();
    document.title = "What middleware adds to its transport".to_owned();
    document.source = format!(
        "{}; R. Pallack, Real-Time COTS message communication for C3I systems, section 3.4",
        document.source
    );
    document.figures = figures(&document.measurements);
    document
}

/// Latency added and share of the throughput lost against a transport, of each pair of iterations, by key.
fn against(
    point: &Measurement,
    points: &[Measurement],
    transport: &str,
) -> BTreeMap<String, Vec<f64>> {
    let is_beside = |of: &&Measurement| of.system == transport && of.factors == point.factors;
    let beside = points.iter().find(is_beside);
    let Some(beside) = beside.filter(|of| of.system != point.system) else {
        return BTreeMap::new();
    };
    let pairs = |key: &str, compare: fn(f64, f64) -> f64| -> Option<Vec<f64>> {
        let (own, theirs) = (point.runs.get(key)?, beside.runs.get(key)?);
        let pairs = own.iter().zip(theirs);
        Some(pairs.map(|(own, theirs)| compare(*own, *theirs)).collect())
    };
    // The mean of few messages is that of their outliers. The median stands where the iterations have one.
    let times = |metric: Metric| {
        let times = pairs(&metric.key("p50"), |own, theirs| own - theirs);
        times.or_else(|| pairs(&metric.key("mean"), |own, theirs| own - theirs))
    };
    let rates = |metric: Metric| pairs(&metric.run_key(), |own, theirs| 1.0 - own / theirs);
    let found = COMPARED.iter().flat_map(|compared| {
        [
            (compared.added_key(transport), times(compared.time)),
            (compared.lost_key(transport), rates(compared.rate)),
        ]
    });
    found
        .filter_map(|(key, values)| Some((key, values?)))
        .collect()
}

/// Two metrics that are compared with those of a transport, measured in the same way.
struct Compared {
    /// The beginning of its keys.
    stem: &'static str,
    time: Metric,
    /// The time in words.
    time_words: &'static str,
    time_source: &'static str,
    rate: Metric,
    /// The end of the titles.
    where_words: &'static str,
}

/// What is compared. Adapters have no transactions, and all carriers beside them are measured between parts too.
const COMPARED: [Compared; 2] = [
    Compared {
        stem: "",
        time: TRANSACTION,
        time_words: "transaction time",
        time_source: "thesis, figure 3.4-1",
        rate: END_TO_END_THROUGHPUT,
        where_words: "",
    },
    Compared {
        stem: "parts_",
        time: ONE_WAY,
        time_words: "one-way latency",
        time_source: "EQ 2; a supplier and a consumer, as in a run",
        rate: THROUGHPUT,
        where_words: " between parts",
    },
];

impl Compared {
    fn added_key(&self, transport: &str) -> String {
        format!("{}added_to_{transport}_ns", self.stem)
    }

    fn lost_key(&self, transport: &str) -> String {
        format!("{}throughput_lost_against_{transport}_share", self.stem)
    }
}

/// The systems and the sizes, each once, in the order of the measurements.
fn systems_and_sizes(points: &[Measurement]) -> (Vec<&str>, Vec<f64>) {
    let (mut systems, mut sizes) = (Vec::new(), Vec::new());
    for point in points {
        if !systems.contains(&point.system.as_str()) {
            systems.push(point.system.as_str());
        }
        let size = point.factors.get(SIZE).copied();
        sizes.extend(size.filter(|size| !sizes.contains(size)));
    }
    sizes.sort_by(f64::total_cmp);
    (systems, sizes)
}

fn figures(points: &[Measurement]) -> Vec<Figure> {
    let (systems, sizes) = systems_and_sizes(points);
    let note = "Each iteration is compared with the transport's iteration beside it: the point is the median of these pairs, and \
                its bar reaches from the lower quartile to the upper.";
    let over_sizes =
        |title: String, source: &str, y: AxisNote, transport: &str, key: &str| Figure {
            title,
            source: source.to_owned(),
            kind: FigureKind::Lines,
            x: AxisNote::new("message size", "octets", false),
            y,
            curves: (systems.iter())
                .map(|system| {
                    if *system == transport {
                        nothing(system, &sizes)
                    } else {
                        quartiles(points, system, key)
                    }
                })
                .collect(),
            notes: vec![note.to_owned()],
        };
    let mut all = Vec::new();
    let of_tables = spread(&sizes);
    for compared in &COMPARED {
        let is_measured = points
            .iter()
            .any(|point| point.runs.contains_key(&compared.rate.run_key()));
        for transport in TRANSPORTS.iter().filter(|_| is_measured) {
            let upper = transport.to_uppercase();
            let (time, place) = (compared.time_words, compared.where_words);
            all.push(over_sizes(
                capital(&format!("{time} added to {upper}{place}")),
                compared.time_source,
                AxisNote::new(&format!("added to the {time}"), "ns", false),
                transport,
                &compared.added_key(transport),
            ));
            all.push(over_sizes(
                format!("Throughput lost against {upper}{place}"),
                "end-to-end, EQ 7; figures 5 and 6",
                AxisNote::new("share lost of the end-to-end throughput", "share", false),
                transport,
                &compared.lost_key(transport),
            ));
        }
    }
    all.extend(of_tables.iter().map(|size| table(points, &systems, *size)));
    all.extend(
        of_tables
            .iter()
            .map(|size| distribution(points, &systems, *size)),
    );
    all.retain(|figure| !figure.curves.is_empty());
    all
}

/// The text with a capital letter at its beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A transport beside itself. It keeps its colour, and shows where the others would add nothing.
fn nothing(system: &str, sizes: &[f64]) -> Curve {
    Curve {
        label: system.to_owned(),
        points: sizes.iter().map(|size| Point::new(*size, 0.0)).collect(),
    }
}

/// At most so many sizes as are drawn, evenly over all.
fn spread(sizes: &[f64]) -> Vec<f64> {
    let count = sizes.len().min(OVERHEAD_SIZES_DRAWN_MAX);
    let at = |place: usize| sizes[place * (sizes.len() - 1) / (count - 1).max(1)];
    (0..count).map(at).collect()
}

/// The medians of a value over the sizes, with their quartiles.
fn quartiles(points: &[Measurement], system: &str, key: &str) -> Curve {
    let own = points.iter().filter(|of| of.system == system);
    let point = |of: &Measurement| {
        let found = of.ratio(key)?;
        Some(Point {
            low: Some(found.lower_quartile),
            high: Some(found.upper_quartile),
            ..Point::new(*of.factors.get(SIZE)?, found.median)
        })
    };
    Curve {
        label: system.to_owned(),
        points: own.filter_map(point).collect(),
    }
}

/// The point of a system at a size.
fn find<'p>(points: &'p [Measurement], system: &str, size: f64) -> Option<&'p Measurement> {
    let is_it = |of: &&Measurement| of.system == system && of.factors.get(SIZE) == Some(&size);
    points.iter().find(is_it)
}

/// Table 3.4-1 of the thesis: the time within which a percentage of the samples came, for each system.
fn table(points: &[Measurement], systems: &[&str], size: f64) -> Figure {
    let curve = |system: &&str| {
        let point = find(points, system, size)?;
        let times = (0..).zip(PERCENTAGES).filter_map(|(place, percentage)| {
            let time = time_within(point, percentage)?;
            Some(Point::new(f64::from(place), time))
        });
        let points: Vec<Point> = times.collect();
        let label = (*system).to_owned();
        (!points.is_empty()).then_some(Curve { label, points })
    };
    Figure {
        title: format!("Percentage of samples against time, {size} octets"),
        source: "thesis, table 3.4-1".to_owned(),
        kind: FigureKind::Bars,
        x: AxisNote {
            words: PERCENTAGES.map(|share| format!("{share}%")).to_vec(),
            ..AxisNote::new("percentage of samples", "", false)
        },
        y: AxisNote::new("transaction time", "ns", false),
        curves: systems.iter().filter_map(curve).collect(),
        notes: vec![
            "Transactions without an answer are samples that took longer than every other. A percentage needs ten samples beyond \
             it."
                .to_owned(),
        ],
    }
}

/// The percentages of the thesis.
const PERCENTAGES: [f64; 4] = [90.0, 95.0, 99.0, 99.4];

/// Samples that must lie beyond a percentage.
const BEYOND_MIN: f64 = 10.0;

/// Number of transactions, those without an answer among them.
fn transactions(point: &Measurement) -> f64 {
    let lost = point.values.get("transactions_lost").copied();
    point.samples as f64 + lost.unwrap_or_default()
}

/// The time within which a percentage of the transactions came. `None` if the sample does not support it.
fn time_within(point: &Measurement, percentage: f64) -> Option<f64> {
    let all = transactions(point);
    let needed = (all * percentage / 100.0).ceil();
    if all - needed < BEYOND_MIN {
        return None;
    }
    let mut counted = 0.0;
    let bins = point.histogram.iter();
    let mut bins = bins.skip_while(|(_, count)| {
        counted += *count as f64;
        counted < needed
    });
    bins.next().map(|(upper_ns, _)| *upper_ns as f64)
}

/// Shares of the samples against time, for each system.
fn distribution(points: &[Measurement], systems: &[&str], size: f64) -> Figure {
    let curve = |system: &&str| {
        let point = find(points, system, size)?;
        let (all, mut counted) = (transactions(point), 0.0);
        // A curve needs no more points than it has pixels.
        let step = 1.0 / DISTRIBUTION_POINTS;
        let mut next = 0.0;
        let mut drawn = Vec::new();
        for (place, (upper_ns, count)) in point.histogram.iter().enumerate() {
            counted += *count as f64;
            if counted / all >= next || place + 1 == point.histogram.len() {
                drawn.push(Point::new(*upper_ns as f64, counted / all));
                next = counted / all + step;
            }
        }
        let label = (*system).to_owned();
        (!drawn.is_empty()).then_some(Curve {
            label,
            points: drawn,
        })
    };
    Figure {
        title: format!("Distribution of transaction times, {size} octets"),
        source: "thesis, figures 3.2.2 and 3.3.2".to_owned(),
        kind: FigureKind::Lines,
        x: AxisNote::new("transaction time", "ns", true),
        y: AxisNote::new("share of the samples within this time", "share", false),
        curves: systems.iter().filter_map(curve).collect(),
        notes: Vec::new(),
    }
}

/// Points of a drawn distribution.
const DISTRIBUTION_POINTS: f64 = 200.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn point(system: &str, times: &[f64], rates: &[f64]) -> Measurement {
        Measurement {
            system: system.to_owned(),
            case: String::new(),
            group: String::new(),
            factors: BTreeMap::from([(SIZE.to_owned(), 64.0)]),
            values: BTreeMap::new(),
            runs: BTreeMap::from([
                (TRANSACTION.key("p50"), times.to_vec()),
                (END_TO_END_THROUGHPUT.run_key(), rates.to_vec()),
            ]),
            ends: Vec::new(),
            samples: 0,
            histogram: Vec::new(),
        }
    }

    #[test]
    fn each_iteration_is_compared_with_the_one_beside_it() {
        let tcp = point("tcp", &[100.0, 200.0, 300.0], &[10.0, 20.0, 40.0]);
        let corba = point("corba", &[150.0, 240.0, 380.0], &[5.0, 15.0, 10.0]);
        let found = against(&corba, &[tcp.clone(), corba.clone()], "tcp");
        assert_eq!(found["added_to_tcp_ns"], [50.0, 40.0, 80.0]);
        let lost = &found["throughput_lost_against_tcp_share"];
        assert_eq!(lost[..], [0.5, 0.25, 0.75]);
        assert!(against(&tcp, &[tcp.clone(), corba.clone()], "tcp").is_empty());
        assert!(against(&corba, std::slice::from_ref(&corba), "tcp").is_empty());
    }

    #[test]
    fn an_adapter_is_compared_with_the_transport_between_parts() {
        let between = |system: &str, times: &[f64], rates: &[f64]| {
            let mut point = point(system, &[], &[]);
            point.runs = BTreeMap::from([
                (ONE_WAY.key("p50"), times.to_vec()),
                (THROUGHPUT.run_key(), rates.to_vec()),
            ]);
            point
        };
        let mut udp = between("udp", &[100.0, 200.0], &[10.0, 20.0]);
        udp.runs
            .extend(point("udp", &[5.0, 5.0], &[90.0, 90.0]).runs);
        let zeromq = between("zeromq", &[150.0, 230.0], &[5.0, 15.0]);
        let found = against(&zeromq, &[udp.clone(), zeromq.clone()], "udp");
        assert_eq!(found["parts_added_to_udp_ns"], [50.0, 30.0]);
        assert_eq!(
            found["parts_throughput_lost_against_udp_share"],
            [0.5, 0.25]
        );
        assert_eq!(found.len(), 2, "no transactions: {found:?}");
        let figures = figures(&[udp, zeromq]);
        let titles: Vec<&str> = figures.iter().map(|it| it.title.as_str()).collect();
        assert!(
            titles.contains(&"One-way latency added to UDP between parts"),
            "{titles:?}"
        );
    }

    #[test]
    fn a_percentage_of_the_samples_came_within_the_time_of_table_3_4_1() {
        let mut whole = point("tcp", &[], &[]);
        whole.samples = 2_000;
        whole.histogram = vec![(7, 1_800), (8, 100), (9, 80), (10, 10), (30, 10)];
        let times = PERCENTAGES.map(|percentage| time_within(&whole, percentage));
        assert_eq!(times, [Some(7.0), Some(8.0), Some(9.0), Some(10.0)]);
        // With lost transactions, 99% came never; with few samples it is not known.
        whole.values.insert("transactions_lost".to_owned(), 100.0);
        assert_eq!(time_within(&whole, 99.0), None);
        assert_eq!(time_within(&whole, 90.0), Some(8.0));
        let mut few = whole.clone();
        (few.samples, few.histogram) = (90, vec![(7, 90)]);
        few.values.clear();
        assert_eq!(time_within(&few, 90.0), None);
    }

    #[test]
    fn the_drawn_sizes_spread_over_all() {
        let sizes: Vec<f64> = (1..=100).map(f64::from).collect();
        let drawn = spread(&sizes);
        assert_eq!(drawn.len(), OVERHEAD_SIZES_DRAWN_MAX);
        assert_eq!((drawn[0], drawn[drawn.len() - 1]), (1.0, 100.0));
        assert_eq!(spread(&[5.0]), [5.0]);
        assert!(spread(&[]).is_empty());
    }
}
