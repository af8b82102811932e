//! TypeCodes of value types, boxed values and their related kinds (CORBA 3.3 part 1, clause 8.11.3).

use super::build::Builder;
use super::node::Field;
use super::value_ids::{ValueIds, is_value};
use super::{Arena, Kind, Node, TypeCode};

/// The modifier of a value type. The number is the one on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i16)]
pub enum ValueModifier {
    /// Neither of the others (VM_NONE).
    None = 0,
    /// Its state is written by the application's own code (VM_CUSTOM).
    Custom = 1,
    /// It has no state and no values of its own (VM_ABSTRACT).
    Abstract = 2,
    /// Its values may be read as values of its base (VM_TRUNCATABLE).
    Truncatable = 3,
}

impl ValueModifier {
    /// Returns the modifier of a number on the wire.
    #[must_use]
    pub const fn from_number(number: i16) -> Option<Self> {
        Some(match number {
            0 => Self::None,
            1 => Self::Custom,
            2 => Self::Abstract,
            3 => Self::Truncatable,
            _ => return None,
        })
    }
}

/// A member of a value type, to build one of.
#[derive(Clone, Copy, Debug)]
pub struct ValueMember<'m> {
    /// The member's name.
    pub name: &'m str,
    /// The member's type.
    pub type_code: &'m TypeCode,
    /// Whether it is `public`.
    pub is_public: bool,
}

impl TypeCode {
    /// A value type (create_value_tc): its concrete base, if any, and its own members. Members that are
    /// [`TypeCode::recursive`] with the same id become this type.
    #[must_use]
    pub fn value(
        id: &str,
        name: &str,
        modifier: ValueModifier,
        base: Option<&Self>,
        members: &[ValueMember<'_>],
    ) -> Self {
        let mut builder = Builder::default();
        let base = builder.take(base.unwrap_or(&Self::null()));
        let fields = members.iter().map(|member| Field {
            name: member.name.into(),
            node: builder.take(member.type_code),
        });
        let members_of = fields.collect();
        let visibility = members.iter().map(|member| i16::from(member.is_public));
        builder.finish(Node::Value {
            kind: Kind::Value,
            id: id.into(),
            name: name.into(),
            modifier: modifier as i16,
            base,
            members: members_of,
            visibility: visibility.collect(),
        })
    }

    /// The base of all value types.
    #[must_use]
    pub fn value_base() -> Self {
        Self::value(VALUE_BASE_ID, "ValueBase", ValueModifier::None, None, &[])
    }

    /// A boxed value (create_value_box_tc).
    #[must_use]
    pub fn value_box(id: &str, name: &str, boxed: &Self) -> Self {
        let mut builder = Builder::default();
        let content = builder.take(boxed);
        builder.finish(Node::Alias {
            boxed: true,
            id: id.into(),
            name: name.into(),
            content,
        })
    }

    /// An abstract interface (create_abstract_interface_tc).
    #[must_use]
    pub fn abstract_interface(id: &str, name: &str) -> Self {
        Self::named(Kind::AbstractInterface, id, name)
    }

    /// A local interface (create_local_interface_tc). Its values do not travel.
    #[must_use]
    pub fn local_interface(id: &str, name: &str) -> Self {
        Self::named(Kind::LocalInterface, id, name)
    }

    /// A native type (create_native_tc). Its values do not travel.
    #[must_use]
    pub fn native(id: &str, name: &str) -> Self {
        Self::named(Kind::Native, id, name)
    }

    fn named(kind: Kind, id: &str, name: &str) -> Self {
        Builder::default().finish(Node::Named {
            kind,
            id: id.into(),
            name: name.into(),
        })
    }

    /// The modifier of a value type (type_modifier). Returns `None` for other types, and for unknown numbers.
    #[must_use]
    pub fn type_modifier(&self) -> Option<ValueModifier> {
        match self.node() {
            Node::Value { modifier, .. } => ValueModifier::from_number(*modifier),
            _ => None,
        }
    }

    /// The base with state of a value type (concrete_base_type), if it has one.
    #[must_use]
    pub fn concrete_base_type(&self) -> Option<Self> {
        match self.node() {
            Node::Value { .. } => self.arena().base(self.root()).map(|base| self.at(base)),
            _ => None,
        }
    }

    /// Whether a member of a value type is `public` (member_visibility).
    #[must_use]
    pub fn member_is_public(&self, index: usize) -> Option<bool> {
        match self.node() {
            Node::Value { visibility, .. } => visibility.get(index).map(|number| *number != 0),
            _ => None,
        }
    }

    /// Names and types of the whole state of a value type: the members of its bases first. For a boxed value its one
    /// value, without a name. Empty for other types.
    #[must_use]
    pub fn state(&self) -> Vec<(&str, Self)> {
        let names = self.arena().chain(self.root()).into_iter().rev();
        let names = names.flat_map(|index| match self.arena().node(index) {
            Node::Value { members, .. } => members.iter(),
            _ => [].iter(),
        });
        let names = names.map(|member| &*member.name).chain([""]);
        let parts = self.arena().parts(self.root()).into_iter();
        names.zip(parts.map(|part| self.at(part))).collect()
    }

    /// Returns the value type or boxed value of this repository id: this one, or a part of its description.
    #[must_use]
    pub fn find_value(&self, id: &str) -> Option<Self> {
        let found = self.arena().find_value(self.root(), id)?;
        Some(self.at(found))
    }
}

/// Which values may stand where a type is declared.
impl Arena {
    /// The base with state of a value type.
    pub(crate) fn base(&self, index: u32) -> Option<u32> {
        match self.node(index) {
            Node::Value { base, .. } => {
                let base = self.unaliased(*base);
                matches!(self.node(base), Node::Value { .. }).then_some(base)
            }
            _ => None,
        }
    }

