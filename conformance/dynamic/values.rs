//! DynAny of value types, boxed values and abstract interfaces, and of whole sequences, by clause (CORBA 3.3 part 1,
//! clause 13).

use crate::valuetypes;
use deckwatch_cdr::typecode::{Kind, Member, ValueModifier};
use deckwatch_cdr::value::{Instance, Reference, Value};
use deckwatch_cdr::{
    Any, ByteOrder, Char, DecodeFact, LongDouble, Parse, Reader, TypeCode, Write, Writer,
};
use deckwatch_dynamic::dyn_any::{DynAny, DynAnyError};

const MISMATCH: DynAnyError = DynAnyError::TypeMismatch;
const INVALID: DynAnyError = DynAnyError::InvalidValue;

fn made(code: &TypeCode) -> DynAny {
    DynAny::from_type_code(code).expect("a type with values")
}

fn any(code: &TypeCode, value: Value) -> Any {
    Any::from_dynamic(code, &value).expect("a value of its type")
}

fn value_code(
    name: &str,
    modifier: ValueModifier,
    base: Option<&TypeCode>,
    members: &[(&str, &TypeCode)],
) -> TypeCode {
    valuetypes::valuetype(&id(name), modifier, base, members)
}

fn id(name: &str) -> String {
    format!("IDL:{name}:1.0")
}

/// `valuetype Point { public long x; };`
fn point() -> TypeCode {
    value_code(
        "Point",
        ValueModifier::None,
        None,
        &[("x", &TypeCode::long())],
    )
}

/// `valuetype Place : truncatable Point { public string name; public Place next; };`
fn place() -> TypeCode {
    let members = [
        ("name", &TypeCode::unbounded_string()),
        ("next", &TypeCode::recursive("IDL:Place:1.0")),
    ];
    value_code(
        "Place",
        ValueModifier::Truncatable,
        Some(&point()),
        &members,
    )
}

fn boxed() -> TypeCode {
    TypeCode::value_box("IDL:Box:1.0", "Box", &TypeCode::string(8))
}

fn instance(name: &str, state: Vec<Value>) -> Value {
    valuetypes::instance(&id(name), state)
}

fn a_place(x: i32, name: &str, next: Value) -> Value {
    instance(
        "Place",
        vec![Value::Long(x), Value::String(name.to_owned()), next],
    )
}

const NOTHING: Value = Value::Valuetype(None);

#[test]
fn a_type_tells_what_its_values_are_made_of() {
    let code = place();
    assert_eq!((code.kind(), code.member_count()), (Kind::Value, 2));
    assert_eq!(code.type_modifier(), Some(ValueModifier::Truncatable));
    assert_eq!(code.concrete_base_type(), Some(point()));
    assert_eq!(point().concrete_base_type(), None);
    assert_eq!(
        (code.member_is_public(1), code.member_is_public(2)),
        (Some(true), None)
    );
    let state = code.state();
    let names: Vec<_> = state.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["x", "name", "next"]);
    assert!(state[2].1.equivalent(&code));
    assert_eq!(boxed().content_type(), Some(TypeCode::string(8)));
    assert_eq!(code.find_value("IDL:Point:1.0"), Some(point()));
    assert_eq!(
        (boxed().type_modifier(), boxed().concrete_base_type()),
        (None, None)
    );
    for code in [
        code,
        boxed(),
        TypeCode::abstract_interface("IDL:I:1.0", "I"),
    ] {
        let mut octets = Vec::new();
        code.write(&mut Writer::new(&mut octets))
            .expect("a TypeCode");
        let back = TypeCode::parse(&mut Reader::new(&octets, ByteOrder::NATIVE));
        assert_eq!(back, Ok(code));
    }
}

#[test]
fn a_value_made_of_its_type_is_null() {
    for code in [place(), boxed()] {
        let mut value = made(&code);
        assert_eq!((value.to_value(), value.component_count()), (NOTHING, 0));
        assert!(!value.rewind() && !value.next());
        assert_eq!(value.current_component(), Ok(None));
        assert_eq!(value.insert_long(1), Err(INVALID));
        assert_eq!(value.long(), Err(INVALID));
        let written = value.to_any().expect("null can be written");
        assert_eq!(DynAny::from_any(&written), Ok(value));
    }
    let nil = made(&TypeCode::abstract_interface("IDL:I:1.0", "I")).to_value();
    assert_eq!(nil, Value::Reference(Reference::default()));
}

