//! What a walk remembers within one `any`: the types of its TypeCode, and the values so far.

use super::ids::IdText;
use crate::Reader;
use crate::limits::VALUE_ID_SIZE_MAX;
use crate::text::decode_text;
use crate::typecode::Arena;
use std::collections::HashMap;

/// The place of a list of ids, and the type declared where the list is used.
type ListUse = (usize, u32);

/// The types of a TypeCode, and the values so far: an indirection stays within its `any`.
pub(super) struct Scope<'t> {
    pub(super) arena: &'t Arena,
    /// Where each value began, where it was written, and its type if that is known; ascending.
    seen: Vec<(usize, usize, Option<u32>)>,
    /// The types of ids that indirections lead to: an id that values share is searched for once.
    meanings: Option<HashMap<usize, Option<u32>>>,
    /// The types of values with long shared lists of ids.
    pub(super) lists: Option<HashMap<ListUse, Actual>>,
}

impl<'t> Scope<'t> {
    pub(super) fn new(arena: &'t Arena) -> Self {
        Self {
            arena,
            seen: Vec::new(),
            meanings: None,
            lists: None,
        }
    }

    /// Returns the type of an id, whether or not its values may stand where `formal` is declared.
    pub(super) fn find(&mut self, formal: u32, id: &IdText<'_>, r: &Reader<'_>) -> Option<u32> {
        let arena = self.arena;
        let search = || {
            let octets = (id.octets.len() < VALUE_ID_SIZE_MAX).then_some(id.octets)?;
            arena.find_value(formal, &decode_text(r, octets).ok()?)
        };
        if !id.is_elsewhere {
            return search();
        }
        let meanings = self.meanings.get_or_insert_default();
        let meaning = *meanings.entry(id.start()).or_insert_with(search);
        meaning.map(|found| arena.found_from(formal, found))
    }

    /// Remembers a value: where it began, where it was written, and its type where that is known.
    pub(super) fn note(&mut self, start: usize, written: usize, actual: Option<u32>) {
        self.seen.push((start, written, actual));
    }

    /// Where the value that began there was written, and its type.
    pub(super) fn seen_at(&self, there: usize) -> Option<(usize, Option<u32>)> {
        let index = self.seen.binary_search_by_key(&there, |seen| seen.0).ok()?;
        let (_, written, node) = self.seen[index];
        Some((written, node))
    }
}

/// The type of a value.
#[derive(Clone, Copy)]
pub(super) enum Actual {
    /// This type, and whether it is a base of the value's own type.
    Known(u32, bool),
    /// A custom or unknown type, where no state is declared.
    Opaque(Option<u32>),
}
