//! What a message carries: its CDR encoding, and where in it the sequence number stands.

use deckwatch_cdr::{Parse as _, Reader, TypeCode};
use thiserror::Error;

use crate::limits::BODY_SIZE_MAX;
use crate::plan::BodyPlan;

/// One message's body, made once; only its sequence number changes.
#[derive(Debug)]
pub struct Body {
    /// The length of the rest in four octets, big-endian, then the CDR encoding.
    frame: Vec<u8>,
}

/// Octets of the length before a message on a byte stream.
pub const FRAME_HEADER_SIZE: usize = 4;

impl Body {
    /// A body as planned, with sequence number 0.
    ///
    /// # Errors
    /// [`BodyError`] for a body too small for its sequence number or larger than [`BODY_SIZE_MAX`].
    pub fn new(plan: &BodyPlan) -> Result<Self, BodyError> {
        match plan {
            BodyPlan::Octets { size_bytes } => Self::of_octets(*size_bytes),
            BodyPlan::Typed { .. } => Err(BodyError::TooSmall),
        }
    }

    fn of_octets(size_bytes: u32) -> Result<Self, BodyError> {
        if (size_bytes as usize) < SEQUENCE_SIZE {
            return Err(BodyError::TooSmall);
        }
        if size_bytes > BODY_SIZE_MAX {
            return Err(BodyError::TooLarge);
        }
        let mut frame = vec![0; FRAME_HEADER_SIZE + size_bytes as usize];
        frame[..FRAME_HEADER_SIZE].copy_from_slice(&size_bytes.to_be_bytes());
        Ok(Self { frame })
    }

    /// Writes the sequence number into its place.
    pub fn set_sequence(&mut self, sequence: u64) {
        self.frame[FRAME_HEADER_SIZE..][..SEQUENCE_SIZE].copy_from_slice(&sequence.to_be_bytes());
    }

    /// The CDR encoding.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.frame[FRAME_HEADER_SIZE..]
    }

    /// The CDR encoding behind its length.
    #[must_use]
    pub fn framed(&self) -> &[u8] {
        &self.frame
    }

    /// Finds the sequence number in messages like this one.
    #[must_use]
    pub fn sequence_reader(&self) -> SequenceReader {
        SequenceReader {}
    }
}

/// Finds the sequence number in what arrived.
#[derive(Clone, Debug)]
pub struct SequenceReader {}

impl SequenceReader {
    /// The sequence number of a CDR encoding; none where it is too short.
    #[must_use]
    pub fn read(&self, octets: &[u8]) -> Option<u64> {
        octets
            .first_chunk()
            .map(|octets| u64::from_be_bytes(*octets))
    }

    /// The sequence number of a message on a byte stream, its length before it.
    #[must_use]
    pub fn read_framed(&self, message: &[u8]) -> Option<u64> {
        self.read(message.get(FRAME_HEADER_SIZE..)?)
    }

    /// The sequence number of an operation's only argument.
    #[must_use]
    pub fn read_argument(&self, mut arguments: Reader<'_>) -> Option<u64> {
        self.read(arguments.read_octet_sequence().ok()?)
    }

    /// The sequence number in an `any` that is an operation's only argument.
    #[must_use]
    pub fn read_any(&self, mut arguments: Reader<'_>) -> Option<u64> {
        TypeCode::parse(&mut arguments).ok()?;
        self.read_argument(arguments)
    }
}

/// Octets of the sequence number before plain octets.
const SEQUENCE_SIZE: usize = 8;

/// Why a body cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// No room for the sequence number.
    #[error("A message needs at least {SEQUENCE_SIZE} octets, for its sequence number.")]
    TooSmall,
    /// Larger than any carrier takes.
    #[error("A message has at most {BODY_SIZE_MAX} octets.")]
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_number_is_found_where_it_was_put() {
        let mut body = Body::new(&BodyPlan::Octets { size_bytes: 100 }).expect("of a usual size");
        body.set_sequence(0x0102_0304_0506_0708);
        assert_eq!(
            body.sequence_reader().read(body.octets()),
            Some(0x0102_0304_0506_0708)
        );
        assert_eq!(body.framed()[..4], [0, 0, 0, 100]);
        assert_eq!(body.framed().len(), 104);
        assert_eq!(body.sequence_reader().read(&[0; 7]), None);
    }

    #[test]
    fn bodies_of_no_use_are_refused() {
        let of = |size_bytes| Body::new(&BodyPlan::Octets { size_bytes }).map(|_| ());
        assert_eq!(of(7), Err(BodyError::TooSmall));
        assert_eq!(of(BODY_SIZE_MAX + 1), Err(BodyError::TooLarge));
        assert_eq!(of(8), Ok(()));
    }
}
