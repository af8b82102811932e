//! Messages that are being written, and messages that consist of a header with little more.

use crate::fragment::size_of_part;
use crate::limits::MESSAGE_SIZE_MAX;
use crate::{ByteOrder, Codec, HEADER_SIZE, Header, MessageKind, Version};
use deckwatch_cdr::{EncodeError, Unwritten, Writer};

/// How outgoing messages of a connection are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// GIOP version and code sets.
    pub codec: Codec,
    /// Byte order.
    pub order: ByteOrder,
    /// Most octets of a message with its header.
    pub size_max: usize,
    /// The size for [`crate::Parts`], where the message may be divided: values are then aligned as in fragments of GIOP
    /// 1.1.
    pub fragment_size: Option<usize>,
}

impl Default for Format {
    /// GIOP 1.2, native byte order, the code sets without negotiation.
    fn default() -> Self {
        Self {
            codec: Codec::DEFAULT,
            order: ByteOrder::NATIVE,
            size_max: MESSAGE_SIZE_MAX,
            fragment_size: None,
        }
    }
}

/// A message at the end of a buffer whose body is not yet written. It borrows nothing: [`OpenMessage::writer`]
/// continues it, [`OpenMessage::finish`] sets its size, truncating the buffer to [`OpenMessage::start`] abandons it.
#[derive(Clone, Copy, Debug)]
#[must_use = "a message without `finish` has a wrong size"]
pub struct OpenMessage {
    start: usize,
    header_end: usize,
    body: usize,
    format: Format,
    is_divided_in_1_1: bool,
}

impl OpenMessage {
    /// Writes a header, and what `write` adds to it. `body_alignment` is 8 where the body begins at a multiple of it.
    pub(crate) fn begin(
        buffer: &mut Vec<u8>,
        format: Format,
        kind: MessageKind,
        body_alignment: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Self, EncodeError> {
        let start = buffer.len();
        let header = Header {
            version: format.codec.version,
            order: format.order,
            more_fragments: false,
            kind,
            size: 0,
        };
        let mut open = Self {
            start,
            header_end: start,
            body: start,
            format,
            is_divided_in_1_1: format.codec.version == Version::V1_1
                && kind.is_fragmentable(Version::V1_1),
        };
        let mut w = open.writer(buffer);
        let result = w
            .write_octets(&header.to_octets())
            .and_then(|()| write(&mut w))
            .and_then(|()| {
                open.header_end = w.position();
                w.align(body_alignment)?;
                open.body = w.position();
                Ok(())
            });
        if let Err(error) = result {
            buffer.truncate(start);
            return Err(error);
        }
        Ok(open)
    }

    /// Returns a message of GIOP 1.2 whose header is written: it ends at `header_end` from the start of the message,
    /// and the body begins at `body` in the buffer.
    #[inline]
    pub(crate) const fn begun(
        start: usize,
        header_end: usize,
        body: usize,
        format: Format,
    ) -> Self {
        Self {
            start,
            header_end: start + header_end,
            body,
            format,
            is_divided_in_1_1: false,
        }
    }

    /// A writer at the end of the buffer, aligned from the message's start.
    #[must_use]
    #[inline]
    pub fn writer<'b>(&self, buffer: &'b mut Vec<u8>) -> Writer<'b> {
        let writer = Writer::new(buffer)
            .with_origin(self.start)
            .with_order(self.format.order)
            .with_codec(self.format.codec)
            .with_limit(self.start.saturating_add(self.format.size_max));
        match self.format.fragment_size {
            Some(size) if self.is_divided_in_1_1 => writer.with_fragments(size_of_part(size)),
            _ => writer,
        }
    }

    /// Where in the buffer the message begins.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Where in the buffer the body begins.
    #[must_use]
    pub const fn body(&self) -> usize {
        self.body
    }

    /// Sets the message's size in its header, and drops the padding before an empty body. Returns the size with the
    /// header.
    ///
    /// # Errors
    /// [`EncodeError::LengthTooLarge`] where it does not fit 32 bits.
    #[inline]
    pub fn finish(self, buffer: &mut Vec<u8>) -> Result<usize, EncodeError> {
        self.finish_before(buffer, Unwritten::default())
    }

    /// As [`OpenMessage::finish`], of a message whose last octets are sent from where they stand. The size counts them.
    ///
    /// # Errors
    /// As [`OpenMessage::finish`].
    #[inline]
    pub fn finish_before(
        self,
        buffer: &mut Vec<u8>,
        rest: Unwritten<'_>,
    ) -> Result<usize, EncodeError> {
        let rest = rest.octets().len();
        if buffer.len() == self.body && rest == 0 {
            buffer.truncate(self.header_end);
        }
        let size = buffer.len() - self.start + rest;
        let stated = u32::try_from(size - HEADER_SIZE).map_err(|_| EncodeError::LengthTooLarge)?;
        Header::patch_size(&mut buffer[self.start..], stated);
        Ok(size)
    }
}

/// Appends a CancelRequest.
///
/// # Errors
/// [`EncodeError::MessageTooLarge`].
pub fn write_cancel_request(
    buffer: &mut Vec<u8>,
    format: Format,
    request_id: u32,
) -> Result<(), EncodeError> {
    let open = OpenMessage::begin(buffer, format, MessageKind::CancelRequest, 1, |w| {
        w.write_u32(request_id)
    })?;
    open.finish(buffer).map(drop)
}

/// Appends a CloseConnection.
pub fn write_close_connection(buffer: &mut Vec<u8>, version: Version) {
    write_bare(buffer, version, MessageKind::CloseConnection);
}

/// Appends a MessageError.
pub fn write_message_error(buffer: &mut Vec<u8>, version: Version) {
    write_bare(buffer, version, MessageKind::MessageError);
}

fn write_bare(buffer: &mut Vec<u8>, version: Version, kind: MessageKind) {
    let header = Header {
        version,
        order: ByteOrder::NATIVE,
        more_fragments: false,
        kind,
        size: 0,
    };
    buffer.extend_from_slice(&header.to_octets());
}