#[test]
fn null_becomes_a_value_and_a_value_null() {
    let mut value = made(&place());
    let mut of = value.as_value().expect("a value");
    assert!(of.is_null());
    assert_eq!(of.current_member_name(), Err(INVALID));
    assert_eq!(
        (of.members(), of.members_as_dyn_any()),
        (Err(INVALID), Err(INVALID))
    );
    assert_eq!(of.set_to_value(), Ok(()));
    assert!(!of.is_null());
    assert_eq!(of.current_member_name().as_deref(), Ok("x"));
    assert_eq!(value.to_value(), a_place(0, "", NOTHING));
    assert_eq!(value.insert_long(5), Ok(()));
    // A value that is not null stays unchanged.
    assert_eq!(
        value.as_value().and_then(|mut of| of.set_to_value()),
        Ok(())
    );
    assert_eq!((value.component_count(), value.long()), (3, Ok(5)));
    value.as_value().expect("a value").set_to_null();
    assert_eq!((value.component_count(), value.to_value()), (0, NOTHING));
    assert_eq!(value.current_component(), Ok(None));
    let abstracted = value_code("A", ValueModifier::Abstract, None, &[]);
    let mut abstracted = made(&abstracted);
    let mut of = abstracted.as_value().expect("a value");
    assert_eq!(of.set_to_value(), Err(INVALID));
    assert!(of.is_null());
    assert_eq!(made(&boxed()).as_value().err(), Some(MISMATCH));
    assert_eq!(made(&place()).as_value_box().err(), Some(MISMATCH));
}

#[test]
fn members_of_a_value_are_walked_over_with_those_of_its_base() {
    let mut value = made(&place());
    value
        .as_value()
        .expect("a value")
        .set_to_value()
        .expect("it has values");
    assert_eq!(value.insert_long(7), Ok(()));
    assert!(value.next());
    assert_eq!(value.insert_string("harbour"), Ok(()));
    assert!(value.next());
    let of = value.as_value().expect("a value");
    assert_eq!(of.current_member_name().as_deref(), Ok("next"));
    assert_eq!(of.current_member_kind(), Ok(Kind::Value));
    // A component is part of the whole value, at any depth.
    let next = value.current_component().expect("it has components");
    let next = next.expect("the third");
    next.as_value()
        .expect("a value")
        .set_to_value()
        .expect("it has values");
    assert_eq!(next.insert_long(8), Ok(()));
    assert!(!value.next());
    let whole = a_place(7, "harbour", a_place(8, "", NOTHING));
    assert_eq!(value.to_value(), whole);
    let written = value.to_any().expect("it can be written");
    assert_eq!(written.to_dynamic(), Ok(whole));
    assert_eq!(DynAny::from_any(&written), Ok(value));
    let empty = value_code("Empty", ValueModifier::None, None, &[]);
    let mut empty = made(&empty);
    assert_eq!(empty.current_component(), Err(MISMATCH));
    assert_eq!(empty.insert_long(1), Err(MISMATCH));
    let mut of = empty.as_value().expect("a value");
    assert_eq!(of.set_to_value(), Ok(()));
    assert_eq!((of.is_null(), of.members()), (false, Ok(Vec::new())));
    assert_eq!(of.current_member_kind(), Err(MISMATCH));
}

