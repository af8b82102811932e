//! The value types of a TypeCode by their repository ids.

use super::node::Node;
use std::collections::HashMap;

/// The value types and boxed values of an arena by their repository ids.
pub(super) struct ValueIds {
    /// The first node of each id.
    pub(super) by_id: HashMap<Box<str>, u32>,
    /// For each node, the first node with the same repository id; itself if it is no value type.
    pub(super) firsts: Box<[u32]>,
    /// Octets of the longest id.
    pub(super) size_max: usize,
}

impl ValueIds {
    pub(super) fn of(nodes: &[Node]) -> Self {
        let mut by_id: HashMap<Box<str>, u32> = HashMap::new();
        let mut first = |(index, node): (u32, &Node)| match node.id() {
            Some(id) if is_value(node) => match by_id.get(id) {
                Some(first) => *first,
                None => *by_id.entry(id.into()).or_insert(index),
            },
            _ => index,
        };
        let firsts = (0..).zip(nodes).map(&mut first).collect();
        let size_max = by_id.keys().map(|id| id.len()).max().unwrap_or_default();
        Self {
            by_id,
            firsts,
            size_max,
        }
    }
}

pub(super) const fn is_value(node: &Node) -> bool {
    matches!(node, Node::Value { .. } | Node::Alias { boxed: true, .. })
}
