//! The way through a compound name: from a context of ours to the context that holds the last component.

use deckwatch_orb::cos_naming::naming_context::{
    AlreadyBound, CannotProceed, InvalidName, NotEmpty, NotFound, NotFoundReason,
};
use deckwatch_orb::cos_naming::{
    NameComponent, NamingContextBindContextError, NamingContextBindError,
    NamingContextBindNewContextError, NamingContextDestroyError, NamingContextExtResolveStrError,
    NamingContextRebindContextError, NamingContextRebindError, NamingContextRef,
    NamingContextResolveError, NamingContextUnbindError,
};
use deckwatch_orb::{Completion, Orb, SystemException, SystemExceptionKind as Kind};

use crate::limits;
use crate::store::{Store, StoreError, Target};

/// Where a name's last component is to be looked up or bound.
pub(crate) enum Place<'n> {
    /// In a context of ours.
    Here {
        context: u64,
        last: &'n NameComponent,
    },
    /// In a context of another service, under what is left of the name.
    Elsewhere {
        context: NamingContextRef,
        rest: &'n [NameComponent],
    },
}

/// Why an operation of a naming context ends without its result; each operation raises those that its `raises` clause lists.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A component is not bound, or to something of the wrong kind.
    NotFound(NotFound),
    /// The name goes on in a context that cannot be asked from here.
    CannotProceed(CannotProceed),
    /// The name is empty, or longer than the service takes.
    InvalidName(InvalidName),
    /// The name is bound.
    AlreadyBound(AlreadyBound),
    /// The context to be destroyed has bindings.
    NotEmpty(NotEmpty),
    /// A system exception.
    System(SystemException),
}

impl Fault {
    /// The component at the head of `rest` is missing or of the wrong kind.
    pub(crate) fn not_found(why: NotFoundReason, rest: &[NameComponent]) -> Self {
        Self::NotFound(NotFound {
            why,
            rest_of_name: rest.to_vec(),
        })
    }

    /// What an operation without user exceptions raises for it.
    pub(crate) fn into_system(self) -> SystemException {
        match self {
            Self::System(exception) => exception,
            _ => raise(Kind::Unknown),
        }
    }
}

/// A system exception of this service's own making.
pub(crate) const fn raise(kind: Kind) -> SystemException {
    SystemException::new(kind, 0, Completion::No)
}

impl From<SystemException> for Fault {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::System(match error {
            StoreError::AlreadyBound => return Self::AlreadyBound(AlreadyBound {}),
            StoreError::NotEmpty => return Self::NotEmpty(NotEmpty {}),
            StoreError::NoSuchContext => raise(Kind::ObjectNotExist),
            StoreError::Full => raise(Kind::NoResources),
            _ => raise(Kind::PersistStore),
        })
    }
}

/// Both ways between [`Fault`] and the error of one operation. A fault that the operation does not list cannot come about in it.
macro_rules! faults {
    ($($error:ident: $($variant:ident),*;)*) => {$(
        impl From<Fault> for $error {
            fn from(fault: Fault) -> Self {
                match fault {
                    $(Fault::$variant(exception) => Self::$variant(exception),)*
                    #[allow(unreachable_patterns, reason = "an operation that raises all of them leaves none over")]
                    _ => Self::System(raise(Kind::Internal)),
                }
            }
        }

        impl From<$error> for Fault {
            fn from(error: $error) -> Self {
                match error {
                    $($error::$variant(exception) => Self::$variant(exception),)*
                }
            }
        }
    )*};
}

faults! {
    NamingContextBindError: NotFound, CannotProceed, InvalidName, AlreadyBound, System;
    NamingContextRebindError: NotFound, CannotProceed, InvalidName, System;
    NamingContextBindContextError: NotFound, CannotProceed, InvalidName, AlreadyBound, System;
    NamingContextRebindContextError: NotFound, CannotProceed, InvalidName, System;
    NamingContextResolveError: NotFound, CannotProceed, InvalidName, System;
    NamingContextUnbindError: NotFound, CannotProceed, InvalidName, System;
    NamingContextBindNewContextError: NotFound, AlreadyBound, CannotProceed, InvalidName, System;
    NamingContextExtResolveStrError: NotFound, CannotProceed, InvalidName, System;
    NamingContextDestroyError: NotEmpty, System;
}

/// A name that has components, not too many and not too long.
///
/// # Errors
/// `InvalidName`.
pub(crate) fn check(name: &[NameComponent]) -> Result<(), Fault> {
    let is_long = |component: &NameComponent| {
        component.id.len().max(component.kind.len()) > limits::COMPONENT_SIZE_MAX
    };
    if name.is_empty() || name.len() > limits::COMPONENTS_MAX || name.iter().any(is_long) {
        return Err(Fault::InvalidName(InvalidName {}));
    }
    Ok(())
}

/// Walks all components but the last.
///
/// # Errors
/// `InvalidName` for an empty name; `NotFound` with what is left from the component that is missing or no context.
pub(crate) fn walk<'n>(
    store: &Store,
    orb: &Orb,
    start: u64,
    name: &'n [NameComponent],
) -> Result<Place<'n>, Fault> {
    check(name)?;
    let mut context = start;
    for (index, component) in name[..name.len() - 1].iter().enumerate() {
        match store.lookup(context, &component.id, &component.kind)? {
            Some(Target::Context(next)) => context = next,
            Some(Target::ForeignContext(ior)) => {
                let reference = orb
                    .string_to_object(&ior)?
                    .ok_or_else(|| raise(Kind::InvObjref))?;
                let reference = reference.with_round_trip_timeout(Some(limits::FOREIGN_TIMEOUT));
                return Ok(Place::Elsewhere {
                    context: NamingContextRef::unchecked_narrow(reference),
                    rest: &name[index + 1..],
                });
            }
            Some(Target::Object(_)) => {
                return Err(Fault::not_found(NotFoundReason::NotContext, &name[index..]));
            }
            None => {
                return Err(Fault::not_found(
                    NotFoundReason::MissingNode,
                    &name[index..],
                ));
            }
        }
    }
    Ok(Place::Here {
        context,
        last: &name[name.len() - 1],
    })
}
