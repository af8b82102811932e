//! Two of the levels at which policies are set: the ORB's and the thread's. The third is the reference.

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use deckwatch_sync::PiMutex;

use super::{COUNT, Overrides, Policy, PolicyType, SetOverrideType};
use crate::SystemException;
use crate::orb::OrbCore;

/// Policies of all calls of an ORB (CORBA::PolicyManager).
#[derive(Clone)]
pub struct PolicyManager(pub(crate) Arc<OrbCore>);

impl PolicyManager {
    /// Sets policies for every call of the ORB that neither its thread nor its reference say otherwise for.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 30 for two policies of one kind.
    pub fn set_policy_overrides(
        &self,
        policies: &[Policy],
        how: SetOverrideType,
    ) -> Result<(), SystemException> {
        self.0.policies.change(policies, how)
    }

    /// The overrides of these kinds, of all where none is named.
    #[must_use]
    pub fn policy_overrides(&self, kinds: &[PolicyType]) -> Vec<Policy> {
        self.0.policies.read().list(kinds)
    }
}

impl fmt::Debug for PolicyManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.policy_overrides(&[]);
        f.debug_tuple("PolicyManager").field(&set).finish()
    }
}

/// Policies of the calls that the calling thread makes through an ORB (CORBA::PolicyCurrent).
#[derive(Clone)]
pub struct PolicyCurrent(pub(crate) Weak<OrbCore>);

impl PolicyCurrent {
    /// Sets policies for every call of this thread whose reference does not say otherwise.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 30 for two policies of one kind.
    pub fn set_policy_overrides(
        &self,
        policies: &[Policy],
        how: SetOverrideType,
    ) -> Result<(), SystemException> {
        let changed = at_thread(self.0.as_ptr()).changed(policies, how)?;
        OF_THREAD.with_borrow_mut(|kept| {
            kept.retain(|(orb, _)| !orb.ptr_eq(&self.0) && orb.strong_count() != 0);
            if changed != Overrides::default() {
                kept.push((self.0.clone(), changed));
            }
        });
        Ok(())
    }

    /// The overrides of these kinds, of all where none is named.
    #[must_use]
    pub fn policy_overrides(&self, kinds: &[PolicyType]) -> Vec<Policy> {
        at_thread(self.0.as_ptr()).list(kinds)
    }
}

impl fmt::Debug for PolicyCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.policy_overrides(&[]);
        f.debug_tuple("PolicyCurrent").field(&set).finish()
    }
}

thread_local! {
    /// One entry an ORB for which this thread has overrides: most have none, most others one.
    static OF_THREAD: RefCell<Vec<(Weak<OrbCore>, Overrides)>> = const { RefCell::new(Vec::new()) };
}

/// What the calling thread has set for its calls through `orb`.
pub(crate) fn at_thread(orb: *const OrbCore) -> Overrides {
    OF_THREAD.with_borrow(|kept| {
        let of_orb = kept.iter().find(|(kept, _)| kept.as_ptr() == orb);
        of_orb.map(|(_, set)| *set).unwrap_or_default()
    })
}

/// The ORB's overrides: written rarely, read by every call.
pub(crate) struct AtOrb {
    words: [AtomicU64; COUNT],
    changing: PiMutex<()>,
}

impl AtOrb {
    pub(crate) fn new(set: Overrides) -> Self {
        Self {
            words: set.0.map(AtomicU64::new),
            changing: PiMutex::new(()),
        }
    }

    /// Each word is whole; a call that begins while several are changed may see some of them.
    pub(crate) fn read(&self) -> Overrides {
        Overrides(std::array::from_fn(|place| {
            self.words[place].load(Ordering::Relaxed)
        }))
    }

    fn change(&self, policies: &[Policy], how: SetOverrideType) -> Result<(), SystemException> {
        let _one_at_a_time = self.changing.lock("policy.change");
        let changed = self.read().changed(policies, how)?;
        for (word, value) in self.words.iter().zip(changed.0) {
            word.store(value, Ordering::Relaxed);
        }
        Ok(())
    }
}