    /// A value type and its bases with state. The chain ends: `measure` refuses an endless one.
    fn chain(&self, index: u32) -> Vec<u32> {
        std::iter::successors(Some(index), |at| self.base(*at)).collect()
    }

    /// The types of the whole state: the members of the bases first, or the boxed value.
    pub(crate) fn parts(&self, index: u32) -> Vec<u32> {
        if let Node::Alias {
            boxed: true,
            content,
            ..
        } = self.node(index)
        {
            return vec![*content];
        }
        let chain = self.chain(index).into_iter().rev();
        let members = chain.flat_map(|index| match self.node(index) {
            Node::Value { members, .. } => members.iter(),
            _ => [].iter(),
        });
        members.map(|member| member.node).collect()
    }

    /// Whether values of `actual` may stand where `formal` is declared.
    pub(crate) fn takes(&self, formal: u32, actual: u32) -> bool {
        match self.node(formal) {
            Node::Named { .. } => matches!(self.node(actual), Node::Value { .. }),
            // A TypeCode does not say who inherits an abstract base or ValueBase.
            Node::Value { modifier, id, .. }
                if *modifier == ValueModifier::Abstract as i16 || **id == *VALUE_BASE_ID =>
            {
                true
            }
            Node::Value { id, .. } => {
                let is_it = |at| at == formal || (!id.is_empty() && self.has_id_of(formal, at));
                let mut chain = std::iter::successors(Some(actual), |at| self.base(*at));
                chain.any(is_it)
            }
            _ => actual == formal || self.has_id_of(formal, actual),
        }
    }

    /// Whether two value types or boxed values have the same id. The ids are not compared: they may be long.
    fn has_id_of(&self, one: u32, other: u32) -> bool {
        let firsts = &self.value_ids().firsts;
        firsts[one as usize] == firsts[other as usize]
    }

    /// Returns the type of this id, if its values may stand where `formal` is declared.
    pub(crate) fn find_actual(&self, formal: u32, id: &str) -> Option<u32> {
        let actual = self.find_value(formal, id)?;
        self.takes(formal, actual).then_some(actual)
    }

    /// Returns the value type or boxed value of this id: `first` where it has the id, else the first in the arena.
    pub(crate) fn find_value(&self, first: u32, id: &str) -> Option<u32> {
        let node = self.node(first);
        if node.id() == Some(id) && is_value(node) {
            return Some(first);
        }
        let ids = self.value_ids();
        if id.len() > ids.size_max {
            return None;
        }
        searched_for(id);
        ids.by_id.get(id).copied()
    }

    /// Returns what [`Arena::find_value`] finds from `first`, for the id by which it found `found` from another node.
    pub(crate) fn found_from(&self, first: u32, found: u32) -> u32 {
        if first == found {
            return first;
        }
        let firsts = &self.value_ids().firsts;
        let of_id = firsts[found as usize];
        if firsts[first as usize] == of_id {
            first
        } else {
            of_id
        }
    }

    fn value_ids(&self) -> &ValueIds {
        self.value_ids.get_or_init(|| ValueIds::of(&self.nodes))
    }
}

/// The repository id of the base of all value types.
pub(crate) const VALUE_BASE_ID: &str = "IDL:omg.org/CORBA/ValueBase:1.0";

/// Called with each id whose octets are searched for. Only tests count them.
#[cfg(not(test))]
const fn searched_for(_: &str) {}

#[cfg(test)]
use counted::searched_for;
#[cfg(test)]
pub(crate) mod counted {
    use std::cell::Cell;

    thread_local!(static SEARCHED: Cell<usize> = const { Cell::new(0) });

    pub(super) fn searched_for(id: &str) {
        SEARCHED.set(SEARCHED.get() + id.len());
    }

    /// Octets of the ids that this thread has searched for.
    pub(crate) fn octets_searched() -> usize {
        SEARCHED.get()
    }
}
