//! `string<N>` kept inline, without heap.

use crate::limits::INLINE_STRING_MAX;
use crate::text::decode_text;
use crate::{
    CharSet, DecodeError, DecodeFact, EncodeError, Parse, ReadWindow, Reader, Write, WriteWindow,
    Writer,
};
use std::fmt;
use std::ops::Deref;

/// A `string<N>` of at most `N` octets of UTF-8 (N <= 255), inline. The octets behind its end are zero, so that it can
/// be copied whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BoundedString<const N: usize> {
    len: u8,
    octets: [u8; N],
}

impl<const N: usize> BoundedString<N> {
    const FITS: () = assert!(
        N <= INLINE_STRING_MAX,
        "a longer bounded string is a String"
    );

    /// The empty string.
    #[must_use]
    pub const fn new() -> Self {
        let () = Self::FITS;
        Self {
            len: 0,
            octets: [0; N],
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Every constructor checks that the octets are UTF-8.
        std::str::from_utf8(self.as_octets()).unwrap_or_default()
    }

    /// The octets of the text.
    #[must_use]
    #[inline]
    pub fn as_octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }

    /// Reads a short plain text (ASCII, null-terminated, within the bound) by one copy, without a loop. Reads nothing
    /// where the octets are anything else, or too near the end of the slice.
    #[inline]
    fn parse_plain(r: &mut Reader<'_>) -> Option<Self> {
        if N > WORD {
            return None;
        }
        let mut ahead = *r;
        let len = (ahead.read_u32().ok()? as usize)
            .checked_sub(1)
            .filter(|len| *len <= N)?;
        let rest = ahead.bytes().get(ahead.position()..)?;
        let block = rest.first_chunk::<N>()?;
        if rest.get(len) != Some(&0) {
            return None;
        }
        let (string, odd) = Self::of_plain(&word_of(block).to_le_bytes(), len);
        if odd & HIGH_BITS as u64 != 0 {
            return None;
        }
        *r = ahead.at_position(ahead.position() + len + 1);
        Some(string)
    }

    /// Returns the first `len` octets of a block (at most `N`, at most sixteen), and a number with a high bit set where
    /// an octet is null or not ASCII.
    #[inline(always)]
    fn of_plain(block: &[u8; WORD], len: usize) -> (Self, u64) {
        let kept = KEPT[len % KEPT.len()];
        let whole = u128::from_le_bytes(*block);
        let word = whole & kept;
        // An octet that is null or not ASCII has its high bit set, or gets it when 1 is subtracted. A null borrows from
        // the octet behind it: the text is refused anyway, or that octet is behind the text.
        let odd = |half: u64| half | half.wrapping_sub(ONES as u64);
        let odd = odd(whole as u64) & kept as u64 | odd((whole >> 64) as u64) & (kept >> 64) as u64;
        let mut string = Self::new();
        string
            .octets
            .copy_from_slice(&word.to_le_bytes()[..N.min(WORD)]);
        string.len = len as u8;
        (string, odd)
    }

    /// Whether the text is ASCII.
    #[inline]
    fn is_ascii(&self) -> bool {
        if N <= WORD {
            word_of(&self.octets) & HIGH_BITS == 0
        } else {
            self.octets.is_ascii()
        }
    }

    #[inline]
    fn from_checked(text: &[u8]) -> Option<Self> {
        let mut string = Self::new();
        string.octets.get_mut(..text.len())?.copy_from_slice(text);
        string.len = text.len() as u8;
        Some(string)
    }
}

/// Octets that are checked at once.
const WORD: usize = 16;
/// An octet 1 in each place.
const ONES: u128 = u128::MAX / 255;
/// The high bit of each octet.
const HIGH_BITS: u128 = ONES << 7;

