//! One node of a TypeCode's arena.

use super::Kind;

/// What a node describes; other types are indices into the same arena.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A kind without parameters.
    Simple(Kind),
    /// `string<bound>`; 0 is unbounded.
    String { bound: u32 },
    /// `wstring<bound>`; 0 is unbounded.
    WString { bound: u32 },
    /// `fixed<digits, scale>`.
    Fixed { digits: u16, scale: i16 },
    /// `sequence<element, bound>`; 0 is unbounded.
    Sequence { element: u32, bound: u32 },
    /// `element[len]`.
    Array { element: u32, len: u32 },
    /// A kind with only a repository id and a name: interfaces, native, component, home.
    Named {
        kind: Kind,
        id: Box<str>,
        name: Box<str>,
    },
    /// A struct, or an exception.
    Struct {
        exception: bool,
        id: Box<str>,
        name: Box<str>,
        members: Box<[Field]>,
    },
    /// A union. `default` is the index of the default case.
    Union {
        id: Box<str>,
        name: Box<str>,
        discriminator: u32,
        default: Option<u32>,
        cases: Box<[UnionCase]>,
    },
    /// An enumeration.
    Enum {
        id: Box<str>,
        name: Box<str>,
        enumerators: Box<[Box<str>]>,
    },
    /// A typedef, or a boxed value.
    Alias {
        boxed: bool,
        id: Box<str>,
        name: Box<str>,
        content: u32,
    },
    /// A value type or event type; `visibility` has one number for each member.
    Value {
        kind: Kind,
        id: Box<str>,
        name: Box<str>,
        modifier: i16,
        base: u32,
        members: Box<[Field]>,
        visibility: Box<[i16]>,
    },
    /// A placeholder for the type of this repository id, until that is built around it.
    Recursive { id: Box<str> },
}

/// A member of a struct, exception or value.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) node: u32,
}

/// A case of a union.
#[derive(Clone, Debug)]
pub(crate) struct UnionCase {
    pub(crate) label: i64,
    pub(crate) name: Box<str>,
    pub(crate) node: u32,
}

impl Node {
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Simple(kind) | Self::Named { kind, .. } | Self::Value { kind, .. } => *kind,
            Self::String { .. } => Kind::String,
            Self::WString { .. } => Kind::WString,
            Self::Fixed { .. } => Kind::Fixed,
            Self::Sequence { .. } => Kind::Sequence,
            Self::Array { .. } => Kind::Array,
            Self::Struct {
                exception: false, ..
            }
            | Self::Recursive { .. } => Kind::Struct,
            Self::Struct {
                exception: true, ..
            } => Kind::Except,
            Self::Union { .. } => Kind::Union,
            Self::Enum { .. } => Kind::Enum,
            Self::Alias { boxed: false, .. } => Kind::Alias,
            Self::Alias { boxed: true, .. } => Kind::ValueBox,
        }
    }

    /// Octets of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        let parts: usize = match self {
            Self::Struct { members, .. } | Self::Value { members, .. } => {
                let member = |one: &Field| size_of::<Field>() + one.name.len();
                members.iter().map(member).sum()
            }
            Self::Union { cases, .. } => {
                let case = |one: &UnionCase| size_of::<UnionCase>() + one.name.len();
                cases.iter().map(case).sum()
            }
            Self::Enum { enumerators, .. } => {
                let names: usize = enumerators.iter().map(|one| one.len()).sum();
                size_of_val(&**enumerators) + names
            }
            _ => 0,
        };
        let id = self.id().map_or(0, str::len);
        let names = id + self.name().map_or(0, str::len);
        // The index by repository ids takes some more.
        let index = if self.is_of_values() {
            2 * size_of::<(Box<str>, u32)>() + id
        } else {
            0
        };
        size_of::<Self>() + size_of::<u32>() + names + parts + index
    }

    pub(crate) fn id(&self) -> Option<&str> {
        match self {
            Self::Named { id, .. }
            | Self::Struct { id, .. }
            | Self::Union { id, .. }
            | Self::Enum { id, .. }
            | Self::Alias { id, .. }
            | Self::Value { id, .. }
            | Self::Recursive { id } => Some(id),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Named { name, .. }
            | Self::Struct { name, .. }
            | Self::Union { name, .. }
            | Self::Enum { name, .. }
            | Self::Alias { name, .. }
            | Self::Value { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether its values may be null, shared or of a derived type.
    pub(crate) const fn is_of_values(&self) -> bool {
        matches!(
            self,
            Self::Value { .. }
                | Self::Alias { boxed: true, .. }
                | Self::Named {
                    kind: Kind::AbstractInterface,
                    ..
                }
        )
    }

    pub(crate) const fn is_any(&self) -> bool {
        matches!(self, Self::Simple(Kind::Any))
    }

    /// Whether values, or their descriptions, contain characters other than wide ones.
    pub(crate) const fn is_of_text(&self) -> bool {
        matches!(
            self,
            Self::Simple(Kind::Any | Kind::TypeCode) | Self::String { .. } | Self::Named { .. }
        )
    }

    /// Whether values, or their descriptions (such as labels of a union), contain wide characters.
    pub(crate) const fn is_of_wide_text(&self) -> bool {
        matches!(
            self,
            Self::Simple(Kind::Any | Kind::TypeCode | Kind::WChar) | Self::WString { .. }
        )
    }

    /// The largest alignment in its values, apart from what other nodes describe.
    pub(crate) const fn alignment(&self) -> usize {
        match self {
            Self::Simple(kind) => match kind.number_size() {
                Some(size @ 1..8) => size,
                None if matches!(kind, Kind::Boolean) => 1,
                _ => 8,
            },
            Self::Fixed { .. } => 1,
            _ => 4,
        }
    }

    pub(crate) const fn member_count(&self) -> usize {
        match self {
            Self::Struct { members, .. } | Self::Value { members, .. } => members.len(),
            Self::Union { cases, .. } => cases.len(),
            Self::Enum { enumerators, .. } => enumerators.len(),
            _ => 0,
        }
    }

    /// Calls `visit` with every index in this node.
    pub(crate) fn for_each_index(&mut self, mut visit: impl FnMut(&mut u32)) {
        match self {
            Self::Sequence { element, .. } | Self::Array { element, .. } => visit(element),
            Self::Alias { content, .. } => visit(content),
            Self::Struct { members, .. } => members
                .iter_mut()
                .for_each(|member| visit(&mut member.node)),
            Self::Union {
                discriminator,
                cases,
                ..
            } => {
                visit(discriminator);
                cases.iter_mut().for_each(|case| visit(&mut case.node));
            }
            Self::Value { base, members, .. } => {
                visit(base);
                members
                    .iter_mut()
                    .for_each(|member| visit(&mut member.node));
            }
            _ => {}
        }
    }
}

/// The index of the case that a discriminator selects. Returns `None` where no label fits and there is no default case.
pub(crate) fn select(cases: &[UnionCase], default: Option<u32>, number: i64) -> Option<usize> {
    let default = default.map(|index| index as usize);
    let labelled = |(index, case): (usize, &UnionCase)| {
        (Some(index) != default && case.label == number).then_some(index)
    };
    cases.iter().enumerate().find_map(labelled).or(default)
}
