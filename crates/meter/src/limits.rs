//! Every bound and threshold of this crate, with its reason.

use std::time::Duration;

/// Messages of one schedule, warm-up included. A sample is about 120 octets in memory: this many are 32 GB, more than
/// any host that a mission runs on can hold; a schedule that asks for more is a mistake in a unit.
pub const SCHEDULE_MESSAGES_MAX: u64 = 1 << 28;

/// Longest schedule, period or offset: thirty days. Sums of all three stay far from the end of 63 bits of nanoseconds
/// (292 years).
pub const SCHEDULE_DURATION_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The drain is at least this long: a retransmission timer of TCP starts at 200 ms and doubles, so that a message
/// delayed by two losses in a row still arrives and is counted as late, not as lost.
pub const DRAIN_MIN: Duration = Duration::from_secs(1);

/// The drain is at least this many deadlines.
pub const DRAIN_DEADLINES: u32 = 10;

/// Confidence of every one-sided bound.
pub const CONFIDENCE: f64 = 0.95;

/// Terms of the continued fraction of the incomplete beta function: it needs a few times the root of the sample's size,
/// and the root of [`SCHEDULE_MESSAGES_MAX`] is 16,384.
pub const BETA_TERMS_MAX: u32 = 200_000;

/// Fewest batches from which the clustering of lates is estimated: with fewer, the estimate's own error outweighs what
/// it finds (Schmeiser, Operations Research 30, 1982: between 10 and 30 batches).
pub const BATCHES_MIN: u64 = 20;

/// A percentile is reported only with at least this many samples beyond it: with fewer its interval is wider than a
/// third of an order of magnitude of the tail's share.
pub const SAMPLES_BEYOND_MIN: u64 = 10;

/// Share of a destination's judged messages of which a capture may have dropped the packets before the blame means
/// nothing: below a thousandth, of a hundred late messages less than one is expected to be blamed wrongly, even if each
/// takes several packets.
pub const CAPTURE_DROPPED_SHARE_MAX: f64 = 0.001;

/// Share of processor time stolen from which a warning is given: scheduler ticks are 1 to 10 ms, so that less is within
/// their error on short runs.
pub const STOLEN_SHARE_WARNED: f64 = 0.01;

/// Share of the run in which runnable threads waited for a processor, from which a warning is given. Threads of one
/// mission meet on few processors too: only more than this is noteworthy.
pub const PRESSURE_SHARE_WARNED: f64 = 0.2;

/// A message sent later than this part of its deadline, by the supplier's own fault, counts as one for which the
/// schedule was not kept.
pub const SENDER_DEADLINE_DIVISOR: u32 = 10;

/// Share of such messages from which a warning is given.
pub const SENDER_LATE_SHARE_WARNED: f64 = 0.01;

/// Rows of one row group of a sample file: 65,536 rows of about 120 octets are 8 MB in memory, and enough for the
/// encodings to work well.
pub const ROW_GROUP_ROWS: usize = 1 << 16;

/// Most rows that a row group may claim when read, so that a damaged file cannot make us reserve more than about 130 MB
/// at once.
pub const ROW_GROUP_ROWS_MAX: usize = 1 << 20;

/// Largest latency that histograms resolve: an hour, longer than any drain of a deadline of minutes.
pub const HISTOGRAM_NS_MAX: u64 = 3_600_000_000_000;

/// Digits of latencies in histograms: with three, 50 ms is told from 50.1 ms in 260 KB; with four it would be 2 MB.
pub const HISTOGRAM_DIGITS: u8 = 3;

/// Longest file of the kernel that is read for provenance: /proc/cpuinfo of 1,024 processors is about 1.5 MB.
pub const FACT_FILE_OCTETS_MAX: u64 = 4 << 20;

/// Largest result document that is read: 36 destinations over six carriers with all their maps are below 1 MB.
pub const RESULT_OCTETS_MAX: u64 = 256 << 20;
