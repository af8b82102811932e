//! A cursor over CDR octets (CORBA 3.3 part 2, clause 9.3).

use crate::divided::phase_of;
use crate::limits::NESTING_MAX;
use crate::room::room;
use crate::window::{ReadWindows, WINDOW_SIZE};
use crate::{ByteOrder, Codec, DecodeError, DecodeFact, Divided, Parse};

/// Reads CDR from a slice. Positions and the offsets of errors count from the start of the slice. Alignment counts from
/// an origin, by default the start of the slice. Cheap to copy: a copy is a place to return to.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Added to `position` before aligning: the negated origin, modulo 8.
    phase: u8,
    order: ByteOrder,
    codec: Codec,
    depth_left: u8,
    /// The message, where it came in fragments that are aligned separately; `bytes` then ends with the present
    /// fragment.
    divided: Option<&'a Divided<'a>>,
}

impl<'a> Reader<'a> {
    /// Returns a reader at the start of `bytes`; alignment counts from there too.
    #[must_use]
    #[inline]
    pub const fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self {
            bytes,
            position: 0,
            phase: 0,
            order,
            codec: Codec::DEFAULT,
            depth_left: NESTING_MAX,
            divided: None,
        }
    }

    /// Returns a reader at `position` of a message in fragments of GIOP 1.1; alignment counts from the header of each
    /// fragment.
    #[must_use]
    pub fn of_divided(divided: &'a Divided<'a>, order: ByteOrder, position: usize) -> Self {
        let mut reader = Self {
            divided: Some(divided),
            ..Self::new(divided.first(), order)
        };
        reader.go_on_to(position);
        reader
    }

    /// Moves this reader forward to `position`, in the fragment that it stands in.
    pub(crate) fn go_on_to(&mut self, position: usize) {
        while position > self.bytes.len()
            && let Some(next) = self.in_next_fragment()
        {
            self.go_to(next);
        }
        self.position = position;
    }

    /// Whether the message came in fragments that are aligned separately.
    #[must_use]
    #[inline]
    pub const fn is_divided(&self) -> bool {
        self.divided.is_some()
    }

    /// Returns this reader at the start of the next fragment; `None` in the last.
    pub(crate) fn in_next_fragment(self) -> Option<Self> {
        let start = self.bytes.len();
        let divided = self.divided?;
        if let Some(values) = divided.values()
            && values.are_in_chunks()
        {
            return self.in_next_chunk(values);
        }
        Some(Self {
            bytes: divided.after(start)?,
            position: start,
            phase: phase_of(start),
            ..self
        })
    }

    /// The parts of the message behind the present one, where it has any.
    pub(crate) const fn divided(&self) -> Option<&'a Divided<'a>> {
        self.divided
    }

    /// This reader of a message in these parts.
    #[must_use]
    pub fn with_parts<'b>(&self, parts: &'b Divided<'b>) -> Reader<'b>
    where
        'a: 'b,
    {
        Reader {
            divided: Some(parts),
            ..*self
        }
    }

    pub(crate) const fn without_parts(mut self) -> Self {
        self.divided = None;
        self
    }

    /// This reader of a longer or shorter slice that begins with the same octets.
    pub(crate) const fn with_bytes(mut self, bytes: &'a [u8]) -> Self {
        self.bytes = bytes;
        self
    }

    /// The whole slice, with the fragments that follow.
    pub(crate) fn whole(&self) -> &'a [u8] {
        self.divided.map_or(self.bytes, Divided::octets)
    }

    /// This reader with other code sets or another GIOP version.
    #[must_use]
    #[inline]
    pub const fn with_codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// This reader at `position` of its slice; past its end every read fails.
    #[must_use]
    #[inline]
    pub const fn at_position(mut self, position: usize) -> Self {
        self.position = position;
        self
    }

    /// This reader with alignment counted from `origin` of its slice.
    #[must_use]
    #[inline]
    pub const fn with_origin(mut self, origin: usize) -> Self {
        self.phase = (origin.wrapping_neg() & 7) as u8;
        self
    }

    /// This reader with the first octet of its slice at alignment `phase` modulo 8.
    #[must_use]
    #[inline]
    pub const fn with_phase(mut self, phase: usize) -> Self {
        self.phase = (phase & 7) as u8;
        self
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

    /// Octets from the start of the slice.
    #[must_use]
    #[inline]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Alignment of the present position: octets from the origin, modulo 8.
    #[must_use]
    #[inline]
    pub const fn phase(&self) -> usize {
        self.position.wrapping_add(self.phase as usize) & 7
    }

    /// The whole slice. Of a message in fragments of GIOP 1.1: its octets up to the end of the present fragment.
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Octets not yet read.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> usize {
        self.whole().len().saturating_sub(self.position)
    }

    /// Whether at least `size` octets are not yet read.
    #[inline]
    fn holds(&self, size: usize) -> bool {
        size <= self.bytes.len().saturating_sub(self.position) || size <= self.remaining()
    }

    /// An error at the present position.
    #[must_use]
    #[inline]
    pub fn error(&self, fact: DecodeFact) -> DecodeError {
        DecodeError::new(fact, self.position)
    }

    /// Skips padding up to a multiple of `alignment` (1, 2, 4 or 8). Padding past the end of the slice is an error only
    /// for the value after it, so a body that ends in padding is whole.
    #[inline]
    pub fn align(&mut self, alignment: usize) {
        self.position = self.aligned(alignment);
        if self.position >= self.bytes.len() && self.divided.is_some() {
            self.go_to(self.aligned_beyond(alignment));
        }
    }

    #[inline]
    pub(crate) const fn aligned(&self, alignment: usize) -> usize {
        let from_origin = self.position.wrapping_add(self.phase as usize);
        self.position
            .wrapping_add(from_origin.wrapping_neg() & (alignment - 1))
    }

    /// Moves this reader to where a copy of it went on to. Byte order and codec stay, so that a loop need not load them
    /// again.
    #[inline]
    pub(crate) const fn go_to(&mut self, there: Self) {
        self.bytes = there.bytes;
        self.position = there.position;
        self.phase = there.phase;
    }

    /// Reads `N` octets after aligning to `N`.
    #[inline]
    pub(crate) fn read_aligned<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let start = self.aligned(N);
        match self.bytes.get(start..).and_then(<[u8]>::first_chunk::<N>) {
            Some(octets) => {
                self.position = start + N;
                Ok(*octets)
            }
            None => {
                let (octets, there) = self.read_aligned_beyond()?;
                self.go_to(there);
                Ok(octets)
            }
        }
    }

    #[cold]
    fn read_aligned_beyond<const N: usize>(self) -> Result<([u8; N], Self), DecodeError> {
        let there = self.beyond(N, N)?;
        let octets = there.bytes[there.position..].first_chunk::<N>();
        let octets = octets.ok_or_else(|| self.error(DecodeFact::Truncated))?;
        Ok((*octets, there.at_position(there.position + N)))
    }

    /// Lends `count` values of `size` octets each, after aligning, where they stand in one piece.
    #[inline]
    pub(crate) fn lend_run(&mut self, size: usize, count: usize) -> Option<&'a [u8]> {
        let start = self.aligned(size.min(8));
        let octets = self.bytes.get(start..)?.get(..count.saturating_mul(size))?;
        self.position = start + octets.len();
        Some(octets)
    }

    /// As [`Reader::lend_run`], for values that begin at a multiple of `lead`, where that is a multiple of `alignment`
    /// too.
    #[inline]
    pub(crate) fn lend_whole(
        &mut self,
        size: usize,
        count: usize,
        (lead, alignment): (usize, usize),
    ) -> Option<&'a [u8]> {
        let there = self.at_position(self.aligned(lead));
        let octets = self.bytes.get(there.position..)?;
        let octets = octets.get(..count.checked_mul(size)?)?;
        if !there.phase().is_multiple_of(alignment) {
            return None;
        }
        self.position = there.position + octets.len();
        Some(octets)
    }

    /// Reads an octet.
    ///
    /// # Errors
    /// [`DecodeFact::Truncated`].
    #[inline]
    pub fn read_u8(&mut self) -> Result<u8, DecodeError> {
        let [octet] = self.read_aligned()?;
        Ok(octet)
    }

    /// Reads an `unsigned long`.
    ///
    /// # Errors
    /// [`DecodeFact::Truncated`].
    #[inline]
    pub fn read_u32(&mut self) -> Result<u32, DecodeError> {
        u32::parse(self)
    }

    /// Lends the next `count` octets.
    ///
    /// # Errors
    /// [`DecodeFact::LengthExceedsMessage`].
    #[inline]
    pub fn read_octets(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        match self
            .bytes
            .get(self.position..)
            .and_then(|rest| rest.get(..count))
        {
            Some(octets) => {
                self.position += count;
                Ok(octets)
            }
            None => {
                let (octets, there) = self.octets_beyond(count, self.position)?;
                self.go_to(there);
                Ok(octets)
            }
        }
    }

    /// Reads a count of elements, each of at least `size_min` octets (at least 1), and checks it against what remains.
    ///
    /// # Errors
    /// [`DecodeFact::Truncated`], [`DecodeFact::LengthExceedsMessage`].
    #[inline]
    pub fn read_count(&mut self, size_min: usize) -> Result<usize, DecodeError> {
        let count = self.read_u32()? as usize;
        match count.checked_mul(size_min.max(1)) {
            Some(size) if self.holds(size) => Ok(count),
            _ => Err(DecodeError::new(
                DecodeFact::LengthExceedsMessage,
                self.position - 4,
            )),
        }
    }

    /// Returns `count` if that many elements of `T` fit into the octets that remain.
    ///
    /// # Errors
    /// [`DecodeFact::LengthExceedsMessage`].
    #[inline]
    pub fn admissible<T: Parse<'a>>(&self, count: usize) -> Result<usize, DecodeError> {
        match count.checked_mul(T::SIZE_MIN.max(1)) {
            Some(size) if self.holds(size) => Ok(count),
            _ => Err(self.error(DecodeFact::LengthExceedsMessage)),
        }
    }

    /// Lends a `sequence<octet>`.
    ///
    /// # Errors
    /// [`DecodeFact::Truncated`], [`DecodeFact::LengthExceedsMessage`].
    #[inline]
    pub fn read_octet_sequence(&mut self) -> Result<&'a [u8], DecodeError> {
        if let Some((octets, end)) = self.counted_here() {
            self.position = end;
            return Ok(octets);
        }
        let (octets, there) = self.counted_beyond()?;
        self.go_to(there);
        Ok(octets)
    }

    /// Returns the octets behind a count and where they end, where both stand in the present fragment.
    #[inline]
    fn counted_here(&self) -> Option<(&'a [u8], usize)> {
        let start = self.aligned(4);
        let (count, rest) = self.bytes.get(start..)?.split_first_chunk::<4>()?;
        let count = u32::from_ne_bytes(*count);
        let count = if self.order.is_native() {
            count
        } else {
            count.swap_bytes()
        };
        let octets = rest.get(..count as usize)?;
        Some((octets, start + 4 + octets.len()))
    }

    /// The slow path: step by step, with the error of each step.
    #[cold]
    #[inline(never)]
    fn counted_beyond(mut self) -> Result<(&'a [u8], Self), DecodeError> {
        let count = self.read_u32()? as usize;
        let counted_at = self.position - 4;
        self.octets_beyond(count, counted_at)
    }

    /// Lends the octets of a `string` without the terminating null, in whatever code set they are.
    ///
    /// # Errors
    /// [`DecodeFact::Truncated`], [`DecodeFact::LengthExceedsMessage`], [`DecodeFact::StringLengthZero`],
    /// [`DecodeFact::StringNotTerminated`].
    #[inline]
    pub fn read_string_octets(&mut self) -> Result<&'a [u8], DecodeError> {
        if let Some(([text @ .., 0], end)) = self.counted_here() {
            self.position = end;
            return Ok(text);
        }
        let (text, there) = self.string_beyond()?;
        self.go_to(there);
        Ok(text)
    }

    /// The slow path: step by step, with the error of each step.
    #[cold]
    #[inline(never)]
    fn string_beyond(mut self) -> Result<(&'a [u8], Self), DecodeError> {
        let octets = self.read_octet_sequence()?;
        match octets.split_last() {
            Some((0, text)) => Ok((text, self)),
            Some(_) => Err(DecodeError::new(
                DecodeFact::StringNotTerminated,
                self.position - 1,
            )),
            None => Err(DecodeError::new(
                DecodeFact::StringLengthZero,
                self.position - 4,
            )),
        }
    }

    /// Reads up to `count` values of a bounded size within windows. Stops before the first value that may pass the end
    /// of the window or of the fragment. The vector has room for `count`.
    ///
    /// # Errors
    /// [`DecodeFact::MemoryExhausted`].
    #[inline]
    pub(crate) fn parse_within<T: Parse<'a>>(
        &mut self,
        count: usize,
    ) -> Result<Vec<T>, DecodeError> {
        let mut values = room(count, self)?;
        if !self.order.is_native() || self.divided.is_some() {
            return Ok(values);
        }
        loop {
            let before = self.phase();
            let start = self.position.wrapping_sub(before);
            let rest = self.bytes.get(start..).unwrap_or_default();
            // So many values fit into their windows however long each is.
            let some = rest.len().saturating_sub(WINDOW_SIZE + before) / T::SIZE_MAX + 1;
            let some = some.min(count - values.len());
            let Some(mut windows) = ReadWindows::new(rest, before).filter(|_| some > 0) else {
                return Ok(values);
            };
            let had = values.len();
            // No bounds check per value: an early exit, even one never taken, makes the compiler spill the whole value.
            values.extend((0..some).map(|_| T::parse_within(windows.next())));
            let Some(left) = windows.left() else {
                values.truncate(had);
                return Ok(values);
            };
            self.position = self.bytes.len() - left;
        }
    }

    /// How many levels deeper values may nest.
    pub(crate) const fn depth_left(&self) -> u8 {
        self.depth_left
    }

    /// Runs `read` one level deeper, on a copy of the cursor that a loop can keep in registers.
    ///
    /// # Errors
    /// [`DecodeFact::NestingTooDeep`], and those of `read`.
    #[inline]
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let mut inner = *self;
        match inner.depth_left.checked_sub(1) {
            Some(depth_left) => inner.depth_left = depth_left,
            None => return Err(self.error(DecodeFact::NestingTooDeep)),
        }
        let value = read(&mut inner)?;
        self.go_to(inner);
        Ok(value)
    }

    /// Reads an encapsulation (clause 9.3.3). Returns a reader over its octets, with its own byte order and alignment,
    /// one level deeper. This reader then stands behind the encapsulation.
    ///
    /// # Errors
    /// Those of [`Reader::read_octet_sequence`], [`DecodeFact::EncapsulationEmpty`], [`DecodeFact::ByteOrderUnknown`],
    /// [`DecodeFact::NestingTooDeep`].
    pub fn read_encapsulation(&mut self) -> Result<Self, DecodeError> {
        let octets = self.read_octet_sequence()?;
        let start = self.position - octets.len();
        let inner = Self {
            bytes: &self.bytes[..self.position],
            position: start,
            divided: None,
            ..*self
        };
        inner.into_encapsulation()
    }

    /// Returns the rest of the slice as the content of an encapsulation: byte order first, alignment from here.
    ///
    /// # Errors
    /// [`DecodeFact::EncapsulationEmpty`], [`DecodeFact::ByteOrderUnknown`], [`DecodeFact::NestingTooDeep`].
    pub fn into_encapsulation(self) -> Result<Self, DecodeError> {
        let mut inner = self.with_origin(self.position);
        let Ok(flag) = inner.read_u8() else {
            return Err(self.error(DecodeFact::EncapsulationEmpty));
        };
        inner.order =
            ByteOrder::from_flag(flag).ok_or_else(|| self.error(DecodeFact::ByteOrderUnknown))?;
        inner.depth_left = self
            .depth_left
            .checked_sub(1)
            .ok_or_else(|| self.error(DecodeFact::NestingTooDeep))?;
        Ok(inner)
    }

    /// Succeeds where no octets are left.
    ///
    /// # Errors
    /// [`DecodeFact::OctetsLeftOver`].
    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.remaining() == 0 {
            Ok(())
        } else {
            Err(self.error(DecodeFact::OctetsLeftOver))
        }
    }
}
