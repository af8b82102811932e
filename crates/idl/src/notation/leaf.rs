//! Reads values without parts.

use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Char, TypeCode, WString};

use super::float::{parse_double, parse_fixed, parse_long_double};
use super::scan::Token;

/// Reads a value without parts. The error message has `{type}` as the placeholder of the type's name.
pub(super) fn read(plain: &TypeCode, token: &Token<'_>) -> Result<Value, String> {
    let text = &*token.text;
    if token.units.is_some() && plain.kind() != Kind::WString {
        return Err("half of a surrogate pair fits a wstring alone, not {type}".to_owned());
    }
    let number = |found: Option<f64>| found.ok_or_else(|| unfit("a number", text));
    Ok(match plain.kind() {
        Kind::Boolean => Value::Boolean(match text {
            "true" | "TRUE" => true,
            "false" | "FALSE" => false,
            _ => return Err(unfit("true or false", text)),
        }),
        Kind::Octet => Value::Octet(integer(text)?),
        Kind::Short => Value::Short(integer(text)?),
        Kind::UShort => Value::UShort(integer(text)?),
        Kind::Long => Value::Long(integer(text)?),
        Kind::ULong => Value::ULong(integer(text)?),
        Kind::LongLong => Value::LongLong(integer(text)?),
        Kind::ULongLong => Value::ULongLong(integer(text)?),
        Kind::Float => Value::Float(single(text)?),
        Kind::Double => Value::Double(number(parse_double(text))?),
        Kind::LongDouble => {
            Value::LongDouble(parse_long_double(text).ok_or_else(|| unfit("a number", text))?)
        }
        Kind::Fixed => {
            let (digits, scale) = plain.fixed_digits_scale().unwrap_or((1, 0));
            Value::Fixed(parse_fixed(text, digits, scale)?)
        }
        Kind::Char => {
            let c = Char::try_from(character(text)?);
            Value::Char(c.map_err(|_| unfit("a character of ISO 8859-1", text))?)
        }
        Kind::WChar => Value::WChar(character(text)?),
        Kind::String => {
            bounded(plain, text, text.len(), "octets of UTF-8")?;
            Value::String(text.to_owned())
        }
        Kind::WString => {
            let units = token.units.clone();
            let wide = units.map_or_else(|| WString::from(text), WString::from_units);
            bounded(plain, text, wide.units().len(), "UTF-16 units")?;
            Value::WString(wide)
        }
        Kind::Enum => Value::Enum(enumerator(plain, text)?),
        _ => return Err("values of type {type} are not mapped".to_owned()),
    })
}

fn unfit(what: &str, text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("expected {what} ({{type}}), found `{shown}`")
}

fn integer<T: TryFrom<i128> + Bounds>(text: &str) -> Result<T, String> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let magnitude = match hex {
        Some(hex) => i128::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    let signed =
        digits.starts_with(['-', '+']) || hex.is_some_and(|hex| hex.starts_with(['-', '+']));
    let magnitude = magnitude.ok().filter(|_| !signed);
    let number = magnitude.map(|number| if negative { -number } else { number });
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| {
            unfit(
                &format!("an integer from {} to {}", T::LEAST, T::MOST),
                text,
            )
        })
}

/// The least and the greatest value of an integer type.
trait Bounds {
    const LEAST: i128;
    const MOST: i128;
}

macro_rules! bounds {
    ($($integer:ident)*) => {$(
        impl Bounds for $integer {
            const LEAST: i128 = $integer::MIN as i128;
            const MOST: i128 = $integer::MAX as i128;
        }
    )*};
}

bounds! { u8 i16 u16 i32 u32 i64 u64 }

/// Reads a `float`, rounded to the nearest. A finite number that would become infinite is refused.
fn single(text: &str) -> Result<f32, String> {
    let double = parse_double(text).ok_or_else(|| unfit("a number", text))?;
    // A decimal number is parsed as `f32`: conversion from a `double` would round twice.
    let single = text.parse().unwrap_or(double as f32);
    if single.is_infinite() && double.is_finite() {
        return Err(unfit("a number of at most 3.4e38", text));
    }
    Ok(single)
}

fn character(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(c), None) => Ok(c),
        _ => Err(unfit("one character", text)),
    }
}

fn bounded(plain: &TypeCode, text: &str, len: usize, unit: &str) -> Result<(), String> {
    let bound = plain.length().unwrap_or(0) as usize;
    if text.contains('\0') {
        return Err("a string of IDL holds no null character".to_owned());
    }
    if bound != 0 && len > bound {
        return Err(format!(
            "expected at most {bound} {unit} ({{type}}), found {len}"
        ));
    }
    Ok(())
}

fn enumerator(plain: &TypeCode, text: &str) -> Result<u32, String> {
    let name = text.rsplit("::").next().unwrap_or(text);
    let known = || (0..plain.member_count()).filter_map(|index| plain.member_name(index));
    known()
        .position(|known| known == name)
        .map(|index| index as u32)
        .ok_or_else(|| {
            let known: Vec<&str> = known().collect();
            unfit(&format!("one of {}", known.join(", ")), text)
        })
}

/// Encodes a text in ISO 8859-1.
pub(super) fn latin1(text: &str) -> Result<Vec<u8>, String> {
    text.chars()
        .map(|c| u8::try_from(c).map_err(|_| unfit("characters of ISO 8859-1", text)))
        .collect()
}

/// Decodes the octets of `x'00ff'`. Spaces between octets are ignored.
pub(super) fn hex(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix("x'")?.strip_suffix('\'')?;
    let digits: Vec<u8> = inner
        .bytes()
        .filter(|octet| !octet.is_ascii_whitespace())
        .collect();
    let number = |digit: u8| char::from(digit).to_digit(16).map(|number| number as u8);
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| Some(number(pair[0])? << 4 | number(pair[1])?))
        .collect()
}
