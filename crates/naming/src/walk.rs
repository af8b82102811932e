//! Walks a compound name from one of our contexts to the context that holds the last component.

use deckwatch_orb::cos_naming::naming_context::{
    AlreadyBound, CannotProceed, InvalidName, NotEmpty, NotFound, NotFoundReason,
};
use deckwatch_orb::cos_naming::{
    NameComponent, NamingContextBindContextError, NamingContextBindError,
    NamingContextBindNewContextError, NamingContextDestroyError, NamingContextExtResolveStrError,
    NamingContextRebindContextError, NamingContextRebindError, NamingContextRef,
    NamingContextResolveError, NamingContextUnbindError,
};
use deckwatch_orb::{Completion, Orb, SystemException, SystemExceptionKind as Kind, own_minor};

use crate::limits;
use crate::outward::origin_of;
use crate::store::{Store, StoreError, Target};

/// The context in which a name's last component is looked up or bound.
pub(crate) enum Place<'n> {
    /// A context of this service.
    Here {
        context: u64,
        last: &'n NameComponent,
    },
    /// A context of another service, with the rest of the name.
    Elsewhere {
        context: NamingContextRef,
        rest: &'n [NameComponent],
    },
}

/// Why an operation of a naming context failed. Each operation raises only those in its `raises` clause.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// A component is not bound, or is bound to a target of the wrong kind.
    NotFound(NotFound),
    /// The rest of the name is in a context of another service that cannot be reached from here.
    CannotProceed(CannotProceed),
    /// The name is empty, or longer than the service accepts.
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

    /// Converts the fault for an operation without user exceptions.
    pub(crate) fn into_system(self) -> SystemException {
        match self {
            Self::System(exception) => exception,
            _ => raise(Kind::Unknown),
        }
    }
}

/// A system exception that this service itself raises.
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
            StoreError::Full => {
                SystemException::new(Kind::NoResources, own_minor::NAMES_FULL, Completion::No)
            }
            StoreError::ShareFull => {
                SystemException::new(Kind::ImpLimit, own_minor::NAMES_SHARE_FULL, Completion::No)
            }
            StoreError::Damaged(_) => {
                SystemException::new(Kind::PersistStore, own_minor::STORE_DAMAGED, Completion::No)
            }
            _ => raise(Kind::PersistStore),
        })
    }
}

/// Conversions between [`Fault`] and the error of one operation, in both directions. An operation never meets a fault
/// that it does not list.
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

/// Checks that a name has components, not too many and not too long.
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
/// `InvalidName` as for [`check`]; `NotFound` with the rest of the name, from the component that is missing or is no
/// context.
pub(crate) fn walk<'n>(
    store: &Store,
    orb: &Orb,
    start: u64,
    name: &'n [NameComponent],
) -> Result<Place<'n>, Fault> {
    check(name)?;
    let mut context = start;
    for (index, component) in name[..name.len() - 1].iter().enumerate() {
        let binding = store.binding(context, &component.id, &component.kind)?;
        match binding.map(|binding| (binding.target, binding.maker)) {
            Some((Target::Context(next), _)) => context = next,
            Some((Target::ForeignContext(ior), maker)) => {
                let reference = orb
                    .string_to_object_of(&ior, origin_of(&maker))?
                    .ok_or_else(|| raise(Kind::InvObjref))?;
                return Ok(Place::Elsewhere {
                    context: NamingContextRef::unchecked_narrow(reference),
                    rest: &name[index + 1..],
                });
            }
            Some((Target::Object(_), _)) => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Damage;

    #[test]
    fn what_the_store_refuses_is_the_exception_that_the_standard_has_for_it() {
        assert!(matches!(
            Fault::from(StoreError::AlreadyBound),
            Fault::AlreadyBound(_)
        ));
        assert!(matches!(
            Fault::from(StoreError::NotEmpty),
            Fault::NotEmpty(_)
        ));
        for (error, kind, minor) in [
            (StoreError::NoSuchContext, Kind::ObjectNotExist, 0),
            (StoreError::Full, Kind::NoResources, own_minor::NAMES_FULL),
            (
                StoreError::ShareFull,
                Kind::ImpLimit,
                own_minor::NAMES_SHARE_FULL,
            ),
            (
                StoreError::Damaged(Damage::Whole),
                Kind::PersistStore,
                own_minor::STORE_DAMAGED,
            ),
            (StoreError::OtherFormat("x"), Kind::PersistStore, 0),
        ] {
            let raised = Fault::from(error).into_system();
            let expected = SystemException::new(kind, minor, Completion::No);
            assert_eq!(raised, expected);
        }
    }

    #[test]
    fn a_fault_that_an_operation_does_not_list_is_an_unknown_exception() {
        let unlisted = Fault::AlreadyBound(AlreadyBound {}).into_system();
        assert_eq!(unlisted, raise(Kind::Unknown));
    }

    #[test]
    fn a_name_has_components_and_not_more_or_longer_ones_than_it_may() {
        let component = |id: usize, kind: usize| NameComponent {
            id: "i".repeat(id),
            kind: "k".repeat(kind),
        };
        let (most, longest) = (limits::COMPONENTS_MAX, limits::COMPONENT_SIZE_MAX);
        let sound = [
            vec![component(0, 0)],
            vec![component(longest, longest)],
            vec![component(1, 1); most],
        ];
        for name in sound {
            assert!(check(&name).is_ok(), "{} components", name.len());
        }
        let unsound = [
            Vec::new(),
            vec![component(longest + 1, 0)],
            vec![component(0, longest + 1)],
            vec![component(1, 1), component(longest + 1, 1)],
            vec![component(1, 1); most + 1],
            vec![component(1, 1); most + 2],
        ];
        for name in unsound {
            let Err(Fault::InvalidName(_)) = check(&name) else {
                panic!("{} components", name.len());
            };
        }
    }
}
