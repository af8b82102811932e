//! Equality and equivalence (CORBA 3.3 part 1, clause 8.11.1).

use super::{Arena, Node, TypeCode};
use crate::limits::{TYPE_CODE_NODES_MAX, TYPE_CODE_PATH_MAX};
use std::collections::HashSet;
use std::sync::Arc;

impl TypeCode {
    /// Whether values of the two types are interchangeable. Aliases are skipped; named types with equal repository ids
    /// are the same; where an id is missing the structure decides, without names.
    #[must_use]
    pub fn equivalent(&self, other: &Self) -> bool {
        Comparison::new(self, other, true).same(self.root, other.root)
    }
}

/// Equal where structure, ids and names are.
impl PartialEq for TypeCode {
    fn eq(&self, other: &Self) -> bool {
        Comparison::new(self, other, false).same(self.root, other.root)
    }
}

impl Eq for TypeCode {}

/// One comparison. Pairs that were begun count as equal, so that it ends on recursive types. Types that contain
/// themselves differently could pair each node with each other: beyond a bound on pairs and depth they count as
/// different.
struct Comparison<'t> {
    left: &'t Arena,
    right: &'t Arena,
    loose: bool,
    assumed: HashSet<(u32, u32)>,
    depth: usize,
    shared: bool,
}

impl<'t> Comparison<'t> {
    fn new(left: &'t TypeCode, right: &'t TypeCode, loose: bool) -> Self {
        let shared = Arc::ptr_eq(&left.arena, &right.arena);
        Self {
            left: &left.arena,
            right: &right.arena,
            loose,
            assumed: HashSet::new(),
            depth: 0,
            shared,
        }
    }

    fn same(&mut self, mut left: u32, mut right: u32) -> bool {
        if self.loose {
            left = self.left.unaliased(left);
            right = self.right.unaliased(right);
        }
        if (self.shared && left == right) || self.assumed.contains(&(left, right)) {
            return true;
        }
        let (a, b) = (self.left.node(left), self.right.node(right));
        if a.kind() != b.kind() {
            return false;
        }
        if self.loose
            && let (Some(a), Some(b)) = (a.id(), b.id())
            && !a.is_empty()
            && !b.is_empty()
        {
            return a == b;
        }
        if !self.loose && (a.id() != b.id() || a.name() != b.name()) {
            return false;
        }
        if a.member_count() != b.member_count() {
            return false;
        }
        if a.is_leaf() {
            return self.same_leaf(a, b);
        }
        if self.depth > TYPE_CODE_PATH_MAX || self.assumed.len() > TYPE_CODE_NODES_MAX {
            return false;
        }
        self.assumed.insert((left, right));
        self.depth += 1;
        let same = self.same_parts(a, b);
        self.depth -= 1;
        same
    }

    fn same_leaf(&self, a: &Node, b: &Node) -> bool {
        match (a, b) {
            (Node::String { bound: a }, Node::String { bound: b })
            | (Node::WString { bound: a }, Node::WString { bound: b }) => a == b,
            (
                Node::Fixed { digits, scale },
                Node::Fixed {
                    digits: other_digits,
                    scale: other_scale,
                },
            ) => digits == other_digits && scale == other_scale,
            (Node::Enum { enumerators: a, .. }, Node::Enum { enumerators: b, .. }) => {
                self.loose || a == b
            }
            _ => true,
        }
    }

    fn same_parts(&mut self, a: &Node, b: &Node) -> bool {
        match (a, b) {
            (
                Node::Sequence { element: a, bound },
                Node::Sequence {
                    element: b,
                    bound: other,
                },
            ) => bound == other && self.same(*a, *b),
            (
                Node::Array { element: a, len },
                Node::Array {
                    element: b,
                    len: other,
                },
            ) => len == other && self.same(*a, *b),
            (Node::Alias { content: a, .. }, Node::Alias { content: b, .. }) => self.same(*a, *b),
            (Node::Struct { members: a, .. }, Node::Struct { members: b, .. }) => {
                let mut pairs = a.iter().zip(b.iter());
                pairs.all(|(a, b)| (self.loose || a.name == b.name) && self.same(a.node, b.node))
            }
            (
                Node::Union {
                    discriminator,
                    default,
                    cases,
                    ..
                },
                Node::Union {
                    discriminator: other_discriminator,
                    default: other_default,
                    cases: other_cases,
                    ..
                },
            ) => {
                let mut pairs = cases.iter().zip(other_cases.iter());
                default == other_default
                    && self.same(*discriminator, *other_discriminator)
                    && pairs.all(|(a, b)| {
                        (self.loose || a.name == b.name)
                            && a.label == b.label
                            && self.same(a.node, b.node)
                    })
            }
            (
                Node::Value {
                    modifier,
                    base,
                    members,
                    visibility,
                    ..
                },
                Node::Value {
                    modifier: other_modifier,
                    base: other_base,
                    members: others,
                    visibility: other_visibility,
                    ..
                },
            ) => {
                let mut pairs = members.iter().zip(others.iter());
                modifier == other_modifier
                    && visibility == other_visibility
                    && self.same(*base, *other_base)
                    && pairs
                        .all(|(a, b)| (self.loose || a.name == b.name) && self.same(a.node, b.node))
            }
            _ => false,
        }
    }
}

impl Node {
    /// Whether the node contains no index.
    const fn is_leaf(&self) -> bool {
        matches!(
            self,
            Self::Simple(_)
                | Self::String { .. }
                | Self::WString { .. }
                | Self::Fixed { .. }
                | Self::Named { .. }
                | Self::Enum { .. }
                | Self::Recursive { .. }
        )
    }
}