#[test]
fn members_of_a_value_are_given_and_taken_in_order() {
    let number = any(&TypeCode::long(), Value::Long(5));
    let text = any(
        &TypeCode::unbounded_string(),
        Value::String("ship".to_owned()),
    );
    let last = any(&place(), NOTHING);
    let mut value = made(&place());
    let mut of = value.as_value().expect("a value");
    let given = [
        ("x", number.clone()),
        ("", text.clone()),
        ("next", last.clone()),
    ];
    // A failed `set_members` leaves the value null.
    assert_eq!(of.set_members(&given[..2]), Err(INVALID));
    let swapped = [("", text.clone()), ("", number.clone()), ("", last.clone())];
    assert_eq!(of.set_members(&swapped), Err(MISMATCH));
    let misnamed = [
        ("y", number.clone()),
        ("", text.clone()),
        ("", last.clone()),
    ];
    assert_eq!(of.set_members(&misnamed), Err(MISMATCH));
    assert!(of.is_null());
    assert_eq!(of.set_members(&given), Ok(()));
    assert_eq!(of.current_member_name().as_deref(), Ok("x"));
    let back = of.members().expect("it can be written");
    let names: Vec<_> = back.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x", "name", "next"]);
    assert_eq!(back[1].1, text);
    assert_eq!(
        of.members_as_dyn_any().expect("not null")[0].1.long(),
        Ok(5)
    );
    let copies: Vec<_> = of.members_as_dyn_any().expect("not null");
    let copies: Vec<_> = copies
        .iter()
        .map(|(name, copy)| (name.as_str(), copy.copy()))
        .collect();
    let mut other = made(&place());
    let mut of = other.as_value().expect("a value");
    assert_eq!(of.set_members_as_dyn_any(&copies), Ok(()));
    assert!(other.equal(&value));
}

#[test]
fn values_are_assigned_compared_and_copied() {
    let mut value = made(&place());
    let alias = TypeCode::alias("IDL:Berth:1.0", "Berth", &place());
    let whole = a_place(1, "a", a_place(2, "b", NOTHING));
    assert_eq!(value.set_any(&any(&alias, whole.clone())), Ok(()));
    assert_eq!((value.to_value(), value.long()), (whole, Ok(1)));
    let mut other = made(&alias);
    assert!(!other.equal(&value) && !value.equal(&other));
    assert_eq!(other.assign(&value), Ok(()));
    assert!(other.equal(&value));
    let mut copy = other.copy();
    assert!(copy.seek(2));
    let next = copy.current_component().expect("it has components");
    next.expect("the third")
        .as_value()
        .expect("a value")
        .set_to_null();
    assert!(!copy.equal(&other));
    // The copy is deep: its source has not changed.
    assert!(other.equal(&value));
    assert_eq!(value.assign(&made(&boxed())), Err(MISMATCH));
    assert_eq!(value.assign(&made(&alias)), Ok(()));
    assert_eq!(value.to_value(), NOTHING);
}

#[test]
fn a_boxed_value_is_given_and_taken() {
    let text = |text: &str| any(&TypeCode::string(8), Value::String(text.to_owned()));
    let mut value = made(&boxed());
    let mut of = value.as_value_box().expect("a boxed value");
    assert!(of.is_null());
    assert_eq!(of.boxed_value(), Err(INVALID));
    assert_eq!(of.boxed_value_as_dyn_any().err(), Some(INVALID));
    let wrong = any(&TypeCode::long(), Value::Long(1));
    assert_eq!(of.set_boxed_value(&wrong), Err(MISMATCH));
    assert!(of.is_null());
    assert_eq!(of.set_boxed_value(&text("one")), Ok(()));
    assert_eq!(of.boxed_value(), Ok(text("one")));
    assert_eq!(
        (value.component_count(), value.string()),
        (1, Ok("one".to_owned()))
    );
    assert_eq!(value.insert_string("longer than 8"), Err(INVALID));
    assert_eq!(value.insert_string("two"), Ok(()));
    let mut of = value.as_value_box().expect("a boxed value");
    let inside = of.boxed_value_as_dyn_any().expect("not null");
    assert_eq!(inside.insert_string("three"), Ok(()));
    let three = instance("Box", vec![Value::String("three".to_owned())]);
    assert_eq!(value.to_value(), three);
    let written = value.to_any().expect("it can be written");
    assert_eq!(DynAny::from_any(&written), Ok(value.copy()));
    let mut of = value.as_value_box().expect("a boxed value");
    let four = DynAny::from_any(&text("four")).expect("a text");
    assert_eq!(of.set_boxed_value_as_dyn_any(&four), Ok(()));
    of.set_to_null();
    assert!(of.is_null());
    assert_eq!(of.set_to_value(), Ok(()));
    assert_eq!(value.string().as_deref(), Ok(""));
}

