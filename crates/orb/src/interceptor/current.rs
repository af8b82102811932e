//! `PICurrent`: slots that travel from a thread to the requests it makes, and from a request to the thread that serves it.
//!
//! A request that goes out has a copy of its thread's slots as they were; one that comes in has slots of its own, which are the thread's while
//! it is served. Interceptors of the client's side run with empty slots of their own, so that what they set is seen by the calls that
//! they make and by nobody else.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use deckwatch_cdr::Any;

use super::{Registered, Registry, facts};
use crate::SystemException;

/// Names a slot; given by [`super::OrbInitInfo::allocate_slot_id`].
pub type SlotId = u32;

/// Why a slot is not to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// No slot of this number was allocated.
    InvalidSlot,
    /// BAD_INV_ORDER while the ORB is being made.
    System(SystemException),
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidSlot => f.write_str("No slot of this number was allocated."),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for SlotError {}

/// The slots of the calling thread. It does not keep the ORB: a servant may have it.
#[derive(Clone)]
pub struct PiCurrent(pub(super) Arc<Registry>);

impl PiCurrent {
    /// What is in a slot; an Any without a value where nothing was put there.
    ///
    /// # Errors
    /// [`SlotError`].
    pub fn slot(&self, id: SlotId) -> Result<Any, SlotError> {
        let all = self.registered(id)?;
        Ok(Slots::of_thread(all).get(id))
    }

    /// Puts a value into a slot.
    ///
    /// # Errors
    /// [`SlotError`].
    pub fn set_slot(&self, id: SlotId, value: Any) -> Result<(), SlotError> {
        let all = self.registered(id)?;
        with_thread(all.number, |slots| slots.set(id, value));
        Ok(())
    }

    fn registered(&self, id: SlotId) -> Result<&Arc<Registered>, SlotError> {
        match self.0.all() {
            Some(all) if id < all.slots => Ok(all),
            None if !self.0.is_fixed() => Err(SlotError::System(facts::out_of_place())),
            _ => Err(SlotError::InvalidSlot),
        }
    }
}

impl fmt::Debug for PiCurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PiCurrent")
    }
}

/// The values of the slots of one scope; those behind the last are empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Vec<Any>);

impl Slots {
    /// Those of the calling thread, as they are now.
    pub(super) fn of_thread(all: &Registered) -> Self {
        SCOPES.with_borrow(|scopes| {
            let innermost = scopes.iter().rev().find(|scope| scope.orb == all.number);
            innermost.map_or_else(Self::default, |scope| scope.slots.clone())
        })
    }

    pub(super) fn get(&self, id: SlotId) -> Any {
        self.0.get(id as usize).cloned().unwrap_or_default()
    }

    pub(super) fn set(&mut self, id: SlotId, value: Any) {
        let index = id as usize;
        if self.0.len() <= index {
            self.0.resize(index + 1, Any::empty());
        }
        self.0[index] = value;
    }
}

struct Scope {
    orb: u32,
    slots: Slots,
}

thread_local! {
    /// The thread's own scopes, and above them those it has entered.
    static SCOPES: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
}

fn with_thread(orb: u32, change: impl FnOnce(&mut Slots)) {
    SCOPES.with_borrow_mut(|scopes| {
        let index = match scopes.iter().rposition(|scope| scope.orb == orb) {
            Some(index) => index,
            None => {
                let slots = Slots::default();
                scopes.push(Scope { orb, slots });
                scopes.len() - 1
            }
        };
        change(&mut scopes[index].slots);
    });
}

/// From here on the thread has these slots, until [`leave`].
pub(super) fn enter(orb: u32, slots: Slots) {
    // Below it there is a scope of the thread's own, so that this one is not taken for it.
    with_thread(orb, |_| ());
    SCOPES.with_borrow_mut(|scopes| scopes.push(Scope { orb, slots }));
}

/// The slots that were entered last; the thread has those from before.
pub(super) fn leave(orb: u32) -> Slots {
    SCOPES.with_borrow_mut(|scopes| {
        let index = scopes.iter().rposition(|scope| scope.orb == orb);
        let left = index.map_or_else(Slots::default, |index| scopes.remove(index).slots);
        // The thread's own scope is kept for what is in it.
        let mut others = scopes
            .iter()
            .enumerate()
            .filter(|(_, scope)| scope.orb == orb);
        if let (Some((own, scope)), None) = (others.next(), others.next())
            && scope.slots.0.is_empty()
        {
            scopes.remove(own);
        }
        left
    })
}

/// The innermost scope of the thread.
pub(super) fn set_here(orb: u32, id: SlotId, value: Any) {
    with_thread(orb, |slots| slots.set(id, value));
}

/// Empty slots while it lives: those of interceptors on the client's side.
pub(super) struct Apart(u32);

impl Apart {
    pub(super) fn enter(all: &Registered) -> Self {
        if all.slots != 0 {
            enter(all.number, Slots::default());
        }
        Self(if all.slots != 0 { all.number } else { NO_ORB })
    }
}

/// No ORB has this number.
const NO_ORB: u32 = u32::MAX;

impl Drop for Apart {
    fn drop(&mut self) {
        if self.0 != NO_ORB {
            drop(leave(self.0));
        }
    }
}
