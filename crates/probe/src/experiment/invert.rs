//! Priority inversion: one high-priority client and a growing number of low-priority clients at one server (slides 10
//! to 16 of the TAO slides). With lanes the server has a thread for each priority. Raw TCP, the same sockets and
//! threads without an ORB, shows the effect of the operating system alone.
//!
//! The time from due to done comes first. A round trip begins when the client sends, so that whatever keeps the client
//! from sending in time is not in it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use deckwatch_meter::experiment::{AxisNote, ExperimentDocument, Figure, FigureKind, Measurement};
use deckwatch_meter::statistics::simulated::Random;

use crate::laboratory::caution::Caution;
use crate::laboratory::condition::Places;
use crate::laboratory::payload::compute_sizes;
use crate::laboratory::process::{End, RunLimits, RunResult};
use crate::laboratory::program::{Place, Program, Shape};
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Found, Session, TurnCase};
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{Condition, LaboratoryError, OMNIORB, OURS, Progress, RAW, Role, Setup};

/// The parameters of `deckwatch invert`.
#[derive(Clone, Debug)]
pub struct Invert {
    /// The parameters of every experiment.
    pub setup: Setup,
    /// Processors and scheduling class of both ends.
    pub condition: Condition,
    /// Numbers of low-priority clients.
    pub low_clients: Vec<usize>,
    /// Calls per second of the high-priority client; at 0 it never pauses.
    pub high_rate_hz: f64,
    /// Calls per second of each low-priority client; at 0 they never pause.
    pub low_rate_hz: f64,
    /// How long the server works for each low-priority call.
    pub low_work: Duration,
}

/// Our server with lanes; the other systems have their usual names.
const LANES: &str = "deckwatch with lanes";

/// Native priorities: above those of the kernel's interrupt threads, and below.
const HIGH: u8 = 60;
const LOW: u8 = 10;

/// One system, whose low-priority clients are its load.
struct Contender {
    system: System,
    /// The program, role and shape of its clients.
    client: (Program, Role, Shape),
}

