//! Many values of one type in a row, which are skipped by a plan of their type, and values of an Any among others. The
//! octets are those of the values one after the other.

use crate::support::typed_values;
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{Reference, Value, read_value, skip_value, write_value};
use deckwatch_cdr::{
    Any, ByteOrder, Char, CharSet, Codec, DecodeError, LongDouble, Reader, TypeCode, Version,
    Writer,
};
use proptest::prelude::*;

const UTF8: Codec = Codec::DEFAULT.with_chars(CharSet::Utf8);

fn order_of(is_little: bool) -> ByteOrder {
    if is_little {
        ByteOrder::Little
    } else {
        ByteOrder::Big
    }
}

/// The octets of a value that starts at `phase`, after that many other octets.
fn written(code: &TypeCode, value: &Value, order: ByteOrder, phase: usize) -> Vec<u8> {
    let mut octets = vec![0; phase];
    let w = Writer::new(&mut octets).with_origin(0).with_order(order);
    write_value(code, value, &mut w.with_codec(UTF8)).unwrap();
    octets
}

/// Skips the values of a sequence one by one.
fn skip_each(element: &TypeCode, r: &mut Reader<'_>) -> Result<(), DecodeError> {
    let count = r.read_count(element.size_min())?;
    (0..count).try_for_each(|_| r.nested(|r| skip_value(element, r)))
}

/// The value and another value, alternating.
fn row_of(code: &TypeCode, value: &Value, count: usize) -> Value {
    let other = another(code, value);
    let values = [value, &other].into_iter().cycle().take(count);
    let octet = |value: &Value| match value {
        Value::Octet(octet) | Value::Char(Char(octet)) => Some(*octet),
        _ => None,
    };
    match values.clone().map(octet).collect() {
        Some(octets) => Value::Octets(octets),
        None => Value::Elements(values.cloned().collect()),
    }
}