#[test]
fn values_and_abstract_interfaces_are_inserted_and_extracted() {
    let mut value = made(&place());
    let Value::Valuetype(Some(given)) = a_place(3, "c", NOTHING) else {
        unreachable!("a place was made");
    };
    assert_eq!(value.insert_val(Some(*given.clone())), Ok(()));
    assert_eq!(value.val(), Ok(Some(*given.clone())));
    let other = Instance {
        type_id: id("Box"),
        state: vec![Value::String("x".to_owned())],
    };
    assert_eq!(value.insert_val(Some(other)), Err(MISMATCH));
    let short = Instance {
        type_id: id("Place"),
        state: vec![Value::Long(1)],
    };
    assert_eq!(value.insert_val(Some(short)), Err(MISMATCH));
    assert_eq!(value.val(), Ok(Some(*given.clone())));
    // As a component of a struct, where a derived type may replace its base.
    let (a, b) = (place(), point());
    let members = [
        Member {
            name: "a",
            type_code: &a,
        },
        Member {
            name: "b",
            type_code: &b,
        },
    ];
    let mut both = made(&TypeCode::structure("IDL:S:1.0", "S", &members));
    assert!(both.seek(1));
    assert_eq!(both.insert_val(Some(*given.clone())), Ok(()));
    assert_eq!(both.val(), Ok(Some(*given)));
    let written = both.to_any().expect("it can be written");
    let mut back = DynAny::from_any(&written).expect("a struct");
    assert!(back.seek(1));
    let part = back
        .current_component()
        .expect("components")
        .expect("the second");
    assert_eq!(part.type_code(), &point());
    assert_eq!(part.component_count(), 3);
    assert_eq!(back.insert_val(None), Ok(()));
    assert_eq!(back.val(), Ok(None));
    assert_eq!(made(&TypeCode::long()).insert_val(None), Err(MISMATCH));
    assert_eq!(
        made(&TypeCode::sequence(&point(), 0)).insert_val(None),
        Err(INVALID)
    );

    let mut of = made(&TypeCode::abstract_interface("IDL:I:1.0", "I"));
    let reference = Reference {
        type_id: id("I"),
        profiles: vec![(7, vec![1, 2])],
    };
    let reference = Value::Reference(reference);
    assert_eq!(of.insert_abstract(reference.clone()), Ok(()));
    assert_eq!(of.abstract_base(), Ok(reference));
    let written = of.to_any().expect("it can be written");
    assert_eq!(DynAny::from_any(&written), Ok(of.copy()));
    assert_eq!(of.insert_abstract(NOTHING), Ok(()));
    assert_eq!(of.abstract_base(), Ok(NOTHING));
    assert_eq!(of.insert_abstract(Value::Long(1)), Err(MISMATCH));
    assert_eq!(made(&point()).abstract_base(), Err(INVALID));
    assert_eq!(made(&TypeCode::long()).abstract_base(), Err(MISMATCH));
}

#[test]
fn a_custom_value_has_no_components_and_is_taken_whole() {
    let code = value_code(
        "C",
        ValueModifier::Custom,
        None,
        &[("x", &TypeCode::long())],
    );
    let mut value = made(&code);
    assert_eq!(value.to_value(), NOTHING);
    // Only the type's own code can create a custom value.
    let made_first = value.as_value().and_then(|mut of| of.set_to_value());
    assert_eq!(made_first, Err(INVALID));
    let came = any_of(&code, |w| {
        w.write_u32(0x7fff_ff00 | 0x0a).expect("room");
        code.id().unwrap_or_default().write(w).expect("room");
        // A chunk of one number, and the end of the value.
        for number in [4, 7, u32::MAX] {
            w.write_u32(number).expect("room");
        }
    });
    let given = came.to_dynamic().expect("a tree");
    let Value::Valuetype(Some(whole)) = &given else {
        unreachable!("it was just made");
    };
    assert_eq!(value.insert_val(Some((**whole).clone())), Ok(()));
    assert_eq!(value.val(), Ok(Some((**whole).clone())));
    assert_eq!((value.component_count(), value.rewind()), (0, false));
    assert_eq!(value.current_component(), Err(MISMATCH));
    assert_eq!(value.long(), Err(MISMATCH));
    let of = value.as_value().expect("a value");
    assert!(!of.is_null());
    assert_eq!(of.members(), Err(INVALID));
    let written = value.to_any().expect("it can be written");
    assert!(written.is_opaque());
    let back = DynAny::from_any(&written).expect("a custom value");
    assert_eq!(back, value);
    let mut other = made(&code);
    assert_eq!(other.assign(&back), Ok(()));
    assert_eq!(other.to_value(), given);
    let mut of = other.as_value().expect("a value");
    of.set_to_null();
    assert!(of.is_null());
    let plain = instance("C", vec![Value::Long(7)]);
    assert!(DynAny::from_value(&code, plain).is_err());
    // The same for a declared abstract interface, with any type.
    let mut of = made(&TypeCode::abstract_interface("IDL:I:1.0", "I"));
    assert_eq!(of.insert_abstract(given.clone()), Ok(()));
    assert_eq!(of.abstract_base().as_ref(), Ok(&given));
    let written = of.to_any().expect("it can be written");
    assert_eq!(DynAny::from_any(&written), Ok(of));
}

