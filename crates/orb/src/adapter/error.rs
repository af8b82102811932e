//! Why operations of an object adapter fail (the exceptions of `PortableServer::POA`, CORBA 3.3 part 1, 15.3.9).

use std::fmt;

use crate::SystemException;

/// Why an operation of an adapter failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoaError {
    /// An adapter of this name exists already.
    AdapterAlreadyExists,
    /// No adapter of this name exists.
    AdapterNonExistent,
    /// The policy of this type id contradicts the others, or is not supported.
    InvalidPolicy(u16),
    /// The id is active already.
    ObjectAlreadyActive,
    /// The id is not active.
    ObjectNotActive,
    /// The servant is active already and may serve only one id.
    ServantAlreadyActive,
    /// The servant is not active.
    ServantNotActive,
    /// No default servant has been set.
    NoServant,
    /// The reference is of another adapter.
    WrongAdapter,
    /// The adapter's policies do not allow the operation.
    WrongPolicy,
    /// A system exception.
    System(SystemException),
}

impl fmt::Display for PoaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AdapterAlreadyExists => "An adapter of this name exists already.",
            Self::AdapterNonExistent => "No adapter of this name exists.",
            Self::InvalidPolicy(id) => {
                return write!(
                    f,
                    "The policy of type {id} cannot be combined with the others."
                );
            }
            Self::ObjectAlreadyActive => "The object id is active already.",
            Self::ObjectNotActive => "The object id is not active.",
            Self::ServantAlreadyActive => {
                "The servant is active already and may serve only one object id."
            }
            Self::ServantNotActive => "The servant is not active.",
            Self::NoServant => "No default servant has been set.",
            Self::WrongAdapter => "The reference is of another adapter.",
            Self::WrongPolicy => "The adapter's policies do not allow the operation.",
            Self::System(exception) => return exception.fmt(f),
        })
    }
}

impl std::error::Error for PoaError {}

impl From<SystemException> for PoaError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}
