//! `any`: a value with its type.

use crate::limits::MESSAGE_SIZE_MAX;
use crate::room::copied;
use crate::typecode::Kind;
use crate::value::{Value, read_values};
use crate::valuetype::{WriteValues, shared_read, shared_write};
use crate::walk::{Survey, copy_up_to, keep_value, survey_value};
use crate::{
    ByteOrder, Codec, DecodeError, DecodeFact, EncodeError, Parse, Reader, TypeCode, Typed,
    Unwritten, Write, Writer,
};
use std::fmt;
use std::sync::Arc;

/// A value of any type, kept as the octets that came. Cheap to clone.
///
/// The octets are copied as they are to a writer of the same byte order, code sets and alignment; wide characters need
/// the same GIOP version too. To any other writer the value is copied part by part, by its TypeCode.
/// Values of value types are always written part by part. They are kept without chunks, with everything that an
/// indirection leads to, and stay shared or cyclic. A state that no TypeCode describes (of a custom value, or of an
/// unknown type in chunks) is kept as it came ([`Opaque`](crate::value::Opaque)); the `any` then keeps its byte order
/// and code sets.
#[derive(Clone)]
pub struct Any {
    type_code: TypeCode,
    /// A vector: the memory that the octets were written in is kept, not copied.
    octets: Arc<Vec<u8>>,
    order: ByteOrder,
    codec: Codec,
    /// Alignment of the first octet, modulo 8.
    phase: u8,
    /// Whether a value of an unknown derived type was read as its base.
    is_truncated: bool,
    /// Whether it contains a state that no TypeCode describes.
    is_opaque: bool,
}

