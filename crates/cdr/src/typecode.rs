//! TypeCodes: descriptions of IDL types that travel (CORBA 3.3 part 1, clause 8.11).
//!
//! A TypeCode is an arena of nodes and the index of its root. A clone counts a reference; a member shares the arena;
//! recursion is an index that points back, so that no cycle of references can leak.

mod build;
mod equal;
mod kind;
mod measure;
mod node;
pub(crate) mod parse;
mod value_ids;
pub(crate) mod valuetype;
pub(crate) mod write;

pub use build::{Case, Member};
pub use kind::Kind;
pub(crate) use node::{Node, select};
use value_ids::ValueIds;
pub(crate) use valuetype::VALUE_BASE_ID;
pub use valuetype::{ValueMember, ValueModifier};

use crate::Codec;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The description of an IDL type. Cheap to clone. `==` is structural equality (`equal` of the standard); see also
/// [`TypeCode::equivalent`].
#[derive(Clone)]
pub struct TypeCode {
    arena: Arc<Arena>,
    root: u32,
}

/// The nodes of a TypeCode and of its parts.
pub(crate) struct Arena {
    nodes: Vec<Node>,
    /// Fewest octets of a value of each node, without padding; saturating.
    sizes: Vec<u32>,
    /// Whether a node is of values that may be null, shared or of a derived type.
    holds_values: bool,
    /// Whether a node is `any`.
    holds_any: bool,
    /// Whether a node is of characters, or of wide ones: their octets depend on the codec.
    holds_text: bool,
    holds_wide_text: bool,
    /// The largest alignment in values of the nodes.
    alignment: usize,
    /// Octets of memory that the nodes take; 0 for those that the program has anyway.
    held: usize,
    /// Value types and boxed values by their repository ids. Made at the first search, since many values of a peer may
    /// search.
    value_ids: OnceLock<ValueIds>,
}

impl TypeCode {
    /// Which kind of type this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.node().kind()
    }

    /// The repository id, where the kind has one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.node().id()
    }

    /// The type's name, where the kind has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.node().name()
    }

    /// How many members a struct, exception, union or value has, or enumerators an enum.
    #[must_use]
    pub fn member_count(&self) -> usize {
        self.node().member_count()
    }

    /// The name of a member or enumerator.
    #[must_use]
    pub fn member_name(&self, index: usize) -> Option<&str> {
        match self.node() {
            Node::Enum { enumerators, .. } => enumerators.get(index).map(|name| &**name),
            Node::Struct { members, .. } | Node::Value { members, .. } => {
                members.get(index).map(|member| &*member.name)
            }
            Node::Union { cases, .. } => cases.get(index).map(|case| &*case.name),
            _ => None,
        }
    }

    /// The type of a struct's, exception's, union's or value's member.
    #[must_use]
    pub fn member_type(&self, index: usize) -> Option<Self> {
        match self.node() {
            Node::Struct { members, .. } | Node::Value { members, .. } => {
                members.get(index).map(|member| self.at(member.node))
            }
            Node::Union { cases, .. } => cases.get(index).map(|case| self.at(case.node)),
            _ => None,
        }
    }

    /// The label of a union's member, as the discriminator's number; `None` for the default member.
    #[must_use]
    pub fn member_label(&self, index: usize) -> Option<i64> {
        match self.node() {
            Node::Union { cases, default, .. } if *default != Some(index as u32) => {
                cases.get(index).map(|case| case.label)
            }
            _ => None,
        }
    }

    /// The type of a union's discriminator.
    #[must_use]
    pub fn discriminator_type(&self) -> Option<Self> {
        match self.node() {
            Node::Union { discriminator, .. } => Some(self.at(*discriminator)),
            _ => None,
        }
    }

    /// The index of a union's default member.
    #[must_use]
    pub fn default_index(&self) -> Option<usize> {
        match self.node() {
            Node::Union { default, .. } => default.map(|index| index as usize),
            _ => None,
        }
    }

    /// The index of the member that a discriminator of this number selects. Returns `None` where no member is selected,
    /// or this is no union.
    #[must_use]
    pub fn selected_member(&self, number: i64) -> Option<usize> {
        match self.node() {
            Node::Union { cases, default, .. } => select(cases, *default, number),
            _ => None,
        }
    }

    /// The bound of a string or sequence (0 for none), or the length of an array.
    #[must_use]
    pub fn length(&self) -> Option<u32> {
        match *self.node() {
            Node::String { bound } | Node::WString { bound } | Node::Sequence { bound, .. } => {
                Some(bound)
            }
            Node::Array { len, .. } => Some(len),
            _ => None,
        }
    }

    /// The element type of a sequence or array, the original type of an alias or boxed value.
    #[must_use]
    pub fn content_type(&self) -> Option<Self> {
        match *self.node() {
            Node::Sequence { element, .. } | Node::Array { element, .. } => Some(self.at(element)),
            Node::Alias { content, .. } => Some(self.at(content)),
            _ => None,
        }
    }

    /// Digits and scale of a `fixed`.
    #[must_use]
    pub fn fixed_digits_scale(&self) -> Option<(u16, i16)> {
        match *self.node() {
            Node::Fixed { digits, scale } => Some((digits, scale)),
            _ => None,
        }
    }

    /// This type without leading aliases.
    #[must_use]
    pub fn unaliased(&self) -> Self {
        self.at(self.arena.unaliased(self.root))
    }

    /// Fewest octets a value takes, without padding.
    #[must_use]
    pub fn size_min(&self) -> usize {
        self.arena.size_min(self.root)
    }

    /// Octets of memory of this type's arena: those of all types that it consists of or is a part of.
    pub(crate) fn held(&self) -> usize {
        self.arena.held
    }

    /// Whether its values may contain values of value types, also within an `any`.
    pub(crate) fn may_hold_values(&self) -> bool {
        match self.node() {
            node @ Node::Simple(_) => node.is_any(),
            _ => self.arena.may_hold_values(),
        }
    }

    pub(crate) fn node(&self) -> &Node {
        self.arena.node(self.root)
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    pub(crate) const fn root(&self) -> u32 {
        self.root
    }

    pub(crate) fn at(&self, root: u32) -> Self {
        Self {
            arena: Arc::clone(&self.arena),
            root,
        }
    }
}

