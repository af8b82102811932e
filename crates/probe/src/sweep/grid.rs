//! `deckwatch grid`: transactions in the nine processor states of a thesis, three at each end. Each state is a sweep
//! under loads that are held on the processors of both ends.

mod figures;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_load::{CpuPlan, CpuWork, Held, LoadError, LoadPlan, LoadReport, Stop, Work};
use deckwatch_meter::experiment::{ExperimentDocument, Measurement};
use deckwatch_meter::metrics::TRANSACTION;
use deckwatch_meter::result::Warning;
use deckwatch_os::schedule::{affinity, set_affinity};
use deckwatch_os::signal;

use super::journal::Journal;
use super::{FarEnd, SIZE, Sweep, far, sweep};
use crate::laboratory::session::Session;
use crate::laboratory::{BROKEN_OFF, Condition, ENDED_EARLY, LaboratoryError, LoadEnd, Progress};
use crate::limits::GRID_BINS;

/// The states of a processor, in words.
pub const STATES: [&str; 3] = ["0-33%", "34-66%", "67-100%"];

/// Use at which each state is held: nothing is added in the first, the middle of the range in the others.
const TARGETS: [Option<f64>; 3] = [None, Some(0.5), Some(0.835)];

/// Name of the table in the result folder.
pub const GRID_CSV: &str = "grid.csv";

/// The factors of a measurement that have its state, as indices of [`STATES`].
const CLIENT: &str = "client_state";
const SERVER: &str = "server_state";

/// Time between two transactions: they take little of a processor themselves, so that its state is that of the load.
const EVERY: Duration = Duration::from_millis(4);

/// Measures all sizes in each state. If the user wants to end, it ends early with what was measured until then.
///
/// # Errors
/// As [`sweep`].
pub fn grid(
    asked: &Sweep,
    tell: &mut dyn FnMut(&Progress),
) -> Result<ExperimentDocument, LaboratoryError> {
    let asked = of_grid(asked);
    let system = |doing| move |source| LaboratoryError::System { doing, source };
    let all = affinity().map_err(system("The processors of this process cannot be read"))?;
    let places = asked.condition.places()?;
    let ends = [places.client.processor, places.server.processor];
    let mut journal = Journal::open(&asked.journal, &parameters(&asked))?;
    let mut points = std::mem::take(&mut journal.finished);
    let mut whole: Option<ExperimentDocument> = None;
    let states: Vec<(usize, usize)> = (0..3).flat_map(|c| (0..3).map(move |s| (c, s))).collect();
    for (number, &state) in states.iter().enumerate() {
        if points.iter().any(|point| is_of(point, state)) {
            continue;
        }
        // The sweep keeps this thread off the processors of the ends, and a load begins where its thread may run.
        set_affinity(&all).map_err(system("The processors of this process cannot be chosen"))?;
        let loads = Loads::start(asked.far.as_ref(), ends, state)?;
        let left = states.len() - number - 1;
        let mut told = |progress: &Progress| tell(&of_all(progress, state, left));
        let of_state = Sweep {
            journal: asked
                .journal
                .with_file_name(format!("state-{}-{}.jsonl", state.0, state.1)),
            ..asked.clone()
        };
        let swept = sweep(&of_state, &mut told);
        let used = loads.end()?;
        let mut found = match swept {
            Ok(found) => found,
            Err(error) if whole.is_none() && points.is_empty() => return Err(error),
            Err(error) => {
                whole = Some(stopped(whole.take(), &asked, &error)?);
                break;
            }
        };
        let is_whole = !found
            .warnings
            .iter()
            .any(|it| it.kind == ENDED_EARLY || it.kind == BROKEN_OFF);
        for mut point in found.measurements.drain(..) {
            mark(&mut point, state, &used);
            if is_whole {
                journal.add(&point)?;
            }
            points.push(point);
        }
        keep(&mut whole, found, state, &used);
        if !is_whole {
            break;
        }
    }
    let mut document = match whole {
        Some(whole) => whole,
        None => empty(&asked)?,
    };
    describe(&mut document, &asked, points);
    write_csv(&asked, &document.measurements)?;
    Ok(document)
}

