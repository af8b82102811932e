//! A message that came in fragments of GIOP 1.1, in which alignment counts anew from the header of each (CORBA 3.3 part
//! 2, clause 9.4.9).
//!
//! A [`Reader`] of such a message sees the octets up to the end of the present fragment, so that reading within a
//! fragment costs nothing more. What does not fit takes a slow path into the next fragment.

use crate::valuetype::ReadValues;
use crate::{DecodeError, DecodeFact, Reader};

/// Octets of a message header. Each fragment has one; joining fragments drops all but the first.
pub(crate) const HEADER_SIZE: usize = 12;

/// The octets of a message's fragments, joined with the first header alone, and where each fragment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divided<'a> {
    octets: &'a [u8],
    ends: &'a [u32],
    /// The values of the message, where they may be shared; those in chunks are read chunk by chunk.
    values: Option<&'a ReadValues>,
}

impl<'a> Divided<'a> {
    /// The fragments end at these indices of `octets`, in ascending order. The octets behind the last index are one
    /// more fragment.
    #[must_use]
    pub const fn new(octets: &'a [u8], ends: &'a [u32]) -> Self {
        Self {
            octets,
            ends,
            values: None,
        }
    }

    /// The same with room for values.
    pub(crate) const fn with_values(mut self, values: &'a ReadValues) -> Self {
        self.values = Some(values);
        self
    }

    /// The values of the message, where they may be shared.
    pub(crate) const fn values(&self) -> Option<&'a ReadValues> {
        self.values
    }

    /// All the octets.
    #[must_use]
    pub const fn octets(&self) -> &'a [u8] {
        self.octets
    }

    /// Where fragments end; empty where alignment counts from the start of the message.
    #[must_use]
    pub const fn ends(&self) -> &'a [u32] {
        self.ends
    }

    /// The octets up to the end of the first fragment.
    pub(crate) fn first(&self) -> &'a [u8] {
        self.up_to_end_behind(0)
    }

    /// The octets up to the end of the fragment that begins at `start`; `None` where no fragment begins there.
    pub(crate) fn after(&self, start: usize) -> Option<&'a [u8]> {
        (start < self.octets.len()).then(|| self.up_to_end_behind(start))
    }

    fn up_to_end_behind(&self, start: usize) -> &'a [u8] {
        let later = self.ends.partition_point(|end| *end as usize <= start);
        let end = self.ends.get(later).map_or(usize::MAX, |end| *end as usize);
        self.octets.get(..end).unwrap_or(self.octets)
    }
}

/// Added to a position in the fragment that begins at `start`, to align it from that fragment's header.
pub(crate) const fn phase_of(start: usize) -> u8 {
    (HEADER_SIZE.wrapping_sub(start) & 7) as u8
}

impl<'a> Reader<'a> {
    /// Returns this reader at the first fragment in which `size` octets, aligned to `alignment`, may end.
    ///
    /// # Errors
    /// [`DecodeFact::ValueDivided`] where they begin in one fragment and end in another; [`DecodeFact::Truncated`].
    #[cold]
    #[inline(never)]
    pub(crate) fn beyond(self, size: usize, alignment: usize) -> Result<Self, DecodeError> {
        let mut there = self;
        loop {
            let start = there.aligned(alignment);
            let fragment = there.bytes();
            if start
                .checked_add(size)
                .is_some_and(|end| end <= fragment.len())
            {
                return Ok(there.at_position(start));
            }
            let Some(next) = there.in_next_fragment() else {
                return Err(self.error(DecodeFact::Truncated));
            };
            if start < fragment.len() {
                return Err(there.error(DecodeFact::ValueDivided));
            }
            there = next;
        }
    }

    /// Returns the next aligned place in a fragment that has octets there; behind the last octet where there is none.
    #[cold]
    #[inline(never)]
    pub(crate) fn aligned_beyond(self, alignment: usize) -> Self {
        let mut there = self;
        while there.position() >= there.bytes().len() {
            let Some(next) = there.in_next_fragment() else {
                return there;
            };
            there = next.at_position(next.aligned(alignment));
        }
        there
    }

