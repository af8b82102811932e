//! Values of value types on the wire (CORBA 3.3 part 2, clause 9.3.4): their tags, types, chunks, and those that stand for one before.

use super::ids::{Header, Id, IdText};
use super::opaque::Opaque;
use super::sink::Sink;
use super::{Fault, Walk};
use crate::limits::{SHARED_IDS_MIN, VALUE_ID_SIZE_MAX};
use crate::text::decode_text;
use crate::typecode::{Arena, Node, ValueModifier};
use crate::{DecodeError, DecodeFact, Parse, Reader};
use std::collections::HashMap;

/// The tag of a value that came before, in front of how far back it stands.
pub(crate) const WITHOUT_TAG: u32 = u32::MAX;
/// The tag of no value.
pub(crate) const NULL_TAG: u32 = 0;
/// The first of the tags that a value begins with; their lowest bits say how it goes on. Smaller numbers are sizes of chunks.
pub(crate) const FIRST_TAG: u32 = 0x7fff_ff00;
pub(crate) const LAST_TAG: u32 = 0x7fff_ffff;
/// There is a URL where code may be had.
pub(super) const CODE_BASE: u32 = 1;
/// There is one repository id.
pub(crate) const ONE_ID: u32 = 2;
/// There is a list of repository ids.
pub(crate) const ID_LIST: u32 = 6;
/// The state comes in chunks.
pub(crate) const CHUNKED: u32 = 8;

/// Where a list of ids stands, and the type that is declared where it is met.
type ListUse = (usize, u32);

/// The types that are described where the walk is, and the values that came so far: an indirection stays within its `any`.
pub(super) struct Scope<'t> {
    pub(super) arena: &'t Arena,
    /// Where each value began, where it was written, and its type where that is known; ascending.
    seen: Vec<(usize, usize, Option<u32>)>,
    /// What ids mean that stand where indirections lead: however many values share one, it is searched for once.
    meanings: Option<HashMap<usize, Option<u32>>>,
    /// What values are whose list of ids stands there, where one of this type is declared; of long lists where indirections lead.
    lists: Option<HashMap<ListUse, Actual>>,
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

    /// The type of an id, whether or not values of it may stand where `formal` is declared.
    fn find(&mut self, formal: u32, id: &IdText<'_>, r: &Reader<'_>) -> Option<u32> {
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

    /// Where the value that began there was written, and its type.
    fn seen_at(&self, there: usize) -> Option<(usize, Option<u32>)> {
        let index = self.seen.binary_search_by_key(&there, |seen| seen.0).ok()?;
        let (_, written, node) = self.seen[index];
        Some((written, node))
    }
}

/// What a value turns out to be of.
#[derive(Clone, Copy)]
enum Actual {
    /// This type, and whether that is a base of the value's own.
    Known(u32, bool),
    /// A custom type, or one that is not known, which may stand where no state is declared.
    Opaque(Option<u32>),
}

/// Whether values of it can be read: what is abstract has none, and what is custom is known to its own code alone.
pub(crate) const fn has_state(node: &Node) -> bool {
    match node {
        Node::Value { modifier, .. } => {
            *modifier != ValueModifier::Abstract as i16 && *modifier != ValueModifier::Custom as i16
        }
        Node::Alias { boxed, .. } => *boxed,
        _ => false,
    }
}

fn is_custom(node: &Node) -> bool {
    matches!(node, Node::Value { modifier, .. } if *modifier == ValueModifier::Custom as i16)
}

/// Where a walk is within values that come in chunks.
#[derive(Clone, Default)]
pub(crate) struct Chunks {
    /// Values in chunks that have begun and not ended.
    level: u32,
    /// Where the present chunk ends; where there is none, a place that was passed.
    end: usize,
    /// The outermost value that an end tag has ended before its turn; 0 for none.
    ended: u32,
}

impl Chunks {
    /// Whether what is read stands in chunks.
    pub(super) const fn are_there(&self) -> bool {
        self.level > 0
    }

    /// Octets left in the present chunk.
    pub(super) const fn left(&self, r: &Reader<'_>) -> usize {
        self.end.saturating_sub(r.position())
    }

    /// Sees to it that what comes next is in a chunk, where there are any.
    #[inline]
    pub(super) fn enter(&mut self, r: &mut Reader<'_>) -> Result<(), DecodeError> {
        if self.level == 0 || r.position() < self.end {
            return Ok(());
        }
        if self.open(r)? {
            Ok(())
        } else {
            Err(r.error(DecodeFact::ChunkMalformed))
        }
    }

