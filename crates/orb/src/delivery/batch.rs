//! Offers that are written together.

use std::sync::Arc;

use super::connection::Connection;

/// Collects the offers of one body to many outlets: what goes over one connection is written with one call.
///
/// The offers are written when it is dropped, or when it has no place for another connection.
#[derive(Default)]
pub struct Batch {
    held: [Option<Arc<Connection>>; PLACES],
    next: usize,
}

/// Consumers of one process mostly connect one after the other: few connections take turns.
const PLACES: usize = 8;

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Something is ready to be written to a connection.
    pub(super) fn note(&mut self, connection: &Arc<Connection>) {
        let is_it = |held: &Option<Arc<Connection>>| {
            held.as_ref()
                .is_some_and(|held| Arc::ptr_eq(held, connection))
        };
        if self.held.iter().any(is_it) {
            return;
        }
        let place = &mut self.held[self.next % PLACES];
        self.next += 1;
        if let Some(before) = place.replace(Arc::clone(connection)) {
            before.flush();
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        for connection in self.held.iter_mut().filter_map(Option::take) {
            connection.flush();
        }
    }
}
