//! Reads values into handles that share them.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use super::{Form, ValueBase, ValueFactory, Valuetype, lookup_value_factory, narrow};
use crate::limits::{VALUE_ID_SIZE_MAX, VALUE_JOINS_MAX, VALUE_NESTING_MAX};
use crate::walk::chunks::Chunks;
use crate::walk::ids::{Header, IdText};
use crate::walk::tags::{CHUNKED, FIRST_TAG, LAST_TAG, NULL_TAG, WITHOUT_TAG};
use crate::{DecodeError, DecodeFact, Divided, Parse, Reader};

/// The values that were read from one message, and the place among their chunks.
#[derive(Debug, Default)]
pub struct ReadValues {
    chunks: Cell<Chunks>,
    /// Values that have begun and not ended.
    depth: Cell<u16>,
    /// The values so far, by their places.
    seen: RefCell<Vec<Seen>>,
    /// Octets that stood in several chunks, joined.
    joined: Joined,
    /// The types of ids that values share.
    known: RefCell<Known>,
}

/// What repository ids mean, by their places: many values may share a long id, or a long list of them.
#[derive(Debug, Default)]
struct Known {
    ids: HashMap<usize, Option<ValueFactory>>,
    /// By the declared type too.
    lists: HashMap<(usize, &'static str), (ValueFactory, bool)>,
}

/// Where a value began, and the value; `None` until it is whole.
type Seen = (usize, Option<Arc<dyn ValueBase>>);

/// A list to which a shared reference can add.
#[derive(Debug, Default)]
struct Joined(OnceCell<Box<(Vec<u8>, Joined)>>);

impl Drop for Joined {
    /// Drops one after the other: a list that drops its rest within itself needs stack for each.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut kept) = next {
            next = kept.1.0.take();
        }
    }
}

impl ReadValues {
    /// Whether a value in chunks is being read.
    pub(crate) fn are_in_chunks(&self) -> bool {
        self.chunks.get().are_there()
    }

    /// The place among chunks, whose present one ends at `end`.
    pub(crate) fn chunks(&self, end: usize) -> Chunks {
        self.chunks.get().with_end(end)
    }

    pub(crate) fn set_chunks(&self, chunks: Chunks) {
        self.chunks.set(chunks);
    }

    /// Keeps octets as long as the message is read; `None` where too many were kept.
    pub(crate) fn keep(&self, octets: Vec<u8>) -> Option<&[u8]> {
        let mut last = &self.joined;
        for _ in 0..VALUE_JOINS_MAX {
            match last.0.get() {
                Some(kept) => last = &kept.1,
                None => {
                    return Some(
                        &last
                            .0
                            .get_or_init(|| Box::new((octets, Joined::default())))
                            .0,
                    );
                }
            }
        }
        None
    }

    fn begin(&self, start: usize, r: &Reader<'_>) -> Result<usize, DecodeError> {
        if self.depth.get() >= VALUE_NESTING_MAX {
            return Err(r.error(DecodeFact::NestingTooDeep));
        }
        self.depth.set(self.depth.get() + 1);
        let mut seen = self.seen.borrow_mut();
        seen.push((start, None));
        Ok(seen.len() - 1)
    }

    fn end(&self, index: usize, value: &Arc<dyn ValueBase>) {
        self.depth.set(self.depth.get() - 1);
        self.seen.borrow_mut()[index].1 = Some(Arc::clone(value));
    }

    /// Returns the factory for values with this id.
    fn factory_of(&self, id: &IdText<'_>) -> Option<ValueFactory> {
        let search = || {
            let octets = (id.octets.len() < VALUE_ID_SIZE_MAX).then_some(id.octets)?;
            lookup_value_factory(std::str::from_utf8(octets).ok()?)
        };
        if !id.is_elsewhere {
            return search();
        }
        let mut known = self.known.borrow_mut();
        *known.ids.entry(id.start()).or_insert_with(search)
    }

