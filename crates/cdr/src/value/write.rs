//! Trees to octets.

use super::{Value, is_octets};
use crate::fixed::write_packed;
use crate::typecode::{Arena, Kind, Node, select, write::write_discriminator};
use crate::walk::ids::{Id, WrittenIds};
use crate::walk::tags::{FIRST_TAG, NULL_TAG, ONE_ID};
use crate::walk::values::has_state;
use crate::walk::{copy_value, is_enumerator};
use crate::{Any, EncodeError, TypeCode, Write, Writer};

/// Writes a value of this type.
///
/// # Errors
/// [`EncodeError::TypeMismatch`] where the value is not of the type, and those of the values.
pub fn write_value(
    type_code: &TypeCode,
    value: &Value,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    if type_code.arena().holds_values() {
        let kept = Any::from_dynamic(type_code, value)?;
        return copy_value(type_code, &mut kept.reader(), w);
    }
    write_kept(type_code, value, w)
}

/// As [`write_value`], in the form in which an [`Any`] keeps its octets.
pub(crate) fn write_kept(
    type_code: &TypeCode,
    value: &Value,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    write(type_code.arena(), type_code.root(), value, w)
}

fn write(arena: &Arena, index: u32, value: &Value, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match arena.node(index) {
        Node::Simple(kind) => write_simple(*kind, value, w),
        Node::Alias {
            boxed: false,
            content,
            ..
        } => write(arena, *content, value, w),
        Node::String { .. } | Node::WString { .. } | Node::Fixed { .. } | Node::Enum { .. } => {
            write_leaf(arena.node(index), value, w)
        }
        Node::Sequence { element, bound } => write_sequence(arena, *element, *bound, value, w),
        Node::Array { element, len } => write_array(arena, *element, *len, value, w),
        Node::Struct { .. } | Node::Union { .. } => write_parts(arena, index, value, w),
        Node::Named {
            kind: Kind::Objref | Kind::Component | Kind::Home,
            ..
        } => write_reference(value, w),
        Node::Value { .. } | Node::Alias { boxed: true, .. } => {
            write_instance(arena, index, value, w)
        }
        Node::Named {
            kind: Kind::AbstractInterface,
            ..
        } => match value {
            Value::Reference(_) => {
                true.write(w)?;
                write_reference(value, w)
            }
            _ => {
                false.write(w)?;
                write_instance(arena, index, value, w)
            }
        },
        Node::Named { .. } | Node::Recursive { .. } => Err(EncodeError::TypeUnsupported),
    }
}

fn write_leaf(node: &Node, value: &Value, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match (node, value) {
        (Node::String { bound }, Value::String(text)) => {
            check(text.len(), *bound)?;
            text.write(w)
        }
        (Node::WString { bound }, Value::WString(text)) => {
            check(text.units().len(), *bound)?;
            text.write(w)
        }
        (Node::Fixed { digits, .. }, Value::Fixed(units)) => {
            if units.unsigned_abs() >= 10_u128.saturating_pow(u32::from(*digits)) {
                return Err(EncodeError::BoundExceeded);
            }
            write_packed(*units, *digits, w)
        }
        (Node::Enum { enumerators, .. }, Value::Enum(number)) => {
            if *number as usize >= enumerators.len() {
                return Err(EncodeError::EnumeratorUnknown);
            }
            w.write_u32(*number)
        }
        _ => Err(EncodeError::TypeMismatch),
    }
}

fn write_sequence(
    arena: &Arena,
    element: u32,
    bound: u32,
    value: &Value,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match value {
        Value::Octets(octets) if is_octets(arena, element) => {
            check(octets.len(), bound)?;
            w.write_octet_sequence(octets)
        }
        Value::Elements(elements) => {
            check(elements.len(), bound)?;
            w.write_count(elements.len())?;
            write_elements(arena, element, elements, w)
        }
        _ => Err(EncodeError::TypeMismatch),
    }
}

/// Opens room for the fewest octets that they take.
fn write_elements(
    arena: &Arena,
    element: u32,
    elements: &[Value],
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let size_min = arena.size_min(element).saturating_mul(elements.len());
    w.windowed(size_min, |w| {
        elements
            .iter()
            .try_for_each(|value| write(arena, element, value, w))
    })
}

fn write_array(
    arena: &Arena,
    element: u32,
    len: u32,
    value: &Value,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match value {
        Value::Octets(octets) if is_octets(arena, element) && octets.len() == len as usize => {
            w.write_octets(octets)
        }
        Value::Elements(elements) if elements.len() == len as usize => {
            write_elements(arena, element, elements, w)
        }
        _ => Err(EncodeError::TypeMismatch),
    }
}

