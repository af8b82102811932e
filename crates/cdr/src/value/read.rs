//! Octets to trees.

use super::{Instance, Reference, Value, is_octets};
use crate::fixed::parse_packed;
use crate::limits::{
    ANY_PARTS, INSTANCE_PARTS, OPAQUE_PARTS, PART_ID_SIZE, SHARED_SIZE_MAX, TYPE_CODE_PARTS,
    VALUE_PARTS_MAX,
};
use crate::room::{copied, more_room, owned};
use crate::text::decode_text;
use crate::typecode::{Arena, Kind, Member, Node, select};
use crate::walk::ids::id_text;
use crate::walk::tags::{CHUNKED, NULL_TAG, WITHOUT_TAG};
use crate::walk::values::kept_opaque;
use crate::walk::{Survey, check_bound, keep_value, read_selector, survey_value};
use crate::{
    Any, Char, DecodeError, DecodeFact, LongDouble, Parse, Reader, TypeCode, WString, Writer,
};
use std::collections::HashMap;

/// Reads a value of this type.
///
/// # Errors
/// What is wrong with its octets; [`DecodeFact::ValueTooLarge`] where it has more than [`VALUE_PARTS_MAX`] parts, or
/// what is shared stands in more than [`SHARED_SIZE_MAX`] octets once more; [`DecodeFact::ValueCyclic`].
pub fn read_value(type_code: &TypeCode, r: &mut Reader<'_>) -> Result<Value, DecodeError> {
    let mut value = Value::Nothing;
    read_value_into(type_code, &mut value, r)?;
    Ok(value)
}

/// Reads a value of this type over another one, whose memory is used again where the shapes agree. After an error the
/// value is a mixture of both.
///
/// # Errors
/// As [`read_value`].
pub fn read_value_into(
    type_code: &TypeCode,
    value: &mut Value,
    r: &mut Reader<'_>,
) -> Result<(), DecodeError> {
    read_surveyed(type_code, value, r).map(|_| ())
}

/// As [`read_value_into`], and returns what it found: within an `any` only where values of value types may stand beside
/// it.
fn read_surveyed(
    type_code: &TypeCode,
    value: &mut Value,
    r: &mut Reader<'_>,
) -> Result<Survey, DecodeError> {
    if type_code.arena().holds_values() {
        // What is wrong with the octets is found here.
        let survey = survey_value(type_code, &mut r.clone())?;
        let (order, codec) = if survey.opaque {
            (r.order(), r.codec())
        } else {
            Any::FORM
        };
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets).with_order(order).with_codec(codec);
        keep_value(type_code, r, &mut w).map_err(|_| r.error(DecodeFact::ValueTooLarge))?;
        let mut kept = Reader::new(&octets, order).with_codec(codec);
        Reading::of(type_code).read(type_code.root(), value, &mut kept)?;
        return Ok(survey);
    }
    Reading::of(type_code).read(type_code.root(), value, r)?;
    Ok(Survey::default())
}

/// Reads values of these types, one after the other, as the arguments of a request or the results of a reply. A value
/// of a value type that they share is copied to each. Also returns what was found in any of them.
///
/// # Errors
/// As [`read_value`].
pub(crate) fn read_values(
    type_codes: &[&TypeCode],
    r: &mut Reader<'_>,
) -> Result<(Vec<Value>, Survey), DecodeError> {
    let members = type_codes.iter().map(|type_code| Member {
        name: "",
        type_code,
    });
    let all = TypeCode::structure(ALL_ID, "", &members.collect::<Vec<_>>());
    let mut value = Value::Nothing;
    let survey = read_surveyed(&all, &mut value, r)?;
    match value {
        Value::Struct(values) => Ok((values, survey)),
        _ => unreachable!("the type is that of a struct"),
    }
}

/// The repository id of a struct of several values; no type has it.
const ALL_ID: &str = "several values";

/// As [`read_value`], of octets in the form in which an [`Any`] keeps them.
pub(crate) fn read_kept(type_code: &TypeCode, r: &mut Reader<'_>) -> Result<Value, DecodeError> {
    let mut value = Value::Nothing;
    Reading::of(type_code).read(type_code.root(), &mut value, r)?;
    Ok(value)
}

struct Reading<'t> {
    arena: &'t Arena,
    parts_left: usize,
    /// Octets of shared values that may still be copied.
    shared_left: usize,
    /// Where values began and ended; `None` for those that are being read.
    ends: HashMap<usize, Option<usize>>,
}

impl<'t> Reading<'t> {
    fn of(type_code: &'t TypeCode) -> Self {
        Self {
            arena: type_code.arena(),
            parts_left: VALUE_PARTS_MAX,
            shared_left: SHARED_SIZE_MAX,
            ends: HashMap::new(),
        }
    }
}

