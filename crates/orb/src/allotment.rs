//! What peers may take together of the memory that this process may have.

use deckwatch_os::allowance;
use deckwatch_os::reserve::RESERVE_SIZE;

use crate::limits::{LANE_THREADS, LANE_THREADS_DYNAMIC_MAX, PROGRAM_SIZE, THREAD_SIZE};

/// Octets of memory that all peers of this process may take together: what its control groups, RLIMIT_AS and the
/// machine leave to it beside the program itself. Returns `None` if no limit is known.
///
/// The bounds of an ORB follow from it ([`OrbBuilder::memory_max`](crate::OrbBuilder::memory_max)). A service that keeps
/// data of its peers derives its own bounds from it.
#[must_use]
pub fn memory_for_peers() -> Option<u64> {
    let of_memory = allowance::memory().map(beside_program);
    let of_addresses = allowance::address_space().map(beside_threads);
    of_memory.into_iter().chain(of_addresses).min()
}

/// What a process with so many octets of memory has for its peers.
pub(crate) fn beside_program(octets: u64) -> u64 {
    octets.saturating_sub(PROGRAM_SIZE).max(octets / 4)
}

/// What is left of addresses that are free, beside the stacks of threads.
fn beside_threads(free: u64) -> u64 {
    let threads = (LANE_THREADS + threads_dynamic_within(free)) as u64;
    let taken = threads * THREAD_SIZE + RESERVE_SIZE as u64;
    free.saturating_sub(taken).max(free / 4)
}

/// Threads that a lane has at most, unless the builder sets another number: fewer than usual with few addresses.
#[must_use]
pub fn lane_threads() -> usize {
    LANE_THREADS + threads_dynamic()
}

/// Threads that a lane may add: fewer than usual where their stacks would take more than a quarter of the addresses.
pub(crate) fn threads_dynamic() -> usize {
    allowance::address_space().map_or(LANE_THREADS_DYNAMIC_MAX, threads_dynamic_within)
}

fn threads_dynamic_within(free: u64) -> usize {
    let all = usize::try_from(free / 4 / THREAD_SIZE).unwrap_or(usize::MAX);
    all.saturating_sub(LANE_THREADS)
        .min(LANE_THREADS_DYNAMIC_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_get_what_the_program_and_its_threads_leave() {
        assert_eq!(beside_program(256 << 20), 216 << 20);
        assert_eq!(beside_program(16 << 20), 4 << 20);
        assert_eq!(threads_dynamic_within(u64::MAX), LANE_THREADS_DYNAMIC_MAX);
        assert_eq!(threads_dynamic_within(160 << 20), 15);
        assert_eq!(threads_dynamic_within(1 << 20), 0);
        let all = |free: u64| {
            let threads = (LANE_THREADS + threads_dynamic_within(free)) as u64;
            beside_threads(free) + threads * THREAD_SIZE + RESERVE_SIZE as u64
        };
        assert_eq!(beside_threads(16 << 20), 4 << 20, "threads take all");
        assert_eq!(all(160 << 20), 160 << 20);
        assert_eq!(all(1 << 30), 1 << 30);
    }
}
