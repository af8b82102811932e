//! `string` and `wstring`.

use crate::room::{latin, owned};
use crate::{
    CharSet, Codec, DecodeError, DecodeFact, EncodeError, Parse, Reader, Version, WideSet, Write,
    Writer,
};
use std::borrow::Cow;

impl Write for str {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let octets = self.as_bytes();
        if is_plain(octets) {
            w.write_count(octets.len().saturating_add(1))?;
            w.write_octets(octets)?;
            return w.write_u8(0);
        }
        if w.codec().chars == CharSet::Utf8 || self.is_ascii() {
            return w.write_string_octets(octets);
        }
        write_latin1(self, w)
    }
}

/// Whether octets are ASCII and none is null. Such octets have no high bit, and get none when 1 is subtracted.
#[inline]
pub(crate) fn is_plain(octets: &[u8]) -> bool {
    let odd = |odd: u8, octet: &u8| odd | octet | octet.wrapping_sub(1);
    octets.iter().fold(0, odd) < 0x80
}

/// Writes text beyond ASCII in ISO 8859-1.
#[cold]
fn write_latin1(text: &str, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.write_count(text.chars().count().saturating_add(1))?;
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(0) => return Err(EncodeError::StringHoldsNull),
            Ok(octet) => w.write_u8(octet)?,
            Err(_) => return Err(EncodeError::NotInCodeSet),
        }
    }
    w.write_u8(0)
}

impl Write for String {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_str().write(w)
    }
}

impl Write for Cow<'_, str> {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).write(w)
    }
}

/// Decodes `octets`, which stand at `offset` of the reader's slice. Borrows them where they are ASCII or UTF-8.
#[inline]
pub(crate) fn decode_text<'a>(
    r: &Reader<'a>,
    octets: &'a [u8],
) -> Result<Cow<'a, str>, DecodeError> {
    if is_plain(octets)
        && let Ok(text) = std::str::from_utf8(octets)
    {
        return Ok(Cow::Borrowed(text));
    }
    decode_more(r, octets)
}

/// The slow path of `decode_text`: text that is not ASCII.
#[cold]
fn decode_more<'a>(r: &Reader<'a>, octets: &'a [u8]) -> Result<Cow<'a, str>, DecodeError> {
    let offset = r.position().saturating_sub(octets.len() + 1);
    if let Some(null) = octets.iter().position(|octet| *octet == 0) {
        return Err(DecodeError::new(DecodeFact::StringHoldsNull, offset + null));
    }
    match std::str::from_utf8(octets) {
        Ok(text) if r.codec().chars == CharSet::Utf8 || text.is_ascii() => Ok(Cow::Borrowed(text)),
        Err(error) if r.codec().chars == CharSet::Utf8 => Err(DecodeError::new(
            DecodeFact::NotInCodeSet,
            offset + error.valid_up_to(),
        )),
        _ => latin(octets, r).map(Cow::Owned),
    }
}

impl<'a> Parse<'a> for Cow<'a, str> {
    const SIZE_MIN: usize = 5;

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let octets = r.read_string_octets()?;
        decode_text(r, octets)
    }
}

impl<'a> Parse<'a> for String {
    const SIZE_MIN: usize = 5;

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let text = Cow::<str>::parse(r)?;
        owned(text, r)
    }
}

/// IDL `wstring`: UTF-16, inside and on the wire. It keeps every unit that came, lone surrogates too; a conversion to
/// `String` fails for these.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WString(Vec<u16>);

impl WString {
    /// Returns the text of these UTF-16 units.
    #[must_use]
    pub const fn from_units(units: Vec<u16>) -> Self {
        Self(units)
    }

    /// Returns the UTF-16 units. Their number is what a bound limits.
    #[must_use]
    pub fn units(&self) -> &[u16] {
        &self.0
    }

    /// Returns the text with U+FFFD in place of each lone surrogate.
    #[must_use]
    pub fn to_string_lossy(&self) -> String {
        String::from_utf16_lossy(&self.0)
    }
}

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl TryFrom<&WString> for String {
    type Error = std::string::FromUtf16Error;

    /// # Errors
    /// The text has a surrogate without its other half.
    fn try_from(text: &WString) -> Result<Self, Self::Error> {
        Self::from_utf16(&text.0)
    }
}

impl TryFrom<WString> for String {
    type Error = std::string::FromUtf16Error;

    /// # Errors
    /// The text has a surrogate without its other half.
    fn try_from(text: WString) -> Result<Self, Self::Error> {
        Self::from_utf16(&text.0)
    }
}

impl PartialEq<str> for WString {
    fn eq(&self, text: &str) -> bool {
        self.0.iter().copied().eq(text.encode_utf16())
    }
}

impl PartialEq<&str> for WString {
    fn eq(&self, text: &&str) -> bool {
        *self == **text
    }
}

/// A lone surrogate is shown as U+FFFD.
impl std::fmt::Display for WString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_string_lossy())
    }
}

