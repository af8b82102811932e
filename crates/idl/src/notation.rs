//! Values as people write them: a text for every value of every IDL type, read and printed by its TypeCode. A superset of JSON.
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
//! | those of `octet` | also `x'00ff'`, or `@file` for a file's content |
//! | those of `char` | also `"text"` |
//! | `any` | `{type: "sequence<long>", value: [1, 2]}`, or `null` for one without value |
//! | object references | `IOR:...`, `corbaloc:...`, `corbaname:...`, or `nil` |
//! | `TypeCode` | an IDL type, as in an `any` |
//!
//! Names of members stand bare or in quotes, in any order. A value alone (not inside another) may stand bare whatever it holds.

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

use crate::Model;

/// What values refer to outside of themselves and their types.
pub trait World {
    /// The reference of a text that is not `nil`.
    ///
    /// # Errors
    /// Why it is none, as a clause.
    fn reference(&self, text: &str) -> Result<Reference, String>;

    /// A reference that is not nil, as [`World::reference`] reads it.
    fn reference_text(&self, reference: &Reference) -> String;

    /// A file's content.
    ///
    /// # Errors
    /// Why it cannot be had, as a clause.
    fn file(&self, path: &str) -> Result<Vec<u8>, String>;
}

/// Reads and prints values whose types are named in a model.
#[derive(Clone, Copy)]
pub struct Notation<'m> {
    pub(crate) model: &'m Model,
    pub(crate) world: &'m dyn World,
}

impl<'m> Notation<'m> {
    /// For the types of `model`.
    #[must_use]
    pub fn new(model: &'m Model, world: &'m dyn World) -> Self {
        Self { model, world }
    }

    /// Where its types are named.
    #[must_use]
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Reads a value of this type.
    ///
    /// # Errors
    /// What was expected where.
    pub fn read(&self, type_code: &TypeCode, text: &str) -> Result<Value, NotationError> {
        read::whole(self, type_code, text)
    }

    /// A value of this type, ready to be shown.
    ///
    /// # Errors
    /// The clause that says why, where the value is not of the type or an `any` in it holds octets that are not of its own.
    pub fn print(&self, type_code: &TypeCode, value: &Value) -> Result<Printed, String> {
        print::print(self, type_code, value)
    }

    /// The type of a text such as `sequence<Nav::NavData, 5>` or `long[3]`.
    ///
    /// # Errors
    /// What was expected where.
    pub fn type_code(&self, text: &str) -> Result<TypeCode, NotationError> {
        type_read::whole(self.model, text)
    }

    /// A type as [`Notation::type_code`] reads it: by its name where the model has it so, else written out.
    #[must_use]
    pub fn type_text(&self, type_code: &TypeCode) -> String {
        type_text::text(self.model, type_code)
    }
}

/// Why a text is no value, or no type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotationError {
    /// The part of the value, for instance `tracks[2].id`; empty for the whole.
    pub part: String,
    /// What was expected, and what stands there.
    pub message: String,
    /// Octets of the text before the place.
    pub start: usize,
    /// Octets of the text before the place's end.
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

    /// The same error, of a part of something larger.
    pub(crate) fn within(mut self, step: &str) -> Self {
        let joint = if self.part.is_empty() || self.part.starts_with('[') {
            ""
        } else {
            "."
        };
        self.part = format!("{step}{joint}{}", self.part);
        self
    }

    /// The line of the text with carets under the place, cut where it is long.
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
            .map(|c| if c.is_control() { ' ' } else { c })
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

/// How much of a long line is shown.
const COLUMNS_MAX: usize = 120;
/// How much of a long line is shown before the place.
const COLUMNS_BEFORE: usize = 60;

#[cfg(test)]
mod tests;
