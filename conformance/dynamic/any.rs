//! DynAny by clause (CORBA 3.3 part 1, clause 13).

use deckwatch_cdr::typecode::{Case, Kind, Member};
use deckwatch_cdr::value::{Reference, Value};
use deckwatch_cdr::{Any, ByteOrder, Char, LongDouble, Parse, Reader, TypeCode};
use deckwatch_dynamic::dyn_any::{DynAny, DynAnyError};

const MISMATCH: DynAnyError = DynAnyError::TypeMismatch;
const INVALID: DynAnyError = DynAnyError::InvalidValue;

fn made(code: &TypeCode) -> DynAny {
    DynAny::from_type_code(code).expect("a type whose values are mapped")
}

fn any(code: &TypeCode, value: Value) -> Any {
    Any::from_dynamic(code, &value).expect("a value of its type")
}

fn color() -> TypeCode {
    TypeCode::enumeration("IDL:Color:1.0", "Color", &["red", "green", "blue"])
}

fn point() -> TypeCode {
    let (x, name) = (TypeCode::long(), TypeCode::string(4));
    let members = [("x", &x), ("name", &name)];
    let members = members.map(|(name, type_code)| Member { name, type_code });
    TypeCode::structure("IDL:Point:1.0", "Point", &members)
}

/// A union over `Color`: red is a long, green a string; blue has no member, or the default member, a double.
fn union(has_default: bool) -> TypeCode {
    let (long, text, double) = (
        TypeCode::long(),
        TypeCode::unbounded_string(),
        TypeCode::double(),
    );
    let mut cases = vec![(Some(0), "number", &long), (Some(1), "text", &text)];
    if has_default {
        cases.push((None, "other", &double));
    }
    let case = |(label, name, type_code)| Case {
        label,
        name,
        type_code,
    };
    let cases: Vec<_> = cases.into_iter().map(case).collect();
    TypeCode::union("IDL:U:1.0", "U", &color(), &cases)
}

fn enumerator(number: u32) -> DynAny {
    DynAny::from_value(&color(), Value::Enum(number)).expect("an enumerator")
}

#[test]
fn values_made_of_a_type_are_its_first() {
    let first = |code: &TypeCode| made(code).to_value();
    assert_eq!(first(&TypeCode::boolean()), Value::Boolean(false));
    assert_eq!(first(&TypeCode::double()), Value::Double(0.0));
    assert_eq!(first(&color()), Value::Enum(0));
    let of_point = Value::Struct(vec![Value::Long(0), Value::String(String::new())]);
    assert_eq!(first(&point()), of_point);
    assert_eq!(
        first(&TypeCode::sequence(&point(), 0)),
        Value::Elements(Vec::new())
    );
    assert_eq!(
        first(&TypeCode::array(&point(), 2)),
        Value::Elements(vec![of_point.clone(), of_point])
    );
    let of_union = Value::Union(0, Some(Box::new(Value::Long(0))));
    assert_eq!(first(&union(false)), of_union);
    assert!(made(&TypeCode::any()).any().expect("an any").is_empty());
    assert_eq!(
        made(&TypeCode::object()).reference(),
        Ok(Reference::default())
    );
}

#[test]
fn types_whose_values_are_not_mapped_are_refused() {
    // tk_native, and its encapsulation: repository id and name.
    let octets = b"\0\0\0\x1f\0\0\0\x1a\0\0\0\0\0\0\0\x0aIDL:N:1.0\0\0\0\0\0\0\x02N\0";
    let native = TypeCode::parse(&mut Reader::new(octets, ByteOrder::Big)).expect("a TypeCode");
    assert_eq!(native.kind(), Kind::Native);
    for code in [&native, &TypeCode::array(&native, 1)] {
        let refused = DynAny::from_type_code(code);
        assert_eq!(refused.err(), Some(DynAnyError::InconsistentTypeCode));
    }
    let wrong = DynAny::from_value(&TypeCode::long(), Value::Boolean(true));
    assert_eq!(wrong.err(), Some(MISMATCH));
    let long = Value::String("longer".to_owned());
    let too_long = DynAny::from_value(&TypeCode::string(4), long);
    assert_eq!(too_long.err(), Some(INVALID));
}

