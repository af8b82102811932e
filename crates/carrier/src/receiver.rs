//! The consumer's side of a carrier: it listens, and delivers messages until the part stops.

use std::sync::Arc;

use crate::arrival::{Handler, Shared};
use crate::talk::Ready;

/// Receives one stream at one destination.
pub trait Receiver: Send {
    /// Writes where it is reached: the endpoint for suppliers and the address for packet taps.
    fn announce(&self, ready: &mut Ready);

    /// Delivers to `handler` what has arrived since the receiver was made, and what arrives until `shared.stop` is set.
    /// Called once, in a thread prepared for it.
    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>);
}
