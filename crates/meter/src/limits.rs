//! The limits and thresholds of this crate, each with its reason.

use std::time::Duration;

/// Messages of one schedule, warm-up included. A sample is about 120 octets in memory. This many samples are 32 GB,
/// more than any host that runs a mission can hold. A schedule with more messages is a mistake in a unit.
pub const SCHEDULE_MESSAGES_MAX: u64 = 1 << 28;

/// Longest schedule, period or offset: thirty days. The sum of all three is far below 63 bits of nanoseconds (292
/// years).
pub const SCHEDULE_DURATION_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// Minimum length of the drain. TCP's retransmission timer starts at 200 ms and doubles, so a message delayed by two
/// losses in a row still arrives in the drain. It is counted as late, not as lost.
pub const DRAIN_MIN: Duration = Duration::from_secs(1);

/// Minimum length of the drain, in deadlines.
pub const DRAIN_DEADLINES: u32 = 10;

/// Confidence of every one-sided bound.
pub const CONFIDENCE: f64 = 0.95;

/// Terms of the continued fraction of the incomplete beta function. It needs a small multiple of the square root of the
/// sample size; the square root of [`SCHEDULE_MESSAGES_MAX`] is 16,384.
pub const BETA_TERMS_MAX: u32 = 200_000;

/// Minimum number of batches from which the clustering of late messages is estimated. With fewer, the error of the
/// estimate is larger than the effect (Schmeiser, Operations Research 30, 1982: between 10 and 30 batches).
pub const BATCHES_MIN: u64 = 20;

/// Where a run is searched for disturbances that made messages almost late: latencies as divisors of the slack (deadline
/// less median latency), each with the maximum share of messages beyond it. A disturbance that takes less than an eighth
/// of the slack is ordinary jitter for this deadline. The extremal index describes rare events, and a twentieth is the
/// usual highest threshold. Beyond half of the slack a message is almost late, however many are: above the median are
/// at most half of all.
pub const NEAR_MISSES: [(i64, f64); 3] = [(2, 0.5), (4, 0.05), (8, 0.05)];

/// A percentile is reported only with at least this many samples beyond it. With fewer, its interval is wider than a
/// third of an order of magnitude of the tail's share.
pub const SAMPLES_BEYOND_MIN: u64 = 10;

/// Maximum share of a destination's judged messages whose packets a capture may have dropped; above it the blame is
/// meaningless. Below a thousandth, less than one of a hundred late messages is expected to be blamed wrongly, even if
/// each takes several packets.
pub const CAPTURE_DROPPED_SHARE_MAX: f64 = 0.001;

/// Share of processor time stolen above which a warning is given. Scheduler ticks are 1 to 10 ms, so on short runs a
/// smaller share is within their error.
pub const STOLEN_SHARE_WARNED: f64 = 0.01;

/// Share of the run in which runnable threads waited for a processor, above which a warning is given. Threads of one
/// mission also compete for a few processors; a smaller share is normal.
pub const PRESSURE_SHARE_WARNED: f64 = 0.2;

/// Time between two readings of how long the run's threads waited for a processor. Shorter readings cost the run's own
/// processors; longer ones tell less about when the time was taken.
pub const TAKEN_INTERVAL: Duration = Duration::from_secs(1);

/// Within one [`TAKEN_INTERVAL`], processor time taken from a thread counts from the deadline divided by this. A shorter
/// wait alone makes no message late.
pub const TAKEN_DEADLINE_DIVISOR: u32 = 10;

/// Share of the run from which processor time taken from one thread counts: about that share of the messages is
/// concerned, and missions allow a few in ten thousand to be late.
pub const TAKEN_SHARE_MIN: f64 = 0.000_1;

/// The supplier has not kept the schedule for a message if, by its own fault, it sends it later than the deadline
/// divided by this.
pub const SENDER_DEADLINE_DIVISOR: u32 = 10;

/// Share of such messages above which a warning is given.
pub const SENDER_LATE_SHARE_WARNED: f64 = 0.01;

/// Rows of one row group of a sample file. 65,536 rows of about 120 octets are 8 MB in memory, and enough for efficient
/// encodings.
pub const ROW_GROUP_ROWS: usize = 1 << 16;

/// Maximum number of rows that a row group may claim when it is read, so that a damaged file cannot make the reader
/// allocate more than about 130 MB at once.
pub const ROW_GROUP_ROWS_MAX: usize = 1 << 20;

/// Largest latency that histograms resolve: one hour, longer than any drain with a deadline of minutes.
pub const HISTOGRAM_NS_MAX: u64 = 3_600_000_000_000;

/// Digits of latencies in histograms. Three digits separate 50 ms from 50.1 ms and take 260 KB; four would take 2 MB.
pub const HISTOGRAM_DIGITS: u8 = 3;

/// Largest kernel file that is read for provenance: /proc/cpuinfo of 1,024 processors is about 1.5 MB.
pub const FACT_FILE_OCTETS_MAX: u64 = 4 << 20;

/// Largest result document that is read: one with 36 destinations over six carriers and all their maps is below 1 MB.
pub const RESULT_OCTETS_MAX: u64 = 256 << 20;

/// Exchanges of a window that relates two clocks. Tried under 90% load in one direction: with 8 the smallest delays are
/// 32 microseconds off, with 64 half of one, with 512 a quarter.
pub const CLOCK_WINDOW_EXCHANGES: usize = 128;

/// Windows over which the rate between two clocks is taken as constant: five seconds of 400 exchanges each. Temperature
/// changes a crystal more slowly.
pub const CLOCK_SPAN_WINDOWS: usize = 16;

/// Fewest points from which a trend is judged. With 40 points that keep 0.8 of the one before, growth at the edge of its
/// allowance is a wrong FAIL in about 7% of simulated series, with 100 in at most 6%; with fewer points in more.
pub const TREND_POINTS_MIN: usize = 40;

/// Fewest blocks from which a trend is judged: each segment takes a level from them, and all one slope.
pub const TREND_BLOCKS_MIN: usize = 8;