/// Returns the sweep of each state: paced, with a processor for each end.
fn of_grid(asked: &Sweep) -> Sweep {
    Sweep {
        every: EVERY,
        // A state is that of a processor: each end has its own. A far kernel chooses among those of its machine.
        condition: match asked.condition {
            condition if asked.far.is_some() => condition,
            Condition::TwoCores => Condition::TwoCores,
            _ => Condition::Apart,
        },
        ..asked.clone()
    }
}

/// Keeps the states before an error or a signal, with a warning.
fn stopped(
    whole: Option<ExperimentDocument>,
    asked: &Sweep,
    error: &LaboratoryError,
) -> Result<ExperimentDocument, LaboratoryError> {
    let kind = match error {
        LaboratoryError::Interrupted(_) => ENDED_EARLY,
        _ => BROKEN_OFF,
    };
    let mut whole = match whole {
        Some(whole) => whole,
        None => empty(asked)?,
    };
    whole.warnings.push(Warning {
        kind: kind.to_owned(),
        text: error.to_string(),
    });
    Ok(whole)
}

/// A sweep with other parameters is not resumed, nor is a sweep that was no grid.
fn parameters(asked: &Sweep) -> BTreeMap<String, String> {
    let mut parameters = asked.parameters();
    parameters.insert("processor states".to_owned(), STATES.join(", "));
    let every = format!("{} ms", EVERY.as_millis());
    parameters.insert("time between transactions".to_owned(), every);
    parameters
}

fn is_of(point: &Measurement, (client, server): (usize, usize)) -> bool {
    let is = |factor: &str, state: usize| point.factors.get(factor) == Some(&(state as f64));
    is(CLIENT, client) && is(SERVER, server)
}

fn words((client, server): (usize, usize)) -> String {
    format!("client {}, server {}", STATES[client], STATES[server])
}

/// The progress of the whole grid: the states that follow are taken to last as long as this one.
fn of_all(progress: &Progress, state: (usize, usize), states_left: usize) -> Progress {
    let after = u32::try_from(states_left).unwrap_or(u32::MAX);
    Progress {
        now: format!("{}: {}", words(state), progress.now),
        total: progress.total * (after + 1),
        left: progress.left + progress.total * after,
        ..progress.clone()
    }
}

/// The loads of one state, the client's first.
struct Loads {
    stop: Stop,
    running: Vec<Running>,
}

/// One load.
enum Running {
    /// On a processor of this machine.
    Here(JoinHandle<Result<LoadReport, LoadError>>, Receiver<u64>),
    /// On all processors of the host of this name.
    Far(String, LoadEnd),
}

impl Loads {
    fn start(
        far: Option<&[FarEnd; 2]>,
        processors: [Option<u32>; 2],
        state: (usize, usize),
    ) -> Result<Self, LaboratoryError> {
        let mut loads = Self {
            stop: Stop::default(),
            running: Vec::new(),
        };
        let ends = processors.into_iter().zip([state.0, state.1]);
        for (end, (processor, state)) in ends.enumerate() {
            let work = match TARGETS[state] {
                Some(share) => CpuWork::Share { share },
                None => CpuWork::Nothing,
            };
            let far = far.map(|ends| &ends[end]);
            let processor = processor.filter(|_| far.is_none());
            let plan = LoadPlan {
                work: Work::Cpu(CpuPlan {
                    work,
                    processors: processor.into_iter().collect(),
                    fifo_priority: None,
                }),
                lifetime: Duration::from_secs(deckwatch_load::limits::LIFETIME_S_MAX),
            };
            if let Some(far) = far {
                let what = format!("The load on {}", far.name);
                let load = LoadEnd::start(what, far.load(), &plan)?;
                loads.running.push(Running::Far(far.name.clone(), load));
                continue;
            }
            let stop = loads.stop.clone();
            let (tell, told) = std::sync::mpsc::channel();
            let run = move || {
                deckwatch_load::run(&plan, &stop, &mut |second| {
                    // Nobody listens once the load has settled.
                    let _ = tell.send(second.at_s);
                })
            };
            let thread = std::thread::Builder::new().spawn(run);
            let thread = thread.map_err(|source| LaboratoryError::CannotStart {
                what: "The thread of a load".to_owned(),
                source,
            })?;
            loads.running.push(Running::Here(thread, told));
        }
        for load in &mut loads.running {
            load.settle()?;
        }
        Ok(loads)
    }

