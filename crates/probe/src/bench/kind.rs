//! The kinds of bench and their cases.

use super::attack::Attack;
use super::case::{Beside, Case, Consumers, Operation};
use crate::laboratory::{Condition, Variant};

/// One kind of bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two-way calls without pause.
    Call,
    /// Two-way calls over TLS, beside plain ones.
    Tls,
    /// Two-way calls at a mission's rate.
    Rate,
    /// One-way messages, and sequences of structs beside octets.
    Stream,
    /// Calls to one of many active objects.
    Objects,
    /// A client of high priority beside clients of low priority that never pause.
    Priority,
    /// A client of the high lane, or of a naming service, beside peers that attack the server.
    Attacks,
    /// Events through a channel to one consumer and to many.
    Events,
    /// Allocations, locks and system calls of a request.
    Counters,
    /// Memory of a server.
    Memory,
}

impl Kind {
    /// All kinds, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::Call,
        Self::Tls,
        Self::Rate,
        Self::Stream,
        Self::Objects,
        Self::Priority,
        Self::Attacks,
        Self::Events,
        Self::Counters,
        Self::Memory,
    ];

    /// Its name in commands.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Tls => "call-tls",
            Self::Rate => "rate",
            Self::Stream => "stream",
            Self::Objects => "objects",
            Self::Priority => "priority",
            Self::Attacks => "attacks",
            Self::Events => "events",
            Self::Counters => "counters",
            Self::Memory => "memory",
        }
    }

    /// The default cases.
    #[must_use]
    pub fn cases(self) -> Vec<Case> {
        match self {
            Self::Call => [64, 1_024, 8_192, 65_536]
                .map(|size| Case::new(Operation::Octets, size))
                .into_iter()
                .chain([64, 1_024, 65_536].map(|size| Case::new(Operation::Structs, size)))
                .collect(),
            Self::Tls => {
                Self::over_tls([64, 8_192, 65_536].map(|size| Case::new(Operation::Octets, size)))
            }
            Self::Rate => vec![SMALL.every(RATE_PERIOD_NS)],
            Self::Stream => vec![LARGE_STREAM, UNTUNED_STREAM, STRUCTS, PLAIN, SMALL_STREAM],
            Self::Objects => vec![SMALL.beside(Beside::OneObject)],
            Self::Priority => vec![SMALL.every(PRIORITY_PERIOD_NS)],
            Self::Attacks => Attack::ALL.map(Case::under).to_vec(),
            Self::Events => EVENT_OPERATIONS
                .into_iter()
                .flat_map(|operation| {
                    [ONE, TOGETHER, APART].map(|to| Case::push(operation, EVENT_SIZE, to))
                })
                .chain([OTHERS, URGENT])
                .collect(),
            Self::Counters | Self::Memory => Vec::new(),
        }
    }

    /// The cases of [`Self::Tls`] for these calls: each beside the same call without TLS, and the smallest one beside
    /// raw TCP too, which compares the systems.
    #[must_use]
    pub fn over_tls(calls: impl IntoIterator<Item = Case>) -> Vec<Case> {
        let beside = calls
            .into_iter()
            .map(|case| case.beside(Beside::PlainCalls));
        std::iter::once(SMALL).chain(beside).collect()
    }

    /// Counts and memory do not depend on the condition.
    pub(super) const fn is_independent_of_condition(self) -> bool {
        matches!(self, Self::Counters | Self::Memory)
    }

    /// The variants of our ends that are measured in `condition`.
    pub(super) const fn variants(self, condition: Condition) -> &'static [Variant] {
        match (self, condition) {
            (Self::Call, Condition::Spinning) => {
                &[Variant::Spinning, Variant::SpinningSharedMemory]
            }
            (Self::Call, Condition::Pinned) => {
                &[Variant::Plain, Variant::SharedPoller, Variant::SharedMemory]
            }
            (Self::Counters | Self::Memory, _) => &[Variant::Plain],
            (_, Condition::Spinning) => &[],
            (Self::Tls, _) => &[Variant::Tls],
            _ => &[Variant::Plain],
        }
    }
}

/// The smallest call of the targets.
pub(super) const SMALL: Case = Case::new(Operation::Octets, 64);
/// The call of a naming service under attack.
pub(super) const RESOLVE: Case = Case::new(Operation::Resolve, 16);
pub(super) const LARGE_STREAM: Case = Case::new(Operation::StreamOctets, 65_536);
pub(super) const UNTUNED_STREAM: Case = LARGE_STREAM.beside(Beside::UntunedRawTcp);
pub(super) const SMALL_STREAM: Case = Case::new(Operation::StreamOctets, 64);
pub(super) const STRUCTS: Case = Case::new(Operation::SinkStructs, 65_536).beside(Beside::Octets);
pub(super) const PLAIN: Case = Case::new(Operation::SinkPlain, 65_536).beside(Beside::Octets);

/// Octets of an event.
pub(super) const EVENT_SIZE: usize = 384;
const EVENT_OPERATIONS: [Operation; 4] = [
    Operation::Push,
    Operation::PushStream,
    Operation::RtPush,
    Operation::RtPushStream,
];
/// An event beside consumers of other events.
pub(super) const OTHERS: Case =
    Case::push(Operation::RtPush, EVENT_SIZE, ONE).beside(Beside::NoOthers);
/// An event of high priority beside a flow of low priority.
pub(super) const URGENT: Case = Case::push(Operation::RtPush, EVENT_SIZE, ONE)
    .every(PRIORITY_PERIOD_NS)
    .beside(Beside::NoLoad);
/// One consumer.
pub(super) const ONE: Consumers = Consumers::together(1);
/// The destinations of the submarine paper, in one ORB, and with an ORB each.
pub(super) const TOGETHER: Consumers = Consumers::together(35);
pub(super) const APART: Consumers = Consumers::apart(35);

/// The period of a mission's calls: ten milliseconds.
pub(super) const RATE_PERIOD_NS: u64 = 10_000_000;

/// The period of the high-priority client. It leaves most of the time to the others, and one run has enough calls for a
/// p99.
pub(super) const PRIORITY_PERIOD_NS: u64 = 800_000;
