//! Requests (CORBA 3.3 part 2, clause 9.4.2).

use crate::context::write_contexts;
use crate::{
    Format, Header, MessageKind, OpenMessage, ProtocolError, ServiceContext, ServiceContexts,
    Target,
};
use deckwatch_cdr::{EncodeError, Parse, Reader, Version};

/// What the caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Response {
    /// Nothing: SYNC_NONE and SYNC_WITH_TRANSPORT.
    Nothing = 0,
    /// A reply before the servant is called: SYNC_WITH_SERVER. Since GIOP 1.2.
    Receipt = 1,
    /// The outcome: two-way calls and SYNC_WITH_TARGET.
    Outcome = 3,
}

impl Response {
    /// Whether any reply is sent.
    #[must_use]
    pub const fn is_expected(self) -> bool {
        !matches!(self, Self::Nothing)
    }

    fn parse(version: Version, r: &mut Reader<'_>) -> Result<Self, ProtocolError> {
        if version < Version::V1_2 {
            return Ok(if bool::parse(r)? {
                Self::Outcome
            } else {
                Self::Nothing
            });
        }
        match r.read_u8()? {
            0 => Ok(Self::Nothing),
            1 => Ok(Self::Receipt),
            3 => Ok(Self::Outcome),
            other => Err(ProtocolError::ResponseFlagsUnknown(other)),
        }
    }

    const fn octet(self, version: Version) -> u8 {
        match version {
            Version::V1_2 => self as u8,
            _ => self.is_expected() as u8,
        }
    }
}

/// A request as received.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// GIOP version.
    pub version: Version,
    /// The caller's number for it.
    pub id: u32,
    /// What the caller waits for.
    pub response: Response,
    /// The object.
    pub target: Target<'a>,
    /// The operation's name.
    pub operation: &'a [u8],
    /// Service contexts.
    pub contexts: ServiceContexts<'a>,
    /// The arguments. Its codec has the version; the code sets are the connection's to set.
    pub body: Reader<'a>,
}

impl<'a> Request<'a> {
    pub(crate) fn parse(header: &Header, mut r: Reader<'a>) -> Result<Self, ProtocolError> {
        let version = header.version;
        if version < Version::V1_2 {
            let contexts = ServiceContexts::parse(&mut r)?;
            let id = r.read_u32()?;
            let response = Response::parse(version, &mut r)?;
            if version == Version::V1_1 {
                r.read_octets(3)?;
            }
            let target = Target::parse(version, &mut r)?;
            let operation = r.read_string_octets()?;
            // The principal; deprecated, and nothing reads it.
            r.read_octet_sequence()?;
            return Ok(Self {
                version,
                id,
                response,
                target,
                operation,
                contexts,
                body: r,
            });
        }
        let id = r.read_u32()?;
        let response = Response::parse(version, &mut r)?;
        r.read_octets(3)?;
        let target = Target::parse(version, &mut r)?;
        let operation = r.read_string_octets()?;
        let contexts = ServiceContexts::parse(&mut r)?;
        r.align(8);
        Ok(Self {
            version,
            id,
            response,
            target,
            operation,
            contexts,
            body: r,
        })
    }
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct RequestHeader<'a> {
    /// The caller's number for it.
    pub id: u32,
    /// What the caller waits for.
    pub response: Response,
    /// The object.
    pub target: Target<'a>,
    /// The operation's name.
    pub operation: &'a str,
    /// Service contexts.
    pub contexts: &'a [ServiceContext<'a>],
}

impl RequestHeader<'_> {
    /// Appends the request up to its body.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`]; [`EncodeError::TypeUnsupported`] where a target other than a key meets a version before 1.2.
    pub fn begin(&self, buffer: &mut Vec<u8>, format: Format) -> Result<OpenMessage, EncodeError> {
        let version = format.codec.version;
        let alignment = if version == Version::V1_2 { 8 } else { 1 };
        OpenMessage::begin(buffer, format, MessageKind::Request, alignment, |w| {
            if version < Version::V1_2 {
                write_contexts(self.contexts, w)?;
            }
            w.write_u32(self.id)?;
            w.write_u8(self.response.octet(version))?;
            if version > Version::V1_0 {
                w.write_octets(&[0; 3])?;
            }
            self.target.write(version, w)?;
            w.write_string_octets(self.operation.as_bytes())?;
            if version < Version::V1_2 {
                return w.write_octet_sequence(&[]);
            }
            write_contexts(self.contexts, w)
        })
    }
}
