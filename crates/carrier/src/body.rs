//! The body of a message: a value of the flow's type, its CDR encoding, and the member that holds the sequence number.

use std::path::PathBuf;
use std::sync::Arc;

use deckwatch_cdr::value::{MemberPath, Value, read_value_into, write_value};
use deckwatch_cdr::{
    Any, ByteOrder, EncodeError, Parse as _, Reader, TypeCode, Unwritten, Write as _, Writer,
};
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_idl::model::Model;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::BODY_SIZE_MAX;

/// The type of a message's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BodyPlan {
    /// Plain octets (`sequence<octet>` in CORBA). The first eight are the sequence number, big-endian.
    Octets {
        /// Size of a message in octets, at least 8.
        size_bytes: u32,
    },
    /// A value of an IDL type.
    Typed {
        /// Absolute path of the IDL file.
        idl_file: PathBuf,
        /// Directories that are searched for its includes.
        #[serde(default)]
        include_paths: Vec<PathBuf>,
        /// Scoped name of the type, for example `Nav::NavData`.
        type_name: String,
        /// The member that holds the sequence number, an unsigned or signed integer. Nested members are written with
        /// dots, for example `header.sequence`.
        sequence_member: String,
    },
}

/// The body of a message, created once; only its sequence number changes.
#[derive(Clone, Debug)]
pub struct Body {
    shape: Arc<Shape>,
    value: Value,
    /// The length of the encoding in four octets, big-endian, then the CDR encoding.
    frame: Vec<u8>,
}

/// The properties that all messages of a stream share.
#[derive(Debug)]
struct Shape {
    type_code: TypeCode,
    /// `None` for plain octets: the first eight octets are the number.
    path: Option<MemberPath>,
    /// The offset of the number in the encoding, and its size in octets.
    place: Place,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    size: usize,
}

/// Where a sequence number is in the encoding of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequencePlace {
    /// Its offset.
    pub at: usize,
    /// Its octets.
    pub size: usize,
    /// Its byte order.
    pub order: ByteOrder,
}

/// Octets of the length that precedes a message on a byte stream.
pub const FRAME_HEADER_SIZE: usize = 4;

/// The byte order of the encoding that raw carriers send. It is the same on every machine.
pub const RAW_ORDER: ByteOrder = ByteOrder::Little;

impl Body {
    /// Creates the planned body with sequence number 0. Every other number in it is 0; every string and sequence is
    /// empty.
    ///
    /// # Errors
    /// [`BodyError`] if the type cannot be used, or the body is too small for its sequence number or larger than
    /// [`BODY_SIZE_MAX`].
    pub fn new(plan: &BodyPlan) -> Result<Self, BodyError> {
        match plan {
            BodyPlan::Octets { size_bytes } => Self::of_octets(*size_bytes),
            BodyPlan::Typed {
                idl_file,
                include_paths,
                type_name,
                sequence_member,
            } => {
                let model = Model::load(idl_file, include_paths)
                    .map_err(|errors| BodyError::Type(errors.to_string()))?;
                let unfit = || {
                    BodyError::Type(format!(
                        "The IDL file has no type `{type_name}` of which a value can be sent."
                    ))
                };
                let type_code = model.type_code(type_name).ok_or_else(unfit)?;
                Self::typed(type_code, sequence_member)
            }
        }
    }

    fn of_octets(size_bytes: u32) -> Result<Self, BodyError> {
        let size = size_bytes as usize;
        if size < SEQUENCE_SIZE {
            return Err(BodyError::TooSmall);
        }
        if size_bytes > BODY_SIZE_MAX {
            return Err(BodyError::TooLarge);
        }
        let shape = Shape {
            type_code: TypeCode::sequence(&TypeCode::octet(), 0),
            path: None,
            place: Place {
                at: 0,
                size: SEQUENCE_SIZE,
            },
        };
        Ok(Self {
            shape: Arc::new(shape),
            value: Value::Octets(vec![0; size]),
            frame: frame(&vec![0; size]),
        })
    }

