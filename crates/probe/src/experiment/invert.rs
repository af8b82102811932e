//! Priority inversion: one high-priority client and more and more low-priority ones at one server (slides 10 to 16 of the TAO slides). With
//! lanes the server has a thread for each priority; raw TCP, the same sockets and threads without an ORB, shows what the operating system does.

use std::collections::BTreeMap;
use std::time::Duration;

use deckwatch_cdr::{Write as _, Writer};
use deckwatch_meter::experiment::{AxisNote, ExperimentDocument, Figure, FigureKind, Measurement};
use deckwatch_meter::result::Warning;

use super::end::EndRole;
use super::stage::{Extra, Found, Kept, OMNIORB, OURS, RAW, Stage, Staging, greeted};
use crate::bench::BenchError;
use crate::bench::Progress;
use crate::bench::case::message_sizes;
use crate::bench::process::{End, Ran, RunLimits};
use crate::bench::program::Place;

/// What `deckwatch invert` measures.
#[derive(Clone, Debug)]
pub struct Invert {
    /// What every experiment is told.
    pub staging: Staging,
    /// Numbers of low-priority clients.
    pub low_clients: Vec<usize>,
    /// Calls a second of the high-priority client; 0: it never pauses.
    pub high_rate_hz: f64,
    /// Calls a second of each low-priority client; 0: they never pause.
    pub low_rate_hz: f64,
    /// How long the server works for each low-priority call.
    pub low_work: Duration,
}

/// With lanes; the other names are everybody's.
const LANES: &str = "deckwatch with lanes";

/// Native priorities: above those of the kernel's interrupt threads, and below.
const HIGH: u8 = 60;
const LOW: u8 = 10;

/// One system with all its clients.
struct Contest {
    name: &'static str,
    reference: String,
    /// Of the messages of raw TCP.
    sizes: (usize, usize),
    high: End,
    low: Vec<End>,
    server: End,
}

/// Runs the experiment. A wish to end ends it early, with what was measured until then.
///
/// # Errors
/// [`BenchError`]; a foreign peer that is not installed is no error but skipped.
pub fn invert(
    asked: &Invert,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, BenchError> {
    let mut stage = Stage::new(&asked.staging, tell)?;
    let mut contests = contests(&mut stage)?;
    stage.expect(asked.low_clients.len() * contests.len());
    let mut kept: Vec<Vec<[Kept; 3]>> = (asked.low_clients.iter())
        .map(|_| contests.iter().map(|_| Default::default()).collect())
        .collect();
    let mut warnings = Vec::new();
    'rounds: for round in 0..asked.staging.rounds {
        stage.begin_round(round);
        for (&count, kept) in asked.low_clients.iter().zip(&mut kept) {
            for turn in 0..contests.len() {
                let index = (turn + round) % contests.len();
                let contest = &mut contests[index];
                let (name, kept) = (contest.name, &mut kept[index]);
                let measure = |stage: &mut Stage<'_>| {
                    let measured = contest.measure(stage, asked, count, kept, &mut warnings);
                    contest.server.or_its_end(measured)
                };
                if !stage.turn(name, measure) {
                    break 'rounds;
                }
            }
        }
    }
    let mut measurements = Vec::new();
    for (&count, kept) in asked.low_clients.iter().zip(&kept) {
        for (contest, kept) in contests.iter().zip(kept) {
            for (case, kept) in CASES.into_iter().zip(kept) {
                let factors = [("low_clients", count as f64)];
                measurements.extend(kept.measurement(contest.name, case, &factors));
            }
        }
    }
    // All at once: each is waited for when it is dropped.
    for contest in &mut contests {
        contest.low.iter_mut().for_each(End::dismiss);
    }
    let rate = |hz: f64| match hz {
        0.0 => "without pause".to_owned(),
        hz => format!("{hz} calls a second each"),
    };
    let names: Vec<&str> = contests.iter().map(|contest| contest.name).collect();
    let figures = figures(&names, &measurements);
    let condition = condition(&stage, asked);
    stage.finish(Found {
        experiment: "invert",
        title: "One high-priority client beside many of low priority",
        source: "Schmidt, Applying a Real-time CORBA ORB for Avionics Mission Computing, slides 10 to 16",
        condition: Some(condition),
        parameters: BTreeMap::from([
            ("high-priority client".to_owned(), rate(asked.high_rate_hz)),
            ("low-priority clients".to_owned(), rate(asked.low_rate_hz)),
            (
                "work for a low-priority call".to_owned(),
                format!("{:?}", asked.low_work),
            ),
        ]),
        measurements,
        figures,
        warnings,
    })
}

const CASES: [&str; 3] = [
    "high-priority client",
    "high-priority client, from due to done",
    "low-priority clients",
];

