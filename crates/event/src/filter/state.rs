//! The state of one consumer's match: what its conjunctions have collected, and when its timeouts fire.

use super::expression::{Conjunction, Kind};
use super::{Filter, Input, TimerKind};

/// The state of one consumer's match. An event of type `E` is cheap to clone.
#[derive(Clone, Debug)]
pub struct MatchState<E> {
    /// A bit for each operand of each conjunction: it has emitted.
    received: Box<[u64]>,
    /// What each conjunction has collected.
    held: Box<[Vec<E>]>,
    /// When each timer fires, by the caller's clock.
    due_ns: Box<[Option<u64>]>,
    /// The part that emitted last.
    part: u32,
}

impl<E: Clone> MatchState<E> {
    /// The state at the connect: nothing is received, and all timeouts start.
    #[must_use]
    pub fn new(filter: &Filter, now_ns: u64) -> Self {
        let bits: u32 = filter.conjunctions.iter().map(|each| each.count).sum();
        let due = filter.timers.iter().map(|timer| {
            let period_ns = timer.period.as_nanos().min(u128::from(u64::MAX)) as u64;
            now_ns.checked_add(period_ns)
        });
        Self {
            received: vec![0; (bits as usize).div_ceil(64)].into(),
            held: filter.conjunctions.iter().map(|_| Vec::new()).collect(),
            due_ns: due.collect(),
            part: 0,
        }
    }

    /// When the next timeout fires.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.due_ns.iter().flatten().min().copied()
    }

    /// Returns the part that emitted last: the index of its entry, see [`Filter::parts`].
    #[must_use]
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Number of events that conjunctions keep.
    #[must_use]
    pub fn held(&self) -> usize {
        self.kept().count()
    }

    /// The events that conjunctions keep.
    pub fn kept(&self) -> impl Iterator<Item = &E> {
        self.held.iter().flatten()
    }

    /// Has all conjunctions start anew. Returns the number of events that they kept. Timeouts go on.
    pub fn restart(&mut self) -> usize {
        let count = self.held();
        self.held.iter_mut().for_each(|held| *held = Vec::new());
        self.received.fill(0);
        count
    }

    fn has(&self, bit: u32) -> bool {
        self.received[bit as usize / 64] & 1 << (bit % 64) != 0
    }

    fn set(&mut self, bit: u32) {
        self.received[bit as usize / 64] |= 1 << (bit % 64);
    }

    fn clear(&mut self, conjunctions: &[Conjunction]) {
        for bit in conjunctions
            .iter()
            .flat_map(|each| each.first..each.first + each.count)
        {
            self.received[bit as usize / 64] &= !(1 << (bit % 64));
        }
    }
}

impl Filter {
    /// Offers an event, or a timeout's event. Appends what the filter emits to `out`, and returns true if it emits.
    pub fn offer<E: Clone>(
        &self,
        state: &mut MatchState<E>,
        input: Input,
        event: &E,
        now_ns: u64,
        out: &mut Vec<E>,
    ) -> bool {
        let emits = self.offer_at(0, state, input, event, out);
        if emits {
            for (timer, due_ns) in self.timers.iter().zip(&mut state.due_ns) {
                if timer.kind == TimerKind::Deadline {
                    *due_ns = after(now_ns, timer.period.as_nanos());
                }
            }
        }
        emits
    }

    /// Returns the index of a timer whose time is over, for [`Input::Timer`], and starts it again if it repeats. An
    /// interval keeps its phase; periods that were missed are left out.
    pub fn expired<E>(&self, state: &mut MatchState<E>, now_ns: u64) -> Option<u32> {
        let is_over = |due_ns: &Option<u64>| due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        let index = state.due_ns.iter().position(is_over)?;
        let (timer, due_ns) = (self.timers[index], &mut state.due_ns[index]);
        let period_ns = timer.period.as_nanos();
        *due_ns = match timer.kind {
            TimerKind::OneShot => None,
            TimerKind::Deadline => after(now_ns, period_ns),
            TimerKind::Interval => {
                let late_ns = u128::from(now_ns - due_ns.unwrap_or(now_ns)) % period_ns;
                after(now_ns, period_ns - late_ns)
            }
        };
        Some(index as u32)
    }

    fn offer_at<E: Clone>(
        &self,
        at: usize,
        state: &mut MatchState<E>,
        input: Input,
        event: &E,
        out: &mut Vec<E>,
    ) -> bool {
        match self.nodes[at].kind {
            Kind::AnyOf => self
                .operands(at)
                .any(|each| self.offer_at(each, state, input, event, out)),
            Kind::Bitmask { types, sources } => {
                let passes = match input {
                    Input::Timer(_) => true,
                    Input::Event(header) => {
                        header.event_type & types != 0 && header.source & sources != 0
                    }
                };
                let mut operands = self.operands(at);
                passes && operands.any(|each| self.offer_at(each, state, input, event, out))
            }
            Kind::Conjunction(index) => {
                let emits = self.offer_conjunction(at, index as usize, state, input, event, out);
                if emits {
                    state.part = self.nodes[at].entry;
                }
                emits
            }
            _ => {
                let matches = self.matches_at(at, input);
                if matches {
                    out.push(event.clone());
                    state.part = self.nodes[at].entry;
                }
                matches
            }
        }
    }

    fn offer_conjunction<E: Clone>(
        &self,
        at: usize,
        index: usize,
        state: &mut MatchState<E>,
        input: Input,
        event: &E,
        out: &mut Vec<E>,
    ) -> bool {
        let Conjunction { first, count, end } = self.conjunctions[index];
        // The vector keeps its memory.
        let mut held = std::mem::take(&mut state.held[index]);
        for (operand, bit) in self.operands(at).zip(first..) {
            if !state.has(bit) && self.offer_at(operand, state, input, event, &mut held) {
                state.set(bit);
                break;
            }
        }
        let is_complete = count > 0 && (first..first + count).all(|bit| state.has(bit));
        if is_complete {
            out.append(&mut held);
            state.clear(&self.conjunctions[index..end as usize]);
            state.held[index..end as usize]
                .iter_mut()
                .for_each(Vec::clear);
        }
        state.held[index] = held;
        is_complete
    }
}

fn after(now_ns: u64, period_ns: u128) -> Option<u64> {
    let due_ns = u128::from(now_ns) + period_ns;
    u64::try_from(due_ns).ok()
}
