//! Which ORB a thread is working for: where a reference read from a message finds its connections.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use crate::orb::OrbCore;

thread_local! {
    static CURRENT: RefCell<Weak<OrbCore>> = const { RefCell::new(Weak::new()) };
}

/// From here on this thread works for `orb`. Costs a comparison where it does so already.
pub(crate) fn enter(orb: &Weak<OrbCore>) {
    CURRENT.with_borrow_mut(|current| {
        if !current.ptr_eq(orb) {
            current.clone_from(orb);
        }
    });
}

/// As [`enter`], by a strong handle.
pub(crate) fn enter_core(orb: &Arc<OrbCore>) {
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
