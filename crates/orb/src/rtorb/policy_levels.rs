//! The handles that set the policies of the ORB and of the calling thread.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::SystemException;
use crate::call_side::CallSide;
use crate::policy::{Policy, PolicyType, SetOverrideType, at_thread, set_at_thread};

/// The policies of all calls of an ORB (CORBA::PolicyManager).
#[derive(Clone)]
pub struct PolicyManager(pub(crate) Arc<CallSide>);

impl PolicyManager {
    /// Sets policies for every call of the ORB. Policies of the thread and of the reference override them.
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

    /// Returns the overrides of these kinds; of all kinds if `kinds` is empty.
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

/// The policies of the calls that the calling thread makes through an ORB (CORBA::PolicyCurrent).
#[derive(Clone)]
pub struct PolicyCurrent(pub(crate) Weak<CallSide>);

impl PolicyCurrent {
    /// Sets policies for every call of this thread. Policies of the reference override them.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 30 for two policies of one kind.
    pub fn set_policy_overrides(
        &self,
        policies: &[Policy],
        how: SetOverrideType,
    ) -> Result<(), SystemException> {
        let changed = at_thread(self.0.as_ptr().cast()).changed(policies, how)?;
        set_at_thread(self.0.clone(), changed);
        Ok(())
    }

    /// Returns the overrides of these kinds; of all kinds if `kinds` is empty.
    #[must_use]
    pub fn policy_overrides(&self, kinds: &[PolicyType]) -> Vec<Policy> {
        at_thread(self.0.as_ptr().cast()).list(kinds)
    }
}

impl fmt::Debug for PolicyCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.policy_overrides(&[]);
        f.debug_tuple("PolicyCurrent").field(&set).finish()
    }
}
