//! What a request costs besides time: locks taken and waited for, system calls, allocations (slide 13), and what the server leaves of its
//! processor to a thread that factors beside it (slides 17 and 18).

use std::collections::BTreeMap;

use deckwatch_cdr::{Write as _, Writer};
use deckwatch_meter::experiment::{
    AxisNote, Curve, ExperimentDocument, Figure, FigureKind, Measurement, Point,
};
use deckwatch_meter::result::Warning;

use super::end::EndRole;
use super::stage::{Extra, Found, Kept, OMNIORB, OURS, RAW, Stage, Staging, System, greeted};
use crate::bench::BenchError;
use crate::bench::Progress;
use crate::bench::case::message_sizes;
use crate::bench::process::{End, Ran, RunLimits, rest};
use crate::counters::{Counted, Watch};
use crate::limits::END_PATIENCE;

/// What `deckwatch costs` measures.
#[derive(Clone, Debug)]
pub struct Costs {
    /// What every experiment is told.
    pub staging: Staging,
    /// Octets of the request whose costs are counted.
    pub size: usize,
    /// Calls that are counted in a run.
    pub calls: usize,
    /// Calls a second beside the factoring thread; 0: the client never pauses.
    pub rates_hz: Vec<f64>,
}

/// Calls that a client makes before those that it measures; they are counted too.
const WARM_UP: f64 = 64.0;

const CLIENT: &str = "client";
const SERVER: &str = "server";

/// Names of what is counted, for each request.
const fn name(what: Counted) -> &'static str {
    match what {
        Counted::SystemCalls => "system_calls",
        Counted::FutexWaits => "contended_waits",
        Counted::Allocations => "allocations",
        Counted::MutexLocks => "locks",
    }
}

/// Runs the experiment. A wish to end ends it early, with what was measured until then.
///
/// # Errors
/// [`BenchError`]; a foreign peer that is not installed is no error but skipped.
pub fn costs(
    asked: &Costs,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, BenchError> {
    let mut stage = Stage::new(&asked.staging, tell)?;
    let mut systems = vec![stage.ours(Extra::default())?];
    systems.extend(stage.omniorb(Extra::default()));
    let factors = Extra { factors: true };
    let mut beside = vec![stage.ours(factors)?];
    beside.extend(stage.omniorb(factors));
    beside.push(raw(&mut stage, &systems[0].reference)?);
    stage.expect(systems.len() + asked.rates_hz.len() * beside.len());
    let mut counted: Vec<[Kept; 2]> = systems.iter().map(|_| Default::default()).collect();
    let mut left: Vec<Vec<Kept>> = (asked.rates_hz.iter())
        .map(|_| beside.iter().map(|_| Kept::default()).collect())
        .collect();
    'rounds: for round in 0..asked.staging.rounds {
        stage.begin_round(round);
        for turn in 0..systems.len() {
            let index = (turn + round) % systems.len();
            let (system, kept) = (&mut systems[index], &mut counted[index]);
            if !stage.turn(system.name, |stage| count(stage, asked, system, kept)) {
                break 'rounds;
            }
        }
        for (&rate, left) in asked.rates_hz.iter().zip(&mut left) {
            for turn in 0..beside.len() {
                let index = (turn + round) % beside.len();
                let (system, kept) = (&mut beside[index], &mut left[index]);
                if !stage.turn(system.name, |stage| share(stage, system, rate, kept)) {
                    break 'rounds;
                }
            }
        }
    }
    let mut measurements = Vec::new();
    for (system, kept) in systems.iter().zip(&counted) {
        for (side, kept) in [CLIENT, SERVER].into_iter().zip(kept) {
            measurements.extend(kept.measurement(system.name, &costs_of(side), &[]));
        }
    }
    for (&rate, left) in asked.rates_hz.iter().zip(&left) {
        for (system, kept) in beside.iter().zip(left) {
            let factors = [("calls_asked_hz", rate)];
            measurements.extend(kept.measurement(system.name, LEFT, &factors));
        }
    }
    let figures = figures(&asked.rates_hz, &measurements);
    let warnings = disturbed(&measurements);
    stage.finish(Found {
        experiment: "costs",
        title: "What a request costs: locks, system calls, allocations, and the processor",
        source: "Schmidt, Applying a Real-time CORBA ORB for Avionics Mission Computing, slides 13, 17 and 18",
        condition: None,
        parameters: BTreeMap::from([
            (
                "request".to_owned(),
                format!("two-way, {} octets there, nothing back", asked.size),
            ),
            ("calls counted in a run".to_owned(), asked.calls.to_string()),
        ]),
        measurements,
        figures,
        warnings,
    })
}