/// Runs the experiment. If the user wants to end, it ends early with what was measured until then.
///
/// # Errors
/// [`LaboratoryError`]: nothing was measured. A foreign ORB that is not installed is skipped.
pub fn invert(
    asked: &Invert,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, LaboratoryError> {
    let mut session = Session::new(&asked.setup, tell);
    let places = session.enter(asked.condition)?;
    let mut contenders = contenders(&mut session, &places)?;
    let names: Vec<&'static str> = contenders.iter().map(|it| it.system.name).collect();
    let sizes = compute_sizes(&contenders[0].system.reference)?;
    session.expect_runs(asked.low_clients.len() * contenders.len());
    let mut samples: Vec<Vec<[Samples; 3]>> = (asked.low_clients.iter())
        .map(|_| contenders.iter().map(|_| Default::default()).collect())
        .collect();
    let mut warnings = Vec::new();
    let rounds = 1..=asked.setup.rounds;
    let turns = TurnCase::alike(asked.low_clients.len(), &names);
    session.take_turns(rounds, &turns, &mut |session, turn| {
        let (contender, count) = (&mut contenders[turn.system], asked.low_clients[turn.case]);
        let name = contender.system.name;
        let now = format!("{count} low-priority clients at {name}");
        if !session.begin_run(turn.round, &now) {
            return Ok(false);
        }
        let run = Run {
            asked,
            places: &places,
            sizes,
            count,
            round: turn.round,
        };
        let samples = &mut samples[turn.case][turn.system];
        let measured = run.measure(session, contender, samples, &mut warnings);
        contender.system.server.blame_exit(measured)
    });
    let mut measurements = Vec::new();
    for (&count, samples) in asked.low_clients.iter().zip(&samples) {
        for (name, samples) in names.iter().zip(samples) {
            for (case, samples) in CASES.into_iter().zip(samples) {
                let factors = [("low_clients", count as f64)];
                measurements.extend(samples.measurement(name, case, &factors));
            }
        }
    }
    // All at once, because the drop of each waits for its exit.
    for contender in &mut contenders {
        contender.system.load.iter_mut().for_each(End::close_input);
    }
    let rate = |hz: f64| match hz {
        0.0 => "without pause".to_owned(),
        hz => format!("{hz} calls a second each"),
    };
    let figures = figures(&names, &measurements);
    session.finish(Found {
        experiment: "invert".to_owned(),
        title: "One high-priority client beside many of low priority",
        source: "Schmidt, Applying a Real-time CORBA ORB for Avionics Mission Computing, slides 10 to 16",
        condition: condition(&places, asked),
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
        ..Found::default()
    })
}

const CASES: [&str; 3] = [
    "high-priority client, from due to done",
    "high-priority client, round trip",
    "low-priority clients, round trip",
];

/// Places in [`CASES`].
const FROM_DUE: usize = 0;
const ROUND_TRIP: usize = 1;
const LOW_ROUND_TRIP: usize = 2;

/// What a reader of a round trip has to know.
const ROUND_TRIP_NOTE: &str = "A round trip begins when the client sends. What makes the client start late is not in it, such as a call before that took too long: compare servers by the time from due to done.";

/// Processors and scheduling classes of all processes, in words.
fn condition(places: &Places, asked: &Invert) -> String {
    let on = |place: Place| {
        place.processor.map_or_else(String::new, |processor| {
            format!(" on processor {processor}")
        })
    };
    let low = match low_place(places, asked).fifo {
        Some(priority) => format!("SCHED_FIFO {priority}"),
        None => "SCHED_OTHER".to_owned(),
    };
    let (server, client) = (on(places.server), on(places.client));
    if places.server.fifo.is_none() {
        return format!(
            "server{server}, clients{client}, each client a process; all SCHED_OTHER, so that priorities choose lanes only"
        );
    }
    format!(
        "server{server}: with lanes and raw TCP SCHED_FIFO {HIGH} for the high priority and {LOW} for the low one, the ORBs without priorities \
         SCHED_FIFO {HIGH} for all; clients{client}, each a process: the high-priority one SCHED_FIFO {HIGH}, the others {low}"
    )
}

/// The place of the low-priority clients. Clients that never pause are in the time-sharing class, so that other threads
/// can still run.
fn low_place(places: &Places, asked: &Invert) -> Place {
    let fifo = places.client.fifo.filter(|_| asked.low_rate_hz > 0.0);
    Place {
        fifo: fifo.map(|_| LOW),
        ..places.client
    }
}

fn contenders(
    session: &mut Session<'_>,
    places: &Places,
) -> Result<Vec<Contender>, LaboratoryError> {
    let own = session.own();
    let subjects = Shape {
        subjects: true,
        ..Shape::default()
    };
    let lanes = Shape {
        lanes: Some((HIGH, LOW)),
        ..subjects.clone()
    };
    let mut contenders = vec![
        contender(session, places, LANES, &own, Role::ORB, lanes)?,
        contender(session, places, OURS, &own, Role::ORB, subjects.clone())?,
    ];
    if let Some(omniorb) = session.omniorb() {
        let started = contender(session, places, OMNIORB, &omniorb, Role::ORB, subjects);
        contenders.extend(session.or_skip(OMNIORB, started));
    }
    // The serving thread takes the priority that its client asks for, even if the client itself is not real-time.
    let high = Shape {
        serving_fifo: places.server.fifo.map(|_| HIGH),
        ..Shape::default()
    };
    let mut raw = contender(session, places, RAW, &own, Role::RAW, high)?;
    raw.client.2.serving_fifo = places.server.fifo.map(|_| LOW);
    contenders.push(raw);
    Ok(contenders)
}

fn contender(
    session: &mut Session<'_>,
    places: &Places,
    name: &'static str,
    program: &Program,
    roles: (Role, Role),
    shape: Shape,
) -> Result<Contender, LaboratoryError> {
    let both = (places.server.at(HIGH), places.client.at(HIGH));
    let plan = Plan::pair(name, program, roles, both, shape.clone());
    Ok(Contender {
        system: session.start(&plan)?,
        client: (program.clone(), roles.1, shape),
    })
}

/// One run with a number of low-priority clients.
struct Run<'a> {
    asked: &'a Invert,
    places: &'a Places,
    /// Of the messages of raw TCP.
    sizes: (usize, usize),
    count: usize,
    round: usize,
}

