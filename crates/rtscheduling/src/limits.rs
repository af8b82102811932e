//! Limits of this crate.

/// The number of distributable threads that an ORB with a scheduler knows at once: those that began here, and those
/// with requests that it serves. Memory for all of them is allocated when the ORB is made.
pub const DISTRIBUTABLE_THREADS_MAX: usize = 4_096;

/// The depth of nested scheduling segments. A thread above this limit has probably forgotten to end some.
pub const SEGMENTS_DEEP_MAX: usize = 64;
