//! Joining the fragments of messages (CORBA 3.3 part 2, clause 9.4.9).

use crate::limits::{FRAGMENTED_MESSAGES_MAX, FRAGMENTED_SIZE_MAX};
use crate::{
    ByteOrder, Frame, HEADER_SIZE, Header, MessageKind, ProtocolError, ServiceContexts, Version,
};
use deckwatch_cdr::{Divided, Parse, Reader};

/// Header and request id of a fragment of GIOP 1.2.
pub(crate) const FRAGMENT_HEADER_SIZE: usize = HEADER_SIZE + 4;

/// The unfinished messages of one connection. Their total size is bounded, and their buffers are used again.
///
/// In GIOP 1.1 fragments have no request id: they continue the one unfinished message. Each is aligned from its own
/// header, so the ends of fragments are kept with the joined octets.
#[derive(Debug)]
pub struct Assembly {
    trains: Vec<Train>,
    /// The message returned last; its buffers are kept for the next one.
    done: Vec<u8>,
    done_ends: Vec<u32>,
    size_max: usize,
    /// Messages that have begun.
    begun: u64,
}

#[derive(Debug)]
struct Train {
    /// How many messages began before it.
    number: u64,
    version: Version,
    order: ByteOrder,
    /// `None` in GIOP 1.1.
    id: Option<u32>,
    octets: Vec<u8>,
    /// Where each fragment with octets ended; empty in GIOP 1.2.
    ends: Vec<u32>,
    /// The number of the request, once it has been found.
    request_id: Option<u32>,
    /// Octets that have been searched for it, repeatedly.
    searched: usize,
}

impl Train {
    fn held(&self) -> usize {
        self.octets.len() + self.ends.len() * size_of::<u32>()
    }

    /// The number of the request, if that has come yet. In GIOP 1.1 it stands behind the service contexts. A peer may
    /// send many of those and then cancel without end, so all searches together read at most twice the octets of the
    /// message; beyond that the number stays unknown until as much has come again.
    fn request_id(&mut self) -> Option<u32> {
        if self.request_id.is_none() && self.searched <= self.octets.len() {
            self.searched += self.octets.len();
            let joined = Divided::new(&self.octets, &self.ends);
            let mut r = Reader::of_divided(&joined, self.order, HEADER_SIZE);
            let number = ServiceContexts::parse(&mut r).and_then(|_| r.read_u32());
            self.request_id = number.ok();
        }
        self.request_id
    }
}

impl Default for Assembly {
    /// With the limits of this crate.
    fn default() -> Self {
        Self::new(FRAGMENTED_SIZE_MAX)
    }
}

impl Assembly {
    /// For a connection whose unfinished messages may take `size_max` octets in total.
    #[must_use]
    pub const fn new(size_max: usize) -> Self {
        Self {
            trains: Vec::new(),
            done: Vec::new(),
            done_ends: Vec::new(),
            size_max,
            begun: 0,
        }
    }

