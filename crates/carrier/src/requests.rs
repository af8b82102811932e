//! Requests in a captured GIOP stream: whole ones, and those in fragments.

use deckwatch_giop::{Assembly, Message, Request};

use crate::limits::GIOP_MESSAGE_SIZE_MAX;

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Requests {
    assembly: Assembly,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            assembly: Assembly::new(GIOP_MESSAGE_SIZE_MAX),
        }
    }
}

impl Requests {
    /// Takes a message; calls `see` with the request that it is or completes. After fragments that do not belong together, those that follow are read anew.
    pub(crate) fn take(&mut self, message: &[u8], see: &mut dyn FnMut(&Request<'_>)) {
        match self.assembly.accept(message) {
            Ok(Some(whole)) => {
                if let Ok(Message::Request(request)) = Message::parse(whole) {
                    see(&request);
                }
            }
            Ok(None) => {}
            Err(_) => *self = Self::default(),
        }
    }
}
