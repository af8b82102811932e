//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Loops of the paper on one host; the paper uses 20.
pub const LOOPS_MAX: u32 = 1000;

/// The longest lifetime of a load, seconds. A day is longer than any mission and ends forgotten loads.
pub const LIFETIME_S_MAX: u64 = 86_400;

/// The largest share that a load of a real-time class takes of a processor. The rest keeps the machine usable; the
/// kernel's own bound is 95% by default.
pub const REAL_TIME_SHARE_MAX: f64 = 0.8;

/// Time for which a thread of a real-time class may run without blocking before the kernel ends the process. A load
/// blocks after some milliseconds, so that only a fault reaches it.
pub const REAL_TIME_UNBLOCKED_MAX: Duration = Duration::from_secs(1);

/// Processor time that a thread of a load makes up for after it was kept from its processor. More would be a burst that
/// nobody asked for.
pub const CATCH_UP_MAX: Duration = Duration::from_millis(20);

/// Accumulated error of a controller that is still corrected. What a step of another load causes beyond it is not paid
/// back: the load would overshoot for a second.
pub const DEFICIT_MAX: Duration = Duration::from_millis(20);

/// Octets of a message of a load on a link: at least its number.
pub const MESSAGE_OCTETS_MIN: u32 = 8;

/// The largest message of a load on a link: the largest UDP datagram over IPv4.
pub const MESSAGE_OCTETS_MAX: u32 = 65_507;

/// Messages of a burst: more are a flood.
pub const BURST_MAX: u32 = 1_000_000;

/// Connections that a sink accepts in its life. Each has a thread.
pub const CONNECTIONS_MAX: u64 = 1000;

/// Time in which a sink must accept a connection.
pub const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Longest time that a sender or a receiver blocks before it looks whether the load was stopped.
pub const SEND_LOOK: Duration = Duration::from_millis(50);

/// Time for which a sink that is stopped still takes what has arrived.
pub const DRAIN_MAX: Duration = Duration::from_millis(500);

/// Octets of `/proc/stat` that are read: a line for each processor and a long one of interrupts.
pub const STAT_SIZE_MAX: u64 = 4 << 20;

/// The least memory that a load takes: with less, the megabyte that `stress-ng` itself has would miss the target.
pub const MEMORY_SIZE_MIN: u64 = 64 << 20;

/// Available memory that a load leaves to the rest of the machine: without it, the kernel would kill processes.
pub const MEMORY_RESERVE_BYTES: u64 = 512 << 20;

/// The least file of a load on a disk: `stress-ng` takes no less.
pub const DISK_SIZE_MIN: u64 = 1 << 20;

/// Octets of a file system that a load leaves free.
pub const DISK_RESERVE_BYTES: u64 = 256 << 20;

/// Time between two looks whether `stress-ng` runs and whether the load was stopped.
pub const STOP_LOOK: Duration = Duration::from_millis(50);

/// Time in which `stress-ng` ends in order before it is killed. Its last write to a slow disk may take seconds.
pub const STRESS_END_PATIENCE: Duration = Duration::from_secs(5);

/// Octets of the metrics and of the words of `stress-ng` that are read: it writes some kilobytes.
pub const STRESS_WORDS_SIZE_MAX: u64 = 64 << 10;
