//! Every bound and threshold of this crate, with its reason.

use std::time::Duration;

/// Messages of one schedule, warm-up included. A sample is about 120 octets in memory: this many are 32 GB, more than any host
/// that a mission runs on can hold; a schedule that asks for more is a mistake in a unit.
pub const SCHEDULE_MESSAGES_MAX: u64 = 1 << 28;

/// Longest schedule, period or offset: thirty days. Sums of all three stay far from the end of 63 bits of nanoseconds (292 years).
pub const SCHEDULE_DURATION_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The drain is at least this long: a retransmission timer of TCP starts at 200 ms and doubles, so that a message delayed by
/// two losses in a row still arrives and is counted as late, not as lost.
pub const DRAIN_MIN: Duration = Duration::from_secs(1);

/// The drain is at least this many deadlines.
pub const DRAIN_DEADLINES: u32 = 10;
