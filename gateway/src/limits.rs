//! The bounds of the gateway, each with its reason.

use std::time::Duration;

/// Mappings in a file. Each takes a consumer or a supplier, and up to two threads.
pub const MAPPINGS_MAX: usize = 64;

/// Events that wait in one direction of a mapping, unless the file says otherwise.
pub const QUEUE_LEN_DEFAULT: usize = 1_024;

/// The longest queue that a file may ask for: with the smallest events, some MiB.
pub const QUEUE_LEN_MAX: usize = 65_536;

/// Octets of the events that wait in one direction of a mapping; one event always fits.
pub const QUEUE_SIZE_MAX: usize = 64 << 20;

/// The largest payload, and the largest attachment, that crosses: as large as the largest event of a channel.
pub const EVENT_SIZE_MAX: usize = 16 << 20;

/// Keys for which a mapping keeps a declared publisher and a number. With more, all are given up and made anew.
pub const KEYS_MAX: usize = 1_024;

/// Keys of other gateways whose numbers a mapping remembers, to find gaps. With more, all are forgotten, and gaps
/// across that moment are not found.
pub const NUMBERS_MAX: usize = 4_096;

/// Types of a range that the channel's filter names one by one. A larger range subscribes to any type, and the gateway
/// leaves out the others.
pub const FILTER_TYPES_MAX: i64 = 256;

/// The lowest type of an application; the types below are the filter's designators.
pub const TYPE_MIN: i32 = 16;

/// Chunks of a key expression.
pub const KEY_CHUNKS_MAX: usize = 64;

/// Time limit of a call to the channel.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit of a call that disconnects: the channel may be gone.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// The channel is asked so often whether it still has our consumers and suppliers: a channel whose process died
/// notifies nobody, and a one-way push to it raises nothing.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The first pause before the channel is looked for again; it doubles up to [`RECONNECT_MAX`].
pub const RECONNECT_MIN: Duration = Duration::from_millis(100);

/// The longest pause before the channel is looked for again.
pub const RECONNECT_MAX: Duration = Duration::from_secs(2);

/// Threads look so often whether the gateway ends.
pub const WAIT_STEP: Duration = Duration::from_millis(50);

/// What is still queued at the end may take so long to leave; the rest is counted as dropped.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest file with mappings or with a reference.
pub const FILE_SIZE_MAX: u64 = 1 << 20;