#[test]
fn basic_values_come_back_as_they_were_inserted() {
    macro_rules! each {
        ($($code:ident $insert:ident $extract:ident $value:expr;)*) => { $(
            let mut value = made(&TypeCode::$code());
            assert_eq!(value.$insert($value), Ok(()));
            assert_eq!(value.$extract(), Ok($value));
            assert_eq!(value.component_count(), 0);
            assert_eq!(value.current_component().err(), Some(MISMATCH));
            let back = DynAny::from_any(&value.to_any().expect("it can be written"));
            assert_eq!(back, Ok(value.copy()));
            assert_eq!(made(&color()).$insert($value), Err(MISMATCH));
            assert_eq!(made(&color()).$extract(), Err(MISMATCH));
        )* };
    }
    each! {
        boolean insert_boolean boolean true;
        octet insert_octet octet 200;
        char insert_char char Char(0xe9);
        wchar insert_wchar wchar '\u{20ac}';
        short insert_short short -3;
        ushort insert_ushort ushort 60_000;
        long insert_long long -70_000;
        ulong insert_ulong ulong 4_000_000_000;
        longlong insert_longlong longlong i64::MIN;
        ulonglong insert_ulonglong ulonglong u64::MAX;
        float insert_float float 0.5;
        double insert_double double -1e300;
        longdouble insert_longdouble longdouble LongDouble(7);
        any insert_any any Any::from_value(&5_u32).expect("a number");
    }
    let kind = TypeCode::of_kind(Kind::TypeCode).expect("a kind without parameters");
    let mut value = made(&kind);
    assert_eq!(value.insert_typecode(point()), Ok(()));
    assert_eq!(value.typecode(), Ok(point()));
    let mut text = made(&TypeCode::string(4));
    assert_eq!(text.insert_string("gr\u{fc}"), Ok(()));
    assert_eq!(text.string().as_deref(), Ok("gr\u{fc}"));
    assert_eq!(text.insert_string("gr\u{fc}n"), Err(INVALID));
    let mut wide = made(&TypeCode::wstring(4));
    assert_eq!(wide.insert_wstring(&"gr\u{fc}n".into()), Ok(()));
    assert_eq!(wide.wstring(), Ok("gr\u{fc}n".into()));
    assert_eq!(wide.insert_wstring(&"gr\u{fc}n!".into()), Err(INVALID));
    let mut outer = made(&TypeCode::any());
    assert_eq!(outer.insert_dyn_any(&wide), Ok(()));
    assert_eq!(outer.dyn_any(), Ok(wide));
}

#[test]
fn the_current_position_walks_over_components() {
    let mut value = made(&point());
    assert_eq!(value.component_count(), 2);
    assert_eq!(value.insert_long(7), Ok(()));
    assert_eq!(value.insert_string("x"), Err(MISMATCH));
    assert!(value.next());
    assert_eq!(value.insert_string("ship"), Ok(()));
    assert_eq!(value.insert_string("ships"), Err(INVALID));
    assert!(!value.next());
    assert_eq!(value.insert_long(8), Err(INVALID));
    assert_eq!(value.long(), Err(INVALID));
    assert_eq!(value.current_component(), Ok(None));
    // After position -1 comes position 0.
    assert!(value.next());
    assert_eq!(value.long(), Ok(7));
    assert!(value.seek(1) && !value.seek(2) && !value.seek(-1) && value.rewind());
    let component = value.current_component().expect("it has components");
    let component = component.expect("the first");
    assert_eq!(component.insert_long(9), Ok(()));
    assert_eq!(value.long(), Ok(9));
    let empty = TypeCode::exception("IDL:Empty:1.0", "Empty", &[]);
    let mut empty = made(&empty);
    assert!(!empty.rewind());
    assert_eq!(empty.current_component().err(), Some(MISMATCH));
    assert_eq!(empty.insert_long(1), Err(MISMATCH));
}

#[test]
fn values_are_assigned_compared_and_copied_by_equivalent_types() {
    let alias = TypeCode::alias("IDL:Place:1.0", "Place", &point());
    let values = Value::Struct(vec![Value::Long(1), Value::String("a".to_owned())]);
    let mut value = made(&point());
    value.seek(-1);
    assert_eq!(value.set_any(&any(&alias, values.clone())), Ok(()));
    assert_eq!((value.to_value(), value.long()), (values, Ok(1)));
    let mut other = made(&alias);
    assert!(!other.equal(&value));
    assert_eq!(other.assign(&value), Ok(()));
    assert!(other.next());
    assert!(other.equal(&value));
    assert_eq!(other.type_code(), &alias);
    let mut copy = other.copy();
    assert_eq!(copy.insert_long(2), Ok(()));
    assert!(!copy.equal(&other));
    assert_eq!(value.assign(&made(&color())), Err(MISMATCH));
    let number = any(&TypeCode::long(), Value::Long(1));
    assert_eq!(value.set_any(&number), Err(MISMATCH));
}