/// A lone surrogate is shown by its number: `"a\u{d83d}"`.
impl std::fmt::Debug for WString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("\"")?;
        for character in char::decode_utf16(self.0.iter().copied()) {
            match character {
                Ok(character) => write!(f, "{}", character.escape_debug())?,
                Err(error) => write!(f, "\\u{{{:x}}}", error.unpaired_surrogate())?,
            }
        }
        f.write_str("\"")
    }
}

impl Write for WString {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let units = &self.0;
        if units.contains(&0) {
            return Err(EncodeError::StringHoldsNull);
        }
        match wide_version(w)? {
            Version::V1_0 => Err(EncodeError::WideInGiop10),
            Version::V1_1 => {
                w.write_count(units.len() + 1)?;
                units.iter().chain(&[0]).try_for_each(|unit| unit.write(w))
            }
            Version::V1_2 => {
                w.write_count((units.len() + mark(units.first().copied()).len()) * 2)?;
                write_utf16(units.iter().copied(), w)
            }
        }
    }
}

/// The version that decides the form of wide characters. Fails for GIOP 1.0 first, then for a peer without a wide code
/// set.
pub(crate) fn wide_version(w: &Writer<'_>) -> Result<Version, EncodeError> {
    let Codec { version, wide, .. } = w.codec();
    if version != Version::V1_0 && wide == WideSet::None {
        return Err(EncodeError::WideSetMissing);
    }
    Ok(version)
}

/// The byte order mark to write first: text whose first unit looks like a mark needs one.
pub(crate) fn mark(first: Option<u16>) -> &'static [u16] {
    match first {
        Some(0xFEFF | 0xFFFE) => &[0xFEFF],
        _ => &[],
    }
}

/// Writes UTF-16 of GIOP 1.2: big-endian, with a byte order mark only where it is needed.
pub(crate) fn write_utf16(
    units: impl Iterator<Item = u16> + Clone,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let marks = mark(units.clone().next()).iter().copied();
    marks
        .chain(units)
        .try_for_each(|unit| w.write_octets(&unit.to_be_bytes()))
}

impl<'a> Parse<'a> for WString {
    const SIZE_MIN: usize = 4;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match r.codec().version {
            Version::V1_0 => Err(r.error(DecodeFact::WideInGiop10)),
            Version::V1_1 => parse_wide_units(r),
            Version::V1_2 => {
                let octets = r.read_octet_sequence()?;
                wide_text_of_octets(octets, r.position() - octets.len())
            }
        }
    }
}

/// GIOP 1.1: a count of units with a terminating null, each in the message's byte order.
fn parse_wide_units(r: &mut Reader<'_>) -> Result<WString, DecodeError> {
    let count = r.read_count(2)?;
    let start = r.position();
    wide_text_of_units(&u16::parse_vec(r, count)?, start)
}

/// Decodes all units of a GIOP 1.1 text, terminating null included, which begin at `start`.
pub(crate) fn wide_text_of_units(units: &[u16], start: usize) -> Result<WString, DecodeError> {
    match units.split_last() {
        None => Err(DecodeError::new(DecodeFact::StringLengthZero, start - 4)),
        Some((0, text)) if text.contains(&0) => {
            Err(DecodeError::new(DecodeFact::StringHoldsNull, start))
        }
        Some((0, text)) => Ok(WString(text.to_vec())),
        Some(_) => Err(DecodeError::new(
            DecodeFact::StringNotTerminated,
            start + 2 * (units.len() - 1),
        )),
    }
}

/// Decodes all octets of a GIOP 1.2 text, which begin at `start`.
pub(crate) fn wide_text_of_octets(octets: &[u8], start: usize) -> Result<WString, DecodeError> {
    let units = wide_units(octets, start)?;
    if units.contains(&0) {
        return Err(DecodeError::new(DecodeFact::StringHoldsNull, start));
    }
    Ok(WString(units))
}

/// Decodes the units of GIOP 1.2: big-endian unless a byte order mark says otherwise (clause 9.3.1.6).
pub(crate) fn wide_units(octets: &[u8], offset: usize) -> Result<Vec<u16>, DecodeError> {
    let (pairs, odd) = octets.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(DecodeError::new(DecodeFact::WideLengthOdd, offset));
    }
    let (pairs, from_bytes): (_, fn([u8; 2]) -> u16) = match pairs {
        [[0xFE, 0xFF], rest @ ..] => (rest, u16::from_be_bytes),
        [[0xFF, 0xFE], rest @ ..] => (rest, u16::from_le_bytes),
        all => (all, u16::from_be_bytes),
    };
    let mut units = Vec::new();
    let made = units.try_reserve_exact(pairs.len());
    made.map_err(|_| DecodeError::new(DecodeFact::MemoryExhausted, offset))?;
    units.extend(pairs.iter().map(|pair| from_bytes(*pair)));
    Ok(units)
}
