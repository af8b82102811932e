//! Building TypeCodes, as the ORB's `create_*_tc` operations do (CORBA 3.3 part 1, clause 8.11.3).

use super::node::{Field, UnionCase};
use super::{Arena, Kind, Node, TypeCode, measure};
use std::sync::{Arc, LazyLock};

/// A member's name and type, to build a struct or exception of.
#[derive(Clone, Copy, Debug)]
pub struct Member<'m> {
    /// The member's name.
    pub name: &'m str,
    /// The member's type.
    pub type_code: &'m TypeCode,
}

/// A case to build a union of. A member with several labels is several cases.
#[derive(Clone, Copy, Debug)]
pub struct Case<'m> {
    /// The label as the discriminator's number (an enumerator's ordinal, a character's code); `None` is the default
    /// case.
    pub label: Option<i64>,
    /// The member's name.
    pub name: &'m str,
    /// The member's type.
    pub type_code: &'m TypeCode,
}

/// The kinds without parameters, each at the index of its number.
static SIMPLE: LazyLock<Arc<Arena>> = LazyLock::new(|| {
    let nodes: Vec<_> = Kind::ALL
        .iter()
        .map(|kind| match kind {
            Kind::String => Node::String { bound: 0 },
            Kind::WString => Node::WString { bound: 0 },
            Kind::Objref => Node::Named {
                kind: Kind::Objref,
                id: "IDL:omg.org/CORBA/Object:1.0".into(),
                name: "Object".into(),
            },
            kind => Node::Simple(*kind),
        })
        .collect();
    let sizes = nodes.iter().map(measure::leaf_size).collect();
    Arc::new(Arena {
        held: 0,
        ..Arena::new(nodes, sizes)
    })
});

impl TypeCode {
    fn simple(kind: Kind) -> Self {
        Self {
            arena: Arc::clone(&SIMPLE),
            root: kind as u32,
        }
    }

    /// Returns the TypeCode of a kind without parameters; `None` for other kinds.
    #[must_use]
    pub fn of_kind(kind: Kind) -> Option<Self> {
        let simple = matches!(kind as u32, 0..=13 | 23..=26);
        simple.then(|| Self::simple(kind))
    }

    /// `sequence<element, bound>`; 0 is unbounded.
    #[must_use]
    pub fn sequence(element: &Self, bound: u32) -> Self {
        let mut builder = Builder::default();
        let element = builder.take(element);
        builder.finish(Node::Sequence { element, bound })
    }

    /// `element[len]`.
    #[must_use]
    pub fn array(element: &Self, len: u32) -> Self {
        let mut builder = Builder::default();
        let element = builder.take(element);
        builder.finish(Node::Array { element, len })
    }

    /// `string<bound>`; 0 is unbounded.
    #[must_use]
    pub fn string(bound: u32) -> Self {
        Builder::default().finish(Node::String { bound })
    }

    /// `wstring<bound>`; 0 is unbounded.
    #[must_use]
    pub fn wstring(bound: u32) -> Self {
        Builder::default().finish(Node::WString { bound })
    }

    /// `fixed<digits, scale>`.
    #[must_use]
    pub fn fixed(digits: u16, scale: i16) -> Self {
        Builder::default().finish(Node::Fixed { digits, scale })
    }

