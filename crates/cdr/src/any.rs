//! `any`: a value with its type.

use crate::limits::MESSAGE_SIZE_MAX;
use crate::typecode::Kind;
use crate::value::{Value, read_values};
use crate::walk::{Met, copy_up_to, keep_value, survey_value};
use crate::{
    ByteOrder, Codec, DecodeError, DecodeFact, EncodeError, Parse, Reader, TypeCode, Typed,
    Unwritten, Write, Writer,
};
use std::fmt;
use std::sync::Arc;

/// A value of any type, kept as the octets it came as. It is forwarded in one copy to a writer of the same byte order, code sets and, where it may hold
/// wide characters, GIOP version, from where its parts are aligned as they are kept, and through its TypeCode to any other. Cheap to clone.
///
/// Values of value types are not: each time they are written anew, part by part. They are kept without chunks and with all that an indirection leads to, which goes no further than the `any`. They are
/// shared, or contain themselves, as they were. The state of a custom value, and of one in chunks of a type that is not known, is kept as it
/// came ([`Opaque`](crate::value::Opaque)), and the whole `any` with it in the byte order and code sets it came in.
#[derive(Clone)]
pub struct Any {
    type_code: TypeCode,
    /// A vector, so that the memory it was written in is kept and not copied.
    octets: Arc<Vec<u8>>,
    order: ByteOrder,
    codec: Codec,
    /// Alignment of the first octet, modulo 8.
    phase: u8,
    /// Whether a value of a derived type that was not known was read as its base.
    is_truncated: bool,
    /// Whether there is a state that only its own code can read.
    is_opaque: bool,
}

