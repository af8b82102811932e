//! LocateRequest and LocateReply (CORBA 3.3 part 2, clauses 9.4.5 and 9.4.6).

use crate::{Format, Header, MessageKind, OpenMessage, ProtocolError, Target};
use deckwatch_cdr::{EncodeError, Reader, Version};

/// Where the object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LocateStatus {
    /// Unknown.
    UnknownObject = 0,
    /// Here.
    ObjectHere = 1,
    /// At the IOR in the body, this time.
    ObjectForward = 2,
    /// At the IOR in the body, from now on. Since GIOP 1.2.
    ObjectForwardPerm = 3,
    /// The body is a system exception. Since GIOP 1.2.
    SystemException = 4,
    /// The body is the addressing disposition to use. Since GIOP 1.2.
    NeedsAddressingMode = 5,
}

impl LocateStatus {
    const fn from_number(number: u32, version: Version) -> Option<Self> {
        Some(match number {
            0 => Self::UnknownObject,
            1 => Self::ObjectHere,
            2 => Self::ObjectForward,
            3 if matches!(version, Version::V1_2) => Self::ObjectForwardPerm,
            4 if matches!(version, Version::V1_2) => Self::SystemException,
            5 if matches!(version, Version::V1_2) => Self::NeedsAddressingMode,
            _ => return None,
        })
    }
}

/// A LocateRequest as received.
#[derive(Clone, Copy, Debug)]
pub struct LocateRequest<'a> {
    /// GIOP version.
    pub version: Version,
    /// The caller's number for it.
    pub id: u32,
    /// The object.
    pub target: Target<'a>,
}

impl<'a> LocateRequest<'a> {
    pub(crate) fn parse(header: &Header, mut r: Reader<'a>) -> Result<Self, ProtocolError> {
        let id = r.read_u32()?;
        Ok(Self {
            version: header.version,
            id,
            target: Target::parse(header.version, &mut r)?,
        })
    }
}

/// A LocateRequest to send.
#[derive(Clone, Copy, Debug)]
pub struct LocateRequestHeader<'a> {
    /// The caller's number for it.
    pub id: u32,
    /// The object.
    pub target: Target<'a>,
}

impl LocateRequestHeader<'_> {
    /// Appends the whole message. Returns its size with the header.
    ///
    /// # Errors
    /// As [`crate::RequestHeader::begin`].
    pub fn write(&self, buffer: &mut Vec<u8>, format: Format) -> Result<usize, EncodeError> {
        let open = OpenMessage::begin(buffer, format, MessageKind::LocateRequest, 1, |w| {
            w.write_u32(self.id)?;
            self.target.write(format.codec.version, w)
        })?;
        open.finish(buffer)
    }
}

/// A LocateReply as received.
#[derive(Clone, Copy, Debug)]
pub struct LocateReply<'a> {
    /// GIOP version.
    pub version: Version,
    /// The request's number.
    pub id: u32,
    /// Where the object is.
    pub status: LocateStatus,
    /// The body that some statuses have; it follows the header without alignment of its own.
    pub body: Reader<'a>,
}

impl<'a> LocateReply<'a> {
    pub(crate) fn parse(header: &Header, mut r: Reader<'a>) -> Result<Self, ProtocolError> {
        let id = r.read_u32()?;
        let number = r.read_u32()?;
        let status = LocateStatus::from_number(number, header.version)
            .ok_or(ProtocolError::StatusUnknown(number))?;
        Ok(Self {
            version: header.version,
            id,
            status,
            body: r,
        })
    }
}

/// A LocateReply to send.
#[derive(Clone, Copy, Debug)]
pub struct LocateReplyHeader {
    /// The request's number.
    pub id: u32,
    /// Where the object is.
    pub status: LocateStatus,
}

impl LocateReplyHeader {
    /// Appends the reply up to its body.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`]; [`EncodeError::TypeUnsupported`] where the version has no such status.
    pub fn begin(&self, buffer: &mut Vec<u8>, format: Format) -> Result<OpenMessage, EncodeError> {
        if LocateStatus::from_number(self.status as u32, format.codec.version).is_none() {
            return Err(EncodeError::TypeUnsupported);
        }
        OpenMessage::begin(buffer, format, MessageKind::LocateReply, 1, |w| {
            w.write_u32(self.id)?;
            w.write_u32(self.status as u32)
        })
    }
}
