//! The twelve octets before every message (CORBA 3.3 part 2, clause 9.4.1).

use crate::{ByteOrder, ProtocolError, Version};

/// Octets of a message header.
pub const HEADER_SIZE: usize = 12;

const MAGIC: &[u8; 4] = b"GIOP";
const FLAG_LITTLE_ENDIAN: u8 = 1;
const FLAG_MORE_FRAGMENTS: u8 = 2;
const FLAGS_AT: usize = 6;
const SIZE_AT: usize = 8;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum MessageKind {
    /// A call.
    Request = 0,
    /// Its outcome.
    Reply = 1,
    /// The caller stopped waiting.
    CancelRequest = 2,
    /// Whether and where an object is.
    LocateRequest = 3,
    /// The answer to that.
    LocateReply = 4,
    /// The sender closes the connection in order.
    CloseConnection = 5,
    /// The receiver could not read the last message.
    MessageError = 6,
    /// A further part of a message; since GIOP 1.1.
    Fragment = 7,
}

impl MessageKind {
    const fn from_number(number: u8, version: Version) -> Option<Self> {
        Some(match number {
            0 => Self::Request,
            1 => Self::Reply,
            2 => Self::CancelRequest,
            3 => Self::LocateRequest,
            4 => Self::LocateReply,
            5 => Self::CloseConnection,
            6 => Self::MessageError,
            7 if !matches!(version, Version::V1_0) => Self::Fragment,
            _ => return None,
        })
    }

    /// Whether fragments may follow a message of this kind.
    #[must_use]
    pub const fn is_fragmentable(self, version: Version) -> bool {
        match version {
            Version::V1_0 => false,
            Version::V1_1 => matches!(self, Self::Request | Self::Reply | Self::Fragment),
            Version::V1_2 => matches!(
                self,
                Self::Request
                    | Self::Reply
                    | Self::LocateRequest
                    | Self::LocateReply
                    | Self::Fragment
            ),
        }
    }
}

