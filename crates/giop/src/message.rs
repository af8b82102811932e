//! A message of any kind, borrowed from its octets.

use crate::{
    ByteOrder, Codec, Frame, HEADER_SIZE, Header, LocateReply, LocateRequest, MessageKind,
    ProtocolError, Reply, Request, Version,
};
use deckwatch_cdr::{Divided, Reader};

/// A message.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// A call.
    Request(Request<'a>),
    /// Its outcome.
    Reply(Reply<'a>),
    /// The caller of this request stopped waiting.
    CancelRequest {
        /// The request's number.
        id: u32,
    },
    /// Whether and where an object is.
    LocateRequest(LocateRequest<'a>),
    /// The answer to that.
    LocateReply(LocateReply<'a>),
    /// The sender closes the connection in order.
    CloseConnection,
    /// The peer could not read our last message.
    MessageError,
    /// A further part of a message.
    Fragment(Fragment<'a>),
}

/// A further part of a message.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// GIOP version.
    pub version: Version,
    /// Byte order of the fragment.
    pub order: ByteOrder,
    /// The number of the request it belongs to; GIOP 1.1 has none.
    pub id: Option<u32>,
    /// Whether another follows.
    pub more: bool,
    /// Its part of the body.
    pub data: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a whole message: exactly the octets that [`Frame`] found. A message with fragments must be joined first.
    ///
    /// # Errors
    /// [`ProtocolError::SizeMismatch`], and what is wrong with the headers.
    pub fn parse(octets: &'a [u8]) -> Result<Self, ProtocolError> {
        let header = match Frame::parse(octets, usize::MAX)? {
            Frame::Message(header, size) if size == octets.len() => header,
            _ => return Err(ProtocolError::SizeMismatch),
        };
        let r = Reader::new(octets, header.order).at_position(HEADER_SIZE);
        Self::of(&header, r)
    }

    /// Reads a message that [`crate::Assembly`] joined.
    ///
    /// # Errors
    /// As [`Message::parse`].
    pub fn parse_joined(joined: &'a Divided<'a>) -> Result<Self, ProtocolError> {
        if joined.ends().is_empty() {
            return Self::parse(joined.octets());
        }
        let header = match Frame::parse(joined.octets(), usize::MAX)? {
            Frame::Message(header, size) if size == joined.octets().len() => header,
            _ => return Err(ProtocolError::SizeMismatch),
        };
        Self::of(
            &header,
            Reader::of_divided(joined, header.order, HEADER_SIZE),
        )
    }

    fn of(header: &Header, r: Reader<'a>) -> Result<Self, ProtocolError> {
        let mut r = r.with_codec(Codec::DEFAULT.with_version(header.version));
        Ok(match header.kind {
            MessageKind::Request => Self::Request(Request::parse(header, r)?),
            MessageKind::Reply => Self::Reply(Reply::parse(header, r)?),
            MessageKind::CancelRequest => Self::CancelRequest { id: r.read_u32()? },
            MessageKind::LocateRequest => Self::LocateRequest(LocateRequest::parse(header, r)?),
            MessageKind::LocateReply => Self::LocateReply(LocateReply::parse(header, r)?),
            MessageKind::CloseConnection => Self::CloseConnection,
            MessageKind::MessageError => Self::MessageError,
            MessageKind::Fragment => {
                let id = if header.version == Version::V1_2 {
                    Some(r.read_u32()?)
                } else {
                    None
                };
                let data = r.read_octets(r.remaining())?;
                Self::Fragment(Fragment {
                    version: header.version,
                    order: header.order,
                    id,
                    more: header.more_fragments,
                    data,
                })
            }
        })
    }
}
