//! Requests in a captured GIOP stream: whole ones, and those in trains of fragments.

use std::collections::BTreeMap;

use deckwatch_giop::{HEADER_SIZE, Header, Message, MessageKind, Request};

use crate::limits::{GIOP_MESSAGE_SIZE_MAX, JOINED_TRAINS_MAX};

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Trains under way: by request, or in GIOP 1.1 the only one.
    trains: BTreeMap<Option<u32>, Vec<u8>>,
}

impl Requests {
    /// Takes a message; calls `see` with the request that it is or completes.
    pub(crate) fn take(&mut self, message: &[u8], see: &mut dyn FnMut(&Request<'_>)) {
        let Some(header) = message
            .first_chunk::<HEADER_SIZE>()
            .and_then(|header| Header::parse(header).ok())
        else {
            return;
        };
        match (header.kind, header.more_fragments) {
            (MessageKind::Request, false) => show(message, see),
            (MessageKind::Request, true) => self.begin(message),
            (MessageKind::Fragment, _) => self.go_on(message, see),
            _ => {}
        }
    }

    fn begin(&mut self, message: &[u8]) {
        // The id stands where the whole request has it; a first fragment holds at least the header up to there.
        let id = with_header(message.to_vec()).and_then(|whole| match Message::parse(&whole) {
            Ok(Message::Request(request)) => {
                Some((request.version >= deckwatch_giop::Version::V1_2).then_some(request.id))
            }
            _ => None,
        });
        if let Some(id) = id
            && self.trains.len() < JOINED_TRAINS_MAX
        {
            self.trains.insert(id, message.to_vec());
        }
    }

    fn go_on(&mut self, message: &[u8], see: &mut dyn FnMut(&Request<'_>)) {
        let Ok(Message::Fragment(fragment)) = Message::parse(message) else {
            return;
        };
        let Some(mut train) = self.trains.remove(&fragment.id) else {
            return;
        };
        train.extend_from_slice(fragment.data);
        if train.len() > GIOP_MESSAGE_SIZE_MAX {
            return;
        }
        if fragment.more {
            self.trains.insert(fragment.id, train);
        } else if let Some(whole) = with_header(train) {
            show(&whole, see);
        }
    }
}

/// The octets as one message that has no more fragments.
fn with_header(mut octets: Vec<u8>) -> Option<Vec<u8>> {
    let mut header = Header::parse(octets.first_chunk::<HEADER_SIZE>()?).ok()?;
    header.more_fragments = false;
    header.size = u32::try_from(octets.len() - HEADER_SIZE).ok()?;
    octets[..HEADER_SIZE].copy_from_slice(&header.to_octets());
    Some(octets)
}

fn show(message: &[u8], see: &mut dyn FnMut(&Request<'_>)) {
    if let Ok(Message::Request(request)) = Message::parse(message) {
        see(&request);
    }
}