impl Reading<'_> {
    fn read(
        &mut self,
        index: u32,
        value: &mut Value,
        r: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        self.take_parts(1, r)?;
        *value = match self.arena.node(index) {
            Node::Simple(kind) => self.simple(*kind, r)?,
            Node::Fixed { digits, .. } => Value::Fixed(parse_packed(*digits, r)?),
            Node::String { bound } => return read_string(*bound, value, r),
            Node::WString { bound } => {
                let text = WString::parse(r)?;
                check_bound(text.units().len(), *bound, r)?;
                Value::WString(text)
            }
            Node::Enum { enumerators, .. } => {
                let number = r.read_u32()?;
                if number as usize >= enumerators.len() {
                    return Err(DecodeError::new(
                        DecodeFact::EnumeratorUnknown,
                        r.position() - 4,
                    ));
                }
                Value::Enum(number)
            }
            Node::Named {
                kind: Kind::Objref | Kind::Component | Kind::Home,
                ..
            } => self.reference(r)?,
            _ => return r.nested(|r| self.constructed(index, value, r)),
        };
        Ok(())
    }

    fn take_parts(&mut self, count: usize, r: &Reader<'_>) -> Result<(), DecodeError> {
        let left = self.parts_left.checked_sub(count);
        self.parts_left = left.ok_or_else(|| r.error(DecodeFact::ValueTooLarge))?;
        Ok(())
    }

    fn take_shared(&mut self, octets: usize, r: &Reader<'_>) -> Result<(), DecodeError> {
        let left = self.shared_left.checked_sub(octets);
        self.shared_left = left.ok_or_else(|| r.error(DecodeFact::ValueTooLarge))?;
        Ok(())
    }

    fn constructed(
        &mut self,
        index: u32,
        value: &mut Value,
        r: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        match self.arena.node(index) {
            Node::Alias {
                boxed: false,
                content,
                ..
            } => self.read(*content, value, r),
            Node::Struct {
                exception, members, ..
            } => {
                if *exception {
                    r.read_string_octets()?;
                }
                let parts = parts_of(value, true);
                parts.resize(members.len(), Value::Nothing);
                members
                    .iter()
                    .zip(parts)
                    .try_for_each(|(member, part)| self.read(member.node, part, r))
            }
            Node::Sequence { element, bound } => {
                let count = r.read_count(self.arena.size_min(*element))?;
                check_bound(count, *bound, r)?;
                self.elements(*element, count, value, r)
            }
            Node::Array { element, len } => self.elements(*element, *len as usize, value, r),
            Node::Union {
                discriminator,
                default,
                cases,
                ..
            } => {
                let (_, number) = read_selector(self.arena, *discriminator, r)?;
                let mut member = match std::mem::replace(value, Value::Nothing) {
                    Value::Union(_, Some(member)) => member,
                    _ => Box::new(Value::Nothing),
                };
                *value = match select(cases, *default, number) {
                    Some(case) => {
                        self.read(cases[case].node, &mut member, r)?;
                        Value::Union(number, Some(member))
                    }
                    None => Value::Union(number, None),
                };
                Ok(())
            }
            Node::Named {
                kind: Kind::AbstractInterface,
                ..
            } => {
                *value = if bool::parse(r)? {
                    self.reference(r)?
                } else {
                    Value::Valuetype(self.instance(index, r)?)
                };
                Ok(())
            }
            Node::Value { .. } | Node::Alias { boxed: true, .. } => {
                *value = Value::Valuetype(self.instance(index, r)?);
                Ok(())
            }
            _ => Err(r.error(DecodeFact::TypeUnsupported)),
        }
    }

    /// A value of a value type: null, an indirection, or a value here.
    fn instance(
        &mut self,
        formal: u32,
        r: &mut Reader<'_>,
    ) -> Result<Option<Box<Instance>>, DecodeError> {
        r.align(4);
        let start = r.position();
        match r.read_u32()? {
            NULL_TAG => Ok(None),
            WITHOUT_TAG => {
                let from = r.position();
                let there = from as i64 + i64::from(i32::parse(r)?);
                let there = usize::try_from(there).unwrap_or(usize::MAX);
                let size = match self.ends.get(&there) {
                    Some(Some(end)) => end - there,
                    _ => return Err(r.error(DecodeFact::ValueCyclic)),
                };
                self.take_shared(size, r)?;
                self.take_parts(1, r)?;
                let mut reader = r.at_position(there);
                let value = reader.nested(|r| self.instance(formal, r))?;
                // Read as another type of the same id, the value may go on behind its end.
                let read = reader.position().saturating_sub(there);
                self.take_shared(read.saturating_sub(size), r)?;
                Ok(value)
            }
            tag if tag & CHUNKED != 0 => {
                self.ends.insert(start, None);
                let (type_id, state) = kept_opaque(tag, r)?;
                let ids = type_id.len() + state.bases().map(str::len).sum::<usize>();
                let ids = state.bases().count() + ids / PART_ID_SIZE;
                self.take_parts(INSTANCE_PARTS + OPAQUE_PARTS + ids, r)?;
                self.ends.insert(start, Some(r.position()));
                let state = vec![Value::Opaque(Box::new(state))];
                Ok(Some(Box::new(Instance { type_id, state })))
            }
            _ => {
                let id = id_text(r)?;
                self.take_parts(INSTANCE_PARTS + id.len() / PART_ID_SIZE, r)?;
                let id = decode_text(r, id)?.into_owned();
                let actual = self.arena.find_actual(formal, &id);
                let actual = actual.ok_or_else(|| r.error(DecodeFact::TypeUnsupported))?;
                self.ends.insert(start, None);
                let mut state = Vec::new();
                for part in self.arena.parts(actual) {
                    let mut value = Value::Nothing;
                    self.read(part, &mut value, r)?;
                    state.push(value);
                }
                self.ends.insert(start, Some(r.position()));
                Ok(Some(Box::new(Instance { type_id: id, state })))
            }
        }
    }

    fn elements(
        &mut self,
        element: u32,
        count: usize,
        value: &mut Value,
        r: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        if is_octets(self.arena, element) {
            let octets = r.read_octets(count)?;
            match value {
                Value::Octets(old) => {
                    old.clear();
                    more_room(old, octets.len(), r)?;
                    old.extend_from_slice(octets);
                }
                other => *other = Value::Octets(copied(octets, r)?),
            }
            return Ok(());
        }
        if self.arena.size_min(element).saturating_mul(count) > r.remaining() {
            return Err(r.error(DecodeFact::LengthExceedsMessage));
        }
        if count > self.parts_left {
            return Err(r.error(DecodeFact::ValueTooLarge));
        }
        let parts = parts_of(value, false);
        more_room(parts, count.saturating_sub(parts.len()), r)?;
        parts.resize(count, Value::Nothing);
        parts
            .iter_mut()
            .try_for_each(|part| self.read(element, part, r))
    }

    fn simple(&mut self, kind: Kind, r: &mut Reader<'_>) -> Result<Value, DecodeError> {
        Ok(match kind {
            Kind::Null | Kind::Void => Value::Nothing,
            Kind::Boolean => Value::Boolean(bool::parse(r)?),
            Kind::Char => Value::Char(Char::parse(r)?),
            Kind::WChar => Value::WChar(char::parse(r)?),
            Kind::Octet => Value::Octet(u8::parse(r)?),
            Kind::Short => Value::Short(i16::parse(r)?),
            Kind::UShort => Value::UShort(u16::parse(r)?),
            Kind::Long => Value::Long(i32::parse(r)?),
            Kind::ULong => Value::ULong(u32::parse(r)?),
            Kind::LongLong => Value::LongLong(i64::parse(r)?),
            Kind::ULongLong => Value::ULongLong(u64::parse(r)?),
            Kind::Float => Value::Float(f32::parse(r)?),
            Kind::Double => Value::Double(f64::parse(r)?),
            Kind::LongDouble => Value::LongDouble(LongDouble::parse(r)?),
            Kind::Any => {
                let any = r.nested(Any::parse)?;
                self.take_parts(ANY_PARTS + type_parts(any.type_code()), r)?;
                Value::Any(any)
            }
            Kind::TypeCode => {
                let type_code = TypeCode::parse(r)?;
                self.take_parts(type_parts(&type_code), r)?;
                Value::TypeCode(type_code)
            }
            Kind::Principal => {
                let octets = r.read_octet_sequence()?;
                Value::Octets(copied(octets, r)?)
            }
            _ => return Err(r.error(DecodeFact::TypeUnsupported)),
        })
    }

    fn reference(&mut self, r: &mut Reader<'_>) -> Result<Value, DecodeError> {
        let type_id = String::parse(r)?;
        let count = r.read_count(8)?;
        self.take_parts(count, r)?;
        let one = |_| {
            let (tag, data) = (r.read_u32()?, r.read_octet_sequence()?);
            Ok((tag, copied(data, r)?))
        };
        Ok(Value::Reference(Reference {
            type_id,
            profiles: (0..count).map(one).collect::<Result<_, _>>()?,
        }))
    }
}

