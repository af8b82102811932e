//! Limits of this crate.

/// Distributable threads that an ORB with a scheduler knows at once: its own, and those with requests that it serves. Memory for all of
/// them is taken when the ORB is made.
pub const DISTRIBUTABLE_THREADS_MAX: usize = 4_096;

/// Scheduling segments nested in one another. A thread above this limit has forgotten to end some.
pub const SEGMENTS_DEEP_MAX: usize = 64;
