//! The limits of this crate, each with its reason.

/// Operations of one schedule. A ship's mission computer has some hundreds; the analysis is quadratic in their number.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code SCHEDULE_SHARE_FULL | test:
/// crates/event/tests/scheduler.rs::stranger_that_declares_its_share_leaves_others_served
pub const OPERATIONS_MAX: usize = 4096;

/// Dependencies of one schedule: eight for each operation.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code SCHEDULE_SHARE_FULL | test:
/// crates/event/tests/scheduler.rs::stranger_that_declares_its_share_leaves_others_served
pub const DEPENDENCIES_MAX: usize = 8 * OPERATIONS_MAX;

/// Octets of an entry point. It is a scoped name of IDL or a method of a program.
pub const ENTRY_POINT_BYTES_MAX: usize = 1024;

/// Pairs of an operation and a timer that triggers it. A chain of events from hundreds of timers through hundreds of
/// operations reaches this number; a larger one is a mistake in the dependencies.
pub const STREAMS_MAX: usize = 65_536;

/// Work of one analysis, in terms of its sums. A term takes a few nanoseconds, so that an analysis ends within a
/// second. Task sets that need more have periods that are far apart and a utilisation next to one.
pub const WORK_MAX: u64 = 50_000_000;

/// Combinations of first releases that the exact analysis of offsets tries for one task. Beyond it, the bound of each
/// transaction is used.
pub const COMBINATIONS_MAX: u64 = 4096;

/// Rounds in which release jitter is passed along chains of events, each from one priority to the next. A set that
/// needs more has a response time that grows slowly and without end, or a chain of more changes of priority than any
/// mission.
pub const ROUNDS_MAX: u32 = 256;

/// Execution intervals of one picture of a critical instant. A picture of 1,000 pixels cannot show more.
pub const INTERVALS_MAX: usize = 4096;

/// Work of one analysis in the search for changes: an eighth of [`WORK_MAX`]. Bisection leads to sets next to the full
/// processor, whose analysis takes long and whose answer is of no use.
pub const SEARCH_STEP_WORK_MAX: u64 = WORK_MAX / 8;

/// Work of one search for changes: some seconds.
pub const SEARCH_WORK_MAX: u64 = 16 * WORK_MAX;

/// Operations of a set whose single changes are searched. Each takes about a hundred analyses, so that the search is
/// cubic in their number.
pub const SENSITIVITY_OPERATIONS_MAX: usize = 64;
