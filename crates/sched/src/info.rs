//! Operations as they are declared: `RT_Info` of TAO's scheduling service (`RtecScheduler::RT_Info`), in nanoseconds.

use std::fmt;

/// Names an operation. Handles are given out from 1 on, as in TAO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub(crate) u32);

impl Handle {
    /// Returns the handle with this number; `None` for 0.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number == 0 {
            None
        } else {
            Some(Self(number))
        }
    }

    /// Returns its number, from 1 on.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the position of its operation in [`crate::Operations::infos`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize - 1
    }

    pub(crate) const fn at(index: usize) -> Self {
        Self(index as u32 + 1)
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An operation's declaration: what it costs, and what triggers it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtInfo {
    /// Its name, unique in a schedule.
    pub entry_point: String,
    /// Longest execution time.
    pub worst_case_ns: u64,
    /// Usual execution time. The analysis does not use it.
    pub typical_ns: u64,
    /// Execution time of a repeated call whose data are cached. The analysis does not use it.
    pub cached_ns: u64,
    /// Period of its timer, or the least time between two of its events from outside; 0 if only calls trigger it.
    pub period_ns: u64,
    /// Deadline, counted from the release of the timer that triggers it; `None` for that timer's period.
    pub deadline_ns: Option<u64>,
    /// Release jitter of its timer: the longest time from when it is due until it is released.
    pub jitter_ns: u64,
    /// Offset of its timer from the start of its transaction's period.
    pub offset_ns: u64,
    /// Operations with the same number have timers with a fixed phase, if they have the same period too.
    pub transaction: Option<u32>,
    /// Longest time for which operations of lower priority can block it (a priority-inheriting or -ceiling mutex).
    pub blocking_ns: u64,
    /// How bad a missed deadline is.
    pub criticality: Criticality,
    /// Orders operations of equal priority.
    pub importance: Importance,
    /// Time slice of a background operation. The analysis does not use it.
    pub quantum_ns: u64,
    /// Threads of its own: an operation with threads has a timer even if calls trigger it too.
    pub threads: u32,
    /// How several triggers are combined.
    pub kind: InfoKind,
    /// Whether it takes part.
    pub enabled: Enabled,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// A dependency of one operation on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The operation depended on.
    pub on: Handle,
    /// Whether the operation calls `on`, or events of `on` trigger it.
    pub kind: CallKind,
    /// Calls in each execution of the caller. 0 calls nothing.
    pub calls: u32,
    /// Whether it takes part.
    pub enabled: Enabled,
}

/// The direction of a dependency (`RtecBase::Dependency_Type_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// Events of the operation depended on trigger the dependent operation; it runs in a dispatch of its own.
    OneWay,
    /// The dependent operation calls the operation depended on, and waits for its result; the call runs at the caller's
    /// priority, within the caller's execution.
    TwoWay,
}

/// Whether an operation or a dependency takes part in the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enabled {
    /// It does not.
    Disabled,
    /// It does.
    #[default]
    Enabled,
    /// It does, and a change of mode leaves it alone.
    NonVolatile,
}

impl Enabled {
    /// Whether it takes part.
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Disabled)
    }
}

/// How several triggers of an operation are combined (`RtecScheduler::Info_Type_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InfoKind {
    /// An ordinary operation: each event triggers it.
    #[default]
    Operation,
    /// One event of each operation that it depends on triggers it.
    Conjunction,
    /// Each event triggers it.
    Disjunction,
    /// An operation of another host triggers it; its rate is the declared period.
    RemoteDependant,
}

/// How bad a missed deadline is (`RtecScheduler::Criticality_t`), from the least to the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the standard's")]
pub enum Criticality {
    VeryLow,
    Low,
    #[default]
    Medium,
    High,
    VeryHigh,
}

/// Orders operations of equal priority (`RtecScheduler::Importance_t`), from the least to the greatest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are the standard's")]
pub enum Importance {
    VeryLow,
    Low,
    #[default]
    Medium,
    High,
    VeryHigh,
}

impl Criticality {
    /// Whether the critical set of MUF and RMS-Dyn contains the operation: high or very high.
    #[must_use]
    pub const fn is_critical(self) -> bool {
        matches!(self, Self::High | Self::VeryHigh)
    }
}