    /// A struct. Members that are [`TypeCode::recursive`] with the same id become this type.
    #[must_use]
    pub fn structure(id: &str, name: &str, members: &[Member<'_>]) -> Self {
        Self::with_members(false, id, name, members)
    }

    /// A user exception.
    #[must_use]
    pub fn exception(id: &str, name: &str, members: &[Member<'_>]) -> Self {
        Self::with_members(true, id, name, members)
    }

    fn with_members(exception: bool, id: &str, name: &str, members: &[Member<'_>]) -> Self {
        let mut builder = Builder::default();
        let members = members
            .iter()
            .map(|member| Field {
                name: member.name.into(),
                node: builder.take(member.type_code),
            })
            .collect();
        builder.finish(Node::Struct {
            exception,
            id: id.into(),
            name: name.into(),
            members,
        })
    }

    /// A union. Cases that are [`TypeCode::recursive`] with the same id become this type.
    #[must_use]
    pub fn union(id: &str, name: &str, discriminator: &Self, cases: &[Case<'_>]) -> Self {
        let mut builder = Builder::default();
        let discriminator = builder.take(discriminator);
        let default = cases
            .iter()
            .position(|case| case.label.is_none())
            .map(|index| index as u32);
        let cases = cases
            .iter()
            .map(|case| UnionCase {
                label: case.label.unwrap_or(0),
                name: case.name.into(),
                node: builder.take(case.type_code),
            })
            .collect();
        builder.finish(Node::Union {
            id: id.into(),
            name: name.into(),
            discriminator,
            default,
            cases,
        })
    }

    /// An enumeration.
    #[must_use]
    pub fn enumeration(id: &str, name: &str, enumerators: &[&str]) -> Self {
        let enumerators = enumerators.iter().map(|name| Box::from(*name)).collect();
        Builder::default().finish(Node::Enum {
            id: id.into(),
            name: name.into(),
            enumerators,
        })
    }

    /// A typedef.
    #[must_use]
    pub fn alias(id: &str, name: &str, content: &Self) -> Self {
        let mut builder = Builder::default();
        let content = builder.take(content);
        builder.finish(Node::Alias {
            boxed: false,
            id: id.into(),
            name: name.into(),
            content,
        })
    }

    /// A reference to an interface.
    #[must_use]
    pub fn interface(id: &str, name: &str) -> Self {
        Builder::default().finish(Node::Named {
            kind: Kind::Objref,
            id: id.into(),
            name: name.into(),
        })
    }

    /// A placeholder for the struct or union of this repository id within its own description, behind a sequence.
    #[must_use]
    pub fn recursive(id: &str) -> Self {
        Builder::default().finish(Node::Recursive { id: id.into() })
    }
}

macro_rules! simple {
    ($($name:ident, $kind:ident, $idl:literal;)*) => {
        impl TypeCode { $(
            #[doc = concat!("The TypeCode of `", $idl, "`.")]
            #[must_use]
            pub fn $name() -> Self {
                Self::simple(Kind::$kind)
            }
        )* }
    };
}

simple! {
    null, Null, "null"; void, Void, "void"; short, Short, "short"; long, Long, "long"; ushort, UShort, "unsigned short";
    ulong, ULong, "unsigned long"; float, Float, "float"; double, Double, "double"; boolean, Boolean, "boolean";
    char, Char, "char"; octet, Octet, "octet"; any, Any, "any"; meta, TypeCode, "TypeCode";
    longlong, LongLong, "long long"; ulonglong, ULongLong, "unsigned long long"; longdouble, LongDouble, "long double";
    wchar, WChar, "wchar"; object, Objref, "Object"; unbounded_string, String, "string";
    unbounded_wstring, WString, "wstring";
}

/// Collects the arenas of parts into one.
#[derive(Default)]
pub(super) struct Builder {
    nodes: Vec<Node>,
    /// Arenas that were taken, and where their nodes begin.
    taken: Vec<(*const Arena, u32)>,
}

impl Builder {
    /// Returns the index of a part in the new arena.
    pub(super) fn take(&mut self, part: &TypeCode) -> u32 {
        if Arc::ptr_eq(&part.arena, &SIMPLE) {
            self.nodes.push(part.node().clone());
            return self.nodes.len() as u32 - 1;
        }
        let address = Arc::as_ptr(&part.arena);
        if let Some((_, base)) = self.taken.iter().find(|(known, _)| *known == address) {
            return base + part.root;
        }
        let base = self.nodes.len() as u32;
        self.taken.push((address, base));
        self.nodes
            .extend(part.arena.nodes.iter().cloned().map(|mut node| {
                node.for_each_index(|index| *index += base);
                node
            }));
        base + part.root
    }

    /// Returns the TypeCode of `root`, whose indices are this builder's. Placeholders of its id become `root`.
    pub(super) fn finish(mut self, root: Node) -> TypeCode {
        let index = self.nodes.len() as u32;
        let id = root.id().unwrap_or_default().to_owned();
        let is_placeholder = matches!(root, Node::Recursive { .. });
        self.nodes.push(root);
        if !is_placeholder && !id.is_empty() {
            let placeholders: Vec<_> = self
                .nodes
                .iter()
                .map(|node| matches!(node, Node::Recursive { id: known } if **known == *id))
                .collect();
            for node in &mut self.nodes {
                node.for_each_index(|target| {
                    if placeholders[*target as usize] {
                        *target = index;
                    }
                });
            }
        }
        let sizes = measure::built_sizes(&self.nodes);
        TypeCode {
            arena: Arc::new(Arena::new(self.nodes, sizes)),
            root: index,
        }
    }
}
