//! All limits of access tables, with their reasons.

/// Rules of one table. Each request that is checked may read all of them.
pub const RULES_MAX: usize = 1_024;

/// Peers, names, types or sources of one rule, for the same reason.
pub const ENTRIES_MAX: usize = 1_024;
