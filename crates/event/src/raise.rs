//! The system exceptions that a channel raises.

use deckwatch_orb::{
    Completion, PoaError, SystemException, SystemExceptionKind as Kind, exception_detail,
    explain_exception,
};

/// Converts an adapter's error to the system exception that a caller of the channel receives.
pub(crate) fn system(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => raise(Kind::Internal),
    }
}

/// A system exception with facts for the operator and for the caller, whose reply carries them.
pub(crate) fn refuse(kind: Kind, minor: u32, detail: String) -> SystemException {
    explain_exception(SystemException::new(kind, minor, Completion::No), detail)
}

/// Returns why this thread has just refused something, in words.
pub(crate) fn refused_because(exception: SystemException) -> String {
    exception_detail(&exception).unwrap_or_else(|| exception.to_string())
}

/// A system exception that the channel itself raises.
pub(crate) const fn raise(kind: Kind) -> SystemException {
    SystemException::new(kind, 0, Completion::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_of_the_adapter_is_the_caller_s_and_its_other_errors_are_internal() {
        let full = raise(Kind::NoResources);
        assert_eq!(system(PoaError::System(full)), full);
        assert_eq!(system(PoaError::WrongPolicy), raise(Kind::Internal));
    }
}
