//! Every bound of the event channel, with its reason.

use std::time::Duration;

/// Consumers of one channel; each has a thread and a queue.
pub const CONSUMERS_MAX: usize = 512;

/// Suppliers of one channel; each is an active object of some hundred octets. Where there is room for no other, one that is gone gives way.
pub const SUPPLIERS_MAX: usize = 4_096;

/// How long a supplier has pushed nothing before others may have its place. One of a slower flow gives a reference, by which it is asked whether
/// it is there.
pub const SUPPLIER_QUIET_MIN: Duration = Duration::from_secs(60);

/// Suppliers that are asked whether they are there before another one is refused. Each that does not answer takes [`SUPPLIER_ASK_TIMEOUT`]
/// of a thread that serves: a second in all.
pub const SUPPLIERS_ASKED_MAX: usize = 4;

/// How long a supplier may take to answer that it is there.
pub const SUPPLIER_ASK_TIMEOUT: Duration = Duration::from_millis(250);

/// Proxies of one channel that were obtained and have nobody connected; beyond it the oldest gives way, so that a client
/// that obtains and forgets them fills nothing. More clients than this do not connect at the same moment.
pub const PROXIES_WAITING_MAX: usize = 1_024;

/// Octets of events that wait for one consumer, however few they are: four of the largest messages of an ORB that nobody
/// has told otherwise.
pub const QUEUE_SIZE_MAX: usize = 64 << 20;

/// How long one supplier may take to hear that the channel ends. They are told one after the other, on a thread of its own.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Events that wait for one consumer, where the options say nothing: 12 s of a 20 Hz flow. Behind it the oldest gives way.
/// The body is shared by all queues; [`QUEUE_SIZE_MAX`] bounds what a queue holds besides.
pub const QUEUE_LEN_DEFAULT: usize = 256;

/// The longest queue that may be asked for.
pub const QUEUE_LEN_MAX: usize = 65_536;

/// Events in a row that a consumer may fail to take before it is let go, and questions that a supplier may leave unanswered where others want its place.
/// Three outlive one lost connection and the refusal that follows it, and end a dead consumer within a few periods.
pub const FAILURES_MAX: u32 = 3;

/// How long one push to a consumer may take, where the options say nothing.
/// A consumer that was stopped for some seconds is still served; one that never answers holds its own thread alone.
pub const PUSH_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