/// A message header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// GIOP version.
    pub version: Version,
    /// Byte order of the size and of all that follows.
    pub order: ByteOrder,
    /// Whether a further fragment follows.
    pub more_fragments: bool,
    /// What the message is.
    pub kind: MessageKind,
    /// Octets after the header.
    pub size: u32,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`ProtocolError::NotGiop`], [`ProtocolError::VersionUnsupported`], [`ProtocolError::FlagsUnknown`],
    /// [`ProtocolError::KindUnknown`], [`ProtocolError::NotFragmentable`].
    #[inline]
    pub fn parse(octets: &[u8; HEADER_SIZE]) -> Result<Self, ProtocolError> {
        let [magic @ .., major, minor, flags, kind, a, b, c, d] = octets;
        if magic != MAGIC {
            return Err(ProtocolError::NotGiop);
        }
        let (major, minor, flags) = (*major, *minor, *flags);
        let version = Version::from_minor(minor).filter(|_| major == 1);
        let version = version.ok_or(ProtocolError::VersionUnsupported { major, minor })?;
        let known = if version == Version::V1_0 {
            FLAG_LITTLE_ENDIAN
        } else {
            FLAG_LITTLE_ENDIAN | FLAG_MORE_FRAGMENTS
        };
        if flags & !known != 0 {
            return Err(ProtocolError::FlagsUnknown(flags));
        }
        let kind =
            MessageKind::from_number(*kind, version).ok_or(ProtocolError::KindUnknown(*kind))?;
        let more_fragments = flags & FLAG_MORE_FRAGMENTS != 0;
        if more_fragments && !kind.is_fragmentable(version) {
            return Err(ProtocolError::NotFragmentable);
        }
        let (order, size) = match flags & FLAG_LITTLE_ENDIAN {
            0 => (ByteOrder::Big, u32::from_be_bytes([*a, *b, *c, *d])),
            _ => (ByteOrder::Little, u32::from_le_bytes([*a, *b, *c, *d])),
        };
        Ok(Self {
            version,
            order,
            more_fragments,
            kind,
            size,
        })
    }

    /// The header as octets.
    #[must_use]
    #[inline]
    pub fn to_octets(&self) -> [u8; HEADER_SIZE] {
        let mut octets = [0; HEADER_SIZE];
        octets[..4].copy_from_slice(MAGIC);
        let more = if self.more_fragments {
            FLAG_MORE_FRAGMENTS
        } else {
            0
        };
        octets[4..SIZE_AT].copy_from_slice(&[
            1,
            self.version.minor(),
            self.order.flag() | more,
            self.kind as u8,
        ]);
        octets[SIZE_AT..].copy_from_slice(&self.size_octets());
        octets
    }

    fn size_octets(&self) -> [u8; 4] {
        match self.order {
            ByteOrder::Big => self.size.to_be_bytes(),
            ByteOrder::Little => self.size.to_le_bytes(),
        }
    }

    /// Octets of the message with its header.
    #[must_use]
    #[inline]
    pub const fn message_size(&self) -> usize {
        self.size as usize + HEADER_SIZE
    }

    /// Sets size and flags in the header of a message that was joined.
    pub(crate) fn state_whole(message: &mut [u8]) -> Result<(), ProtocolError> {
        let size = u32::try_from(message.len() - HEADER_SIZE);
        Self::patch_size(message, size.map_err(|_| ProtocolError::MessageTooLarge)?);
        message[FLAGS_AT] &= !FLAG_MORE_FRAGMENTS;
        Ok(())
    }

    /// Overwrites the size in a message that stands at the start of `message`.
    #[inline]
    pub(crate) fn patch_size(message: &mut [u8], size: u32) {
        let little = message[FLAGS_AT] & FLAG_LITTLE_ENDIAN != 0;
        let octets = if little {
            size.to_le_bytes()
        } else {
            size.to_be_bytes()
        };
        message[SIZE_AT..HEADER_SIZE].copy_from_slice(&octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_were_written() {
        for (minor, flags, kind) in [(0, 0, 0), (0, 1, 6), (1, 3, 1), (2, 2, 7), (2, 1, 4)] {
            let mut octets = *b"GIOP\x01\0\0\0\0\x01\x02\0";
            octets[5..8].copy_from_slice(&[minor, flags, kind]);
            let header = Header::parse(&octets).unwrap();
            assert_eq!(header.to_octets(), octets);
            assert_eq!(
                header.size,
                if flags & 1 == 0 {
                    0x0001_0200
                } else {
                    0x0002_0100
                }
            );
        }
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let parse = |octets: &[u8; 12]| Header::parse(octets).unwrap_err();
        assert_eq!(parse(b"GIOQ\x01\0\0\0\0\0\0\0"), ProtocolError::NotGiop);
        assert_eq!(
            parse(b"GIOP\x02\0\0\0\0\0\0\0"),
            ProtocolError::VersionUnsupported { major: 2, minor: 0 }
        );
        assert_eq!(
            parse(b"GIOP\x01\x03\0\0\0\0\0\0"),
            ProtocolError::VersionUnsupported { major: 1, minor: 3 }
        );
        assert_eq!(
            parse(b"GIOP\x01\0\x02\0\0\0\0\0"),
            ProtocolError::FlagsUnknown(2)
        );
        assert_eq!(
            parse(b"GIOP\x01\x02\x04\0\0\0\0\0"),
            ProtocolError::FlagsUnknown(4)
        );
        assert_eq!(
            parse(b"GIOP\x01\0\0\x07\0\0\0\0"),
            ProtocolError::KindUnknown(7)
        );
        assert_eq!(
            parse(b"GIOP\x01\x02\0\x08\0\0\0\0"),
            ProtocolError::KindUnknown(8)
        );
        assert_eq!(
            parse(b"GIOP\x01\x02\x02\x05\0\0\0\0"),
            ProtocolError::NotFragmentable
        );
    }
}