/// Parts that a TypeCode counts as: none where the program has it anyway.
fn type_parts(type_code: &TypeCode) -> usize {
    match type_code.held() {
        0 => 0,
        held => TYPE_CODE_PARTS + held / size_of::<Value>(),
    }
}

/// Returns the parts of a struct, or the elements, in `value`; replaces a value of another shape.
fn parts_of(value: &mut Value, is_struct: bool) -> &mut Vec<Value> {
    let fits = matches!(
        (&*value, is_struct),
        (Value::Struct(_), true) | (Value::Elements(_), false)
    );
    if !fits {
        *value = if is_struct {
            Value::Struct(Vec::new())
        } else {
            Value::Elements(Vec::new())
        };
    }
    match value {
        Value::Struct(parts) | Value::Elements(parts) => parts,
        _ => unreachable!("one of the two was just put there"),
    }
}

fn read_string(bound: u32, value: &mut Value, r: &mut Reader<'_>) -> Result<(), DecodeError> {
    let octets = r.read_string_octets()?;
    let text = decode_text(r, octets)?;
    check_bound(text.len(), bound, r)?;
    match value {
        Value::String(old) => {
            old.clear();
            let made = old.try_reserve(text.len());
            made.map_err(|_| r.error(DecodeFact::MemoryExhausted))?;
            old.push_str(&text);
        }
        other => *other = Value::String(owned(text, r)?),
    }
    Ok(())
}