impl Any {
    /// An Any without a value: its TypeCode is `null`.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_octets(TypeCode::null(), Vec::new(), Codec::DEFAULT)
    }

    /// An Any with this value, in native byte order, GIOP 1.2 and UTF-8, unless it has a [form of its own](Write::sole_form).
    ///
    /// # Errors
    /// Those of writing the value. A struct with an opaque `any` in it is [`EncodeError::TypeUnsupported`] where that has another form.
    pub fn from_value<T: Typed + Write + ?Sized>(value: &T) -> Result<Self, EncodeError> {
        let (form, size) = (value.sole_form(), size_of_val(value));
        Self::build(T::type_code(), form, size, |type_code, w| {
            if let (Kind::Except, Some(id)) = (type_code.kind(), type_code.id()) {
                id.write(w)?;
            }
            value.write(w)
        })
    }

    /// An Any with a value whose type is known at run time only.
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

    /// Reads a value of this type. It is walked over, so that one which is malformed is refused here, and kept as the octets it is.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn read(type_code: TypeCode, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (at_value, start, phase) = (*r, r.position(), r.phase());
        let met = survey_value(&type_code, r)?;
        if met.values || r.bytes().len() != at_value.bytes().len() {
            return Self::joined(type_code, at_value, met);
        }
        // What has no octets may stand in padding behind the last of the message.
        let octets = r.bytes().get(start..r.position()).unwrap_or_default();
        Ok(Self {
            type_code,
            octets: Arc::new(octets.to_vec()),
            order: r.order(),
            codec: r.codec(),
            phase: phase as u8,
            is_truncated: false,
            is_opaque: false,
        })
    }

    /// Reads values of these types, one behind the other, as the arguments of a request or the results of a reply stand: several of them may share
    /// a value of a value type, which each of them then has.
    ///
    /// # Errors
    /// What is wrong with their octets; of those that share a value as [`crate::value::read_value`]; [`DecodeFact::TypeMismatch`] where what each
    /// then has cannot be kept.
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
        let (values, met) = read_values(&type_codes, r)?;
        let any = |(value, code): (Value, &TypeCode)| {
            let any = Self::from_dynamic(code, &value)?;
            Ok(Self {
                is_truncated: met.cut && code.may_hold_values(),
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
    /// [`DecodeFact::TypeMismatch`] where the type is no exception, be it another name of one; what is wrong with the octets of its members.
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

    /// As [`Any::write_value`], the last of its message, as [`Write::write_last`].
    ///
    /// # Errors
    /// As [`Any::write_value`].
    pub fn write_value_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        let mut r = self.reader();
        let alignment = self.alignment_in(&r, w);
        w.windowed(0, |w| copy_up_to(alignment, &self.type_code, &mut r, w))?;
        w.write_last_octets(&self.octets[r.position()..])
    }

    /// Modulo what a place has to be the same here and in the writer for the octets from there on to be those that the writer is to have; none
    /// where they are not.
    fn alignment_in(&self, r: &Reader<'_>, w: &Writer<'_>) -> Option<usize> {
        let arena = self.type_code.arena();
        let is_same = w.order() == self.order && arena.is_same_in(w.codec(), self.codec);
        let alignment = is_same.then(|| arena.alignment())?;
        // Indirections lead over what stood otherwise before, and chunks are open there.
        let is_whole = || w.is_alike(r, alignment) && w.stands_together(r.remaining());
        (!arena.may_hold_values() || is_whole()).then_some(alignment)
    }

    /// In this form where a state needs it, which only its own code can read. `size_hint`: octets that the value may take.
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

    /// The form of what is not kept as it came.
    pub(crate) const FORM: (ByteOrder, Codec) = (
        ByteOrder::NATIVE,
        Codec::DEFAULT.with_chars(crate::CharSet::Utf8),
    );

    /// A value that stands in several fragments, or has values of value types, written anew as one piece.
    #[cold]
    fn joined(
        type_code: TypeCode,
        mut at_value: Reader<'_>,
        met: Met,
    ) -> Result<Self, DecodeError> {
        let form = met.opaque.then(|| (at_value.order(), at_value.codec()));
        let copied = Self::build(type_code, form, 0, |type_code, w| {
            keep_value(type_code, &mut at_value, w)
        });
        let copied = copied.map_err(|_| at_value.error(DecodeFact::TypeMismatch))?;
        Ok(Self {
            is_truncated: met.cut,
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

    /// Octets of memory that it keeps: those of the value, and of its type.
    #[must_use]
    pub fn size(&self) -> usize {
        self.octets.len().saturating_add(self.type_code.held())
    }

    /// Whether it came with a value of a derived type that its TypeCode does not describe, which was cut down to its base. Of several that share
    /// values ([`Any::read_all`]) all that may have such a value are said to, where one has.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Whether there is a state that only its own code can read ([`Opaque`](crate::value::Opaque)): it can be written only in the byte order,
    /// GIOP version and code set it came in.
    #[must_use]
    pub const fn is_opaque(&self) -> bool {
        self.is_opaque
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.type_code.kind() == Kind::Null
    }

    /// The value.
    ///
    /// # Errors
    /// [`DecodeFact::TypeMismatch`] where it is of another type; what is wrong with its octets, for which offsets count from the
    /// value's start.
    pub fn extract<T: Typed + for<'a> Parse<'a>>(&self) -> Result<T, DecodeError> {
        let mut r = self.reader();
        if !self.type_code.equivalent(&T::type_code()) {
            return Err(r.error(DecodeFact::TypeMismatch));
        }
        if self.type_code.unaliased().kind() == Kind::Except {
            r.read_string_octets()?;
        }
        let mut value = T::parse(&mut r)?;
        if self.is_truncated {
            value.note_truncated();
        }
        Ok(value)
    }

    /// Whether there may be values of value types, those of an `any` within left aside.
    pub(crate) fn holds_values(&self) -> bool {
        self.type_code.arena().holds_values()
    }

    /// The value as a tree.
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

    /// Walks over the value, so that one which is malformed is refused here.
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

/// The same type and value, in whatever form each is kept.
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
