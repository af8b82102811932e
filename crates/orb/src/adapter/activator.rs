//! Adapter activators: adapters that are made at their first use (CORBA 3.3 part 1, 15.3.3).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use super::wait_permits::{Patience, permit};
use super::{Adapter, PATH_SEPARATOR, Phase, Poa, PoaState, unknown_adapter};
use crate::limits::ADAPTER_PATH_SIZE_MAX;
use crate::{Completion, SystemException, minor, raise};

/// Makes child adapters at their first use, by a request or by [`Poa::find_poa`].
pub trait AdapterActivator: Send + Sync + 'static {
    /// Makes the child `name` of `parent` with [`Poa::create_poa`] and everything that it needs to serve. Returns
    /// whether it did. Requests for the new adapter wait meanwhile.
    ///
    /// # Errors
    /// A system exception; the caller gets OBJ_ADAPTER for it.
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException>;
}

impl Adapter {
    /// Returns the adapter at `path`. Activators make it and its parents if they do not exist.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if no activator makes it, OBJ_ADAPTER if an activator raises a system exception, TRANSIENT if
    /// the thread may not wait.
    pub(super) fn adapter_at(
        self: &Arc<Self>,
        path: &[u8],
        patience: Patience<'_>,
    ) -> Result<Arc<PoaState>, SystemException> {
        if let Some(found) = self.known_at(path) {
            return Ok(found);
        }
        if path.len() > ADAPTER_PATH_SIZE_MAX {
            return Err(unknown_adapter());
        }
        let mut at = self.known_at(&[]).ok_or_else(unknown_adapter)?;
        for name in path.split(|&octet| octet == PATH_SEPARATOR) {
            let name = std::str::from_utf8(name).map_err(|_| unknown_adapter())?;
            if name.is_empty() {
                return Err(unknown_adapter());
            }
            let child = match self.known_at(&at.child_path(name)) {
                Some(child) => Some(child),
                None => self.activate_child(&at, name, patience)?,
            };
            at = child.ok_or_else(unknown_adapter)?;
        }
        Ok(at)
    }

    /// Calls the parent's activator, which makes the child. If another thread does so already, waits for it.
    pub(super) fn activate_child(
        self: &Arc<Self>,
        parent: &Arc<PoaState>,
        name: &str,
        patience: Patience<'_>,
    ) -> Result<Option<Arc<PoaState>>, SystemException> {
        let Some(activator) = parent.activator.get() else {
            return Ok(None);
        };
        let path = parent.child_path(name);
        let me = thread::current().id();
        let mut activating = self.activating();
        match activating.get(&path) {
            Some(thread) if *thread == me => return Ok(None),
            Some(_) => {
                drop(activating);
                self.await_activation(&path, patience)?;
                return Ok(self.known_at(&path));
            }
            None => activating.insert(path.clone(), me),
        };
        drop(activating);
        let _ended = Activating {
            adapter: self,
            path: &path,
        };
        let made = {
            let _serial = parent.serialise();
            let poa = Poa(Arc::clone(parent));
            catch_unwind(AssertUnwindSafe(|| activator.unknown_adapter(&poa, name)))
        };
        match made {
            Ok(Ok(true)) => Ok(self.known_at(&path)),
            Ok(Ok(false)) => Ok(None),
            Ok(Err(_)) => Err(raise::obj_adapter(
                minor::ADAPTER_UNAVAILABLE,
                Completion::No,
            )),
            Err(_) => {
                self.count_panic();
                Err(raise::obj_adapter(
                    minor::ADAPTER_UNAVAILABLE,
                    Completion::No,
                ))
            }
        }
    }

    /// Waits until no activator of another thread works on the adapter at `path`.
    pub(super) fn await_activation(
        &self,
        path: &[u8],
        patience: Patience<'_>,
    ) -> Result<(), SystemException> {
        let me = thread::current().id();
        let goes_on = |turn: &u32| {
            let thread = self.activating().get(path).copied();
            thread.is_some_and(|it| it != me).then_some(*turn)
        };
        let Some(mut turn) = goes_on(&self.activated.turn()) else {
            return Ok(());
        };
        let _hold = permit(patience)?;
        loop {
            self.activated.wait(turn);
            match goes_on(&self.activated.turn()) {
                Some(now) => turn = now,
                None => return Ok(()),
            }
        }
    }
}

/// Marks a path that an activator works on, until it is dropped.
struct Activating<'a> {
    adapter: &'a Adapter,
    path: &'a [u8],
}

impl Drop for Activating<'_> {
    fn drop(&mut self) {
        if let Some(made) = self.adapter.known_at(self.path)
            && made.phase() == Phase::Initialising
        {
            made.open();
        }
        self.adapter.activating().remove(self.path);
        self.adapter.activated.ring();
    }
}
