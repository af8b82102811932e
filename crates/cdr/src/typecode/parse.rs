//! TypeCodes from octets (CORBA 3.3 part 2, clause 9.3.5.1).
//!
//! Hostile input has three bounds: the reader bounds nesting, `limits` the nodes and members, and `measure` refuses
//! endless types.

use super::node::{Field, UnionCase};
use super::{Arena, Kind, Node, TypeCode, measure};
use crate::limits::{
    FIXED_DIGITS_MAX, TYPE_CODE_MEMBERS_MAX, TYPE_CODE_NODES_MAX, UNION_CASES_MAX,
};
use crate::text::decode_text;
use crate::{DecodeError, DecodeFact, Parse, Reader};
use std::sync::Arc;

/// The number that announces an indirection instead of a kind.
pub(super) const INDIRECTION: u32 = u32::MAX;

impl<'a> Parse<'a> for TypeCode {
    const SIZE_MIN: usize = 4;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.align(4);
        let start = r.position();
        let simple = Kind::from_number(u32::parse(&mut r.clone())?).and_then(Self::of_kind);
        if let Some(simple) = simple {
            r.read_u32()?;
            return Ok(simple);
        }
        let mut parser = Parser {
            nodes: Vec::new(),
            seen: Vec::new(),
            members: 0,
        };
        let root = parser.node(r)?;
        let wrong = |fact| DecodeError::new(fact, start);
        let sizes = measure::sizes(&parser.nodes).map_err(wrong)?;
        measure::check_elements(&parser.nodes, &sizes).map_err(wrong)?;
        Ok(Self {
            arena: Arc::new(Arena::new(parser.nodes, sizes)),
            root,
        })
    }
}

struct Parser {
    nodes: Vec<Node>,
    /// Where each node of an encapsulated kind begins in the octets; ascending.
    seen: Vec<(usize, u32)>,
    members: usize,
}

impl Parser {
    fn node(&mut self, r: &mut Reader<'_>) -> Result<u32, DecodeError> {
        r.align(4);
        let start = r.position();
        let number = r.read_u32()?;
        if number == INDIRECTION {
            return self.indirection(r);
        }
        let kind = Kind::from_number(number)
            .ok_or_else(|| DecodeError::new(DecodeFact::TypeCodeKindUnknown, start))?;
        if self.nodes.len() >= TYPE_CODE_NODES_MAX {
            return Err(DecodeError::new(DecodeFact::TypeCodeTooLarge, start));
        }
        let index = self.nodes.len() as u32;
        self.nodes.push(Node::Simple(Kind::Null));
        self.seen.push((start, index));
        self.nodes[index as usize] = self.parameters(kind, r)?;
        Ok(index)
    }

    fn indirection(&self, r: &mut Reader<'_>) -> Result<u32, DecodeError> {
        let from = r.position();
        let offset = i32::parse(r)?;
        let target = from as i64 + i64::from(offset);
        let known = usize::try_from(target)
            .ok()
            .and_then(|target| self.seen.binary_search_by_key(&target, |seen| seen.0).ok());
        known
            .map(|known| self.seen[known].1)
            .ok_or_else(|| DecodeError::new(DecodeFact::IndirectionAstray, from))
    }

    fn parameters(&mut self, kind: Kind, r: &mut Reader<'_>) -> Result<Node, DecodeError> {
        match kind {
            Kind::String => Ok(Node::String {
                bound: r.read_u32()?,
            }),
            Kind::WString => Ok(Node::WString {
                bound: r.read_u32()?,
            }),
            Kind::Fixed => {
                let start = r.position();
                let (digits, scale) = (u16::parse(r)?, i16::parse(r)?);
                if digits == 0 || digits > FIXED_DIGITS_MAX || scale > digits as i16 {
                    return Err(DecodeError::new(DecodeFact::FixedMalformed, start));
                }
                Ok(Node::Fixed { digits, scale })
            }
            Kind::Objref
            | Kind::Struct
            | Kind::Union
            | Kind::Enum
            | Kind::Sequence
            | Kind::Array
            | Kind::Alias
            | Kind::Except
            | Kind::Value
            | Kind::ValueBox
            | Kind::Native
            | Kind::AbstractInterface
            | Kind::LocalInterface
            | Kind::Component
            | Kind::Home
            | Kind::Event => self.encapsulated(kind, &mut r.read_encapsulation()?),
            simple => Ok(Node::Simple(simple)),
        }
    }

    fn encapsulated(&mut self, kind: Kind, r: &mut Reader<'_>) -> Result<Node, DecodeError> {
        if matches!(kind, Kind::Sequence | Kind::Array) {
            let element = self.node(r)?;
            let bound = r.read_u32()?;
            return Ok(match kind {
                Kind::Array => Node::Array {
                    element,
                    len: bound,
                },
                _ => Node::Sequence { element, bound },
            });
        }
        let (id, name) = (text(r)?, text(r)?);
        match kind {
            Kind::Struct | Kind::Except => {
                let members = self.fields(r)?;
                Ok(Node::Struct {
                    exception: kind == Kind::Except,
                    id,
                    name,
                    members,
                })
            }
            Kind::Union => self.union(id, name, r),
            Kind::Enum => {
                let count = self.count(r, 5)?;
                let enumerators = (0..count).map(|_| text(r)).collect::<Result<_, _>>()?;
                Ok(Node::Enum {
                    id,
                    name,
                    enumerators,
                })
            }
            Kind::Alias | Kind::ValueBox => Ok(Node::Alias {
                boxed: kind == Kind::ValueBox,
                id,
                name,
                content: self.node(r)?,
            }),
            Kind::Value | Kind::Event => self.value(kind, id, name, r),
            named => Ok(Node::Named {
                kind: named,
                id,
                name,
            }),
        }
    }

