//! Which ORB a thread is working for: where a reference read from a message finds its connections.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use crate::orb::OrbCore;

thread_local! {
    static CURRENT: RefCell<Weak<OrbCore>> = const { RefCell::new(Weak::new()) };
}

thread_local! {
    /// The address of the current ORB; none before the first. That it is current keeps it from being another's.
    static ENTERED: Cell<*const OrbCore> = const { Cell::new(std::ptr::null()) };
}

/// From here on this thread works for `orb`. Costs a comparison where it does so already.
#[inline]
pub(crate) fn enter(orb: &Weak<OrbCore>) {
    if ENTERED.get() != orb.as_ptr() {
        change_to(orb.clone());
    }
}

/// As [`enter`], by a strong handle.
#[inline]
pub(crate) fn enter_core(orb: &Arc<OrbCore>) {
    if ENTERED.get() != Arc::as_ptr(orb) {
        change_to(Arc::downgrade(orb));
    }
}

#[cold]
#[inline(never)]
fn change_to(orb: Weak<OrbCore>) {
    ENTERED.set(orb.as_ptr());
    CURRENT.set(orb);
}

/// The ORB this thread last worked for, if it still is.
pub(crate) fn orb() -> Option<Arc<OrbCore>> {
    CURRENT.with_borrow(Weak::upgrade)
}