/// In words, where everything runs.
fn condition(stage: &Stage<'_>, asked: &Invert) -> String {
    let on = |place: Place| {
        place.processor.map_or_else(String::new, |processor| {
            format!(" on processor {processor}")
        })
    };
    let low = match low_fifo(stage, asked) {
        Some(priority) => format!("SCHED_FIFO {priority}"),
        None => "SCHED_OTHER".to_owned(),
    };
    let (server, client) = (on(stage.places.server), on(stage.places.client));
    if stage.places.server.fifo.is_none() {
        return format!(
            "server{server}, clients{client}, each client a process; all SCHED_OTHER, so that priorities choose lanes only"
        );
    }
    format!(
        "server{server}: with lanes and raw TCP SCHED_FIFO {HIGH} for the high priority and {LOW} for the low one, the ORBs without priorities \
         SCHED_FIFO {HIGH} for all; clients{client}, each a process: the high-priority one SCHED_FIFO {HIGH}, the others {low}"
    )
}

/// The class of the low-priority clients: real-time only where they pause, so that somebody else may run too.
fn low_fifo(stage: &Stage<'_>, asked: &Invert) -> Option<u8> {
    let fifo = stage.places.client.fifo;
    fifo.filter(|_| asked.low_rate_hz > 0.0).map(|_| LOW)
}

/// A place at this priority, where the condition is real-time at all.
fn at(place: Place, priority: u8) -> Place {
    Place {
        fifo: place.fifo.map(|_| priority),
        ..place
    }
}

fn contests(stage: &mut Stage<'_>) -> Result<Vec<Contest>, BenchError> {
    let high = at(stage.places.client, HIGH);
    let server = at(stage.places.server, HIGH);
    let mut contests = Vec::new();
    let mut begin =
        |stage: &mut Stage<'_>, name, mut process: End, place| -> Result<(), BenchError> {
            let (reference, placed) = greeted(&mut process, place)?;
            stage.is_placed &= placed;
            let high = stage.client(
                if name == OMNIORB { OMNIORB } else { OURS },
                high,
                &reference,
            )?;
            contests.push(Contest {
                name,
                reference,
                sizes: (0, 0),
                high,
                low: Vec::new(),
                server: process,
            });
            Ok(())
        };
    let mut with_lanes = stage.server_command(server, Extra::default());
    with_lanes.args(["--lanes", &format!("{HIGH},{LOW}")]);
    let process = stage.start("The server of deckwatch with lanes", &mut with_lanes)?;
    begin(stage, LANES, process, server)?;
    let mut without = stage.server_command(server, Extra::default());
    let process = stage.start("The server of deckwatch", &mut without)?;
    begin(stage, OURS, process, server)?;
    let process = stage.omniorb_server(server, Extra::default());
    if let Some(process) = stage.or_skip(OMNIORB, process).flatten() {
        let begun = begin(stage, OMNIORB, process, server);
        let _noted = stage.or_skip(OMNIORB, begun);
    }
    let write = |w: &mut Writer<'_>| 0_u64.write(w);
    let sizes = message_sizes(&contests[0].reference, "compute", write, |_| Ok(()))?;
    let mut command = stage.own(EndRole::RawServer, server);
    let mut process = stage.start("The server of raw TCP", &mut command)?;
    let (reference, placed) = greeted(&mut process, server)?;
    stage.is_placed &= placed;
    let high = raw_client(stage, high, &reference, sizes)?;
    contests.push(Contest {
        name: RAW,
        reference,
        sizes,
        high,
        low: Vec::new(),
        server: process,
    });
    Ok(contests)
}

fn raw_client(
    stage: &mut Stage<'_>,
    place: Place,
    reference: &str,
    (there, back): (usize, usize),
) -> Result<End, BenchError> {
    let mut command = stage.own(EndRole::RawClient, place);
    command.args(["--reference", reference]);
    command.args(["--sizes", &format!("{there},{back}")]);
    // The serving thread has its priority from here, whether the client itself is real-time or not.
    let priority = place.fifo.unwrap_or(LOW);
    if stage.places.server.fifo.is_some() {
        command.args(["--serving-fifo", &priority.to_string()]);
    }
    let mut client = stage.start("A client of raw TCP", &mut command)?;
    let (_, placed) = greeted(&mut client, place)?;
    stage.is_placed &= placed;
    Ok(client)
}