impl Run<'_> {
    /// Returns false if the user wants to end.
    fn measure(
        &self,
        session: &mut Session<'_>,
        contender: &mut Contender,
        samples: &mut [Samples; 3],
        warnings: &mut Vec<Caution>,
    ) -> Result<bool, LaboratoryError> {
        let Contender { system, client } = contender;
        let once = RunLimits {
            count: 1,
            ..session.limits()
        };
        while system.load.len() < self.count {
            let (program, role, shape) = &*client;
            let place = low_place(self.places, self.asked);
            system.add_load((program, *role, place), shape)?;
            // It connects. Else its first call would take longer, and come together with those of others.
            let Some(added) = system.load.last_mut() else {
                continue;
            };
            added.begin("compute/low/0", self.sizes, 0, once)?;
            if added.finish(once)?.is_none() {
                return Ok(false);
            }
        }
        session.is_placed &= system.is_placed;
        let limits = session.limits();
        let (low_rate, high_rate) = (self.asked.low_rate_hz, self.asked.high_rate_hz);
        let low = format!("compute/low/{}", self.asked.low_work.as_nanos());
        let low_period = period_ns(low_rate);
        let lasting = RunLimits {
            budget: limits.longer().budget + Duration::from_nanos(low_period),
            ..limits
        };
        let phases = phases(self.count, low_period, self.round);
        let begun = Instant::now();
        for (client, phase) in system.load.iter_mut().zip(phases) {
            std::thread::sleep(phase.saturating_sub(begun.elapsed()));
            client.begin(&low, self.sizes, low_period, lasting)?;
        }
        let high_period = period_ns(high_rate);
        let high = &mut system.client;
        high.begin("compute/high/0", self.sizes, high_period, limits)?;
        let Some(ran) = high.finish(limits)? else {
            return Ok(false);
        };
        let expected = high_rate * limits.budget.as_secs_f64();
        let (round_trips, from_due) = halves(&ran, high_period);
        if (round_trips.len() as f64) < expected * KEPT_SHARE {
            let (system, low_clients) = (system.name, self.count);
            let is_same = |known: &Caution| {
                matches!(known, Caution::ScheduleNotKept { system: it, low_clients: of, .. }
                    if *it == system && *of == low_clients)
            };
            // Once, in whatever number of rounds.
            if !warnings.iter().any(is_same) {
                let made = round_trips.len();
                warnings.push(Caution::ScheduleNotKept {
                    system,
                    low_clients,
                    made,
                    expected,
                });
            }
        }
        samples[FROM_DUE].add_times(from_due);
        samples[ROUND_TRIP].add_times(round_trips);
        for client in &mut system.load[..self.count] {
            let Some(ran) = client.finish(lasting)? else {
                return Ok(false);
            };
            samples[LOW_ROUND_TRIP].add_times(halves(&ran, low_period).0);
        }
        self.places.rest(limits.budget);
        Ok(true)
    }
}

/// When each low-priority client begins: at a random time of its period, the same in every run of a round. Else the
/// clients would begin as fast as the server lets them, which differs between servers, and call in this rhythm ever after.
fn phases(count: usize, period_ns: u64, round: usize) -> Vec<Duration> {
    let mut random = Random::new(round as u64);
    let phase = |_| Duration::from_nanos(random.below(period_ns.max(1)));
    let mut phases: Vec<Duration> = (0..count).map(phase).collect();
    phases.sort_unstable();
    phases
}

/// A client that makes less than this share of its calls has not kept its schedule.
const KEPT_SHARE: f64 = 0.9;

fn period_ns(rate_hz: f64) -> u64 {
    if rate_hz > 0.0 {
        (1e9 / rate_hz) as u64
    } else {
        0
    }
}

/// The round trips, and the times from due to done if there is a schedule.
fn halves(ran: &RunResult, period_ns: u64) -> (&[u32], &[u32]) {
    match ran {
        RunResult::RoundTrips(times_ns) if period_ns > 0 => times_ns.split_at(times_ns.len() / 2),
        RunResult::RoundTrips(times_ns) => (times_ns, &[]),
        RunResult::Sum { .. } => (&[], &[]),
    }
}

