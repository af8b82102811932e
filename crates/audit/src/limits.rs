//! All limits of audit logs, with their reasons.

/// Records that wait for the thread that writes them; more are dropped and counted. About 1 MB.
///
/// Share: its lines of a second ([`LINES_PER_PEER_MAX`]) | seen: nothing, dropped records are counted | test:
/// crates/audit/src/shares.rs::peer_causes_its_share_of_lines_in_a_second_and_the_others_are_counted
pub const QUEUE_LEN_MAX: usize = 4_096;

/// Lines of one peer in a second about connections and refusals, which cost a stranger nothing: the others are counted. So
/// a peer needs hours to fill the files of a log with the default sizes, and not seconds.
///
/// Share: each address or user has it | seen: nothing, its further lines are one with their count | test:
/// crates/audit/src/shares.rs::peer_causes_its_share_of_lines_in_a_second_and_the_others_are_counted
pub const LINES_PER_PEER_MAX: u64 = 16;

/// Peers whose lines are counted apart in a second; further ones are counted together.
///
/// Share: each address or user is one | seen: nothing, its lines are counted with those of others | test:
/// crates/audit/src/shares.rs::many_peers_share_what_is_counted_together
pub const PEERS_COUNTED_MAX: usize = 256;

/// Characters of one text of a record: what a peer writes is cut off there.
pub const TEXT_LEN_MAX: usize = 256;

/// Octets of a log file before the next one is begun.
pub const FILE_SIZE_DEFAULT: u64 = 16 << 20;

/// Earlier files that are kept.
pub const FILES_KEPT_DEFAULT: u32 = 4;

/// Most files that may be kept: each new file renames all of them.
pub const FILES_KEPT_MAX: u32 = 1_000;
