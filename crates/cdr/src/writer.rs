//! Appends CDR octets to a caller's buffer (CORBA 3.3 part 2, clause 9.3).

use crate::divided::HEADER_SIZE;
use crate::limits::{MESSAGE_SIZE_MAX, UNWRITTEN_SIZE_MIN, WINDOW_STEP, WINDOW_VALUES};
use crate::valuetype::WriteValues;
use crate::window::{WINDOW_SIZE, write_all};
use crate::{ByteOrder, Codec, EncodeError, Reader, Unwritten, Write};

/// Writes CDR at the end of a buffer. Allocates only where the capacity of the buffer ends, and refuses to pass its
/// size limit.
///
/// The octets behind `position` are zero: padding is skipped, not written. They exist only inside [`Writer::windowed`],
/// where writing a slice takes one test for each member of an element; elsewhere the buffer ends at `position`.
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut Vec<u8>,
    position: usize,
    /// Index in the buffer from which alignment counts.
    origin: usize,
    /// Largest index the buffer may end at.
    end_max: usize,
    order: ByteOrder,
    codec: Codec,
    windowed: bool,
    /// Set for a message that is divided for GIOP 1.1. `end_max` is then the end of the present fragment, and `origin`
    /// the place of its header.
    fragments: Option<Fragments>,
    /// The values of the message, where they may be shared.
    values: Option<&'b WriteValues>,
}

/// How a message is divided.
#[derive(Clone, Copy, Debug)]
struct Fragments {
    /// Octets of a fragment with its header; a multiple of 8, so that no aligned value is divided.
    size: usize,
    /// Largest index the buffer may end at.
    end_max: usize,
}

impl<'b> Writer<'b> {
    /// Returns a writer at the end of `buffer`, where alignment counts from; native byte order, and at most
    /// [`MESSAGE_SIZE_MAX`] octets.
    #[must_use]
    #[inline]
    pub fn new(buffer: &'b mut Vec<u8>) -> Self {
        let position = buffer.len();
        Self {
            buffer,
            position,
            origin: position,
            end_max: position.saturating_add(MESSAGE_SIZE_MAX),
            order: ByteOrder::NATIVE,
            codec: Codec::DEFAULT,
            windowed: false,
            fragments: None,
            values: None,
        }
    }

    /// This writer with another byte order.
    #[must_use]
    #[inline]
    pub const fn with_order(mut self, order: ByteOrder) -> Self {
        self.order = order;
        self
    }

    /// This writer with other code sets or another GIOP version.
    #[must_use]
    #[inline]
    pub const fn with_codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// This writer with alignment counted from index `origin` of the buffer.
    #[must_use]
    #[inline]
    pub const fn with_origin(mut self, origin: usize) -> Self {
        self.origin = origin;
        self
    }

    /// This writer with a limit: the buffer gets no longer than `octets`, including what was in it before.
    #[must_use]
    #[inline]
    pub const fn with_limit(mut self, octets: usize) -> Self {
        self.end_max = octets;
        self
    }

    /// This writer with the alignment of GIOP 1.1 fragments: the message begins at the origin and is divided into parts
    /// of `size` octets, headers included (rounded down to a multiple of 8). Set origin and limit first.
    #[must_use]
    #[cold]
    pub fn with_fragments(mut self, size: usize) -> Self {
        let size = size & !7;
        if size > HEADER_SIZE {
            let end_max = self.end_max;
            self.fragments = Some(Fragments { size, end_max });
            self.end_max = self.origin.saturating_add(size).min(end_max);
            self.go_to(self.place().in_fragment(self.fragments));
        }
        self
    }

    /// Whether the next `size` octets stand in one fragment.
    #[inline]
    pub(crate) const fn stands_together(&self, size: usize) -> bool {
        self.fragments.is_none() || size <= self.end_max.saturating_sub(self.position)
    }

    /// Byte order of multi-octet values.
    #[must_use]
    #[inline]
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// GIOP version and code sets.
    #[must_use]
    #[inline]
    pub const fn codec(&self) -> Codec {
        self.codec
    }

    /// Index in the buffer where the next octet goes.
    #[must_use]
    #[inline]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Alignment of the present position: octets from the origin, modulo 8.
    #[must_use]
    #[inline]
    pub const fn phase(&self) -> usize {
        self.position.wrapping_sub(self.origin) & 7
    }

    /// Whether writer and reader are at the same place modulo `alignment`, a power of two.
    #[inline]
    pub(crate) const fn is_alike(&self, r: &Reader<'_>, modulo: usize) -> bool {
        (self.phase() ^ r.phase()) & (modulo - 1) == 0
    }

