//! States that no TypeCode describes: of custom values, which only their own code can read (CORBA 3.3 part 1, clause
//! 9.5), and of values of unknown types in chunks.

use std::borrow::Cow;

use super::chunks::Chunks;
use super::ids::{Header, Id, WrittenIds, is_kept, write_indirection};
use super::tags::{CHUNKED, FIRST_TAG, ID_LIST, LAST_TAG, NULL_TAG, ONE_ID, WITHOUT_TAG};
use crate::limits::VALUE_IDS_MAX;
use crate::typecode::VALUE_BASE_ID;
use crate::{
    ByteOrder, Codec, DecodeError, DecodeFact, EncodeError, Reader, WideSet, Write, Writer,
};

/// A state in chunks, as it came.
///
/// The places of its numbers and texts are unknown. So it can be written only where octets mean the same:
/// * in its byte order and GIOP version;
/// * in its code set, unless all of it is ASCII, and with wide characters only if they were known before;
/// * within one fragment, at its alignment: the repository ids before it are written so as to keep that.
#[derive(Clone, Debug, PartialEq)]
pub struct Opaque {
    order: ByteOrder,
    codec: Codec,
    /// Alignment of the first octet, modulo 8: 0 or 4.
    phase: usize,
    /// Chunks, and values between them; end tags are numbered as for a value that stands in no other.
    octets: Vec<u8>,
    /// Places of the end tags in it.
    ends: Vec<usize>,
    /// Repository ids of the types that the value may be read as, the closest first.
    bases: Vec<String>,
}

/// The id added where the state would be aligned otherwise: ValueBase, a base of all values.
const FILL_ID: &str = VALUE_BASE_ID;
const _: () = assert!((4 + FILL_ID.len() + 1) % 8 == 4);

impl Opaque {
    /// Repository ids of the types that the value may be truncated to, the closest first.
    pub fn bases(&self) -> impl Iterator<Item = &str> {
        self.bases.iter().map(String::as_str)
    }

