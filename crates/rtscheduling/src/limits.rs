//! Limits of this crate.

/// The number of distributable threads that an ORB with a scheduler knows at once: those that began here, and those
/// with requests that it serves. Memory for all of them is allocated when the ORB is made.
///
/// Share: as many as requests of it are served at the same time | seen: NO_RESOURCES with the minor code
/// TOO_MANY_THREADS | test:
/// crates/rtscheduling/src/table.rs::threads_beyond_the_limit_are_refused_until_requests_of_others_have_ended
pub const DISTRIBUTABLE_THREADS_MAX: usize = 4_096;

/// The depth of nested scheduling segments. A thread above this limit has probably forgotten to end some.
pub const SEGMENTS_DEEP_MAX: usize = 64;
