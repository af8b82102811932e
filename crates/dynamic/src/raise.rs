//! The system exceptions that this crate raises, by name.

use deckwatch_orb::{Completion, SystemException, SystemExceptionKind as Kind};

macro_rules! raises {
    ($($name:ident => $kind:ident;)*) => { $(
        pub(crate) const fn $name(minor: u32, completed: Completion) -> SystemException {
            SystemException::new(Kind::$kind, minor, completed)
        }
    )* };
}

raises! {
    bad_inv_order => BadInvOrder;
    bad_operation => BadOperation;
    bad_param => BadParam;
    no_response => NoResponse;
    object_not_exist => ObjectNotExist;
    timeout => Timeout;
}
