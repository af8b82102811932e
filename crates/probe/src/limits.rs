//! The bounds of the instruments, with reasons.

use std::time::Duration;

/// Octets read from one of the kernel's files. The longest file, `/proc/cpuinfo`, has some kilobytes for each
/// processor.
pub const KERNEL_FILE_LEN_MAX: u64 = 4 << 20;

/// Wake-ups measured in each scheduling class. Half a second of them is enough for a median and a look at the tail, and
/// no proof of a maximum.
pub const WAKE_UPS: usize = 500;

/// Nanoseconds between two wake-ups.
pub const WAKE_UP_PERIOD_NS: i64 = 1_000_000;

/// Datagrams sent, one millisecond apart, to see a kernel stamp. The kernel starts to stamp some milliseconds after the
/// request.
pub const STAMPED_DATAGRAMS_MAX: usize = 500;

/// Idle states read for one processor; drivers have fewer than ten.
pub const IDLE_STATES_MAX: usize = 16;

/// Levels of control groups, from this process's own to the root.
pub const CONTROL_GROUPS_MAX: usize = 32;

/// Processors in one of the kernel's lists; Linux supports at most 8192.
pub const PROCESSORS_MAX: usize = 8192;

/// Octets of one message of a bench, and elements of one sequence: the default limit of an ORB.
pub const BENCH_OCTETS_MAX: usize = 16 << 20;

/// Round trips kept from one run, of four octets each.
pub const BENCH_SAMPLES_MAX: usize = 1 << 20;

/// Rounds of a bench; they take hours.
pub const BENCH_ROUNDS_MAX: usize = 10_000;

/// The kernel kills a SCHED_FIFO thread of an end that runs longer than this without blocking. A run takes less than
/// one second.
pub const REAL_TIME_UNBLOCKED_MAX: Duration = Duration::from_secs(2);

/// The longest time until an end prints its first line.
pub const END_PATIENCE: Duration = Duration::from_secs(20);

/// Threads of one process that are counted. Each needs a descriptor for each kind of event. A system has at most one
/// thread for each connection.
pub const COUNTED_THREADS_MAX: usize = 4_096;
