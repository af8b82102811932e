//! Repository ids before the states of values, and indirections to earlier ids (CORBA 3.3 part 2, clause 9.3.4).

use super::tags::{CODE_BASE, ID_LIST, ONE_ID, WITHOUT_TAG};
use crate::limits::{SHARED_IDS_MIN, VALUE_ID_SIZE_MAX, VALUE_IDS_MAX};
use crate::typecode::{Arena, VALUE_BASE_ID};
use crate::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};
use std::collections::HashMap;

/// The header of a value: what stands between its tag and its state.
pub(crate) struct Header<'a> {
    /// How many repository ids there are, the value's own first.
    pub(super) count: usize,
    /// A reader at the first of them.
    pub(super) ids: Reader<'a>,
    /// Whether they are a list.
    is_list: bool,
    /// Whether the list was reached by an indirection.
    pub(super) is_elsewhere: bool,
}

impl<'a> Header<'a> {
    pub(crate) fn read(tag: u32, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if tag & CODE_BASE != 0 {
            id_text(r)?;
        }
        let here = |count, ids| Self {
            count,
            ids,
            is_list: tag & ID_LIST == ID_LIST,
            is_elsewhere: false,
        };
        Ok(match tag & ID_LIST {
            0 => here(0, *r),
            ONE_ID => {
                let there = *r;
                id_text(r)?;
                here(1, there)
            }
            ID_LIST => match direct(r)? {
                Some(mut ids) => Self {
                    count: id_count(&mut ids)?,
                    ids,
                    is_list: true,
                    is_elsewhere: true,
                },
                None => {
                    let count = id_count(r)?;
                    let there = *r;
                    (0..count).try_for_each(|_| id_text(r).map(|_| ()))?;
                    here(count, there)
                }
            },
            _ => return Err(r.error(DecodeFact::ValueTagUnknown)),
        })
    }

    /// Whether the value is of the declared type, so that no id stands here.
    pub(crate) const fn is_without_ids(&self) -> bool {
        self.count == 0
    }

    /// The ids, the value's own first.
    pub(crate) fn each_id(&self) -> impl Iterator<Item = Result<IdText<'a>, DecodeError>> {
        let (mut there, is_elsewhere) = (self.ids, self.is_elsewhere);
        (0..self.count).map(move |_| {
            let mut id = IdText::read(&mut there)?;
            id.is_elsewhere |= is_elsewhere;
            Ok(id)
        })
    }

    /// Where the list stands, if they are a list.
    pub(super) fn list(&self) -> Option<usize> {
        self.is_list.then(|| self.ids.position() - 4)
    }

    /// Where the list stands, if it is long and was reached by an indirection: its type is remembered.
    pub(crate) fn shared_list(&self) -> Option<usize> {
        self.list()
            .filter(|_| self.is_elsewhere && self.count >= SHARED_IDS_MIN)
    }

    /// Fails where the ids cannot be kept with an opaque state.
    pub(super) fn require_kept(&self) -> Result<(), DecodeError> {
        let (mut there, mut left, mut count) = (self.ids, VALUE_ID_SIZE_MAX, 0);
        for index in 0..self.count {
            let id = id_text(&mut there)?;
            if index > 0 && id == VALUE_BASE_ID.as_bytes() {
                continue;
            }
            count += 1;
            let rest = left.checked_sub(id.len()).filter(|_| is_kept(id));
            left = rest.ok_or_else(|| there.error(DecodeFact::TypeUnsupported))?;
        }
        if count < VALUE_IDS_MAX {
            Ok(())
        } else {
            Err(there.error(DecodeFact::TypeUnsupported))
        }
    }

    /// Returns the ids, each once, without ValueBase behind others. Call after [`Header::require_kept`].
    pub(super) fn texts(&self) -> Vec<&'a str> {
        let mut there = self.ids;
        let mut texts = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let id = id_text(&mut there).ok();
            let id = id.and_then(|id| std::str::from_utf8(id).ok());
            let id = id.filter(|id| texts.is_empty() || *id != VALUE_BASE_ID);
            if let Some(id) = id.filter(|id| !texts.contains(id)) {
                gathered();
                texts.push(id);
            }
        }
        texts
    }
}

/// Whether a repository id may be kept with an opaque state.
pub(crate) fn is_kept(id: &[u8]) -> bool {
    id.len() <= VALUE_ID_SIZE_MAX && id.is_ascii() && !id.contains(&0)
}

/// A repository id to be written.
#[derive(Clone, Copy)]
pub(crate) enum Id<'i> {
    /// The id of a node.
    Of(&'i Arena, u32),
    /// An id of a type that no TypeCode describes.
    Text(&'i str),
}

impl<'i> Id<'i> {
    pub(super) fn text(self) -> &'i str {
        match self {
            Self::Of(arena, node) => arena.node(node).id().unwrap_or_default(),
            Self::Text(text) => text,
        }
    }
}

