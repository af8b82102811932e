//! Prints values as text.

use std::fmt::Write as _;

use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{Instance, Value};
use deckwatch_cdr::{TypeCode, fixed_text};
use deckwatch_text::is_shown;

use super::Notation;
use super::float::{double_text, long_double_text};
use super::read::case_of;

/// A value ready to print, in the notation or as JSON. Both forms read back as the same value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Printed {
    /// A value without parts.
    Leaf {
        /// The text in the notation.
        text: String,
        /// The text in JSON.
        json: String,
    },
    /// The elements of a sequence or array.
    List(Vec<Self>),
    /// The members with their names.
    Members(Vec<(String, Self)>),
}

impl Printed {
    /// Creates a text that is quoted in both forms.
    #[must_use]
    pub fn quoted(text: &str) -> Self {
        let text = quote(text, '"');
        Self::Leaf {
            json: text.clone(),
            text,
        }
    }

    /// Creates a text that is the same in both forms.
    fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Leaf {
            json: text.clone(),
            text,
        }
    }

    /// Creates an enumerator: bare in the notation if it is a word, and quoted in JSON.
    fn enumerator(name: &str) -> Self {
        Self::Leaf {
            text: name_text(name),
            json: quote(name, '"'),
        }
    }

    /// Creates a text that is bare in the notation and quoted in JSON.
    fn bare(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::Leaf {
            json: quote(&text, '"'),
            text,
        }
    }

    /// Returns the text in the notation: on one line if it has at most `width` characters, otherwise one line per part.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        self.write(false, 0, width, &mut out);
        out
    }

    /// Returns the JSON text, on lines of at most `width` characters where possible.
    #[must_use]
    pub fn json(&self, width: usize) -> String {
        let mut out = String::new();
        self.write(true, 0, width, &mut out);
        out
    }

    fn write(&self, json: bool, indent: usize, width: usize, out: &mut String) {
        let line_start = out.rfind('\n').map_or(0, |at| at + 1);
        let used = out[line_start..].chars().count();
        if let Some(line) = self.one_line(json, width.saturating_sub(used)) {
            out.push_str(&line);
            return;
        }
        let inner = indent + 2;
        match self {
            Self::Leaf { text, json: quoted } => out.push_str(if json { quoted } else { text }),
            Self::List(parts) => {
                out.push('[');
                for (index, part) in parts.iter().enumerate() {
                    new_line(index, inner, out);
                    part.write(json, inner, width, out);
                }
                let _ = write!(out, "\n{:indent$}]", "");
            }
            Self::Members(members) => {
                out.push('{');
                for (index, (name, part)) in members.iter().enumerate() {
                    new_line(index, inner, out);
                    write_name(name, json, out);
                    part.write(json, inner, width, out);
                }
                let _ = write!(out, "\n{:indent$}}}", "");
            }
        }
    }

    /// Returns the text on one line; `None` once it is longer than `width`.
    fn one_line(&self, json: bool, width: usize) -> Option<String> {
        let mut out = String::new();
        self.flat(json, width, &mut out).then_some(out)
    }

    fn flat(&self, json: bool, width: usize, out: &mut String) -> bool {
        match self {
            Self::Leaf { text, json: quoted } => out.push_str(if json { quoted } else { text }),
            Self::List(parts) => {
                out.push('[');
                for (index, part) in parts.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    if !part.flat(json, width, out) {
                        return false;
                    }
                }
                out.push(']');
            }
            Self::Members(members) => {
                out.push('{');
                for (index, (name, part)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    write_name(name, json, out);
                    if !part.flat(json, width, out) {
                        return false;
                    }
                }
                out.push('}');
            }
        }
        out.len() <= width || out.chars().count() <= width
    }
}

fn new_line(index: usize, indent: usize, out: &mut String) {
    let comma = if index > 0 { "," } else { "" };
    let _ = write!(out, "{comma}\n{:indent$}", "");
}

fn write_name(name: &str, json: bool, out: &mut String) {
    out.push_str(&if json {
        quote(name, '"')
    } else {
        name_text(name)
    });
    out.push_str(": ");
}

