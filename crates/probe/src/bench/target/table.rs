//! The table of targets.

mod events;

use deckwatch_meter::experiment::Bound;

use super::{Over, Statistic, Target};
use crate::bench::attack::Attack;
use crate::bench::case::{Beside, Case, Operation};
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
pub(super) fn all() -> impl Iterator<Item = &'static Target> {
    static ALL: (&[Target], &[Target]) = (&CALLS, &events::ALL);
    ALL.0.iter().chain(ALL.1).chain(&ATTACKS)
}

/// Those of a high lane and of a naming service under attack.
static ATTACKS: [Target; Attack::ALL.len()] = {
    const fn under(measure: &'static str, attack: Attack) -> Target {
        target(
            measure,
            Kind::Attacks,
            Case::under(attack),
            Statistic::P99,
            Bound::AtMost(if attack.is_on_names() { 2.0 } else { 1.5 }),
        )
    }
    [
        under(
            "high lane while names lead to a silent server, p99 over undisturbed",
            Attack::OutwardCalls,
        ),
        under(
            "high lane while names lead to host names without address, p99 over undisturbed",
            Attack::HostNames,
        ),
        under(
            "high lane beside a silent consumer of large events, p99 over undisturbed",
            Attack::SilentConsumer,
        ),
        under(
            "high lane while a peer takes places of consumers, suppliers and contexts, p99 over undisturbed",
            Attack::Places,
        ),
        under(
            "high lane while a peer takes all connections, p99 over undisturbed",
            Attack::Connections,
        ),
        under(
            "high lane beside unfinished messages, p99 over undisturbed",
            Attack::UnfinishedMessages,
        ),
        under(
            "high lane beside silent shared-memory connections, p99 over undisturbed",
            Attack::SharedMemory,
        ),
        under(
            "high lane beside CancelRequests behind half a message, p99 over undisturbed",
            Attack::Cancels,
        ),
        under(
            "names while contexts lead to a silent server, p99 over undisturbed",
            Attack::SilentContexts,
        ),
        under(
            "names while a context leads back to its service, p99 over undisturbed",
            Attack::CircularContexts,
        ),
    ]
};

/// Those of calls and messages.
const CALLS: [Target; 20] = {
    use Bound::{AtLeast, AtMost};
    use Kind::{Call, Objects, Priority, Rate, Stream, Tls};
    use Statistic::{P50, P99};
    const RATED: Case = kind::SMALL.every(kind::RATE_PERIOD_NS);
    const URGENT: Case = kind::SMALL.every(kind::PRIORITY_PERIOD_NS);
    const MANY: Case = kind::SMALL.beside(Beside::OneObject);
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
        Target {
            variant: Variant::Tls,
            ..target(
                "two-way 64 B over TLS, p50 over plain TCP",
                Tls,
                kind::SMALL.beside(Beside::PlainCalls),
                P50,
                AtMost(1.35),
            )
        },
        Target {
            variant: Variant::Tls,
            over: Over::Peer(OMNIORB),
            bound: None,
            ..target(
                "two-way 64 B over TLS, p50 over omniORB's over SSL",
                Tls,
                kind::SMALL,
                P50,
                AtMost(1.0),
            )
        },
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
    ]
};
