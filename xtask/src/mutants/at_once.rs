//! Several runs of tests at a time: most tests wait more than they compute.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

/// Calls `work` for each item, in their order, for several items at a time. Returns the first error; the items behind
/// it are left out.
pub(super) fn for_each<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let queue = Mutex::new(items.iter());
    let has_failed = AtomicBool::new(false);
    let next = || {
        if has_failed.load(Ordering::Relaxed) {
            return None;
        }
        queue.lock().ok()?.next()
    };
    let turn = || {
        while let Some(item) = next() {
            let done = work(item);
            if done.is_err() {
                has_failed.store(true, Ordering::Relaxed);
                return done;
            }
        }
        Ok(())
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE * processors)
            .map(|_| scope.spawn(turn))
            .collect();
        let ends = workers.into_iter().map(|worker| worker.join());
        ends.flatten().collect()
    })
}

/// For each processor.
const AT_ONCE: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_worked_on_once_until_one_fails() {
        let done = Mutex::new(Vec::new());
        let items: Vec<u32> = (0..100).collect();
        for_each(&items, |&item| {
            done.lock().unwrap().push(item);
            Ok(())
        })
        .unwrap();
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert_eq!(done, items);
        let refused = for_each(&items, |&item| {
            anyhow::ensure!(item != 7, "seven");
            Ok(())
        });
        assert_eq!(refused.unwrap_err().to_string(), "seven");
    }
}