/// Places of the repository ids that were written within one `any`. Most have none, so that nothing is allocated for
/// them.
#[derive(Default)]
pub(crate) struct WrittenIds {
    /// Ids of types, by their nodes in the TypeCode of the `any`.
    types: Option<HashMap<u32, usize>>,
    /// Ids of types that no TypeCode describes.
    texts: Option<HashMap<Box<str>, usize>>,
    /// Whole lists, by their places in the octets that are read.
    lists: Option<HashMap<usize, usize>>,
}

impl WrittenIds {
    /// Where this id was written.
    #[inline(always)]
    pub(super) fn place(&self, id: Id<'_>) -> Option<usize> {
        match id {
            Id::Of(_, node) => self.types.as_ref()?.get(&node).copied(),
            Id::Text(text) => self.texts.as_ref()?.get(text).copied(),
        }
    }

    fn note(&mut self, id: Id<'_>, place: usize) {
        match id {
            Id::Of(_, node) => {
                let types = self.types.get_or_insert_default();
                types.insert(node, place);
            }
            Id::Text(text) => {
                let texts = self.texts.get_or_insert_default();
                texts.insert(text.into(), place);
            }
        }
    }

    /// Where the list that was read at this place was written.
    pub(super) fn list(&self, read: Option<usize>) -> Option<usize> {
        self.lists.as_ref()?.get(&read?).copied()
    }

    /// Remembers where a list was written.
    pub(super) fn note_list(&mut self, read: Option<usize>, place: usize) {
        if let Some(read) = read {
            self.lists.get_or_insert_default().insert(read, place);
        }
    }

    /// Writes an id, or an indirection to where it was written before.
    #[inline(always)]
    pub(crate) fn write(&mut self, id: Id<'_>, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if let Some(there) = self.place(id) {
            return write_indirection(there, w);
        }
        w.align(4)?;
        self.note(id, w.position());
        id.text().write(w)
    }
}

/// Returns a reader at the target of the indirection that stands here; `None` where none does.
fn direct<'a>(r: &mut Reader<'a>) -> Result<Option<Reader<'a>>, DecodeError> {
    let mut ahead = *r;
    if ahead.read_u32()? != WITHOUT_TAG {
        return Ok(None);
    }
    let from = ahead.position();
    let target = from as i64 + i64::from(i32::parse(&mut ahead)?);
    let target = usize::try_from(target).ok().filter(|target| *target < from);
    let target = target.ok_or_else(|| DecodeError::new(DecodeFact::ValueAstray, from))?;
    r.go_to(ahead);
    let there = Reader::new(r.whole(), r.order()).with_codec(r.codec());
    Ok(Some(there.with_origin(target).at_position(target)))
}

/// A repository id, and its place.
pub(crate) struct IdText<'a> {
    pub(crate) octets: &'a [u8],
    /// Behind the null at its end.
    end: usize,
    /// Whether it was reached by an indirection.
    pub(crate) is_elsewhere: bool,
}

impl<'a> IdText<'a> {
    pub(super) fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut there = direct(r)?;
        let is_elsewhere = there.is_some();
        let r = there.as_mut().unwrap_or(r);
        Ok(Self {
            octets: r.read_string_octets()?,
            end: r.position(),
            is_elsewhere,
        })
    }

    /// Where its first octet stands: behind its length, so that no other id begins there.
    pub(crate) const fn start(&self) -> usize {
        self.end - 1 - self.octets.len()
    }
}

/// Reads a repository id or URL, or the one that an indirection leads to.
pub(crate) fn id_text<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    IdText::read(r).map(|id| id.octets)
}

/// Reads the number of repository ids in a list.
fn id_count(r: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let count = r.read_count(5)?;
    if count == 0 || count > VALUE_IDS_MAX {
        return Err(r.error(DecodeFact::ValueTagUnknown));
    }
    Ok(count)
}

/// Writes an indirection to what begins at `there`.
pub(crate) fn write_indirection(there: usize, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.write_u32(WITHOUT_TAG)?;
    let offset = there as i64 - w.position() as i64;
    let offset = i32::try_from(offset).map_err(|_| EncodeError::LengthTooLarge)?;
    offset.write(w)
}

/// Called for each id that is gathered to be written or kept. Only tests count the calls.
#[cfg(not(test))]
const fn gathered() {}

#[cfg(test)]
use counted::gathered;
#[cfg(test)]
pub(super) mod counted {
    use std::cell::Cell;

    thread_local!(static GATHERED: Cell<usize> = const { Cell::new(0) });

    pub(super) fn gathered() {
        GATHERED.set(GATHERED.get() + 1);
    }

    /// Ids that this thread has gathered.
    pub(crate) fn ids_gathered() -> usize {
        GATHERED.get()
    }
}
