//! Values of value types on the wire (CORBA 3.3 part 2, clause 9.3.4): tags, types, states and indirections.

use super::chunks::Chunks;
use super::ids::{Header, Id, IdText};
use super::opaque::Opaque;
use super::scope::{Actual, Scope};
use super::sink::Sink;
use super::tags::{CHUNKED, FIRST_TAG, LAST_TAG, NULL_TAG, WITHOUT_TAG};
use super::{Fault, Walk};
use crate::typecode::{Node, ValueModifier};
use crate::{DecodeError, DecodeFact, Parse, Reader};

/// Whether a TypeCode describes the state of its values: abstract types have no values, and the state of custom ones is
/// their code's.
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

impl Header<'_> {
    /// Returns the type of the value, where `formal` is declared.
    #[inline(always)]
    fn resolve(&self, scope: &mut Scope<'_>, formal: u32) -> Result<Actual, DecodeError> {
        match self.shared_list() {
            Some(list) => self.resolve_shared(list, scope, formal),
            None => self.look(scope, formal),
        }
    }

    /// A shared list of ids is resolved once for all its values.
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

    /// Returns the first known type of the ids that may stand where `formal` is declared.
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
            // A custom value is never read as a base.
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

/// Reads the repository id and state of an opaque value, in the form in which an `any` keeps it.
pub(crate) fn kept_opaque(tag: u32, r: &mut Reader<'_>) -> Result<(String, Opaque), DecodeError> {
    let header = Header::read(tag, r)?;
    let state = Opaque::read(&mut Chunks::default(), r, |_| false)?;
    let mut ids = header.texts().into_iter().map(str::to_owned);
    let id = ids.next().unwrap_or_default();
    Ok((id, state.with_bases(ids.collect())))
}

impl<S: Sink> Walk<S> {
    /// A value where `formal` is declared: null, an indirection, or a value that begins here.
    pub(super) fn valuetype(
        &mut self,
        scope: &mut Scope<'_>,
        formal: u32,
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        // Null and indirections stand within chunks, values between them.
        let is_inside = self.chunks.are_there() && self.chunks.go_inside(r)?;
        r.align(4);
        let start = r.position();
        let tag = r.read_u32()?;
        match tag {
            NULL_TAG => {
                self.chunks.settle(is_inside, r)?;
                Ok(self.sink.put(&NULL_TAG)?)
            }
            WITHOUT_TAG => {
                let from = r.position();
                let target = from as i64 + i64::from(i32::parse(r)?);
                self.chunks.settle(is_inside, r)?;
                let known = usize::try_from(target).ok();
                let known = known.and_then(|target| scope.seen_at(target));
                let arena = scope.arena;
                let fits = |actual: Option<u32>| match actual {
                    Some(actual) => arena.takes(formal, actual),
                    None => !has_state(arena.node(formal)),
                };
                let astray = DecodeError::new(DecodeFact::ValueAstray, from);
                let (there, _) = known.filter(|(_, actual)| fits(*actual)).ok_or(astray)?;
                self.survey.values = true;
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
                self.survey.values = true;
                self.survey.cut |= is_base;
                let there = self.sink.begin(scope.arena, actual)?;
                scope.note(start, there, Some(actual));
                if in_chunks {
                    self.chunks.begin_value(r);
                }
                self.state(scope, actual, r)?;
                if in_chunks {
                    self.chunks.end_value(r, is_base)?;
                }
                Ok(self.sink.end()?)
            }
            _ => Err(DecodeError::new(DecodeFact::ValueTagUnknown, start).into()),
        }
    }

    /// A value of a custom or unknown type, which began at `start`.
    fn opaque(
        &mut self,
        scope: &mut Scope<'_>,
        (formal, actual): (u32, Option<u32>),
        (start, header): (usize, &Header<'_>),
        r: &mut Reader<'_>,
    ) -> Result<(), Fault> {
        let is_value = |there| there == start || scope.seen_at(there).is_some();
        let state = Opaque::read(&mut self.chunks, r, is_value)?;
        self.survey.values = true;
        self.survey.opaque = true;
        let there = self
            .sink
            .opaque(header, Id::Of(scope.arena, formal), &state)?;
        scope.note(start, there, actual);
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
