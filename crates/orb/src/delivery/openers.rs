//! Connects that may take time, away from the I/O threads: to resolve a host name, or to reach a local process that
//! does not accept.

use std::collections::VecDeque;
use std::sync::Arc;

use deckwatch_sync::PiMutex;

use super::connection::Connection;
use crate::limits::{DELIVERY_OPENERS_MAX, DELIVERY_RESOLVING_MAX};

/// Connections to open, and the threads that open them. A thread ends when nothing is left.
#[derive(Default)]
pub(super) struct Openers(PiMutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Connection>>,
    threads: usize,
    /// Threads that resolve a host name.
    resolving: usize,
}

impl Openers {
    /// Has a thread open the connection.
    pub(super) fn post(self: &Arc<Self>, connection: &Arc<Connection>) {
        let mut state = self.0.lock("delivery.openers");
        state.waiting.push_back(Arc::clone(connection));
        if state.threads == DELIVERY_OPENERS_MAX {
            return;
        }
        state.threads += 1;
        drop(state);
        let own = Arc::clone(self);
        let thread = std::thread::Builder::new().name("delivery-open".to_owned());
        if thread.spawn(move || own.run()).is_err() {
            // The host has no thread left.
            self.run();
        }
    }

    fn run(&self) {
        while let Some((connection, resolves)) = self.next() {
            connection.open();
            self.0.lock("delivery.opened").resolving -= usize::from(resolves);
        }
    }

    /// The next connection, and whether it resolves a host name. `None`: the calling thread is to end. Names never
    /// occupy all threads: those that resolve some go on with the others.
    fn next(&self) -> Option<(Arc<Connection>, bool)> {
        let mut state = self.0.lock("delivery.openers");
        let may_resolve = state.resolving < DELIVERY_RESOLVING_MAX;
        let is_next = |connection: &Arc<Connection>| may_resolve || !connection.needs_resolver();
        let next = state.waiting.iter().position(is_next);
        let Some(next) = next.and_then(|next| state.waiting.remove(next)) else {
            state.threads -= 1;
            return None;
        };
        let resolves = next.needs_resolver();
        state.resolving += usize::from(resolves);
        Some((next, resolves))
    }

    pub(super) fn close(&self) {
        let waiting = std::mem::take(&mut self.0.lock("delivery.openers").waiting);
        drop(waiting);
    }
}
