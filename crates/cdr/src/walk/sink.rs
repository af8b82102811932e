//! Where the parts of a walked value go: nowhere, or into a writer.

use crate::typecode::{Arena, Kind, Node, ValueModifier, write::write_discriminator};
use crate::walk::ids::{Header, Id, WrittenIds, write_indirection};
use crate::walk::opaque::Opaque;
use crate::walk::tags::{CHUNKED, FIRST_TAG, ID_LIST, ONE_ID};
use crate::{EncodeError, Reader, Write, Writer};

/// Where a walk's parts go.
pub(super) trait Sink {
    /// Whether parts need not be told.
    const IS_NOWHERE: bool = false;
    /// Whether all that the reader has left is the same where it goes, and need not be walked over.
    fn is_alike(&self, _: &Reader<'_>) -> bool {
        false
    }
    /// `octets` are values of `size` octets each, aligned to at most 8, in the byte order of `r`.
    fn numbers(&mut self, size: usize, octets: &[u8], r: &Reader<'_>) -> Result<(), EncodeError>;
    /// A value that is written as it is.
    fn put(&mut self, value: &(impl Write + ?Sized)) -> Result<(), EncodeError>;
    /// A union's discriminator.
    fn discriminator(&mut self, kind: Kind, number: i64) -> Result<(), EncodeError>;
    /// A value of a value type begins; where it does is what [`Sink::again`] is told.
    fn begin(&mut self, arena: &Arena, actual: u32) -> Result<usize, EncodeError>;
    /// The value that began last ends.
    fn end(&mut self) -> Result<(), EncodeError>;
    /// The value that began there, once more.
    fn again(&mut self, there: usize) -> Result<(), EncodeError>;
    /// A value with these ids, or of the declared type where there are none, whose state only its own code can read; where it begins is what
    /// [`Sink::again`] is told.
    fn opaque(
        &mut self,
        header: &Header<'_>,
        declared: Id<'_>,
        state: &Opaque,
    ) -> Result<usize, EncodeError>;
    /// An `any` within begins; gives what [`Sink::end_any`] is told.
    fn begin_any(&mut self) -> Around;
    /// The `any` ends.
    fn end_any(&mut self, around: Around);
}

pub(super) struct Nowhere;

impl Sink for Nowhere {
    const IS_NOWHERE: bool = true;

    fn numbers(&mut self, _: usize, _: &[u8], _: &Reader<'_>) -> Result<(), EncodeError> {
        Ok(())
    }
    fn put(&mut self, _: &(impl Write + ?Sized)) -> Result<(), EncodeError> {
        Ok(())
    }
    fn discriminator(&mut self, _: Kind, _: i64) -> Result<(), EncodeError> {
        Ok(())
    }
    fn begin(&mut self, _: &Arena, _: u32) -> Result<usize, EncodeError> {
        Ok(0)
    }
    fn end(&mut self) -> Result<(), EncodeError> {
        Ok(())
    }
    fn again(&mut self, _: usize) -> Result<(), EncodeError> {
        Ok(())
    }
    fn opaque(&mut self, _: &Header<'_>, _: Id<'_>, _: &Opaque) -> Result<usize, EncodeError> {
        Ok(0)
    }
    fn begin_any(&mut self) -> Around {
        Around::default()
    }
    fn end_any(&mut self, _: Around) {}
}

/// A writer, and how values of value types are written to it.
pub(super) struct Output<'w, 'b> {
    w: &'w mut Writer<'b>,
    around: Around,
    /// Values in chunks that have begun and not ended.
    level: u32,
    /// Where the size of the open chunk stands.
    chunk: Option<usize>,
    /// Where the end tag stands that was written last.
    ended: usize,
    /// Modulo what reader and writer have to be at the same place for the rest to be the same; none where it would not be.
    alignment: Option<usize>,
}

/// What is so within one `any`.
#[derive(Default)]
pub(super) struct Around {
    /// Values that may be read as their base come in chunks, as they travel; else none does, as they are kept.
    is_chunking: bool,
    ids: WrittenIds,
}

impl Around {
    fn chunking(is_chunking: bool) -> Self {
        Self {
            is_chunking,
            ..Self::default()
        }
    }
}

impl<'w, 'b> Output<'w, 'b> {
    pub(super) fn new(w: &'w mut Writer<'b>, is_chunking: bool) -> Self {
        Self {
            w,
            around: Around::chunking(is_chunking),
            level: 0,
            chunk: None,
            ended: 0,
            alignment: None,
        }
    }

    /// Up to where the rest of the value is the same in reader and writer, which is so where they are at places that are the same modulo `alignment`.
    pub(super) const fn until_alike(mut self, alignment: Option<usize>) -> Self {
        self.alignment = alignment;
        self
    }