#[test]
fn enumerations_are_known_by_name_and_number() {
    let mut value = made(&color());
    let mut named = value.as_enum().expect("an enumeration");
    assert_eq!((named.as_string(), named.as_ulong()), ("red".to_owned(), 0));
    assert_eq!(named.set_as_string("blue"), Ok(()));
    assert_eq!(named.as_ulong(), 2);
    assert_eq!(named.set_as_ulong(1), Ok(()));
    assert_eq!(named.as_string(), "green");
    assert_eq!(named.set_as_string("mauve"), Err(INVALID));
    assert_eq!(named.set_as_ulong(3), Err(INVALID));
    assert_eq!(value.to_value(), Value::Enum(1));
    assert!(made(&point()).as_enum().is_err());
}

#[test]
fn structs_give_and_take_their_members() {
    let number = any(&TypeCode::long(), Value::Long(5));
    let text = any(&TypeCode::string(4), Value::String("ship".to_owned()));
    let mut value = made(&point());
    value.seek(1);
    let mut members = value.as_struct().expect("a struct");
    assert_eq!(members.current_member_name().as_deref(), Ok("name"));
    assert_eq!(members.current_member_kind(), Ok(Kind::String));
    let given = [("x", number.clone()), ("", text.clone())];
    assert_eq!(members.set_members(&given), Ok(()));
    assert_eq!(members.current_member_name().as_deref(), Ok("x"));
    let back = members.members().expect("it can be written");
    let expected = [
        ("x".to_owned(), number.clone()),
        ("name".to_owned(), text.clone()),
    ];
    assert_eq!(back, expected);
    assert_eq!(members.set_members(&given[..1]), Err(INVALID));
    let misnamed = [("y", number.clone()), ("name", text.clone())];
    assert_eq!(members.set_members(&misnamed), Err(MISMATCH));
    let swapped = [("", text), ("", number)];
    assert_eq!(members.set_members(&swapped), Err(MISMATCH));
    assert_eq!(members.members_as_dyn_any()[0].1.long(), Ok(5));
    value.seek(-1);
    let members = value.as_struct().expect("a struct");
    assert_eq!(members.current_member_name(), Err(INVALID));
}

#[test]
fn a_unions_discriminator_decides_its_member() {
    let mut value = made(&union(false));
    let mut of = value.as_union().expect("a union");
    assert_eq!(of.discriminator_kind(), Kind::Enum);
    assert_eq!(of.member_name().as_deref(), Ok("number"));
    assert_eq!(of.member().and_then(|member| member.insert_long(4)), Ok(()));
    // The selected member keeps its value.
    assert_eq!(of.set_discriminator(&enumerator(0)), Ok(()));
    assert_eq!(of.member().and_then(|member| member.long()), Ok(4));
    assert_eq!(of.set_discriminator(&enumerator(1)), Ok(()));
    assert_eq!(of.member_kind(), Ok(Kind::String));
    assert_eq!(of.set_to_default_member(), Err(MISMATCH));
    assert_eq!(of.set_discriminator(&made(&point())), Err(MISMATCH));
    // The member is the current component.
    assert_eq!(value.insert_string("ship"), Ok(()));
    let text = Value::String("ship".to_owned());
    assert_eq!(value.to_value(), Value::Union(1, Some(Box::new(text))));
    let mut of = value.as_union().expect("a union");
    assert_eq!(of.set_to_no_active_member(), Ok(()));
    assert!(of.has_no_active_member());
    assert_eq!(of.member().err(), Some(INVALID));
    assert_eq!(of.member_name(), Err(INVALID));
    assert_eq!(of.discriminator(), enumerator(2));
    assert_eq!((value.component_count(), value.seek(1)), (1, false));
    assert_eq!(value.to_value(), Value::Union(2, None));

    let mut value = made(&union(true));
    let mut of = value.as_union().expect("a union");
    assert_eq!(of.set_to_no_active_member(), Err(MISMATCH));
    assert_eq!(of.set_to_default_member(), Ok(()));
    assert_eq!(of.member_name().as_deref(), Ok("other"));
    assert_eq!(value.insert_double(0.5), Ok(()));
    let written = value.to_any().expect("it can be written");
    assert_eq!(DynAny::from_any(&written), Ok(value));
}