/// Masks of the octets of a word that belong to a text of this length; all of them where it is longer.
const KEPT: [u128; 2 * WORD] = {
    let mut kept = [u128::MAX; 2 * WORD];
    let mut len = 0;
    while len < WORD {
        kept[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    kept
};

/// Most octets of a text with its length and padding, where it can be written within a window.
const fn size_max<const N: usize>() -> usize {
    if N <= WORD { 3 + 4 + N + 1 } else { usize::MAX }
}

/// At most sixteen octets as a number, the first lowest.
#[inline]
fn word_of<const N: usize>(octets: &[u8; N]) -> u128 {
    let mut word = [0; WORD];
    word[..N].copy_from_slice(octets);
    u128::from_le_bytes(word)
}

impl<const N: usize> Default for BoundedString<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> TryFrom<&str> for BoundedString<N> {
    type Error = EncodeError;

    /// Fails with [`EncodeError::BoundExceeded`] or [`EncodeError::StringHoldsNull`].
    fn try_from(text: &str) -> Result<Self, EncodeError> {
        if text.as_bytes().contains(&0) {
            return Err(EncodeError::StringHoldsNull);
        }
        Self::from_checked(text.as_bytes()).ok_or(EncodeError::BoundExceeded)
    }
}

impl<const N: usize> Deref for BoundedString<N> {
    type Target = str;
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl<const N: usize> fmt::Debug for BoundedString<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl<const N: usize> fmt::Display for BoundedString<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<const N: usize> Write for BoundedString<N> {
    const SIZE_MAX: usize = size_max::<N>();

    #[inline(always)]
    fn write_within(&self, window: &mut WriteWindow<'_>) {
        let word = word_of(&self.octets);
        window.put((u32::from(self.len) + 1).to_ne_bytes());
        window.put_block(&word.to_le_bytes(), usize::from(self.len));
        window.skip();
        window.refuse_by(word as u64 | (word >> 64) as u64);
    }

    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if w.codec().chars != CharSet::Utf8 && !self.is_ascii() {
            return self.as_str().write(w);
        }
        let len = usize::from(self.len).min(N);
        w.write_u32(len as u32 + 1)?;
        w.write_block(&self.octets, len)?;
        w.write_u8(0)
    }
}

impl<'a, const N: usize> Parse<'a> for BoundedString<N> {
    const SIZE_MIN: usize = 5;
    const SIZE_MAX: usize = size_max::<N>();

    #[inline(always)]
    fn parse_within(window: &mut ReadWindow<'_>) -> Self {
        let len = (u32::from_ne_bytes(window.take()) as usize).wrapping_sub(1);
        let (block, behind) = window.take_block(len);
        let (string, odd) = Self::of_plain(&block, len);
        window.refuse_by(odd);
        // The high bit is set in both where the other number is too large.
        let most = N.min(WORD - 1);
        window.refuse_by(len as u64 | most.wrapping_sub(len) as u64);
        window.refuse_by(u64::from(behind).wrapping_neg());
        string
    }

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        if let Some(string) = Self::parse_plain(r) {
            return Ok(string);
        }
        let text = r.read_string_octets()?;
        if text.len() > N {
            // Text of ISO 8859-1 counts its bound in characters; UTF-8 inside may need more octets than that.
            return Err(DecodeError::new(
                DecodeFact::BoundExceeded,
                r.position() - text.len() - 5,
            ));
        }
        if text.iter().all(|octet| octet.wrapping_sub(1) < 0x7F) {
            let short = Self::from_checked(text);
            return short.ok_or_else(|| r.error(DecodeFact::BoundExceeded));
        }
        let text = decode_text(r, text)?;
        Self::from_checked(text.as_bytes()).ok_or_else(|| r.error(DecodeFact::BoundExceeded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ByteOrder, Codec};

    /// The wire form of text, with its null and some octets behind.
    fn wire(text: &[u8], behind: usize) -> Vec<u8> {
        let mut octets = (text.len() as u32 + 1).to_be_bytes().to_vec();
        octets.extend_from_slice(text);
        octets.push(0);
        octets.extend(std::iter::repeat_n(0xEE, behind));
        octets
    }

    #[test]
    fn short_and_long_ways_of_reading_agree() {
        for len in 0..=16 {
            for odd in 0..len + 1 {
                for octet in [b'x', 0, 0x7F, 0x80, 0xE9] {
                    let mut text = vec![b'a'; len];
                    text.iter_mut()
                        .skip(odd)
                        .take(1)
                        .for_each(|place| *place = octet);
                    let near = wire(&text, 0);
                    let far = wire(&text, 32);
                    for codec in [Codec::DEFAULT, Codec::DEFAULT.with_chars(CharSet::Utf8)] {
                        let reader = |octets| Reader::new(octets, ByteOrder::Big).with_codec(codec);
                        let (mut near, mut far) = (reader(&near), reader(&far));
                        let (short, long) = (
                            BoundedString::<16>::parse(&mut near),
                            BoundedString::<16>::parse(&mut far),
                        );
                        assert_eq!(short, long, "{text:?}");
                        assert_eq!(near.position(), far.position());
                        let longer = BoundedString::<40>::parse(&mut reader(&wire(&text, 64)));
                        // In UTF-8 a character of ISO 8859-1 may need room that the shorter bound lacks.
                        if let (Ok(short), Ok(longer)) = (short, longer) {
                            assert_eq!(short.as_str(), longer.as_str());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_octets_behind_the_text_are_zero_and_its_bound_holds() {
        let string =
            BoundedString::<13>::parse(&mut Reader::new(&wire(b"NAV", 32), ByteOrder::Big))
                .unwrap();
        assert_eq!(string, BoundedString::try_from("NAV").unwrap());
        let long = BoundedString::<2>::parse(&mut Reader::new(&wire(b"NAV", 32), ByteOrder::Big))
            .unwrap_err();
        assert_eq!(long, DecodeError::new(DecodeFact::BoundExceeded, 0));
        assert!(BoundedString::<2>::try_from("NAV").is_err());
    }
}