/// Returns the name of a member in a value; `_0`, `_1` and so on for members without names: some ORBs send TypeCodes
/// without them.
pub(super) fn shown_name(name: &str, index: usize) -> String {
    if name.is_empty() {
        format!("_{index}")
    } else {
        name.to_owned()
    }
}

/// Returns a name bare if it is a word, else in quotes: a TypeCode from a peer may contain any text as a name.
pub(super) fn name_text(name: &str) -> String {
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_word {
        name.to_owned()
    } else {
        quote(name, '"')
    }
}

/// Quotes a text as JSON does, with `mark` as the quotation mark.
pub(super) fn quote(text: &str, mark: char) -> String {
    quote_characters(text.chars().map(Ok), mark)
}

/// Quotes a text in UTF-16. A lone surrogate becomes an escape.
fn quote_units(units: &[u16], mark: char) -> String {
    let characters = char::decode_utf16(units.iter().copied());
    quote_characters(
        characters.map(|c| c.map_err(|lone| lone.unpaired_surrogate())),
        mark,
    )
}

fn quote_characters(text: impl Iterator<Item = Result<char, u16>>, mark: char) -> String {
    let mut out = String::from(mark);
    for c in text {
        let c = match c {
            Ok(c) => c,
            Err(lone) => {
                let _ = write!(out, "\\u{lone:04x}");
                continue;
            }
        };
        match c {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == mark => {
                out.push('\\');
                out.push(c);
            }
            c if !is_shown(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push(mark);
    out
}

/// Prints a value of a type.
pub(super) fn print(
    notation: &Notation<'_>,
    type_code: &TypeCode,
    value: &Value,
) -> Result<Printed, String> {
    let plain = type_code.unaliased();
    Ok(match value {
        Value::Struct(parts) => {
            let members = parts.iter().enumerate().map(|(index, part)| {
                let name = plain
                    .member_name(index)
                    .ok_or_else(|| mismatch(type_code))?;
                let member = plain
                    .member_type(index)
                    .ok_or_else(|| mismatch(type_code))?;
                Ok((shown_name(name, index), print(notation, &member, part)?))
            });
            Printed::Members(members.collect::<Result<_, String>>()?)
        }
        Value::Elements(parts) => {
            let element = plain.content_type().ok_or_else(|| mismatch(type_code))?;
            let parts = parts.iter().map(|part| print(notation, &element, part));
            Printed::List(parts.collect::<Result<_, _>>()?)
        }
        Value::Union(number, part) => union(notation, &plain, *number, part.as_deref())?,
        Value::Octets(octets) => print_octets(&plain, octets),
        Value::Any(any) if any.is_empty() => Printed::plain("null"),
        Value::Any(any) => {
            let value = any.to_dynamic().map_err(|error| error.to_string())?;
            Printed::Members(vec![
                (
                    "type".to_owned(),
                    Printed::quoted(&notation.type_text(any.type_code())),
                ),
                (
                    "value".to_owned(),
                    print(notation, any.type_code(), &value)?,
                ),
            ])
        }
        Value::TypeCode(code) => Printed::quoted(&notation.type_text(code)),
        Value::Valuetype(None) => Printed::plain("null"),
        Value::Valuetype(Some(instance)) => valuetype(notation, &plain, instance)?,
        Value::Reference(reference) if reference.profiles.is_empty() => Printed::Leaf {
            text: "nil".to_owned(),
            json: "null".to_owned(),
        },
        Value::Reference(reference) => Printed::bare(notation.world.reference_text(reference)),
        Value::Enum(number) => {
            let name = plain.member_name(*number as usize);
            Printed::enumerator(name.ok_or_else(|| mismatch(type_code))?)
        }
        Value::Fixed(units) => {
            let (_, scale) = plain
                .fixed_digits_scale()
                .ok_or_else(|| mismatch(type_code))?;
            Printed::bare(fixed_text(*units, scale))
        }
        leaf => simple(leaf),
    })
}

fn union(
    notation: &Notation<'_>,
    plain: &TypeCode,
    number: i64,
    part: Option<&Value>,
) -> Result<Printed, String> {
    let discriminator = plain.discriminator_type().ok_or_else(|| mismatch(plain))?;
    let mut members = vec![("case".to_owned(), label(&discriminator, number))];
    if let Some(part) = part {
        let case = case_of(plain, number).and_then(|index| plain.member_type(index));
        let case = case.ok_or_else(|| mismatch(plain))?;
        members.push(("value".to_owned(), print(notation, &case, part)?));
    }
    Ok(Printed::Members(members))
}

/// Prints a valuetype, in one of three forms:
/// - with members: `{valuetype: "repository id", member: value}`
/// - boxed: `{valuetype: "repository id", value: value}`
/// - with state that only its own code can read: `{valuetype: "repository id", opaque: true}`
fn valuetype(
    notation: &Notation<'_>,
    plain: &TypeCode,
    instance: &Instance,
) -> Result<Printed, String> {
    let mut members = vec![("valuetype".to_owned(), Printed::quoted(&instance.type_id))];
    if instance.is_opaque() {
        members.push(("opaque".to_owned(), Printed::plain("true")));
        return Ok(Printed::Members(members));
    }
    let own = plain.find_value(&instance.type_id);
    let own = own.ok_or_else(|| mismatch(plain))?;
    for ((name, member), part) in own.state().iter().zip(&instance.state) {
        let name = if own.kind() == Kind::ValueBox {
            "value"
        } else {
            name
        };
        members.push((name.to_owned(), print(notation, member, part)?));
    }
    Ok(Printed::Members(members))
}

fn print_octets(plain: &TypeCode, octets: &[u8]) -> Printed {
    let element = plain
        .content_type()
        .map(|element| element.unaliased().kind());
    if element == Some(Kind::Char) {
        return Printed::quoted(&octets.iter().copied().map(char::from).collect::<String>());
    }
    let mut text = String::with_capacity(2 * octets.len() + 3);
    text.push_str("x'");
    for octet in octets {
        let _ = write!(text, "{octet:02x}");
    }
    text.push('\'');
    Printed::bare(text)
}

fn mismatch(type_code: &TypeCode) -> String {
    format!("the value is not of type {type_code}")
}

/// Prints a value without parts, if its type is not needed for that.
fn simple(value: &Value) -> Printed {
    match value {
        Value::Nothing => Printed::plain("null"),
        Value::Boolean(value) => Printed::plain(value.to_string()),
        Value::Char(value) => character(char::from(*value)),
        Value::WChar(value) => character(*value),
        Value::Float(value) if value.is_nan() => Printed::bare("nan"),
        Value::Float(value) if value.is_infinite() => Printed::bare(format!("{value:?}")),
        Value::Float(value) => Printed::plain(format!("{value:?}")),
        Value::Double(value) if value.is_finite() => Printed::plain(double_text(*value)),
        Value::Double(value) => Printed::bare(double_text(*value)),
        Value::LongDouble(value) => {
            let text = long_double_text(*value);
            if text.parse::<f64>().is_ok_and(f64::is_finite) {
                Printed::plain(text)
            } else {
                Printed::bare(text)
            }
        }
        Value::String(text) => Printed::quoted(text),
        Value::WString(text) => Printed::plain(quote_units(text.units(), '"')),
        Value::ULongLong(value) => Printed::plain(value.to_string()),
        other => Printed::plain(other.as_number().unwrap_or_default().to_string()),
    }
}

fn character(c: char) -> Printed {
    Printed::Leaf {
        text: quote(c.encode_utf8(&mut [0; 4]), '\''),
        json: quote(c.encode_utf8(&mut [0; 4]), '"'),
    }
}

/// Prints a case label as a value of the discriminator's type.
pub(super) fn label(discriminator: &TypeCode, number: i64) -> Printed {
    let plain = discriminator.unaliased();
    match plain.kind() {
        Kind::Enum => {
            let name = usize::try_from(number)
                .ok()
                .and_then(|index| plain.member_name(index));
            name.map_or_else(|| Printed::plain(number.to_string()), Printed::enumerator)
        }
        Kind::Boolean => Printed::plain((number != 0).to_string()),
        Kind::Char => character(char::from(number as u8)),
        Kind::WChar => character(
            u32::try_from(number)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or('\0'),
        ),
        Kind::ULongLong => Printed::plain(number.cast_unsigned().to_string()),
        _ => Printed::plain(number.to_string()),
    }
}
