//! The consumer's side of a carrier: it listens, and passes messages to a handler until the part stops.

use std::sync::Arc;

use crate::arrival::{Handler, Shared};
use crate::body::Body;
use crate::carrier::SocketSettings;
use crate::sender::Sender;
use crate::talk::Ready;

/// Receives one stream at one destination.
pub trait Receiver: Send {
    /// Sets the endpoint for suppliers and the listening address for packet taps.
    fn announce(&self, ready: &mut Ready);

    /// Returns a sender over the connection by which the messages come, for a carrier with
    /// [`crate::carrier::Carrier::carries_answers`]. It is disconnected until the connection is there. Called once, before
    /// [`Receiver::receive_all`].
    fn answering(&mut self, settings: SocketSettings, body: &Body) -> Option<Box<dyn Sender>> {
        let _ = (settings, body);
        None
    }

    /// Passes messages to `handler` until `shared.stop` is set, including those that arrived since the receiver was
    /// created. Called once, in a thread prepared for it.
    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>);
}
