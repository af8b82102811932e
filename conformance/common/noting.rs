//! A transport that records the endpoint and the options of each socket.

use std::sync::{Arc, Mutex};

use deckwatch_orb::transport::{Endpoint, StreamOptions, TransportError};

use super::around::Around;

/// The recorded endpoints, to connect to or to listen at, with their options.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<(Endpoint, StreamOptions)>>>);

impl Asked {
    /// The sockets of the operating system; each is recorded.
    pub(crate) fn transport(&self) -> Around {
        let asked = self.clone();
        Around::asking(move |endpoint, options| asked.note(endpoint, options))
    }

    /// Returns and removes what was recorded since the last call.
    pub(crate) fn take(&self) -> Vec<(Endpoint, StreamOptions)> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }

    /// Records one socket. Denies options that need a permission.
    fn note(&self, endpoint: &Endpoint, options: &StreamOptions) -> Result<(), TransportError> {
        let mut asked = self.0.lock().expect("nobody panics with it");
        asked.push((endpoint.clone(), *options));
        match options.packets {
            Some(packets) if packets.queue > 6 => Err(TransportError::Denied),
            _ => Ok(()),
        }
    }
}
