//! `deckwatch sweep`: the metrics and the method of NTTCP, over any carrier and any sizes.
//!
//! Each carrier has its processes, which stay alive: the client (transmitter), the server (receiver), and those that pass
//! messages on if there is more than one hop. The sizes come in a random order. At each size the carriers take turns, iteration by iteration. A finished point is written to the
//! [journal](JOURNAL_FILE), from which a later sweep goes on.

mod adaptive;
mod beside;
mod channel;
mod clock;
pub(crate) mod end;
mod far;
mod figures;
mod flow;
mod grid;
mod hosts;
mod interval;
mod journal;
mod layers;
mod outgoing;
mod overhead;
mod parts;
mod point;
mod ring;
mod sizes;
mod talk;
mod variant;
mod way;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use deckwatch_carrier::carrier::{Delivery, NetworkPriority};
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_meter::experiment::{ExperimentDocument, Measurement};
use deckwatch_meter::metrics::{END_TO_END_THROUGHPUT, Spread, TRANSACTION};

pub use beside::Instrument;
use beside::{Others, add_ratios, run_beside};
use deckwatch_testbed::{NetworkSpec, Testbed};
use far::FarClock;
pub use far::FarEnd;
pub use grid::{GRID_CSV, STATES, grid};
pub use hosts::Network;
use hosts::{Pairs, start};
pub use journal::JOURNAL_FILE;
use journal::Journal;
use layers::Layers;
pub use overhead::{TRANSPORTS, overhead};
use parts::{Between, Streams};
use point::{Iteration, Place, measurement};
use ring::Work;
pub use sizes::parse_sizes;
pub use variant::Axes;
use variant::Variant;

use crate::laboratory::condition::Places;
use crate::laboratory::session::{Found, Session, TurnCase};
use crate::laboratory::{Condition, LaboratoryError, Progress, Setup};
use crate::limits::SWEEP_ENDS_MAX;

/// The parameters of `deckwatch sweep`.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The parameters of every experiment; its rounds are NUM_ITERATIONS.
    pub setup: Setup,
    /// Processors and scheduling class of both ends.
    pub condition: Condition,
    /// The carriers that are compared.
    pub carriers: Vec<CarrierRef>,
    /// Carriers that were asked for by `all` and cannot be used, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// The settings that are compared.
    pub axes: Axes,
    /// MESSAGE_SIZE in octets: every value.
    pub sizes: Vec<u32>,
    /// NUM_MESSAGES.
    pub messages: u64,
    /// Least time between two transactions; zero for none.
    pub every: Duration,
    /// A stream has as many messages with each system call as the carrier can. Otherwise each has a call of its own.
    pub in_bulk: bool,
    /// Chooses the order of the sizes.
    pub seed: u64,
    /// Priority of the packets of all ends, and of the channels.
    pub network_priority: NetworkPriority,
    /// A datagram waits for room in a full send buffer. Otherwise it is a sendto error.
    pub waits: bool,
    /// The largest number of sizes that are measured, those where neighbours differ. `None`: all sizes.
    pub adaptive: Option<usize>,
    /// Instruments that run beside each iteration of udp and tcp on loopback.
    pub beside: Vec<Instrument>,
    /// The emulated network and its hosts. Without one, both ends are on loopback.
    pub network: Option<Network>,
    /// Client and server on hosts of their own, with one hop between them.
    pub far: Option<[FarEnd; 2]>,
    /// The journal, in the result folder.
    pub journal: PathBuf,
}

/// The factor of a measurement that has its message size.
pub(crate) const SIZE: &str = "size_octets";

