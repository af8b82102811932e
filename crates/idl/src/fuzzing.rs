//! Functions that the fuzz targets call. Each panics if this crate breaks one of its guarantees.

use std::sync::LazyLock;

use deckwatch_cdr::value::Reference;

use crate::generate::{Config, generate};
use crate::limits::{ERRORS_MAX, TYPE_TEXT_MAX};
use crate::model::{DefinitionKind, Model};
use crate::notation::{Notation, World};

/// Reads octets as an IDL file. If the file is accepted, its types have TypeCodes, and the generator returns Rust or
/// errors with a location. If it is refused, its errors can be printed.
///
/// # Panics
/// If one of these guarantees does not hold.
pub fn file(octets: &[u8]) {
    let text = crate::text::source::decode(octets.to_vec());
    let model = match Model::parse("fuzzed.idl", &text) {
        Ok(model) => model,
        Err(errors) => {
            assert!(
                (1..=ERRORS_MAX).contains(&errors.errors.len()),
                "a refusal has its errors"
            );
            assert!(!errors.to_string().is_empty(), "and they can be shown");
            return;
        }
    };
    for (id, definition) in model.definitions() {
        let ty = crate::model::Type::Named(id);
        if let Some(code) = model.type_code_of(&ty) {
            assert!(code.size_min() <= 1 << 40, "a TypeCode is measured");
        }
        if matches!(definition.kind, DefinitionKind::Struct(_)) {
            let _ = model.marshalled_size(&definition.scoped_name);
        }
    }
    match generate(&model, &Config::default()) {
        Ok(text) => {
            let parsed = syn::parse_file(&text).map(drop);
            assert!(parsed.is_ok(), "what is generated parses: {parsed:?}");
        }
        Err(errors) => {
            let unlocated = errors.errors.iter().find(|error| error.span.is_none());
            assert!(unlocated.is_none(), "an error has its place: {unlocated:?}");
        }
    }
}

/// Reads octets as the text of a type and, after the first line end, the text of a value of that type. An accepted type
/// or value reads back from its printed text, and prints the same again. A refusal has a location within the text.
///
/// # Panics
/// If one of these guarantees does not hold.
pub fn value(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let (ty, text) = text.split_once('\n').unwrap_or((&text, ""));
    let notation = Notation::new(&MODEL, &Nowhere);
    let code = match notation.type_code(ty) {
        Ok(code) => code,
        Err(error) => return assert!(error.start <= ty.len() && !error.excerpt(ty).is_empty()),
    };
    let shown = notation.type_text(&code);
    if shown.len() < TYPE_TEXT_MAX {
        let again = notation.type_code(&shown).expect("a type reads back");
        assert_eq!(notation.type_text(&again), shown);
    }
    let value = match notation.read(&code, text) {
        Ok(value) => value,
        Err(error) => return assert!(error.start <= text.len() && !error.excerpt(text).is_empty()),
    };
    let printed = notation
        .print(&code, &value)
        .expect("what was read is of its type");
    for text in [printed.text(40), printed.json(110)] {
        let again = notation.read(&code, &text).expect("a value reads back");
        assert_eq!(
            notation.print(&code, &again).expect("it is of its type"),
            printed
        );
    }
}

static MODEL: LazyLock<Model> =
    LazyLock::new(|| Model::parse("known.idl", KNOWN).expect("it is one"));

/// The types that the texts of values can name.
const KNOWN: &str = "module M {
    enum E { a, b }; struct S { long l; string<4> text; any x; }; typedef sequence<S, 3> Ss; struct T { sequence<T> ts; octet os[2]; };
    union U switch (E) { case a: S part; default: sequence<octet> o; }; interface I {}; typedef fixed<5, 2> F;
};";

/// A `World` without files, in which any text after `IOR:` is a reference.
struct Nowhere;

impl World for Nowhere {
    fn reference(&self, text: &str) -> Result<Reference, String> {
        let type_id = text
            .strip_prefix("IOR:")
            .ok_or("it is not IOR:")?
            .to_owned();
        let profiles = vec![(0, Vec::new())];
        Ok(Reference { type_id, profiles })
    }

    fn reference_text(&self, reference: &Reference) -> String {
        format!("IOR:{}", reference.type_id)
    }

    fn file(&self, _path: &str) -> Result<Vec<u8>, String> {
        Err("there are none".to_owned())
    }
}
