//! All limits of audit logs, with their reasons.

/// Records that wait for the thread that writes them; more are dropped and counted. About 1 MB.
pub const QUEUE_LEN_MAX: usize = 4_096;

/// Characters of one text of a record: what a peer writes is cut off there.
pub const TEXT_LEN_MAX: usize = 256;

/// Octets of a log file before the next one is begun.
pub const FILE_SIZE_DEFAULT: u64 = 16 << 20;

/// Earlier files that are kept.
pub const FILES_KEPT_DEFAULT: u32 = 4;

/// Most files that may be kept: each new file renames all of them.
pub const FILES_KEPT_MAX: u32 = 1_000;