    /// Whether what was read has ended in its chunk.
    #[inline]
    pub(super) fn leave(&self, r: &Reader<'_>) -> Result<(), DecodeError> {
        if self.level > 0 && r.position() > self.end {
            return Err(r.error(DecodeFact::ChunkMalformed));
        }
        Ok(())
    }

    /// Goes into the next chunk, if one comes next.
    #[cold]
    fn open(&mut self, r: &mut Reader<'_>) -> Result<bool, DecodeError> {
        if self.ended > 0 {
            return Err(r.error(DecodeFact::ChunkMalformed));
        }
        let mut ahead = *r;
        let size = ahead.read_u32()?;
        if size == 0 || size >= FIRST_TAG {
            return Ok(false);
        }
        if size as usize > ahead.remaining() {
            return Err(ahead.error(DecodeFact::LengthExceedsMessage));
        }
        r.go_to(ahead);
        self.end = r.position() + size as usize;
        Ok(true)
    }

    /// A value in chunks begins, or one in it ends: there is no chunk.
    fn none_at(&mut self, r: &Reader<'_>) {
        self.end = r.position();
    }

    /// Passes over a whole value of which nothing is known, behind its header. Gives where its state ends, and its level.
    pub(super) fn pass(&mut self, r: &mut Reader<'_>) -> Result<(usize, u32), DecodeError> {
        self.level += 1;
        self.none_at(r);
        let end = self.finish(r, true)?;
        self.level -= 1;
        self.none_at(r);
        Ok((end, self.level + 1))
    }

    /// Reads up to the end of the present value, and gives where its end tag stands. What its type does not know is passed over where it is
    /// read as its base.
    pub(super) fn finish(
        &mut self,
        r: &mut Reader<'_>,
        is_base: bool,
    ) -> Result<usize, DecodeError> {
        let level = self.level;
        if self.ended > 0 {
            self.ended = if self.ended == level { 0 } else { self.ended };
            return Ok(r.position());
        }
        let mut depth = level;
        loop {
            let left = self.left(r);
            r.read_octets(left)?;
            r.align(4);
            let at = r.position();
            let malformed = DecodeError::new(DecodeFact::ChunkMalformed, at);
            let tag = r.read_u32()?;
            if tag > LAST_TAG {
                let ended = tag.wrapping_neg();
                if ended > depth || left > 0 && !is_base {
                    return Err(malformed);
                }
                if ended <= level {
                    self.ended = if ended < level { ended } else { 0 };
                    return Ok(at);
                }
                depth = ended - 1;
            } else if !is_base {
                return Err(malformed);
            } else if tag >= FIRST_TAG {
                Header::read(tag, r)?;
                if tag & CHUNKED == 0 {
                    return Err(malformed);
                }
                depth += 1;
            } else {
                // A chunk, or 0: no value.
                r.read_octets(tag as usize)?;
            }
            self.none_at(r);
        }
    }
}

impl Header<'_> {
    /// What the value is, where `formal` is declared.
    #[inline(always)]
    fn resolve(&self, scope: &mut Scope<'_>, formal: u32) -> Result<Actual, DecodeError> {
        match self.list() {
            Some(list) if self.is_elsewhere && self.count >= SHARED_IDS_MIN => {
                self.resolve_shared(list, scope, formal)
            }
            _ => self.look(scope, formal),
        }
    }

    /// However many values share a list, its ids are looked at once.
    fn resolve_shared(
        &self,
        list: usize,
        scope: &mut Scope<'_>,
        formal: u32,
    ) -> Result<Actual, DecodeError> {
        let key = (list, formal);
        if let Some(actual) = scope.lists.as_ref().and_then(|lists| lists.get(&key)) {
            return Ok(*actual);
        }
        let actual = self.look(scope, formal)?;
        scope.lists.get_or_insert_default().insert(key, actual);
        Ok(actual)
    }

    /// The value's type: the first that is known and may stand where `formal` is declared.
    fn look(&self, scope: &mut Scope<'_>, formal: u32) -> Result<Actual, DecodeError> {
        let (count, mut there) = (self.count, self.ids);
        let arena = scope.arena;
        let stateless = !has_state(arena.node(formal));
        if count == 0 && !stateless {
            return Ok(Actual::Known(formal, false));
        }
        for index in 0..count {
            let mut id = IdText::read(&mut there)?;
            id.is_elsewhere |= self.is_elsewhere;
            let found = scope.find(formal, &id, &there);
            let Some(found) = found.filter(|found| arena.takes(formal, *found)) else {
                continue;
            };
            let node = arena.node(found);
            if has_state(node) {
                return Ok(Actual::Known(found, index > 0));
            }
            // A custom value is read as no other.
            if index == 0 && is_custom(node) {
                self.require_kept()?;
                return Ok(Actual::Opaque(Some(found)));
            }
        }
        if stateless && (count > 0 || is_custom(arena.node(formal))) {
            self.require_kept()?;
            return Ok(Actual::Opaque((count == 0).then_some(formal)));
        }
        Err(there.error(DecodeFact::TypeUnsupported))
    }
}

