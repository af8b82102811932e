//! How values of a type are read: one table for the whole process, by repository id.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use super::{About, State, ValueBase};
use crate::{DecodeError, Reader};

/// Reads values of one type.
#[derive(Clone, Copy)]
pub struct ValueFactory {
    about: &'static About,
    read: fn(&mut Reader<'_>) -> Result<Arc<dyn ValueBase>, DecodeError>,
}

impl ValueFactory {
    /// The factory of a generated struct.
    #[must_use]
    pub const fn of<T: State>() -> Self {
        Self {
            about: &T::ABOUT,
            read: |r| Ok(Arc::new(T::parse_state(r)?)),
        }
    }

    /// The repository id of the values that it reads.
    #[must_use]
    pub const fn repository_id(&self) -> &'static str {
        self.about.ids[0]
    }

    pub(super) const fn about(&self) -> &'static About {
        self.about
    }

    pub(super) fn read(&self, r: &mut Reader<'_>) -> Result<Arc<dyn ValueBase>, DecodeError> {
        (self.read)(r)
    }
}

impl fmt::Debug for ValueFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ValueFactory")
            .field(&self.repository_id())
            .finish()
    }
}

/// An `any` is read without an ORB, so the table belongs to the process.
static FACTORIES: LazyLock<RwLock<HashMap<Box<str>, ValueFactory>>> =
    LazyLock::new(RwLock::default);

/// Registers the factory for values with this repository id, and returns the one that it replaces. The type that an
/// operation or member declares needs no registration: types derived from it do.
pub fn register_value_factory(repository_id: &str, factory: ValueFactory) -> Option<ValueFactory> {
    let mut factories = FACTORIES.write().unwrap_or_else(PoisonError::into_inner);
    factories.insert(repository_id.into(), factory)
}

/// Removes and returns the factory for values with this repository id.
pub fn unregister_value_factory(repository_id: &str) -> Option<ValueFactory> {
    let mut factories = FACTORIES.write().unwrap_or_else(PoisonError::into_inner);
    factories.remove(repository_id)
}

/// Returns the factory for values with this repository id.
#[must_use]
pub fn lookup_value_factory(repository_id: &str) -> Option<ValueFactory> {
    looked_up(repository_id);
    let factories = FACTORIES.read().unwrap_or_else(PoisonError::into_inner);
    factories.get(repository_id).copied()
}

/// Called for each id that is looked up. Only tests count the octets.
#[cfg(not(test))]
const fn looked_up(_: &str) {}

#[cfg(test)]
use counted::looked_up;
#[cfg(test)]
pub(crate) mod counted {
    use std::cell::Cell;

    thread_local!(static LOOKED_UP: Cell<usize> = const { Cell::new(0) });

    pub(super) fn looked_up(id: &str) {
        LOOKED_UP.set(LOOKED_UP.get() + id.len());
    }

    /// Octets of ids that this thread has looked up.
    pub(crate) fn octets_looked_up() -> usize {
        LOOKED_UP.get()
    }
}