    /// Returns the value that began there.
    fn seen_at(&self, there: i64) -> Result<Arc<dyn ValueBase>, DecodeFact> {
        let seen = self.seen.borrow();
        let there = usize::try_from(there).map_err(|_| DecodeFact::ValueAstray)?;
        let index = seen.binary_search_by_key(&there, |value| value.0);
        let index = index.map_err(|_| DecodeFact::ValueAstray)?;
        seen[index].1.clone().ok_or(DecodeFact::ValueCyclic)
    }
}

/// Values are compared by their place: a reader is where it is.
impl PartialEq for ReadValues {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for ReadValues {}

/// Runs `read`; values that it reads may be shared between all its parts.
///
/// # Errors
/// Those of `read`.
pub(crate) fn shared<T>(
    r: &mut Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    if r.values().is_some() {
        return read(r);
    }
    let values = ReadValues::default();
    let parts = r.parts(&values);
    let mut inner = r.with_parts(&parts);
    let value = read(&mut inner)?;
    let position = inner.position();
    r.go_on_to(position);
    Ok(value)
}

/// Reads a value where `T` is declared.
pub(super) fn value<T: Valuetype + ?Sized>(
    r: &mut Reader<'_>,
) -> Result<Option<Arc<T>>, DecodeError> {
    let at = r.position();
    shared(r, |r| {
        let Some(value) = untyped(T::REPOSITORY_ID, T::FACTORY, r)? else {
            return Ok(None);
        };
        let typed = narrow(value);
        let mismatch = || DecodeError::new(DecodeFact::TypeMismatch, at);
        Ok(Some(typed.ok_or_else(mismatch)?))
    })
}

/// Reads a value where a type with this id is declared.
fn untyped(
    declared: &'static str,
    factory: Option<ValueFactory>,
    r: &mut Reader<'_>,
) -> Result<Option<Arc<dyn ValueBase>>, DecodeError> {
    let at = *r;
    let values = at
        .values()
        .ok_or_else(|| at.error(DecodeFact::TypeUnsupported))?;
    let mut chunks = values.chunks(r.bytes().len());
    let is_chunked = chunks.are_there();
    let mut wide = if is_chunked { r.wide() } else { *r };
    // Null and indirections stand within chunks, values between them.
    let is_inside = is_chunked && chunks.go_inside(&mut wide)?;
    wide.align(4);
    let start = wide.position();
    let tag = wide.read_u32()?;
    match tag {
        NULL_TAG | WITHOUT_TAG => {
            let mut value = None;
            if tag == WITHOUT_TAG {
                let from = wide.position();
                let target = from as i64 + i64::from(i32::parse(&mut wide)?);
                let seen = values.seen_at(target);
                value = Some(seen.map_err(|fact| DecodeError::new(fact, from))?);
            }
            chunks.settle(is_inside, &wide)?;
            r.go_behind(wide, chunks);
            Ok(value)
        }
        FIRST_TAG..=LAST_TAG if !is_inside => {
            let header = Header::read(tag, &mut wide)?;
            let (factory, is_base) = choose(&header, declared, factory, values, &wide)?;
            let index = values.begin(start, &wide)?;
            let malformed = DecodeError::new(DecodeFact::ChunkMalformed, start);
            let value = if tag & CHUNKED == 0 {
                if is_base || is_chunked {
                    return Err(malformed);
                }
                r.go_to(wide);
                factory.read(r)?
            } else {
                if r.is_in_fragments() {
                    // Alignment starts again in each fragment of GIOP 1.1.
                    return Err(wide.error(DecodeFact::TypeUnsupported));
                }
                chunks.begin_value(&wide);
                values.set_chunks(chunks);
                r.go_behind(wide, chunks);
                let value = factory.read(r)?;
                let mut chunks = values.chunks(r.bytes().len());
                let mut wide = r.wide();
                chunks.end_value(&mut wide, is_base || factory.about().form == Form::Custom)?;
                values.set_chunks(chunks);
                r.go_behind(wide, chunks);
                value
            };
            values.end(index, &value);
            Ok(Some(value))
        }
        _ => Err(DecodeError::new(DecodeFact::ValueTagUnknown, start)),
    }
}

/// Returns the factory for the first of the header's ids that is known, and whether that is a base of the value's own
/// type.
fn choose(
    header: &Header<'_>,
    declared: &'static str,
    factory: Option<ValueFactory>,
    values: &ReadValues,
    r: &Reader<'_>,
) -> Result<(ValueFactory, bool), DecodeError> {
    let unknown = r.error(DecodeFact::ValueFactoryMissing);
    if header.is_without_ids() {
        return Ok((factory.ok_or(unknown)?, false));
    }
    let list = header.shared_list().map(|list| (list, declared));
    if let Some(list) = list
        && let Some(chosen) = values.known.borrow().lists.get(&list)
    {
        return Ok(*chosen);
    }
    for (index, id) in header.each_id().enumerate() {
        let id = id?;
        let own = factory.filter(|_| id.octets == declared.as_bytes());
        if let Some(factory) = own.or_else(|| values.factory_of(&id)) {
            let chosen = (factory, index > 0);
            if let Some(list) = list {
                values.known.borrow_mut().lists.insert(list, chosen);
            }
            return Ok(chosen);
        }
    }
    Err(unknown)
}

/// The parts of a message in which values are read: behind the present chunk comes the next one.
impl<'a> Reader<'a> {
    /// The values of the message, where they may be shared.
    pub(crate) fn values(&self) -> Option<&'a ReadValues> {
        self.divided().and_then(Divided::values)
    }

