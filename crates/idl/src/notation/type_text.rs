//! Prints types as text.

use std::fmt::Write as _;

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::limits::NESTING_MAX;
use deckwatch_cdr::typecode::Kind;

use super::print::{name_text, quote};
use crate::Model;
use crate::limits::TYPE_TEXT_MAX;

/// Returns a type's name if the model defines the type so, otherwise its full description. The description is cut if it
/// is longer than [`TYPE_TEXT_MAX`] or nests deeper than [`NESTING_MAX`].
pub(super) fn text(model: &Model, type_code: &TypeCode) -> String {
    let mut writing = Writing {
        model,
        inside: Vec::new(),
        out: String::new(),
    };
    writing.write(type_code);
    writing.out
}

struct Writing<'m> {
    model: &'m Model,
    /// Repository ids of the enclosing types that are being printed.
    inside: Vec<String>,
    out: String,
}

impl Writing<'_> {
    fn write(&mut self, code: &TypeCode) {
        if self.out.len() > TYPE_TEXT_MAX || self.inside.len() > usize::from(NESTING_MAX) {
            if !self.out.ends_with("...") {
                self.out.push_str("...");
            }
            return;
        }
        let id = code.id().unwrap_or("");
        if let Some(name) = self.known(code) {
            self.out.push_str(&name);
        } else if self.inside.iter().any(|inside| inside == id) && !id.is_empty() {
            let _ = write!(self.out, "recursive {}", quote(id, '"'));
        } else {
            self.inside.push(id.to_owned());
            self.write_out(code);
            self.inside.pop();
        }
    }

    /// Returns the name of this type in the model.
    fn known(&self, code: &TypeCode) -> Option<String> {
        let id = code.id().filter(|id| !id.is_empty())?;
        if code.kind() == Kind::Objref && id == OBJECT_ID {
            return Some("Object".to_owned());
        }
        let definition = self.model.definition(self.model.lookup_id(id)?);
        let own = self.model.type_code(&definition.scoped_name)?;
        (own == *code).then(|| definition.scoped_name.clone())
    }

    fn write_out(&mut self, code: &TypeCode) {
        let bound = code.length().filter(|bound| *bound != 0);
        match code.kind() {
            Kind::String | Kind::WString => {
                self.out.push_str(code.kind().idl_name());
                if let Some(bound) = bound {
                    let _ = write!(self.out, "<{bound}>");
                }
            }
            Kind::Fixed => {
                let (digits, scale) = code.fixed_digits_scale().unwrap_or((1, 0));
                let _ = write!(self.out, "fixed<{digits}, {scale}>");
            }
            Kind::Sequence => {
                self.out.push_str("sequence<");
                self.content(code);
                if let Some(bound) = bound {
                    let _ = write!(self.out, ", {bound}");
                }
                self.out.push('>');
            }
            Kind::Array => self.array(code),
            Kind::Struct | Kind::Except => {
                self.head(code);
                self.out.push_str(" {");
                for index in 0..code.member_count() {
                    self.out.push(' ');
                    self.member(code, index);
                }
                self.out.push_str(" }");
            }
            Kind::Union => self.union(code),
            Kind::Enum => {
                self.head(code);
                let names: Vec<String> = (0..code.member_count())
                    .filter_map(|index| code.member_name(index).map(name_text))
                    .collect();
                let _ = write!(self.out, " {{ {} }}", names.join(", "));
            }
            Kind::Alias => {
                self.head(code);
                self.out.push(' ');
                self.content(code);
            }
            Kind::Objref | Kind::Value | Kind::ValueBox | Kind::AbstractInterface => {
                self.head(code)
            }
            kind => self.out.push_str(kind.idl_name()),
        }
    }

    /// Prints `struct "id" Name`.
    fn head(&mut self, code: &TypeCode) {
        let (id, name) = (code.id().unwrap_or(""), code.name().unwrap_or(""));
        let _ = write!(self.out, "{} {}", code.kind().idl_name(), quote(id, '"'));
        if !name.is_empty() {
            let _ = write!(self.out, " {}", name_text(name));
        }
    }

    fn content(&mut self, code: &TypeCode) {
        if let Some(content) = code.content_type() {
            self.write(&content);
        }
    }

    /// Prints an array as IDL writes it: the outermost dimension first.
    fn array(&mut self, code: &TypeCode) {
        let mut dimensions = String::new();
        let mut element = code.clone();
        while element.kind() == Kind::Array
            && let (Some(len), Some(content)) = (element.length(), element.content_type())
        {
            let _ = write!(dimensions, "[{len}]");
            element = content;
        }
        self.write(&element);
        self.out.push_str(&dimensions);
    }

    fn member(&mut self, code: &TypeCode, index: usize) {
        if let (Some(name), Some(member)) = (code.member_name(index), code.member_type(index)) {
            self.write(&member);
            let _ = write!(self.out, " {};", name_text(name));
        }
    }

    fn union(&mut self, code: &TypeCode) {
        self.head(code);
        self.out.push_str(" switch (");
        if let Some(discriminator) = code.discriminator_type() {
            self.write(&discriminator);
        }
        self.out.push_str(") {");
        for index in 0..code.member_count() {
            match code.member_label(index) {
                Some(label) => {
                    let _ = write!(self.out, " case {label}: ");
                }
                None => self.out.push_str(" default: "),
            }
            self.member(code, index);
        }
        self.out.push_str(" }");
    }
}

/// The repository id of the base of all interfaces.
pub(super) const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";
