//! Sockets that tell how each was asked for.

use std::sync::{Arc, Mutex};

use deckwatch_orb::transport::{Endpoint, StreamOptions, TransportError};

use super::around::Around;

/// Places to connect to or to listen at, and with which options.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<Mutex<Vec<(Endpoint, StreamOptions)>>>);

impl Asked {
    /// The sockets of the system, with a note of each.
    pub(crate) fn transport(&self) -> Around {
        let asked = self.clone();
        Around::asking(move |endpoint, options| asked.note(endpoint, options))
    }

    /// What has been asked for since this was taken last.
    pub(crate) fn take(&self) -> Vec<(Endpoint, StreamOptions)> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }

    /// What needs a permission is denied.
    fn note(&self, endpoint: &Endpoint, options: &StreamOptions) -> Result<(), TransportError> {
        let mut asked = self.0.lock().expect("nobody panics with it");
        asked.push((endpoint.clone(), *options));
        match options.packets {
            Some(packets) if packets.queue > 6 => Err(TransportError::Denied),
            _ => Ok(()),
        }
    }
}