    /// The state as it came: a reader at the first of its chunks.
    #[must_use]
    pub fn chunks(&self) -> Reader<'_> {
        Reader::new(&self.octets, self.order)
            .with_codec(self.codec)
            .with_phase(self.phase)
    }

    /// Byte order, GIOP version and code sets of its octets.
    pub(crate) const fn form(&self) -> (ByteOrder, Codec) {
        (self.order, self.codec)
    }

    /// The same state, of a value that may be read as these types.
    pub(super) fn with_bases(self, bases: Vec<String>) -> Self {
        Self { bases, ..self }
    }

    /// Reads from behind the header of a value in chunks to its end. `is_value` returns whether an earlier value began
    /// at a place: a state with an indirection to one cannot be kept.
    pub(super) fn read(
        chunks: &mut Chunks,
        r: &mut Reader<'_>,
        is_value: impl Fn(usize) -> bool,
    ) -> Result<Self, DecodeError> {
        let mut at = *r;
        at.align(4);
        let (end, level) = chunks.pass(r)?;
        let block = r.whole().get(at.position()..end).unwrap_or_default();
        if at.bytes().len() != r.bytes().len() && !block.is_empty() {
            // Alignment starts again in each fragment of GIOP 1.1.
            return Err(at.error(DecodeFact::TypeUnsupported));
        }
        let is_outside = |place: i64| {
            let place = at.position() as i64 + place;
            usize::try_from(place).is_ok_and(|place| place < at.position() && is_value(place))
        };
        let state = Self::of_block(block, &at, level, is_outside);
        state.map_err(|fact| at.error(fact))
    }

    /// Returns the state in `block`, whose first octet is where `at` is, of a value at this level.
    pub(super) fn of_block(
        block: &[u8],
        at: &Reader<'_>,
        level: u32,
        is_outside: impl Fn(i64) -> bool,
    ) -> Result<Self, DecodeFact> {
        let mut r = Reader::new(block, at.order())
            .with_codec(at.codec())
            .with_phase(at.phase());
        let (mut size, mut ends) = (0, Vec::new());
        loop {
            r.align(4);
            if r.remaining() == 0 {
                break;
            }
            let start = r.position();
            match r.read_u32().map_err(|error| error.fact)? {
                NULL_TAG => {}
                tag @ FIRST_TAG..=LAST_TAG => {
                    // An indirection to an id may stay within the block, but not lead before it.
                    Header::read(tag, &mut r).map_err(|_| DecodeFact::TypeUnsupported)?;
                }
                tag if tag > LAST_TAG => {
                    ends.push((start, tag.wrapping_neg() - (level - 1)));
                    continue;
                }
                count => {
                    let start = r.position() as i64;
                    let data = r.read_octets(count as usize).map_err(|error| error.fact)?;
                    if leads_outside(data, at.order(), |back| is_outside(start + back)) {
                        return Err(DecodeFact::TypeUnsupported);
                    }
                }
            }
            size = r.position();
        }
        // Values that end together with this one have no end tag of their own.
        ends.retain(|(at, _)| *at < size);
        let mut octets = block[..size].to_vec();
        for (at, level) in &ends {
            put_u32(&mut octets, *at, level.wrapping_neg(), r.order());
        }
        Ok(Self {
            order: at.order(),
            codec: at.codec(),
            phase: at.phase(),
            octets,
            ends: ends.into_iter().map(|(at, _)| at).collect(),
            bases: Vec::new(),
        })
    }

    /// Writes a value with this state, without its end tag, at this level of chunks. Returns where the value begins.
    /// `list` is the place of its list of ids in the octets that are read; `ids` is called where that list was not
    /// written before.
    pub(crate) fn write<'i>(
        &self,
        (list, ids): (Option<usize>, impl FnOnce() -> Vec<Id<'i>>),
        level: u32,
        known: &mut WrittenIds,
        w: &mut Writer<'_>,
    ) -> Result<usize, EncodeError> {
        self.require_form(w)?;
        let start = match known.list(list) {
            Some(there) if !self.is_shifted(w.phase().next_multiple_of(4) + 12) => {
                w.write_u32(FIRST_TAG | CHUNKED | ID_LIST)?;
                write_indirection(there, w)?;
                w.position() - 12
            }
            _ => self.write_header((list, &ids()), known, w)?,
        };
        w.align(4)?;
        if self.octets.is_empty() {
            return Ok(start);
        }
        if w.phase() != self.phase || !w.stands_together(self.octets.len()) {
            return Err(EncodeError::TypeUnsupported);
        }
        w.write_octets(&self.octets_at(level))?;
        Ok(start)
    }

    fn require_form(&self, w: &Writer<'_>) -> Result<(), EncodeError> {
        let (own, other) = (self.codec, w.codec());
        let fits = w.order() == self.order
            && other.version == own.version
            && (other.wide == own.wide || own.wide == WideSet::None)
            && (other.chars == own.chars || self.octets.is_ascii());
        if fits || self.octets.is_empty() {
            Ok(())
        } else {
            Err(EncodeError::TypeUnsupported)
        }
    }

    /// Whether the octets would be aligned otherwise behind a header that ends at `end`, modulo 8.
    fn is_shifted(&self, end: usize) -> bool {
        !self.octets.is_empty() && end.next_multiple_of(4) & 7 != self.phase
    }

    /// Writes the header in the form that keeps the alignment of the state: one id, a list of one, or a list with one
    /// id more.
    fn write_header(
        &self,
        (list, ids): (Option<usize>, &[Id<'_>]),
        known: &mut WrittenIds,
        w: &mut Writer<'_>,
    ) -> Result<usize, EncodeError> {
        let is_kept = |id: &Id<'_>| is_kept(id.text().as_bytes());
        if !ids.iter().all(is_kept) || ids.len() >= VALUE_IDS_MAX {
            return Err(EncodeError::TypeUnsupported);
        }
        let mut is_list = ids.len() > 1;
        let mut end = w.phase().next_multiple_of(4) + 4 + 4 * usize::from(is_list);
        for id in ids {
            let size = known.place(*id).map_or(id.text().len() + 1, |_| 4);
            end = end.next_multiple_of(4) + 4 + size;
        }
        let is_shifted = self.is_shifted(end);
        let fill = is_list && is_shifted;
        is_list |= is_shifted;
        w.write_u32(FIRST_TAG | CHUNKED | if is_list { ID_LIST } else { ONE_ID })?;
        let start = w.position() - 4;
        if is_list {
            known.note_list(list, w.position());
            w.write_count(ids.len() + usize::from(fill))?;
        }
        ids.iter().try_for_each(|id| known.write(*id, w))?;
        if fill {
            FILL_ID.write(w)?;
        }
        Ok(start)
    }

    /// The octets, with end tags numbered for this level.
    fn octets_at(&self, level: u32) -> Cow<'_, [u8]> {
        let mut octets = Cow::Borrowed(&*self.octets);
        for at in self.ends.iter().filter(|_| level > 1) {
            let number = Reader::new(&self.octets, self.order)
                .at_position(*at)
                .with_origin(*at)
                .read_u32();
            let number = number.unwrap_or_default().wrapping_sub(level - 1);
            put_u32(octets.to_mut(), *at, number, self.order);
        }
        octets
    }
}

/// Whether a chunk contains what looks like an indirection out of the state. `is_outside` gets its target, relative to
/// the start of `data`.
fn leads_outside(data: &[u8], order: ByteOrder, is_outside: impl Fn(i64) -> bool) -> bool {
    let number = |octets: &[u8; 4]| match order {
        ByteOrder::Big => u32::from_be_bytes(*octets),
        ByteOrder::Little => u32::from_le_bytes(*octets),
    };
    // A chunk begins at a multiple of four.
    let (numbers, _) = data.as_chunks::<4>();
    numbers.windows(2).enumerate().any(|(index, pair)| {
        let from = 4 * (index as i64 + 1);
        number(&pair[0]) == WITHOUT_TAG
            && is_outside(from + i64::from(number(&pair[1]).cast_signed()))
    })
}

fn put_u32(octets: &mut [u8], at: usize, number: u32, order: ByteOrder) {
    let number = match order {
        ByteOrder::Big => number.to_be_bytes(),
        ByteOrder::Little => number.to_le_bytes(),
    };
    octets[at..at + 4].copy_from_slice(&number);
}
