//! Sending a large message as fragments (CORBA 3.3 part 2, clause 9.4.9).

use crate::assembly::FRAGMENT_HEADER_SIZE;
use crate::limits::FRAGMENT_SIZE_MIN;
use crate::{Frame, HEADER_SIZE, Header, MessageKind, ProtocolError, Version};

/// One part of a message: a header of its own, and octets of the whole's.
#[derive(Clone, Copy, Debug)]
pub struct Part<'m> {
    header: [u8; FRAGMENT_HEADER_SIZE],
    header_len: usize,
    /// What follows the header.
    pub data: &'m [u8],
}

impl Part<'_> {
    /// The header's octets.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.header[..self.header_len]
    }
}

/// The parts in which a message is sent.
#[derive(Clone, Debug)]
pub struct Parts<'m> {
    header: Header,
    id: [u8; 4],
    /// Octets of the header of each part but the first.
    fragment_header: usize,
    rest: &'m [u8],
    data_max: usize,
    is_first: bool,
    is_done: bool,
}

impl<'m> Parts<'m> {
    /// Divides a whole message into parts of at most `size_max` octets, headers included (at least
    /// [`FRAGMENT_SIZE_MIN`]). A message that fits, or cannot be divided, is one part. A message of GIOP 1.1 must have
    /// been written for parts of this size ([`crate::Format::fragment_size`]): a 1.1 fragment is aligned from its own
    /// header, and divides no value.
    ///
    /// # Errors
    /// [`ProtocolError::SizeMismatch`] where the octets are not exactly one message, and what is wrong with its header.
    pub fn of(message: &'m [u8], size_max: usize) -> Result<Self, ProtocolError> {
        let header = match Frame::parse(message, usize::MAX)? {
            Frame::Message(header, size) if size == message.len() => header,
            _ => return Err(ProtocolError::SizeMismatch),
        };
        let rest = &message[HEADER_SIZE..];
        let divisible = header.kind.is_fragmentable(header.version)
            && header.kind != MessageKind::Fragment
            && !header.more_fragments;
        let fragment_header = if header.version == Version::V1_2 {
            FRAGMENT_HEADER_SIZE
        } else {
            HEADER_SIZE
        };
        // All parts but the last end at a multiple of 8: in 1.2 of the whole message, in 1.1 of themselves.
        let data_max = if divisible {
            size_of_part(size_max) - fragment_header
        } else {
            usize::MAX
        };
        let id = rest.first_chunk().copied().unwrap_or_default();
        Ok(Self {
            header,
            id,
            fragment_header,
            rest,
            data_max,
            is_first: true,
            is_done: false,
        })
    }
}

impl<'m> Iterator for Parts<'m> {
    type Item = Part<'m>;

    fn next(&mut self) -> Option<Part<'m>> {
        if self.is_done {
            return None;
        }
        let header_len = if self.is_first {
            HEADER_SIZE
        } else {
            self.fragment_header
        };
        // The first part's header is shorter by the request id, which is in its data: 12 + 4 is a multiple of 8.
        let room = if self.is_first {
            self.data_max
                .saturating_add(self.fragment_header - HEADER_SIZE)
        } else {
            self.data_max
        };
        let (data, rest) = self.rest.split_at(room.min(self.rest.len()));
        self.rest = rest;
        self.is_done = rest.is_empty();
        let kind = if self.is_first {
            self.header.kind
        } else {
            MessageKind::Fragment
        };
        let size = (data.len() + header_len - HEADER_SIZE) as u32;
        let more_fragments = !self.is_done || self.header.more_fragments;
        let mut header = [0; FRAGMENT_HEADER_SIZE];
        header[..HEADER_SIZE].copy_from_slice(
            &Header {
                kind,
                size,
                more_fragments,
                ..self.header
            }
            .to_octets(),
        );
        header[HEADER_SIZE..].copy_from_slice(&self.id);
        self.is_first = false;
        Some(Part {
            header,
            header_len,
            data,
        })
    }
}

/// Octets of a part with its header.
pub(crate) fn size_of_part(size_max: usize) -> usize {
    size_max.max(FRAGMENT_SIZE_MIN) & !7
}