    /// Takes the next message, as [`Frame`] found it. Returns a message to parse: this one where it is whole, the
    /// joined one after its last fragment, `None` while fragments are missing.
    ///
    /// # Errors
    /// [`ProtocolError::FragmentUnexpected`], [`ProtocolError::FragmentsMixed`], [`ProtocolError::FragmentsTooMany`],
    /// [`ProtocolError::MessageTooLarge`], [`ProtocolError::MemoryExhausted`], and what is wrong with the header. The
    /// connection is to be closed after any.
    pub fn accept<'m>(
        &'m mut self,
        message: &'m [u8],
    ) -> Result<Option<Divided<'m>>, ProtocolError> {
        let header = match Frame::parse(message, usize::MAX)? {
            Frame::Message(header, size) if size == message.len() => header,
            _ => return Err(ProtocolError::SizeMismatch),
        };
        match (header.kind, header.more_fragments) {
            (MessageKind::Fragment, _) => self.continue_train(header, message),
            (_, true) => self.begin_train(header, message).map(|()| None),
            (_, false) => Ok(Some(Divided::new(message, &[]))),
        }
    }

    /// Drops the unfinished message of a request that was cancelled. Returns whether there was one.
    pub fn cancel(&mut self, id: u32) -> bool {
        let before = self.trains.len();
        self.trains
            .retain_mut(|train| train.request_id() != Some(id));
        self.trains.len() < before
    }

    /// Octets that the unfinished messages take in total.
    #[must_use]
    pub fn held(&self) -> usize {
        self.trains.iter().map(Train::held).sum()
    }

    /// Frees the buffers of the message returned last where they are larger than `retained_max` octets in total.
    pub fn shrink(&mut self, retained_max: usize) {
        // One octet per fragment makes the ends four times as large as the message.
        let ends_size = self.done_ends.capacity() * size_of::<u32>();
        if self.done.capacity() + ends_size > retained_max {
            self.done = Vec::new();
            self.done_ends = Vec::new();
        }
    }

    /// How many messages are unfinished.
    #[must_use]
    pub const fn unfinished(&self) -> usize {
        self.trains.len()
    }

    /// The number of the oldest unfinished message.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.trains.iter().map(|train| train.number).min()
    }

    fn begin_train(&mut self, header: Header, message: &[u8]) -> Result<(), ProtocolError> {
        let id = request_id(&header, message)?;
        if self.trains.iter().any(|train| train.id == id) {
            return Err(ProtocolError::FragmentsMixed);
        }
        if self.trains.len() >= FRAGMENTED_MESSAGES_MAX {
            return Err(ProtocolError::FragmentsTooMany);
        }
        self.check_room(message.len())?;
        let mut octets = std::mem::take(&mut self.done);
        octets.clear();
        append(&mut octets, message)?;
        let mut ends = std::mem::take(&mut self.done_ends);
        ends.clear();
        if id.is_none() {
            ends.push(octets.len() as u32);
        }
        self.begun += 1;
        self.trains.push(Train {
            number: self.begun,
            version: header.version,
            order: header.order,
            id,
            octets,
            ends,
            request_id: id,
            searched: 0,
        });
        Ok(())
    }

    fn continue_train(
        &mut self,
        header: Header,
        message: &[u8],
    ) -> Result<Option<Divided<'_>>, ProtocolError> {
        let id = request_id(&header, message)?;
        let place = self
            .trains
            .iter()
            .position(|train| train.id == id)
            .ok_or(ProtocolError::FragmentUnexpected)?;
        let data = &message[if id.is_some() {
            FRAGMENT_HEADER_SIZE
        } else {
            HEADER_SIZE
        }..];
        self.check_room(data.len() + size_of::<u32>())?;
        let train = &mut self.trains[place];
        if (train.version, train.order) != (header.version, header.order) {
            return Err(ProtocolError::FragmentsMixed);
        }
        append(&mut train.octets, data)?;
        if id.is_none() && !data.is_empty() {
            let made = train.ends.try_reserve(1);
            made.map_err(|_| ProtocolError::MemoryExhausted)?;
            train.ends.push(train.octets.len() as u32);
        }
        if header.more_fragments {
            return Ok(None);
        }
        Train {
            octets: self.done,
            ends: self.done_ends,
            ..
        } = self.trains.swap_remove(place);
        Header::state_whole(&mut self.done)?;
        Ok(Some(Divided::new(&self.done, &self.done_ends)))
    }

    fn check_room(&self, more: usize) -> Result<(), ProtocolError> {
        if self.held().saturating_add(more) > self.size_max {
            Err(ProtocolError::MessageTooLarge)
        } else {
            Ok(())
        }
    }
}

/// Appends what a peer has sent. The memory grows by doubling, as a message may come in many fragments.
fn append(octets: &mut Vec<u8>, more: &[u8]) -> Result<(), ProtocolError> {
    let made = octets.try_reserve(more.len());
    made.map_err(|_| ProtocolError::MemoryExhausted)?;
    octets.extend_from_slice(more);
    Ok(())
}

/// The number that fragments are joined by: the first value of the body in GIOP 1.2.
fn request_id(header: &Header, message: &[u8]) -> Result<Option<u32>, ProtocolError> {
    if header.version < Version::V1_2 {
        return Ok(None);
    }
    Ok(Some(u32::parse(
        &mut Reader::new(message, header.order).at_position(HEADER_SIZE),
    )?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first fragment of a request of GIOP 1.1: service contexts without data, and then `rest`.
    fn request_with_contexts(count: u32, rest: &[u8]) -> Vec<u8> {
        let mut body = count.to_be_bytes().to_vec();
        body.resize(body.len() + 8 * count as usize, 0);
        body.extend(rest);
        let mut message = b"GIOP\x01\x01\x02\x00".to_vec();
        message.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
        message.extend(body);
        message
    }

    #[test]
    fn cancels_without_end_search_an_unfinished_message_at_most_twice() {
        const ID: u32 = 7;
        for rest in [&[][..], &ID.to_be_bytes()] {
            let mut assembly = Assembly::default();
            let message = request_with_contexts(100_000, rest);
            assert_eq!(assembly.accept(&message), Ok(None));
            for id in 100..4_196 {
                assert!(!assembly.cancel(id));
            }
            let train = &assembly.trains[0];
            assert!(train.searched != 0 && train.searched <= 2 * train.octets.len());
            assert_eq!(assembly.cancel(ID), !rest.is_empty());
        }
    }
}
