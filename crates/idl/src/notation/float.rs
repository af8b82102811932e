//! `long double` and `fixed` as text, without loss.

use deckwatch_cdr::LongDouble;

/// Number of fraction bits of an IEEE 754 binary128.
const FRACTION_BITS: u32 = 112;
const FRACTION: u128 = (1 << FRACTION_BITS) - 1;
const EXPONENT_MAX: i32 = 0x7FFF;
const BIAS: i32 = 16_383;

/// Prints a decimal number if a `double` has the same value, otherwise C's hexadecimal form.
pub(super) fn long_double_text(value: LongDouble) -> String {
    if let Some(double) = as_double(value) {
        return double_text(double);
    }
    let sign = if value.0 >> 127 == 1 { "-" } else { "" };
    let exponent = ((value.0 >> FRACTION_BITS) as i32) & EXPONENT_MAX;
    let digits = format!("{:028x}", value.0 & FRACTION);
    let digits = digits.trim_end_matches('0');
    let (lead, power) = if exponent == 0 {
        (0, 1 - BIAS)
    } else {
        (1, exponent - BIAS)
    };
    format!("{sign}0x{lead}.{digits}p{power}")
}

/// Prints the shortest decimal number that reads back as the same value.
pub(super) fn double_text(value: f64) -> String {
    if value.is_nan() {
        "nan".to_owned()
    } else {
        format!("{value:?}")
    }
}

/// Returns the `double` with the same value, if there is one.
fn as_double(value: LongDouble) -> Option<f64> {
    let sign = if value.0 >> 127 == 1 { -1.0 } else { 1.0 };
    let exponent = ((value.0 >> FRACTION_BITS) as i32) & EXPONENT_MAX;
    let fraction = value.0 & FRACTION;
    if exponent == EXPONENT_MAX {
        return Some(if fraction == 0 {
            f64::INFINITY * sign
        } else {
            f64::NAN
        });
    }
    if exponent == 0 {
        return (fraction == 0).then_some(0.0 * sign);
    }
    let narrow = (exponent - BIAS + 1023)
        .try_into()
        .ok()
        .filter(|e| (1..2047_u64).contains(e))?;
    let low_bits = fraction & ((1 << (FRACTION_BITS - 52)) - 1);
    let magnitude = f64::from_bits((narrow << 52) | (fraction >> (FRACTION_BITS - 52)) as u64);
    (low_bits == 0).then_some(magnitude * sign)
}

/// Reads the output of [`long_double_text`], and any decimal number with the precision of a `double`.
pub(super) fn parse_long_double(text: &str) -> Option<LongDouble> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let Some(hex) = digits.strip_prefix("0x").filter(|hex| hex.contains('p')) else {
        return parse_double(text).map(LongDouble::from);
    };
    let (mantissa, power) = hex.split_once('p')?;
    let (lead, digits) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if digits.len() > 28 || !digits.bytes().all(|octet| octet.is_ascii_hexdigit()) {
        return None;
    }
    let fraction = u128::from_str_radix(&format!("{digits:0<28}"), 16).ok()?;
    let power: i32 = power.parse().ok()?;
    let exponent = match (lead, power) {
        ("0", power) if power == 1 - BIAS => 0,
        ("1", power) if (1 - BIAS..=BIAS).contains(&power) => power + BIAS,
        _ => return None,
    };
    Some(LongDouble(
        u128::from(negative) << 127 | (exponent as u128) << FRACTION_BITS | fraction,
    ))
}

/// Reads a decimal or hexadecimal number, `inf` or `nan`.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(hex) = unsigned.strip_prefix("0x").or(unsigned.strip_prefix("0X")) {
        if hex.starts_with('+') {
            return None;
        }
        let number = u64::from_str_radix(hex, 16).ok()? as f64;
        return Some(if text.starts_with('-') {
            -number
        } else {
            number
        });
    }
    text.parse().ok()
}

