//! TypeCodes, Any and dynamic values: round trips, forwarding, hostile octets.

use crate::support::typed_values;
use deckwatch_cdr::typecode::{Case, Kind, Member};
use deckwatch_cdr::value::{
    MemberPath, Value, copy_value, read_value, read_value_into, skip_value, write_value,
};
use deckwatch_cdr::{
    Any, BoundedString, ByteOrder, CharSet, Codec, DecodeFact, EncodeError, Parse, Reader,
    TypeCode, Typed, Version, Write, Writer,
};
use proptest::prelude::*;

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];
const UTF8: Codec = Codec::DEFAULT.with_chars(CharSet::Utf8);

fn written(value: &(impl Write + ?Sized), order: ByteOrder, phase: usize) -> Vec<u8> {
    let mut buffer = vec![0; phase];
    value
        .write(
            &mut Writer::new(&mut buffer)
                .with_origin(0)
                .with_order(order)
                .with_codec(UTF8),
        )
        .unwrap();
    buffer
}

fn reader(octets: &[u8], order: ByteOrder, phase: usize) -> Reader<'_> {
    Reader::new(octets, order)
        .at_position(phase)
        .with_codec(UTF8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn type_codes_come_back_equal((code, _) in typed_values(), phase in 0_usize..8) {
        for order in ORDERS {
            let octets = written(&code, order, phase);
            let mut r = reader(&octets, order, phase);
            let parsed = TypeCode::parse(&mut r).unwrap();
            prop_assert_eq!(r.finish(), Ok(()));
            prop_assert_eq!(&parsed, &code);
            prop_assert!(parsed.equivalent(&code));
            prop_assert_eq!(parsed.size_min(), code.size_min());
        }
    }

    #[test]
    fn values_come_back_from_every_order_and_phase((code, value) in typed_values(), phase in 0_usize..8) {
        for order in ORDERS {
            let mut octets = vec![0; phase];
            write_value(&code, &value, &mut Writer::new(&mut octets).with_origin(0).with_order(order).with_codec(UTF8)).unwrap();
            let mut r = reader(&octets, order, phase);
            prop_assert_eq!(&read_value(&code, &mut r).unwrap(), &value);
            prop_assert_eq!(r.finish(), Ok(()));
            let mut skipped = reader(&octets, order, phase);
            skip_value(&code, &mut skipped).unwrap();
            prop_assert_eq!(skipped.position(), r.position());
            prop_assert!(octets.len() - phase >= code.size_min());
            if octets.len() > phase {
                let short = &octets[..octets.len() - 1];
                prop_assert!(skip_value(&code, &mut reader(short, order, phase)).is_err());
            }
            let mut over = Value::default_for(&code).unwrap();
            read_value_into(&code, &mut over, &mut reader(&octets, order, phase)).unwrap();
            prop_assert_eq!(&over, &value);
            // The value is still the same when it is copied to the other byte order and another alignment.
            let mut copied = vec![0; 3];
            let mut w = Writer::new(&mut copied).with_origin(0).with_order(order.opposite()).with_codec(UTF8);
            copy_value(&code, &mut reader(&octets, order, phase), &mut w).unwrap();
            prop_assert_eq!(&read_value(&code, &mut reader(&copied, order.opposite(), 3)).unwrap(), &value);
        }
    }

    #[test]
    fn an_any_is_the_same_wherever_it_is_forwarded((code, value) in typed_values(), phases in prop::array::uniform3(0_usize..8)) {
        let any = Any::from_dynamic(&code, &value).unwrap();
        let mut hop = any.clone();
        for (phase, order) in phases.into_iter().zip([ByteOrder::Big, ByteOrder::Little, ByteOrder::Big]) {
            let octets = written(&hop, order, phase);
            let mut r = reader(&octets, order, phase);
            hop = Any::parse(&mut r).unwrap();
            prop_assert_eq!(r.finish(), Ok(()));
            prop_assert_eq!(&hop, &any);
            prop_assert_eq!(&hop.to_dynamic().unwrap(), &value);
            // Writing the same form again gives the same octets.
            prop_assert_eq!(written(&hop, order, phase), octets);
        }
    }

    #[test]
    fn defaults_can_be_written_and_read((code, _) in typed_values()) {
        let value = Value::default_for(&code).unwrap();
        let mut octets = Vec::new();
        write_value(&code, &value, &mut Writer::new(&mut octets).with_codec(UTF8)).unwrap();
        prop_assert_eq!(read_value(&code, &mut reader(&octets, ByteOrder::NATIVE, 0)).unwrap(), value);
    }

    #[test]
    fn random_octets_never_make_a_walk_panic((code, _) in typed_values(), octets: Vec<u8>, little: bool) {
        let order = ORDERS[usize::from(little)];
        let skipped = skip_value(&code, &mut reader(&octets, order, 0));
        let read = read_value(&code, &mut reader(&octets, order, 0));
        prop_assert_eq!(skipped.is_ok(), read.is_ok());
        let _ = Any::parse(&mut reader(&octets, order, 0));
    }

    #[test]
    fn damaged_any_is_refused_or_stays_readable((code, value) in typed_values(), at: prop::sample::Index, to: u8) {
        let mut octets = written(&Any::from_dynamic(&code, &value).unwrap(), ByteOrder::Big, 0);
        let index = at.index(octets.len());
        octets[index] = to;
        if let Ok(any) = Any::parse(&mut reader(&octets, ByteOrder::Big, 0)) {
            prop_assert!(any.to_dynamic().is_ok());
            let again = written(&any, ByteOrder::Little, 0);
            prop_assert_eq!(Any::parse(&mut reader(&again, ByteOrder::Little, 0)).unwrap(), any);
        }
    }
}

