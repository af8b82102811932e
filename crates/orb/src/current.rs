//! The ORB that a thread works for: a reference read from a message belongs to it.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use crate::call_side::CallSide;

thread_local! {
    static CURRENT: RefCell<Weak<CallSide>> = const { RefCell::new(Weak::new()) };
}

thread_local! {
    /// The address of the current ORB; null before the first. [`CURRENT`] keeps the address from being reused.
    static ENTERED: Cell<*const CallSide> = const { Cell::new(std::ptr::null()) };
}

/// Makes `orb` the current ORB of this thread. Costs one comparison if it is current already.
#[inline]
pub(crate) fn enter(orb: &Weak<CallSide>) {
    if ENTERED.get() != orb.as_ptr() {
        change_to(orb.clone());
    }
}

/// As [`enter`], with a strong handle.
#[inline]
pub(crate) fn enter_strong(orb: &Arc<CallSide>) {
    if ENTERED.get() != Arc::as_ptr(orb) {
        change_to(Arc::downgrade(orb));
    }
}

#[cold]
#[inline(never)]
fn change_to(orb: Weak<CallSide>) {
    ENTERED.set(orb.as_ptr());
    CURRENT.set(orb);
}

/// Returns the ORB that this thread last worked for, if that still exists.
pub(crate) fn orb() -> Option<Arc<CallSide>> {
    CURRENT.with_borrow(Weak::upgrade)
}
