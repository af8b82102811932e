//! TypeCodes to octets (CORBA 3.3 part 2, clause 9.3.5.1).
//!
//! A part that was written before in the same TypeCode is written as an indirection: recursive types need it, and types
//! that share parts stay small.

use super::parse::INDIRECTION;
use super::{Kind, Node, TypeCode};
use crate::limits::NESTING_MAX;
use crate::{EncodeError, Write, Writer};

impl Write for TypeCode {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if let Node::Simple(kind) = self.node() {
            return w.write_u32(*kind as u32);
        }
        Emitter {
            code: self,
            written: Written::default(),
            depth_left: NESTING_MAX,
        }
        .node(self.root, w)
    }
}

struct Emitter<'t> {
    code: &'t TypeCode,
    /// Nodes that were written, and their places in the buffer.
    written: Written,
    /// Encapsulations that may still nest, as the reader will count them.
    depth_left: u8,
}

/// Nodes that were written, and their places. The first few take no memory of the heap, so that an any of a usual type
/// is written without an allocation.
#[derive(Default)]
struct Written {
    first: [(u32, usize); WRITTEN_FIRST],
    count: usize,
    more: Vec<(u32, usize)>,
}

const WRITTEN_FIRST: usize = 8;

impl Written {
    fn push(&mut self, index: u32, position: usize) {
        match self.first.get_mut(self.count) {
            Some(place) => {
                *place = (index, position);
                self.count += 1;
            }
            None => self.more.push((index, position)),
        }
    }

    fn position(&self, index: u32) -> Option<usize> {
        let all = self.first[..self.count].iter().chain(&self.more);
        let mut all = all.filter(|(written, _)| *written == index);
        all.next().map(|(_, position)| *position)
    }
}

impl Emitter<'_> {
    fn node(&mut self, index: u32, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let node = self.code.arena.node(index);
        if let Some(position) = self.written.position(index) {
            w.write_u32(INDIRECTION)?;
            let offset = position as i64 - w.position() as i64;
            return i32::try_from(offset)
                .map_err(|_| EncodeError::LengthTooLarge)?
                .write(w);
        }
        w.align(4)?;
        let position = w.position();
        w.write_u32(node.kind() as u32)?;
        match node {
            Node::Simple(_) => Ok(()),
            Node::String { bound } | Node::WString { bound } => w.write_u32(*bound),
            Node::Fixed { digits, scale } => {
                digits.write(w)?;
                scale.write(w)
            }
            Node::Recursive { .. } => Err(EncodeError::TypeUnsupported),
            complex => {
                self.written.push(index, position);
                self.depth_left = self
                    .depth_left
                    .checked_sub(1)
                    .ok_or(EncodeError::NestingTooDeep)?;
                w.write_encapsulation(|w| self.parameters(complex, w))?;
                self.depth_left += 1;
                Ok(())
            }
        }
    }

    fn parameters(&mut self, node: &Node, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if let (Some(id), Some(name)) = (node.id(), node.name()) {
            id.write(w)?;
            name.write(w)?;
        }
        match node {
            Node::Sequence {
                element,
                bound: len,
            }
            | Node::Array { element, len } => {
                self.node(*element, w)?;
                w.write_u32(*len)
            }
            Node::Alias { content, .. } => self.node(*content, w),
            Node::Enum { enumerators, .. } => {
                w.write_count(enumerators.len())?;
                enumerators.iter().try_for_each(|name| (**name).write(w))
            }
            Node::Struct { members, .. } => {
                w.write_count(members.len())?;
                for member in members {
                    (*member.name).write(w)?;
                    self.node(member.node, w)?;
                }
                Ok(())
            }
            Node::Union {
                discriminator,
                default,
                cases,
                ..
            } => {
                self.node(*discriminator, w)?;
                let kind = self
                    .code
                    .arena
                    .node(self.code.arena.unaliased(*discriminator))
                    .kind();
                default.map_or(-1, u32::cast_signed).write(w)?;
                w.write_count(cases.len())?;
                for case in cases {
                    write_discriminator(kind, case.label, w)?;
                    (*case.name).write(w)?;
                    self.node(case.node, w)?;
                }
                Ok(())
            }
            Node::Value {
                modifier,
                base,
                members,
                visibility,
                ..
            } => {
                modifier.write(w)?;
                self.node(*base, w)?;
                w.write_count(members.len())?;
                for (member, visibility) in members.iter().zip(visibility) {
                    (*member.name).write(w)?;
                    self.node(member.node, w)?;
                    visibility.write(w)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Writes a discriminator or label of this kind.
pub(crate) fn write_discriminator(
    kind: Kind,
    number: i64,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    const UNKNOWN: EncodeError = EncodeError::EnumeratorUnknown;
    match kind {
        Kind::Short => i16::try_from(number).map_err(|_| UNKNOWN)?.write(w),
        Kind::UShort => u16::try_from(number).map_err(|_| UNKNOWN)?.write(w),
        Kind::Long => i32::try_from(number).map_err(|_| UNKNOWN)?.write(w),
        Kind::ULong | Kind::Enum => u32::try_from(number).map_err(|_| UNKNOWN)?.write(w),
        Kind::LongLong => number.write(w),
        Kind::ULongLong => number.cast_unsigned().write(w),
        Kind::Boolean => u8::try_from(number)
            .ok()
            .filter(|number| *number < 2)
            .ok_or(UNKNOWN)?
            .write(w),
        Kind::Char | Kind::Octet => u8::try_from(number).map_err(|_| UNKNOWN)?.write(w),
        Kind::WChar => u32::try_from(number)
            .ok()
            .and_then(char::from_u32)
            .ok_or(UNKNOWN)?
            .write(w),
        _ => Err(EncodeError::TypeMismatch),
    }
}
