//! The graph of calls between operations: its order, its cycles, and the timers that trigger each operation.

use crate::error::SchedError;
use crate::info::{CallKind, InfoKind, RtInfo};
use crate::limits::STREAMS_MAX;
use crate::operations::Operations;
use crate::task::{add, mul};

/// A call or an event from one operation to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) to: usize,
    pub(crate) kind: CallKind,
    pub(crate) calls: u64,
}

/// The graph of the enabled operations and dependencies. Operations are their positions.
pub(crate) struct Graph<'o> {
    pub(crate) infos: &'o [RtInfo],
    /// Edges from callers and suppliers to what they call or trigger.
    pub(crate) out: Vec<Vec<Edge>>,
    /// Operations that are not on a cycle, each after all that call or trigger it.
    pub(crate) order: Vec<usize>,
    /// Operations on a cycle or between two.
    pub(crate) cyclic: Vec<usize>,
    /// Suppliers whose events trigger the operation.
    suppliers: Vec<Vec<usize>>,
}

/// The timers that trigger each operation, and how often in each of their periods.
pub(crate) struct Streams {
    /// For each operation its timers and the executions in each period.
    pub(crate) of: Vec<Vec<(usize, u64)>>,
    /// The one supplier whose events carry a conjunction: the slowest. The other suppliers only delay it.
    pub(crate) carrier: Vec<Option<usize>>,
}

impl<'o> Graph<'o> {
    pub(crate) fn new(operations: &'o Operations) -> Self {
        let infos = operations.infos();
        let mut out = vec![Vec::new(); infos.len()];
        let mut suppliers = vec![Vec::new(); infos.len()];
        for handle in operations.handles().filter(|&one| operations.is_on(one)) {
            for dependency in &infos[handle.index()].dependencies {
                let is_on = dependency.enabled.is_on() && operations.is_on(dependency.on);
                if !is_on || dependency.calls == 0 {
                    continue;
                }
                let (from, to) = match dependency.kind {
                    CallKind::TwoWay => (handle.index(), dependency.on.index()),
                    CallKind::OneWay => (dependency.on.index(), handle.index()),
                };
                out[from].push(Edge {
                    to,
                    kind: dependency.kind,
                    calls: u64::from(dependency.calls),
                });
                if dependency.kind == CallKind::OneWay && !suppliers[to].contains(&from) {
                    suppliers[to].push(from);
                }
            }
        }
        let on = |position: &usize| infos[*position].enabled.is_on();
        let all: Vec<usize> = (0..infos.len()).filter(on).collect();
        // What sources do not reach is on a cycle or behind one; what also reaches no sink is on a cycle or between.
        let forward = peeled(&out, &all);
        let rest = without(&all, &forward);
        let mut back = vec![Vec::new(); infos.len()];
        for &from in &rest {
            for edge in &out[from] {
                let reversed = Edge { to: from, ..*edge };
                back[edge.to].push(reversed);
            }
        }
        let cyclic = without(&rest, &peeled(&back, &rest));
        // An operation on a cycle gets no level, so nothing is dispatched there.
        for edges in &mut out {
            edges.retain(|edge| !cyclic.contains(&edge.to));
        }
        let order = peeled(&out, &without(&all, &cyclic));
        Self {
            infos,
            out,
            order,
            cyclic,
            suppliers,
        }
    }

    /// Whether an operation has a timer. Of an operation that events trigger, the period is a declaration only, unless
    /// it has threads.
    pub(crate) fn is_timed(&self, position: usize) -> bool {
        let info = &self.infos[position];
        let has_thread = info.threads > 0 || self.suppliers[position].is_empty();
        info.period_ns > 0 && has_thread
    }

    /// Whether an operation is dispatched: a timer or an event triggers it, not only calls.
    pub(crate) fn is_dispatched(&self, position: usize) -> bool {
        self.is_timed(position) || !self.suppliers[position].is_empty()
    }

