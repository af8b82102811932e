//! Calls into a servant activator, one at a time, and the queue of servants to etherealize.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use deckwatch_sync::{Bell, PiMutex, PiMutexGuard};

use super::wait_permits::{Patience, permit};
use super::{ObjectId, PoaState};
use crate::{Completion, Servant, SystemException, minor, raise};

#[derive(Default)]
pub(super) struct ActivatorTurns {
    state: PiMutex<State>,
    given: Bell,
}

#[derive(Default)]
struct State {
    taken: Option<ThreadId>,
    parting: VecDeque<Parting>,
    /// Whether a thread empties the queue.
    has_drainer: bool,
}

/// A servant that the activator must etherealize.
pub(super) struct Parting {
    pub(super) id: ObjectId,
    pub(super) servant: Arc<dyn Servant>,
    pub(super) cleanup: bool,
}

/// The right to call the activator. Dropping returns it.
pub(super) struct Turn<'t>(&'t ActivatorTurns);

impl ActivatorTurns {
    /// # Errors
    /// BAD_INV_ORDER if this thread is in such a call already, TRANSIENT if it may not wait.
    pub(super) fn take(&self, patience: Patience<'_>) -> Result<Turn<'_>, SystemException> {
        let me = thread::current().id();
        let mut state = self.state();
        if state.taken == Some(me) {
            return Err(raise::bad_inv_order(minor::WOULD_DEADLOCK, Completion::No));
        }
        let _hold = match state.taken {
            Some(_) => permit(patience)?,
            None => None,
        };
        while state.taken.is_some() {
            let turn = self.given.turn();
            drop(state);
            self.given.wait(turn);
            state = self.state();
        }
        state.taken = Some(me);
        Ok(Turn(self))
    }

    /// Returns whether this thread is in a call to the activator.
    pub(super) fn is_mine(&self) -> bool {
        self.state().taken == Some(thread::current().id())
    }

    pub(super) fn queue(&self, parting: Parting) {
        self.state().parting.push_back(parting);
    }

    fn state(&self) -> PiMutexGuard<'_, State> {
        self.state.lock("adapter.turns")
    }

    /// Etherealizes the queued servants on a thread of its own, so that neither a deactivation nor a last request waits
    /// for it.
    pub(super) fn drain(&self, adapter: &Arc<PoaState>) {
        let mut state = self.state();
        if state.has_drainer || state.parting.is_empty() {
            return;
        }
        state.has_drainer = true;
        drop(state);
        let drainer = Arc::clone(adapter);
        if adapter.is_for_main() {
            if let Some(adapter) = adapter.adapter.upgrade() {
                adapter.main.send(move || drainer.turns.give_back(&drainer));
            }
            return;
        }
        let name = "orb-etherealize".to_owned();
        let started = thread::Builder::new()
            .name(name)
            .spawn(move || drainer.turns.give_back(&drainer));
        if started.is_err() {
            self.give_back(adapter);
        }
    }

    fn give_back(&self, adapter: &Arc<PoaState>) {
        loop {
            let Ok(turn) = self.take(None) else {
                // No thread could be started, and this one is in a call to the activator: the next caller tries again.
                self.state().has_drainer = false;
                return;
            };
            let next = {
                let mut state = self.state();
                let next = state.parting.pop_front();
                state.has_drainer = next.is_some();
                next
            };
            let Some(parting) = next else { return };
            adapter.etherealize(parting);
            drop(turn);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().taken = None;
        // Threads that incarnate and the thread that etherealizes wait for the same turn.
        self.0.given.ring();
    }
}
