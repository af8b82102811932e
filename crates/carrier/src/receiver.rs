//! The consumer's side of a carrier: it listens, and passes messages to a handler until the part stops.

use std::sync::Arc;

use crate::arrival::{Handler, Shared};
use crate::talk::Ready;

/// Receives one stream at one destination.
pub trait Receiver: Send {
    /// Sets the endpoint for suppliers and the listening address for packet taps.
    fn announce(&self, ready: &mut Ready);

    /// Passes messages to `handler` until `shared.stop` is set, including those that arrived since the receiver was
    /// created. Called once, in a thread prepared for it.
    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>);
}