    /// The same message, with room for its values. For [`Reader::with_parts`].
    #[must_use]
    pub fn parts<'b>(&self, values: &'b ReadValues) -> Divided<'b>
    where
        'a: 'b,
    {
        let ends = self.divided().map_or(&[][..], Divided::ends);
        Divided::new(self.whole(), ends).with_values(values)
    }

    /// Whether the message came in fragments of GIOP 1.1.
    fn is_in_fragments(&self) -> bool {
        self.divided()
            .is_some_and(|divided| !divided.ends().is_empty())
    }

    /// This reader without the end of the present chunk.
    pub(crate) fn wide(self) -> Self {
        let whole = self.whole();
        self.with_bytes(whole).without_parts()
    }

    /// Goes to where `wide` is, in the present chunk of `chunks`; between chunks there are no octets before the next.
    pub(crate) fn go_behind(&mut self, wide: Self, chunks: Chunks) {
        let whole = wide.bytes();
        let end = if chunks.are_there() {
            chunks.end().max(wide.position()).min(whole.len())
        } else {
            whole.len()
        };
        let bytes = if self.is_in_fragments() {
            wide.bytes()
        } else {
            &whole[..end]
        };
        let there = wide.with_bytes(bytes);
        self.go_to(there);
    }

    /// Returns this reader in the next chunk of a value; `None` where none follows.
    pub(crate) fn in_next_chunk(self, values: &ReadValues) -> Option<Self> {
        let mut chunks = values.chunks(self.bytes().len());
        let mut wide = self.wide().at_position(self.bytes().len());
        let is_there = chunks.go_inside(&mut wide).is_ok_and(|is_there| is_there);
        is_there.then(|| {
            self.with_bytes(&wide.bytes()[..chunks.end()])
                .at_position(wide.position())
        })
    }

    /// As [`Reader::octets_beyond`], of a value in chunks.
    pub(crate) fn octets_of_chunks(
        self,
        count: usize,
        exceeded: DecodeError,
        values: &'a ReadValues,
    ) -> Result<(&'a [u8], Self), DecodeError> {
        if count > self.remaining() {
            return Err(exceeded);
        }
        let (mut all, mut there) = (Vec::new(), self);
        while all.len() < count {
            if there.position() >= there.bytes().len() {
                there = there.in_next_chunk(values).ok_or(exceeded)?;
            }
            let rest = &there.bytes()[there.position()..];
            let here = &rest[..rest.len().min(count - all.len())];
            all.extend_from_slice(here);
            there = there.at_position(there.position() + here.len());
        }
        let too_many = there.error(DecodeFact::ValueTooLarge);
        Ok((values.keep(all).ok_or(too_many)?, there))
    }
}
