//! A schedule: priorities for all operations, and whether each meets its deadline.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::anomaly::{Anomaly, AnomalyFact, Severity};
use crate::bounds::{compare_with_one, hyperbolic, hyperperiod, liu_layland, utilisation};
use crate::edf;
use crate::error::SchedError;
use crate::fixed;
use crate::graph::{Graph, Streams};
use crate::info::Handle;
use crate::limits::ROUNDS_MAX;
use crate::operations::Operations;
use crate::segments::{Placement, Segment, segments};
use crate::strategy::{Dispatch, LevelKey, Strategy};
use crate::task::{Response, Task, Work};

/// How a schedule is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The strategy.
    pub strategy: Strategy,
    /// Processor time that each dispatch takes beside the operation's own.
    pub overhead_ns: u64,
    /// Whether an operation that a deadline or laxity queue has dispatched runs to its end before the next one of that
    /// queue, as in a lane with one thread.
    pub runs_to_completion: bool,
}

/// A schedule of declared operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// How it was computed.
    pub settings: Settings,
    /// Its priorities, the most urgent first.
    pub levels: Vec<Level>,
    /// What each operation got, in the order of the handles; `None` for an operation without a rate.
    pub assigned: Vec<Option<Assigned>>,
    /// The tasks that were analysed.
    pub segments: Vec<Segment>,
    /// The worst response time of each segment, with its release jitter.
    pub responses: Vec<Response>,
    /// Everything wrong, the worst first.
    pub anomalies: Vec<Anomaly>,
    /// The utilisation, and the papers' bounds of it.
    pub bounds: Bounds,
    /// Least common multiple of the timers' periods; `None` above 584 years (64 bits of nanoseconds). Only a dynamic
    /// level with a full processor needs it for its analysis.
    pub hyperperiod_ns: Option<u64>,
}

/// One priority of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// How its queue is ordered.
    pub dispatch: Dispatch,
    /// Shortest period of its operations.
    pub period_ns: u64,
}

/// What an operation got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Its priority (TAO's preemption priority); 0 is the most urgent.
    pub level: u32,
    /// Its order within the priority; 0 is first.
    pub sub_priority: u32,
    /// How the queue of its priority is ordered.
    pub dispatch: Dispatch,
    /// Shortest period of the timers that trigger it.
    pub period_ns: u64,
    /// Its deadline, from the release of the timer.
    pub deadline_ns: u64,
    /// Its worst response time, from the release of the timer.
    pub response: Response,
}

/// The utilisation, and the bounds of it below which theory promises every deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Sum of cost over period.
    pub utilisation: f64,
    /// Tasks of the bounds: timers.
    pub tasks: usize,
    /// The bound of Liu and Layland for so many tasks.
    pub liu_layland: f64,
    /// The product of Bini, Buttazzo and Buttazzo; at most 2 promises every deadline.
    pub hyperbolic: f64,
    /// Whether the assumptions of both hold: rate-monotonic priorities, deadlines equal to periods, no jitter, no
    /// blocking.
    pub apply: bool,
}

impl Schedule {
    /// Computes a schedule.
    ///
    /// # Errors
    /// [`SchedError`]; an infeasible set is no error.
    pub fn compute(operations: &Operations, settings: Settings) -> Result<Self, SchedError> {
        Self::within(&mut Work::new(), operations, settings)
    }

    /// As [`Self::compute`], with a bound on the work.
    pub(crate) fn within(
        work: &mut Work,
        operations: &Operations,
        settings: Settings,
    ) -> Result<Self, SchedError> {
        let graph = Graph::new(operations);
        let streams = graph.streams()?;
        let (placement, levels) = place(&graph, &streams, settings.strategy);
        let mut segments = segments(&graph, &streams, &placement, settings.overhead_ns, work)?;
        let hyperperiod_ns = hyperperiod(segments.iter().map(|one| one.task.period_ns)).ok();
        let responses = analyse(&mut segments, &levels, settings, work)?;
        let assigned = assign(&graph, &streams, &levels, &segments, &responses);
        let bounds = Bounds::of(&segments, settings.strategy);
        let mut anomalies = anomalies(&graph, &streams, &assigned);
        let shares = segments
            .iter()
            .map(|one| (one.task.cost_ns, one.task.period_ns));
        if compare_with_one(shares) == Ordering::Greater {
            anomalies.push(Anomaly {
                of: None,
                fact: AnomalyFact::UtilisationAboveOne,
            });
        }
        anomalies.sort_by_key(|anomaly| anomaly.severity());
        Ok(Self {
            settings,
            levels,
            assigned,
            segments,
            responses,
            anomalies,
            bounds,
            hyperperiod_ns,
        })
    }