    /// Returns a writer that continues here on a shorter borrow. Do not use this one before [`Writer::resume`] gets the
    /// place where the other stopped.
    #[inline]
    fn reborrow(&mut self) -> Writer<'_> {
        Writer {
            buffer: self.buffer,
            position: self.position,
            origin: self.origin,
            end_max: self.end_max,
            order: self.order,
            codec: self.codec,
            windowed: self.windowed,
            fragments: self.fragments,
            values: self.values,
        }
    }

    #[inline]
    const fn aligned(&self, alignment: usize) -> usize {
        let from_origin = self.position.wrapping_sub(self.origin);
        self.position
            .wrapping_add(from_origin.wrapping_neg() & (alignment - 1))
    }

    /// Pads with zeros up to a multiple of `alignment` (1, 2, 4 or 8).
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn align(&mut self, alignment: usize) -> Result<(), EncodeError> {
        let start = self.aligned(alignment);
        if start >= self.end_max && self.fragments.is_some() {
            let place = place_beyond(self.buffer, self.place(), self.fragments, alignment)?;
            self.go_to(place);
            return Ok(());
        }
        if start > self.buffer.len() {
            grow(self.buffer, start, self.end_max, self.windowed)?;
        }
        self.position = start;
        Ok(())
    }

    /// The state that changes where the writer goes on to another fragment.
    #[inline]
    pub(crate) const fn place(&self) -> Place {
        Place {
            position: self.position,
            origin: self.origin,
            end_max: self.end_max,
        }
    }

    #[inline]
    const fn go_to(&mut self, place: Place) {
        self.position = place.position;
        self.origin = place.origin;
        self.end_max = place.end_max;
    }

    /// Takes back what was written behind `place`: zeros alone.
    pub(crate) fn go_back(&mut self, place: Place) {
        self.go_to(place);
        if !self.windowed {
            self.buffer.truncate(self.position);
        }
    }

    /// The values of the message, where they may be shared.
    #[inline]
    pub(crate) const fn values(&self) -> Option<&'b WriteValues> {
        self.values
    }

    /// Runs `write` on this writer with room for shared values.
    pub(crate) fn sharing(
        &mut self,
        values: &WriteValues,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let mut inner = self.reborrow();
        inner.values = Some(values);
        let result = write(&mut inner);
        let place = inner.place();
        self.go_to(place);
        result
    }

    /// Writes `N` octets after aligning to `N`.
    #[inline]
    pub(crate) fn write_aligned<const N: usize>(
        &mut self,
        octets: [u8; N],
    ) -> Result<(), EncodeError> {
        let mut start = self.aligned(N);
        let mut end = start.wrapping_add(N);
        if end > self.buffer.len() {
            let is_next = start == self.buffer.len() && end <= self.end_max;
            if is_next && !self.windowed {
                self.buffer.extend_from_slice(&octets);
                self.position = end;
                return Ok(());
            }
            if grow(self.buffer, end, self.end_max, self.windowed).is_err() {
                let place = place_beyond(self.buffer, self.place(), self.fragments, N)?;
                self.go_to(place);
                start = place.position;
                end = start + N;
                grow(self.buffer, end, self.end_max, self.windowed)?;
            }
        }
        if let Some(slot) = self
            .buffer
            .get_mut(start..)
            .and_then(<[u8]>::first_chunk_mut::<N>)
        {
            *slot = octets;
        }
        self.position = end;
        Ok(())
    }

    /// Appends octets as they are, without alignment or count.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn write_octets(&mut self, octets: &[u8]) -> Result<(), EncodeError> {
        let end = self.position.saturating_add(octets.len());
        if end > self.end_max {
            let place = write_octets_beyond(self.buffer, self.place(), self.fragments, octets)?;
            self.go_to(place);
            return Ok(());
        }
        if self.position == self.buffer.len() {
            if octets.len() > self.buffer.capacity() - self.buffer.len() {
                make_room(self.buffer, octets.len())?;
            }
            self.buffer.extend_from_slice(octets);
        } else {
            if end > self.buffer.len() {
                grow(self.buffer, end, self.end_max, self.windowed)?;
            }
            self.buffer[self.position..end].copy_from_slice(octets);
        }
        self.position = end;
        Ok(())
    }

    /// As [`Writer::write_octets`], for the last octets of a message. Many octets are left where they stand; they count
    /// in the size of the message alone.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn write_last_octets<'s>(
        &mut self,
        octets: &'s [u8],
    ) -> Result<Unwritten<'s>, EncodeError> {
        if octets.len() < UNWRITTEN_SIZE_MIN || self.windowed || self.fragments.is_some() {
            return self.write_octets(octets).map(Unwritten::from);
        }
        if octets.len() > self.end_max.saturating_sub(self.position) {
            return Err(EncodeError::MessageTooLarge);
        }
        Ok(octets.into())
    }

    /// Appends the first `len` octets of `block`, whose octets behind `len` are zero: one copy of a size known to the
    /// compiler.
    #[inline]
    pub(crate) fn write_block<const N: usize>(
        &mut self,
        block: &[u8; N],
        len: usize,
    ) -> Result<(), EncodeError> {
        if let Some(slot) = self
            .buffer
            .get_mut(self.position..)
            .and_then(<[u8]>::first_chunk_mut::<N>)
        {
            *slot = *block;
            self.position += len;
            return Ok(());
        }
        self.write_octets(&block[..len])
    }

    /// Appends an octet.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn write_u8(&mut self, value: u8) -> Result<(), EncodeError> {
        self.write_aligned([value])
    }

    /// Appends an `unsigned long`.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn write_u32(&mut self, value: u32) -> Result<(), EncodeError> {
        let value = if self.order.is_native() {
            value
        } else {
            value.swap_bytes()
        };
        self.write_aligned(value.to_ne_bytes())
    }

    /// Appends a count of elements.
    ///
    /// # Errors
    /// [`EncodeError::LengthTooLarge`], [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn write_count(&mut self, count: usize) -> Result<(), EncodeError> {
        self.write_u32(u32::try_from(count).map_err(|_| EncodeError::LengthTooLarge)?)
    }

    /// Appends a `sequence<octet>`.
    ///
    /// # Errors
    /// [`EncodeError::LengthTooLarge`], [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn write_octet_sequence(&mut self, octets: &[u8]) -> Result<(), EncodeError> {
        self.write_count(octets.len())?;
        self.write_octets(octets)
    }

    /// Appends a `string` whose octets are already in the transmission code set; adds the null.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`], [`EncodeError::LengthTooLarge`], [`EncodeError::MessageTooLarge`].
    #[inline]
    pub fn write_string_octets(&mut self, octets: &[u8]) -> Result<(), EncodeError> {
        if octets.contains(&0) {
            return Err(EncodeError::StringHoldsNull);
        }
        self.write_count(octets.len().saturating_add(1))?;
        self.write_octets(octets)?;
        self.write_u8(0)
    }

    /// Overwrites the `unsigned long` at index `at` of the buffer, which was written before.
    ///
    /// # Panics
    /// When `at` is not at least four octets before the present position: our own fault.
    pub fn patch_u32(&mut self, at: usize, value: u32) {
        let value = if self.order.is_native() {
            value
        } else {
            value.swap_bytes()
        };
        assert!(
            at + 4 <= self.position,
            "only what was written can be patched"
        );
        self.buffer[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Opens room for about `size_hint` octets before `write`, so that single values need not ask for it.
    ///
    /// # Errors
    /// Those of `write`.
    #[inline]
    pub fn windowed(
        &mut self,
        size_hint: usize,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if self.windowed {
            return write(self);
        }
        let end = self.position.saturating_add(size_hint).min(self.end_max);
        let end = end.max(self.position);
        if end > self.buffer.capacity() {
            make_room(self.buffer, end - self.buffer.len())?;
        }
        self.buffer.resize(end, 0);
        let mut inner = self.reborrow();
        inner.windowed = true;
        let result = write(&mut inner);
        (self.position, self.origin, self.end_max) = (inner.position, inner.origin, inner.end_max);
        self.buffer.truncate(self.position);
        result
    }

    /// Writes values of a bounded size within windows, as many as possible, and returns the rest.
    #[inline]
    pub(crate) fn write_within<'s, T: Write>(&mut self, slice: &'s [T]) -> &'s [T] {
        if !self.order.is_native() || self.fragments.is_some() {
            return slice;
        }
        let mut rest = slice;
        while !rest.is_empty() {
            let (some, others) = rest.split_at(rest.len().min(WINDOW_VALUES));
            let end = self.position + some.len() * T::SIZE_MAX + WINDOW_SIZE;
            if end > self.end_max {
                break;
            }
            self.buffer.truncate(self.position);
            self.buffer.resize(end, 0);
            let before = self.phase();
            let Some(start) = self.position.checked_sub(before) else {
                break;
            };
            let Some(end) = write_all(&mut self.buffer[start..], before, some) else {
                break;
            };
            self.position = start + end;
            rest = others;
        }
        self.buffer.truncate(self.position);
        rest
    }

    /// Writes an encapsulation (clause 9.3.3): its length, its byte order (this writer's) and what `write` adds,
    /// aligned from its own start.
    ///
    /// # Errors
    /// Those of `write`, [`EncodeError::LengthTooLarge`], [`EncodeError::MessageTooLarge`].
    pub fn write_encapsulation(
        &mut self,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.write_u32(0)?;
        let start = self.position;
        let mut inner = self.reborrow().with_origin(start);
        // For fragments, the content of an encapsulation is octets.
        if let Some(fragments) = inner.fragments.take() {
            inner.end_max = fragments.end_max;
        }
        inner.write_u8(inner.order.flag())?;
        let result = write(&mut inner);
        self.position = inner.position;
        if self.fragments.is_some() {
            // The window opened within may reach beyond the fragment.
            self.buffer.truncate(self.position);
            self.go_to(self.place().in_fragment(self.fragments));
        }
        result?;
        let len = u32::try_from(self.position - start).map_err(|_| EncodeError::LengthTooLarge)?;
        self.patch_u32(start - 4, len);
        Ok(())
    }
}

