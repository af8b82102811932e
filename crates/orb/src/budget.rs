//! A limit on an amount that several holders share.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit shared by many holders: octets of unfinished messages, queued replies, threads that wait.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    max: usize,
}

impl Budget {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            max,
        }
    }

    /// Takes `count`. Returns false if that exceeds the limit; a failed call takes nothing from others meanwhile.
    pub(crate) fn take(&self, count: usize) -> bool {
        let more = |held: usize| held.checked_add(count).filter(|held| *held <= self.max);
        let order = Ordering::Relaxed;
        self.held.fetch_update(order, order, more).is_ok()
    }

    pub(crate) fn give(&self, count: usize) {
        self.held.fetch_sub(count, Ordering::Relaxed);
    }

    /// The limit.
    pub(crate) const fn max(&self) -> usize {
        self.max
    }

    /// The amount held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// The limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_request_that_exceeds_a_budget_keeps_none_out_that_fits() {
        let budget = Budget::new(100);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(!budget.take(101));
                }
            });
            let fits = || {
                budget.take(100) && {
                    budget.give(100);
                    true
                }
            };
            let always = (0..100_000).all(|_| fits());
            is_over.store(true, Ordering::Relaxed);
            assert!(always, "it fits");
        });
        assert!(budget.take(60) && budget.take(40) && !budget.take(1));
        assert!(!budget.take(usize::MAX));
        budget.give(60);
        assert!(!budget.take(61) && budget.take(60));
    }
}
