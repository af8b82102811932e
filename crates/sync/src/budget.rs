//! A limit on an amount that several holders share, what one holder takes of it, and how many handles keep something
//! that was taken.

use crate::primitive::{AtomicUsize, Ordering};

/// A limit shared by many holders: octets of unfinished messages or of queued events, threads that wait.
#[derive(Debug)]
pub struct Budget {
    held: AtomicUsize,
    max: usize,
}

impl Budget {
    /// A budget of which nothing is taken.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new(max: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            max,
        }
    }

    /// A budget of which nothing is taken. An atomic of `loom` cannot be made in a constant.
    #[cfg(loom)]
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            max,
        }
    }

    /// Takes `count`. Returns false if that exceeds the limit; a failed call takes nothing from others meanwhile.
    pub fn take(&self, count: usize) -> bool {
        self.take_if(count, |_| true)
    }

    /// As [`Budget::take`], if `allow` agrees to what is free afterwards.
    pub fn take_if(&self, count: usize, allow: impl Fn(usize) -> bool) -> bool {
        let more = |held: usize| {
            let held = held.checked_add(count)?;
            let free = self.max.checked_sub(held)?;
            allow(free).then_some(held)
        };
        let order = Ordering::SeqCst;
        self.held.fetch_update(order, order, more).is_ok()
    }

    /// As [`Budget::take`]. While there is no room, `make_room` is called; it gives something back, or returns false.
    pub fn take_or(&self, count: usize, mut make_room: impl FnMut() -> bool) -> bool {
        if count > self.max {
            // Nothing that is given back would help.
            return false;
        }
        while !self.take(count) {
            if !make_room() {
                return false;
            }
        }
        true
    }

    /// Takes `count` even if that exceeds the limit.
    pub fn take_anyway(&self, count: usize) {
        self.held.fetch_add(count, Ordering::SeqCst);
    }

    /// Gives `count` back. Returns what was held before.
    pub fn give(&self, count: usize) -> usize {
        self.held.fetch_sub(count, Ordering::SeqCst)
    }

    /// The limit.
    #[must_use]
    pub const fn max(&self) -> usize {
        self.max
    }

    /// The amount held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }
}

/// What one holder has of a budget. A holder may have as much as is free afterwards: one alone has at most a half, and
/// of n holders that take all they can, each has one part of n + 1.
#[derive(Debug, Default)]
pub struct Share(AtomicUsize);

impl Share {
    /// Takes `count` of a budget. Returns false if the holder would then have more than is free. The first one is
    /// always allowed if there is room for it.
    pub fn take(&self, of: &Budget, count: usize) -> bool {
        let is_fit = |own: usize, free: usize| own == 1 || own <= free;
        // What cannot fit is not counted: it would keep out what another thread of the holder takes meanwhile.
        let more = |own: usize| {
            let own = own.checked_add(count)?;
            let free = of.max.checked_sub(of.held().checked_add(count)?)?;
            is_fit(own, free).then_some(own)
        };
        let order = Ordering::Relaxed;
        if self.0.fetch_update(order, order, more).is_err() {
            return false;
        }
        // Read with each attempt: what other threads of the holder have taken meanwhile counts.
        let taken = of.take_if(count, |free| is_fit(self.held(), free));
        if !taken {
            self.0.fetch_sub(count, order);
        }
        taken
    }

    /// As [`Share::take`], whatever the holder has.
    pub fn take_beyond(&self, of: &Budget, count: usize) -> bool {
        let taken = of.take(count);
        if taken {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
        taken
    }

    /// As [`Share::take`], whatever is free.
    pub fn take_anyway(&self, of: &Budget, count: usize) {
        of.take_anyway(count);
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Gives `count` back. Returns what all held before.
    pub fn give(&self, of: &Budget, count: usize) -> usize {
        self.0.fetch_sub(count, Ordering::Relaxed);
        of.give(count)
    }

    /// How much the holder has.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The number of handles of a shared value. It is exact, unlike the count of an `Arc`, which another thread may be about
/// to lower.
#[derive(Debug, Default)]
pub struct Handles(AtomicUsize);

impl Handles {
    /// Begins to count, with one handle.
    pub fn begin(&mut self) {
        *self = Self(AtomicUsize::new(1));
    }

    /// Counts another handle.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// A handle ends. Returns true if it was the last.
    #[must_use]
    pub fn end(&self) -> bool {
        // SYNC: pairs with itself: the last handle sees what all others have read.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns true if there is more than one.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.0.load(Ordering::Acquire) > 1
    }
}

#[cfg(all(test, not(loom)))]
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

    #[test]
    fn room_is_made_only_for_what_can_fit() {
        let budget = Budget::new(100);
        assert!(!budget.take_or(101, || panic!("it never fits")));
        assert!(budget.take(100));
        let mut calls = 0;
        let made = budget.take_or(60, || {
            calls += 1;
            budget.give(30);
            true
        });
        assert!(made && calls == 2);
        assert_eq!(budget.held(), 100);
        assert!(!budget.take_or(1, || false));
    }
}
