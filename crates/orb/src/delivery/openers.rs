//! Connects that may take time, away from the I/O threads: to resolve a host name, or to reach a local process that
//! does not accept.

use std::collections::VecDeque;
use std::sync::Arc;

use deckwatch_sync::PiMutex;

use super::connection::Connection;
use crate::limits::DELIVERY_OPENERS_MAX;

/// Connections to open, and the threads that open them. A thread ends when nothing is left.
#[derive(Default)]
pub(super) struct Openers(PiMutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Connection>>,
    threads: usize,
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
        while let Some(connection) = self.next() {
            connection.open();
        }
    }

    /// `None`: the calling thread is to end.
    fn next(&self) -> Option<Arc<Connection>> {
        let mut state = self.0.lock("delivery.openers");
        let next = state.waiting.pop_front();
        state.threads -= usize::from(next.is_none());
        next
    }

    pub(super) fn close(&self) {
        let waiting = std::mem::take(&mut self.0.lock("delivery.openers").waiting);
        drop(waiting);
    }
}
