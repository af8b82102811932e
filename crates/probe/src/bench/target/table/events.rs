//! The targets of events.

use deckwatch_meter::experiment::Bound::{self, AtLeast, AtMost};

use super::target;
use crate::bench::case::{Case, Consumers, Operation};
use crate::bench::kind::{APART, EVENT_SIZE, Kind, ONE, OTHERS, TOGETHER, URGENT};
use crate::bench::target::Statistic::{self, P50, P99, Rate};
use crate::bench::target::{Over, Target};
use crate::laboratory::foreign::{CYCLONE, OMNI_EVENTS, TAO, ZENOH};

use Operation::{Push, PushStream, RtPush, RtPushStream};

/// All targets of events, those of the COS channel first.
pub(super) const ALL: [Target; 29] = [
    row(
        "event to 35 consumers, an endpoint each, last receipt p50 over a raw fan-out",
        (Push, APART),
        P50,
        AtMost(1.3),
    ),
    row(
        "event to 35 consumers, an endpoint each, last receipt p99 over a raw fan-out",
        (Push, APART),
        P99,
        AtMost(1.5),
    ),
    row(
        "event to 35 consumers at one endpoint, last receipt p50 over a raw fan-out",
        (Push, TOGETHER),
        P50,
        AtMost(1.3),
    ),
    row(
        "event to 35 consumers at one endpoint, last receipt p99 over a raw fan-out",
        (Push, TOGETHER),
        P99,
        AtMost(1.5),
    ),
    shown(
        "event to one consumer, receipt p50 over a raw relay",
        (Push, ONE),
        P50,
    ),
    shown(
        "event to one consumer, receipt p99 over a raw relay",
        (Push, ONE),
        P99,
    ),
    row(
        "events a second to one consumer, over a raw relay",
        (PushStream, ONE),
        Rate,
        AtLeast(0.8),
    ),
    row(
        "events a second to 35 consumers at one endpoint, over a raw fan-out",
        (PushStream, TOGETHER),
        Rate,
        AtLeast(0.8),
    ),
    row(
        "events a second to 35 consumers, an endpoint each, over a raw fan-out",
        (PushStream, APART),
        Rate,
        AtLeast(0.8),
    ),
    row(
        "real-time event to 35 consumers, an endpoint each, last receipt p50 over a raw fan-out",
        (RtPush, APART),
        P50,
        AtMost(1.3),
    ),
    row(
        "real-time event to 35 consumers, an endpoint each, last receipt p99 over a raw fan-out",
        (RtPush, APART),
        P99,
        AtMost(1.5),
    ),
    row(
        "real-time event to 35 consumers at one endpoint, last receipt p50 over a raw fan-out",
        (RtPush, TOGETHER),
        P50,
        AtMost(1.3),
    ),
    row(
        "real-time event to 35 consumers at one endpoint, last receipt p99 over a raw fan-out",
        (RtPush, TOGETHER),
        P99,
        AtMost(1.5),
    ),
    shown(
        "real-time event to one consumer, receipt p50 over a raw relay",
        (RtPush, ONE),
        P50,
    ),
    shown(
        "real-time event to one consumer, receipt p99 over a raw relay",
        (RtPush, ONE),
        P99,
    ),
    row(
        "real-time events a second to one consumer, over a raw relay",
        (RtPushStream, ONE),
        Rate,
        AtLeast(0.8),
    ),
    row(
        "real-time events a second to 35 consumers at one endpoint, over a raw fan-out",
        (RtPushStream, TOGETHER),
        Rate,
        AtLeast(0.8),
    ),
    row(
        "real-time events a second to 35 consumers, an endpoint each, over a raw fan-out",
        (RtPushStream, APART),
        Rate,
        AtLeast(0.8),
    ),
    over(
        OMNI_EVENTS,
        "event to 35 consumers at one endpoint, last receipt p50 over omniEvents'",
        (Push, TOGETHER),
    ),
    over(
        OMNI_EVENTS,
        "event to 35 consumers, an endpoint each, last receipt p50 over omniEvents'",
        (Push, APART),
    ),
    over(
        CYCLONE,
        "real-time event to 35 consumers at one endpoint, last receipt p50 over Cyclone DDS'",
        (RtPush, TOGETHER),
    ),
    over(
        TAO,
        "real-time event to one consumer, receipt p50 over TAO's",
        (RtPush, ONE),
    ),
    over_p99(
        TAO,
        "real-time event to one consumer, receipt p99 over TAO's",
        (RtPush, ONE),
    ),
    over(
        TAO,
        "real-time event to 35 consumers at one endpoint, last receipt p50 over TAO's",
        (RtPush, TOGETHER),
    ),
    over_p99(
        TAO,
        "real-time event to 35 consumers at one endpoint, last receipt p99 over TAO's",
        (RtPush, TOGETHER),
    ),
    over(
        ZENOH,
        "real-time event to 35 consumers at one endpoint, last receipt p50 over zenoh's",
        (RtPush, TOGETHER),
    ),
    over(
        ZENOH,
        "real-time event to 35 consumers, an endpoint each, last receipt p50 over zenoh's",
        (RtPush, APART),
    ),
    target(
        "real-time event beside consumers of other events, p50 over one without",
        Kind::Events,
        OTHERS,
        P50,
        AtMost(1.05),
    ),
    target(
        "real-time event of high priority beside a flow of low priority, p99 over one without",
        Kind::Events,
        URGENT,
        P99,
        AtMost(2.0),
    ),
];

/// Ours over that of another system, both over the baseline of the same round.
const fn over(peer: &'static str, measure: &'static str, case: (Operation, Consumers)) -> Target {
    Target {
        over: Over::Peer(peer),
        ..row(measure, case, P50, AtMost(1.0))
    }
}

/// The same of the slowest hundredth.
const fn over_p99(
    peer: &'static str,
    measure: &'static str,
    case: (Operation, Consumers),
) -> Target {
    Target {
        statistic: P99,
        ..over(peer, measure, case)
    }
}

const fn row(
    measure: &'static str,
    (operation, consumers): (Operation, Consumers),
    statistic: Statistic,
    bound: Bound,
) -> Target {
    let case = Case::push(operation, EVENT_SIZE, consumers);
    target(measure, Kind::Events, case, statistic, bound)
}

/// Without a bound.
const fn shown(
    measure: &'static str,
    case: (Operation, Consumers),
    statistic: Statistic,
) -> Target {
    Target {
        bound: None,
        ..row(measure, case, statistic, AtMost(0.0))
    }
}
