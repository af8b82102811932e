//! The ORB's operations on value factories (CORBA 3.3 part 1, clause 9.4.3).

use deckwatch_cdr::valuetype::{self, ValueFactory};

use crate::{Completion, Orb, Result, SystemException, SystemExceptionKind, minor};

impl Orb {
    /// Registers how values of this type are read, and returns the factory that it replaces. The type that an operation
    /// or a member declares needs none; types derived from it do. All ORBs of a process have one table: an `any` is read
    /// without an ORB.
    pub fn register_value_factory(
        &self,
        repository_id: &str,
        factory: ValueFactory,
    ) -> Option<ValueFactory> {
        valuetype::register_value_factory(repository_id, factory)
    }

    /// Removes the factory for values of this type.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 1 where there is none.
    pub fn unregister_value_factory(&self, repository_id: &str) -> Result<ValueFactory> {
        valuetype::unregister_value_factory(repository_id).ok_or(UNKNOWN)
    }

    /// Returns the factory for values of this type.
    ///
    /// # Errors
    /// As [`Orb::unregister_value_factory`].
    pub fn lookup_value_factory(&self, repository_id: &str) -> Result<ValueFactory> {
        valuetype::lookup_value_factory(repository_id).ok_or(UNKNOWN)
    }
}

const UNKNOWN: SystemException = SystemException::new(
    SystemExceptionKind::BadParam,
    minor::VALUE_FACTORY_UNKNOWN,
    Completion::No,
);
