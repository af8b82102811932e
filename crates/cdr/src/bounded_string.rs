//! `string<N>` kept inline, without heap.

use crate::limits::INLINE_STRING_MAX;
use crate::text::decode_text;
use crate::{CharSet, DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};
use std::fmt;
use std::ops::Deref;

/// A `string<N>` of at most `N` octets of UTF-8 (N <= 255), inline. The octets behind its end are zero, so that it can be copied whole.
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

    #[inline]
    fn from_checked(text: &[u8]) -> Option<Self> {
        let mut string = Self::new();
        string.octets.get_mut(..text.len())?.copy_from_slice(text);
        string.len = text.len() as u8;
        Some(string)
    }
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
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        if w.codec().chars != CharSet::Utf8 && !self.octets.is_ascii() {
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

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
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