impl Arena {
    fn new(nodes: Vec<Node>, sizes: Vec<u32>) -> Self {
        let held = nodes.iter().map(Node::held).sum();
        Self {
            sizes,
            held,
            holds_values: nodes.iter().any(Node::is_of_values),
            holds_any: nodes.iter().any(Node::is_any),
            holds_text: nodes.iter().any(Node::is_of_text),
            holds_wide_text: nodes.iter().any(Node::is_of_wide_text),
            alignment: nodes.iter().map(Node::alignment).max().unwrap_or(1),
            nodes,
            value_ids: OnceLock::new(),
        }
    }

    /// Whether its values may contain values of value types, apart from those in an `any`.
    pub(crate) const fn holds_values(&self) -> bool {
        self.holds_values
    }

    /// Whether its values may contain values of value types, also within an `any`.
    pub(crate) const fn may_hold_values(&self) -> bool {
        self.holds_values || self.holds_any
    }

    /// Whether its values have the same octets in both codecs, at the same alignment.
    pub(crate) fn is_same_in(&self, codec: Codec, other: Codec) -> bool {
        !self.holds_values
            && (codec.chars == other.chars || !self.holds_text)
            && ((codec.version, codec.wide) == (other.version, other.wide) || !self.holds_wide_text)
    }

    /// Values at places that are equal modulo this have the same padding.
    pub(crate) const fn alignment(&self) -> usize {
        self.alignment
    }

    pub(crate) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    pub(crate) fn size_min(&self, index: u32) -> usize {
        self.sizes[index as usize] as usize
    }

    /// The node behind any aliases. A chain of aliases ends: `measure` refuses an endless one.
    pub(crate) fn unaliased(&self, mut index: u32) -> u32 {
        while let Node::Alias {
            boxed: false,
            content,
            ..
        } = self.node(index)
        {
            index = *content;
        }
        index
    }
}

impl fmt::Debug for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As in IDL: the name of a named type, else the type itself.
impl fmt::Display for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(self, DISPLAY_DEPTH_MAX, f)
    }
}

/// Depth to which unnamed types are shown: a sequence may be its own element.
const DISPLAY_DEPTH_MAX: u8 = 8;

fn display(code: &TypeCode, depth_left: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let named = code.name().filter(|name| !name.is_empty());
    if let Some(name) = named.or(code.id()) {
        // A peer writes the names.
        return write!(f, "{}", name.escape_debug());
    }
    let part = |part: u32, f: &mut fmt::Formatter<'_>| match depth_left.checked_sub(1) {
        Some(depth_left) => display(&code.at(part), depth_left, f),
        None => f.write_str("..."),
    };
    match *code.node() {
        Node::String { bound: 0 } => f.write_str("string"),
        Node::String { bound } => write!(f, "string<{bound}>"),
        Node::WString { bound: 0 } => f.write_str("wstring"),
        Node::WString { bound } => write!(f, "wstring<{bound}>"),
        Node::Fixed { digits, scale } => write!(f, "fixed<{digits},{scale}>"),
        Node::Sequence { element, bound } => {
            f.write_str("sequence<")?;
            part(element, f)?;
            if bound == 0 {
                f.write_str(">")
            } else {
                write!(f, ",{bound}>")
            }
        }
        Node::Array { element, len } => {
            part(element, f)?;
            write!(f, "[{len}]")
        }
        ref node => f.write_str(node.kind().idl_name()),
    }
}