fn tree() -> TypeCode {
    let children = TypeCode::sequence(&TypeCode::recursive("IDL:Tree:1.0"), 0);
    let members = [
        Member {
            name: "value",
            type_code: &TypeCode::long(),
        },
        Member {
            name: "children",
            type_code: &children,
        },
    ];
    TypeCode::structure("IDL:Tree:1.0", "Tree", &members)
}

#[test]
fn recursive_types_travel_as_indirections_and_compare_equal() {
    let code = tree();
    for order in ORDERS {
        let octets = written(&code, order, 4);
        let parsed = TypeCode::parse(&mut reader(&octets, order, 4)).unwrap();
        assert_eq!(parsed, code);
        let children = parsed.member_type(1).unwrap();
        assert_eq!(children.content_type().unwrap(), code);
        let leaf = Value::Struct(vec![Value::Long(2), Value::Elements(vec![])]);
        let value = Value::Struct(vec![
            Value::Long(1),
            Value::Elements(vec![leaf.clone(), leaf]),
        ]);
        let any = Any::from_dynamic(&parsed, &value).unwrap();
        assert_eq!(any.to_dynamic().unwrap(), value);
    }
}

#[test]
fn a_value_nested_without_end_is_refused_before_the_stack_ends() {
    let mut octets = Vec::new();
    for _ in 0..100_000 {
        octets.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
    }
    let error = skip_value(&tree(), &mut reader(&octets, ByteOrder::Big, 0)).unwrap_err();
    assert_eq!(error.fact, DecodeFact::NestingTooDeep);
    let error = read_value(&tree(), &mut reader(&octets, ByteOrder::Big, 0)).unwrap_err();
    assert_eq!(error.fact, DecodeFact::NestingTooDeep);
}

/// A TypeCode of nested structs. At each level, both members have the TypeCode of the level below; the second is an
/// indirection.
fn doubled(levels: u32) -> TypeCode {
    let mut code = TypeCode::long();
    for level in 0..levels {
        let members = [
            Member {
                name: "a",
                type_code: &code,
            },
            Member {
                name: "b",
                type_code: &code,
            },
        ];
        code = TypeCode::structure(&format!("IDL:L{level}:1.0"), "L", &members);
    }
    code
}

#[test]
fn types_that_double_themselves_stay_small_and_their_values_are_refused_at_once() {
    let code = doubled(40);
    let octets = written(&code, ByteOrder::Big, 0);
    assert!(octets.len() < 8192, "{} octets", octets.len());
    let parsed = TypeCode::parse(&mut reader(&octets, ByteOrder::Big, 0)).unwrap();
    assert_eq!(parsed.size_min(), u32::MAX as usize);
    assert!(skip_value(&parsed, &mut reader(&[0; 4096], ByteOrder::Big, 0)).is_err());
    assert_eq!(
        Value::default_for(&parsed),
        Err(EncodeError::MessageTooLarge)
    );
    assert_eq!(parsed, code);
    assert!(parsed.equivalent(&code));
}

