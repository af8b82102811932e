//! Sinks for the parts of a walked value: nothing, or a writer.

use crate::typecode::{Arena, Kind, Node, ValueModifier, write::write_discriminator};
use crate::valuetype::WrittenChunks;
use crate::walk::ids::{Header, Id, WrittenIds, write_indirection};
use crate::walk::opaque::Opaque;
use crate::{EncodeError, Reader, Write, Writer};

/// Receives the parts of a walk.
pub(super) trait Sink {
    /// Whether the sink ignores all parts.
    const IS_NOWHERE: bool = false;
    /// Whether the rest has the same octets in reader and writer, and need not be walked over.
    fn is_alike(&self, _: &Reader<'_>) -> bool {
        false
    }
    /// `octets` are values of `size` octets each, aligned to at most 8, in the byte order of `r`.
    fn numbers(&mut self, size: usize, octets: &[u8], r: &Reader<'_>) -> Result<(), EncodeError>;
    /// A part that is written by its own `write`.
    fn put(&mut self, value: &(impl Write + ?Sized)) -> Result<(), EncodeError>;
    /// A union's discriminator.
    fn discriminator(&mut self, kind: Kind, number: i64) -> Result<(), EncodeError>;
    /// A value of a value type begins. Returns its place, for [`Sink::again`].
    fn begin(&mut self, arena: &Arena, actual: u32) -> Result<usize, EncodeError>;
    /// The value that began last ends.
    fn end(&mut self) -> Result<(), EncodeError>;
    /// An indirection to the value that began there.
    fn again(&mut self, there: usize) -> Result<(), EncodeError>;
    /// A value with a state that no TypeCode describes; its ids are those of the header, or the declared one where
    /// there are none. Returns its place, for [`Sink::again`].
    fn opaque(
        &mut self,
        header: &Header<'_>,
        declared: Id<'_>,
        state: &Opaque,
    ) -> Result<usize, EncodeError>;
    /// An `any` within begins. Returns the state around it, for [`Sink::end_any`].
    fn begin_any(&mut self) -> AnyState;
    /// The `any` ends. `outer` is the state around it.
    fn end_any(&mut self, outer: AnyState);
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
    fn begin_any(&mut self) -> AnyState {
        AnyState::default()
    }
    fn end_any(&mut self, _: AnyState) {}
}

/// A writer, and the state for writing values of value types.
pub(super) struct Output<'w, 'b> {
    w: &'w mut Writer<'b>,
    any_state: AnyState,
    chunks: WrittenChunks,
    /// The alignment at which the rest has the same octets in reader and writer; `None` where they have to be
    /// converted.
    alignment: Option<usize>,
}

/// The state within one `any`.
#[derive(Default)]
pub(super) struct AnyState {
    /// Whether values that may be read as a base are written in chunks, as they travel; kept values have none.
    is_chunking: bool,
    ids: WrittenIds,
}

impl AnyState {
    fn chunking(is_chunking: bool) -> Self {
        Self {
            is_chunking,
            ..Self::default()
        }
    }
}

impl<'w, 'b> Output<'w, 'b> {
    pub(super) fn new(w: &'w mut Writer<'b>, is_chunking: bool) -> Self {
        let values = w.values();
        Self {
            chunks: values.map_or_else(WrittenChunks::default, |values| values.with_chunks(|c| *c)),
            w,
            any_state: AnyState::chunking(is_chunking),
            alignment: None,
        }
    }

    /// Leaves the writer in a chunk where it was in one.
    pub(super) fn finish(mut self) -> Result<(), EncodeError> {
        let Some(values) = self.w.values() else {
            return Ok(());
        };
        self.chunks.open(self.w)?;
        values.with_chunks(|chunks| *chunks = self.chunks);
        Ok(())
    }

    /// Stops where the rest has the same octets in reader and writer: at places that are equal modulo `alignment`.
    pub(super) const fn until_alike(mut self, alignment: Option<usize>) -> Self {
        self.alignment = alignment;
        self
    }

    /// Opens a chunk, unless one is open or none is needed.
    fn open(&mut self) -> Result<(), EncodeError> {
        self.chunks.open(self.w)
    }

    /// Closes the chunk behind an array. omniORB reads an array across two of its buffers wrongly where more follows in
    /// the same chunk: it takes that for another chunk.
    fn close_behind(&mut self, is_array: bool) {
        if is_array {
            self.chunks.close(self.w);
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
        // More than four octets: a text, or an array.
        self.close_behind(self.w.position() - start > 4);
        Ok(())
    }

    fn discriminator(&mut self, kind: Kind, number: i64) -> Result<(), EncodeError> {
        self.open()?;
        write_discriminator(kind, number, self.w)
    }

    fn begin(&mut self, arena: &Arena, node: u32) -> Result<usize, EncodeError> {
        let is_truncatable =
            |node: &Node| matches!(node, Node::Value { modifier, .. } if *modifier == TRUNCATABLE);
        let in_chunks = self.chunks.level > 0
            || (self.any_state.is_chunking && is_truncatable(arena.node(node)));
        // The type, and the bases that its values may be read as.
        let base = |node: &u32| {
            let base = is_truncatable(arena.node(*node)).then(|| arena.base(*node));
            base.flatten()
        };
        let types = || std::iter::successors(Some(node), base);
        let count = if in_chunks { types().count() } else { 1 };
        let ids = types().take(count).map(|node| Id::Of(arena, node));
        self.chunks
            .begin(in_chunks, (count, ids), &mut self.any_state.ids, self.w)
    }

    fn end(&mut self) -> Result<(), EncodeError> {
        self.chunks.end(self.w)
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
        self.chunks.close(self.w);
        self.chunks.level += 1;
        let ids = || match &*header.texts() {
            [] => vec![declared],
            texts => texts.iter().copied().map(Id::Text).collect(),
        };
        let ids = (header.list(), ids);
        let start = state.write(ids, self.chunks.level, &mut self.any_state.ids, self.w)?;
        self.end()?;
        Ok(start)
    }

    fn begin_any(&mut self) -> AnyState {
        std::mem::replace(&mut self.any_state, AnyState::chunking(true))
    }

    fn end_any(&mut self, outer: AnyState) {
        self.any_state = outer;
    }
}

/// The modifier of value types that may be read as a base.
const TRUNCATABLE: i16 = ValueModifier::Truncatable as i16;
