//! `fixed<d,s>`: packed decimal (CORBA 3.3 part 2, clause 9.3.2.8).

use crate::limits::FIXED_DIGITS_MAX;
use crate::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};
use std::fmt;
use std::str::FromStr;

/// A decimal number of `D` digits (at most 31), `S` of them behind the point. The digits are inline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fixed<const D: u16, const S: i16>(i128);

/// Why text or a number is not a value of a `fixed` type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FixedError {
    /// More digits before or behind the point than the type has.
    TooManyDigits,
    /// Characters other than digits, a sign and a point.
    NotDecimal,
}

impl fmt::Display for FixedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyDigits => "the number has more digits than its fixed-point type",
            Self::NotDecimal => "the text is not a decimal number",
        })
    }
}

impl std::error::Error for FixedError {}

impl<const D: u16, const S: i16> Fixed<D, S> {
    const FITS: () = assert!(
        D >= 1 && D <= FIXED_DIGITS_MAX && S <= D as i16,
        "fixed has 1 to 31 digits, and no more behind the point"
    );

    /// The number `units` times ten to the power of -`S`.
    ///
    /// # Errors
    /// [`FixedError::TooManyDigits`].
    pub const fn from_units(units: i128) -> Result<Self, FixedError> {
        let () = Self::FITS;
        if units.unsigned_abs() < 10_u128.pow(D as u32) {
            Ok(Self(units))
        } else {
            Err(FixedError::TooManyDigits)
        }
    }

    /// The number in units of ten to the power of -`S`.
    #[must_use]
    pub const fn units(self) -> i128 {
        self.0
    }
}

/// Formats `units` times ten to the power of -`scale` in decimal, with a point where digits stand behind it.
#[must_use]
pub fn fixed_text(units: i128, scale: i16) -> String {
    let sign = if units < 0 { "-" } else { "" };
    let digits = units.unsigned_abs().to_string();
    let places = usize::from(scale.unsigned_abs());
    if scale <= 0 {
        let zeros = if units == 0 { 0 } else { places };
        return format!("{sign}{digits}{}", "0".repeat(zeros));
    }
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, part) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{part}")
}

/// Octets of a packed decimal of `digits` digits: two half-octets each, with the sign last.
pub(crate) const fn packed_size(digits: u16) -> usize {
    digits as usize / 2 + 1
}

/// Writes `units` as packed decimal of `digits` digits.
pub(crate) fn write_packed(
    units: i128,
    digits: u16,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let mut octets = [0; packed_size(FIXED_DIGITS_MAX)];
    let size = packed_size(digits);
    let mut rest = units.unsigned_abs();
    let mut next_digit = || {
        let digit = (rest % 10) as u8;
        rest /= 10;
        digit
    };
    let sign = if units < 0 { 0xD } else { 0xC };
    octets[size - 1] = next_digit() << 4 | sign;
    for octet in octets[..size - 1].iter_mut().rev() {
        let low = next_digit();
        *octet = next_digit() << 4 | low;
    }
    w.write_octets(&octets[..size])
}

/// Reads packed decimal of `digits` digits.
pub(crate) fn parse_packed(digits: u16, r: &mut Reader<'_>) -> Result<i128, DecodeError> {
    let start = r.position();
    let malformed = DecodeError::new(DecodeFact::FixedMalformed, start);
    let octets = r.read_octets(packed_size(digits))?;
    let halves = octets.iter().flat_map(|octet| [octet >> 4, octet & 0xF]);
    let mut units = 0_i128;
    for half in halves.take(octets.len() * 2 - 1) {
        if half > 9 {
            return Err(malformed);
        }
        units = units * 10 + i128::from(half);
    }
    if units >= 10_i128.pow(u32::from(digits)) {
        return Err(malformed);
    }
    match octets.last().map(|octet| octet & 0xF) {
        Some(0xC) => Ok(units),
        Some(0xD) => Ok(-units),
        _ => Err(malformed),
    }
}

impl<const D: u16, const S: i16> Write for Fixed<D, S> {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        write_packed(self.0, D, w)
    }
}

impl<'a, const D: u16, const S: i16> Parse<'a> for Fixed<D, S> {
    const SIZE_MIN: usize = packed_size(D);

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let () = Self::FITS;
        parse_packed(D, r).map(Self)
    }
}

