//! A schedule file as it is written: the shape that the JSON Schema publishes and serde reads.
//!
//! Doc comments here are what the schema tells an editor, and what an error tells the user; values keep their place
//! in the file.

use deckwatch_sched::{CallKind, Criticality, Importance, InfoKind, Strategy};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use crate::mission::DurationText;

/// A schedule: operations with their periods and execution times, and the strategy that orders them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Name of the schedule
    #[schemars(length(min = 1, max = 100), extend("examples" = ["navigation"]))]
    pub(super) name: String,
    /// What it is, for people
    #[serde(default)]
    pub(super) description: Option<String>,
    /// Which priorities operations get; rms if not given
    #[serde(default)]
    #[schemars(with = "Option<StrategyWord>", extend("examples" = ["rms"]))]
    pub(super) strategy: StrategyWord,
    /// Processor time that each dispatch takes beside the operation's own; none if not given
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["15us"]))]
    pub(super) overhead: Option<DurationText>,
    /// What a deadline or laxity queue does when a more urgent operation comes; preempt if not given
    #[serde(default)]
    #[schemars(with = "Option<Queue>", extend("examples" = ["run-to-completion"]))]
    pub(super) queue: Queue,
    /// The operations
    #[schemars(length(min = 1, max = 4096))]
    pub(super) operations: Vec<Operation>,
}

/// A scheduling strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StrategyWord {
    /// Rate monotonic: a static priority for each period
    #[default]
    Rms,
    /// Earliest deadline first
    Edf,
    /// Minimum laxity first
    Mlf,
    /// Maximum urgency first: a priority for each criticality, ordered by laxity
    Muf,
    /// Static priorities for critical operations, laxity for the others
    RmsDyn,
}

/// What a deadline or laxity queue does when a more urgent operation comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Queue {
    /// The running operation waits
    #[default]
    Preempt,
    /// The running operation ends first, as in an event channel's lane
    RunToCompletion,
}

/// An operation: what it costs, and what triggers it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Operation {
    /// Name of the operation
    #[schemars(with = "String", length(min = 1, max = 200), extend("examples" = ["Sonar::track"]))]
    pub(super) name: Spanned<String>,
    /// Its longest execution time
    #[schemars(extend("examples" = ["2ms"]))]
    pub(super) worst_case: DurationText,
    /// Its usual execution time, for people
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["1ms"]))]
    pub(super) typical: Option<DurationText>,
    /// Execution time of a repeated call, for people
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["1ms"]))]
    pub(super) cached: Option<DurationText>,
    /// Period of its timer, or the least time between two events from outside; without one, others trigger it
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["50ms"]))]
    pub(super) period: Option<Spanned<DurationText>>,
    /// Its deadline, from the release of the timer that triggers it; that timer's period if not given
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["20ms"]))]
    pub(super) deadline: Option<DurationText>,
    /// The longest time from when its timer is due until it is released
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["100us"]))]
    pub(super) jitter: Option<DurationText>,
    /// Offset of its timer from the start of its transaction's period
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["10ms"]))]
    pub(super) offset: Option<DurationText>,
    /// Timers of one transaction and of one period keep their offsets to each other
    #[serde(default)]
    #[schemars(length(min = 1, max = 100), extend("examples" = ["frame"]))]
    pub(super) transaction: Option<String>,
    /// The longest time for which operations of lower priority can block it
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["200us"]))]
    pub(super) blocking: Option<DurationText>,
    /// How bad a missed deadline is; medium if not given
    #[serde(default)]
    #[schemars(with = "Option<Degree>", extend("examples" = ["high"]))]
    pub(super) criticality: Degree,
    /// Orders operations of equal priority; medium if not given
    #[serde(default)]
    #[schemars(with = "Option<Degree>", extend("examples" = ["high"]))]
    pub(super) importance: Degree,
    /// Threads of its own: with one, an operation that others trigger has a timer too
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000), extend("examples" = [1]))]
    pub(super) threads: u32,
    /// How several triggers are combined; operation if not given
    #[serde(default)]
    #[schemars(with = "Option<Kind>", extend("examples" = ["conjunction"]))]
    pub(super) kind: Kind,
    /// Whether it takes part; true if not given
    #[serde(default)]
    #[schemars(extend("examples" = [false]))]
    pub(super) enabled: Option<bool>,
    /// What it depends on
    #[serde(default)]
    #[schemars(length(max = 4096), extend("examples" = [[{"on": "Nav::update"}]]))]
    pub(super) depends: Vec<Depends>,
}

/// How bad, or how important.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Degree {
    /// The least
    VeryLow,
    /// Below medium
    Low,
    /// Medium
    #[default]
    Medium,
    /// Critical
    High,
    /// The most
    VeryHigh,
}

/// How several triggers are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Each event triggers it
    #[default]
    Operation,
    /// One event of each operation that it depends on triggers it
    Conjunction,
    /// Each event triggers it
    Disjunction,
    /// An operation of another host triggers it, with the period given
    RemoteDependant,
}

/// A dependency of an operation on another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Depends {
    /// Name of the operation depended on
    #[schemars(with = "String", extend("examples" = ["Nav::update"]))]
    pub(super) on: Spanned<String>,
    /// Whether events of it trigger this operation, or this operation calls it; one-way if not given
    #[serde(default)]
    #[schemars(with = "Option<Call>", extend("examples" = ["two-way"]))]
    pub(super) kind: Call,
    /// Events or calls in each execution; 1 if not given
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000), extend("examples" = [2]))]
    pub(super) calls: Option<u32>,
    /// Whether it takes part; true if not given
    #[serde(default)]
    #[schemars(extend("examples" = [false]))]
    pub(super) enabled: Option<bool>,
}

/// The direction of a dependency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Call {
    /// Events of the operation depended on trigger this one
    #[default]
    OneWay,
    /// This operation calls the operation depended on, and waits
    TwoWay,
}

impl StrategyWord {
    pub(super) const fn strategy(self) -> Strategy {
        match self {
            Self::Rms => Strategy::Rms,
            Self::Edf => Strategy::Edf,
            Self::Mlf => Strategy::Mlf,
            Self::Muf => Strategy::Muf,
            Self::RmsDyn => Strategy::RmsDyn,
        }
    }
}

impl Degree {
    pub(super) const fn criticality(self) -> Criticality {
        match self {
            Self::VeryLow => Criticality::VeryLow,
            Self::Low => Criticality::Low,
            Self::Medium => Criticality::Medium,
            Self::High => Criticality::High,
            Self::VeryHigh => Criticality::VeryHigh,
        }
    }

    pub(super) const fn importance(self) -> Importance {
        match self {
            Self::VeryLow => Importance::VeryLow,
            Self::Low => Importance::Low,
            Self::Medium => Importance::Medium,
            Self::High => Importance::High,
            Self::VeryHigh => Importance::VeryHigh,
        }
    }
}

impl Kind {
    pub(super) const fn info_kind(self) -> InfoKind {
        match self {
            Self::Operation => InfoKind::Operation,
            Self::Conjunction => InfoKind::Conjunction,
            Self::Disjunction => InfoKind::Disjunction,
            Self::RemoteDependant => InfoKind::RemoteDependant,
        }
    }
}

impl Call {
    pub(super) const fn call_kind(self) -> CallKind {
        match self {
            Self::OneWay => CallKind::OneWay,
            Self::TwoWay => CallKind::TwoWay,
        }
    }
}
