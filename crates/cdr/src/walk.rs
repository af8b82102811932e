//! Walking a value by its TypeCode, without building it: to find where it ends, or to write it in another form.
//!
//! A walk takes at most as many steps as the value has octets, times the depth (see `typecode::measure`); a union looks for its case
//! among at most `UNION_CASES_MAX`.

use crate::fixed::{packed_size, parse_packed};
use crate::text::decode_text;
use crate::typecode::parse::read_discriminator;
use crate::typecode::{Arena, Kind, Node, write::write_discriminator};
use crate::{
    DecodeError, DecodeFact, EncodeError, Parse, Reader, TypeCode, WString, Write, Writer,
};

/// Passes over a value.
///
/// # Errors
/// What is wrong with its octets: everything that reading it would find.
pub fn skip_value(type_code: &TypeCode, r: &mut Reader<'_>) -> Result<(), DecodeError> {
    match walk(type_code.arena(), type_code.root(), r, &mut Nowhere) {
        Ok(()) => Ok(()),
        Err(Fault::Decode(error)) => Err(error),
        Err(Fault::Encode(_)) => unreachable!("passing over a value writes nothing"),
    }
}

/// Reads a value and writes it again, in the writer's byte order, code sets and alignment.
///
/// # Errors
/// Those of the writer; [`EncodeError::TypeMismatch`] where the octets are no such value.
pub fn copy_value(
    type_code: &TypeCode,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match walk(type_code.arena(), type_code.root(), r, w) {
        Ok(()) => Ok(()),
        Err(Fault::Decode(_)) => Err(EncodeError::TypeMismatch),
        Err(Fault::Encode(error)) => Err(error),
    }
}

