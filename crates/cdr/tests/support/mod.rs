//! Random types and values.

use deckwatch_cdr::typecode::{Case, Member, ValueMember, ValueModifier};
use deckwatch_cdr::value::{Instance, Reference, Value};
use deckwatch_cdr::{Any, Char, TypeCode};
use proptest::prelude::*;

/// A type and a value of it.
pub(crate) fn typed_values() -> impl Strategy<Value = (TypeCode, Value)> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|v| (TypeCode::boolean(), Value::Boolean(v))),
        any::<u8>().prop_map(|v| (TypeCode::octet(), Value::Octet(v))),
        any::<u8>().prop_map(|v| (TypeCode::char(), Value::Char(Char(v)))),
        any::<i16>().prop_map(|v| (TypeCode::short(), Value::Short(v))),
        any::<u32>().prop_map(|v| (TypeCode::ulong(), Value::ULong(v))),
        any::<i64>().prop_map(|v| (TypeCode::longlong(), Value::LongLong(v))),
        any::<i32>().prop_map(|v| (TypeCode::double(), Value::Double(v.into()))),
        any::<u128>().prop_map(|v| (
            TypeCode::longdouble(),
            Value::LongDouble(deckwatch_cdr::LongDouble(v))
        )),
        any::<char>().prop_map(|v| (TypeCode::wchar(), Value::WChar(v))),
        "[^\0]{0,6}".prop_map(|v| (TypeCode::string(0), Value::String(v))),
        "[^\0]{0,6}".prop_map(|v| (TypeCode::wstring(20), Value::WString(v.into()))),
        (-999_i128..1000).prop_map(|v| (TypeCode::fixed(3, 1), Value::Fixed(v))),
        (0_u32..3).prop_map(|v| (
            TypeCode::enumeration("IDL:E:1.0", "E", &["a", "b", "c"]),
            Value::Enum(v)
        )),
        any::<Vec<u8>>()
            .prop_map(|v| (TypeCode::sequence(&TypeCode::octet(), 0), Value::Octets(v))),
        any::<[u8; 3]>().prop_map(|v| (
            TypeCode::array(&TypeCode::char(), 3),
            Value::Octets(v.to_vec())
        )),
        any::<char>().prop_map(|label| (TypeCode::meta(), Value::TypeCode(of_wide_labels(label)))),
        any::<Vec<u8>>().prop_map(|v| {
            let reference = Reference {
                type_id: "IDL:X:1.0".to_owned(),
                profiles: vec![(7, v)],
            };
            (
                TypeCode::interface("IDL:X:1.0", "X"),
                Value::Reference(reference),
            )
        }),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(structure),
            (inner.clone(), 1_usize..4).prop_map(|((code, value), len)| elements(
                &TypeCode::array(&code, len as u32),
                &value,
                len
            )),
            (inner.clone(), 0_usize..4).prop_map(|((code, value), len)| elements(
                &TypeCode::sequence(&code, 4),
                &value,
                len
            )),
            inner
                .clone()
                .prop_map(|(code, value)| (TypeCode::alias("IDL:A:1.0", "A", &code), value)),
            inner.clone().prop_map(|(code, value)| (
                TypeCode::any(),
                Value::Any(Any::from_dynamic(&code, &value).unwrap())
            )),
            inner
                .clone()
                .prop_map(|(code, _)| (TypeCode::meta(), Value::TypeCode(code))),
            (inner.clone(), any::<bool>())
                .prop_map(|((code, value), first)| union(&code, value, first)),
            (prop::collection::vec(inner.clone(), 0..4), any::<u8>())
                .prop_map(|(parts, form)| valuetype(&parts, form)),
            (inner, any::<bool>()).prop_map(|((code, value), is_null)| {
                let boxed = TypeCode::value_box("IDL:Box:1.0", "Box", &code);
                (boxed, instance("IDL:Box:1.0", vec![value], is_null))
            }),
        ]
    })
}

/// `union W switch (wchar) { case ...: short one; };`
fn of_wide_labels(label: char) -> TypeCode {
    let case = Case {
        label: Some(u32::from(label).into()),
        name: "one",
        type_code: &TypeCode::short(),
    };
    TypeCode::union("IDL:W:1.0", "W", &TypeCode::wchar(), &[case])
}

/// A value type with the first half of the members in its base. The bits of `form` choose null, truncatable, and an
/// abstract interface as the declared type.
fn valuetype(parts: &[(TypeCode, Value)], form: u8) -> (TypeCode, Value) {
    let members: Vec<_> = parts
        .iter()
        .map(|(type_code, _)| ValueMember {
            name: "m",
            type_code,
            is_public: form & 1 == 0,
        })
        .collect();
    let (of_base, own) = members.split_at(members.len() / 2);
    let modifier = if form & 2 == 0 {
        ValueModifier::Truncatable
    } else {
        ValueModifier::None
    };
    let base = TypeCode::value("IDL:B:1.0", "B", ValueModifier::None, None, of_base);
    let code = TypeCode::value("IDL:V:1.0", "V", modifier, Some(&base), own);
    let state = parts.iter().map(|(_, value)| value.clone()).collect();
    (code, instance("IDL:V:1.0", state, form & 12 == 0))
}

fn instance(type_id: &str, state: Vec<Value>, is_null: bool) -> Value {
    let type_id = type_id.to_owned();
    Value::Valuetype((!is_null).then(|| Box::new(Instance { type_id, state })))
}

fn structure(parts: Vec<(TypeCode, Value)>) -> (TypeCode, Value) {
    let members: Vec<_> = parts
        .iter()
        .map(|(type_code, _)| Member {
            name: "m",
            type_code,
        })
        .collect();
    let code = TypeCode::structure("IDL:S:1.0", "S", &members);
    (
        code,
        Value::Struct(parts.into_iter().map(|(_, value)| value).collect()),
    )
}

fn elements(code: &TypeCode, value: &Value, len: usize) -> (TypeCode, Value) {
    let value = match value {
        Value::Octet(octet) | Value::Char(Char(octet)) => Value::Octets(vec![*octet; len]),
        other => Value::Elements(vec![other.clone(); len]),
    };
    (code.clone(), value)
}

fn union(code: &TypeCode, value: Value, first: bool) -> (TypeCode, Value) {
    let cases = [
        Case {
            label: Some(1),
            name: "one",
            type_code: code,
        },
        Case {
            label: Some(2),
            name: "two",
            type_code: &TypeCode::short(),
        },
    ];
    let code = TypeCode::union("IDL:U:1.0", "U", &TypeCode::ushort(), &cases);
    (
        code,
        if first {
            Value::Union(1, Some(Box::new(value)))
        } else {
            Value::Union(9, None)
        },
    )
}
