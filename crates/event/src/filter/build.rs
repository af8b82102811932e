//! Builds a filter from the list of a peer, without recursion: the list may be hostile.

use std::time::Duration;

use super::designator;
use super::expression::{Conjunction, Kind, Node};
use super::{Entry, Filter, FilterError, FilterFact, Header, Timer, TimerKind};
use crate::limits::{FILTER_ENTRIES_MAX, FILTER_NESTING_MAX, FILTER_TIMERS_MAX, TIMEOUT_MIN};

/// A node whose operands are not complete.
struct Open {
    node: usize,
    /// The entry that opened it.
    entry: usize,
    left: Left,
    /// Operands so far.
    count: u32,
}

/// Operands that a node still takes.
enum Left {
    /// At least one more.
    Exactly(u32),
    UntilGroup,
    UntilEnd,
}

struct Builder {
    nodes: Vec<Node>,
    conjunctions: Vec<Conjunction>,
    timers: Vec<Timer>,
    entry_count: u32,
    /// The innermost last. The first is the whole list.
    open: Vec<Open>,
}

pub(super) fn build(entries: &[Entry]) -> Result<Filter, FilterError> {
    if entries.len() > FILTER_ENTRIES_MAX {
        return Err(error(FilterFact::TooManyEntries, FILTER_ENTRIES_MAX));
    }
    let mut builder = Builder {
        nodes: Vec::with_capacity(entries.len() + 1),
        conjunctions: Vec::new(),
        timers: Vec::new(),
        entry_count: entries.len() as u32,
        open: Vec::new(),
    };
    builder.open(Kind::AnyOf, Left::UntilEnd, 0)?;
    let mut at = 0;
    while at < entries.len() {
        at = builder.take(entries, at)?;
    }
    builder.finish()
}

impl Builder {
    /// Takes the entry at `at` with its masks and values. Returns the index of the next one.
    fn take(&mut self, entries: &[Entry], at: usize) -> Result<usize, FilterError> {
        let Entry {
            event_type,
            source,
            time,
        } = entries[at];
        let header_at = |index: usize, fact| {
            let found = entries.get(index).ok_or(error(fact, at))?;
            Ok(Header {
                event_type: found.event_type,
                source: found.source,
            })
        };
        match event_type {
            designator::GLOBAL | designator::DISJUNCTION => {
                self.open_group(Kind::AnyOf, source, at)?;
            }
            designator::CONJUNCTION => {
                let kind = Kind::Conjunction(self.conjunctions.len() as u32);
                self.open_group(kind, source, at)?;
                self.conjunctions.push(Conjunction::default());
            }
            designator::LOGICAL_AND => self.open_group(Kind::And, source, at)?,
            designator::NEGATION => self.open(Kind::Not, Left::Exactly(1), at)?,
            designator::BITMASK => {
                let masks = header_at(at + 1, FilterFact::MasksMissing)?;
                let kind = Kind::Bitmask {
                    types: masks.event_type,
                    sources: masks.source,
                };
                self.open(kind, Left::Exactly(1), at)?;
                return Ok(at + 2);
            }
            designator::MASKED_TYPE => {
                let masks = header_at(at + 1, FilterFact::MasksMissing)?;
                let values = header_at(at + 2, FilterFact::ValuesMissing)?;
                self.leaf(Kind::Masked { masks, values }, at);
                return Ok(at + 3);
            }
            designator::NULL => self.leaf(Kind::All, at),
            designator::TIMEOUT => self.timer(TimerKind::OneShot, time, at)?,
            designator::INTERVAL_TIMEOUT => self.timer(TimerKind::Interval, time, at)?,
            designator::DEADLINE_TIMEOUT => self.timer(TimerKind::Deadline, time, at)?,
            _ => self.leaf(Kind::Type(Header { event_type, source }), at),
        }
        Ok(at + 1)
    }

    /// Opens a group. It ends the groups without a number of operands that are open.
    fn open_group(&mut self, kind: Kind, count: i32, at: usize) -> Result<(), FilterError> {
        let left = match count {
            0 => Left::UntilGroup,
            1.. => Left::Exactly(count as u32),
            _ => return Err(error(FilterFact::CountNegative, at)),
        };
        while let Some(Open {
            left: Left::UntilGroup,
            ..
        }) = self.open.last()
        {
            self.close();
        }
        self.open(kind, left, at)
    }

    fn open(&mut self, kind: Kind, left: Left, entry: usize) -> Result<(), FilterError> {
        if self.open.len() > FILTER_NESTING_MAX {
            return Err(error(FilterFact::TooDeep, entry));
        }
        self.open.push(Open {
            node: self.nodes.len(),
            entry,
            left,
            count: 0,
        });
        self.nodes.push(Node {
            kind,
            end: 0,
            entry: entry as u32,
        });
        Ok(())
    }

    fn leaf(&mut self, kind: Kind, entry: usize) {
        let end = self.nodes.len() as u32 + 1;
        let entry = entry as u32;
        self.nodes.push(Node { kind, end, entry });
        self.count_operand();
    }

    fn timer(&mut self, kind: TimerKind, time: u64, at: usize) -> Result<(), FilterError> {
        let period = Duration::from_nanos(time.saturating_mul(100));
        if self.timers.len() == FILTER_TIMERS_MAX {
            return Err(error(FilterFact::TooManyTimers, at));
        }
        if kind != TimerKind::OneShot && period < TIMEOUT_MIN {
            return Err(error(FilterFact::TimeoutTooShort, at));
        }
        self.leaf(Kind::Timer(self.timers.len() as u32), at);
        self.timers.push(Timer { kind, period });
        Ok(())
    }

    /// Counts an operand of the innermost open node, and closes the nodes that it completes.
    fn count_operand(&mut self) {
        let Some(innermost) = self.open.last_mut() else {
            return;
        };
        innermost.count += 1;
        if let Left::Exactly(left) = &mut innermost.left {
            *left -= 1;
            if *left == 0 {
                self.close();
            }
        }
    }

    /// Closes the innermost open node. The recursion with `count_operand` ends at [`FILTER_NESTING_MAX`].
    fn close(&mut self) {
        let Some(Open { node, count, .. }) = self.open.pop() else {
            return;
        };
        self.nodes[node].end = self.nodes.len() as u32;
        if let Kind::Conjunction(index) = self.nodes[node].kind {
            let end = self.conjunctions.len() as u32;
            self.conjunctions[index as usize] = Conjunction {
                first: 0,
                count,
                end,
            };
        }
        self.count_operand();
    }

    fn finish(mut self) -> Result<Filter, FilterError> {
        while let Some(innermost) = self.open.last() {
            if let Left::Exactly(left) = innermost.left {
                return Err(error(FilterFact::OperandsMissing(left), innermost.entry));
            }
            self.close();
        }
        let mut first = 0;
        for conjunction in &mut self.conjunctions {
            conjunction.first = first;
            first += conjunction.count;
        }
        Ok(Filter {
            nodes: self.nodes.into(),
            conjunctions: self.conjunctions.into(),
            entry_count: self.entry_count,
            timers: self.timers.into(),
        })
    }
}

fn error(fact: FilterFact, entry: usize) -> FilterError {
    FilterError {
        fact,
        entry: entry as u32,
    }
}