    /// Whether every operation is scheduled and meets its deadline.
    #[must_use]
    pub fn is_feasible(&self) -> bool {
        let severities = self.anomalies.iter().map(|one| one.severity());
        severities
            .min()
            .is_none_or(|worst| worst == Severity::Warning)
    }

    /// Returns what an operation got.
    #[must_use]
    pub fn of(&self, handle: Handle) -> Option<&Assigned> {
        self.assigned.get(handle.index())?.as_ref()
    }

    /// Returns the segment whose operation is nearest to its deadline, or beyond it.
    #[must_use]
    pub fn tightest(&self) -> Option<usize> {
        let slack = |&index: &usize| match self.responses[index].worst_ns {
            Some(worst) => i128::from(self.segments[index].task.deadline_ns) - i128::from(worst),
            None => i128::MIN,
        };
        (0..self.segments.len()).min_by_key(slack)
    }

    /// Returns the dispatcher's priority of each level, within `least..=most`. `least` may be the greater number, where
    /// small numbers are urgent. Levels are next to each other, the most urgent at `most`.
    ///
    /// # Errors
    /// [`SchedError::TooFewPriorities`].
    pub fn dispatcher_priorities(&self, least: i32, most: i32) -> Result<Vec<i32>, SchedError> {
        let available = (i64::from(most) - i64::from(least)).unsigned_abs() + 1;
        let needed = self.levels.len() as u64;
        if needed > available {
            return Err(SchedError::TooFewPriorities {
                needed: needed as u32,
                available: available as u32,
            });
        }
        let step = if least <= most { -1 } else { 1 };
        let priority = |level: usize| most + step * level as i32;
        Ok((0..self.levels.len()).map(priority).collect())
    }
}

impl Bounds {
    fn of(segments: &[Segment], strategy: Strategy) -> Self {
        // One task for each timer, whatever its events trigger.
        let mut costs: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        let mut apply = strategy == Strategy::Rms;
        for segment in segments {
            let task = &segment.task;
            let (cost_ns, _) = costs.entry(segment.root).or_insert((0, task.period_ns));
            *cost_ns = cost_ns.saturating_add(task.cost_ns);
            let is_plain = task.deadline_ns == task.period_ns
                && task.blocking_ns == 0
                && task.jitter_ns == 0
                && segment.depth == 0;
            apply &= is_plain;
        }
        let shares = || costs.values().copied();
        Self {
            utilisation: utilisation(shares()),
            tasks: costs.len(),
            liu_layland: liu_layland(costs.len()),
            hyperbolic: hyperbolic(shares()),
            apply,
        }
    }

    /// Whether a bound promises every deadline.
    #[must_use]
    pub fn promise(&self) -> bool {
        self.apply && (self.utilisation <= self.liu_layland || self.hyperbolic <= 2.0)
    }
}

/// Returns the shortest period of the timers that trigger each operation, in the order of the handles; `None` for one
/// without a rate.
///
/// # Errors
/// [`SchedError::TooManyStreams`] and the others of [`Schedule::compute`] about declarations.
pub fn periods(operations: &Operations) -> Result<Vec<Option<u64>>, SchedError> {
    let graph = Graph::new(operations);
    let streams = graph.streams()?;
    let all = 0..graph.infos.len();
    Ok(all
        .map(|one| shortest_period(&graph, &streams, one))
        .collect())
}

/// Gives each operation that has a rate its level and its deadline.
fn place(graph: &Graph<'_>, streams: &Streams, strategy: Strategy) -> (Placement, Vec<Level>) {
    let mut keys: BTreeMap<LevelKey, Level> = BTreeMap::new();
    let count = graph.infos.len();
    let mut key_of = vec![None; count];
    let mut placement = Placement {
        level: vec![None; count],
        dispatch: vec![Dispatch::Static; count],
        deadline_ns: vec![None; count],
    };
    for &position in &graph.order {
        let Some(period_ns) = shortest_period(graph, streams, position) else {
            continue;
        };
        let info = &graph.infos[position];
        placement.deadline_ns[position] = Some(info.deadline_ns.unwrap_or(period_ns));
        if !graph.is_dispatched(position) {
            continue;
        }
        let (key, dispatch) = strategy.level_of(info, period_ns);
        placement.dispatch[position] = dispatch;
        key_of[position] = Some(key);
        let level = keys.entry(key).or_insert(Level {
            dispatch,
            period_ns,
        });
        level.period_ns = level.period_ns.min(period_ns);
    }
    let order: Vec<LevelKey> = keys.keys().copied().collect();
    for (level, key) in placement.level.iter_mut().zip(&key_of) {
        *level = key.and_then(|key| order.binary_search(&key).ok().map(|place| place as u32));
    }
    (placement, keys.into_values().collect())
}

