//! All limits of the event channel, with their reasons.

use std::time::Duration;

/// Consumers of one channel; each has a thread and a queue.
pub const CONSUMERS_MAX: usize = 512;

/// Suppliers of one channel; each is an active object of some hundred octets. At this limit, a new supplier replaces
/// one that is gone.
pub const SUPPLIERS_MAX: usize = 4_096;

/// Time without a push after which a supplier may be replaced by a new one. A supplier that pushes less often should
/// connect with a reference: the channel then calls it to find out whether it still exists.
pub const SUPPLIER_QUIET_MIN: Duration = Duration::from_secs(60);

/// Suppliers that are called to find out whether they still exist, before a new supplier is refused. Each that does not
/// answer blocks a serving thread for [`SUPPLIER_ASK_TIMEOUT`]: one second in all.
pub const SUPPLIERS_ASKED_MAX: usize = 4;

/// Time limit of the call that finds out whether a supplier still exists.
pub const SUPPLIER_ASK_TIMEOUT: Duration = Duration::from_millis(250);

/// Proxies of one channel without a connected client. Beyond it the oldest is retired, so that a client that obtains
/// proxies and forgets them does not exhaust the channel. No more clients than this are expected to connect at the same
/// moment.
pub const PROXIES_WAITING_MAX: usize = 1_024;

/// Octets of the events queued for one consumer, whatever their number. The value is four times the largest message
/// that an ORB accepts by default.
pub const QUEUE_SIZE_MAX: usize = 64 << 20;

/// Time limit of notifying one supplier that the channel ends. One separate thread notifies the suppliers, one after
/// the other.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Default number of events queued for one consumer: 12 s of a 20 Hz flow. Beyond it the oldest is dropped. All queues
/// share the body of an event; [`QUEUE_SIZE_MAX`] also limits the octets of each queue.
pub const QUEUE_LEN_DEFAULT: usize = 256;

/// The longest queue that the options may request.
pub const QUEUE_LEN_MAX: usize = 65_536;

/// Pushes in a row that may fail before a consumer is removed, and calls in a row that a supplier may leave unanswered
/// before it is replaced. A client survives one lost connection and the refusal that follows it. A dead consumer is
/// removed within a few periods.
pub const FAILURES_MAX: u32 = 3;

/// Default time limit of one push to a consumer. A consumer that was stopped for some seconds is still served; one that
/// never answers blocks only its own thread.
pub const PUSH_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Entries of one consumer's filter. The largest that an application is known to use has some hundred.
pub const FILTER_ENTRIES_MAX: usize = 1_024;

/// Nesting of one filter. It bounds the recursion of a match.
pub const FILTER_NESTING_MAX: usize = 32;

/// Timeouts of one filter. Each may wake the channel every [`TIMEOUT_MIN`].
pub const FILTER_TIMERS_MAX: usize = 64;

/// The shortest timeout that repeats: a consumer cannot make the channel push more than 1,000 timeouts a second with
/// each.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(1);