/// An Any from its TypeCode and big-endian octets.
fn any_of(code: &TypeCode, write: impl FnOnce(&mut Writer<'_>)) -> Any {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(ByteOrder::Big);
    code.write(&mut w).expect("a TypeCode");
    write(&mut w);
    Any::parse(&mut Reader::new(&octets, ByteOrder::Big)).expect("an Any")
}

#[test]
fn a_value_that_was_cut_down_is_told() {
    let cut = any_of(&point(), |w| {
        w.write_u32(0x7fff_ff0e).expect("room");
        w.write_u32(2).expect("room");
        place().id().unwrap_or_default().write(w).expect("room");
        point().id().unwrap_or_default().write(w).expect("room");
        for number in [8, 7, 99, 0xffff_ffff] {
            w.write_u32(number).expect("room");
        }
    });
    assert!(cut.is_truncated());
    let refused = DynAny::from_any_without_truncation(&cut);
    assert_eq!(refused.err(), Some(DynAnyError::MustTruncate));
    let value = DynAny::from_any(&cut).expect("a point");
    assert_eq!(value.to_value(), instance("Point", vec![Value::Long(7)]));
    let whole = value.to_any().expect("it can be written");
    assert!(!whole.is_truncated());
    assert_eq!(DynAny::from_any_without_truncation(&whole), Ok(value));
}

#[test]
fn what_is_shared_stands_at_each_place_and_what_contains_itself_has_no_dyn_any() {
    let code = value_code(
        "Pair",
        ValueModifier::None,
        None,
        &[("left", &point()), ("right", &point())],
    );
    let shared = any_of(&code, |w| {
        w.write_u32(0x7fff_ff02).expect("room");
        code.id().unwrap_or_default().write(w).expect("room");
        w.write_u32(0x7fff_ff02).expect("room");
        let start = w.position() - 4;
        point().id().unwrap_or_default().write(w).expect("room");
        w.write_u32(7).expect("room");
        w.write_u32(u32::MAX).expect("room");
        let back = w.position() - start;
        w.write_u32(0_u32.wrapping_sub(back as u32)).expect("room");
    });
    let mut value = DynAny::from_any(&shared).expect("a pair");
    let seven = || instance("Point", vec![Value::Long(7)]);
    assert_eq!(value.to_value(), instance("Pair", vec![seven(), seven()]));
    let left = value
        .current_component()
        .expect("components")
        .expect("the first");
    assert_eq!(left.insert_long(8), Ok(()));
    assert!(value.next());
    let right = value
        .current_component()
        .expect("components")
        .expect("the second");
    assert_eq!(right.long(), Ok(7));
    let cyclic = any_of(&place(), |w| {
        w.write_u32(0x7fff_ff00 | 0x0a).expect("room");
        let start = w.position() - 4;
        place().id().unwrap_or_default().write(w).expect("room");
        // The number, the string, and an indirection to the value's tag.
        for number in [20, 7, 2] {
            w.write_u32(number).expect("room");
        }
        w.write_octets(b"a\0\0\0").expect("room");
        w.write_u32(u32::MAX).expect("room");
        let back = w.position() - start;
        w.write_u32(0_u32.wrapping_sub(back as u32)).expect("room");
        w.write_u32(u32::MAX).expect("room");
    });
    let fact = cyclic.to_dynamic().map_err(|error| error.fact);
    assert_eq!(fact, Err(DecodeFact::ValueCyclic));
    assert_eq!(DynAny::from_any(&cyclic), Err(INVALID));
}

#[test]
fn a_value_that_is_too_large_as_a_tree_has_no_dyn_any() {
    let itself = TypeCode::recursive("IDL:Pair:1.0");
    let members = [("left", &itself), ("right", &itself)];
    let pair = value_code("Pair", ValueModifier::None, None, &members);
    let any = any_of(&pair, |w| {
        // `left` is the next value, and `right` is an indirection to the same value. As a tree, this has 2 to the power
        // of 40 values.
        let mut starts = Vec::new();
        for _ in 0..40 {
            w.write_u32(0x7fff_ff00).expect("room");
            starts.push(w.position() - 4);
        }
        w.write_u32(0).expect("room");
        w.write_u32(0).expect("room");
        for start in starts[1..].iter().rev() {
            w.write_u32(u32::MAX).expect("room");
            let back = w.position() - start;
            w.write_u32(0_u32.wrapping_sub(back as u32)).expect("room");
        }
    });
    let fact = any.to_dynamic().map_err(|error| error.fact);
    assert_eq!(fact, Err(DecodeFact::ValueTooLarge));
    assert_eq!(DynAny::from_any(&any), Err(INVALID));
}

#[test]
fn whole_sequences_of_basic_values_come_back_as_they_were_inserted() {
    macro_rules! each {
        ($($code:ident $insert:ident $extract:ident $values:expr;)*) => { $(
            let values = $values;
            let element = TypeCode::$code();
            let bounded = TypeCode::sequence(&element, 2);
            let mut value = made(&bounded);
            assert_eq!(value.$extract(), Ok(Vec::new()));
            assert_eq!(value.$insert(&values), Ok(()));
            assert_eq!(value.$extract().as_deref(), Ok(&values[..]));
            assert_eq!((value.component_count(), value.next()), (2, true));
            let written = value.to_any().expect("it can be written");
            assert_eq!(DynAny::from_any(&written), Ok(value.copy()));
            assert_eq!(value.$insert(&[values[0]; 3]), Err(INVALID));
            let mut array = made(&TypeCode::array(&element, 2));
            assert_eq!(array.$insert(&values), Ok(()));
            assert_eq!(array.$extract().as_deref(), Ok(&values[..]));
            assert_eq!(array.$insert(&values[..1]), Err(INVALID));
            assert_eq!(made(&element).$insert(&values), Err(MISMATCH));
            assert_eq!(made(&element).$extract(), Err(MISMATCH));
            // As the current component.
            let mut outer = made(&TypeCode::sequence(&bounded, 0));
            assert_eq!(outer.$insert(&values), Err(INVALID));
            assert_eq!(outer.as_sequence().and_then(|mut of| of.set_length(1)), Ok(()));
            assert_eq!(outer.$insert(&values), Ok(()));
            assert_eq!(outer.$extract().as_deref(), Ok(&values[..]));
        )* };
    }
    each! {
        boolean insert_boolean_seq boolean_seq [true, false];
        octet insert_octet_seq octet_seq [1, 200];
        char insert_char_seq char_seq [Char(b'a'), Char(0xe9)];
        wchar insert_wchar_seq wchar_seq ['a', '\u{20ac}'];
        short insert_short_seq short_seq [-1, 2];
        ushort insert_ushort_seq ushort_seq [1, 60_000];
        long insert_long_seq long_seq [-1, i32::MAX];
        ulong insert_ulong_seq ulong_seq [1, u32::MAX];
        longlong insert_longlong_seq longlong_seq [i64::MIN, 0];
        ulonglong insert_ulonglong_seq ulonglong_seq [0, u64::MAX];
        float insert_float_seq float_seq [0.5, -1.5];
        double insert_double_seq double_seq [1e300, 0.25];
        longdouble insert_longdouble_seq longdouble_seq [LongDouble(1), LongDouble(2)];
    }
    let mut octets = made(&TypeCode::sequence(&TypeCode::octet(), 0));
    assert_eq!(octets.insert_octet_seq(&[1]), Ok(()));
    assert_eq!(octets.insert_char_seq(&[Char(1)]), Err(MISMATCH));
    assert_eq!(octets.long_seq(), Err(MISMATCH));
}
