//! The POA manager factory: managers that are made before their adapters, and found by name (CORBA 3.3 part 1,
//! 15.3.11).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::manager::WeakPoaManager;
use super::{Adapter, Poa, PoaManager};
use crate::SystemException;

/// Makes and finds the managers of one ORB.
#[derive(Clone)]
pub struct PoaManagerFactory(Arc<Adapter>);

/// A manager of this name exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerAlreadyExists;

impl fmt::Display for ManagerAlreadyExists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("A manager of this name exists already.")
    }
}

impl std::error::Error for ManagerAlreadyExists {}

/// The managers in use.
#[derive(Default)]
pub(crate) struct Managers(Mutex<Named>);

#[derive(Default)]
struct Named {
    made: u64,
    all: Vec<WeakPoaManager>,
}

impl Managers {
    fn lock(&self) -> MutexGuard<'_, Named> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the manager of the root adapter.
    pub(crate) fn make_root(&self, incarnation: u64) -> PoaManager {
        self.lock().make(ROOT_MANAGER.to_owned(), incarnation)
    }

    /// Makes a manager under a name that no other has.
    pub(crate) fn make(&self, incarnation: u64) -> PoaManager {
        let mut named = self.lock();
        loop {
            let id = format!("POAManager-{}", named.made);
            named.made += 1;
            if named.find(&id).is_none() {
                return named.make(id, incarnation);
            }
        }
    }
}

impl Named {
    fn find(&self, id: &str) -> Option<PoaManager> {
        let mut all = self.all.iter().filter_map(WeakPoaManager::upgrade);
        all.find(|manager| manager.id() == id)
    }

    fn make(&mut self, id: String, incarnation: u64) -> PoaManager {
        let manager = PoaManager::new(id, incarnation);
        self.all.retain(|manager| manager.upgrade().is_some());
        self.all.push(manager.downgrade());
        manager
    }
}

/// The name of the root adapter's manager.
const ROOT_MANAGER: &str = "RootPOAManager";

impl PoaManagerFactory {
    /// Makes a manager. Its first state is HOLDING.
    ///
    /// # Errors
    /// [`ManagerAlreadyExists`].
    pub fn create_poa_manager(&self, id: &str) -> Result<PoaManager, ManagerAlreadyExists> {
        let mut named = self.0.managers.lock();
        if named.find(id).is_some() {
            return Err(ManagerAlreadyExists);
        }
        Ok(named.make(id.to_owned(), self.0.incarnation))
    }

    /// The managers that the application or an adapter has.
    #[must_use]
    pub fn list(&self) -> Vec<PoaManager> {
        let named = self.0.managers.lock();
        named
            .all
            .iter()
            .filter_map(WeakPoaManager::upgrade)
            .collect()
    }

    /// The manager of this name.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<PoaManager> {
        self.0.managers.lock().find(id)
    }
}

impl fmt::Debug for PoaManagerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoaManagerFactory")
            .field(&self.list())
            .finish()
    }
}

impl Poa {
    /// The factory of this ORB's managers.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the adapter is destroyed.
    pub fn the_poa_manager_factory(&self) -> Result<PoaManagerFactory, SystemException> {
        self.adapter().map(PoaManagerFactory)
    }
}
