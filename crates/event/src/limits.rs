//! Every bound of the event channel, with its reason.

use std::time::Duration;

/// Consumers of one channel; each has a thread and a queue.
pub const CONSUMERS_MAX: usize = 512;

/// Suppliers of one channel; each is an active object of some hundred octets.
pub const SUPPLIERS_MAX: usize = 4_096;

/// Events that wait for one consumer, where the options say nothing: 12 s of a 20 Hz flow. Behind it the oldest gives way.
/// The body is shared by all queues, so that the memory of a channel is at most this times the largest message a consumer.
pub const QUEUE_LEN_DEFAULT: usize = 256;

/// The longest queue that may be asked for.
pub const QUEUE_LEN_MAX: usize = 65_536;

/// Events in a row that a consumer may fail to take before it is let go.
/// Three outlive one lost connection and the refusal that follows it, and end a dead consumer within a few periods.
pub const FAILURES_MAX: u32 = 3;

/// How long one push to a consumer may take, where the options say nothing.
/// A consumer that was stopped for some seconds is still served; one that never answers holds its own thread alone.
pub const PUSH_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
