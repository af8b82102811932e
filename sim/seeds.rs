//! Seeds: each decides one run of a simulation, and replays it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that a seed decides.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

/// Runs the seeds from 0 to `seeds` - 1 on all processors. DECKWATCH_SEEDS sets another number, DECKWATCH_SEED=N runs
/// one alone. A failure names its seeds; `test` is what cargo needs to run the test again.
pub(crate) fn run_all(seeds: u64, test: &str, run: impl Fn(u64) + Sync) {
    if let Ok(seed) = std::env::var("DECKWATCH_SEED") {
        return run(seed.parse().expect("DECKWATCH_SEED is a number"));
    }
    let seeds = std::env::var("DECKWATCH_SEEDS").map_or(seeds, |count| {
        count.parse().expect("DECKWATCH_SEEDS is a number")
    });
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds || failed.lock().unwrap().len() >= 5 {
                        return;
                    }
                    if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "seeds {failed:?}; replay one: DECKWATCH_SEED=N cargo test {test}"
    );
}