/// Warns where others took the factoring thread's processor while nobody called: then what was left says nothing of the server.
fn disturbed(measurements: &[Measurement]) -> Vec<Warning> {
    let alone = measurements
        .iter()
        .filter_map(|one| one.values.get("processor_alone_share"));
    let least = alone.copied().fold(1.0, f64::min);
    let warning = (least < ALONE_SHARE_MIN).then(|| Warning {
        kind: "factoring-disturbed".to_owned(),
        text: format!(
            "With nobody calling, the factoring thread had only {:.0}% of its processor: what the servers left of it cannot be compared.",
            least * 1e2
        ),
    });
    warning.into_iter().collect()
}

/// Others than the server took more than the server does.
const ALONE_SHARE_MIN: f64 = 0.95;

fn costs_of(side: &str) -> String {
    format!("for a request, at the {side}")
}

const LEFT: &str = "left to the factoring thread";

/// The calls of one run, counted at both ends; false where the user wants to end.
fn count(
    stage: &mut Stage<'_>,
    asked: &Costs,
    system: &mut System,
    kept: &mut [Kept; 2],
) -> Result<bool, BenchError> {
    if !stage.begin_run(format!("counting at {}", system.name)) {
        return Ok(false);
    }
    let limits = RunLimits {
        count: asked.calls,
        budget: COUNTING_PATIENCE,
    };
    let kind = "call/two-way/static/octets/static/each";
    let call = |system: &mut System| {
        let ran = system.client.run(kind, (asked.size, 1), limits);
        system.server.or_its_end(ran)
    };
    // Once before, so that what is done at first alone is no part of it.
    if call(system)?.is_none() {
        return Ok(false);
    }
    let processes = [system.client.process(), system.server.process()];
    let watches = processes.map(|process| Watch::begin(process, &Counted::ALL));
    for (side, watch) in [CLIENT, SERVER].into_iter().zip(&watches) {
        for (what, error) in watch.missing() {
            let what = format!("{what} at the {side} of {}", system.name);
            stage.skip(&what, &error.to_string());
        }
    }
    let Some(own_before) = own_locks(system)? else {
        return Ok(false);
    };
    let before = [watches[0].read(), watches[1].read()];
    let Some(times_ns) = call(system)? else {
        return Ok(false);
    };
    let after = [watches[0].read(), watches[1].read()];
    let Some(own_after) = own_locks(system)? else {
        return Ok(false);
    };
    let calls = times_ns.len() as f64 + WARM_UP;
    for side in 0..2 {
        let counts = after[side].since(&before[side]);
        for what in Counted::ALL {
            let Some(count) = counts.of(what) else {
                continue;
            };
            let mut count = count as f64;
            if what == Counted::MutexLocks {
                count += own_after[side].saturating_sub(own_before[side]) as f64;
            }
            kept[side].value(&format!("{}_per_request", name(what)), count / calls);
        }
    }
    stage.rest();
    Ok(true)
}

/// A counted run may take so long: probes make each counted function dearer.
const COUNTING_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Locks of our own kind, which no probe sees, at client and server; none where the user wants to end.
fn own_locks(system: &mut System) -> Result<Option<[u64; 2]>, BenchError> {
    if system.name != OURS {
        return Ok(Some([0, 0]));
    }
    let limits = RunLimits {
        count: 1,
        budget: END_PATIENCE,
    };
    system.client.begin("locks", (0, 0), 0, limits)?;
    let client = match system.client.finish(limits)? {
        Some(Ran::Sum { count, .. }) => count,
        Some(Ran::RoundTrips(_)) => 0,
        None => return Ok(None),
    };
    system.server.tell("locks\n")?;
    let Some(said) = system.server.hear_line(END_PATIENCE)? else {
        return Ok(None);
    };
    let server = said
        .strip_prefix("locks ")
        .and_then(|count| count.parse().ok());
    let server = server.ok_or_else(|| system.server.failed(&said))?;
    Ok(Some([client, server]))
}

/// What the factoring thread has done until now.
struct Factored {
    numbers: f64,
    cpu_ns: f64,
    now_ns: f64,
}

/// `asked`: `factored`, or `factor` and `rest`, which let the thread begin or pause.
fn factored(server: &mut End, asked: &str) -> Result<Option<Factored>, BenchError> {
    server.tell(&format!("{asked}\n"))?;
    let Some(said) = server.hear_line(END_PATIENCE)? else {
        return Ok(None);
    };
    let numbers: Option<Vec<f64>> = said.strip_prefix("factored ").and_then(|rest| {
        let numbers = rest.split(' ').map(|word| word.parse().ok());
        numbers.collect()
    });
    match numbers.as_deref() {
        Some([numbers, cpu_ns, now_ns]) => Ok(Some(Factored {
            numbers: *numbers,
            cpu_ns: *cpu_ns,
            now_ns: *now_ns,
        })),
        _ => Err(server.failed(&said)),
    }
}

impl Factored {
    /// Numbers a second and the share of the processor since `earlier`.
    fn since(&self, earlier: &Self) -> (f64, f64) {
        let elapsed_ns = (self.now_ns - earlier.now_ns).max(1.0);
        let numbers = (self.numbers - earlier.numbers) * 1e9 / elapsed_ns;
        (numbers, (self.cpu_ns - earlier.cpu_ns) / elapsed_ns)
    }
}