fn shortest_period(graph: &Graph<'_>, streams: &Streams, position: usize) -> Option<u64> {
    let timers = streams.of[position].iter();
    timers.map(|&(root, _)| graph.infos[root].period_ns).min()
}

/// Gives each task of a static level the longest blocking of the level: what blocks one delays the others in its queue.
fn block_queues(segments: &mut [Segment], levels: &[Level]) {
    for (level, number) in levels.iter().zip(0..) {
        if level.dispatch == Dispatch::Static {
            let of_level = |one: &&mut Segment| one.task.level == number;
            let blocked = segments.iter_mut().filter(of_level);
            let longest = blocked.map(|one| one.task.blocking_ns).max();
            for one in segments.iter_mut().filter(of_level) {
                one.task.blocking_ns = longest.unwrap_or(0);
            }
        }
    }
}

/// Analyses all segments. Jitter is passed along events in rounds, until it no longer grows.
fn analyse(
    segments: &mut [Segment],
    levels: &[Level],
    settings: Settings,
    work: &mut Work,
) -> Result<Vec<Response>, SchedError> {
    block_queues(segments, levels);
    let longest = segments.iter().map(|segment| segment.task.period_ns).max();
    let jitter_max_ns = longest.unwrap_or(0).saturating_mul(JITTER_PERIODS_MAX);
    // A segment without a bound of its jitter can take any time from its level and those below.
    let mut lost_level = u32::MAX;
    for _ in 0..ROUNDS_MAX {
        let tasks: Vec<Task> = segments.iter().map(|segment| segment.task).collect();
        let responses = analyse_once(&tasks, levels, settings, work)?;
        let mut changed = false;
        for position in 0..segments.len() {
            let found = jitter(segments, &responses, lost_level, position);
            let here = &mut segments[position];
            match found.filter(|&jitter_ns| here.depth == 0 || jitter_ns <= jitter_max_ns) {
                Some(jitter_ns) => {
                    changed |= jitter_ns > here.task.jitter_ns;
                    here.task.jitter_ns = jitter_ns;
                }
                None => {
                    changed |= here.task.level < lost_level;
                    lost_level = lost_level.min(here.task.level);
                }
            }
        }
        if !changed {
            return Ok(finished(segments, responses, lost_level));
        }
    }
    Ok(vec![Response::UNKNOWN; segments.len()])
}

/// Jitter that events pass on, in periods of the slowest timer. Beyond it, the jitter grows without end.
const JITTER_PERIODS_MAX: u64 = 64;

/// Returns the release jitter of a segment, from the responses of those before it; `None` if there is no bound.
fn jitter(
    segments: &[Segment],
    responses: &[Response],
    lost_level: u32,
    position: usize,
) -> Option<u64> {
    let worst = |before: usize| {
        let is_lost = segments[before].task.level >= lost_level;
        responses[before].worst_ns.filter(|_| !is_lost)
    };
    let segment = &segments[position];
    let (mut carried_ns, mut wait_ns) = (0, 0);
    for &before in &segment.before {
        carried_ns = worst(before)?.max(carried_ns);
    }
    for &supplier in &segment.waits_for {
        for (other, one) in segments.iter().enumerate() {
            if one.members.contains(&supplier) {
                let next_ns = one.task.period_ns.checked_add(worst(other)?)?;
                wait_ns = next_ns.max(wait_ns);
            }
        }
    }
    let passed_ns = carried_ns.checked_add(wait_ns)?;
    Some(segment.task.jitter_ns.max(passed_ns))
}

/// Takes the bounds away from the lost levels, and exactness if events pass jitter on.
fn finished(segments: &[Segment], mut responses: Vec<Response>, lost_level: u32) -> Vec<Response> {
    let has_chains = segments.iter().any(|segment| segment.depth > 0);
    for (segment, response) in segments.iter().zip(&mut responses) {
        if segment.task.level >= lost_level {
            *response = Response::UNKNOWN;
        } else if has_chains {
            response.is_exact = false;
        }
    }
    responses
}

/// Analyses each level under those above it.
fn analyse_once(
    tasks: &[Task],
    levels: &[Level],
    settings: Settings,
    work: &mut Work,
) -> Result<Vec<Response>, SchedError> {
    let mut responses = vec![Response::UNBOUNDED; tasks.len()];
    for (level, number) in levels.iter().zip(0..) {
        let of_level: Vec<usize> = (0..tasks.len())
            .filter(|&position| tasks[position].level == number)
            .collect();
        if level.dispatch == Dispatch::Static {
            for &position in &of_level {
                responses[position] = fixed::worst(tasks, position, work)?.response;
            }
            continue;
        }
        let own: Vec<Task> = of_level.iter().map(|&position| tasks[position]).collect();
        let higher = tasks.iter().filter(|task| task.level < number);
        let queue = edf::Level {
            own: &own,
            higher: &higher.copied().collect::<Vec<_>>(),
            runs_to_completion: settings.runs_to_completion,
        };
        let found = match level.dispatch {
            Dispatch::Laxity => queue.under_laxities(work)?,
            Dispatch::Deadline | Dispatch::Static => queue.under_deadlines(work)?,
        };
        for (position, response) in of_level.into_iter().zip(found) {
            responses[position] = response;
        }
    }
    Ok(responses)
}