    /// Returns the suppliers of a conjunction that delay it but do not carry it.
    pub(crate) fn waited_for(&self, position: usize, streams: &Streams) -> Vec<usize> {
        let mut others = self.suppliers[position].clone();
        others.retain(|one| streams.carrier[position].is_some_and(|carrier| carrier != *one));
        others
    }

    /// Returns the timers of each operation.
    ///
    /// # Errors
    /// [`SchedError::TooManyStreams`], [`SchedError::TimeOverflow`].
    pub(crate) fn streams(&self) -> Result<Streams, SchedError> {
        let mut streams = Streams {
            of: vec![Vec::new(); self.infos.len()],
            carrier: vec![None; self.infos.len()],
        };
        let mut count = 0;
        for &position in &self.order {
            if self.infos[position].kind == InfoKind::Conjunction {
                self.carry(position, &mut streams)?;
            }
            if self.is_timed(position) {
                merge(&mut streams.of[position], position, 1)?;
            }
            let here = streams.of[position].clone();
            count += here.len();
            if count > STREAMS_MAX {
                return Err(SchedError::TooManyStreams);
            }
            for edge in &self.out[position] {
                // A conjunction takes the events of one supplier, when its turn comes.
                if self.infos[edge.to].kind == InfoKind::Conjunction
                    && edge.kind == CallKind::OneWay
                {
                    continue;
                }
                for &(root, times) in &here {
                    merge(&mut streams.of[edge.to], root, mul(times, edge.calls)?)?;
                }
            }
        }
        Ok(streams)
    }

    /// Chooses the carrier of a conjunction, and adds the carrier's streams.
    fn carry(&self, position: usize, streams: &mut Streams) -> Result<(), SchedError> {
        let Some(carrier) = self.slowest(position, streams) else {
            return Ok(());
        };
        streams.carrier[position] = Some(carrier);
        let calls = self.events_to(carrier, position);
        for (root, times) in streams.of[carrier].clone() {
            merge(&mut streams.of[position], root, mul(times, calls)?)?;
        }
        Ok(())
    }

    fn events_to(&self, supplier: usize, position: usize) -> u64 {
        let edges = self.out[supplier].iter();
        let events = edges.filter(|edge| edge.to == position && edge.kind == CallKind::OneWay);
        events.map(|edge| edge.calls).sum()
    }

    /// Returns the supplier with the lowest rate of events.
    fn slowest(&self, position: usize, streams: &Streams) -> Option<usize> {
        let rate = |supplier: usize| -> f64 {
            let calls = self.events_to(supplier, position);
            let timers = streams.of[supplier].iter();
            let rates = timers.map(|&(root, times)| {
                times as f64 * calls as f64 / self.infos[root].period_ns as f64
            });
            rates.sum()
        };
        let all = self.suppliers[position].iter().copied();
        all.min_by(|&a, &b| rate(a).total_cmp(&rate(b)))
    }
}

fn merge(streams: &mut Vec<(usize, u64)>, root: usize, times: u64) -> Result<(), SchedError> {
    match streams.iter_mut().find(|(there, _)| *there == root) {
        Some((_, sum)) => *sum = add(*sum, times)?,
        None => streams.push((root, times)),
    }
    Ok(())
}

fn without(all: &[usize], taken: &[usize]) -> Vec<usize> {
    let taken: std::collections::HashSet<usize> = taken.iter().copied().collect();
    let rest = all.iter().filter(|one| !taken.contains(one));
    rest.copied().collect()
}