#[test]
fn sequences_grow_and_shrink_within_their_bound() {
    let code = TypeCode::sequence(&TypeCode::long(), 3);
    let mut value = made(&code);
    assert!(!value.rewind());
    assert_eq!(value.insert_long(1), Err(INVALID));
    let mut of = value.as_sequence().expect("a sequence");
    assert_eq!(of.set_length(2), Ok(()));
    assert_eq!(of.set_length(4), Err(INVALID));
    assert_eq!(of.length(), 2);
    // The first new element is the current one.
    assert_eq!(value.insert_long(7), Ok(()));
    assert!(value.next());
    assert_eq!(value.insert_long(8), Ok(()));
    let mut of = value.as_sequence().expect("a sequence");
    assert_eq!(of.set_length(1), Ok(()));
    assert_eq!(value.long(), Err(INVALID));
    let seven = any(&TypeCode::long(), Value::Long(7));
    let mut of = value.as_sequence().expect("a sequence");
    assert_eq!(of.elements(), Ok(vec![seven.clone()]));
    assert_eq!(of.set_elements(&vec![seven.clone(); 3]), Ok(()));
    assert_eq!(of.set_elements(&vec![seven.clone(); 4]), Err(INVALID));
    assert_eq!(of.set_elements_as_dyn_any(&[made(&color())]), Err(MISMATCH));
    assert_eq!(of.elements_as_dyn_any().len(), 3);
    assert_eq!(value.long(), Ok(7));
    let octets = TypeCode::sequence(&TypeCode::octet(), 0);
    let mut octets = DynAny::from_value(&octets, Value::Octets(vec![1, 2])).expect("octets");
    assert!(octets.seek(1));
    assert_eq!(octets.insert_octet(9), Ok(()));
    assert_eq!(octets.to_value(), Value::Octets(vec![1, 9]));
    let mut of = octets.as_sequence().expect("a sequence");
    assert_eq!(of.set_length(usize::MAX), Err(DynAnyError::TooManyParts));
}

#[test]
fn arrays_keep_their_length() {
    let mut value = made(&TypeCode::array(&TypeCode::char(), 2));
    let mut of = value.as_array().expect("an array");
    let letters = [b'a', b'b'].map(|letter| any(&TypeCode::char(), Value::Char(Char(letter))));
    assert_eq!(of.set_elements(&letters), Ok(()));
    assert_eq!(of.elements().as_deref(), Ok(&letters[..]));
    assert_eq!(of.set_elements(&letters[..1]), Err(INVALID));
    assert_eq!(
        of.set_elements_as_dyn_any(&[made(&color()), made(&color())]),
        Err(MISMATCH)
    );
    assert_eq!(of.elements_as_dyn_any()[1].char(), Ok(Char(b'b')));
    assert!(value.as_sequence().is_err());
    assert_eq!(value.to_value(), Value::Octets(b"ab".to_vec()));
}

#[test]
fn fixed_point_numbers_are_read_and_written_as_text() {
    let mut value = made(&TypeCode::fixed(5, 2));
    let mut of = value.as_fixed().expect("a fixed");
    for (given, is_whole, back) in [
        ("0", true, "0.00"),
        ("-1.5", true, "-1.50"),
        ("123.45d", true, "123.45"),
        ("+.05", true, "0.05"),
        ("0001.239", false, "1.23"),
        ("-0.5000", true, "-0.50"),
    ] {
        assert_eq!(of.set_value(given), Ok(is_whole), "{given}");
        assert_eq!(of.value(), back);
    }
    assert_eq!(of.set_value("1234"), Err(INVALID));
    for wrong in ["", ".", "-", "1e5", "--1", "1dd", "ship"] {
        assert_eq!(of.set_value(wrong), Err(MISMATCH), "{wrong}");
    }
    assert_eq!(value.to_value(), Value::Fixed(-50));
    let written = value.to_any().expect("it can be written");
    assert_eq!(DynAny::from_any(&written), Ok(value));
    let mut tens = made(&TypeCode::fixed(3, -1));
    let mut of = tens.as_fixed().expect("a fixed");
    assert_eq!(
        (of.set_value("1240"), of.value()),
        (Ok(true), "1240".to_owned())
    );
    assert_eq!(of.set_value("1249"), Ok(false));
    assert_eq!(tens.to_value(), Value::Fixed(124));
}
