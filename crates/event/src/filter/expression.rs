//! A filter as an expression: nodes in prefix order, each with the end of its operands.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use super::{Entry, FilterError, Header, Input, build};

/// A checked filter. It is not deeper than [`crate::limits::FILTER_NESTING_MAX`], so that it may be walked recursively.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// In prefix order; the first is the disjunction of the whole list.
    pub(super) nodes: Box<[Node]>,
    pub(super) conjunctions: Box<[Conjunction]>,
    pub(super) timers: Box<[Timer]>,
    pub(super) entry_count: u32,
}

/// A timeout of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// How it repeats.
    pub kind: TimerKind,
    /// The time until it fires.
    pub period: Duration,
}

/// How a timeout repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// It fires once.
    OneShot,
    /// It fires in each period.
    Interval,
    /// As an interval, and each emission restarts it.
    Deadline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// The index behind its last operand.
    pub(super) end: u32,
    /// The index of its entry in the list; 0 for the whole list.
    pub(super) entry: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AnyOf,
    /// With its index in [`Filter::conjunctions`].
    Conjunction(u32),
    And,
    Not,
    Bitmask {
        types: i32,
        sources: i32,
    },
    Type(Header),
    Masked {
        masks: Header,
        values: Header,
    },
    All,
    /// With its index in [`Filter::timers`].
    Timer(u32),
}

/// The place of a conjunction's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Conjunction {
    /// Its first bit in the bit vector.
    pub(super) first: u32,
    /// Number of its operands.
    pub(super) count: u32,
    /// The index behind the last conjunction below it.
    pub(super) end: u32,
}

impl Filter {
    /// Builds the filter of a list.
    ///
    /// # Errors
    /// What is wrong with the list, and at which entry.
    pub fn build(entries: &[Entry]) -> Result<Self, FilterError> {
        build::build(entries)
    }

    /// Returns true if the filter emits or keeps the input in some state of its match.
    #[must_use]
    pub fn matches(&self, input: Input) -> bool {
        self.matches_at(0, input)
    }

    /// Returns the part that an input matches first: the index of its entry. Of a stateless filter it is the part that
    /// emits the event.
    #[must_use]
    pub fn part(&self, input: Input) -> Option<u32> {
        let mut at = 0;
        while let Kind::AnyOf | Kind::Bitmask { .. } = self.nodes[at].kind {
            at = self
                .operands(at)
                .find(|each| self.matches_at(*each, input))?;
        }
        Some(self.nodes[at].entry)
    }

    /// Returns the entries of each part. A part emits on its own: a leaf of disjunctions, or a CONJUNCTION, a
    /// LOGICAL_AND or a NEGATION with all its operands. Its first entry names it.
    pub fn parts(&self) -> impl Iterator<Item = Range<u32>> + use<'_> {
        let (mut at, count) = (0, self.nodes.len());
        std::iter::from_fn(move || {
            while at < count && matches!(self.nodes[at].kind, Kind::AnyOf | Kind::Bitmask { .. }) {
                at += 1;
            }
            let part = self.nodes.get(at)?;
            at = part.end as usize;
            let behind = self
                .nodes
                .get(at)
                .map_or(self.entry_count, |next| next.entry);
            Some(part.entry..behind)
        })
    }

    /// Returns true if the filter emits every event that it matches, alone and at once. Such a filter needs no
    /// [`super::MatchState`].
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.conjunctions.is_empty() && self.timers.is_empty()
    }

    /// Returns true if the filter matches every event that its [`Filter::keys`] match.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let is_plain = |node: &Node| matches!(node.kind, Kind::AnyOf | Kind::Type(_));
        self.nodes.iter().all(is_plain)
    }

    /// Timeouts, in the order of the list.
    #[must_use]
    pub fn timers(&self) -> &[Timer] {
        &self.timers
    }

    /// Entries of the list that it was built from.
    #[must_use]
    pub const fn entry_count(&self) -> usize {
        self.entry_count as usize
    }

    /// How often its timeouts may fire in a second, each that repeats once at least.
    #[must_use]
    pub fn timeout_rate(&self) -> usize {
        let repeating = self
            .timers
            .iter()
            .filter(|it| it.kind != TimerKind::OneShot);
        let in_a_second = |it: &Timer| {
            let times = Duration::from_secs(1).as_nanos() / it.period.as_nanos().max(1);
            usize::try_from(times).unwrap_or(usize::MAX).max(1)
        };
        repeating.map(in_a_second).fold(0, usize::saturating_add)
    }

    /// Source and type of all events that the filter may match, where 0 is any. `None` if only the filter itself knows.
    #[must_use]
    pub fn keys(&self) -> Option<BTreeSet<(i32, i32)>> {
        self.keys_at(0)
    }

    /// Indices of the operands of a node.
    pub(super) fn operands(&self, at: usize) -> impl Iterator<Item = usize> + use<'_> {
        let end = self.nodes[at].end as usize;
        let inside = move |next: usize| (next < end).then_some(next);
        std::iter::successors(inside(at + 1), move |last| {
            inside(self.nodes[*last].end as usize)
        })
    }

    pub(super) fn matches_at(&self, at: usize, input: Input) -> bool {
        let any = || self.operands(at).any(|each| self.matches_at(each, input));
        let (kind, event) = match (self.nodes[at].kind, input) {
            (Kind::AnyOf | Kind::Conjunction(_) | Kind::Bitmask { .. }, Input::Timer(_)) => {
                return any();
            }
            (kind, Input::Timer(fired)) => return kind == Kind::Timer(fired),
            (kind, Input::Event(event)) => (kind, event),
        };
        match kind {
            Kind::AnyOf | Kind::Conjunction(_) => any(),
            Kind::And => self.operands(at).all(|each| self.matches_at(each, input)),
            Kind::Not => !any(),
            Kind::Bitmask { types, sources } => {
                event.event_type & types != 0 && event.source & sources != 0 && any()
            }
            Kind::Type(wanted) => wanted.matches(event),
            Kind::Masked { masks, values } => {
                event.event_type & masks.event_type == values.event_type
                    && event.source & masks.source == values.source
            }
            Kind::All => true,
            Kind::Timer(_) => false,
        }
    }

    fn keys_at(&self, at: usize) -> Option<BTreeSet<(i32, i32)>> {
        match self.nodes[at].kind {
            Kind::AnyOf | Kind::Conjunction(_) | Kind::Bitmask { .. } => self
                .operands(at)
                .try_fold(BTreeSet::new(), |mut keys, each| {
                    keys.append(&mut self.keys_at(each)?);
                    Some(keys)
                }),
            // What matches all operands matches the one with the fewest keys.
            Kind::And => self
                .operands(at)
                .filter_map(|each| self.keys_at(each))
                .min_by_key(BTreeSet::len),
            Kind::Type(header) => Some(BTreeSet::from([(header.source, header.event_type)])),
            Kind::Not | Kind::Masked { .. } | Kind::All => None,
            Kind::Timer(_) => Some(BTreeSet::new()),
        }
    }
}