    /// Reads the next `count` octets from any number of fragments. The error for too few is at `counted_at`.
    ///
    /// # Errors
    /// [`DecodeFact::LengthExceedsMessage`].
    #[cold]
    #[inline(never)]
    pub(crate) fn octets_beyond(
        self,
        count: usize,
        counted_at: usize,
    ) -> Result<(&'a [u8], Self), DecodeError> {
        let start = self.position();
        let exceeded = DecodeError::new(DecodeFact::LengthExceedsMessage, counted_at);
        if let Some(values) = self.values()
            && values.are_in_chunks()
        {
            return self.octets_of_chunks(count, exceeded, values);
        }
        let octets = self.whole().get(start..);
        let octets = octets.and_then(|rest| rest.get(..count)).ok_or(exceeded)?;
        let mut there = self;
        while there.bytes().len() < start + count {
            there = there.in_next_fragment().ok_or(exceeded)?;
        }
        Ok((octets, there.at_position(start + count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteOrder, Parse};

    /// Joins fragments with a header each, dropping all headers but the first.
    fn joined(fragments: &[&[u8]]) -> (Vec<u8>, Vec<u32>) {
        let mut octets = vec![0; HEADER_SIZE];
        let mut ends = Vec::new();
        for fragment in fragments {
            octets.extend_from_slice(fragment);
            ends.push(octets.len() as u32);
        }
        (octets, ends)
    }

    fn reader<'a>(divided: &'a Divided<'a>) -> Reader<'a> {
        Reader::of_divided(divided, ByteOrder::Big, HEADER_SIZE)
    }

    #[test]
    fn alignment_counts_from_the_header_of_each_fragment() {
        // A double stands 4 octets behind a fragment's header, wherever the fragment stands in the message.
        let (octets, ends) = joined(&[
            &[0, 0, 0, 7],
            &[9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 8],
            &[1],
            &[2, 9, 0, 3],
        ]);
        let divided = Divided::new(&octets, &ends);
        let mut r = reader(&divided);
        assert_eq!(r.remaining(), 21);
        assert_eq!(u32::parse(&mut r), Ok(7));
        assert_eq!(u64::parse(&mut r), Ok(8));
        assert_eq!(r.position(), HEADER_SIZE + 16);
        assert_eq!(
            (u8::parse(&mut r), u8::parse(&mut r), u16::parse(&mut r)),
            (Ok(1), Ok(2), Ok(3))
        );
        r.finish().unwrap();
        assert_eq!(
            u8::parse(&mut r).map_err(|error| error.fact),
            Err(DecodeFact::Truncated)
        );
    }

    #[test]
    fn a_fragment_may_end_before_the_padding_or_behind_it() {
        for first in [&[1_u8][..], &[1, 9], &[1, 9, 9, 9]] {
            let (octets, ends) = joined(&[first, &[], &[0, 0, 0, 2]]);
            let divided = Divided::new(&octets, &ends);
            let mut r = reader(&divided);
            assert_eq!(
                (u8::parse(&mut r), u32::parse(&mut r)),
                (Ok(1), Ok(2)),
                "{first:?}"
            );
        }
    }

    #[test]
    fn octets_run_across_fragments_and_values_do_not() {
        let (octets, ends) = joined(&[&[0, 0, 0, 5, b'a'], b"bc", &[b'd', 0, 0, 1]]);
        let divided = Divided::new(&octets, &ends);
        let mut r = reader(&divided);
        assert_eq!(String::parse(&mut r).as_deref(), Ok("abcd"));
        assert_eq!(
            r.clone().read_u32().map_err(|error| error.fact),
            Err(DecodeFact::Truncated)
        );
        let (octets, ends) = joined(&[&[0, 0], &[0, 1]]);
        let divided = Divided::new(&octets, &ends);
        assert_eq!(
            u32::parse(&mut reader(&divided)).map_err(|error| error.fact),
            Err(DecodeFact::ValueDivided)
        );
    }

    #[test]
    fn sequences_of_numbers_step_over_the_padding_behind_a_header() {
        let (octets, ends) = joined(&[
            &[0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1],
            &[9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3],
        ]);
        let divided = Divided::new(&octets, &ends);
        let mut r = reader(&divided);
        assert_eq!(Vec::<u64>::parse(&mut r), Ok(vec![1, 2, 3]));
        r.finish().unwrap();
        let claims = [0xFF, 0xFF, 0xFF, 0xFF];
        let (octets, ends) = joined(&[&claims, &[0; 8]]);
        let divided = Divided::new(&octets, &ends);
        assert_eq!(
            Vec::<u64>::parse(&mut reader(&divided)).map_err(|error| error.fact),
            Err(DecodeFact::LengthExceedsMessage)
        );
    }
}