    fn typed(type_code: TypeCode, member: &str) -> Result<Self, BodyError> {
        let path = MemberPath::resolve(&type_code, member).map_err(|error| {
            BodyError::Type(format!("The sequence member `{member}`: {error}."))
        })?;
        if !path.is_integer() {
            return Err(BodyError::Type(format!(
                "The sequence member `{member}` is no integer."
            )));
        }
        let value = Value::default_for(&type_code)?;
        let mut octets = Vec::new();
        write_value(
            &type_code,
            &value,
            &mut Writer::new(&mut octets)
                .with_order(RAW_ORDER)
                .with_limit(BODY_SIZE_MAX as usize),
        )?;
        let mut reader = Reader::new(&octets, RAW_ORDER);
        let before = |error| {
            BodyError::Type(format!(
                "The sequence member `{member}` cannot be read back: {error}."
            ))
        };
        path.read_number(&mut reader).map_err(before)?;
        let mut number = Vec::new();
        write_value(
            path.target(),
            &Value::default_for(path.target())?,
            &mut Writer::new(&mut number),
        )?;
        let place = Place {
            at: reader.position() - number.len(),
            size: number.len(),
        };
        let shape = Shape {
            type_code,
            path: Some(path),
            place,
        };
        Ok(Self {
            shape: Arc::new(shape),
            value,
            frame: frame(&octets),
        })
    }

    /// Returns the largest sequence number that the member can hold.
    #[must_use]
    pub fn sequence_max(&self) -> u64 {
        let fits = |bits: u32| u64::MAX >> (64 - bits);
        let bits = u32::try_from(self.shape.place.size * 8).unwrap_or(64);
        let mut value = self.value.clone();
        // A signed member refuses a value that only an unsigned member of the same size can hold. Plain octets refuse
        // nothing.
        let unsigned = match self
            .shape
            .path
            .as_ref()
            .and_then(|path| path.slot(&mut value))
        {
            Some(slot) => slot.set_number(-1).is_err(),
            None => true,
        };
        if unsigned { fits(bits) } else { fits(bits - 1) }
    }

    /// Returns where the sequence number is in the encoding.
    #[must_use]
    pub fn sequence_place(&self) -> SequencePlace {
        let Place { at, size } = self.shape.place;
        let order = match self.shape.path {
            None => ByteOrder::Big,
            Some(_) => RAW_ORDER,
        };
        SequencePlace { at, size, order }
    }

    /// Writes the sequence number to its place. A number above [`Body::sequence_max`] is truncated.
    pub fn set_sequence(&mut self, sequence: u64) {
        let mut frame = std::mem::take(&mut self.frame);
        self.put_sequence(&mut frame[FRAME_HEADER_SIZE..], sequence);
        self.frame = frame;
        match &self.shape.path {
            None => {
                if let Value::Octets(octets) = &mut self.value {
                    octets[..SEQUENCE_SIZE].copy_from_slice(&sequence.to_be_bytes());
                }
            }
            Some(path) => {
                if let Some(slot) = path.slot(&mut self.value) {
                    // Cannot fail: numbers beyond the member's range are rejected before the run.
                    let _ = slot.set_number(sequence.cast_signed());
                }
            }
        }
    }

    /// Writes a sequence number to its place in a copy of [`Body::octets`].
    pub(crate) fn put_sequence(&self, octets: &mut [u8], sequence: u64) {
        let Place { at, size } = self.shape.place;
        let number = &mut octets[at..at + size];
        match self.shape.path {
            None => number.copy_from_slice(&sequence.to_be_bytes()),
            Some(_) => number.copy_from_slice(&sequence.to_le_bytes()[..size]),
        }
    }

    /// Returns the CDR encoding; for plain octets, without their count.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.frame[FRAME_HEADER_SIZE..]
    }

    /// Returns the CDR encoding after its length.
    #[must_use]
    pub fn framed(&self) -> &[u8] {
        &self.frame
    }

    /// Returns the TypeCode; for plain octets, that of `sequence<octet>`.
    #[must_use]
    pub fn type_code(&self) -> &TypeCode {
        &self.shape.type_code
    }

    /// Marshals the value as an operation's argument.
    ///
    /// # Errors
    /// [`EncodeError`] if the writer's buffer is full.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let rest = self.write_last(writer)?;
        writer.write_octets(rest.octets())
    }

    /// As [`Body::write`], for the last argument of a message. Returns long octets instead of writing them, so that
    /// they are not copied.
    ///
    /// # Errors
    /// As [`Body::write`].
    pub fn write_last(&self, writer: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        match &self.value {
            Value::Octets(octets) if self.shape.path.is_none() => octets.write_last(writer),
            value => write_value(&self.shape.type_code, value, writer).map(Unwritten::from),
        }
    }

    /// Returns the value in an `any`.
    ///
    /// # Errors
    /// [`EncodeError`] if the value is too large.
    pub fn to_any(&self) -> Result<Any, EncodeError> {
        Any::from_dynamic(&self.shape.type_code, &self.value)
    }

    /// Returns the octets of the value in an `any`, with its TypeCode.
    ///
    /// # Errors
    /// As [`Body::to_any`].
    pub fn any_size_bytes(&self) -> Result<usize, EncodeError> {
        let mut octets = Vec::new();
        self.to_any()?.write(&mut Writer::new(&mut octets))?;
        Ok(octets.len())
    }

    /// Demarshals an operation's argument into this body. Returns its sequence number, or `None` if the argument is not
    /// a value of the type.
    pub fn read(&mut self, arguments: &mut Reader<'_>) -> Option<u64> {
        match &self.shape.path {
            None => sequence_of_octets(arguments.read_octet_sequence().ok()?),
            Some(path) => {
                read_value_into(&self.shape.type_code, &mut self.value, arguments).ok()?;
                path.slot(&mut self.value)?
                    .as_number()
                    .map(i64::cast_unsigned)
            }
        }
    }

    /// Returns a reader that finds the sequence number in messages like this one.
    #[must_use]
    pub fn sequence_reader(&self) -> SequenceReader {
        SequenceReader {
            shape: Arc::clone(&self.shape),
        }
    }
}

