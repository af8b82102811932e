//! Value types and values for tests.

#![allow(dead_code, reason = "each test file uses its own part")]

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::typecode::{ValueMember, ValueModifier};
use deckwatch_cdr::value::{Instance, Value};

/// A value type whose members are all public. Its name is the last part of its repository id.
pub(crate) fn valuetype(
    id: &str,
    modifier: ValueModifier,
    base: Option<&TypeCode>,
    members: &[(&str, &TypeCode)],
) -> TypeCode {
    let members = members.iter().map(|(name, type_code)| ValueMember {
        name,
        type_code,
        is_public: true,
    });
    let name = id.trim_start_matches("IDL:").trim_end_matches(":1.0");
    let name = name.rsplit('/').next().unwrap_or_default();
    TypeCode::value(id, name, modifier, base, &members.collect::<Vec<_>>())
}

/// A value of this value type.
pub(crate) fn instance(type_id: &str, state: Vec<Value>) -> Value {
    let type_id = type_id.to_owned();
    Value::Valuetype(Some(Box::new(Instance { type_id, state })))
}