    /// Reads a count of members, and takes it from the limit on all members.
    fn count(&mut self, r: &mut Reader<'_>, size_min: usize) -> Result<usize, DecodeError> {
        let count = r.read_count(size_min)?;
        self.members = self.members.saturating_add(count);
        if self.members > TYPE_CODE_MEMBERS_MAX {
            return Err(r.error(DecodeFact::TypeCodeTooLarge));
        }
        Ok(count)
    }

    fn fields(&mut self, r: &mut Reader<'_>) -> Result<Box<[Field]>, DecodeError> {
        let count = self.count(r, 9)?;
        (0..count)
            .map(|_| {
                Ok(Field {
                    name: text(r)?,
                    node: self.node(r)?,
                })
            })
            .collect()
    }

    fn union(
        &mut self,
        id: Box<str>,
        name: Box<str>,
        r: &mut Reader<'_>,
    ) -> Result<Node, DecodeError> {
        let start = r.position();
        let discriminator = self.node(r)?;
        let kind = self.resolved_kind(discriminator);
        let default = i32::parse(r)?;
        let count = self.count(r, 10)?;
        if count > UNION_CASES_MAX {
            return Err(DecodeError::new(DecodeFact::TypeCodeTooLarge, start));
        }
        let cases = (0..count)
            .map(|_| {
                let label = read_discriminator(kind, r).map_err(|error| {
                    if error.fact == DecodeFact::TypeMismatch {
                        DecodeError::new(DecodeFact::TypeCodeMisplaced, start)
                    } else {
                        error
                    }
                })?;
                Ok(UnionCase {
                    label,
                    name: text(r)?,
                    node: self.node(r)?,
                })
            })
            .collect::<Result<Box<[_]>, _>>()?;
        let default = match usize::try_from(default) {
            Err(_) => None,
            Ok(index) if index < cases.len() => Some(index as u32),
            Ok(_) => return Err(DecodeError::new(DecodeFact::DiscriminatorUnknown, start)),
        };
        if !is_discriminator(kind) {
            return Err(DecodeError::new(DecodeFact::TypeCodeMisplaced, start));
        }
        Ok(Node::Union {
            id,
            name,
            discriminator,
            default,
            cases,
        })
    }

    fn value(
        &mut self,
        kind: Kind,
        id: Box<str>,
        name: Box<str>,
        r: &mut Reader<'_>,
    ) -> Result<Node, DecodeError> {
        let modifier = i16::parse(r)?;
        let base = self.node(r)?;
        let count = self.count(r, 11)?;
        let mut members = Vec::with_capacity(count);
        let mut visibility = Vec::with_capacity(count);
        for _ in 0..count {
            members.push(Field {
                name: text(r)?,
                node: self.node(r)?,
            });
            visibility.push(i16::parse(r)?);
        }
        Ok(Node::Value {
            kind,
            id,
            name,
            modifier,
            base,
            members: members.into(),
            visibility: visibility.into(),
        })
    }

    /// The kind behind aliases. The nodes may be unfinished, so that a chain of aliases may not end.
    fn resolved_kind(&self, mut index: u32) -> Kind {
        for _ in 0..self.nodes.len() {
            match &self.nodes[index as usize] {
                Node::Alias {
                    boxed: false,
                    content,
                    ..
                } => index = *content,
                node => return node.kind(),
            }
        }
        Kind::Alias
    }
}

fn text(r: &mut Reader<'_>) -> Result<Box<str>, DecodeError> {
    let octets = r.read_string_octets()?;
    Ok(decode_text(r, octets)?.into())
}

/// Whether this kind may be the discriminator of a union.
pub(crate) const fn is_discriminator(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Short
            | Kind::UShort
            | Kind::Long
            | Kind::ULong
            | Kind::LongLong
            | Kind::ULongLong
            | Kind::Boolean
            | Kind::Char
            | Kind::WChar
            | Kind::Octet
            | Kind::Enum
    )
}

/// Reads a discriminator or label as its number; fails with `TypeMismatch` for other kinds.
pub(crate) fn read_discriminator(kind: Kind, r: &mut Reader<'_>) -> Result<i64, DecodeError> {
    Ok(match kind {
        Kind::Short => i16::parse(r)?.into(),
        Kind::UShort => u16::parse(r)?.into(),
        Kind::Long => i32::parse(r)?.into(),
        Kind::ULong | Kind::Enum => r.read_u32()?.into(),
        Kind::LongLong => i64::parse(r)?,
        Kind::ULongLong => u64::parse(r)?.cast_signed(),
        Kind::Boolean => bool::parse(r)?.into(),
        Kind::Char | Kind::Octet => r.read_u8()?.into(),
        Kind::WChar => u32::from(char::parse(r)?).into(),
        _ => return Err(r.error(DecodeFact::TypeMismatch)),
    })
}
