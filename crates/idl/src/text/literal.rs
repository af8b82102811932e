//! The values of literals (CORBA 3.3 part 1, clause 7.2.5).

use crate::text::diagnostic::quoted;
use crate::text::lexer::Kind;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Boolean(bool),
    Integer(u64),
    Float(f64),
    /// The digits as written, without the `d`.
    Fixed(String),
    Char(char),
    WideChar(char),
    String(String),
    WideString(String),
}

/// Returns the value of one literal token.
///
/// # Errors
/// The message describes the fault, worded as the end of a sentence.
pub(crate) fn literal(kind: Kind, text: &str) -> Result<Literal, String> {
    match kind {
        Kind::Integer => integer(text).map(Literal::Integer),
        Kind::Float => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Literal::Float(value)),
            _ => Err(format!(
                "{} is too large for a floating-point number",
                quoted(text)
            )),
        },
        Kind::Fixed => Ok(Literal::Fixed(text[..text.len() - 1].to_owned())),
        Kind::Char => Ok(Literal::Char(one(&text[1..text.len() - 1], LATIN1_MAX)?)),
        Kind::WideChar => Ok(Literal::WideChar(one(&text[2..text.len() - 1], WIDE_MAX)?)),
        Kind::String => unescape(&text[1..text.len() - 1], LATIN1_MAX)
            .and_then(no_nul)
            .map(Literal::String),
        Kind::WideString => unescape(&text[2..text.len() - 1], WIDE_MAX)
            .and_then(no_nul)
            .map(Literal::WideString),
        _ => Err("this is not a literal".into()),
    }
}

const LATIN1_MAX: u32 = 0xff;
const WIDE_MAX: u32 = 0xffff;

fn integer(text: &str) -> Result<u64, String> {
    let value = if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        u64::from_str_radix(digits, 16)
    } else if text.len() > 1 && text.starts_with('0') {
        if text.contains(['8', '9']) {
            return Err(format!(
                "{} starts with 0 and is octal, where 8 and 9 are no digits",
                quoted(text)
            ));
        }
        u64::from_str_radix(&text[1..], 8)
    } else {
        text.parse()
    };
    value.map_err(|_| format!("{} does not fit into 64 bits", quoted(text)))
}

fn one(text: &str, max: u32) -> Result<char, String> {
    let value = unescape(text, max)?;
    let mut characters = value.chars();
    match (characters.next(), characters.next()) {
        (Some(value), None) => Ok(value),
        _ => Err("a character literal holds exactly one character".into()),
    }
}

fn no_nul(text: String) -> Result<String, String> {
    if text.contains('\0') {
        Err("a string holds no NUL".into())
    } else {
        Ok(text)
    }
}

fn unescape(text: &str, max: u32) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let value = if c == '\\' {
            escape(&mut rest)?
        } else {
            u32::from(c)
        };
        // The limit applies to escapes only: other characters of a narrow literal may be any Unicode character.
        if c == '\\' && value > max {
            return Err(format!("the escape stands for {value:#x}, above {max:#x}"));
        }
        out.push(
            char::from_u32(value).ok_or_else(|| {
                format!("the escape stands for {value:#x}, which is no character")
            })?,
        );
    }
    Ok(out)
}

/// Returns the character code of the escape after a backslash.
fn escape(rest: &mut std::str::Chars<'_>) -> Result<u32, String> {
    let Some(c) = rest.next() else {
        return Err("a lone backslash is no escape".into());
    };
    Ok(match c {
        'n' => 0x0a,
        't' => 0x09,
        'v' => 0x0b,
        'b' => 0x08,
        'r' => 0x0d,
        'f' => 0x0c,
        'a' => 0x07,
        '\\' | '?' | '\'' | '"' => u32::from(c),
        'x' => digits(rest, 16, 2)?,
        'u' => digits(rest, 16, 4)?,
        '0'..='7' => {
            let tail = rest
                .as_str()
                .bytes()
                .take(2)
                .take_while(|d| (b'0'..=b'7').contains(d))
                .count();
            let first = u32::from(c) - u32::from('0');
            (0..tail)
                .filter_map(|_| rest.next()?.to_digit(8))
                .fold(first, |value, digit| value * 8 + digit)
        }
        _ => return Err(format!("`\\{c}` is no escape")),
    })
}

fn digits(rest: &mut std::str::Chars<'_>, radix: u32, max: usize) -> Result<u32, String> {
    let count = rest
        .as_str()
        .chars()
        .take(max)
        .take_while(|c| c.is_digit(radix))
        .count();
    if count == 0 {
        return Err("an escape by number has no digits".into());
    }
    Ok((0..count)
        .filter_map(|_| rest.next()?.to_digit(radix))
        .fold(0, |value, digit| value * radix + digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_decimal_octal_or_hexadecimal() {
        assert_eq!(literal(Kind::Integer, "0"), Ok(Literal::Integer(0)));
        assert_eq!(literal(Kind::Integer, "017"), Ok(Literal::Integer(15)));
        assert_eq!(
            literal(Kind::Integer, "0xFFFFFFFFFFFFFFFF"),
            Ok(Literal::Integer(u64::MAX))
        );
        assert!(literal(Kind::Integer, "18446744073709551616").is_err());
        assert!(literal(Kind::Integer, "018").is_err());
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        assert_eq!(
            literal(Kind::String, r#""a\n\x41\101\"""#),
            Ok(Literal::String("a\nAA\"".into()))
        );
        assert_eq!(
            literal(Kind::WideString, r#"L"\u20ac""#),
            Ok(Literal::WideString("€".into()))
        );
        assert_eq!(literal(Kind::Char, r"'\0'"), Ok(Literal::Char('\0')));
        assert!(literal(Kind::String, r#""\0""#).is_err());
        assert!(literal(Kind::Char, r"'\q'").is_err());
        assert!(literal(Kind::WideChar, r"L'\ud800'").is_err());
    }
}