#[test]
fn hostile_type_codes_are_refused_with_their_fact() {
    let fact = |octets: &[u8]| {
        TypeCode::parse(&mut reader(octets, ByteOrder::Big, 0))
            .unwrap_err()
            .fact
    };
    assert_eq!(fact(&[0, 0, 0, 99]), DecodeFact::TypeCodeKindUnknown);
    assert_eq!(
        fact(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFC]),
        DecodeFact::IndirectionAstray
    );
    // sequence<void>: elements without octets, so a large count would need no input.
    assert_eq!(
        fact(&[0, 0, 0, 19, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        DecodeFact::TypeCodeMisplaced
    );
    // An alias whose content is the alias itself.
    let mut endless = vec![
        0, 0, 0, 21, 0, 0, 0, 28, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
    ];
    endless.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xE0]);
    assert_eq!(fact(&endless), DecodeFact::TypeCodeEndless);
    // A sequence whose element is the sequence itself is a valid type and can be displayed.
    let own = [
        0, 0, 0, 19, 0, 0, 0, 16, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xF0, 0, 0,
        0, 0,
    ];
    let own = TypeCode::parse(&mut reader(&own, ByteOrder::Big, 0)).unwrap();
    assert!(own.to_string().starts_with("sequence<sequence<"));
    assert_eq!(own, own.content_type().unwrap());
}

#[test]
fn extraction_asks_for_an_equivalent_type() {
    let any = Any::from_value(&7_i32).unwrap();
    assert_eq!(any.extract::<i32>(), Ok(7));
    assert_eq!(
        any.extract::<u32>().unwrap_err().fact,
        DecodeFact::TypeMismatch
    );
    assert!(Any::empty().is_empty());
    let alias = TypeCode::alias("IDL:Count:1.0", "Count", &TypeCode::long());
    assert_eq!(
        Any::from_dynamic(&alias, &Value::Long(8))
            .unwrap()
            .extract::<i32>(),
        Ok(8)
    );
    let text = BoundedString::<13>::try_from("NAV").unwrap();
    assert_eq!(
        Any::from_value(&text)
            .unwrap()
            .extract::<BoundedString<13>>(),
        Ok(text)
    );
    assert_eq!(
        Any::from_value(&vec![1_u16, 2])
            .unwrap()
            .extract::<Vec<u16>>(),
        Ok(vec![1, 2])
    );
    assert_eq!(format!("{any:?}"), "Any(long, Long(7))");
}

#[test]
fn a_type_tells_its_parts() {
    let code = tree();
    assert_eq!(
        (code.kind(), code.id(), code.member_count()),
        (Kind::Struct, Some("IDL:Tree:1.0"), 2)
    );
    assert_eq!(code.member_name(1), Some("children"));
    assert_eq!(code.member_type(1).unwrap().to_string(), "sequence<Tree>");
    assert_eq!(<[[f64; 2]; 3]>::type_code().to_string(), "double[2][3]");
}

#[test]
fn a_member_is_found_by_its_path_in_values_and_in_octets() {
    let inner = TypeCode::structure(
        "IDL:I:1.0",
        "I",
        &[
            Member {
                name: "text",
                type_code: &TypeCode::string(0),
            },
            Member {
                name: "count",
                type_code: &TypeCode::ulonglong(),
            },
        ],
    );
    let outer = TypeCode::structure(
        "IDL:O:1.0",
        "O",
        &[
            Member {
                name: "flag",
                type_code: &TypeCode::boolean(),
            },
            Member {
                name: "parts",
                type_code: &TypeCode::array(&inner, 3),
            },
            Member {
                name: "rest",
                type_code: &TypeCode::sequence(&inner, 0),
            },
        ],
    );
    let path = MemberPath::resolve(&outer, "parts[2].count").unwrap();
    assert!(path.is_integer());
    let mut value = Value::default_for(&outer).unwrap();
    path.slot(&mut value).unwrap().set_number(77).unwrap();
    for (order, version) in [
        (ByteOrder::Big, Version::V1_0),
        (ByteOrder::Little, Version::V1_2),
    ] {
        let codec = Codec::DEFAULT.with_version(version);
        let mut octets = Vec::new();
        write_value(
            &outer,
            &value,
            &mut Writer::new(&mut octets).with_order(order).with_codec(codec),
        )
        .unwrap();
        assert_eq!(
            path.read_number(&mut Reader::new(&octets, order).with_codec(codec)),
            Ok(77)
        );
        assert!(
            path.read_number(&mut Reader::new(&octets[..20], order).with_codec(codec))
                .is_err()
        );
    }
    let error = |path: &str| MemberPath::resolve(&outer, path).unwrap_err().to_string();
    assert_eq!(
        error("parts[0].size"),
        "I has no member size; it has text, count"
    );
    assert_eq!(
        error("parts[3]"),
        "the index 3 is not below the array's length 3"
    );
    assert_eq!(
        error("rest[0]"),
        "sequence<I> has no part [0] of fixed place"
    );
    assert_eq!(error("flag.x"), "boolean has no part x of fixed place");
    for malformed in ["parts[", "parts[x]", "a..b", "parts[0]x", "."] {
        assert!(error(malformed).starts_with("a path is"), "{malformed}");
    }
}

