//! What the code of a custom value reads its state from and writes it to (DataInputStream and DataOutputStream, CORBA 3.3 part 1, clause 9.5.2).

use super::opaque::Opaque;
use super::sink::{Output, Sink};
use super::values::Chunks;
use super::{Fault, Walk, encoded};
use crate::value::{Value, read_kept};
use crate::{Any, DecodeError, DecodeFact, EncodeError, Reader, TypeCode, Writer};

/// The values of a state, one after the other, as types that their reader knows.
///
/// ```
/// # use deckwatch_cdr::value::{Opaque, Value};
/// # use deckwatch_cdr::TypeCode;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let state = Opaque::build(|w| {
///     w.write(&TypeCode::long(), &Value::Long(7))?;
///     w.write(&TypeCode::double(), &Value::Double(0.5))
/// })?;
/// let mut r = state.reader();
/// assert_eq!(r.read(&TypeCode::long())?, Value::Long(7));
/// assert_eq!(r.read(&TypeCode::double())?, Value::Double(0.5));
/// r.finish()?;
/// # Ok(())
/// # }
/// ```
pub struct StateReader<'s> {
    state: &'s Opaque,
    /// The state, and the value's end tag.
    octets: Vec<u8>,
    position: usize,
    chunks: Chunks,
}

/// Takes the values of a state, one after the other.
pub struct StateWriter<'w, 'b>(Walk<Output<'w, 'b>>);

impl Opaque {
    /// The state that its own code writes.
    ///
    /// # Errors
    /// Those of the code.
    pub fn build(
        code: impl FnOnce(&mut StateWriter<'_, '_>) -> Result<(), EncodeError>,
    ) -> Result<Self, EncodeError> {
        let (order, codec) = Any::FORM;
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets).with_order(order).with_codec(codec);
        let mut output = StateWriter(Walk::new(Output::of_state(&mut w)));
        code(&mut output)?;
        output.0.sink.close();
        let at = Reader::new(&octets, order).with_codec(codec);
        let state = Self::of_block(&octets, &at, 1, |_| false);
        state.map_err(|_| EncodeError::TypeUnsupported)
    }

    /// The state, for its own code to read.
    #[must_use]
    pub fn reader(&self) -> StateReader<'_> {
        let (state, phase) = self.octets();
        let mut octets = state.to_vec();
        octets.resize((phase + state.len()).next_multiple_of(4) - phase, 0);
        octets.extend([u8::MAX; 4]);
        StateReader {
            state: self,
            octets,
            position: 0,
            chunks: Chunks::of_one(),
        }
    }
}

impl StateReader<'_> {
    fn at(&self) -> Reader<'_> {
        let (order, codec) = self.state.form();
        let (_, phase) = self.state.octets();
        let r = Reader::new(&self.octets, order).with_codec(codec);
        r.with_phase(phase).at_position(self.position)
    }

    /// Reads a value of this type. Values of value types in it must not be shared with those of another.
    ///
    /// # Errors
    /// What is wrong with its octets; as [`crate::value::read_value`].
    pub fn read(&mut self, type_code: &TypeCode) -> Result<Value, DecodeError> {
        let mut r = self.at();
        let (order, codec) = self.state.form();
        let mut kept = Vec::new();
        let mut w = Writer::new(&mut kept).with_order(order).with_codec(codec);
        let mut walk = Walk::new(Output::new(&mut w, false));
        walk.chunks = self.chunks.clone();
        match walk.whole(type_code, &mut r) {
            Ok(()) => {}
            Err(Fault::Decode(error)) => return Err(error),
            Err(Fault::Encode(_) | Fault::IsAlike) => {
                return Err(r.error(DecodeFact::ValueTooLarge));
            }
        }
        let chunks = walk.chunks;
        let position = r.position();
        let value = read_kept(type_code, &mut Reader::new(&kept, order).with_codec(codec))?;
        (self.position, self.chunks) = (position, chunks);
        Ok(value)
    }

    /// Succeeds where all of the state was read.
    ///
    /// # Errors
    /// [`DecodeFact::ChunkMalformed`].
    pub fn finish(&self) -> Result<(), DecodeError> {
        let mut r = self.at();
        self.chunks.clone().finish(&mut r, false).map(drop)
    }
}

impl StateWriter<'_, '_> {
    /// Writes a value of this type.
    ///
    /// # Errors
    /// As [`Any::from_dynamic`].
    pub fn write(&mut self, type_code: &TypeCode, value: &Value) -> Result<(), EncodeError> {
        let kept = Any::from_dynamic(type_code, value)?;
        // Each value has types of its own.
        let around = self.0.sink.begin_any();
        let written = encoded(self.0.whole(type_code, &mut kept.reader()));
        self.0.sink.end_any(around);
        written
    }
}

impl std::fmt::Debug for StateReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StateReader").field(self.state).finish()
    }
}

impl std::fmt::Debug for StateWriter<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateWriter")
    }
}
