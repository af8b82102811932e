//! Which ORB a thread is working for: where a reference read from a message finds its connections.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use crate::orb::OrbCore;

thread_local! {
    static CURRENT: RefCell<Weak<OrbCore>> = const { RefCell::new(Weak::new()) };
}

/// From here on this thread works for `orb`. Costs a comparison where it does so already.
pub(crate) fn enter(orb: &Weak<OrbCore>) {
    CURRENT.with_borrow_mut(|current| {
        if !current.ptr_eq(orb) {
            ENTERED.set(std::ptr::null());
            current.clone_from(orb);
        }
    });
}

thread_local! {
    /// The ORB that [`enter_core`] has last found or made the current one; none since [`enter`] has changed it. What is current keeps its
    /// address from being another's.
    static ENTERED: Cell<*const OrbCore> = const { Cell::new(std::ptr::null()) };
}

/// As [`enter`], by a strong handle.
#[inline]
pub(crate) fn enter_core(orb: &Arc<OrbCore>) {
    if ENTERED.get() != Arc::as_ptr(orb) {
        change_to(orb);
    }
}

#[cold]
fn change_to(orb: &Arc<OrbCore>) {
    ENTERED.set(Arc::as_ptr(orb));
    CURRENT.with_borrow_mut(|current| {
        if current.as_ptr() != Arc::as_ptr(orb) {
            *current = Arc::downgrade(orb);
        }
    });
}

/// The ORB this thread last worked for, if it still is.
pub(crate) fn orb() -> Option<Arc<OrbCore>> {
    CURRENT.with_borrow(Weak::upgrade)
}
