//! From operations to the tasks of theory: what one timer triggers at one priority is one task.
//!
//! A timer's release makes an event; the event triggers consumers, their events trigger others. Calls (two-way) run
//! within the caller. Everything that one timer triggers at one level forms a *segment*, a task whose cost is the sum of
//! its executions: the level works on it without a pause of its own. Where events go on to another level, a segment
//! begins whose release jitter is the worst response of the segment before (Tindell and Clark, Microprocessing and
//! Microprogramming 40, 1994, "holistic" analysis).

use crate::error::SchedError;
use crate::graph::{Graph, Streams};
use crate::info::{CallKind, InfoKind};
use crate::limits::STREAMS_MAX;
use crate::strategy::Dispatch;
use crate::task::{Task, Work, add, mul};

/// Executions that one timer triggers at one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The task that the analysis takes it for. Its jitter is that of the last round.
    pub task: Task,
    /// Position of the operation whose timer triggers it.
    pub root: usize,
    /// Positions of the operations that are dispatched in it, in order, with the dispatches of each. Calls run within.
    pub dispatched: Vec<(usize, u64)>,
    /// Positions of the operations that run in it.
    pub members: Vec<usize>,
    /// How often events have changed the level since the timer.
    pub depth: u32,
    /// Segments whose events release it.
    pub(crate) before: Vec<usize>,
    /// Suppliers of a conjunction that delay it without carrying it.
    pub(crate) waits_for: Vec<usize>,
    /// Cost of the first dispatch. Of a timer's own segment, all else runs behind it.
    pub(crate) first_ns: u64,
}

/// The level and the dispatch of each operation that has a rate.
pub(crate) struct Placement {
    pub(crate) level: Vec<Option<u32>>,
    pub(crate) dispatch: Vec<Dispatch>,
    pub(crate) deadline_ns: Vec<Option<u64>>,
}

/// Returns all segments.
///
/// # Errors
/// [`SchedError::TooManyStreams`], [`SchedError::TimeOverflow`], [`SchedError::TooLong`].
pub(crate) fn segments(
    graph: &Graph<'_>,
    streams: &Streams,
    placement: &Placement,
    overhead_ns: u64,
    work: &mut Work,
) -> Result<Vec<Segment>, SchedError> {
    let costs = costs(graph)?;
    let mut all = Vec::new();
    for &root in &graph.order {
        if graph.is_timed(root) {
            let mut build = Build {
                graph,
                streams,
                placement,
                overhead_ns,
                costs: &costs,
                root,
                from: all.len(),
                counts: vec![Vec::new(); graph.infos.len()],
                all: &mut all,
            };
            build.run(work)?;
        }
    }
    Ok(all)
}

/// Returns the cost of each operation with all that it calls.
fn costs(graph: &Graph<'_>) -> Result<Vec<u64>, SchedError> {
    let mut costs: Vec<u64> = graph.infos.iter().map(|info| info.worst_case_ns).collect();
    for &position in graph.order.iter().rev() {
        for edge in &graph.out[position] {
            if edge.kind == CallKind::TwoWay {
                costs[position] = add(costs[position], mul(edge.calls, costs[edge.to])?)?;
            }
        }
    }
    Ok(costs)
}

struct Build<'b, 'o> {
    graph: &'b Graph<'o>,
    streams: &'b Streams,
    placement: &'b Placement,
    overhead_ns: u64,
    costs: &'b [u64],
    root: usize,
    /// Position of this root's first segment.
    from: usize,
    /// Dispatches of each operation in each segment of this root.
    counts: Vec<Vec<(usize, u64)>>,
    all: &'b mut Vec<Segment>,
}

impl Build<'_, '_> {
    fn run(&mut self, work: &mut Work) -> Result<(), SchedError> {
        let first = self.segment(self.root, None, work)?;
        self.counts[self.root].push((first, 1));
        let start = self.graph.order.iter().position(|&one| one == self.root);
        for &position in &self.graph.order[start.unwrap_or(0)..] {
            work.spend(1)?;
            for (segment, times) in std::mem::take(&mut self.counts[position]) {
                self.dispatch(position, segment, times, work)?;
            }
        }
        Ok(())
    }

    /// Adds `times` dispatches of an operation to a segment, and the events that they make.
    fn dispatch(
        &mut self,
        position: usize,
        segment: usize,
        times: u64,
        work: &mut Work,
    ) -> Result<(), SchedError> {
        let each_ns = add(self.costs[position], self.overhead_ns)?;
        let cost_ns = mul(each_ns, times)?;
        let here = &mut self.all[segment];
        if here.dispatched.is_empty() {
            here.first_ns = cost_ns;
        }
        here.task.cost_ns = add(here.task.cost_ns, cost_ns)?;
        here.task.is_chain |= !here.dispatched.is_empty();
        here.dispatched.push((position, times));
        for (member, executions) in self.called(position, times, work)? {
            let info = &self.graph.infos[member];
            let here = &mut self.all[segment];
            here.task.blocking_ns = here.task.blocking_ns.max(info.blocking_ns);
            if !here.members.contains(&member) {
                here.members.push(member);
            }
            for edge in &self.graph.out[member] {
                let is_event = edge.kind == CallKind::OneWay;
                let carrier = self.streams.carrier[edge.to];
                if !is_event || carrier.is_some_and(|carrier| carrier != member) {
                    continue;
                }
                let next = self.segment(edge.to, Some(segment), work)?;
                let events = mul(executions, edge.calls)?;
                let there = &mut self.counts[edge.to];
                match there.iter_mut().find(|(one, _)| *one == next) {
                    Some((_, sum)) => *sum = add(*sum, events)?,
                    None => there.push((next, events)),
                }
            }
        }
        Ok(())
    }