impl Any {
    /// Returns an Any without a value: its TypeCode is `null`.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_octets(TypeCode::null(), Vec::new(), Codec::DEFAULT)
    }

    /// Returns an Any with this value, in native byte order, GIOP 1.2 and UTF-8, unless the value has a [form of its
    /// own](Write::sole_form).
    ///
    /// # Errors
    /// Those of writing the value. [`EncodeError::TypeUnsupported`] for a struct with an opaque `any` in another form.
    pub fn from_value<T: Typed + Write + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        let (form, size) = (value.sole_form(), size_of_val(value));
        let type_code = value.own_type_code();
        let write = |type_code: &TypeCode, w: &mut Writer<'_>| {
            if let (Kind::Except, Some(id)) = (type_code.kind(), type_code.id()) {
                id.write(w)?;
            }
            value.write(w)
        };
        if !type_code.arena().holds_values() {
            return Self::build(type_code, form, size, write);
        }
        let written = Self::build(type_code, form, size, |type_code, w| {
            shared_write(w, |w| write(type_code, w))
        })?;
        // The form in which values are kept.
        let kept = Self::read(written.type_code.clone(), &mut written.reader());
        kept.map_err(|_| EncodeError::TypeMismatch)
    }

    /// Returns an Any with a value whose type is known at run time only.
    ///
    /// # Errors
    /// Those of writing the value, [`EncodeError::TypeMismatch`] where it is not of the type.
    pub fn from_dynamic(type_code: &TypeCode, value: &Value) -> Result<Self, EncodeError> {
        let may_be_opaque = type_code.arena().may_hold_values();
        let form = may_be_opaque.then(|| value.form()).flatten();
        Self::build(type_code.clone(), form, 0, |type_code, w| {
            crate::value::write_kept(type_code, value, w)
        })
    }

    /// Reads a value of this type, checks it by walking over it, and keeps its octets.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn read(type_code: TypeCode, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (at_value, start, phase) = (*r, r.position(), r.phase());
        let chunks = r.values().map(|values| (values, values.chunks(start)));
        let survey = survey_value(&type_code, r)?;
        if survey.values || r.bytes().len() != at_value.bytes().len() {
            if let Some((values, chunks)) = chunks {
                values.set_chunks(chunks);
            }
            return Self::joined(type_code, at_value, survey);
        }
        // A value without octets may stand in the padding behind the last value of the message.
        let octets = r.bytes().get(start..r.position()).unwrap_or_default();
        Ok(Self {
            type_code,
            octets: Arc::new(copied(octets, r)?),
            order: r.order(),
            codec: r.codec(),
            phase: phase as u8,
            is_truncated: false,
            is_opaque: false,
        })
    }

    /// Reads values of these types, one after the other, as the arguments of a request or the results of a reply.
    /// Values of value types may be shared between them; each Any then contains its own copy.
    ///
    /// # Errors
    /// What is wrong with their octets; for shared values as [`crate::value::read_value`], and
    /// [`DecodeFact::TypeMismatch`] where a copy cannot be kept.
    pub fn read_all<'t>(
        type_codes: impl Iterator<Item = &'t TypeCode> + Clone,
        r: &mut Reader<'_>,
    ) -> Result<Vec<Self>, DecodeError> {
        let start = *r;
        let each = type_codes.clone().cloned();
        match each.map(|code| Self::read(code, r)).collect() {
            Err(DecodeError {
                fact: DecodeFact::ValueAstray,
                ..
            }) => {}
            outcome => return outcome,
        }
        r.go_to(start);
        let type_codes: Vec<_> = type_codes.collect();
        let (values, survey) = read_values(&type_codes, r)?;
        let any = |(value, code): (Value, &TypeCode)| {
            let any = Self::from_dynamic(code, &value)?;
            Ok(Self {
                is_truncated: survey.cut && code.may_hold_values(),
                ..any
            })
        };
        let values = values.into_iter().zip(type_codes).map(any);
        let values = values.collect::<Result<_, EncodeError>>();
        values.map_err(|_| r.error(DecodeFact::TypeMismatch))
    }

    /// Reads an exception whose repository id has been read.
    ///
    /// # Errors
    /// [`DecodeFact::TypeMismatch`] where the type is not an exception (an alias of one is not either); what is wrong
    /// with the octets of its members.
    pub fn read_members(exception: TypeCode, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        if exception.kind() != Kind::Except {
            return Err(r.error(DecodeFact::TypeMismatch));
        }
        let members =
            (0..exception.member_count()).filter_map(|index| exception.member_type(index));
        let members: Vec<_> = members.collect();
        let members = Self::read_all(members.iter(), r)?;
        let form = members.iter().find_map(Self::sole_form);
        let whole = Self::build(exception, form, 0, |exception, w| {
            exception.id().unwrap_or_default().write(w)?;
            let mut members = members.iter();
            members.try_for_each(|one| keep_value(&one.type_code, &mut one.reader(), w))
        });
        let whole = whole.map_err(|_| r.error(DecodeFact::TypeMismatch))?;
        Ok(Self {
            is_truncated: members.iter().any(Self::is_truncated),
            ..whole
        })
    }

    /// Writes the value without its type, as an argument or a member of the type is written.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_value(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let rest = self.write_value_last(w)?;
        w.write_octets(rest.octets())
    }

    /// As [`Any::write_value`], for the last value of a message: see [`Write::write_last`].
    ///
    /// # Errors
    /// As [`Any::write_value`].
    pub fn write_value_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        let mut r = self.reader();
        let alignment = self.alignment_in(&r, w);
        w.windowed(0, |w| copy_up_to(alignment, &self.type_code, &mut r, w))?;
        w.write_last_octets(&self.octets[r.position()..])
    }

    /// Returns the alignment at which the octets here are those that the writer needs; `None` where they have to be
    /// converted.
    fn alignment_in(&self, r: &Reader<'_>, w: &Writer<'_>) -> Option<usize> {
        let arena = self.type_code.arena();
        let is_same = w.order() == self.order && arena.is_same_in(w.codec(), self.codec);
        let alignment = is_same.then(|| arena.alignment())?;
        // Indirections cross octets that may be converted, and the writer may have a chunk open.
        let is_whole = || w.is_alike(r, alignment) && w.stands_together(r.remaining());
        let is_inside = || w.values().is_some_and(WriteValues::are_in_chunks);
        (!arena.may_hold_values() || is_whole() && !is_inside()).then_some(alignment)
    }

    /// `form`: the form that an opaque state in the value needs. `size_hint`: octets that the value may take.
    fn build(
        type_code: TypeCode,
        form: Option<(ByteOrder, Codec)>,
        size_hint: usize,
        write: impl FnOnce(&TypeCode, &mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<Self, EncodeError> {
        let (order, codec) = form.unwrap_or(Self::FORM);
        let mut octets = Vec::with_capacity(size_hint.min(MESSAGE_SIZE_MAX));
        let w = Writer::new(&mut octets).with_order(order);
        write(&type_code, &mut w.with_codec(codec))?;
        Ok(Self {
            order,
            is_opaque: form.is_some(),
            ..Self::from_octets(type_code, octets, codec)
        })
    }

    /// The form in which converted values are kept.
    pub(crate) const FORM: (ByteOrder, Codec) = (
        ByteOrder::NATIVE,
        Codec::DEFAULT.with_chars(crate::CharSet::Utf8),
    );

    /// Rewrites a value that stands in several fragments, or contains values of value types, as one piece.
    #[cold]
    fn joined(
        type_code: TypeCode,
        mut at_value: Reader<'_>,
        survey: Survey,
    ) -> Result<Self, DecodeError> {
        let form = survey.opaque.then(|| (at_value.order(), at_value.codec()));
        let copied = Self::build(type_code, form, 0, |type_code, w| {
            keep_value(type_code, &mut at_value, w)
        });
        let copied = copied.map_err(|_| at_value.error(DecodeFact::TypeMismatch))?;
        Ok(Self {
            is_truncated: survey.cut,
            ..copied
        })
    }

    fn from_octets(type_code: TypeCode, mut octets: Vec<u8>, codec: Codec) -> Self {
        octets.shrink_to_fit();
        Self {
            type_code,
            octets: Arc::new(octets),
            order: ByteOrder::NATIVE,
            codec,
            phase: 0,
            is_truncated: false,
            is_opaque: false,
        }
    }

    /// The value's type.
    #[must_use]
    pub const fn type_code(&self) -> &TypeCode {
        &self.type_code
    }

    /// Octets of memory that the value and its type take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.octets.len().saturating_add(self.type_code.held())
    }

    /// Whether a value in it was truncated: its TypeCode does not describe the derived type, so it was read as a base.
    /// Of several Anys that share values ([`Any::read_all`]), all that may contain such a value return true.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Whether it contains a state that no TypeCode describes ([`Opaque`](crate::value::Opaque)). It can be written
    /// only in the byte order, GIOP version and code set it came in.
    #[must_use]
    pub const fn is_opaque(&self) -> bool {
        self.is_opaque
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.type_code.kind() == Kind::Null
    }

    /// Returns the value.
    ///
    /// # Errors
    /// [`DecodeFact::TypeMismatch`] where it is of another type; what is wrong with its octets. Offsets count from the
    /// start of the value.
    pub fn extract<T: Typed + for<'a> Parse<'a>>(&self) -> Result<T, DecodeError> {
        let mut r = self.reader();
        if !T::accepts(&self.type_code) {
            return Err(r.error(DecodeFact::TypeMismatch));
        }
        if self.type_code.unaliased().kind() == Kind::Except {
            r.read_string_octets()?;
        }
        let mut value = if self.holds_values() {
            shared_read(&mut r, |r| T::parse(r))?
        } else {
            T::parse(&mut r)?
        };
        if self.is_truncated {
            value.note_truncated();
        }
        Ok(value)
    }

    /// Whether it may contain values of value types, apart from those in an `any` within.
    pub(crate) fn holds_values(&self) -> bool {
        self.type_code.arena().holds_values()
    }

    /// Returns the value as a tree.
    ///
    /// # Errors
    /// As [`crate::value::read_value`].
    pub fn to_dynamic(&self) -> Result<Value, DecodeError> {
        let mut value = crate::value::read_kept(&self.type_code, &mut self.reader())?;
        if let Value::Any(within) = &mut value {
            within.is_truncated |= self.is_truncated;
        }
        Ok(value)
    }

    /// A reader at the value.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&self.octets, self.order)
            .with_phase(usize::from(self.phase))
            .with_codec(self.codec)
    }
}