/// A figure: title, source, value, vertical axis, and its cases with what follows the name of a system.
type Plotted = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [(usize, &'static str)],
);

const NOT_IN_SLIDES: &str = "not in the slides: what a schedule sees";
const HIGH_ALONE: &str = "slides 11 and 15, high priority alone";
const BOTH: &[(usize, &str)] = &[(ROUND_TRIP, ", high"), (LOW_ROUND_TRIP, ", low")];

/// The figures in their order.
const FIGURES: [Plotted; 7] = [
    (
        "High-priority client, from due to done: 99th percentile",
        NOT_IN_SLIDES,
        "p99_ns",
        "from due to done, p99",
        &[(FROM_DUE, "")],
    ),
    (
        "High-priority client, from due to done: 95th percentile",
        NOT_IN_SLIDES,
        "p95_ns",
        "from due to done, p95",
        &[(FROM_DUE, "")],
    ),
    (
        "High-priority client, from due to done: median",
        NOT_IN_SLIDES,
        "p50_ns",
        "from due to done, median",
        &[(FROM_DUE, "")],
    ),
    (
        "Latency of a two-way request",
        "slides 11 and 15",
        "mean_ns",
        "round trip alone, average",
        BOTH,
    ),
    (
        "Jitter",
        "slides 12 and 16",
        "jitter_ns",
        "round trip alone, standard deviation",
        BOTH,
    ),
    (
        "Latency of the high-priority client: median",
        HIGH_ALONE,
        "p50_ns",
        "round trip alone, median",
        &[(ROUND_TRIP, "")],
    ),
    (
        "Latency of the high-priority client: 99th percentile",
        HIGH_ALONE,
        "p99_ns",
        "round trip alone, p99",
        &[(ROUND_TRIP, "")],
    ),
];

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
    let figure = |(title, source, value, y, cases): &Plotted| {
        let is_from_due = cases.iter().any(|(case, _)| *case == FROM_DUE);
        let note = (!is_from_due).then(|| ROUND_TRIP_NOTE.to_owned());
        Figure {
            title: (*title).to_owned(),
            source: (*source).to_owned(),
            kind: FigureKind::Lines,
            x: AxisNote::new("low-priority clients", "", false),
            y: AxisNote::new(y, "ns", true),
            curves: cases
                .iter()
                .flat_map(|(case, suffix)| of(value, *case, suffix))
                .filter(|curve| !curve.points.is_empty())
                .collect(),
            notes: note.into_iter().collect(),
        }
    };
    let mut figures: Vec<Figure> = FIGURES.iter().map(figure).collect();
    figures.retain(|figure| !figure.curves.is_empty());
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_begin_spread_over_their_period_alike_in_each_run_of_a_round() {
        const PERIOD_NS: u64 = 50_000_000;
        let of_round = |round| phases(50, PERIOD_NS, round);
        let begins = of_round(1);
        assert_eq!(begins, of_round(1));
        assert_ne!(begins, of_round(2));
        assert!(begins.is_sorted() && begins[49] < Duration::from_nanos(PERIOD_NS));
        let in_first_half = begins.iter().filter(|at| at.as_nanos() < 25_000_000);
        assert!((15..=35).contains(&in_first_half.count()), "{begins:?}");
        // Clients that never pause begin at once.
        assert_eq!(phases(2, 0, 1), [Duration::ZERO; 2]);
    }

    /// Returns the 95th percentile of the time from due to done of low-priority calls, in milliseconds, at one server
    /// that takes them in turn. Work and rate are the defaults of `deckwatch invert`, and the phases those of its
    /// rounds.
    fn theory_p95_ms(count: usize, rounds: std::ops::RangeInclusive<usize>) -> f64 {
        const PERIOD_NS: u64 = 50_000_000;
        const WORK_NS: u64 = 500_000;
        let mut times_ns = Vec::new();
        for round in rounds {
            let mut free_ns = 0;
            // What the first period leaves waits in the second, and so in all later ones.
            for period in 0..2 {
                for phase in phases(count, PERIOD_NS, round) {
                    let due_ns = period * PERIOD_NS + phase.as_nanos() as u64;
                    free_ns = due_ns.max(free_ns) + WORK_NS;
                    if period == 1 {
                        times_ns.push(free_ns - due_ns);
                    }
                }
            }
        }
        times_ns.sort_unstable();
        times_ns[times_ns.len() * 95 / 100] as f64 / 1e6
    }

    #[test]
    fn periodic_calls_at_one_server_have_the_percentiles_that_the_book_states() {
        // Many rounds, and the three of the example.
        for (count, rounds, expected_ms) in [
            (50, 20_000, 1.45),
            (25, 20_000, 0.96),
            (50, 3, 1.46),
            (25, 3, 0.99),
        ] {
            let p95_ms = theory_p95_ms(count, 1..=rounds);
            eprintln!("{count} clients, {rounds} rounds: {p95_ms:.3} ms");
            assert!((p95_ms - expected_ms).abs() < 0.005, "{count}: {p95_ms}");
        }
    }
}