/// Takes vertices without edges from the rest away, one after another (Kahn 1962). Returns them in that order.
fn peeled(out: &[Vec<Edge>], all: &[usize]) -> Vec<usize> {
    let mut incoming = vec![usize::MAX; out.len()];
    for &one in all {
        incoming[one] = 0;
    }
    for &from in all {
        for edge in &out[from] {
            if incoming[edge.to] != usize::MAX {
                incoming[edge.to] += 1;
            }
        }
    }
    let mut order: Vec<usize> = all
        .iter()
        .copied()
        .filter(|&one| incoming[one] == 0)
        .collect();
    let mut next = 0;
    while let Some(&from) = order.get(next) {
        next += 1;
        for edge in &out[from] {
            let left = &mut incoming[edge.to];
            if *left == usize::MAX {
                continue;
            }
            *left -= 1;
            if *left == 0 {
                order.push(edge.to);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::info::{Dependency, Enabled, Handle};

    fn set(names: &[(&str, u64)], edges: &[(usize, usize, CallKind, u32)]) -> Operations {
        let mut operations = Operations::default();
        for &(name, period_ns) in names {
            let info = RtInfo {
                entry_point: name.to_owned(),
                period_ns,
                ..RtInfo::default()
            };
            operations.add(&info).unwrap();
        }
        for &(of, on, kind, calls) in edges {
            let dependency = Dependency {
                on: Handle::at(on),
                kind,
                calls,
                enabled: Enabled::Enabled,
            };
            operations
                .add_dependency(Handle::at(of), dependency)
                .unwrap();
        }
        operations
    }

    use CallKind::{OneWay, TwoWay};

    #[test]
    fn rates_follow_events_to_consumers_and_calls_to_callees() {
        let operations = set(
            &[("timer", 10), ("consumer", 0), ("server", 0)],
            &[(1, 0, OneWay, 1), (1, 2, TwoWay, 3)],
        );
        let graph = Graph::new(&operations);
        assert_eq!(graph.order, [0, 1, 2]);
        let streams = graph.streams().unwrap();
        assert_eq!(streams.of, [vec![(0, 1)], vec![(0, 1)], vec![(0, 3)]]);
    }

    #[test]
    fn a_consumer_of_two_timers_has_both_rates_and_a_declared_period_adds_none() {
        let operations = set(
            &[("a", 10), ("b", 20), ("c", 5)],
            &[(2, 0, OneWay, 1), (2, 1, OneWay, 2)],
        );
        let graph = Graph::new(&operations);
        assert!(!graph.is_timed(2));
        assert_eq!(graph.streams().unwrap().of[2], [(0, 1), (1, 2)]);
    }

    #[test]
    fn a_conjunction_has_the_rate_of_its_slowest_supplier() {
        let mut operations = set(
            &[("a", 10), ("b", 25), ("both", 0), ("next", 0)],
            &[(2, 0, OneWay, 1), (2, 1, OneWay, 2), (3, 2, OneWay, 1)],
        );
        let both = Handle::at(2);
        operations
            .change(both, |info| info.kind = InfoKind::Conjunction)
            .unwrap();
        let graph = Graph::new(&operations);
        let streams = graph.streams().unwrap();
        assert_eq!(streams.of[2], [(1, 2)]);
        assert_eq!(streams.of[3], [(1, 2)]);
        assert_eq!(graph.waited_for(2, &streams), [0]);
    }

    #[test]
    fn the_slowest_supplier_is_the_one_of_the_fewest_events_and_only_those_count() {
        // The first makes an event every 4, which is 0.25; the second three every 10, which is 0.3.
        let edges = [
            (2, 0, OneWay, 1),
            (2, 1, OneWay, 3),
            (3, 0, OneWay, 5),
            (0, 2, TwoWay, 7),
        ];
        let mut operations = set(&[("a", 4), ("b", 10), ("both", 0), ("log", 0)], &edges);
        // Two-way calls reach the conjunction beside the events that it combines.
        operations
            .change(Handle::at(2), |info| info.kind = InfoKind::Conjunction)
            .unwrap();
        let graph = Graph::new(&operations);
        let streams = graph.streams().unwrap();
        assert_eq!(streams.carrier, [None, None, Some(0), None]);
        assert_eq!(streams.of[2], [(0, 7 + 1)]);
        assert_eq!(streams.of[3], [(0, 5)]);
        assert_eq!(graph.waited_for(2, &streams), [1]);
        // The first runs twice every 100, which is 0.02; the second once every 10, which is 0.1.
        let edges = [(1, 0, OneWay, 2), (3, 1, OneWay, 1), (3, 2, OneWay, 1)];
        let names = [("timer", 100), ("twice", 0), ("once", 10), ("both", 0)];
        let mut operations = set(&names, &edges);
        operations
            .change(Handle::at(3), |info| info.kind = InfoKind::Conjunction)
            .unwrap();
        let streams = Graph::new(&operations).streams().unwrap();
        assert_eq!(streams.carrier[3], Some(1));
    }

    #[test]
    fn threads_give_a_consumer_its_own_timer() {
        let mut operations = set(&[("timer", 10), ("consumer", 25)], &[(1, 0, OneWay, 1)]);
        operations
            .change(Handle::at(1), |info| info.threads = 1)
            .unwrap();
        let graph = Graph::new(&operations);
        assert!(graph.is_timed(1));
        assert_eq!(graph.streams().unwrap().of[1], [(0, 1), (1, 1)]);
    }

    #[test]
    fn the_pairs_of_operations_and_timers_are_bounded() {
        // 256 timers have a stream each. A hub and 254 consumers of its events have those of all timers.
        let (timers, consumers) = (256, 254);
        let mut operations = Operations::default();
        let mut add = |period_ns: u64, on: std::ops::Range<usize>| {
            let info = RtInfo {
                entry_point: operations.infos().len().to_string(),
                period_ns,
                dependencies: on
                    .map(|on| Dependency {
                        on: Handle::at(on),
                        kind: OneWay,
                        calls: 1,
                        enabled: Enabled::Enabled,
                    })
                    .collect(),
                ..RtInfo::default()
            };
            operations.add(&info).unwrap();
            operations.clone()
        };
        for _ in 0..timers {
            add(10, 0..0);
        }
        add(0, 0..timers);
        for _ in 1..consumers {
            add(0, timers..timers + 1);
        }
        let most = add(0, timers..timers + 1);
        assert_eq!(timers * (1 + 1 + consumers), STREAMS_MAX);
        assert!(Graph::new(&most).streams().is_ok());
        let one_more = add(10, 0..0);
        let found = Graph::new(&one_more).streams();
        assert_eq!(found.err(), Some(SchedError::TooManyStreams));
    }

    #[test]
    fn operations_on_a_cycle_are_found_and_those_behind_it_are_not() {
        let edges = [
            (1, 0, OneWay, 1),
            (2, 1, OneWay, 1),
            (1, 2, OneWay, 1),
            (3, 2, OneWay, 1),
        ];
        let names = [("in", 10), ("x", 0), ("y", 0), ("out", 0)];
        let operations = set(&names, &edges);
        let graph = Graph::new(&operations);
        assert_eq!(graph.cyclic, [1, 2]);
        assert_eq!(graph.order, [0, 3]);
        let itself = set(&[("a", 10)], &[(0, 0, TwoWay, 1)]);
        assert_eq!(Graph::new(&itself).cyclic, [0]);
    }

    #[test]
    fn disabled_operations_and_dependencies_take_no_part() {
        let mut operations = set(
            &[("a", 10), ("b", 0), ("c", 0)],
            &[(1, 0, OneWay, 1), (2, 0, OneWay, 1)],
        );
        operations
            .change(Handle::at(1), |info| info.enabled = Enabled::Disabled)
            .unwrap();
        let off = Dependency {
            on: Handle::at(0),
            kind: OneWay,
            calls: 1,
            enabled: Enabled::Disabled,
        };
        operations.enable_dependency(Handle::at(2), off).unwrap();
        let graph = Graph::new(&operations);
        assert_eq!(graph.order, [0, 2]);
        let streams = graph.streams().unwrap();
        assert_eq!(streams.of, [vec![(0, 1)], vec![], vec![]]);
    }

    #[test]
    fn numbers_of_calls_that_multiply_beyond_64_bits_are_an_error() {
        let most = u32::MAX;
        let operations = set(
            &[("a", 10), ("b", 0), ("c", 0), ("d", 0)],
            &[
                (1, 0, OneWay, most),
                (2, 1, OneWay, most),
                (3, 2, OneWay, most),
            ],
        );
        let found = Graph::new(&operations).streams();
        assert_eq!(found.err(), Some(SchedError::TimeOverflow));
    }
}
