//! The system exceptions that a channel raises.

use deckwatch_orb::{Completion, PoaError, SystemException, SystemExceptionKind as Kind};

/// Converts an adapter's error to the system exception that a caller of the channel receives.
pub(crate) fn system(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => raise(Kind::Internal),
    }
}

/// A system exception that the channel itself raises.
pub(crate) const fn raise(kind: Kind) -> SystemException {
    SystemException::new(kind, 0, Completion::No)
}
