//! The cost of a request besides time. Locks taken, waits for locks, system calls and allocations are counted (slide
//! 13). A thread that factors numbers shows how much of its processor the server leaves (slides 17 and 18).

mod figures;

use std::collections::BTreeMap;

use deckwatch_meter::experiment::{ExperimentDocument, Measurement};

use crate::counters::{Counted, Watch};
use crate::laboratory::caution::Caution;
use crate::laboratory::condition::Places;
use crate::laboratory::end::WARM_UP;
use crate::laboratory::payload::compute_sizes;
use crate::laboratory::process::{End, RunLimits, RunResult, rest};
use crate::laboratory::program::Shape;
use crate::laboratory::samples::Samples;
use crate::laboratory::session::{Found, Session, TurnCase};
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{Condition, LaboratoryError, OURS, Progress, RAW, Role, Setup};
use crate::limits::END_PATIENCE;

/// The parameters of `deckwatch costs`.
#[derive(Clone, Debug)]
pub struct Costs {
    /// The parameters of every experiment.
    pub setup: Setup,
    /// Processors and scheduling class of both ends.
    pub condition: Condition,
    /// Payload of the counted request, in octets.
    pub size: usize,
    /// Number of calls that are counted in a run.
    pub calls: usize,
    /// Calls per second beside the factoring thread; at 0 the client never pauses.
    pub rates_hz: Vec<f64>,
}

const CLIENT: &str = "client";
const SERVER: &str = "server";

/// The name of a count.
const fn name(what: Counted) -> &'static str {
    match what {
        Counted::SystemCalls => "system_calls",
        Counted::FutexWaits => "contended_waits",
        Counted::FutexCalls => "futex_calls",
        Counted::Allocations => "allocations",
        Counted::MutexLocks => "locks",
        Counted::RustLocks => "rust_locks",
    }
}

