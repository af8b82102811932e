//! The text notation for values: a text for every value of every IDL type, read and printed by its TypeCode. It is a
//! superset of JSON.
//!
//! | type | text |
//! | --- | --- |
//! | integers, `octet` | `42`, `-1`, `0x2a` |
//! | `float`, `double`, `long double` | `1.5`, `-2e9`, `inf`, `nan`; a `long double` also `0x1.8p3` |
//! | `fixed` | `1.25` or `1.25d` |
//! | `boolean` | `true`, `false` |
//! | `char`, `wchar`, `string`, `wstring` | `"text"` or `'text'` with JSON's escapes, or bare |
//! | enum | the enumerator, with or without its scope |
//! | struct, exception | `{member: value, member: value}` |
//! | union | `{case: label, value: member}`, or `{member: value}` |
//! | sequence, array | `[value, value]` |
//! | sequence, array of `octet` | also `x'00ff'`, or `@file` for a file's content |
//! | sequence, array of `char` | also `"text"` |
//! | `any` | `{type: "sequence<long>", value: [1, 2]}`, or `null` for one without value |
//! | object references | `IOR:...`, `corbaloc:...`, `corbaname:...`, or `nil` |
//! | `TypeCode` | an IDL type, as in an `any` |
//!
//! Member names can be bare or in quotes, in any order. A value that is not part of another can be bare, whatever
//! characters it contains.

mod float;
mod leaf;
mod print;
mod read;
mod scan;
mod type_read;
mod type_text;

pub use print::Printed;

use std::fmt;

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::value::{Reference, Value};
use deckwatch_text::is_shown;

use crate::Model;

/// Access to object references and files that the texts of values name.
pub trait World {
    /// Converts a text other than `nil` to an object reference.
    ///
    /// # Errors
    /// Returns the reason, as a clause, if the text is not a reference.
    fn reference(&self, text: &str) -> Result<Reference, String>;

    /// Returns the text of a reference that is not nil, in the form that [`World::reference`] reads.
    fn reference_text(&self, reference: &Reference) -> String;

    /// Returns a file's content.
    ///
    /// # Errors
    /// Returns the reason, as a clause, if the file cannot be read.
    fn file(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// Reads and prints values. The texts of types may use names of a model.
#[derive(Clone, Copy)]
pub struct Notation<'m> {
    pub(crate) model: &'m Model,
    pub(crate) world: &'m dyn World,
}

impl<'m> Notation<'m> {
    /// Creates a notation with the type names of `model`.
    #[must_use]
    pub fn new(model: &'m Model, world: &'m dyn World) -> Self {
        Self { model, world }
    }

    /// Returns the model with the type names.
    #[must_use]
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Reads a value of a type.
    ///
    /// # Errors
    /// Returns the location of the error, and what was expected there.
    pub fn read(&self, type_code: &TypeCode, text: &str) -> Result<Value, NotationError> {
        read::whole(self, type_code, text)
    }

    /// Prints a value of a type.
    ///
    /// # Errors
    /// Returns the reason, as a clause, if the value is not of the type, or the octets of an `any` in it are not of the
    /// `any`'s type.
    pub fn print(&self, type_code: &TypeCode, value: &Value) -> Result<Printed, String> {
        print::print(self, type_code, value)
    }

    /// Reads the text of a type, such as `sequence<Nav::NavData, 5>` or `long[3]`.
    ///
    /// # Errors
    /// Returns the location of the error, and what was expected there.
    pub fn type_code(&self, text: &str) -> Result<TypeCode, NotationError> {
        type_read::whole(self.model, text)
    }

    /// Returns the text of a type, as [`Notation::type_code`] reads it: its name if the model defines it so, otherwise
    /// its full description.
    #[must_use]
    pub fn type_text(&self, type_code: &TypeCode) -> String {
        type_text::text(self.model, type_code)
    }
}

/// Why a text is not a value, or not a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotationError {
    /// The part of the value, for instance `tracks[2].id`; empty for the whole.
    pub part: String,
    /// What was expected, and what was found.
    pub message: String,
    /// Offset of the error's first octet in the text.
    pub start: usize,
    /// Offset after the error's last octet in the text.
    pub end: usize,
}

impl NotationError {
    pub(crate) fn new(start: usize, end: usize, message: impl Into<String>) -> Self {
        Self {
            part: String::new(),
            message: message.into(),
            start,
            end,
        }
    }

    /// Returns the same error for the value that contains this part; `step` is the name or index of the part.
    pub(crate) fn within(mut self, step: &str) -> Self {
        let joint = if self.part.is_empty() || self.part.starts_with('[') {
            ""
        } else {
            "."
        };
        self.part = format!("{step}{joint}{}", self.part);
        self
    }

    /// Returns the line of the error with carets under the location. A long line is cut.
    #[must_use]
    pub fn excerpt(&self, text: &str) -> String {
        let start = self.start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[line_start..].lines().next().unwrap_or("");
        let column = text[line_start..start].chars().count();
        let skipped = column.saturating_sub(COLUMNS_BEFORE);
        let shown: String = line
            .chars()
            .skip(skipped)
            .take(COLUMNS_MAX)
            .map(|c| if is_shown(c) { c } else { ' ' })
            .collect();
        let end = self
            .end
            .clamp(start, line_start + line.len().max(start - line_start));
        let width = text[start..end].chars().count().clamp(1, COLUMNS_MAX);
        let carets = "^".repeat(width.min(COLUMNS_MAX - (column - skipped).min(COLUMNS_MAX - 1)));
        format!(
            "  {shown}\n  {:indent$}{carets}\n",
            "",
            indent = column - skipped
        )
    }
}

impl fmt::Display for NotationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.part.is_empty() {
            write!(f, "`{}`: ", self.part)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for NotationError {}

/// Characters shown of a long line.
const COLUMNS_MAX: usize = 120;
/// Characters shown before the error in a long line.
const COLUMNS_BEFORE: usize = 60;

#[cfg(test)]
mod tests;
