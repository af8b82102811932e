//! Replies (CORBA 3.3 part 2, clause 9.4.3).

use crate::context::write_contexts;
use crate::{
    ByteOrder, Format, HEADER_SIZE, Header, MessageKind, OpenMessage, ProtocolError,
    ServiceContext, ServiceContexts,
};
use deckwatch_cdr::{EncodeError, Reader, Version};

/// The status of a reply: what its body contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ReplyStatus {
    /// The results.
    NoException = 0,
    /// A repository id and the exception's members.
    UserException = 1,
    /// A system exception.
    SystemException = 2,
    /// The IOR to call instead, this time.
    LocationForward = 3,
    /// The IOR to call instead, from now on. Since GIOP 1.2.
    LocationForwardPerm = 4,
    /// The addressing disposition to call with. Since GIOP 1.2.
    NeedsAddressingMode = 5,
}

impl ReplyStatus {
    const fn from_number(number: u32, version: Version) -> Option<Self> {
        Some(match number {
            0 => Self::NoException,
            1 => Self::UserException,
            2 => Self::SystemException,
            3 => Self::LocationForward,
            4 if matches!(version, Version::V1_2) => Self::LocationForwardPerm,
            5 if matches!(version, Version::V1_2) => Self::NeedsAddressingMode,
            _ => return None,
        })
    }
}

/// A reply as received.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// GIOP version.
    pub version: Version,
    /// The request's number.
    pub id: u32,
    /// What the body contains.
    pub status: ReplyStatus,
    /// Service contexts.
    pub contexts: ServiceContexts<'a>,
    /// The body. Its codec has the version; the code sets are the connection's to set.
    pub body: Reader<'a>,
}

impl<'a> Reply<'a> {
    /// Fast path: the request's number, of a whole reply of GIOP 1.2 in native order without exception and service
    /// contexts. Its body begins at [`Reply::PLAIN_BODY`]. `None`: parse it in full.
    #[must_use]
    #[inline]
    pub fn plain_id(octets: &[u8]) -> Option<u32> {
        let (header, rest) = octets.split_first_chunk::<8>()?;
        let (words, _) = rest.split_first_chunk::<{ PLAIN_BODY - 8 }>()?;
        let word = |at: usize| {
            let octets = words[at..].first_chunk().copied();
            u32::from_ne_bytes(octets.unwrap_or_default())
        };
        let size = octets.len() - HEADER_SIZE;
        let is_plain = *header == PLAIN
            && word(0) as usize == size
            && word(8) == ReplyStatus::NoException as u32
            && word(12) == 0;
        is_plain.then(|| word(4))
    }

    /// Where the body of a reply of GIOP 1.2 without service contexts begins.
    pub const PLAIN_BODY: usize = PLAIN_BODY;

    pub(crate) fn parse(header: &Header, mut r: Reader<'a>) -> Result<Self, ProtocolError> {
        let version = header.version;
        let early = if version < Version::V1_2 {
            Some(ServiceContexts::parse(&mut r)?)
        } else {
            None
        };
        let id = r.read_u32()?;
        let number = r.read_u32()?;
        let status = ReplyStatus::from_number(number, version)
            .ok_or(ProtocolError::StatusUnknown(number))?;
        let contexts = match early {
            Some(contexts) => contexts,
            None => {
                let contexts = ServiceContexts::parse(&mut r)?;
                r.align(8);
                contexts
            }
        };
        Ok(Self {
            version,
            id,
            status,
            contexts,
            body: r,
        })
    }
}

const PLAIN_BODY: usize = HEADER_SIZE + 12;

/// The first octets of an unfragmented reply of GIOP 1.2 in native order.
const PLAIN: [u8; 8] = [
    b'G',
    b'I',
    b'O',
    b'P',
    1,
    2,
    ByteOrder::NATIVE.flag(),
    MessageKind::Reply as u8,
];

/// A reply to send.
#[derive(Clone, Copy, Debug)]
pub struct ReplyHeader<'a> {
    /// The request's number.
    pub id: u32,
    /// What the body will contain.
    pub status: ReplyStatus,
    /// Service contexts.
    pub contexts: &'a [ServiceContext<'a>],
}

impl ReplyHeader<'_> {
    /// Appends the reply up to its body.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`]; [`EncodeError::TypeUnsupported`] where the version has no such status.
    #[inline]
    pub fn begin(&self, buffer: &mut Vec<u8>, format: Format) -> Result<OpenMessage, EncodeError> {
        let is_plain = self.contexts.is_empty()
            && format.codec.version == Version::V1_2
            && format.order.is_native()
            && format.size_max >= PLAIN_BODY;
        if is_plain {
            return Ok(self.begin_plain(buffer, format));
        }
        self.begin_otherwise(buffer, format)
    }

    /// GIOP 1.2 in native order, without service contexts: written in one piece.
    #[inline]
    fn begin_plain(&self, buffer: &mut Vec<u8>, format: Format) -> OpenMessage {
        let start = buffer.len();
        let mut head = [0; PLAIN_BODY];
        head[..8].copy_from_slice(&PLAIN);
        head[12..16].copy_from_slice(&self.id.to_ne_bytes());
        head[16..20].copy_from_slice(&(self.status as u32).to_ne_bytes());
        buffer.extend_from_slice(&head);
        OpenMessage::begun(start, PLAIN_BODY, start + PLAIN_BODY, format)
    }

    #[inline(never)]
    fn begin_otherwise(
        &self,
        buffer: &mut Vec<u8>,
        format: Format,
    ) -> Result<OpenMessage, EncodeError> {
        let version = format.codec.version;
        if ReplyStatus::from_number(self.status as u32, version).is_none() {
            return Err(EncodeError::TypeUnsupported);
        }
        let alignment = if version == Version::V1_2 { 8 } else { 1 };
        OpenMessage::begin(buffer, format, MessageKind::Reply, alignment, |w| {
            if version < Version::V1_2 {
                write_contexts(self.contexts, w)?;
            }
            w.write_u32(self.id)?;
            w.write_u32(self.status as u32)?;
            if version == Version::V1_2 {
                write_contexts(self.contexts, w)?;
            }
            Ok(())
        })
    }
}