impl Default for Any {
    fn default() -> Self {
        Self::empty()
    }
}

impl Write for Any {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let rest = self.write_last(w)?;
        w.write_octets(rest.octets())
    }

    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        self.type_code.write(w)?;
        self.write_value_last(w)
    }

    fn sole_form(&self) -> Option<(ByteOrder, Codec)> {
        self.is_opaque.then_some((self.order, self.codec))
    }
}

impl<'a> Parse<'a> for Any {
    const SIZE_MIN: usize = 4;

    /// Checks the value by walking over it.
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let type_code = TypeCode::parse(r)?;
        r.nested(|r| Self::read(type_code, r))
    }

    fn note_truncated(&mut self) {
        self.is_truncated = true;
    }
}

impl Typed for Any {
    fn type_code() -> TypeCode {
        TypeCode::any()
    }
}

/// Equal where type and value are, in whatever form each is kept.
impl PartialEq for Any {
    fn eq(&self, other: &Self) -> bool {
        let canonical = |any: &Self| {
            let mut octets = Vec::new();
            let (order, codec) = self.sole_form().unwrap_or(Self::FORM);
            let mut w = Writer::new(&mut octets).with_codec(codec).with_order(order);
            keep_value(&any.type_code, &mut any.reader(), &mut w)
                .ok()
                .map(|()| octets)
        };
        let is_same = || canonical(self).is_some_and(|octets| canonical(other) == Some(octets));
        self.type_code == other.type_code && self.is_opaque == other.is_opaque && is_same()
    }
}

impl fmt::Debug for Any {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Any({}, ", self.type_code)?;
        match self.to_dynamic() {
            Ok(value) => write!(f, "{value:?})"),
            Err(error) => write!(f, "{error})"),
        }
    }
}
