//! Bounds the types after all of them are known: how deep they nest, and of how many parts their TypeCodes consist.
//! Types that contain each other are expanded along each way that leads around their ring.

use crate::limits::{RECURSIVE_PARTS_MAX, TYPE_DEPTH_MAX, TYPE_NODES_MAX};
use crate::model::rings::{Rings, innermost};
use crate::model::{DefId, Definition, DefinitionKind, Type};
use crate::text::diagnostic::{Diagnostic, Reporter};
use crate::text::source::Span;

/// Reports the types that are too deep or too large.
pub(super) fn check(definitions: &[Definition], reporter: &mut Reporter) {
    let rings = Rings::new(definitions);
    let mut sizes = Sizes {
        definitions,
        rings: &rings,
        known: vec![Size::default(); definitions.len()],
        around: Vec::new(),
        parts_left: RECURSIVE_PARTS_MAX,
    };
    for ring in rings.all() {
        // All types of a ring are measured before one is known: each is expanded in full in those around the ring.
        let mut measured = Vec::with_capacity(ring.len());
        for &id in ring {
            let size = sizes.of_definition(id);
            if let Some(error) = sizes.refusal(id, size) {
                reporter.report(error);
            }
            if reporter.is_full() || sizes.parts_left == 0 {
                return;
            }
            measured.push((id, size));
        }
        for (id, size) in measured {
            sizes.known[id.0 as usize] = size;
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Size {
    depth: usize,
    nodes: usize,
}

struct Sizes<'d> {
    definitions: &'d [Definition],
    rings: &'d Rings,
    known: Vec<Size>,
    /// The types whose parts are being measured.
    around: Vec<DefId>,
    /// The parts of rings that can still be expanded.
    parts_left: usize,
}

impl Sizes<'_> {
    fn of_definition(&mut self, id: DefId) -> Size {
        let definitions = self.definitions;
        let kind = &definitions[id.0 as usize].kind;
        if let DefinitionKind::Enum(enumerators) = kind {
            return Size {
                depth: 0,
                nodes: 1 + enumerators.len(),
            };
        }
        self.around.push(id);
        let mut whole = Size { depth: 0, nodes: 1 };
        let mut is_type = false;
        kind.each_part(|ty| {
            is_type = true;
            let part = self.of(ty);
            whole.depth = whole.depth.max(part.depth);
            whole.nodes = whole.nodes.saturating_add(part.nodes);
        });
        self.around.pop();
        whole.depth += usize::from(is_type);
        whole
    }

    fn of(&mut self, ty: &Type) -> Size {
        let (ty, levels) = innermost(ty);
        let inner = match ty {
            Type::Named(id) => self.of_named(*id),
            _ => Size { depth: 0, nodes: 1 },
        };
        Size {
            depth: inner.depth + levels,
            nodes: inner.nodes.saturating_add(levels),
        }
    }

    fn of_named(&mut self, id: DefId) -> Size {
        let is_around = self
            .around
            .last()
            .is_some_and(|&around| self.rings.is_same(id, around));
        if !is_around {
            return self.known[id.0 as usize];
        }
        self.parts_left = self.parts_left.saturating_sub(1);
        let is_end = self.around.contains(&id) || self.parts_left == 0;
        if is_end || self.around.len() > TYPE_DEPTH_MAX {
            return Size { depth: 0, nodes: 1 };
        }
        self.of_definition(id)
    }

    fn refusal(&self, id: DefId, size: Size) -> Option<Diagnostic> {
        let text = if self.parts_left == 0 {
            format!(
                "the types around this one contain each other in more than {RECURSIVE_PARTS_MAX} ways"
            )
        } else if size.depth > TYPE_DEPTH_MAX {
            return Some(too_deep(self.definitions[id.0 as usize].whole));
        } else if size.nodes > TYPE_NODES_MAX {
            format!("this type is made of more than {TYPE_NODES_MAX} parts")
        } else {
            return None;
        };
        Some(Diagnostic::new(self.definitions[id.0 as usize].whole, text))
    }
}

/// Returns the error about a type that nests too deep.
pub(super) fn too_deep(whole: Span) -> Diagnostic {
    let text = format!("types nest deeper than {TYPE_DEPTH_MAX} in this one");
    Diagnostic::new(whole, text)
}
