//! The system exceptions that a channel raises.

use std::cell::RefCell;

use deckwatch_orb::{Completion, PoaError, SystemException, SystemExceptionKind as Kind};

/// Converts an adapter's error to the system exception that a caller of the channel receives.
pub(crate) fn system(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => raise(Kind::Internal),
    }
}

thread_local! {
    /// The facts of the last refusal of this thread.
    static DETAIL: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A system exception with facts for the operator.
pub(crate) fn refuse(kind: Kind, minor: u32, detail: String) -> SystemException {
    DETAIL.set(Some(detail));
    SystemException::new(kind, minor, Completion::No)
}

/// Returns why this thread has just refused something, in words.
pub(crate) fn refused_because(exception: SystemException) -> String {
    DETAIL.with_borrow(|detail| detail.clone().unwrap_or_else(|| exception.to_string()))
}

/// A system exception that the channel itself raises.
pub(crate) const fn raise(kind: Kind) -> SystemException {
    SystemException::new(kind, 0, Completion::No)
}