/// The state that changes where a writer goes on to another fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    position: usize,
    origin: usize,
    end_max: usize,
}

impl Place {
    /// The limits in the fragment that contains the position, or ends at it.
    fn in_fragment(mut self, fragments: Option<Fragments>) -> Self {
        while let Some(Fragments { size, end_max }) = fragments
            && self.position > self.end_max
            && self.end_max < end_max
        {
            self.origin = self.end_max - HEADER_SIZE;
            self.end_max = self.origin.saturating_add(size).min(end_max);
        }
        self
    }
}

/// Returns the first aligned place in the next fragment; the present one is padded to its end. These functions take no
/// writer, so that one can be kept in registers.
#[cold]
#[inline(never)]
fn place_beyond(
    buffer: &mut Vec<u8>,
    place: Place,
    fragments: Option<Fragments>,
    alignment: usize,
) -> Result<Place, EncodeError> {
    let Fragments { size, end_max } = fragments.ok_or(EncodeError::MessageTooLarge)?;
    let end = place.end_max;
    if end >= end_max {
        return Err(EncodeError::MessageTooLarge);
    }
    // The header in front of the place is aligned to 4 and no more.
    let position = end + HEADER_SIZE.wrapping_neg() % alignment;
    let origin = end - HEADER_SIZE;
    let end_max = origin.saturating_add(size).min(end_max);
    if position > end_max {
        return Err(EncodeError::MessageTooLarge);
    }
    if buffer.len() < position {
        buffer.resize(position, 0);
    }
    Ok(Place {
        position,
        origin,
        end_max,
    })
}