    /// Ends the loads. Returns what the processors of each end were used, the client's first.
    fn end(mut self) -> Result<Vec<Held>, LaboratoryError> {
        self.stop.set();
        self.running.drain(..).map(Running::end).collect()
    }
}

impl Running {
    /// Waits until the load has settled and held for a second, so that a short sweep has a second that was measured. A
    /// load that ends early shows its reason at its end.
    fn settle(&mut self) -> Result<(), LaboratoryError> {
        match self {
            Self::Here(_, told) => {
                // The channel ends with the load.
                while signal::ending().is_none()
                    && told.recv().is_ok_and(|at_s| at_s < SETTLED_AFTER_S)
                {}
                Ok(())
            }
            Self::Far(_, load) => load.await_seconds(SETTLED_AFTER_S),
        }
    }

    fn end(self) -> Result<Held, LaboratoryError> {
        let (name, report) = match self {
            Self::Here(thread, _) => {
                let report = thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                let report = report.map_err(|error| LaboratoryError::System {
                    doing: "A load cannot be carried out",
                    source: std::io::Error::other(error),
                })?;
                (None, report)
            }
            Self::Far(name, load) => (Some(name), load.end()?),
        };
        let mut used = together(&report.held);
        if let Some(name) = name {
            used.of = format!("processors of {name}");
        }
        Ok(used)
    }
}

/// Seconds of a load before the sweep of its state begins: one to settle, and one that is measured.
const SETTLED_AFTER_S: u64 = 2;

/// What several processors were used together: the mean of their means, and the least and the greatest second of any.
fn together(all: &[Held]) -> Held {
    let Some(first) = all.first() else {
        return Held::default();
    };
    let mean = |of: fn(&Held) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let greatest = |of: fn(&Held) -> f64| all.iter().map(of).fold(of(first), f64::max);
    let fewest = |of: fn(&Held) -> u64| all.iter().map(of).min().unwrap_or(0);
    Held {
        seconds: fewest(|held| held.seconds),
        seconds_within: fewest(|held| held.seconds_within),
        mean: mean(|held| held.mean),
        min: all.iter().map(|held| held.min).fold(first.min, f64::min),
        max: greatest(|held| held.max),
        deviation: greatest(|held| held.deviation),
        own_mean: mean(|held| held.own_mean),
        stolen_mean: mean(|held| held.stolen_mean),
        ..first.clone()
    }
}