/// What ended a walk.
pub(crate) enum Fault {
    Decode(DecodeError),
    Encode(EncodeError),
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<EncodeError> for Fault {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

/// Where a walk's parts go.
trait Sink {
    /// `octets` are values of `size` octets each, aligned to at most 8, in the byte order of `r`.
    fn numbers(&mut self, size: usize, octets: &[u8], r: &Reader<'_>) -> Result<(), EncodeError>;
    /// A value that is written as it is.
    fn put(&mut self, value: &(impl Write + ?Sized)) -> Result<(), EncodeError>;
    /// A union's discriminator.
    fn discriminator(&mut self, kind: Kind, number: i64) -> Result<(), EncodeError>;
}

struct Nowhere;

impl Sink for Nowhere {
    fn numbers(&mut self, _: usize, _: &[u8], _: &Reader<'_>) -> Result<(), EncodeError> {
        Ok(())
    }
    fn put(&mut self, _: &(impl Write + ?Sized)) -> Result<(), EncodeError> {
        Ok(())
    }
    fn discriminator(&mut self, _: Kind, _: i64) -> Result<(), EncodeError> {
        Ok(())
    }
}

impl Sink for Writer<'_> {
    fn numbers(&mut self, size: usize, octets: &[u8], r: &Reader<'_>) -> Result<(), EncodeError> {
        if octets.is_empty() {
            return Ok(());
        }
        self.align(size.min(8))?;
        let is_swapped = size != 1 && self.order() != r.order();
        if !is_swapped && (size == 1 || self.stands_together(octets.len())) {
            return self.write_octets(octets);
        }
        octets.chunks_exact(size).try_for_each(|number| {
            let mut kept = [0; 16];
            let kept = &mut kept[..size];
            kept.copy_from_slice(number);
            if is_swapped {
                kept.reverse();
            }
            self.align(size.min(8))?;
            self.write_octets(kept)
        })
    }
    fn put(&mut self, value: &(impl Write + ?Sized)) -> Result<(), EncodeError> {
        value.write(self)
    }
    fn discriminator(&mut self, kind: Kind, number: i64) -> Result<(), EncodeError> {
        write_discriminator(kind, number, self)
    }
}

/// Octets of a number of this kind; `None` where the kind is none.
pub(crate) const fn number_size(kind: Kind) -> Option<usize> {
    Some(match kind {
        Kind::Octet | Kind::Char => 1,
        Kind::Short | Kind::UShort => 2,
        Kind::Long | Kind::ULong | Kind::Float => 4,
        Kind::LongLong | Kind::ULongLong | Kind::Double => 8,
        Kind::LongDouble => 16,
        _ => return None,
    })
}

fn walk(arena: &Arena, index: u32, r: &mut Reader<'_>, sink: &mut impl Sink) -> Result<(), Fault> {
    let node = arena.node(index);
    match node {
        Node::Simple(kind) => simple(*kind, r, sink),
        Node::String { bound } => {
            let octets = r.read_string_octets()?;
            let text = decode_text(r, octets)?;
            check_bound(text.len(), *bound, r)?;
            Ok(sink.put(&*text)?)
        }
        Node::WString { bound } => {
            let text = WString::parse(r)?;
            check_bound(text.encode_utf16().count(), *bound, r)?;
            Ok(sink.put(&text)?)
        }
        Node::Enum { enumerators, .. } => {
            let number = r.read_u32()?;
            if number as usize >= enumerators.len() {
                return Err(
                    DecodeError::new(DecodeFact::EnumeratorUnknown, r.position() - 4).into(),
                );
            }
            Ok(sink.put(&number)?)
        }
        Node::Fixed { digits, .. } => {
            let start = r.position();
            parse_packed(*digits, r)?;
            let octets = &r.bytes()[start..start + packed_size(*digits)];
            Ok(sink.numbers(1, octets, r)?)
        }
        Node::Named {
            kind: Kind::Objref | Kind::Component | Kind::Home,
            ..
        } => reference(r, sink),
        _ => deeper(r, |r| constructed(arena, node, r, sink)),
    }
}

/// Runs `read` one level deeper.
fn deeper<'a>(
    r: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut result = Ok(());
    r.nested(|r| {
        result = read(r);
        Ok(())
    })?;
    result
}

fn constructed(
    arena: &Arena,
    node: &Node,
    r: &mut Reader<'_>,
    sink: &mut impl Sink,
) -> Result<(), Fault> {
    match node {
        Node::Alias {
            boxed: false,
            content,
            ..
        } => walk(arena, *content, r, sink),
        Node::Struct {
            exception, members, ..
        } => {
            if *exception {
                let id = r.read_string_octets()?;
                sink.put(&*decode_text(r, id)?)?;
            }
            members
                .iter()
                .try_for_each(|member| walk(arena, member.node, r, sink))
        }
        Node::Sequence { element, bound } => {
            let count = r.read_count(arena.size_min(*element))?;
            check_bound(count, *bound, r)?;
            sink.put(&(count as u32))?;
            elements(arena, *element, count, r, sink)
        }
        Node::Array { element, len } => elements(arena, *element, *len as usize, r, sink),
        Node::Union {
            discriminator,
            default,
            cases,
            ..
        } => {
            let (kind, number) = read_selector(arena, *discriminator, r)?;
            sink.discriminator(kind, number)?;
            match select(cases, *default, number) {
                Some(case) => walk(arena, cases[case].node, r, sink),
                None => Ok(()),
            }
        }
        _ => Err(r.error(DecodeFact::TypeUnsupported).into()),
    }
}

/// The discriminator of a value, which must be an enumerator where it is of an enumeration.
pub(crate) fn read_selector(
    arena: &Arena,
    discriminator: u32,
    r: &mut Reader<'_>,
) -> Result<(Kind, i64), DecodeError> {
    let node = arena.node(arena.unaliased(discriminator));
    let number = read_discriminator(node.kind(), r)?;
    if is_enumerator(node, number) {
        Ok((node.kind(), number))
    } else {
        Err(DecodeError::new(
            DecodeFact::EnumeratorUnknown,
            r.position() - 4,
        ))
    }
}

/// Whether a number is one that the type has, where it is an enumeration.
pub(crate) fn is_enumerator(node: &Node, number: i64) -> bool {
    match node {
        Node::Enum { enumerators, .. } => {
            usize::try_from(number).is_ok_and(|number| number < enumerators.len())
        }
        _ => true,
    }
}

/// The case that a discriminator selects; none where an implicit default has no member.
pub(crate) fn select(
    cases: &[crate::typecode::UnionCase],
    default: Option<u32>,
    number: i64,
) -> Option<usize> {
    let default = default.map(|index| index as usize);
    let labelled = |(index, case): (usize, &crate::typecode::UnionCase)| {
        (Some(index) != default && case.label == number).then_some(index)
    };
    cases.iter().enumerate().find_map(labelled).or(default)
}

fn elements(
    arena: &Arena,
    element: u32,
    count: usize,
    r: &mut Reader<'_>,
    sink: &mut impl Sink,
) -> Result<(), Fault> {
    let element = arena.unaliased(element);
    if let Node::Simple(kind) = arena.node(element)
        && let Some(size) = number_size(*kind)
        && count > 0
    {
        if let Some(octets) = r.lend_run(size, count) {
            return Ok(sink.numbers(size, octets, r)?);
        }
        if !r.is_divided() {
            return Err(r.error(DecodeFact::LengthExceedsMessage).into());
        }
    }
    // An array of a type that takes more than there is fails at once, not after as many steps.
    if arena.size_min(element).saturating_mul(count) > r.remaining() {
        return Err(r.error(DecodeFact::LengthExceedsMessage).into());
    }
    (0..count).try_for_each(|_| walk(arena, element, r, sink))
}

fn simple(kind: Kind, r: &mut Reader<'_>, sink: &mut impl Sink) -> Result<(), Fault> {
    if let Some(size) = number_size(kind) {
        let octets = read_number(size, r)?;
        return Ok(sink.numbers(size, octets, r)?);
    }
    match kind {
        Kind::Null | Kind::Void => Ok(()),
        Kind::Boolean => Ok(sink.put(&bool::parse(r)?)?),
        Kind::WChar => Ok(sink.put(&char::parse(r)?)?),
        Kind::TypeCode => Ok(sink.put(&TypeCode::parse(r)?)?),
        Kind::Any => {
            let inner = TypeCode::parse(r)?;
            sink.put(&inner)?;
            deeper(r, |r| walk(inner.arena(), inner.root(), r, sink))
        }
        Kind::Principal => Ok(sink.put(r.read_octet_sequence()?)?),
        _ => Err(r.error(DecodeFact::TypeUnsupported).into()),
    }
}

/// The octets of a number. One of more than eight may be divided between fragments.
fn read_number<'a>(size: usize, r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    if size <= 8 && r.is_divided() {
        *r = r.beyond(size, size)?;
    }
    r.align(size.min(8));
    r.read_octets(size).map_err(|error| DecodeError {
        fact: DecodeFact::Truncated,
        ..error
    })
}

/// An object reference: a type id, and profiles of a tag and octets each.
fn reference(r: &mut Reader<'_>, sink: &mut impl Sink) -> Result<(), Fault> {
    let id = r.read_string_octets()?;
    sink.put(&*decode_text(r, id)?)?;
    let profiles = r.read_count(8)?;
    sink.put(&(profiles as u32))?;
    for _ in 0..profiles {
        sink.put(&r.read_u32()?)?;
        sink.put(r.read_octet_sequence()?)?;
    }
    Ok(())
}

/// Whether a length is within a bound, of which 0 is none.
pub(crate) fn check_bound(len: usize, bound: u32, r: &Reader<'_>) -> Result<(), DecodeError> {
    if bound != 0 && len > bound as usize {
        Err(r.error(DecodeFact::BoundExceeded))
    } else {
        Ok(())
    }
}
