//! An event as text and as JSON.
//!
//! What a peer sends cannot harm a terminal or exhaust memory: texts are escaped, nesting is bounded where octets are
//! decoded, and an event above [`EVENT_SHOWN_SIZE_MAX`] is described, not printed.

use deckwatch_cdr::value::{Value, read_value};
use deckwatch_cdr::{ByteOrder, CharSet, Codec, Reader, TypeCode};
use deckwatch_idl::notation::{Notation, Printed};

use super::Event;
use super::selection::{is_octets, scoped_name};
use crate::limits::EVENT_SHOWN_SIZE_MAX;

/// Decodes events, by their own TypeCode or by a type of an IDL file.
pub struct Shown<'n> {
    notation: &'n Notation<'n>,
    /// The types that events may have; see [`Shown::with_types`].
    known: Vec<TypeCode>,
}

/// A decoded event.
pub struct Decoded {
    /// The type's repository id, or its IDL if it has none.
    pub type_name: String,
    /// The type's name in the model, or its whole IDL.
    pub idl: String,
    /// The value, or why it is not printed.
    pub value: Result<Printed, String>,
    /// Whether the value is that of the payload, not of the `any`.
    pub is_of_payload: bool,
}

impl<'n> Shown<'n> {
    /// Returns a decoder that uses the names of the notation's model.
    #[must_use]
    pub const fn new(notation: &'n Notation<'n>) -> Self {
        Self {
            notation,
            known: Vec::new(),
        }
    }

    /// Decodes by these types where they fit: an event with an equivalent TypeCode gets the names of the IDL, which its
    /// own TypeCode may lack; octets are read as an encapsulation, the form in which CORBA's Codec encodes a value.
    #[must_use]
    pub fn with_types(self, known: Vec<TypeCode>) -> Self {
        Self { known, ..self }
    }

    /// Decodes an event.
    #[must_use]
    pub fn decode(&self, event: &Event) -> Decoded {
        let size = event.size();
        let (code, value) = if size > EVENT_SHOWN_SIZE_MAX {
            let why = format!("{size} octets, too many to print");
            (event.data.type_code().clone(), Err(why))
        } else {
            value_of(event, &self.known)
        };
        let own = event.data.type_code();
        Decoded {
            type_name: self.type_name(&code),
            idl: self.notation.type_text(&code),
            value: value.and_then(|value| self.notation.print(&code, &value)),
            is_of_payload: code != *own && !code.equivalent(own) && !is_octets(own),
        }
    }

    fn type_name(&self, code: &TypeCode) -> String {
        match code.id().filter(|id| !id.is_empty()) {
            Some(id) => id.to_owned(),
            None => self.notation.type_text(code),
        }
    }
}

/// Returns a type's name for a line of text: the scoped name of a repository id. A name with other characters than those
/// of IDL is quoted, with escapes.
#[must_use]
pub fn plain_name(type_name: &str) -> String {
    let name = scoped_name(type_name);
    if name.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        name
    } else {
        Printed::quoted(&name).text(usize::MAX)
    }
}

/// Returns the value of an event and its type: the first of the known types by which it can be read whole, else its own.
pub(super) fn value_of(event: &Event, known: &[TypeCode]) -> (TypeCode, Result<Value, String>) {
    match by_known(event, known) {
        Some((code, value)) => (code.clone(), Ok(value)),
        None => by_own(event),
    }
}

/// Returns the first known type by which an event can be read whole, and its value.
fn by_known<'k>(event: &Event, known: &'k [TypeCode]) -> Option<(&'k TypeCode, Value)> {
    let own = event.data.type_code();
    let octets: Option<Vec<u8>> = if !known.is_empty() && is_octets(own) {
        event.data.extract().ok()
    } else {
        None
    };
    known.iter().find_map(|known| {
        let value = if own.equivalent(known) {
            read_value(known, &mut event.data.reader()).ok()
        } else {
            let octets = octets.as_deref().unwrap_or(&event.payload);
            encapsulated(known, octets).or_else(|| plain(known, octets))
        };
        Some((known, value?))
    })
}

/// Returns the value of an event with its own type: of an event that has a payload alone, the payload.
fn by_own(event: &Event) -> (TypeCode, Result<Value, String>) {
    if event.data.is_empty() && !event.payload.is_empty() {
        let octets = Value::Octets(event.payload.clone());
        return (TypeCode::sequence(&TypeCode::octet(), 0), Ok(octets));
    }
    let value = event.data.to_dynamic();
    let code = event.data.type_code().clone();
    (code, value.map_err(|error| error.to_string()))
}

/// Reads a value that takes all octets in the byte order of this host: some suppliers write so, without a byte order in
/// front.
fn plain(known: &TypeCode, octets: &[u8]) -> Option<Value> {
    let mut reader = Reader::new(octets, ByteOrder::NATIVE);
    let value = read_value(known, &mut reader).ok()?;
    (!octets.is_empty() && reader.remaining() == 0).then_some(value)
}

/// Reads a value that takes a whole encapsulation.
fn encapsulated(known: &TypeCode, octets: &[u8]) -> Option<Value> {
    let reader = Reader::new(octets, ByteOrder::Big);
    let mut inner = reader.into_encapsulation().ok()?;
    inner = inner.with_codec(Codec::DEFAULT.with_chars(CharSet::Utf8));
    let value = read_value(known, &mut inner).ok()?;
    (inner.remaining() == 0).then_some(value)
}