/// The repository id and state of a value that only its own code can read, in the form in which an `any` keeps it.
pub(crate) fn kept_opaque(tag: u32, r: &mut Reader<'_>) -> Result<(String, Opaque), DecodeError> {
    let header = Header::read(tag, r)?;
    let state = Opaque::read(&mut Chunks::default(), r, |_| false)?;
    let mut ids = header.texts().into_iter().map(str::to_owned);
    let id = ids.next().unwrap_or_default();
    Ok((id, state.with_bases(ids.collect())))
}

impl<S: Sink> Walk<S> {
    /// A value where one of the type `formal` is declared: none, one that came before, or one that begins here.
    pub(super) fn valuetype(
        &mut self,
        scope: &mut Scope<'_>,
        formal: u32,
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        // Null and indirections stand in chunks, values between them.
        let is_inside =
            self.chunks.are_there() && (r.position() < self.chunks.end || self.chunks.open(r)?);
        r.align(4);
        let start = r.position();
        let tag = r.read_u32()?;
        match tag {
            NULL_TAG => {
                self.settle(is_inside, r)?;
                Ok(self.sink.put(&NULL_TAG)?)
            }
            WITHOUT_TAG => {
                let from = r.position();
                let target = from as i64 + i64::from(i32::parse(r)?);
                self.settle(is_inside, r)?;
                let known = usize::try_from(target).ok();
                let known = known.and_then(|target| scope.seen_at(target));
                let arena = scope.arena;
                let fits = |actual: Option<u32>| match actual {
                    Some(actual) => arena.takes(formal, actual),
                    None => !has_state(arena.node(formal)),
                };
                let astray = DecodeError::new(DecodeFact::ValueAstray, from);
                let (there, _) = known.filter(|(_, actual)| fits(*actual)).ok_or(astray)?;
                self.met.values = true;
                Ok(self.sink.again(there)?)
            }
            FIRST_TAG..=LAST_TAG if !is_inside => {
                let header = Header::read(tag, r)?;
                let actual = header.resolve(scope, formal)?;
                let in_chunks = tag & CHUNKED != 0;
                let (actual, is_base) = match actual {
                    Actual::Known(actual, is_base) => (actual, is_base),
                    Actual::Opaque(actual) if in_chunks => {
                        return self.opaque(scope, (formal, actual), (start, &header), r);
                    }
                    Actual::Opaque(_) => return Err(r.error(DecodeFact::TypeUnsupported).into()),
                };
                if !in_chunks && (is_base || self.chunks.are_there()) {
                    return Err(DecodeError::new(DecodeFact::ChunkMalformed, start).into());
                }
                self.met.values = true;
                self.met.cut |= is_base;
                let there = self.sink.begin(scope.arena, actual)?;
                scope.seen.push((start, there, Some(actual)));
                if in_chunks {
                    self.chunks.level += 1;
                    self.chunks.none_at(r);
                }
                self.state(scope, actual, r)?;
                if in_chunks {
                    self.chunks.finish(r, is_base)?;
                    self.chunks.level -= 1;
                    self.chunks.none_at(r);
                }
                Ok(self.sink.end()?)
            }
            _ => Err(DecodeError::new(DecodeFact::ValueTagUnknown, start).into()),
        }
    }

    /// A value of a custom type, or of one that is not known, which begins at `start`.
    fn opaque(
        &mut self,
        scope: &mut Scope<'_>,
        (formal, actual): (u32, Option<u32>),
        (start, header): (usize, &Header<'_>),
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        let is_value = |there| there == start || scope.seen_at(there).is_some();
        let state = Opaque::read(&mut self.chunks, r, is_value)?;
        self.met.values = true;
        self.met.opaque = true;
        let there = self
            .sink
            .opaque(header, Id::Of(scope.arena, formal), &state)?;
        scope.seen.push((start, there, actual));
        Ok(())
    }

    /// After null or an indirection, which may stand in a chunk or between chunks.
    fn settle(&mut self, is_inside: bool, r: &Reader<'_>) -> Result<(), DecodeError> {
        if is_inside {
            return self.chunks.leave(r);
        }
        self.chunks.none_at(r);
        Ok(())
    }

    fn state(
        &mut self,
        scope: &mut Scope<'_>,
        actual: u32,
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        let mut parts = scope.arena.parts(actual).into_iter();
        parts.try_for_each(|part| self.value(scope, part, r))
    }
}

#[cfg(test)]
mod tests;
