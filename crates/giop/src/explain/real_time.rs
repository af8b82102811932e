//! The minor codes of real-time CORBA in words, those of the standard and our own.

use super::Known;
use crate::{SystemExceptionKind as Kind, minor, own_minor as own};

/// By kind and number.
pub(super) const CODES: &[Known] = &[
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
    (
        Kind::NoResources,
        own::PRIORITY_DENIED,
        "the host does not let the threads of the ORB have the priority of their lane or request",
        "grant CAP_SYS_NICE or a higher RLIMIT_RTPRIO, give -ORBSchedPolicy SCHED_OTHER, or allow the fallback",
    ),
    (
        Kind::NoResources,
        own::THREAD_REFUSED,
        "a thread could not be started",
        "",
    ),
    (
        Kind::NoResources,
        own::LANE_CANNOT_LISTEN,
        "a lane cannot listen where it is to",
        "see that nobody else listens at the endpoints of -ORBLaneListenEndpoints",
    ),
    (
        Kind::BadParam,
        own::LANES_MALFORMED,
        "a threadpool has no lanes, a lane no static threads, or two lanes have one priority",
        "",
    ),
    (
        Kind::BadParam,
        own::SPIN_IN_REAL_TIME,
        "the threads of a lane that spins have a real-time class, and nothing below them would run on their processors",
        "give -ORBSchedPolicy SCHED_OTHER, or lanes that do not spin",
    ),
    (
        Kind::BadInvOrder,
        own::THREADPOOL_IN_USE,
        "adapters are served by the threadpool, or it serves the caller",
        "destroy the adapters first",
    ),
    (
        Kind::BadInvOrder,
        own::OBJECT_PRIORITY_CHANGED,
        "the object has another priority already",
        "",
    ),
    (
        Kind::BadParam,
        own::PRIORITY_WITHOUT_LANE,
        "no lane of the adapter's threadpool has the priority",
        "",
    ),
    (
        Kind::InvPolicy,
        own::PROTOCOLS_OF_OTHERS,
        "another adapter of the threadpool has said other protocols for its connections",
        "give the adapters pools of their own, or the same protocols",
    ),
    (
        Kind::Transient,
        own::LANE_FULL,
        "all threads of the server's lane serve, and its buffers, or your share of them, are full",
        "try again later",
    ),
    (
        Kind::BadInvOrder,
        own::MUTEX_NOT_HELD,
        "the calling thread does not hold the mutex",
        "unlock it in the thread that has locked it",
    ),
    (
        Kind::BadInvOrder,
        own::MUTEX_DEADLOCK,
        "the calling thread would wait for itself",
        "lock each mutex once, and several in one order everywhere",
    ),
    (
        Kind::BadInvOrder,
        own::MUTEX_ABANDONED,
        "the thread that held the mutex has ended",
        "unlock it before the thread ends",
    ),
    (
        Kind::BadInvOrder,
        own::MUTEX_HELD,
        "a thread holds the mutex",
        "destroy it when nobody uses it any more",
    ),
    (
        Kind::ObjectNotExist,
        own::MUTEX_DESTROYED,
        "the mutex has been destroyed",
        "",
    ),
    (
        Kind::ImpLimit,
        own::TOO_MANY_MUTEXES,
        "the ORB has as many named mutexes as it may",
        "destroy those that nobody uses, or make them without names",
    ),
    (
        Kind::BadParam,
        own::BAND_MALFORMED,
        "the band of native priorities is empty or leaves 1 to 99",
        "give the lowest and the highest of SCHED_FIFO or SCHED_RR",
    ),
    (
        Kind::BadInvOrder,
        own::SEGMENT_MISSING,
        "the calling thread has no scheduling segment of its own",
        "begin one first, and end each once",
    ),
    (
        Kind::BadInvOrder,
        own::SEGMENT_OF_ANOTHER,
        "the calling thread is in a scheduling segment of another ORB",
        "end that first",
    ),
    (
        Kind::BadInvOrder,
        own::SEGMENTS_TOO_DEEP,
        "the calling thread has too many scheduling segments within one another",
        "end each segment",
    ),
    (
        Kind::NoResources,
        own::TOO_MANY_THREADS,
        "the ORB knows as many distributable threads as it may",
        "try again later",
    ),
    (
        Kind::ObjectNotExist,
        own::THREAD_UNKNOWN,
        "the distributable thread is not known to the ORB, or no longer",
        "",
    ),
    (
        Kind::NoResources,
        own::SCHEDULE_INFEASIBLE,
        "an operation of the schedule would miss its deadline",
        "read the server's log, and ask `deckwatch schedule` what to change",
    ),
    (
        Kind::BadParam,
        own::RT_INFO_UNKNOWN,
        "the scheduler has no RT_Info of this handle",
        "create the RT_Info before you connect, and connect with the handle that the scheduler returns",
    ),
    (
        Kind::NoResources,
        own::SCHEDULE_NEEDS_LANE,
        "the schedule would need a lane that the channel does not have",
        "declare the operation with its rate before the channel starts",
    ),
];
