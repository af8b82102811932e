//! The types of events: which are wanted, and by which IDL they are decoded.

use anyhow::anyhow;
use deckwatch_cdr::TypeCode;
use deckwatch_cdr::value::Reference;
use deckwatch_idl::Model;
use deckwatch_idl::notation::{Notation, World};
use deckwatch_probe::events::selection::{Selection, TypeTerm};

use crate::idl_args::IdlArgs;

#[derive(clap::Args)]
pub(super) struct TypeArgs {
    /// Only events of this type: a name, scoped or not, or a repository id; on a real-time channel also the number in the
    /// header. May be repeated. With `--idl`, a type of that file: events whose TypeCode lacks names are decoded with its
    /// names, and octets as an encapsulation of it
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only events with this source in the header, on a real-time channel; may be repeated
    #[arg(long = "source", value_name = "NUMBER")]
    sources: Vec<i32>,
    #[command(flatten)]
    pub(super) idl: IdlArgs,
}

impl TypeArgs {
    /// Returns the types of the IDL file by which events are decoded; none without a file.
    pub(super) fn known(&self, model: &Model) -> anyhow::Result<Vec<TypeCode>> {
        if self.idl.idl.is_none() {
            return Ok(Vec::new());
        }
        let names = self.types.iter().filter(|text| number(text).is_none());
        names.map(|text| type_code(model, text)).collect()
    }

    /// Returns the choice of events.
    pub(super) fn selection(&self, model: &Model) -> anyhow::Result<Selection> {
        let term = |text: &String| {
            Ok(match number(text) {
                Some(number) => TypeTerm::Header(number),
                None if self.idl.idl.is_some() => TypeTerm::Known(type_code(model, text)?),
                None => TypeTerm::Name(text.clone()),
            })
        };
        Ok(Selection {
            types: self.types.iter().map(term).collect::<anyhow::Result<_>>()?,
            sources: self.sources.clone(),
        })
    }
}

/// Returns the number of a type in a header. No name of a type is a number.
fn number(text: &str) -> Option<i32> {
    text.parse().ok()
}

/// Reads the type of the option `--type`.
pub(super) fn type_code(model: &Model, text: &str) -> anyhow::Result<TypeCode> {
    read_type(model, text).map_err(|error| anyhow!("`--type {text}`: {error}"))
}

/// Reads the text of a type, or its repository id in the model. The error shows its place in the text.
pub(super) fn read_type(model: &Model, text: &str) -> anyhow::Result<TypeCode> {
    let by_id = model.lookup_id(text);
    let name = by_id.map_or(text, |id| model.definition(id).scoped_name.as_str());
    let read = Notation::new(model, &NoWorld).type_code(name);
    read.map_err(|error| anyhow!("{error}\n{}", error.excerpt(name).trim_end()))
}

/// For texts of types, which name neither references nor files.
struct NoWorld;

impl World for NoWorld {
    fn reference(&self, _: &str) -> Result<Reference, String> {
        Err("a type names no reference".to_owned())
    }

    fn reference_text(&self, _: &Reference) -> String {
        String::new()
    }

    fn file(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("a type names no file".to_owned())
    }
}
