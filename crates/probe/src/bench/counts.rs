//! What a server does for one request. Two runs of different length are counted and subtracted, so that the share of a
//! run that belongs to no request cancels out.

use super::case::Case;
use super::command::Command;
use super::kind::SMALL;
use super::part::{About, Part};
use super::plan::COUNTING_TIME;
use crate::counters::{Counted, Counts, Watch};
use crate::laboratory::condition::Places;
use crate::laboratory::foreign::{JACORB, RUSTORB};
use crate::laboratory::process::RunLimits;
use crate::laboratory::program::{Program, Shape};
use crate::laboratory::samples::Samples;
use crate::laboratory::session::Session;
use crate::laboratory::system::{Plan, System};
use crate::laboratory::{LaboratoryError, OURS, Role, Variant};
use crate::limits::END_PATIENCE;

/// Names of the counts, in tables and in the document.
pub(super) const COUNTS: [(&str, &str); 6] = [
    ("allocations", "allocations"),
    ("mutex locks", "mutex_locks"),
    ("locks of Rust's library", "rust_locks"),
    ("futex calls", "futex_calls"),
    ("waits", "waits"),
    ("system calls", "system_calls"),
];

/// Allocations for an event at its supplier, and at all its consumers.
pub(super) const CLIENTS: [&str; 2] = ["supplier_allocations", "consumer_allocations"];

