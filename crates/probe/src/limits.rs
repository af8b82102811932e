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

/// Connections that each lane of a server that is attacked keeps open. An attacker reaches this bound within a run, and
/// the usual one of an ORB only with more descriptors than most hosts permit.
pub const ATTACKED_CONNECTIONS: usize = 512;

/// The kernel kills a SCHED_FIFO thread of an end that runs longer than this without blocking. A run takes less than
/// one second.
pub const REAL_TIME_UNBLOCKED_MAX: Duration = Duration::from_secs(2);

/// The longest time until an end prints its first line.
pub const END_PATIENCE: Duration = Duration::from_secs(20);

/// The longest silence of an end on a far host, which writes at least a line in each [`FAR_BEAT`].
pub const FAR_SILENCE_MAX: Duration = Duration::from_secs(10);

/// Interval of the lines by which an end on a far host shows that it and the pipe to it live.
pub const FAR_BEAT: Duration = Duration::from_secs(1);

/// The longest wait for exchanges that relate two clocks after a measurement. A window of them takes a third of a second.
pub const CLOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Octets of a line of an end. The longest has the stamps of [`SWEEP_MESSAGES_MAX`] messages, of 60 octets each.
pub const END_LINE_SIZE_MAX: u64 = 16 << 20;

/// Processors or links of which the load of a far host may tell: no machine here has more processors.
pub const LOAD_HELD_MAX: usize = 1024;

/// Answers of an end that are read ahead. It gives one to each order; a hostile one waits at its pipe.
pub const END_OUTPUTS_MAX: usize = 4;

/// Threads of one process that are counted. Each needs a descriptor for each kind of event. A system has at most one
/// thread for each connection.
pub const COUNTED_THREADS_MAX: usize = 4_096;

/// Events that wait for the thread that prints or records them. At 10,000 events a second a reader may stop for 0.4 s.
pub const EVENTS_QUEUED_MAX: usize = 4_096;

/// Octets of the events that wait: four times the largest message that an ORB accepts by default.
pub const EVENTS_QUEUED_SIZE_MAX: usize = 64 << 20;

/// Octets of an event that is printed. A hostile event of so many octets has as many parts, of about 100 octets each
/// when they are printed: 25 MB.
pub const EVENT_SHOWN_SIZE_MAX: usize = 256 << 10;

/// An inter-arrival time above so many periods is a gap: half-way between a late event and a lost one.
pub const GAP_PERIODS: f64 = 1.5;

/// Nanoseconds after its due time at which a send is late. The timers of a loaded machine without real-time scheduling
/// wake within this.
pub const LATE_SEND_NS: i64 = 1_000_000;

/// Longest sleep without a look at the signals, nanoseconds.
pub const WAIT_STEP_NS: i64 = 50_000_000;

/// The longest time for a connection to a channel.
pub const CHANNEL_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time for one call to a channel. A push may wait for a slow channel.
pub const CHANNEL_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Time without events after which a consumer asks the channel whether it is still connected.
pub const CHANNEL_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The longest time for the answer.
pub const CHANNEL_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time for disconnecting. A user who has pressed Ctrl-C waits for it.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(2);

/// Octets of one record of a recording: the largest event that the decoder of an `any` keeps, and some for its head.
pub const RECORD_SIZE_MAX: usize = (64 << 20) + 1_024;

/// Samples for a 99th percentile: ten lie beyond it.
pub const P99_SAMPLES_MIN: u64 = 1_000;

/// Period of a replay that repeats one event, which has no gap of its own.
pub const LONE_EVENT_PERIOD: Duration = Duration::from_secs(1);

/// Octets of the smallest message of a sweep: its sequence number.
pub const SWEEP_SIZE_MIN: u32 = 8;

/// Sizes of a sweep: four times those of the paper's sweep.
pub const SWEEP_SIZES_MAX: usize = 4_096;

/// Processes of a sweep's ends. Each has some megabytes, and all stay alive until the end.
pub const SWEEP_ENDS_MAX: u32 = 128;

/// Simultaneous streams of a sweep: those of the FFI tests.
pub const SWEEP_STREAMS_MAX: u32 = 4;

/// Hops of a sweep: those of the FFI tests.
pub const SWEEP_HOPS_MAX: u32 = 3;

/// Objects of one server of a sweep. Their references are one line of some 300 kilobytes.
pub const SWEEP_SERVANTS_MAX: u32 = 1_000;

/// Messages of one iteration. An end keeps 40 octets for each, and writes them as one line.
pub const SWEEP_MESSAGES_MAX: u64 = 100_000;

/// Messages of one iteration between parts that are due one at a time: half a second of them, for which the programs of
/// the parts start anew.
pub const PARTS_PACED_MAX: u64 = 500;

/// Messages of one stream between parts. A slow middleware takes seconds for so many, and a part that is not done after
/// half a minute has failed.
pub const PARTS_STREAM_MAX: u64 = 10_000;

/// Largest journal that a sweep resumes, octets. One point takes about ten kilobytes.
pub const SWEEP_JOURNAL_SIZE_MAX: u64 = 1 << 30;

/// Bins of a distribution of `grid`, of a millisecond each, as in the thesis. The last one has what is longer.
pub const GRID_BINS: usize = 100;

/// Sizes of which `overhead` draws the distributions. The others stand in the result.
pub const OVERHEAD_SIZES_DRAWN_MAX: usize = 8;

/// Share by which an interval between transactions may be longer than was asked for: the wake-up of a thread on an idle
/// virtual machine is late by up to a tenth of a millisecond.
pub const INTERVAL_SLACK: f64 = 0.1;

/// Share of the intervals that may be longer still. With more, a run has not kept its interval.
pub const INTERVAL_MISSED_SHARE_MAX: f64 = 0.01;

/// Failures of one server of a soak that are kept in words; all are counted.
pub const SOAK_WORDS_MAX: usize = 5;