/// The thread alone, then beside calls; false where the user wants to end.
fn share(
    stage: &mut Stage<'_>,
    system: &mut System,
    rate_hz: f64,
    kept: &mut Kept,
) -> Result<bool, BenchError> {
    if !stage.begin_run(format!("factoring beside {}", system.name)) {
        return Ok(false);
    }
    let shared = share_factoring(stage, system, rate_hz, kept);
    let shared = system.server.or_its_end(shared);
    // The threads of the other servers have the same processor.
    let paused = factored(&mut system.server, "rest");
    stage.rest();
    Ok(shared? && paused?.is_some())
}

/// As [`share`]; the thread is left factoring.
fn share_factoring(
    stage: &Stage<'_>,
    system: &mut System,
    rate_hz: f64,
    kept: &mut Kept,
) -> Result<bool, BenchError> {
    let limits = stage.limits();
    let Some(begun) = factored(&mut system.server, "factor")? else {
        return Ok(false);
    };
    rest(limits.budget);
    let Some(alone) = factored(&mut system.server, "factored")? else {
        return Ok(false);
    };
    let period_ns = if rate_hz > 0.0 {
        (1e9 / rate_hz) as u64
    } else {
        0
    };
    let client = &mut system.client;
    client.begin("compute/high", (0, 0), period_ns, limits)?;
    let Some(Ran::RoundTrips(times_ns)) = client.finish(limits)? else {
        return Ok(false);
    };
    let Some(beside) = factored(&mut system.server, "factored")? else {
        return Ok(false);
    };
    let (alone_rate, alone_share) = alone.since(&begun);
    let (beside_rate, beside_share) = beside.since(&alone);
    let round_trips = if period_ns > 0 {
        &times_ns[..times_ns.len() / 2]
    } else {
        &times_ns[..]
    };
    kept.times(round_trips);
    let elapsed_s = (beside.now_ns - alone.now_ns) / 1e9;
    let calls_hz = round_trips.len() as f64 / elapsed_s;
    kept.value("calls_hz", calls_hz);
    kept.value("factoring_left_share", beside_rate / alone_rate.max(1.0));
    kept.value("processor_alone_share", alone_share);
    kept.value("processor_beside_share", beside_share);
    if calls_hz > 0.0 {
        let taken = (1.0 - beside_rate / alone_rate.max(1.0)).max(0.0);
        kept.value("processor_per_request_ns", taken * 1e9 / calls_hz);
    }
    Ok(true)
}

/// Raw TCP with a factoring thread beside its server.
fn raw(stage: &mut Stage<'_>, ours: &str) -> Result<System, BenchError> {
    let (server_place, client_place) = (stage.places.server, stage.places.client);
    let write = |w: &mut Writer<'_>| 0_u64.write(w);
    let (there, back) = message_sizes(ours, "compute", write, |_| Ok(()))?;
    let mut command = stage.own(EndRole::RawServer, server_place);
    command.arg("--factors");
    let mut server = stage.start("The server of raw TCP", &mut command)?;
    let (reference, placed) = greeted(&mut server, server_place)?;
    stage.is_placed &= placed;
    let mut command = stage.own(EndRole::RawClient, client_place);
    command.args(["--reference", &reference]);
    command.args(["--sizes", &format!("{there},{back}")]);
    if let Some(fifo) = server_place.fifo {
        command.args(["--serving-fifo", &fifo.to_string()]);
    }
    let mut client = stage.start("The client of raw TCP", &mut command)?;
    greeted(&mut client, client_place)?;
    Ok(System {
        name: RAW,
        reference,
        server,
        client,
    })
}

/// What is counted, the figure's title, and what a reader must know.
const COUNTED: [(Counted, &str, &str); 4] = [
    (
        Counted::MutexLocks,
        "User-level locks",
        "Calls that take a mutex of the C library's; of ours, locks of the ORB's own kind too, contended or not.",
    ),
    (
        Counted::FutexWaits,
        "Contended locks",
        "System calls that wait for a lock or a condition: the kernel-level locks of today.",
    ),
    (
        Counted::SystemCalls,
        "System calls",
        "All of them, of all threads of the process.",
    ),
    (
        Counted::Allocations,
        "Heap allocations",
        "Calls of malloc and its relatives, of the ORB and of the generated code.",
    ),
];

/// The value, the title, the unit, the axis.
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

fn figures(rates_hz: &[f64], measurements: &[Measurement]) -> Vec<Figure> {
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

/// A value of one system in one case, at one rate where there are rates.
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

/// A bar a place, where there is a value.
fn curve(label: &str, values: impl IntoIterator<Item = Option<f64>>) -> Curve {
    let placed = (0..).zip(values);
    let point = |(place, value): (i32, Option<f64>)| {
        Some(Point {
            x: f64::from(place),
            y: value?,
        })
    };
    Curve {
        label: label.to_owned(),
        points: placed.filter_map(point).collect(),
    }
}
