//! Writes values, each once: a second handle of a value becomes an indirection.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{Form, ValueBase};
use crate::limits::VALUE_NESTING_MAX;
use crate::walk::ids::{Id, WrittenIds, write_indirection};
use crate::walk::tags::{CHUNKED, FIRST_TAG, ID_LIST, ONE_ID};
use crate::writer::Place;
use crate::{EncodeError, Write, Writer};

/// The values that were written into one message, and the place among their chunks.
#[derive(Default)]
pub struct WriteValues(RefCell<Written>);

#[derive(Default)]
struct Written {
    chunks: WrittenChunks,
    ids: WrittenIds,
    /// Where each value was written, by its address. The handle keeps the address from being used again.
    seen: HashMap<usize, (usize, Arc<dyn ValueBase>)>,
    /// Values that have begun and not ended.
    depth: u16,
}

impl fmt::Debug for WriteValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteValues")
    }
}

impl WriteValues {
    /// Whether a value in chunks is being written.
    pub(crate) fn are_in_chunks(&self) -> bool {
        self.0.borrow().chunks.level > 0
    }

    /// Lends the place among chunks.
    pub(crate) fn with_chunks<T>(&self, run: impl FnOnce(&mut WrittenChunks) -> T) -> T {
        run(&mut self.0.borrow_mut().chunks)
    }
}

/// The place of a writer among chunks and end tags.
#[derive(Clone, Copy, Default)]
pub(crate) struct WrittenChunks {
    /// Values in chunks that have begun and not ended.
    pub(crate) level: u32,
    /// The open chunk: where it began, and where its size stands.
    chunk: Option<(Place, usize)>,
    /// Where the last end tag stands.
    ended: usize,
}

impl WrittenChunks {
    /// Opens a chunk, unless one is open or none is needed.
    pub(crate) fn open(&mut self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.level > 0 && self.chunk.is_none() {
            let before = w.place();
            w.write_u32(0)?;
            self.chunk = Some((before, w.position() - 4));
        }
        Ok(())
    }

    /// Closes the open chunk; one without octets is taken back.
    pub(crate) fn close(&mut self, w: &mut Writer<'_>) {
        if let Some((before, at)) = self.chunk.take() {
            match w.position() - at - 4 {
                0 => w.go_back(before),
                size => w.patch_u32(at, size as u32),
            }
        }
    }

    /// Begins a value with `count` repository ids. Returns where it begins.
    pub(crate) fn begin<'i>(
        &mut self,
        in_chunks: bool,
        (count, ids): (usize, impl Iterator<Item = Id<'i>>),
        known: &mut WrittenIds,
        w: &mut Writer<'_>,
    ) -> Result<usize, EncodeError> {
        self.close(w);
        self.level += u32::from(in_chunks);
        let chunked = if in_chunks { CHUNKED } else { 0 };
        let form = if count > 1 { ID_LIST } else { ONE_ID };
        w.write_u32(FIRST_TAG | form | chunked)?;
        let start = w.position() - 4;
        if count > 1 {
            w.write_count(count)?;
        }
        for id in ids {
            known.write(id, w)?;
        }
        Ok(start)
    }

    /// Ends the value that began last.
    pub(crate) fn end(&mut self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if self.level == 0 {
            return Ok(());
        }
        self.close(w);
        let tag = self.level.wrapping_neg();
        self.level -= 1;
        // A value that ends together with the last one in it shares its end tag: omniORB accepts no other form.
        if self.ended > 0 && self.ended + 4 == w.position() {
            w.patch_u32(self.ended, tag);
            return Ok(());
        }
        w.write_u32(tag)?;
        self.ended = w.position() - 4;
        Ok(())
    }
}

/// Runs `write`; values that it writes are shared between all its parts.
///
/// # Errors
/// Those of `write`.
pub(crate) fn shared(
    w: &mut Writer<'_>,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    if w.values().is_some() {
        return write(w);
    }
    w.sharing(&WriteValues::default(), write)
}

/// Writes a value, or an indirection to where it was written before.
pub(super) fn value(value: Arc<dyn ValueBase>, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    shared(w, |w| match w.values() {
        Some(values) => once(value, values, w),
        None => Err(EncodeError::TypeUnsupported),
    })
}

fn once(
    value: Arc<dyn ValueBase>,
    values: &WriteValues,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let address = Arc::as_ptr(&value).cast::<()>() as usize;
    let about = value.about();
    {
        let written = &mut *values.0.borrow_mut();
        if let Some((there, _)) = written.seen.get(&address) {
            return write_indirection(*there, w);
        }
        if written.depth >= VALUE_NESTING_MAX {
            return Err(EncodeError::NestingTooDeep);
        }
        written.depth += 1;
        let chunks = &mut written.chunks;
        let in_chunks = chunks.level > 0 || about.form != Form::Plain;
        // Whoever reads a value without chunks cannot pass over its end.
        let ids = if in_chunks {
            about.ids
        } else {
            &about.ids[..1]
        };
        let texts = ids.iter().map(|id| Id::Text(id));
        let start = chunks.begin(in_chunks, (ids.len(), texts), &mut written.ids, w)?;
        chunks.open(w)?;
        written.seen.insert(address, (start, Arc::clone(&value)));
    }
    value.write_state(w)?;
    let written = &mut *values.0.borrow_mut();
    written.depth -= 1;
    written.chunks.end(w)?;
    written.chunks.open(w)
}

/// Writes a member of a value. Behind a text or a sequence a chunk ends: omniORB reads one across two of its buffers
/// wrongly where more follows in the same chunk.
///
/// # Errors
/// As [`Write::write`].
pub fn write_member<T: Write + ?Sized>(member: &T, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let start = w.position();
    member.write(w)?;
    if w.position() - start > 4
        && let Some(values) = w.values()
    {
        let chunks = &mut values.0.borrow_mut().chunks;
        chunks.close(w);
        chunks.open(w)?;
    }
    Ok(())
}