/// Converts a decimal number to units of ten to the power of minus `scale`, for a `fixed` of `digits` digits.
///
/// # Errors
/// Returns the reason, as a clause, if the number is not of that `fixed` type.
pub(super) fn parse_fixed(text: &str, digits: u16, scale: i16) -> Result<i128, String> {
    let decimal = || format!("expected a decimal such as 1.25, found `{text}`");
    let unmarked = text.strip_suffix(['d', 'D']).unwrap_or(text);
    let (negative, number) = match unmarked.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, unmarked.strip_prefix('+').unwrap_or(unmarked)),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let octets = || whole.bytes().chain(part.bytes());
    if octets().next().is_none() || !octets().all(|octet| octet.is_ascii_digit()) {
        return Err(decimal());
    }
    // Digits beyond the scale must be zero; otherwise the number is not of the type.
    let places = part.len() as i64;
    let all: String = octets().map(char::from).collect();
    let shift = i64::from(scale) - places;
    let units = if shift >= 0 {
        format!("{all}{}", "0".repeat(shift as usize))
    } else {
        let cut = all.len().saturating_sub(shift.unsigned_abs() as usize);
        let (kept, lost) = all.split_at(cut);
        if lost.bytes().any(|octet| octet != b'0') {
            return Err(format!(
                "{text} has more places than {scale} behind the point"
            ));
        }
        kept.to_owned()
    };
    let units = units.trim_start_matches('0');
    if units.len() > usize::from(digits) {
        return Err(format!(
            "{text} has more digits than fixed<{digits},{scale}>"
        ));
    }
    let units: i128 = if units.is_empty() {
        0
    } else {
        units.parse().map_err(|_| decimal())?
    };
    Ok(if negative { -units } else { units })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::fixed_text;

    #[test]
    fn long_doubles_read_back_bit_by_bit() {
        for bits in [
            0,
            1 << 127,
            1,
            (1 << 112) - 1,
            LongDouble::from(0.1).0,
            LongDouble::from(0.1).0 | 1,
            LongDouble::from(-1e300).0,
            LongDouble::from(f64::from_bits(1)).0,
            0x7FFE << 112 | 0xABC,
            0x7FFF << 112,
            0xFFFF << 112,
        ] {
            let text = long_double_text(LongDouble(bits));
            assert_eq!(parse_long_double(&text), Some(LongDouble(bits)), "{text}");
        }
        assert_eq!(long_double_text(LongDouble::from(1.5)), "1.5");
        assert_eq!(
            long_double_text(LongDouble(0x3FFF << 112 | 1)),
            "0x1.0000000000000000000000000001p0"
        );
        assert_eq!(parse_long_double("0x1.8p3"), Some(LongDouble::from(12.0)));
        assert_eq!(parse_long_double("0x3.8p3"), None);
        assert_eq!(parse_long_double("0x10"), Some(LongDouble::from(16.0)));
        assert_eq!(parse_double("-0x10"), Some(-16.0));
        assert_eq!(
            (parse_double("--0x10"), parse_double("0x+10")),
            (None, None)
        );
    }

    #[test]
    fn fixed_takes_what_fits_its_digits_and_places() {
        assert_eq!(parse_fixed("-12.3", 5, 2), Ok(-1230));
        assert_eq!(parse_fixed("1.2500d", 5, 2), Ok(125));
        assert_eq!(parse_fixed("1200", 5, -2), Ok(12));
        assert_eq!(fixed_text(12, -2), "1200");
        assert_eq!(fixed_text(-5, 2), "-0.05");
        assert!(parse_fixed("1210", 5, -2).is_err());
        assert!(parse_fixed("1000", 5, 2).is_err());
        assert!(parse_fixed("1.255", 5, 2).is_err());
        assert!(parse_fixed("1e3", 9, 2).is_err());
        assert!(parse_fixed(".", 9, 2).is_err());
    }
}