/// Finds the sequence number in received messages.
#[derive(Clone, Debug)]
pub struct SequenceReader {
    shape: Arc<Shape>,
}

impl SequenceReader {
    /// Returns the sequence number in a CDR encoding, or `None` if the encoding is too short.
    #[must_use]
    pub fn read(&self, octets: &[u8]) -> Option<u64> {
        if self.shape.path.is_none() {
            return sequence_of_octets(octets);
        }
        let Place { at, size } = self.shape.place;
        let mut number = [0; SEQUENCE_SIZE];
        number[..size].copy_from_slice(octets.get(at..at + size)?);
        Some(u64::from_le_bytes(number))
    }

    /// Returns the sequence number of a message on a byte stream, which begins with its length.
    #[must_use]
    pub fn read_framed(&self, message: &[u8]) -> Option<u64> {
        self.read(message.get(FRAME_HEADER_SIZE..)?)
    }

    /// Returns the sequence number in the only argument of an operation.
    #[must_use]
    pub fn read_argument(&self, mut arguments: Reader<'_>) -> Option<u64> {
        match &self.shape.path {
            None => sequence_of_octets(arguments.read_octet_sequence().ok()?),
            Some(path) => path
                .read_number(&mut arguments)
                .ok()
                .map(i64::cast_unsigned),
        }
    }

    /// Returns the sequence number in an `any` that is the only argument of an operation.
    #[must_use]
    pub fn read_any(&self, mut arguments: Reader<'_>) -> Option<u64> {
        let type_code = TypeCode::parse(&mut arguments).ok()?;
        type_code
            .equivalent(&self.shape.type_code)
            .then(|| self.read_argument(arguments))?
    }

    /// Returns the sequence number in the payload of the first event of an `RtecEventComm::EventSet`.
    #[must_use]
    pub fn read_event_set(&self, mut arguments: Reader<'_>) -> Option<u64> {
        arguments.read_u32().ok()?;
        EventHeader::parse(&mut arguments).ok()?;
        let _pad1 = arguments.read_u32().ok()?;
        self.read(arguments.read_octet_sequence().ok()?)
    }
}

fn frame(octets: &[u8]) -> Vec<u8> {
    let size = u32::try_from(octets.len()).unwrap_or(u32::MAX);
    [&size.to_be_bytes(), octets].concat()
}

fn sequence_of_octets(octets: &[u8]) -> Option<u64> {
    octets
        .first_chunk()
        .map(|octets| u64::from_be_bytes(*octets))
}

/// Octets of the sequence number in plain octets, and of the largest integer.
const SEQUENCE_SIZE: usize = 8;

/// Why a body cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The body has no room for the sequence number.
    #[error("A message needs at least {SEQUENCE_SIZE} octets, for its sequence number.")]
    TooSmall,
    /// The body is larger than any carrier accepts.
    #[error("A message has at most {BODY_SIZE_MAX} octets.")]
    TooLarge,
    /// The IDL file, or the type or member named in it, cannot be used.
    #[error("{0}")]
    Type(String),
    /// The value cannot be encoded.
    #[error("A value of the type cannot be encoded: {0}.")]
    Encode(EncodeError),
}

impl From<EncodeError> for BodyError {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::MessageTooLarge => Self::TooLarge,
            error => Self::Encode(error),
        }
    }
}

#[cfg(test)]
mod tests;
