//! What the fuzz target runs: a plain function that panics where a promise of this crate is broken.

use crate::generate::{Config, generate};
use crate::limits::ERRORS_MAX;
use crate::model::{DefinitionKind, Model};

/// Takes octets as an IDL file. One that is accepted has TypeCodes for its types, and becomes Rust or located errors; one
/// that is not has errors that can be shown.
///
/// # Panics
/// Where one of these is not so.
pub fn file(octets: &[u8]) {
    let text = crate::source::decode(octets.to_vec());
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
    if let Err(errors) = generate(&model, &Config::default()) {
        let unparsed = errors.errors.iter().find(|error| error.span.is_none());
        assert!(unparsed.is_none(), "what is generated parses: {unparsed:?}");
    }
}