fn assign(
    graph: &Graph<'_>,
    streams: &Streams,
    levels: &[Level],
    segments: &[Segment],
    responses: &[Response],
) -> Vec<Option<Assigned>> {
    let mut assigned: Vec<Option<Assigned>> = vec![None; graph.infos.len()];
    for (segment, response) in segments.iter().zip(responses) {
        let dispatch = levels[segment.task.level as usize].dispatch;
        for &position in &segment.members {
            let response = of_member(segment, *response, position, dispatch);
            let Some(period_ns) = shortest_period(graph, streams, position) else {
                continue;
            };
            let here = assigned[position].get_or_insert(Assigned {
                level: segment.task.level,
                sub_priority: 0,
                dispatch,
                period_ns,
                deadline_ns: graph.infos[position].deadline_ns.unwrap_or(period_ns),
                response,
            });
            here.level = here.level.min(segment.task.level);
            here.dispatch = levels[here.level as usize].dispatch;
            here.response = worse(here.response, response);
        }
    }
    let mut order: Vec<(usize, usize)> = graph.order.iter().copied().enumerate().collect();
    order.sort_by_key(|&(place, position)| {
        (std::cmp::Reverse(graph.infos[position].importance), place)
    });
    let mut next = vec![0; levels.len()];
    for (_, position) in order {
        if let Some(here) = &mut assigned[position] {
            let sub_priority = &mut next[here.level as usize];
            here.sub_priority = *sub_priority;
            *sub_priority += 1;
        }
    }
    assigned
}

/// Returns the response of one operation of a segment. The timer's own operation ends before all that it triggers.
fn of_member(
    segment: &Segment,
    response: Response,
    position: usize,
    dispatch: Dispatch,
) -> Response {
    let is_alone = segment.members.len() == 1;
    let is_first = segment.depth == 0
        && segment.dispatched.first() == Some(&(position, 1))
        && dispatch != Dispatch::Laxity;
    let tail_ns = if is_first {
        segment.task.cost_ns - segment.first_ns
    } else {
        0
    };
    Response {
        worst_ns: response.worst_ns.map(|worst| worst - tail_ns.min(worst)),
        is_exact: response.is_exact && (is_alone || response.worst_ns.is_none()),
    }
}

fn worse(a: Response, b: Response) -> Response {
    match (a.worst_ns, b.worst_ns) {
        (Some(first), Some(second)) => match first.cmp(&second) {
            Ordering::Less => b,
            Ordering::Greater => a,
            Ordering::Equal => Response {
                is_exact: a.is_exact || b.is_exact,
                ..a
            },
        },
        (None, _) => a,
        (_, None) => b,
    }
}

fn anomalies(graph: &Graph<'_>, streams: &Streams, assigned: &[Option<Assigned>]) -> Vec<Anomaly> {
    let mut all = Vec::new();
    for (position, info) in graph.infos.iter().enumerate() {
        let mut report = |fact| {
            all.push(Anomaly {
                of: Some(Handle::at(position)),
                fact,
            });
        };
        if !info.enabled.is_on() {
            continue;
        }
        if graph.cyclic.contains(&position) {
            report(AnomalyFact::Cycle);
            continue;
        }
        if info.threads > 0 && info.period_ns == 0 {
            report(AnomalyFact::ThreadsWithoutPeriod);
        }
        let Some(here) = &assigned[position] else {
            report(AnomalyFact::Unresolved);
            continue;
        };
        if !here.response.meets(here.deadline_ns) {
            report(AnomalyFact::MissesDeadline {
                worst_ns: here.response.worst_ns,
                deadline_ns: here.deadline_ns,
            });
        }
        let propagated_ns = shortest_period(graph, streams, position).unwrap_or(info.period_ns);
        let declares_only = info.period_ns > 0 && !graph.is_timed(position);
        if declares_only && propagated_ns != info.period_ns {
            report(AnomalyFact::RateMismatch {
                declared_ns: info.period_ns,
                propagated_ns,
            });
        }
        if info.typical_ns > info.worst_case_ns {
            report(AnomalyFact::TypicalAboveWorst);
        } else if info.worst_case_ns == 0 {
            report(AnomalyFact::CostsNothing);
        }
    }
    all
}
