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
        self.take_if(count, |_| true)
    }

    /// As [`Budget::take`], if `allow` agrees to what is free afterwards.
    pub(crate) fn take_if(&self, count: usize, allow: impl Fn(usize) -> bool) -> bool {
        let more = |held: usize| {
            let held = held.checked_add(count)?;
            let free = self.max.checked_sub(held)?;
            allow(free).then_some(held)
        };
        let order = Ordering::SeqCst;
        self.held.fetch_update(order, order, more).is_ok()
    }

    /// Takes `count` even if that exceeds the limit.
    pub(crate) fn take_anyway(&self, count: usize) {
        self.held.fetch_add(count, Ordering::SeqCst);
    }

    /// Gives `count` back. Returns what was held before.
    pub(crate) fn give(&self, count: usize) -> usize {
        self.held.fetch_sub(count, Ordering::SeqCst)
    }

    /// The limit.
    pub(crate) const fn max(&self) -> usize {
        self.max
    }

    /// The amount held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
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