/// Another value of the type. Strings and sequences have another length, unions another case.
fn another(code: &TypeCode, value: &Value) -> Value {
    let code = code.unaliased();
    let of_all = |values: &[Value]| -> Vec<Value> {
        let part = |index| code.member_type(index).or(code.content_type()).unwrap();
        let parts = values.iter().enumerate();
        parts
            .map(|(index, value)| another(&part(index), value))
            .collect()
    };
    // Whether the length may differ; a bound of 0 is no bound.
    let grows = |len: usize| {
        let bound = code.length().unwrap_or_default() as usize;
        (code.kind() == Kind::Sequence).then_some(bound == 0 || len < bound)
    };
    match value {
        Value::Boolean(value) => Value::Boolean(!value),
        Value::Octet(value) => Value::Octet(!value),
        Value::Char(Char(value)) => Value::Char(Char(!value)),
        Value::WChar(value) => Value::WChar(if value.is_ascii() { '\u{20ac}' } else { 'w' }),
        Value::Short(value) => Value::Short(!value),
        Value::ULong(value) => Value::ULong(!value),
        Value::LongLong(value) => Value::LongLong(!value),
        Value::Double(value) => Value::Double(value + 0.5),
        Value::LongDouble(LongDouble(value)) => Value::LongDouble(LongDouble(!value)),
        Value::Fixed(value) => Value::Fixed(-value),
        Value::Enum(value) => Value::Enum((value + 1) % 3),
        Value::String(text) => Value::String(format!("longer {text}")),
        Value::WString(text) => Value::WString(format!("longer {text}").into()),
        Value::Octets(octets) => {
            let mut octets: Vec<u8> = octets.iter().map(|octet| !octet).collect();
            match grows(octets.len()) {
                Some(true) => octets.push(7),
                Some(false) => octets.truncate(1),
                None => {}
            }
            Value::Octets(octets)
        }
        Value::Elements(elements) => {
            let mut elements = of_all(elements);
            match grows(elements.len()) {
                Some(true) => elements.extend(elements.first().cloned()),
                Some(false) => elements.truncate(1),
                None => {}
            }
            Value::Elements(elements)
        }
        Value::Struct(members) => Value::Struct(of_all(members)),
        Value::Union(_, _) => Value::Union(2, Some(Box::new(Value::Short(7)))),
        Value::Reference(reference) => Value::Reference(Reference {
            type_id: format!("{}.1", reference.type_id),
            profiles: [&reference.profiles[..], &[(8, vec![1])]].concat(),
        }),
        Value::TypeCode(_) => Value::TypeCode(TypeCode::string(9)),
        Value::Any(_) => Value::Any(Any::from_value(&0.5_f64).unwrap()),
        Value::Valuetype(_) => Value::Valuetype(None),
        other => panic!("none of these types: {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn values_in_a_row_are_passed_over_as_one_after_the_other(
        (code, value) in typed_values(),
        count in 5_usize..20,
        phase in 0_usize..8,
        is_little: bool,
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        cut: bool,
    ) {
        let order = order_of(is_little);
        let row = TypeCode::sequence(&code, 0);
        let mut octets = written(&row, &row_of(&code, &value, count), order, phase);
        if let Some((at, to)) = damage {
            let at = phase + at.index(octets.len() - phase);
            octets[at] = to;
            if cut {
                octets.truncate(at);
            }
        }
        let r = Reader::new(&octets, order).with_codec(UTF8).at_position(phase);
        let (mut whole, mut each) = (r, r);
        let outcome = skip_value(&row, &mut whole);
        let is_shared = matches!(value, Value::Valuetype(_));
        if !is_shared || damage.is_none() {
            let one_by_one = skip_each(&code, &mut each);
            // Numbers are skipped all at once. If the padding before them leaves too few octets, the error is that of
            // the first number.
            let is_padded = matches!(code.unaliased().kind(), Kind::LongLong | Kind::Double | Kind::LongDouble);
            if is_padded {
                prop_assert_eq!(outcome.is_ok(), one_by_one.is_ok());
            } else {
                prop_assert_eq!(outcome, one_by_one);
            }
            prop_assert!(outcome.is_err() || whole.position() == each.position());
        }
        if damage.is_none() {
            prop_assert_eq!(outcome, Ok(()));
        }
        prop_assert_eq!(outcome.is_ok(), read_value(&row, &mut r.clone()).is_ok());
    }

    #[test]
    fn the_value_of_an_any_is_written_as_the_value_is(
        (code, value) in typed_values(),
        count in 1_usize..12,
        from in (any::<bool>(), 0_usize..8),
        to in (any::<bool>(), 0_usize..8),
        version in prop::sample::select(vec![Version::V1_0, Version::V1_1, Version::V1_2]),
    ) {
        let row = TypeCode::sequence(&code, 0);
        let value = row_of(&code, &value, count);
        let octets = written(&row, &value, order_of(from.0), from.1);
        let mut r = Reader::new(&octets, order_of(from.0)).with_codec(UTF8).at_position(from.1);
        let any = Any::read(row.clone(), &mut r).unwrap();
        prop_assert_eq!(r.finish(), Ok(()));
        prop_assert_eq!(&any.to_dynamic().unwrap(), &value);
        let codec = UTF8.with_version(version);
        let form = |w: Writer<'_>, write: &dyn Fn(&mut Writer<'_>) -> Result<(), _>| {
            write(&mut w.with_origin(0).with_order(order_of(to.0)).with_codec(codec))
        };
        let (mut expected, mut copied) = (vec![0; to.1], vec![0; to.1]);
        let refused = form(Writer::new(&mut expected), &|w| write_value(&row, &value, w));
        let outcome = form(Writer::new(&mut copied), &|w| any.write_value(w));
        prop_assert_eq!(outcome, refused);
        if outcome.is_ok() {
            prop_assert_eq!(copied, expected);
        }
    }
}