    /// Opens a chunk where there has to be one.
    fn open(&mut self) -> Result<(), EncodeError> {
        if self.level > 0 && self.chunk.is_none() {
            self.w.write_u32(0)?;
            self.chunk = Some(self.w.position() - 4);
        }
        Ok(())
    }

    /// Closes the chunk behind what is an array for omniORB, or may be one: where that goes on from one of its buffers to the next, omniORB
    /// takes what follows in the same chunk for another chunk.
    fn close_behind(&mut self, is_array: bool) {
        if is_array {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(at) = self.chunk.take() {
            let size = self.w.position() - at - 4;
            self.w.patch_u32(at, size as u32);
        }
    }
}

impl Sink for Output<'_, '_> {
    fn is_alike(&self, r: &Reader<'_>) -> bool {
        let is_alike = |alignment| self.w.is_alike(r, alignment);
        self.alignment.is_some_and(is_alike) && self.w.stands_together(r.remaining())
    }

    fn numbers(&mut self, size: usize, octets: &[u8], r: &Reader<'_>) -> Result<(), EncodeError> {
        if octets.is_empty() {
            return Ok(());
        }
        self.open()?;
        let w = &mut *self.w;
        w.align(size.min(8))?;
        let is_swapped = size != 1 && w.order() != r.order();
        if !is_swapped && (size == 1 || w.stands_together(octets.len())) {
            w.write_octets(octets)?;
            self.close_behind(octets.len() > size);
            return Ok(());
        }
        octets.chunks_exact(size).try_for_each(|number| {
            let mut kept = [0; 16];
            let kept = &mut kept[..size];
            kept.copy_from_slice(number);
            if is_swapped {
                kept.reverse();
            }
            w.align(size.min(8))?;
            w.write_octets(kept)
        })?;
        self.close_behind(octets.len() > size);
        Ok(())
    }

    fn put(&mut self, value: &(impl Write + ?Sized)) -> Result<(), EncodeError> {
        self.open()?;
        let start = self.w.position();
        value.write(self.w)?;
        // A text is longer than a number.
        self.close_behind(self.w.position() - start > 4);
        Ok(())
    }

    fn discriminator(&mut self, kind: Kind, number: i64) -> Result<(), EncodeError> {
        self.open()?;
        write_discriminator(kind, number, self.w)
    }

    fn begin(&mut self, arena: &Arena, node: u32) -> Result<usize, EncodeError> {
        self.close();
        let is_truncatable = |node: &Node| matches!(node, Node::Value { modifier, .. } if *modifier == ValueModifier::Truncatable as i16);
        let in_chunks =
            self.level > 0 || (self.around.is_chunking && is_truncatable(arena.node(node)));
        self.level += u32::from(in_chunks);
        let chunked = if in_chunks { CHUNKED } else { 0 };
        // The type, and what values of it may be read as instead.
        let base = |node: &u32| {
            let base = is_truncatable(arena.node(*node)).then(|| arena.base(*node));
            base.flatten()
        };
        let types = || std::iter::successors(Some(node), base);
        let count = if in_chunks { types().count() } else { 1 };
        let form = if count > 1 { ID_LIST } else { ONE_ID };
        self.w.write_u32(FIRST_TAG | form | chunked)?;
        let start = self.w.position() - 4;
        if count > 1 {
            self.w.write_count(count)?;
        }
        for node in types().take(count) {
            let id = Id::Of(arena, node);
            self.around.ids.write(id, self.w)?;
        }
        Ok(start)
    }

    fn end(&mut self) -> Result<(), EncodeError> {
        if self.level == 0 {
            return Ok(());
        }
        self.close();
        let tag = self.level.wrapping_neg();
        self.level -= 1;
        // A value that ends with the last one in it shares its end tag: omniORB takes no other.
        if self.ended > 0 && self.ended + 4 == self.w.position() {
            self.w.patch_u32(self.ended, tag);
            return Ok(());
        }
        self.w.write_u32(tag)?;
        self.ended = self.w.position() - 4;
        Ok(())
    }

    fn again(&mut self, there: usize) -> Result<(), EncodeError> {
        self.open()?;
        write_indirection(there, self.w)
    }

    fn opaque(
        &mut self,
        header: &Header<'_>,
        declared: Id<'_>,
        state: &Opaque,
    ) -> Result<usize, EncodeError> {
        self.close();
        self.level += 1;
        let ids = || match &*header.texts() {
            [] => vec![declared],
            texts => texts.iter().copied().map(Id::Text).collect(),
        };
        let ids = (header.list(), ids);
        let start = state.write(ids, self.level, &mut self.around.ids, self.w)?;
        self.end()?;
        Ok(start)
    }

    fn begin_any(&mut self) -> Around {
        std::mem::replace(&mut self.around, Around::chunking(true))
    }

    fn end_any(&mut self, around: Around) {
        self.around = around;
    }
}
