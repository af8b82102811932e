//! The table of targets.

use deckwatch_meter::experiment::Bound;

use super::{Over, Statistic, Target};
use crate::bench::case::{Beside, Case, Consumers, Operation};
use crate::bench::kind::{self, Kind};
use crate::laboratory::{OMNIORB, Variant};

const fn target(
    measure: &'static str,
    kind: Kind,
    case: Case,
    statistic: Statistic,
    bound: Bound,
) -> Target {
    Target {
        measure,
        kind,
        case,
        variant: Variant::Plain,
        statistic,
        over: Over::Baseline,
        bound: Some(bound),
    }
}

/// All targets of cases, in the order of the printed table.
pub(super) const TARGETS: [Target; 27] = {
    use Bound::{AtLeast, AtMost};
    use Kind::{Call, Events, Objects, Priority, Rate, Stream};
    use Statistic::{P50, P99};
    const RATED: Case = kind::SMALL.every(kind::RATE_PERIOD_NS);
    const URGENT: Case = kind::SMALL.every(kind::PRIORITY_PERIOD_NS);
    const MANY: Case = kind::SMALL.beside(Beside::OneObject);
    const fn push(to: Consumers) -> Case {
        Case::push(Operation::Push, kind::EVENT_SIZE, to)
    }
    const fn push_stream(to: Consumers) -> Case {
        Case::push(Operation::PushStream, kind::EVENT_SIZE, to)
    }
    [
        target(
            "two-way 64 B, p50 over raw TCP",
            Call,
            kind::SMALL,
            P50,
            AtMost(1.06),
        ),
        target(
            "two-way 64 B, p99 over raw TCP",
            Call,
            kind::SMALL,
            P99,
            AtMost(1.15),
        ),
        Target {
            over: Over::Peer(OMNIORB),
            ..target(
                "two-way 64 B, p50 over omniORB's",
                Call,
                kind::SMALL,
                P50,
                AtMost(1.0),
            )
        },
        Target {
            variant: Variant::SharedPoller,
            ..target(
                "two-way 64 B through a shared poller, p50 over raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(1.12),
            )
        },
        Target {
            variant: Variant::SharedMemory,
            ..target(
                "two-way 64 B through shared memory, p50 over raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(0.6),
            )
        },
        Target {
            variant: Variant::Spinning,
            ..target(
                "two-way 64 B on a spinning lane, p50 over spinning raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(1.10),
            )
        },
        Target {
            variant: Variant::SpinningSharedMemory,
            ..target(
                "two-way 64 B through shared memory, spinning, p50 over spinning raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(0.15),
            )
        },
        target(
            "two-way 8 KiB octets, p50 over raw TCP",
            Call,
            Case::new(Operation::Octets, 8_192),
            P50,
            AtMost(1.10),
        ),
        target(
            "two-way 64 KiB ComplexStruct both ways, p50 over raw TCP",
            Call,
            Case::new(Operation::Structs, 65_536),
            P50,
            AtMost(2.5),
        ),
        target(
            "one call every 10 ms, p50 over raw TCP",
            Rate,
            RATED,
            P50,
            AtMost(1.15),
        ),
        target(
            "one-way 64 KiB octets, rate over raw TCP with the same send buffer",
            Stream,
            kind::LARGE_STREAM,
            Statistic::Rate,
            AtLeast(0.95),
        ),
        Target {
            bound: None,
            ..target(
                "one-way 64 KiB octets, rate over untuned raw TCP",
                Stream,
                kind::UNTUNED_STREAM,
                Statistic::Rate,
                AtLeast(0.0),
            )
        },
        target(
            "sink of ComplexStruct, rate over octets",
            Stream,
            kind::STRUCTS,
            Statistic::Rate,
            AtLeast(0.60),
        ),
        target(
            "sink of a struct laid out as its CDR, rate over octets",
            Stream,
            kind::PLAIN,
            Statistic::Rate,
            AtLeast(0.95),
        ),
        Target {
            over: Over::Peer(OMNIORB),
            ..target(
                "one-way 64 B, messages a second over omniORB's",
                Stream,
                kind::SMALL_STREAM,
                Statistic::Rate,
                AtLeast(1.5),
            )
        },
        target(
            "many objects active, p50 over one",
            Objects,
            MANY,
            P50,
            AtMost(1.03),
        ),
        target(
            "high priority beside many low, p50 over raw TCP",
            Priority,
            URGENT,
            P50,
            AtMost(1.2),
        ),
        target(
            "high priority beside many low, p99 over raw TCP",
            Priority,
            URGENT,
            P99,
            AtMost(1.2),
        ),
        target(
            "event to 35 consumers, an endpoint each, last receipt p50 over a raw fan-out",
            Events,
            push(kind::APART),
            P50,
            AtMost(1.3),
        ),
        target(
            "event to 35 consumers, an endpoint each, last receipt p99 over a raw fan-out",
            Events,
            push(kind::APART),
            P99,
            AtMost(1.5),
        ),
        target(
            "event to 35 consumers at one endpoint, last receipt p50 over a raw fan-out",
            Events,
            push(kind::TOGETHER),
            P50,
            AtMost(1.3),
        ),
        target(
            "event to 35 consumers at one endpoint, last receipt p99 over a raw fan-out",
            Events,
            push(kind::TOGETHER),
            P99,
            AtMost(1.5),
        ),
        Target {
            bound: None,
            ..target(
                "event to one consumer, receipt p50 over a raw relay",
                Events,
                push(kind::ONE),
                P50,
                AtMost(0.0),
            )
        },
        Target {
            bound: None,
            ..target(
                "event to one consumer, receipt p99 over a raw relay",
                Events,
                push(kind::ONE),
                P99,
                AtMost(0.0),
            )
        },
        target(
            "events a second to one consumer, over a raw relay",
            Events,
            push_stream(kind::ONE),
            Statistic::Rate,
            AtLeast(0.8),
        ),
        target(
            "events a second to 35 consumers at one endpoint, over a raw fan-out",
            Events,
            push_stream(kind::TOGETHER),
            Statistic::Rate,
            AtLeast(0.8),
        ),
        target(
            "events a second to 35 consumers, an endpoint each, over a raw fan-out",
            Events,
            push_stream(kind::APART),
            Statistic::Rate,
            AtLeast(0.8),
        ),
    ]
};