impl Contest {
    /// One run with so many low-priority clients; false where the user wants to end.
    fn measure(
        &mut self,
        stage: &mut Stage<'_>,
        asked: &Invert,
        count: usize,
        kept: &mut [Kept; 3],
        warnings: &mut Vec<Warning>,
    ) -> Result<bool, BenchError> {
        if !stage.begin_run(format!("{count} low-priority clients at {}", self.name)) {
            return Ok(false);
        }
        while self.low.len() < count {
            let fifo = low_fifo(stage, asked);
            let place = Place {
                fifo,
                ..stage.places.client
            };
            let client = match self.name {
                RAW => raw_client(stage, place, &self.reference, self.sizes)?,
                OMNIORB => stage.client(OMNIORB, place, &self.reference)?,
                _ => stage.client(OURS, place, &self.reference)?,
            };
            self.low.push(client);
        }
        let limits = stage.limits();
        // They go on for as long as the high-priority client is measured.
        let longer = RunLimits {
            budget: limits.budget + OVERLAP,
            ..limits
        };
        let low_work = usize::try_from(asked.low_work.as_nanos()).unwrap_or(usize::MAX);
        let low_period = period_ns(asked.low_rate_hz);
        for client in &mut self.low[..count] {
            client.begin("compute/low", (low_work, 0), low_period, longer)?;
        }
        let high_period = period_ns(asked.high_rate_hz);
        self.high
            .begin("compute/high", (0, 0), high_period, limits)?;
        let Some(ran) = self.high.finish(limits)? else {
            return Ok(false);
        };
        let expected = asked.high_rate_hz * limits.budget.as_secs_f64();
        let (round_trips, from_due) = halves(&ran, high_period);
        if (round_trips.len() as f64) < expected * KEPT_SHARE {
            let kind = "schedule-not-kept".to_owned();
            let about = format!("{}: beside {count} clients ", self.name);
            let text = format!(
                "{about}the high-priority one made {} of {expected:.0} calls in a run.",
                round_trips.len()
            );
            // Once, whatever the rounds.
            if !warnings.iter().any(|known| known.text.starts_with(&about)) {
                warnings.push(Warning { kind, text });
            }
        }
        kept[0].times(round_trips);
        kept[1].times(from_due);
        for client in &mut self.low[..count] {
            let Some(ran) = client.finish(longer)? else {
                return Ok(false);
            };
            kept[2].times(halves(&ran, low_period).0);
        }
        stage.rest();
        Ok(true)
    }
}

/// How much longer than the high-priority client the others go on.
const OVERLAP: Duration = Duration::from_millis(50);

/// A client that makes fewer of its calls than this has not kept its schedule.
const KEPT_SHARE: f64 = 0.9;

fn period_ns(rate_hz: f64) -> u64 {
    if rate_hz > 0.0 {
        (1e9 / rate_hz) as u64
    } else {
        0
    }
}

/// The round trips, and the times from due to done where there is a schedule.
fn halves(ran: &Ran, period_ns: u64) -> (&[u32], &[u32]) {
    match ran {
        Ran::RoundTrips(times_ns) if period_ns > 0 => times_ns.split_at(times_ns.len() / 2),
        Ran::RoundTrips(times_ns) => (times_ns, &[]),
        Ran::Sum { .. } => (&[], &[]),
    }
}

fn figures(systems: &[&str], measurements: &[Measurement]) -> Vec<Figure> {
    let of = |value: &str, case: usize, suffix: &str| {
        let curve = |system: &&str| {
            let label = format!("{system}{suffix}");
            ExperimentDocument::curve(measurements, &label, "low_clients", value, |one| {
                one.system == **system && one.case == CASES[case]
            })
        };
        systems.iter().map(curve).collect::<Vec<_>>()
    };
    let figure =
        |title: &str, source: &str, value: &str, y: &str, cases: &[(usize, &str)]| Figure {
            title: title.to_owned(),
            source: source.to_owned(),
            kind: FigureKind::Lines,
            x: AxisNote::new("low-priority clients", "", false),
            y: AxisNote::new(y, "ns", true),
            curves: cases
                .iter()
                .flat_map(|(case, suffix)| of(value, *case, suffix))
                .filter(|curve| !curve.points.is_empty())
                .collect(),
            notes: Vec::new(),
        };
    let both: &[(usize, &str)] = &[(0, ", high"), (2, ", low")];
    let high: &[(usize, &str)] = &[(0, "")];
    let from_due: &[(usize, &str)] = &[(1, "")];
    let mut figures = vec![
        figure(
            "Latency of a two-way request",
            "slides 11 and 15",
            "mean_ns",
            "round trip, average",
            both,
        ),
        figure(
            "Jitter",
            "slides 12 and 16",
            "jitter_ns",
            "round trip, standard deviation",
            both,
        ),
        figure(
            "Latency of the high-priority client: median",
            "slides 11 and 15, high priority alone",
            "p50_ns",
            "round trip, median",
            high,
        ),
        figure(
            "Latency of the high-priority client: 99th percentile",
            "slides 11 and 15, high priority alone",
            "p99_ns",
            "round trip, p99",
            high,
        ),
        figure(
            "High-priority client, from due to done: 99th percentile",
            "not in the slides: what a schedule sees",
            "p99_ns",
            "from due to done, p99",
            from_due,
        ),
    ];
    figures.retain(|figure| !figure.curves.is_empty());
    figures
}
