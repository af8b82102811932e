//! Every bound of the instruments, with its reason.

use std::time::Duration;

/// Octets read of one of the kernel's files; the longest that is read (`/proc/cpuinfo`) has some kilobytes a processor.
pub const KERNEL_FILE_LEN_MAX: u64 = 4 << 20;

/// Wake-ups measured in each scheduling class: half a second of them, enough for a median and a first look at the tail, no proof of a maximum.
pub const WAKE_UPS: usize = 500;

/// Nanoseconds between them.
pub const WAKE_UP_PERIOD_NS: i64 = 1_000_000;

/// Datagrams sent, a millisecond apart, to see a kernel stamp: a kernel begins to stamp some milliseconds after it was asked to.
pub const STAMPED_DATAGRAMS_MAX: usize = 500;

/// Idle states looked at on one processor; drivers know fewer than ten.
pub const IDLE_STATES_MAX: usize = 16;

/// Levels of control groups looked at, from this process's own to the root.
pub const CONTROL_GROUPS_MAX: usize = 32;

/// Processors taken from a list of the kernel's, which knows no more than 8192.
pub const PROCESSORS_MAX: usize = 8192;

/// Octets of one message of a bench, and elements of one sequence: what an ORB takes by default.
pub const BENCH_OCTETS_MAX: usize = 16 << 20;

/// Round trips kept of one run: four octets each.
pub const BENCH_SAMPLES_MAX: usize = 1 << 20;

/// Rounds of a bench: hours.
pub const BENCH_ROUNDS_MAX: usize = 10_000;

/// A SCHED_FIFO thread of a bench that runs longer than this without blocking is ended by the kernel: a run takes less than one second.
pub const REAL_TIME_UNBLOCKED_MAX: Duration = Duration::from_secs(2);

/// The longest a process of a bench may take to say that it is ready.
pub const END_PATIENCE: Duration = Duration::from_secs(20);

/// Threads of one process that are counted: a descriptor for each and each kind of event, and a thread a connection is the most that a peer has.
pub const COUNTED_THREADS_MAX: usize = 4_096;
