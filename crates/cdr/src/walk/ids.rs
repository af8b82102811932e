//! Repository ids in front of the states of values (CORBA 3.3 part 2, clause 9.3.4), and indirections to those before.

use super::opaque::is_kept;
use super::values::{CODE_BASE, ID_LIST, ONE_ID, WITHOUT_TAG};
use crate::limits::{VALUE_ID_SIZE_MAX, VALUE_IDS_MAX};
use crate::typecode::VALUE_BASE_ID;
use crate::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};

/// What stands between a value's tag and its state.
pub(crate) struct Header<'a> {
    /// How many repository ids there are, the value's own first.
    pub(super) count: usize,
    /// Where they stand.
    pub(super) ids: Reader<'a>,
    /// Whether an indirection leads to their list.
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

    /// The ids, each once, but for that of all values behind others.
    pub(super) fn texts(&self, r: &Reader<'_>) -> Result<Vec<String>, DecodeError> {
        let mut there = self.ids;
        let mut texts: Vec<String> = Vec::new();
        let mut left = VALUE_ID_SIZE_MAX;
        for _ in 0..self.count {
            let id = id_text(&mut there)?;
            let rest = left.checked_sub(id.len()).filter(|_| is_kept(id));
            left = rest.ok_or_else(|| r.error(DecodeFact::TypeUnsupported))?;
            let id = String::from_utf8_lossy(id).into_owned();
            let is_fill = !texts.is_empty() && id == VALUE_BASE_ID;
            if !is_fill && !texts.contains(&id) {
                texts.push(id);
            }
        }
        if texts.len() >= VALUE_IDS_MAX {
            return Err(r.error(DecodeFact::TypeUnsupported));
        }
        Ok(texts)
    }
}

/// Where the number stands that is read next, or the indirection to it leads.
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

/// A repository id, and where it stands.
pub(super) struct IdText<'a> {
    pub(super) octets: &'a [u8],
    /// Behind the null at its end.
    end: usize,
    /// Whether an indirection led there.
    pub(super) is_elsewhere: bool,
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

    /// Where its first octet stands: behind its length, so that no other begins there.
    pub(super) const fn start(&self) -> usize {
        self.end - 1 - self.octets.len()
    }
}

/// A repository id or URL, or the one that an indirection leads to.
pub(crate) fn id_text<'a>(r: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    IdText::read(r).map(|id| id.octets)
}

/// How many repository ids a list has.
fn id_count(r: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let count = r.read_count(5)?;
    if count == 0 || count > VALUE_IDS_MAX {
        return Err(r.error(DecodeFact::ValueTagUnknown));
    }
    Ok(count)
}

/// Writes what stands for what begins at `there`.
pub(crate) fn write_indirection(there: usize, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.write_u32(WITHOUT_TAG)?;
    let offset = there as i64 - w.position() as i64;
    let offset = i32::try_from(offset).map_err(|_| EncodeError::LengthTooLarge)?;
    offset.write(w)
}
