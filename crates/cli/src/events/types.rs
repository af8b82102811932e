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
    /// Only events of this type: a name, scoped or not, or a repository id; may be repeated. With `--idl`, a type of that
    /// file: events whose TypeCode lacks names are decoded with its names, and octets as an encapsulation of it
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    #[command(flatten)]
    pub(super) idl: IdlArgs,
}

impl TypeArgs {
    /// Returns the types of the IDL file by which events are decoded; none without a file.
    pub(super) fn known(&self, model: &Model) -> anyhow::Result<Vec<TypeCode>> {
        if self.idl.idl.is_none() {
            return Ok(Vec::new());
        }
        let types = self.types.iter().map(|text| type_code(model, text));
        types.collect()
    }

    /// Returns the choice of events.
    pub(super) fn selection(&self, model: &Model) -> anyhow::Result<Selection> {
        let known = self.known(model)?.into_iter().map(TypeTerm::Known);
        let names = self.types.iter().cloned().map(TypeTerm::Name);
        let types = if self.idl.idl.is_some() {
            known.collect()
        } else {
            names.collect()
        };
        Ok(Selection { types })
    }
}

/// Reads the text of a type. The error shows its place in the text.
pub(super) fn type_code(model: &Model, text: &str) -> anyhow::Result<TypeCode> {
    let by_id = model.lookup_id(text);
    let name = by_id.map_or(text, |id| model.definition(id).scoped_name.as_str());
    let read = Notation::new(model, &NoWorld).type_code(name);
    read.map_err(|error| {
        anyhow!(
            "`--type {text}`: {error}\n{}",
            error.excerpt(name).trim_end()
        )
    })
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