#[test]
fn values_of_another_type_are_not_written() {
    let code = TypeCode::string(3);
    let refused = |code: &TypeCode, value: Value| {
        write_value(code, &value, &mut Writer::new(&mut Vec::new())).unwrap_err()
    };
    assert_eq!(refused(&code, Value::Long(1)), EncodeError::TypeMismatch);
    assert_eq!(
        refused(&code, Value::String("four".to_owned())),
        EncodeError::BoundExceeded
    );
    assert_eq!(
        refused(&TypeCode::fixed(3, 0), Value::Fixed(1000)),
        EncodeError::BoundExceeded
    );
    let two = TypeCode::array(&TypeCode::long(), 2);
    assert_eq!(
        refused(&two, Value::Elements(vec![Value::Long(1)])),
        EncodeError::TypeMismatch
    );
}

#[test]
fn a_union_with_more_cases_than_a_value_may_search_is_refused() {
    use deckwatch_cdr::limits::UNION_CASES_MAX;
    let code_of = |count: usize| {
        let long = TypeCode::long();
        let cases: Vec<_> = (0..count)
            .map(|label| Case {
                label: Some(label as i64),
                name: "one",
                type_code: &long,
            })
            .collect();
        TypeCode::union("IDL:U:1.0", "U", &TypeCode::long(), &cases)
    };
    for (count, fact) in [
        (UNION_CASES_MAX, None),
        (UNION_CASES_MAX + 1, Some(DecodeFact::TypeCodeTooLarge)),
    ] {
        let octets = written(&code_of(count), ByteOrder::Big, 0);
        let parsed = TypeCode::parse(&mut reader(&octets, ByteOrder::Big, 0));
        assert_eq!(parsed.err().map(|error| error.fact), fact);
    }
}

#[test]
fn what_has_no_octets_may_begin_behind_the_last_of_the_message() {
    let nothing = TypeCode::structure("IDL:S:1.0", "S", &[]);
    for code in [TypeCode::null(), TypeCode::void(), nothing] {
        // The body of a message starts at a multiple of eight, even if it is empty.
        let mut r = Reader::new(&[0; 33], ByteOrder::NATIVE).at_position(33);
        r.align(8);
        assert_eq!(r.position(), 40);
        let any = Any::read(code, &mut r).unwrap();
        assert_eq!((any.reader().remaining(), r.finish()), (0, Ok(())));
    }
}

#[test]
fn members_are_read_of_exceptions_alone() {
    let long = TypeCode::long();
    let members = [Member {
        name: "code",
        type_code: &long,
    }];
    let raised = TypeCode::exception("IDL:X:1.0", "X", &members);
    let read = |code: &TypeCode| {
        let mut r = Reader::new(&[0, 0, 0, 7], ByteOrder::Big);
        Any::read_members(code.clone(), &mut r).map_err(|error| error.fact)
    };
    let exception = read(&raised).unwrap();
    assert_eq!(
        exception.to_dynamic(),
        Ok(Value::Struct(vec![Value::Long(7)]))
    );
    let others = [
        TypeCode::alias("IDL:A:1.0", "A", &raised),
        TypeCode::structure("IDL:S:1.0", "S", &members),
        long.clone(),
    ];
    for code in others {
        assert_eq!(read(&code), Err(DecodeFact::TypeMismatch));
    }
}
