//! `PICurrent`: slots that are copied from a thread to the requests it makes, and from a request to the thread that
//! serves it.
//!
//! An outgoing request has a copy of the slots of its thread at that time. An incoming request has its own slots, which
//! are the thread's slots while it is served. Client interceptors run with empty slots of their own: only the calls
//! that they make see the values that they set.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use deckwatch_cdr::Any;

use super::{Registered, Registry, facts};
use crate::SystemException;

/// Identifies a slot; [`super::OrbInitInfo::allocate_slot_id`] returns it.
pub type SlotId = u32;

/// Why a slot cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// No slot of this id was allocated.
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

/// The slots of the calling thread. It does not keep the ORB alive, so a servant may own it.
#[derive(Clone)]
pub struct PiCurrent(pub(super) Arc<Registry>);

impl PiCurrent {
    /// Returns the value of a slot; an empty Any if it was never set.
    ///
    /// # Errors
    /// [`SlotError`].
    pub fn slot(&self, id: SlotId) -> Result<Any, SlotError> {
        let all = self.registered(id)?;
        Ok(Slots::of_thread(all).get(id))
    }

    /// Sets the value of a slot.
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

/// The values of the slots of one scope. Slots beyond the end of the vector are empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Vec<Any>);

impl Slots {
    /// Returns a copy of the calling thread's slots.
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
    /// The scopes of the thread, outermost first: its own scope of each ORB, then the scopes entered since.
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

/// Makes these slots the thread's slots until [`leave`].
pub(super) fn enter(orb: u32, slots: Slots) {
    // The thread's own scope must exist below this one. Otherwise an inner `leave` could remove this one in its place.
    with_thread(orb, |_| ());
    SCOPES.with_borrow_mut(|scopes| scopes.push(Scope { orb, slots }));
}

/// Removes the innermost scope and returns its slots. The thread has its earlier slots again.
pub(super) fn leave(orb: u32) -> Slots {
    SCOPES.with_borrow_mut(|scopes| {
        let index = scopes.iter().rposition(|scope| scope.orb == orb);
        let left = index.map_or_else(Slots::default, |index| scopes.remove(index).slots);
        // The thread's own scope is removed when it is the only one left and is empty.
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

/// Sets a slot in the innermost scope of the thread.
pub(super) fn set_here(orb: u32, id: SlotId, value: Any) {
    with_thread(orb, |slots| slots.set(id, value));
}

/// Gives the thread empty slots until it is dropped. Client interceptors run in it.
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
