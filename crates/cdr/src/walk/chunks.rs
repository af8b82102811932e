//! Values in chunks: the place of a walk among chunks and end tags (CORBA 3.3 part 2, clause 9.3.4.5).

use super::ids::Header;
use super::tags::{CHUNKED, FIRST_TAG, LAST_TAG};
use crate::{DecodeError, DecodeFact, Reader};

/// The place of a walk within values in chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Chunks {
    /// Values in chunks that have begun and not ended.
    level: u32,
    /// Where the present chunk ends; a place already passed where there is none.
    end: usize,
    /// The outermost value that an end tag has already ended; 0 for none.
    ended: u32,
}

impl Chunks {
    /// This place, with the end of the present chunk.
    pub(crate) const fn with_end(mut self, end: usize) -> Self {
        self.end = end;
        self
    }

    /// Where the present chunk ends.
    pub(crate) const fn end(&self) -> usize {
        self.end
    }

    /// Whether the walk is within a value in chunks.
    pub(crate) const fn are_there(&self) -> bool {
        self.level > 0
    }

    /// Octets left in the present chunk.
    pub(super) const fn left(&self, r: &Reader<'_>) -> usize {
        self.end.saturating_sub(r.position())
    }

    /// Before a part is read: goes into the next chunk where the present one has ended. Does nothing outside chunks.
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

    /// After a part was read: fails where it passed the end of its chunk.
    #[inline]
    pub(super) fn leave(&self, r: &Reader<'_>) -> Result<(), DecodeError> {
        if self.level > 0 && r.position() > self.end {
            return Err(r.error(DecodeFact::ChunkMalformed));
        }
        Ok(())
    }

    /// Goes into the next chunk. Returns false where no chunk follows.
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

    /// There is no present chunk: a value in chunks begins or ends here.
    pub(super) fn none_at(&mut self, r: &Reader<'_>) {
        self.end = r.position();
    }

    /// After null or an indirection, which may stand in a chunk or between chunks.
    pub(crate) fn settle(&mut self, is_inside: bool, r: &Reader<'_>) -> Result<(), DecodeError> {
        if is_inside {
            return self.leave(r);
        }
        self.none_at(r);
        Ok(())
    }

    /// Whether the walk is in a chunk, after going into the next one where there is one.
    pub(crate) fn go_inside(&mut self, r: &mut Reader<'_>) -> Result<bool, DecodeError> {
        Ok(r.position() < self.end || self.open(r)?)
    }

    /// Passes over a whole value that no type describes, behind its header. Returns where its state ends, and its
    /// level.
    pub(super) fn pass(&mut self, r: &mut Reader<'_>) -> Result<(usize, u32), DecodeError> {
        self.begin_value(r);
        let end = self.end_value(r, true)?;
        Ok((end, self.level + 1))
    }

    /// A value in chunks begins, behind its header.
    pub(crate) fn begin_value(&mut self, r: &Reader<'_>) {
        self.level += 1;
        self.none_at(r);
    }

    /// Reads up to the end of the present value, and returns where its end tag stands. Where the value is read as its
    /// base, the members of the derived type are passed over.
    pub(crate) fn end_value(
        &mut self,
        r: &mut Reader<'_>,
        is_base: bool,
    ) -> Result<usize, DecodeError> {
        let end = self.find_end(r, is_base)?;
        self.level -= 1;
        self.none_at(r);
        Ok(end)
    }

    fn find_end(&mut self, r: &mut Reader<'_>, is_base: bool) -> Result<usize, DecodeError> {
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