/// Counts every server, ours in both ways of serving, and adds the results to `part`.
pub(super) fn count(
    session: &mut Session<'_>,
    places: &Places,
    programs: &[(&'static str, Program)],
    part: &mut Part,
) -> Result<(), LaboratoryError> {
    let own = session.own();
    let ours = [Variant::Plain, Variant::SharedPoller].map(|variant| (OURS, own.clone(), variant));
    let foreign = programs
        .iter()
        .map(|(name, program)| (*name, program.clone(), Variant::Plain));
    let all: Vec<_> = ours.into_iter().chain(foreign).collect();
    let count = all.len();
    for (step, (name, program, variant)) in all.into_iter().enumerate() {
        session.show_step(step + 1, count, format!("counters: {name}"));
        let mut samples = Samples::default();
        let counted = count_one(session, (name, &program), variant, places, &mut samples);
        session.spend(COUNTING_TIME);
        match counted {
            Ok(true) => {
                let case = format!("a request{}", variant.words());
                let factors = [("requests", (LONG - SHORT) as f64)];
                let found = samples.measurement(name, &case, &factors);
                if let Some(found) = found {
                    part.add(About::Counts(variant), found);
                }
            }
            Ok(false) => break,
            Err(error) if name == OURS => return Err(error),
            Err(error) => session.skip(name, &format!("counters: {error}")),
        }
    }
    Ok(())
}

/// Counts one server. Returns false if the user wants to end.
fn count_one(
    session: &mut Session<'_>,
    (name, program): (&'static str, &Program),
    variant: Variant,
    places: &Places,
    samples: &mut Samples,
) -> Result<bool, LaboratoryError> {
    let shape = Shape {
        variant,
        ..Shape::default()
    };
    let both = (places.server, places.client);
    let system = session.start(&Plan::pair(name, program, Role::ORB, both, shape))?;
    count_runs(session, system, program, (SMALL, [SHORT, LONG]), samples)
}

/// Counts the server of a system in two runs of a case, of so many messages, and adds the counts of one message. Returns false if the user
/// wants to end.
pub(super) fn count_runs(
    session: &mut Session<'_>,
    mut system: System,
    program: &Program,
    (case, [short, long]): (Case, [usize; 2]),
    samples: &mut Samples,
) -> Result<bool, LaboratoryError> {
    let name = system.name;
    let run = |system: &mut System, count: usize| {
        let limits = RunLimits {
            count,
            budget: END_PATIENCE,
        };
        let ran = Command::call(case, limits).run(system, false)?;
        Ok::<_, LaboratoryError>(ran.map(|(ran, _)| ran))
    };
    // What only the first requests do is not counted.
    let warm_up = if name == JACORB { long * 4 } else { long };
    if run(&mut system, warm_up)?.is_none() {
        return Ok(false);
    }
    // A probe slows the counted process down. With all events at once a run is still far below its budget.
    let wanted: &[Counted] = if [OURS, RUSTORB].contains(&name) {
        &Counted::ALL
    } else {
        &Counted::ALL_BUT_RUST
    };
    let watch = Watch::begin(system.server.process(), wanted);
    for error in watch.missing().values() {
        session.skip(name, &format!("counters: {error}"));
    }
    // The supplier is the first thread of the client, and the consumers are its others.
    let client = system.client.process();
    let clients = (case.is_push()).then(|| {
        let supplier = Watch::begin_thread(client, client, &[Counted::Allocations]);
        let all = Watch::begin(client, &[Counted::Allocations]);
        for error in all.missing().values() {
            session.skip(
                name,
                &format!("counters of supplier and consumers: {error}"),
            );
        }
        [supplier, all]
    });
    let read = |system: &mut System| -> Result<Option<Reading>, LaboratoryError> {
        let locks = if program.is_own {
            system.server.own_locks()?
        } else {
            Some(0)
        };
        Ok(locks.map(|locks| Reading {
            server: watch.read(),
            own_locks: locks,
            clients: clients
                .as_ref()
                .map(|both| both.each_ref().map(Watch::read)),
        }))
    };
    let mut readings = Vec::new();
    readings.extend(read(&mut system)?);
    for count in [short, long] {
        if run(&mut system, count)?.is_none() {
            return Ok(false);
        }
        readings.extend(read(&mut system)?);
    }
    let [before, after_short, after_long] = &readings[..] else {
        return Ok(false);
    };
    let readings = [before, after_short, after_long];
    add_counts(name, readings, (long - short) as f64, samples);
    Ok(true)
}

/// The counts at one moment.
#[derive(Default)]
struct Reading {
    server: Counts,
    /// Locks of ours that the server has taken.
    own_locks: u64,
    /// Of an event's supplier, and of the process of supplier and consumers.
    clients: Option<[Counts; 2]>,
}

/// Adds the counts of one request, from readings before the runs and after each of them.
fn add_counts(
    name: &str,
    [before, short, long]: [&Reading; 3],
    requests: f64,
    samples: &mut Samples,
) {
    let each = |of: fn(&Reading) -> Option<&Counts>, what: Counted| {
        let [before, short, long] = [of(before)?, of(short)?, of(long)?];
        let (of_short, of_long) = (short.since(before).of(what)?, long.since(short).of(what)?);
        Some((of_long as f64 - of_short as f64) / requests)
    };
    let per_request = |what| each(|it| Some(&it.server), what);
    let own_locks = [
        short.own_locks - before.own_locks,
        long.own_locks - short.own_locks,
    ];
    let own_locks = (own_locks[1] as f64 - own_locks[0] as f64) / requests;
    let library_locks = per_request(Counted::MutexLocks);
    let counts = [
        per_request(Counted::Allocations).filter(|_| name != JACORB),
        (library_locks.map(|locks| locks + own_locks))
            .filter(|_| ![JACORB, RUSTORB].contains(&name)),
        per_request(Counted::RustLocks),
        per_request(Counted::FutexCalls),
        per_request(Counted::FutexWaits),
        per_request(Counted::SystemCalls),
    ];
    let supplier = each(|it| Some(&it.clients.as_ref()?[0]), Counted::Allocations);
    let all = each(|it| Some(&it.clients.as_ref()?[1]), Counted::Allocations);
    let consumers = all.zip(supplier).map(|(all, supplier)| all - supplier);
    let keys = COUNTS.iter().map(|(_, key)| *key).chain(CLIENTS);
    for (key, count) in keys.zip(counts.into_iter().chain([supplier, consumers])) {
        if let Some(count) = count {
            samples.add_value(key, count.max(0.0));
        }
    }
}

/// Number of calls in the two runs.
const SHORT: usize = 1_000;
const LONG: usize = 5_000;