impl<const D: u16, const S: i16> fmt::Display for Fixed<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fixed_text(self.0, S))
    }
}

impl<const D: u16, const S: i16> FromStr for Fixed<D, S> {
    type Err = FixedError;

    /// Reads a sign, digits, and a point; fewer digits behind the point than `S` are filled with zeros.
    fn from_str(text: &str) -> Result<Self, FixedError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.len() + part.len() == 0
            || !whole
                .bytes()
                .chain(part.bytes())
                .all(|octet| octet.is_ascii_digit())
        {
            return Err(FixedError::NotDecimal);
        }
        let part = part.trim_end_matches('0');
        let places = i32::try_from(part.len()).map_err(|_| FixedError::TooManyDigits)?;
        let shift = u32::try_from(i32::from(S) - places).map_err(|_| FixedError::TooManyDigits);
        let mut units = 0_i128;
        for octet in whole.bytes().chain(part.bytes()) {
            units = units
                .checked_mul(10)
                .and_then(|units| units.checked_add(i128::from(octet - b'0')))
                .ok_or(FixedError::TooManyDigits)?;
        }
        let units = match shift {
            Ok(shift) => 10_i128
                .checked_pow(shift)
                .and_then(|unit| units.checked_mul(unit))
                .ok_or(FixedError::TooManyDigits)?,
            // A negative scale counts in tens, hundreds and so on: the digits below must be zero.
            Err(_) if places == 0 => {
                let unit = 10_i128
                    .checked_pow(u32::from(S.unsigned_abs()))
                    .ok_or(FixedError::TooManyDigits)?;
                if units % unit != 0 {
                    return Err(FixedError::TooManyDigits);
                }
                units / unit
            }
            Err(error) => return Err(error),
        };
        Self::from_units(if negative { -units } else { units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;

    #[test]
    fn packs_digits_high_half_first_with_the_sign_last() {
        let mut buffer = Vec::new();
        Fixed::<5, 2>::from_units(-12345)
            .unwrap()
            .write(&mut Writer::new(&mut buffer))
            .unwrap();
        assert_eq!(buffer, [0x12, 0x34, 0x5D]);
        buffer.clear();
        Fixed::<4, 2>::from_units(1234)
            .unwrap()
            .write(&mut Writer::new(&mut buffer))
            .unwrap();
        assert_eq!(buffer, [0x01, 0x23, 0x4C]);
    }

    #[test]
    fn text_and_units_agree_for_every_kind_of_scale() {
        assert_eq!("-12.3".parse::<Fixed<5, 2>>().unwrap().units(), -1230);
        assert_eq!(
            "-12.3".parse::<Fixed<5, 2>>().unwrap().to_string(),
            "-12.30"
        );
        assert_eq!("0.05".parse::<Fixed<5, 2>>().unwrap().to_string(), "0.05");
        assert_eq!("1200".parse::<Fixed<5, -2>>().unwrap().units(), 12);
        assert_eq!("1200".parse::<Fixed<5, -2>>().unwrap().to_string(), "1200");
        assert_eq!(
            "1210".parse::<Fixed<5, -2>>().unwrap_err(),
            FixedError::TooManyDigits
        );
        assert_eq!(
            "1.234".parse::<Fixed<5, 2>>().unwrap_err(),
            FixedError::TooManyDigits
        );
        assert_eq!(
            "12a".parse::<Fixed<5, 2>>().unwrap_err(),
            FixedError::NotDecimal
        );
        assert_eq!(
            ".".parse::<Fixed<5, 2>>().unwrap_err(),
            FixedError::NotDecimal
        );
    }

    #[test]
    fn half_octets_that_are_no_digit_or_sign_are_refused() {
        for octets in [[0x1A, 0x34, 0x5C], [0x12, 0x34, 0x5A]] {
            let error =
                Fixed::<5, 2>::parse(&mut Reader::new(&octets, ByteOrder::NATIVE)).unwrap_err();
            assert_eq!(error.fact, DecodeFact::FixedMalformed);
        }
        // An even number of digits leaves the first half-octet zero.
        assert!(
            Fixed::<4, 2>::parse(&mut Reader::new(&[0x11, 0x34, 0x5C], ByteOrder::NATIVE)).is_err()
        );
    }
}