impl Sweep {
    /// The parameters in words, by name. A sweep with other parameters cannot be resumed.
    fn parameters(&self) -> BTreeMap<String, String> {
        let names: Vec<String> = self.variants().iter().map(Variant::to_string).collect();
        let full = if self.waits { "wait" } else { "a sendto error" };
        let every = if self.every.is_zero() {
            "none".to_owned()
        } else {
            format!("{:?}", self.every)
        };
        let sends = if self.in_bulk {
            "in bulk"
        } else {
            "each by itself"
        };
        let chosen = match self.adaptive {
            Some(points) => format!("at most {points}, where neighbours differ"),
            None => "all".to_owned(),
        };
        let codepoint = self.network_priority.dscp;
        let codepoint = codepoint.map(|dscp| ("codepoint of packets", dscp.to_string()));
        let all = [
            ("carriers", names.join("; ")),
            ("network", self.place_words()),
            (
                "beside",
                self.beside
                    .iter()
                    .map(|it| it.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
            ("sizes measured", chosen),
            ("message sizes", ranges(&self.sizes)),
            ("iterations", self.setup.rounds.to_string()),
            ("messages in an iteration", self.messages.to_string()),
            ("seed of the order", self.seed.to_string()),
            ("a full send buffer", full.to_owned()),
            ("messages of a stream are sent", sends.to_owned()),
            ("least time between transactions", every),
        ];
        let all = all.into_iter().chain(codepoint);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    const fn work(&self) -> Work {
        Work {
            messages: self.messages,
            every: self.every,
            in_bulk: self.in_bulk,
        }
    }

    fn variants(&self) -> Vec<Variant> {
        Variant::all(&self.carriers, &self.axes)
    }

    /// Where the ends are.
    fn place_words(&self) -> String {
        match (&self.network, &self.far) {
            (Some(network), _) => network.words(self.hops()),
            (None, Some([from, to])) => {
                let at = |end: &FarEnd| format!("{} ({})", end.name, end.address);
                format!("from {} to {}", at(from), at(to))
            }
            (None, None) => "loopback".to_owned(),
        }
    }

    /// The greatest number of hops.
    fn hops(&self) -> u32 {
        self.axes.hops.iter().copied().max().unwrap_or(1)
    }

    /// Refuses settings that need too many processes or hosts.
    fn check(&self) -> Result<(), LaboratoryError> {
        let ends = self.variants().iter().map(Variant::ends).sum();
        if ends > SWEEP_ENDS_MAX {
            return Err(LaboratoryError::TooManyEnds {
                ends,
                limit: SWEEP_ENDS_MAX,
            });
        }
        if self.far.is_some() && self.hops() > 1 {
            return Err(LaboratoryError::FarHops { hops: self.hops() });
        }
        let network = self.network.as_ref();
        network.map_or(Ok(()), |network| network.check(self.hops()))
    }

    /// The planned time of one iteration. Only the proportions matter: the display learns the pace.
    fn planned(&self, size: u32) -> Duration {
        let a_message =
            self.every + Duration::from_micros(100) + Duration::from_nanos(u64::from(size));
        let between = if parts::are_measured(self) {
            parts::planned(self.messages)
        } else {
            Duration::ZERO
        };
        a_message * u32::try_from(self.messages).unwrap_or(u32::MAX) + between
    }
}

/// Writes sizes as ranges of equal steps.
fn ranges(sizes: &[u32]) -> String {
    let mut words = Vec::new();
    let mut rest = sizes;
    while let [first, others @ ..] = rest {
        let step = others.first().map_or(0, |second| second - first);
        let steps = rest.windows(2).take_while(|pair| pair[1] - pair[0] == step);
        let count = steps.count();
        if count < 2 {
            words.push(first.to_string());
            rest = others;
        } else {
            words.push(format!("{first}..{}:{step}", rest[count]));
            rest = &rest[count + 1..];
        }
    }
    words.join(",")
}

/// Measures all points. If the user wants to end, it ends early with what was measured until then.
///
/// # Errors
/// [`LaboratoryError`]: nothing was measured, or the journal cannot be used.
pub fn sweep(
    asked: &Sweep,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, LaboratoryError> {
    asked.check()?;
    let mut journal = Journal::open(&asked.journal, &asked.parameters())?;
    let mut session = Session::new(&asked.setup, tell);
    let places = session.enter(asked.condition)?;
    let mut points = std::mem::take(&mut journal.finished);
    let resumed = points.len();
    // The pairs end before the hosts that they run on.
    let network = asked.network.as_ref();
    let bed = network.map(|network| network.make(asked.hops()));
    let bed = bed.transpose()?;
    let mut pairs = Pairs::default();
    for (carrier, reason) in &asked.left_out {
        session.skip(carrier, reason);
    }
    if parts::are_measured(asked) {
        pairs.between = Some(Streams::new(asked, &places, bed.as_ref())?);
    }
    if let Some(far) = &asked.far {
        pairs.clock = FarClock::start(far)?;
    }
    let mut is_whole = true;
    while is_whole {
        let mut groups = groups(asked, &points, &pairs, &mut session);
        if groups.is_empty() {
            break;
        }
        // Another order for each batch of an adaptive sweep.
        sizes::shuffle(&mut groups, asked.seed.wrapping_add(points.len() as u64));
        let planned = groups.iter().map(|group| group.planned(asked)).sum();
        session.plan(planned);
        let count = groups.len();
        for (number, group) in groups.iter().enumerate() {
            let (found, is_group_whole) = measure(
                &mut session,
                asked,
                (&places, bed.as_ref()),
                &mut pairs,
                group,
                (number, count),
            )?;
            points.extend(found.iter().cloned());
            is_whole = is_group_whole;
            if !is_whole {
                break;
            }
            for point in &found {
                journal.add(point)?;
            }
        }
    }
    drop(pairs);
    if points.is_empty() {
        return Err(session.nothing());
    }
    Ok(document(asked, &session, &places, points, resumed))
}

/// One size, and the carriers that take turns at it.
struct Group {
    size: u32,
    variants: Vec<Variant>,
}

impl Group {
    fn planned(&self, asked: &Sweep) -> Duration {
        let iterations = asked.setup.rounds * self.variants.len();
        asked.planned(self.size) * u32::try_from(iterations).unwrap_or(u32::MAX)
    }
}

/// The sizes of which a point is wanted now.
fn wanted(asked: &Sweep, finished: &[Measurement], pairs: &Pairs) -> Vec<u32> {
    let Some(points) = asked.adaptive else {
        return asked.sizes.clone();
    };
    let mut curves = Vec::new();
    let variants = asked.variants();
    for name in variants.iter().map(Variant::to_string) {
        let own = finished.iter().filter(|of| of.system == name);
        let own: Vec<&Measurement> = own.collect();
        for key in [TRANSACTION.key("mean"), END_TO_END_THROUGHPUT.run_key()] {
            let point = |of: &&Measurement| {
                let spread = Spread::of(of.runs.get(&key)?)?;
                let deviation = spread.variance.unwrap_or_default().sqrt();
                Some((*of.factors.get(SIZE)? as u32, (spread.mean, deviation)))
            };
            curves.push(own.iter().filter_map(point).collect());
        }
    }
    let is_measured = |size| {
        variants.iter().all(|variant| {
            let max = variant.carrier.needs().size_bytes_max;
            size > max || pairs.has_failed(variant) || is_finished(finished, variant, size)
        })
    };
    adaptive::next_sizes(&asked.sizes, &curves, points, is_measured)
}

fn is_finished(finished: &[Measurement], variant: &Variant, size: u32) -> bool {
    let name = variant.to_string();
    finished.iter().any(|point| {
        let is_size = point.factors.get(SIZE) == Some(&f64::from(size));
        is_size && point.system == name
    })
}

/// The points that are still to be measured, by size.
fn groups(
    asked: &Sweep,
    finished: &[Measurement],
    pairs: &Pairs,
    session: &mut Session<'_>,
) -> Vec<Group> {
    let mut groups = Vec::new();
    for size in wanted(asked, finished, pairs) {
        let mut variants = asked.variants();
        variants.retain(|variant| {
            let carrier = variant.carrier;
            let max = carrier.needs().size_bytes_max;
            if size > max {
                let reason = format!("its messages have at most {max} octets");
                session.skip(&format!("{carrier}, larger sizes"), &reason);
            }
            let is_stranded = carrier.external().is_some() && asked.far.is_some();
            if is_stranded {
                let reason = "its program runs on this machine alone; `deckwatch run` measures it between hosts";
                session.skip(carrier.name(), reason);
            }
            size <= max
                && !is_stranded
                && !pairs.has_failed(variant)
                && !is_finished(finished, variant, size)
        });
        if !variants.is_empty() {
            groups.push(Group { size, variants });
        }
    }
    groups
}

/// Measures one size over all its carriers. Returns the points, and whether they are whole.
fn measure(
    session: &mut Session<'_>,
    asked: &Sweep,
    places: (&Places, Option<&Testbed>),
    pairs: &mut Pairs,
    group: &Group,
    (number, count): (usize, usize),
) -> Result<(Vec<Measurement>, bool), LaboratoryError> {
    let size = group.size;
    let names: Vec<String> = group.variants.iter().map(Variant::to_string).collect();
    for (variant, name) in group.variants.iter().zip(&names) {
        let carrier = variant.carrier;
        if carrier.external().is_some() {
            continue;
        }
        if !pairs.started.contains_key(name) {
            let folder =
                (asked.journal).with_file_name(format!("channels-{}", pairs.started.len()));
            let pair = start(session, asked, places, (*variant, &folder))?;
            pairs.started.insert(name.clone(), pair);
        }
        let waits = asked.waits || carrier.delivery() == Delivery::InOrder;
        if let Some(pair) = pairs.started.get_mut(name)
            && !(pair.open(*variant, size, waits)).map_err(|error| pair.blame(error))?
        {
            session.is_whole = false;
            return Ok((Vec::new(), false));
        }
    }
    let mut found: Vec<Vec<Iteration>> = names.iter().map(|_| Vec::new()).collect();
    let mut others: Vec<Others> = names.iter().map(|_| Others::default()).collect();
    let mut between: Vec<Vec<Between>> = names.iter().map(|_| Vec::new()).collect();
    let cases = [TurnCase {
        name: format!("{size} octets: "),
        systems: group.variants.iter().map(|it| it.carrier.name()).collect(),
    }];
    let rounds = 1..=asked.setup.rounds;
    let is_whole = session.take_turns(rounds, &cases, &mut |session, turn| {
        let name = &names[turn.system];
        let now = format!("{size} octets: {name}, iteration {}", turn.round);
        session.show_step(number + 1, count, now);
        let variant = group.variants[turn.system];
        if let Some(pair) = pairs.started.get_mut(name) {
            let begun = Instant::now();
            let iterated = pair.iterate(size, asked.work(), places.1);
            let iterated = iterated.map_err(|error| pair.blame(error))?;
            places.0.rest(begun.elapsed());
            let Some(iteration) = iterated else {
                return Ok(false);
            };
            let others = &mut others[turn.system];
            run_beside(session, asked, places.0, (variant, size), others);
            found[turn.system].push(iteration);
        }
        between[turn.system].extend(pairs.iterate_between(session, variant, size));
        session.spend(asked.planned(size));
        Ok(true)
    });
    for name in names.iter().filter(|_| is_whole) {
        if let Some(pair) = pairs.started.get_mut(name) {
            pair.close()?;
        }
    }
    let bounds = pairs.clock.convert(&mut found)?;
    let all = group.variants.iter().zip(&found).zip(&others).zip(&between);
    let kept = all.filter(|(((variant, _), _), _)| !pairs.has_failed(variant));
    let points = kept.filter_map(|(((variant, iterations), others), between)| {
        point(asked, *variant, size, (iterations, others, between), bounds)
    });
    Ok((points.collect(), is_whole))
}

/// Returns the point of a variant at a size; `None` if nothing was measured.
fn point(
    asked: &Sweep,
    variant: Variant,
    size: u32,
    (iterations, others, between): (&[Iteration], &Others, &[Between]),
    bounds: Option<far::Bounds>,
) -> Option<Measurement> {
    let mut factors = variant.factors();
    factors.insert(SIZE.to_owned(), f64::from(size));
    let system = variant.to_string();
    let place = Place { system, factors };
    if variant.carrier.external().is_some() {
        return (!between.is_empty()).then(|| parts::point(place, between));
    }
    let mut point = measurement(&place, iterations)?;
    // Values are compared by their iterations.
    if between.len() == iterations.len() {
        parts::add(&mut point, between);
    }
    add_ratios(&mut point, others);
    interval::add(&mut point, asked.every, iterations);
    if let Some(network) = &asked.network {
        add_layers(&mut point, variant.carrier, &network.spec);
    }
    if let Some(bounds) = bounds {
        far::bound(&mut point, bounds);
    }
    Some(point)
}

/// Adds the end-to-end throughput of the layers below the application.
fn add_layers(point: &mut Measurement, carrier: CarrierRef, network: &NetworkSpec) {
    let size = point.factors.get(SIZE).copied().unwrap_or_default();
    let mean = point.values.get(&END_TO_END_THROUGHPUT.key("mean"));
    let layers = Layers::of(&*carrier, size as u32, network);
    if let (Some(mean), Some(layers)) = (mean.copied(), layers) {
        for (layer, octets) in layers.entries() {
            let key = format!("end_to_end_{layer}_mean_bit_s");
            point.values.insert(key, mean * octets / size);
        }
    }
}

/// The document of the measured points.
fn document(
    asked: &Sweep,
    session: &Session<'_>,
    places: &Places,
    mut points: Vec<Measurement>,
    resumed: usize,
) -> ExperimentDocument {
    let names: Vec<String> = asked.variants().iter().map(Variant::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let key = |point: &Measurement| {
        let system = names.iter().position(|name| *name == point.system);
        (
            system,
            point.factors.get(SIZE).copied().unwrap_or_default() as u64,
        )
    };
    points.sort_by_key(key);
    let resumed = (resumed > 0)
        .then(|| format!("{resumed} points are of an earlier run of this sweep, from its journal"));
    let notes: Vec<String> = resumed.into_iter().collect();
    let network = asked.network.as_ref();
    let mut document = session.document_of(
        "all ends have the CLOCK_MONOTONIC of one kernel",
        Found {
            experiment: "sweep".to_owned(),
            title: "Transactions, latency and throughput over message sizes",
            source: "Irey, Harrison and Marlow, Evaluating LAN Communications Performance for a Real-Time Environment",
            condition: places.words(),
            parameters: asked.parameters(),
            standings: beside::standings(&points, places),
            warnings: [interval::cautions(&points), far::cautions(&points)].concat(),
            figures: figures::figures(&names, &points),
            measurements: points,
            notes,
            fidelity: network.and_then(|network| deckwatch_load::fidelity(&network.spec)),
            ..Found::default()
        },
    );
    document.provenance.clock.shared = true;
    if asked.far.is_some() {
        far::describe(&mut document);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_the_ranges_that_they_came_from() {
        for text in [
            "16..1024:16",
            "64",
            "64,1000",
            "16..48:16,1000,2000..5000:500",
        ] {
            let sizes = parse_sizes(text).expect("sizes");
            assert_eq!(ranges(&sizes), text);
        }
    }
}