    /// Returns an operation and all that it calls, with the executions of each.
    fn called(
        &self,
        position: usize,
        times: u64,
        work: &mut Work,
    ) -> Result<Vec<(usize, u64)>, SchedError> {
        let mut members = vec![(position, times)];
        let mut next = 0;
        while let Some(&(member, executions)) = members.get(next) {
            next += 1;
            work.spend(members.len())?;
            work.spend(self.graph.out[member].len())?;
            for edge in &self.graph.out[member] {
                if edge.kind == CallKind::TwoWay {
                    members.push((edge.to, mul(executions, edge.calls)?));
                }
            }
        }
        Ok(members)
    }

    /// Returns the segment in which an operation is dispatched that the segment `before` triggers.
    fn segment(
        &mut self,
        position: usize,
        before: Option<usize>,
        work: &mut Work,
    ) -> Result<usize, SchedError> {
        work.spend(self.all[self.from..].len())?;
        let info = &self.graph.infos[position];
        let level = self.placement.level[position].unwrap_or(u32::MAX);
        let deadline_ns = self.placement.deadline_ns[position].unwrap_or(u64::MAX);
        let is_static = self.placement.dispatch[position] == Dispatch::Static;
        // Asked of segments of this root alone.
        let is_same = |one: &Segment| {
            let is_alike = is_static || one.task.deadline_ns == deadline_ns;
            one.task.level == level && is_alike
        };
        let waits_for = match info.kind {
            InfoKind::Conjunction => self.graph.waited_for(position, self.streams),
            _ => Vec::new(),
        };
        let depth = match before.map(|before| &self.all[before]) {
            None => 0,
            Some(before) if is_same(before) && waits_for.is_empty() => before.depth,
            Some(before) => before.depth + 1,
        };
        let is_there =
            |one: &Segment| one.depth == depth && is_same(one) && one.waits_for == waits_for;
        let there = self.all[self.from..].iter().position(is_there);
        let segment = match there {
            Some(there) => self.from + there,
            None => {
                if self.all.len() >= STREAMS_MAX {
                    return Err(SchedError::TooManyStreams);
                }
                let root = &self.graph.infos[self.root];
                let is_first = before.is_none();
                self.all.push(Segment {
                    task: Task {
                        cost_ns: 0,
                        period_ns: root.period_ns,
                        deadline_ns,
                        jitter_ns: if is_first { root.jitter_ns } else { 0 },
                        blocking_ns: 0,
                        offset_ns: if is_first { root.offset_ns } else { 0 },
                        transaction: root.transaction.filter(|_| is_first),
                        level,
                        is_chain: false,
                    },
                    root: self.root,
                    dispatched: Vec::new(),
                    members: Vec::new(),
                    depth,
                    before: Vec::new(),
                    waits_for,
                    first_ns: 0,
                });
                self.all.len() - 1
            }
        };
        let here = &mut self.all[segment];
        here.task.deadline_ns = here.task.deadline_ns.min(deadline_ns);
        if let Some(before) = before.filter(|&before| before != segment)
            && !here.before.contains(&before)
        {
            here.before.push(before);
        }
        Ok(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{Dependency, Enabled, Handle, RtInfo};
    use crate::operations::Operations;

    #[test]
    fn the_segments_are_bounded() {
        // Each of the timers triggers all eight of a chain, and each of the chain triggers those behind it. All have
        // other deadlines, so that number `k` of the chain has a segment at each depth from 1 to `k`.
        let (timers, chain, more) = (1771, 8, 9);
        assert_eq!(timers * (1 + chain * (chain + 1) / 2) + more, STREAMS_MAX);
        let mut operations = Operations::default();
        let mut add = |period_ns, suppliers: usize| {
            let dependencies = (0..suppliers).map(|on| Dependency {
                on: Handle::at(on),
                kind: CallKind::OneWay,
                calls: 1,
                enabled: Enabled::Enabled,
            });
            let info = RtInfo {
                entry_point: operations.infos().len().to_string(),
                period_ns,
                dependencies: dependencies.collect(),
                ..RtInfo::default()
            };
            operations.add(&info).unwrap();
            operations.clone()
        };
        for _ in 0..timers {
            add(10, 0);
        }
        for number in 0..chain {
            add(0, timers + number);
        }
        for _ in 1..more {
            add(10, 0);
        }
        let (most, too_many) = (add(10, 0), add(10, 0));
        let count = |operations: &Operations| {
            let infos = operations.infos().len();
            let placement = Placement {
                level: vec![Some(0); infos],
                dispatch: vec![Dispatch::Deadline; infos],
                deadline_ns: (0..infos as u64).map(Some).collect(),
            };
            let graph = Graph::new(operations);
            // Without conjunctions the timers of an operation change nothing.
            let streams = Streams {
                of: Vec::new(),
                carrier: vec![None; infos],
            };
            let found = segments(&graph, &streams, &placement, 0, &mut Work::new());
            found.map(|all| all.len())
        };
        assert_eq!(count(&most), Ok(STREAMS_MAX));
        assert_eq!(count(&too_many), Err(SchedError::TooManyStreams));
    }
}