/// Runs the experiment. If the user wants to end, it ends early with what was measured until then.
///
/// # Errors
/// [`LaboratoryError`]: nothing was measured. A foreign ORB that is not installed is skipped.
pub fn costs(
    asked: &Costs,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, LaboratoryError> {
    let mut session = Session::new(&asked.setup, tell);
    let places = session.enter(asked.condition)?;
    let mut counted = session.subjects(&places, &Shape::default())?;
    let mut factoring = factoring(&mut session, &places)?;
    let (counted_names, factoring_names) = (System::names(&counted), System::names(&factoring));
    let sizes = compute_sizes(&counted[0].reference)?;
    let mut turns = TurnCase::alike(1, &counted_names);
    turns.extend(TurnCase::alike(asked.rates_hz.len(), &factoring_names));
    session.expect_runs(turns.iter().map(|case| case.systems.len()).sum());
    let mut counts: Vec<[Samples; 2]> = counted.iter().map(|_| Default::default()).collect();
    let mut shares: Vec<Vec<Samples>> = (asked.rates_hz.iter())
        .map(|_| factoring.iter().map(|_| Samples::default()).collect())
        .collect();
    let rounds = 1..=asked.setup.rounds;
    session.take_turns(rounds, &turns, &mut |session, turn| {
        let Some(rate) = turn.case.checked_sub(1) else {
            let system = &mut counted[turn.system];
            if !session.begin_run(turn.round, &format!("counting at {}", system.name)) {
                return Ok(false);
            }
            let counted = count(session, asked, system, &mut counts[turn.system])?;
            places.rest(session.limits().budget);
            return Ok(counted);
        };
        let system = &mut factoring[turn.system];
        if !session.begin_run(turn.round, &format!("factoring beside {}", system.name)) {
            return Ok(false);
        }
        let (limits, samples) = (session.limits(), &mut shares[rate][turn.system]);
        let shared = share(system, (asked.rates_hz[rate], sizes), limits, samples);
        let shared = system.server.blame_exit(shared);
        // The threads of the other servers have the same processor.
        let paused = factored(&mut system.server, "rest");
        places.rest(limits.budget);
        Ok(shared? && paused?.is_some())
    });
    let mut measurements = Vec::new();
    for (name, counts) in counted_names.iter().zip(&counts) {
        for (side, samples) in [CLIENT, SERVER].into_iter().zip(counts) {
            measurements.extend(samples.measurement(name, &costs_of(side), &[]));
        }
    }
    for (&rate, shares) in asked.rates_hz.iter().zip(&shares) {
        for (name, samples) in factoring_names.iter().zip(shares) {
            let factors = [("calls_asked_hz", rate)];
            measurements.extend(samples.measurement(name, LEFT, &factors));
        }
    }
    let figures = figures::figures(&asked.rates_hz, &measurements);
    let warnings = disturbed(&measurements);
    session.finish(Found {
        experiment: "costs".to_owned(),
        title: "What a request costs: locks, system calls, allocations, and the processor",
        source: "Schmidt, Applying a Real-time CORBA ORB for Avionics Mission Computing, slides 13, 17 and 18",
        condition: places.words(),
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
        ..Found::default()
    })
}

/// Systems with a factoring thread beside the server; raw TCP is the last.
fn factoring(session: &mut Session<'_>, places: &Places) -> Result<Vec<System>, LaboratoryError> {
    let shape = Shape {
        factors: true,
        serving_fifo: places.server.fifo,
        ..Shape::default()
    };
    let mut systems = session.subjects(places, &shape)?;
    let own = session.own();
    let both = (places.server, places.client);
    systems.push(session.start(&Plan::pair(RAW, &own, Role::RAW, both, shape))?);
    Ok(systems)
}

/// A warning if other programs took the factoring thread's processor while no client called. The shares then do not
/// show the server alone.
fn disturbed(measurements: &[Measurement]) -> Vec<Caution> {
    let alone = measurements
        .iter()
        .filter_map(|one| one.values.get("processor_alone_share"));
    let share = alone.copied().fold(1.0, f64::min);
    let caution = (share < ALONE_SHARE_MIN).then_some(Caution::FactoringDisturbed { share });
    caution.into_iter().collect()
}

/// Below this share, other programs took more of the processor than the server.
const ALONE_SHARE_MIN: f64 = 0.95;

fn costs_of(side: &str) -> String {
    format!("for a request, at the {side}")
}

const LEFT: &str = "left to the factoring thread";

/// Counts the calls of one run at both ends. Returns false if the user wants to end.
fn count(
    session: &mut Session<'_>,
    asked: &Costs,
    system: &mut System,
    samples: &mut [Samples; 2],
) -> Result<bool, LaboratoryError> {
    let limits = RunLimits {
        count: asked.calls,
        budget: COUNTING_PATIENCE,
    };
    let kind = "call/two-way/static/octets/static/each";
    let call = |system: &mut System| {
        let ran = system.client.run(kind, (asked.size, 1), limits);
        system.server.blame_exit(ran)
    };
    // One run before, so that what only the first calls do is not counted.
    if call(system)?.is_none() {
        return Ok(false);
    }
    let processes = [system.client.process(), system.server.process()];
    let watches = processes.map(|process| Watch::begin(process, WANTED));
    for (side, watch) in [CLIENT, SERVER].into_iter().zip(&watches) {
        for (what, error) in watch.missing() {
            let what = format!("{what} at the {side} of {}", system.name);
            session.skip(&what, &error.to_string());
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
    // The warm-up is counted too.
    let calls = (times_ns.len() + WARM_UP) as f64;
    for side in 0..2 {
        let counts = after[side].since(&before[side]);
        for &what in WANTED {
            let Some(count) = counts.of(what) else {
                continue;
            };
            let mut count = count as f64;
            if what == Counted::MutexLocks {
                count += own_after[side].saturating_sub(own_before[side]) as f64;
            }
            samples[side].add_value(&format!("{}_per_request", name(what)), count / calls);
        }
    }
    Ok(true)
}

/// The kinds of events that are counted. The probes for locks of Rust's library would take minutes to set.
const WANTED: &[Counted] = &Counted::ALL_BUT_RUST;

/// The longest counted run: probes slow each counted function down.
const COUNTING_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Our own locks taken so far, at client and server; no probe sees them. Returns `None` if the user wants to end.
fn own_locks(system: &mut System) -> Result<Option<[u64; 2]>, LaboratoryError> {
    if system.name != OURS {
        return Ok(Some([0, 0]));
    }
    let limits = RunLimits {
        count: 1,
        budget: END_PATIENCE,
    };
    system.client.begin("locks", (0, 0), 0, limits)?;
    let client = match system.client.finish(limits)? {
        Some(RunResult::Sum { count, .. }) => count,
        Some(RunResult::RoundTrips(_)) => 0,
        None => return Ok(None),
    };
    let server = system.server.own_locks()?;
    Ok(server.map(|server| [client, server]))
}

/// Progress of the factoring thread.
struct Factored {
    numbers: f64,
    cpu_ns: f64,
    now_ns: f64,
}

/// Asks `question`: `factored`, or `factor` and `rest`, which start and pause the thread. Returns `None` if the user
/// wants to end.
fn factored(server: &mut End, question: &str) -> Result<Option<Factored>, LaboratoryError> {
    server.send_line(question)?;
    let Some(line) = server.receive_line(END_PATIENCE)? else {
        return Ok(None);
    };
    let numbers: Option<Vec<f64>> = line.strip_prefix("factored ").and_then(|rest| {
        let numbers = rest.split(' ').map(|word| word.parse().ok());
        numbers.collect()
    });
    match numbers.as_deref() {
        Some([numbers, cpu_ns, now_ns]) => Ok(Some(Factored {
            numbers: *numbers,
            cpu_ns: *cpu_ns,
            now_ns: *now_ns,
        })),
        _ => Err(server.failed(&line)),
    }
}

impl Factored {
    /// Numbers per second and the share of the processor since `earlier`.
    fn since(&self, earlier: &Self) -> (f64, f64) {
        let elapsed_ns = (self.now_ns - earlier.now_ns).max(1.0);
        let numbers = (self.numbers - earlier.numbers) * 1e9 / elapsed_ns;
        (numbers, (self.cpu_ns - earlier.cpu_ns) / elapsed_ns)
    }
}

/// Lets the thread factor alone, then beside calls. It goes on factoring. Returns false if the user wants to end.
fn share(
    system: &mut System,
    (rate_hz, sizes): (f64, (usize, usize)),
    limits: RunLimits,
    samples: &mut Samples,
) -> Result<bool, LaboratoryError> {
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
    client.begin("compute/high/0", sizes, period_ns, limits)?;
    let Some(RunResult::RoundTrips(times_ns)) = client.finish(limits)? else {
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
    samples.add_times(round_trips);
    let elapsed_s = (beside.now_ns - alone.now_ns) / 1e9;
    let calls_hz = round_trips.len() as f64 / elapsed_s;
    let left = beside_rate / alone_rate.max(1.0);
    samples.add_value("calls_hz", calls_hz);
    samples.add_value("factoring_left_share", left);
    samples.add_value("processor_alone_share", alone_share);
    samples.add_value("processor_beside_share", beside_share);
    if calls_hz > 0.0 {
        let taken = (1.0 - left).max(0.0);
        samples.add_value("processor_per_request_ns", taken * 1e9 / calls_hz);
    }
    Ok(true)
}