fn write_parts(
    arena: &Arena,
    index: u32,
    value: &Value,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match (arena.node(index), value) {
        (
            Node::Struct {
                exception,
                id,
                members,
                ..
            },
            Value::Struct(values),
        ) if members.len() == values.len() => {
            if *exception {
                (**id).write(w)?;
            }
            members
                .iter()
                .zip(values)
                .try_for_each(|(member, value)| write(arena, member.node, value, w))
        }
        (
            Node::Union {
                discriminator,
                default,
                cases,
                ..
            },
            Value::Union(number, value),
        ) => {
            let node = arena.node(arena.unaliased(*discriminator));
            if !is_enumerator(node, *number) {
                return Err(EncodeError::EnumeratorUnknown);
            }
            write_discriminator(node.kind(), *number, w)?;
            match (select(cases, *default, *number), value) {
                (Some(case), Some(value)) => write(arena, cases[case].node, value, w),
                (None, None) => Ok(()),
                _ => Err(EncodeError::TypeMismatch),
            }
        }
        _ => Err(EncodeError::TypeMismatch),
    }
}

/// Writes a value where `formal` is declared.
fn write_instance(
    arena: &Arena,
    formal: u32,
    value: &Value,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let Value::Valuetype(value) = value else {
        return Err(EncodeError::TypeMismatch);
    };
    let Some(instance) = value else {
        return w.write_u32(NULL_TAG);
    };
    let actual = arena.find_actual(formal, &instance.type_id);
    if let [Value::Opaque(state)] = &*instance.state {
        if has_state(arena.node(actual.unwrap_or(formal))) {
            return Err(EncodeError::TypeMismatch);
        }
        let ids = std::iter::once(&*instance.type_id).chain(state.bases());
        let ids = || ids.map(Id::Text).collect();
        state.write((None, ids), 1, &mut WrittenIds::default(), w)?;
        return w.write_u32(1_u32.wrapping_neg());
    }
    let node = actual.ok_or(EncodeError::TypeMismatch)?;
    if !has_state(arena.node(node)) {
        return Err(EncodeError::TypeUnsupported);
    }
    w.write_u32(FIRST_TAG | ONE_ID)?;
    instance.type_id.write(w)?;
    let parts = arena.parts(node);
    if parts.len() != instance.state.len() {
        return Err(EncodeError::TypeMismatch);
    }
    let mut parts = parts.iter().zip(&instance.state);
    parts.try_for_each(|(node, value)| write(arena, *node, value, w))
}

fn write_reference(value: &Value, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let Value::Reference(reference) = value else {
        return Err(EncodeError::TypeMismatch);
    };
    reference.type_id.write(w)?;
    w.write_count(reference.profiles.len())?;
    reference.profiles.iter().try_for_each(|(tag, data)| {
        w.write_u32(*tag)?;
        w.write_octet_sequence(data)
    })
}

fn write_simple(kind: Kind, value: &Value, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match (kind, value) {
        (Kind::Null | Kind::Void, Value::Nothing) => Ok(()),
        (Kind::Boolean, Value::Boolean(value)) => value.write(w),
        (Kind::Char, Value::Char(value)) => value.write(w),
        (Kind::WChar, Value::WChar(value)) => value.write(w),
        (Kind::Octet, Value::Octet(value)) => value.write(w),
        (Kind::Short, Value::Short(value)) => value.write(w),
        (Kind::UShort, Value::UShort(value)) => value.write(w),
        (Kind::Long, Value::Long(value)) => value.write(w),
        (Kind::ULong, Value::ULong(value)) => value.write(w),
        (Kind::LongLong, Value::LongLong(value)) => value.write(w),
        (Kind::ULongLong, Value::ULongLong(value)) => value.write(w),
        (Kind::Float, Value::Float(value)) => value.write(w),
        (Kind::Double, Value::Double(value)) => value.write(w),
        (Kind::LongDouble, Value::LongDouble(value)) => value.write(w),
        (Kind::Any, Value::Any(value)) => value.write(w),
        (Kind::TypeCode, Value::TypeCode(value)) => value.write(w),
        (Kind::Principal, Value::Octets(value)) => w.write_octet_sequence(value),
        _ => Err(EncodeError::TypeMismatch),
    }
}

/// Fails where the length is above the bound; bound 0 is none.
fn check(len: usize, bound: u32) -> Result<(), EncodeError> {
    if bound != 0 && len > bound as usize {
        Err(EncodeError::BoundExceeded)
    } else {
        Ok(())
    }
}
