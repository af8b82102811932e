//! `char` and `long double`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// IDL `char`: one octet of ISO 8859-1, kept as it came.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    FromBytes,
    IntoBytes,
    Immutable,
    KnownLayout,
    Unaligned,
)]
#[repr(transparent)]
pub struct Char(pub u8);

impl From<u8> for Char {
    fn from(octet: u8) -> Self {
        Self(octet)
    }
}

impl From<Char> for char {
    fn from(value: Char) -> Self {
        Self::from(value.0)
    }
}

impl TryFrom<char> for Char {
    type Error = std::char::TryFromCharError;

    /// Succeeds for the characters of ISO 8859-1.
    fn try_from(value: char) -> Result<Self, Self::Error> {
        u8::try_from(value).map(Self)
    }
}

impl std::fmt::Display for Char {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Write::write_char(f, char::from(*self))
    }
}

/// IDL `long double`: the sixteen octets of an IEEE 754 binary128, stored without arithmetic. The number has the bits,
/// sign first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LongDouble(pub u128);

impl From<f64> for LongDouble {
    /// The same value, exactly; a NaN keeps its payload.
    fn from(value: f64) -> Self {
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let fraction = bits & ((1 << 52) - 1);
        let magnitude = match (bits >> 52) & 0x7FF {
            0 if fraction == 0 => 0,
            0 => {
                // A subnormal: its leading one becomes implicit.
                let shift = fraction.leading_zeros() - 11;
                let exponent = u128::from(16383 - 1022 - shift);
                (exponent << 112) | ((u128::from(fraction) << (60 + shift)) & ((1 << 112) - 1))
            }
            0x7FF => (0x7FFF << 112) | (u128::from(fraction) << 60),
            exponent => (u128::from(exponent + 16383 - 1023) << 112) | (u128::from(fraction) << 60),
        };
        Self(sign | magnitude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_widen_to_the_binary128_of_the_same_value() {
        assert_eq!(LongDouble::from(1.0).0, 0x3FFF_u128 << 112);
        assert_eq!(LongDouble::from(-2.0).0, 0xC000_u128 << 112);
        assert_eq!(LongDouble::from(0.0).0, 0);
        assert_eq!(LongDouble::from(-0.0).0, 1 << 127);
        assert_eq!(LongDouble::from(f64::INFINITY).0, 0x7FFF_u128 << 112);
        assert_eq!(LongDouble::from(1.5).0, (0x3FFF_u128 << 112) | (1 << 111));
        // The smallest subnormal is 2^-1074.
        assert_eq!(
            LongDouble::from(f64::from_bits(1)).0,
            u128::from(16383_u32 - 1074) << 112
        );
        assert_eq!(
            LongDouble::from(f64::MIN_POSITIVE).0,
            u128::from(16383_u32 - 1022) << 112
        );
    }

    #[test]
    fn char_is_iso_8859_1() {
        assert_eq!(Char::try_from('é'), Ok(Char(0xE9)));
        assert!(Char::try_from('€').is_err());
        assert_eq!(Char(0xE9).to_string(), "é");
    }
}
