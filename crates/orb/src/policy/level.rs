//! Two of the three levels at which policies are set: the ORB's and the thread's. The third is the reference's.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use deckwatch_sync::PiMutex;

use super::overrides::{COUNT, DETAILS};
use super::{Overrides, Policy, SetOverrideType};
use crate::SystemException;

thread_local! {
    /// One entry per ORB for which this thread has overrides: most threads have none, most others one.
    static OF_THREAD: RefCell<Vec<(OrbIdentity, Overrides)>> = const { RefCell::new(Vec::new()) };
}

thread_local! {
    /// Whether this thread has any overrides: most calls read only this.
    static IS_ANY_OF_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the calling thread has set any override, for calls through any ORB.
#[inline]
pub(crate) fn is_any_at_thread() -> bool {
    IS_ANY_OF_THREAD.get()
}

/// Identifies an ORB, and shows whether it still exists.
pub(crate) type OrbIdentity = Weak<dyn Any + Send + Sync>;

/// Returns the calling thread's overrides for calls through the ORB at this address.
pub(crate) fn at_thread(orb: *const ()) -> Overrides {
    OF_THREAD.with_borrow(|kept| {
        let of_orb = kept.iter().find(|(kept, _)| kept.as_ptr().cast() == orb);
        of_orb.map(|(_, set)| *set).unwrap_or_default()
    })
}

/// Sets the calling thread's overrides for calls through `orb`.
pub(crate) fn set_at_thread(orb: OrbIdentity, overrides: Overrides) {
    OF_THREAD.with_borrow_mut(|kept| {
        let is_another = |of: &OrbIdentity| of.as_ptr().cast::<()>() != orb.as_ptr().cast();
        kept.retain(|(of, _)| is_another(of) && of.strong_count() != 0);
        if overrides != Overrides::default() {
            kept.push((orb, overrides));
        }
        IS_ANY_OF_THREAD.set(!kept.is_empty());
    });
}

/// The ORB's overrides: written rarely, read by every call.
pub(crate) struct AtOrb {
    /// Bit set of the policies that are set; at 0 a call reads nothing else.
    set: AtomicU64,
    /// Even while no change is under way; each change sets a new even number.
    version: AtomicU64,
    words: [AtomicU64; COUNT],
    details: [AtomicU64; DETAILS],
    changing: PiMutex<()>,
}

impl AtOrb {
    pub(crate) fn new(overrides: Overrides) -> Self {
        Self {
            set: AtomicU64::new(overrides.set),
            version: AtomicU64::new(0),
            words: overrides.words.map(AtomicU64::new),
            details: overrides.details.map(AtomicU64::new),
            changing: PiMutex::new(()),
        }
    }

    /// Returns whether no policy is set.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.set.load(Ordering::Relaxed) == 0
    }

    /// Returns the overrides as before or after a concurrent change, never a mix of both.
    #[inline]
    pub(crate) fn read(&self) -> Overrides {
        if self.set.load(Ordering::Relaxed) == 0 {
            return Overrides::default();
        }
        self.read_set()
    }

    fn read_set(&self) -> Overrides {
        // SYNC: pairs with the release of `version` in `change`.
        let before = self.version.load(Ordering::Acquire);
        let seen = self.read_words();
        // SYNC: pairs with the release fence in `change`: a reader that has seen a word of a change also sees its odd
        // version.
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
            return seen;
        }
        let _until_changed = self.changing.lock("policy.read");
        self.read_words()
    }

    fn read_words(&self) -> Overrides {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Overrides {
            set: load(&self.set),
            words: std::array::from_fn(|place| load(&self.words[place])),
            details: std::array::from_fn(|place| load(&self.details[place])),
        }
    }

    pub(crate) fn change(
        &self,
        policies: &[Policy],
        how: SetOverrideType,
    ) -> Result<(), SystemException> {
        let _one_at_a_time = self.changing.lock("policy.change");
        let changed = self.read_words().changed(policies, how)?;
        let version = self.version.load(Ordering::Relaxed);
        self.version
            .store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        self.set.store(changed.set, Ordering::Relaxed);
        let words = self.words.iter().zip(changed.words);
        let details = self.details.iter().zip(changed.details);
        for (word, value) in words.chain(details) {
            word.store(value, Ordering::Relaxed);
        }
        self.version
            .store(version.wrapping_add(2), Ordering::Release);
        Ok(())
    }
}