impl Drop for Loads {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// Writes the state into a point.
fn mark(point: &mut Measurement, state: (usize, usize), used: &[Held]) {
    point.group = words(state);
    point.factors.insert(CLIENT.to_owned(), state.0 as f64);
    point.factors.insert(SERVER.to_owned(), state.1 as f64);
    let ends = ["client", "server"].iter().zip(used);
    // A state of less than two seconds was not watched.
    for (end, held) in ends.filter(|(_, held)| held.seconds > 0) {
        let mut add = |what: &str, value: f64| {
            point
                .values
                .insert(format!("{end}_processor_{what}"), value);
        };
        add("use", held.mean);
        add("use_min", held.min);
        add("use_max", held.max);
        add("use_by_load", held.own_mean);
    }
}

/// Adds what the sweep of a state has beside its points.
fn keep(
    whole: &mut Option<ExperimentDocument>,
    found: ExperimentDocument,
    state: (usize, usize),
    used: &[Held],
) {
    let missed = used.iter().filter(|held| held.is_held() == Some(false));
    let missed: Vec<Warning> = missed
        .map(|held| Warning {
            kind: "load-missed".to_owned(),
            text: format!("{}: a load missed its target: {held}.", words(state)),
        })
        .collect();
    let Some(whole) = whole else {
        let mut first = found;
        first.warnings.extend(missed);
        *whole = Some(first);
        return;
    };
    for warning in found.warnings.into_iter().chain(missed) {
        if !whole.warnings.contains(&warning) {
            whole.warnings.push(warning);
        }
    }
    for skip in found.skipped {
        if !whole.skipped.contains(&skip) {
            whole.skipped.push(skip);
        }
    }
    whole.machine_states.extend(found.machine_states);
}

/// A document without a point: all points are of an earlier run.
fn empty(asked: &Sweep) -> Result<ExperimentDocument, LaboratoryError> {
    let mut silent = |_: &Progress| ();
    let mut session = Session::new(&asked.setup, &mut silent);
    let places = session.enter(asked.condition)?;
    Ok(super::document(asked, &session, &places, Vec::new(), 0))
}

/// Makes the document of all states from that of one sweep.
fn describe(document: &mut ExperimentDocument, asked: &Sweep, mut points: Vec<Measurement>) {
    let key = |point: &Measurement| {
        let of = |factor: &str| point.factors.get(factor).copied().unwrap_or_default() as u64;
        (point.system.clone(), of(SIZE), of(CLIENT), of(SERVER))
    };
    points.sort_by_key(key);
    document.experiment = "grid".to_owned();
    document.title = "Transactions in nine processor states".to_owned();
    document.source =
        "R. Pallack, Real-Time COTS message communication for C3I systems, section 3 and appendix A"
            .to_owned();
    document.parameters = parameters(asked);
    document.figures = figures::figures(&points);
    let whose = match asked.far {
        Some(_) => "all processors of the end's host",
        None => "the end's processor",
    };
    document.notes = vec![format!(
        "A state is the use of {whose} by everything. The first state has no load: what its processors were used is the \
         measurement's own part and that of other processes"
    )];
    document.measurements = points;
    if asked.far.is_some() {
        far::describe(document);
    }
}

/// The share of transactions in each millisecond, and of those that took longer than all bins.
fn bins(point: &Measurement) -> Vec<f64> {
    let mut bins = vec![0.0; GRID_BINS + 1];
    let samples = point.samples.max(1) as f64;
    for (bound_ns, count) in &point.histogram {
        let bin = usize::try_from(bound_ns / NS_PER_BIN).unwrap_or(GRID_BINS);
        bins[bin.min(GRID_BINS)] += *count as f64 / samples;
    }
    bins
}

const NS_PER_BIN: u64 = 1_000_000;

/// Writes one row for each point.
fn write_csv(asked: &Sweep, points: &[Measurement]) -> Result<(), LaboratoryError> {
    let path = asked.journal.with_file_name(GRID_CSV);
    std::fs::write(&path, csv(points)).map_err(|source| LaboratoryError::File { path, source })
}

fn csv(points: &[Measurement]) -> String {
    let mut text = "carrier,size_octets,client_state,server_state,samples,lost,mean_ns,max_ns,\
                    client_processor_use,server_processor_use"
        .to_owned();
    for bin in 0..GRID_BINS {
        // A write to a string does not fail.
        let _ = write!(text, ",from_{bin}_ms");
    }
    let _ = writeln!(text, ",from_{GRID_BINS}_ms_on");
    for point in points {
        let factor = |name: &str| point.factors.get(name).copied().unwrap_or_default();
        let value = |name: &str, decimals: usize| {
            let value = point.values.get(name);
            value.map_or(String::new(), |value| format!("{value:.decimals$}"))
        };
        let state = |name: &str| STATES[factor(name) as usize % STATES.len()];
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{},{},{}",
            point.system.replace(',', ";"),
            factor(SIZE),
            state(CLIENT),
            state(SERVER),
            point.samples,
            value("transactions_lost", 0),
            value(&TRANSACTION.key("mean"), 0),
            value(&TRANSACTION.key("max"), 0),
            value("client_processor_use", 4),
            value("server_processor_use", 4)
        );
        for share in bins(point) {
            let _ = write!(text, ",{share:.6}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(state: (usize, usize), histogram: &[(u64, u64)]) -> Measurement {
        let mut point = Measurement {
            system: "tcp".to_owned(),
            case: String::new(),
            group: String::new(),
            factors: BTreeMap::from([(SIZE.to_owned(), 64.0)]),
            values: BTreeMap::from([
                (TRANSACTION.key("mean"), 1.5e6),
                (TRANSACTION.key("max"), 2e8),
                ("transactions_lost".to_owned(), 0.0),
            ]),
            runs: BTreeMap::new(),
            ends: Vec::new(),
            samples: histogram.iter().map(|(_, count)| count).sum(),
            histogram: histogram.to_vec(),
        };
        let held = |mean| Held {
            mean,
            seconds: 3,
            ..Held::default()
        };
        mark(&mut point, state, &[held(0.5), held(0.2)]);
        point
    }

    #[test]
    fn several_processors_have_the_mean_of_their_means_and_the_extremes_of_any() {
        let held = |mean, min, max, seconds| Held {
            asked: Some(0.5),
            mean,
            min,
            max,
            own_mean: mean / 2.0,
            seconds,
            seconds_within: seconds - 1,
            ..Held::default()
        };
        let found = together(&[held(0.4, 0.1, 0.5, 3), held(0.6, 0.2, 0.9, 4)]);
        assert_eq!((found.mean, found.own_mean), (0.5, 0.25));
        assert_eq!((found.min, found.max), (0.1, 0.9));
        assert_eq!((found.seconds, found.seconds_within), (3, 2));
        assert_eq!(found.asked, Some(0.5));
        assert_eq!(together(&[]), Held::default());
    }

    #[test]
    fn a_distribution_has_bins_of_a_millisecond_and_one_for_the_rest() {
        let found = bins(&point(
            (0, 0),
            &[(999_999, 2), (1_000_000, 1), (99_999_999, 3), (1 << 40, 2)],
        ));
        assert_eq!(
            (found[0], found[1], found[99], found[100]),
            (0.25, 0.125, 0.375, 0.25)
        );
        assert_eq!(found.iter().sum::<f64>(), 1.0);
    }

    #[test]
    fn the_table_has_a_row_for_each_point_with_its_states_and_uses() {
        let text = csv(&[point((1, 0), &[(500_000, 4)])]);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows[0].len(), 10 + GRID_BINS + 1);
        assert_eq!(rows[0].len(), rows[1].len());
        let head = [
            "tcp",
            "64",
            "34-66%",
            "0-33%",
            "4",
            "0",
            "1500000",
            "200000000",
            "0.5000",
            "0.2000",
        ];
        assert_eq!(rows[1][..10], head);
        assert_eq!((rows[1][10], rows[1][11]), ("1.000000", "0.000000"));
    }

    #[test]
    fn a_finished_state_is_known_by_both_of_its_ends() {
        let found = point((1, 2), &[]);
        assert!(is_of(&found, (1, 2)));
        assert!(!is_of(&found, (2, 1)) && !is_of(&found, (1, 0)));
        assert_eq!(found.group, "client 34-66%, server 67-100%");
    }

    #[test]
    fn the_time_left_counts_the_states_that_follow() {
        let one = Progress {
            round: 1,
            rounds: 2,
            now: "64 octets".to_owned(),
            total: Duration::from_secs(10),
            left: Duration::from_secs(4),
        };
        let all = of_all(&one, (0, 1), 7);
        assert_eq!((all.total.as_secs(), all.left.as_secs()), (80, 74));
        assert_eq!(all.now, "client 0-33%, server 34-66%: 64 octets");
    }
}
