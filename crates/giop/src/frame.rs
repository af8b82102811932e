//! The extent of a message in octets as they arrive.

use crate::{HEADER_SIZE, Header, ProtocolError};

/// What is known of the message at the start of some octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// At least this many more octets are needed: to the end of the header, then to the end of the message.
    Need(usize),
    /// The message is complete: its header, and its size with the header.
    Message(Header, usize),
}

impl Frame {
    /// Checks the octets received so far, which begin a message. Refuses messages above `size_max` octets. An error is
    /// found as early as possible.
    ///
    /// # Errors
    /// Those of [`Header::parse`], [`ProtocolError::MessageTooLarge`].
    #[inline]
    pub fn parse(octets: &[u8], size_max: usize) -> Result<Self, ProtocolError> {
        let Some(header) = octets.first_chunk::<HEADER_SIZE>() else {
            if !b"GIOP".starts_with(&octets[..octets.len().min(4)]) {
                return Err(ProtocolError::NotGiop);
            }
            return Ok(Self::Need(HEADER_SIZE - octets.len()));
        };
        let header = Header::parse(header)?;
        let size = header.message_size();
        if size > size_max {
            return Err(ProtocolError::MessageTooLarge);
        }
        Ok(match size.checked_sub(octets.len()) {
            None | Some(0) => Self::Message(header, size),
            Some(missing) => Self::Need(missing),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn need_counts_down_to_the_header_and_then_to_the_message() {
        let message = b"GIOP\x01\x02\0\x05\0\0\0\x02ab";
        assert_eq!(Frame::parse(b"", 99), Ok(Frame::Need(12)));
        for len in 0..message.len() {
            let missing = if len < 12 { 12 - len } else { 14 - len };
            assert_eq!(Frame::parse(&message[..len], 99), Ok(Frame::Need(missing)));
        }
        assert!(matches!(
            Frame::parse(message, 99),
            Ok(Frame::Message(_, 14))
        ));
        assert!(matches!(
            Frame::parse(b"GIOP\x01\x02\0\x05\0\0\0\0GIOP", 99),
            Ok(Frame::Message(_, 12))
        ));
    }

    #[test]
    fn foreign_octets_and_oversize_are_seen_at_once() {
        assert_eq!(Frame::parse(b"GET", 99), Err(ProtocolError::NotGiop));
        assert_eq!(
            Frame::parse(b"GIOP\x01\x02\0\0\xFF\xFF\xFF\xFF", 99),
            Err(ProtocolError::MessageTooLarge)
        );
    }
}
