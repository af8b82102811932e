//! The fewest octets of a value of each node. The length field of a sequence is checked against them, and types that
//! never end or take no octets are found.
//!
//! Every member and element takes at least one octet, so that a walk over a value takes at most as many steps as the
//! value has octets, times the depth.

use super::{Kind, Node};
use crate::DecodeFact;
use crate::fixed::packed_size;
use crate::limits::{TYPE_CODE_PATH_MAX, VALUE_BASES_MAX};

/// What is known of a node so far.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done(u32),
}

/// The size of a node without parts, else 0.
pub(super) fn leaf_size(node: &Node) -> u32 {
    match node {
        Node::Simple(kind) => match kind {
            Kind::Boolean | Kind::Char | Kind::Octet => 1,
            Kind::Short | Kind::UShort | Kind::WChar => 2,
            Kind::Double | Kind::LongLong | Kind::ULongLong => 8,
            Kind::LongDouble => 16,
            Kind::Null | Kind::Void => 0,
            _ => 4,
        },
        Node::String { .. } => 5,
        Node::WString { .. } | Node::Enum { .. } => 4,
        Node::Fixed { digits, .. } => packed_size(*digits) as u32,
        // A boolean, and at least the tag of null.
        Node::Named {
            kind: Kind::AbstractInterface,
            ..
        } => 5,
        // An object reference: a type id and a count of profiles.
        Node::Named { .. } => 9,
        _ => 0,
    }
}

/// Returns sizes of nodes that were parsed, or what is wrong with the nodes.
pub(super) fn sizes(nodes: &[Node]) -> Result<Vec<u32>, DecodeFact> {
    let mut marks = vec![Mark::New; nodes.len()];
    for index in 0..nodes.len() as u32 {
        visit(nodes, &mut marks, index, 0)?;
    }
    Ok(marks
        .iter()
        .map(|mark| {
            if let Mark::Done(size) = mark {
                *size
            } else {
                0
            }
        })
        .collect())
}

/// Returns sizes of nodes that were built here. Where the type is wrong (a mistake of the program) every size is the
/// largest, so that no value of it parses.
pub(super) fn built_sizes(nodes: &[Node]) -> Vec<u32> {
    sizes(nodes).unwrap_or_else(|_| vec![u32::MAX; nodes.len()])
}

fn visit(nodes: &[Node], marks: &mut [Mark], index: u32, depth: usize) -> Result<u32, DecodeFact> {
    match marks[index as usize] {
        Mark::Done(size) => return Ok(size),
        Mark::Open => return Err(DecodeFact::TypeCodeEndless),
        Mark::New => {}
    }
    if depth > TYPE_CODE_PATH_MAX {
        return Err(DecodeFact::NestingTooDeep);
    }
    marks[index as usize] = Mark::Open;
    let mut part = |part: u32| match visit(nodes, marks, part, depth + 1)? {
        0 => Err(DecodeFact::TypeCodeMisplaced),
        size => Ok(size),
    };
    let size = match &nodes[index as usize] {
        // A sequence may contain the type that it is in; its elements are measured on their own.
        Node::Sequence { .. } | Node::Recursive { .. } => 4,
        Node::Value { base, .. } => {
            require_base(nodes, *base)?;
            // The base adds nothing to the size, but a chain of bases has to end.
            visit(nodes, marks, *base, depth + 1)?;
            4
        }
        Node::Alias { boxed: true, .. } => 4,
        Node::Array { len: 0, .. } => return Err(DecodeFact::TypeCodeMisplaced),
        Node::Array { element, len } => part(*element)?.saturating_mul(*len),
        Node::Alias { content, .. } => part(*content)?,
        Node::Struct {
            members, exception, ..
        } => {
            let mut total = 0_u32;
            for member in members {
                total = total.saturating_add(part(member.node)?);
            }
            // The value of an exception begins with its repository id.
            if *exception {
                total.saturating_add(5)
            } else {
                total
            }
        }
        Node::Union {
            discriminator,
            cases,
            ..
        } => {
            for case in cases {
                part(case.node)?;
            }
            part(*discriminator)?
        }
        leaf => leaf_size(leaf),
    };
    marks[index as usize] = Mark::Done(size);
    Ok(size)
}

/// The base of a value type must be a value type, or nothing.
fn require_base(nodes: &[Node], base: u32) -> Result<(), DecodeFact> {
    match &nodes[base as usize] {
        Node::Value { .. } | Node::Simple(Kind::Null) | Node::Recursive { .. } => Ok(()),
        _ => Err(DecodeFact::TypeCodeMisplaced),
    }
}

/// Refuses sequences and values whose parts take no octets, which `sizes` cannot see while it measures.
pub(super) fn check_elements(nodes: &[Node], sizes: &[u32]) -> Result<(), DecodeFact> {
    let is_empty = |part: u32| sizes[part as usize] == 0;
    let empty = nodes.iter().any(|node| match node {
        Node::Sequence { element, .. } => is_empty(*element),
        Node::Alias {
            boxed: true,
            content,
            ..
        } => is_empty(*content),
        Node::Value { members, .. } => members.iter().any(|member| is_empty(member.node)),
        _ => false,
    });
    if empty {
        return Err(DecodeFact::TypeCodeMisplaced);
    }
    let base = |node: &&Node| match node {
        Node::Value { base, .. } => Some(&nodes[*base as usize]),
        _ => None,
    };
    let bases = |node| std::iter::successors(Some(node), base).take(VALUE_BASES_MAX + 3);
    // The type itself, its bases, and the `null` of the last one.
    if nodes
        .iter()
        .any(|node| bases(node).count() > VALUE_BASES_MAX + 2)
    {
        return Err(DecodeFact::NestingTooDeep);
    }
    Ok(())
}
