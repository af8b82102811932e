//! What the minor codes of real-time CORBA mean, in words; as the others in `explain`.

use crate::{SystemExceptionKind as Kind, minor, own_minor as own};

/// What is known of a minor code, by kind and number.
pub(crate) const FACTS: &[(Kind, u32, &str, &str)] = &[
    (
        Kind::DataConversion,
        minor::PRIORITY_UNMAPPABLE,
        "the priority mapping has no counterpart for a priority",
        "choose another priority, or another mapping with -ORBPriorityMapping",
    ),
    (
        Kind::InvPolicy,
        minor::POLICIES_IRRECONCILABLE,
        "the reference carries a policy that the caller has set too, to another value",
        "let one of them say nothing",
    ),
    (
        Kind::NoPermission,
        own::PRIORITY_DENIED,
        "the host does not let a thread have this priority",
        "grant CAP_SYS_NICE or a higher RLIMIT_RTPRIO, or give -ORBSchedPolicy SCHED_OTHER",
    ),
    (
        Kind::NoPermission,
        own::NETWORK_PRIORITY_DENIED,
        "the host does not let a connection have this network priority",
        "grant CAP_NET_ADMIN, or map to a lower one",
    ),
    (
        Kind::NoPermission,
        own::POLICY_NOT_OF_CALLERS,
        "the policy is one of object adapters, not of callers",
        "give it to create_poa",
    ),
    (
        Kind::Initialize,
        own::PRIORITY_UNSET,
        "the thread has no CORBA priority",
        "set the_priority of RTCurrent first",
    ),
    (
        Kind::InvPolicy,
        own::BANDS_MISSED,
        "the priority of the caller is in none of the bands of its connections",
        "",
    ),
    (
        Kind::InvPolicy,
        own::LANES_MISSED,
        "the server has no lane for the priority of the caller",
        "`deckwatch ior` shows the priorities that it has lanes for",
    ),
    (
        Kind::InvPolicy,
        own::BANDS_WITHOUT_MODEL,
        "bands of priorities were set for an object that has no priority model",
        "",
    ),
    (
        Kind::InvPolicy,
        own::PROTOCOLS_MISSED,
        "the object cannot be asked by any of the protocols of the client protocol policy",
        "",
    ),
];
