//! Value types that the program makes known: what register_value_factory is where a value is a tree (CORBA 3.3 part 1, clause 8.2.5.2).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::TypeCode;
use crate::limits::KNOWN_TYPES_MAX;
use crate::typecode::{Arena, Kind};

/// Found without a lock, whatever thread asks: types come and never go.
static KNOWN: [OnceLock<Box<Entry>>; 256] = [const { OnceLock::new() }; 256];
/// How many there are; held by who makes one known, so that what was counted has come.
static COUNT: Mutex<usize> = Mutex::new(0);
/// Octets of the longest id among them: what a peer sends that is longer is not searched for.
static ID_SIZE_MAX: AtomicUsize = AtomicUsize::new(0);

struct Entry {
    type_code: TypeCode,
    next: OnceLock<Box<Self>>,
}

impl Entry {
    fn id(&self) -> &str {
        self.type_code.id().unwrap_or_default()
    }
}

/// Makes a value type or boxed value known to this process by its repository id: its values are then read where the TypeCode that came with
/// them does not describe it, as in place of an abstract interface, and where it is derived from what is declared. It stays known.
///
/// Whether it is known now: it is not where it is of another kind or has no id, where a type that is not equal is known by that id, and
/// where [`KNOWN_TYPES_MAX`] are.
pub fn make_type_known(type_code: &TypeCode) -> bool {
    let type_code = type_code.unaliased();
    let is_value = matches!(type_code.kind(), Kind::Value | Kind::Event | Kind::ValueBox);
    let id = type_code.id().unwrap_or_default().to_owned();
    if !is_value || id.is_empty() {
        return false;
    }
    let mut count = COUNT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut place = place_of(&id);
    while let Some(there) = place.get() {
        if there.id() == id {
            return there.type_code == type_code;
        }
        place = &there.next;
    }
    if *count >= KNOWN_TYPES_MAX {
        return false;
    }
    *count += 1;
    ID_SIZE_MAX.fetch_max(id.len(), Ordering::Relaxed);
    let next = OnceLock::new();
    place.set(Box::new(Entry { type_code, next })).is_ok()
}

/// The value type of this repository id that was made known.
#[must_use]
pub fn known_type(id: &str) -> Option<&'static TypeCode> {
    // Who has learnt that a type is known has learnt this before.
    if id.len() > ID_SIZE_MAX.load(Ordering::Relaxed) {
        return None;
    }
    searched_for(id);
    let mut place = place_of(id);
    while let Some(there) = place.get() {
        if there.id() == id {
            return Some(&there.type_code);
        }
        place = &there.next;
    }
    None
}

/// Is told of each id whose octets are searched for; only tests count them.
#[cfg(not(test))]
pub(crate) const fn searched_for(_: &str) {}

#[cfg(test)]
pub(crate) use counted::searched_for;
#[cfg(test)]
pub(crate) mod counted {
    use std::cell::Cell;

    thread_local!(static SEARCHED: Cell<usize> = const { Cell::new(0) });

    pub(crate) fn searched_for(id: &str) {
        SEARCHED.set(SEARCHED.get() + id.len());
    }

    /// Octets of the ids that this thread has searched for.
    pub(crate) fn octets_searched() -> usize {
        SEARCHED.get()
    }
}

fn place_of(id: &str) -> &'static OnceLock<Box<Entry>> {
    let hash = id.bytes().fold(0x811c_9dc5_u32, |hash, octet| {
        (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193)
    });
    &KNOWN[(hash ^ (hash >> 16)) as usize & 255]
}

/// A value type, and the description it is part of.
#[derive(Clone, Copy)]
pub(crate) struct Described<'t> {
    pub(crate) arena: &'t Arena,
    pub(crate) node: u32,
}

impl<'t> Described<'t> {
    /// The type of this id that a value declared as `formal` may have: of the same TypeCode, else one that was made known.
    pub(crate) fn find(arena: &'t Arena, formal: u32, id: &str) -> Option<Self> {
        let actual = Self::search(arena, formal, id)?;
        let formal = Self {
            arena,
            node: formal,
        };
        formal.takes(actual).then_some(actual)
    }

    /// As [`Described::find`], whether or not values of it may stand there.
    pub(crate) fn search(arena: &'t Arena, formal: u32, id: &str) -> Option<Self> {
        if let Some(node) = arena.find_value(formal, id) {
            return Some(Self { arena, node });
        }
        let known = known_type(id)?;
        Some(Self {
            arena: known.arena(),
            node: known.root(),
        })
    }

    /// What [`Described::search`] finds from `formal` of the id by which it found this from another of the same arena.
    pub(crate) fn found_from(self, arena: &Arena, formal: u32) -> Self {
        if !std::ptr::eq(self.arena, arena) {
            return self;
        }
        let node = arena.found_from(formal, self.node);
        Self { node, ..self }
    }

    /// Whether values of `actual` may stand where this is declared.
    pub(crate) fn takes(self, actual: Self) -> bool {
        self.arena.takes(self.node, actual.arena, actual.node)
    }

    /// What tells it from others.
    pub(crate) fn key(self) -> (usize, u32) {
        (std::ptr::from_ref(self.arena).addr(), self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typecode::ValueModifier;
    use std::sync::Barrier;

    #[test]
    fn types_that_several_threads_make_known_at_once_count_once() {
        let codes: Vec<_> = (0..2000)
            .map(|number| {
                let id = format!("IDL:Race/{number}:1.0");
                TypeCode::value(&id, "V", ValueModifier::None, None, &[])
            })
            .collect();
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    assert!(codes.iter().all(make_type_known));
                });
            }
        });
        let count = COUNT.lock().expect("no maker panics");
        let mut there = 0;
        for place in &KNOWN {
            let entries = std::iter::successors(place.get(), |entry| entry.next.get());
            there += entries.count();
        }
        assert!((codes.len()..codes.len() + 10).contains(&there));
        assert_eq!(*count, there);
    }
}