/// The octets continue in the next fragment.
#[cold]
#[inline(never)]
fn write_octets_beyond(
    buffer: &mut Vec<u8>,
    place: Place,
    fragments: Option<Fragments>,
    octets: &[u8],
) -> Result<Place, EncodeError> {
    let end_max = fragments.ok_or(EncodeError::MessageTooLarge)?.end_max;
    let position = place.position.saturating_add(octets.len());
    if position > end_max {
        return Err(EncodeError::MessageTooLarge);
    }
    buffer.truncate(place.position);
    make_room(buffer, octets.len())?;
    buffer.extend_from_slice(octets);
    Ok(Place { position, ..place }.in_fragment(fragments))
}

/// Makes the buffer reach `end`, and somewhat further inside a window. Takes no writer, so that one can be kept in
/// registers.
#[cold]
#[inline(never)]
fn grow(
    buffer: &mut Vec<u8>,
    end: usize,
    end_max: usize,
    windowed: bool,
) -> Result<(), EncodeError> {
    if end > end_max {
        return Err(EncodeError::MessageTooLarge);
    }
    let len = if windowed {
        end.saturating_add(WINDOW_STEP).min(end_max)
    } else {
        end
    };
    make_room(buffer, len.saturating_sub(buffer.len()))?;
    buffer.resize(len, 0);
    Ok(())
}

/// Makes room for `more` octets: what a message takes may be what a peer has asked for.
#[cold]
#[inline(never)]
fn make_room(buffer: &mut Vec<u8>, more: usize) -> Result<(), EncodeError> {
    let made = buffer.try_reserve(more);
    made.map_err(|_| EncodeError::MemoryExhausted)
}
