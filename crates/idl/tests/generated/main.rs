//! Code generated from a file with an example of every construct compiles, and every value is written and read back
//! unchanged.
//!
//! `broad.inc`, `shared.inc`, `opened.inc` and `again.inc` are the generator's output for the IDL files of the same
//! names, as `tests/generator.rs` checks.

#![forbid(unsafe_code)]

mod calculator;
/// The ORB's support code for generated code, from the ORB's own source file.
#[allow(dead_code, missing_docs, private_interfaces, unreachable_pub)]
#[path = "../../../orb/src/generated.rs"]
pub mod generated;
mod orb;
mod reopened;
mod traits;
mod within;

/// The generated code.
#[rustfmt::skip]
mod idl {
    include!("shared.inc");
    include!("broad.inc");
}

use std::sync::Arc;

use calculator::Abacus;
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{read_value, skip_value, write_value};
use deckwatch_cdr::{
    Any, BoundedString, BoundedVec, ByteOrder, Char, CharSet, Codec, DecodeFact, Divided,
    EncodeError, Fixed, LongDouble, Parse, Reader, TypeCode, Typed, Version, WString, Write,
    Writer,
};
use idl::broad::{self, *};
use idl::shared::Stamp;
#[allow(unused_imports)] // generated code uses some of them
pub(crate) use orb::{
    AsynchronousReply, Completion, Deliver, ObjectRef, Result, Servant, ServerRequest,
    SystemException, SystemExceptionKind, exception_detail, minor,
};

fn calculator() -> CalculatorRef {
    let servant = Arc::new(CalculatorSkeleton::new(Abacus::default()));
    CalculatorRef::unchecked_narrow(ObjectRef::to(servant))
}

fn there_and_back<T: Typed + Write + for<'a> Parse<'a> + PartialEq + std::fmt::Debug>(value: &T) {
    for version in [Version::V1_1, Version::V1_2] {
        for chars in [CharSet::Latin1, CharSet::Utf8] {
            let codec = Codec::DEFAULT.with_version(version).with_chars(chars);
            means_the_same_by_its_type_code(value, codec);
        }
    }
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut octets = Vec::new();
        value
            .write(&mut Writer::new(&mut octets).with_order(order))
            .unwrap();
        let mut reader = Reader::new(&octets, order);
        assert_eq!(&T::parse(&mut reader).unwrap(), value);
        reader.finish().unwrap();
        for end in 0..octets.len() {
            assert!(
                T::parse(&mut Reader::new(&octets[..end], order)).is_err(),
                "cut at {end} of {}",
                octets.len()
            );
        }
        assert!(octets.len() >= T::SIZE_MIN);
    }
}

/// Checks that the generic code that follows the TypeCode reads, skips and rewrites the octets that the generated type
/// writes: in one piece at each alignment, and in fragments.
fn means_the_same_by_its_type_code<T>(value: &T, codec: Codec)
where
    T: Typed + Write + for<'a> Parse<'a> + PartialEq + std::fmt::Debug,
{
    const HEADER_SIZE: usize = 12;
    const FRAGMENT_SIZE: usize = 40;
    let code = T::type_code();
    if code.kind() == Kind::Except {
        return;
    }
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for phase in 0..8 {
            let mut octets = vec![0; phase];
            let mut w = Writer::new(&mut octets).with_origin(0);
            value.write(&mut w_of(w, order, codec)).unwrap();
            let at_value = Reader::new(&octets, order)
                .at_position(phase)
                .with_codec(codec);
            let mut r = at_value;
            let tree = read_value(&code, &mut r).unwrap();
            r.finish().unwrap();
            let mut passed = at_value;
            skip_value(&code, &mut passed).unwrap();
            passed.finish().unwrap();
            let mut again = vec![0; phase];
            w = Writer::new(&mut again).with_origin(0);
            write_value(&code, &tree, &mut w_of(w, order, codec)).unwrap();
            assert_eq!(again, octets, "{code} in {order:?}");
        }
        let mut octets = vec![0; HEADER_SIZE];
        let w = Writer::new(&mut octets).with_origin(0);
        let mut w = w_of(w, order, codec).with_fragments(FRAGMENT_SIZE);
        value.write(&mut w).unwrap();
        let ends = (FRAGMENT_SIZE..octets.len()).step_by(FRAGMENT_SIZE - HEADER_SIZE);
        let ends: Vec<u32> = ends.map(|end| end as u32).collect();
        let divided = Divided::new(&octets, &ends);
        let at_value = Reader::of_divided(&divided, order, HEADER_SIZE).with_codec(codec);
        let mut r = at_value;
        assert_eq!(&T::parse(&mut r).unwrap(), value);
        r.finish().unwrap();
        let mut r = at_value;
        read_value(&code, &mut r).unwrap();
        r.finish().unwrap();
    }
}

fn w_of(w: Writer<'_>, order: ByteOrder, codec: Codec) -> Writer<'_> {
    w.with_order(order).with_codec(codec)
}

fn everything() -> Everything {
    Everything {
        r#type: true,
        self_: 200,
        letter: Char(0xe9),
        wide_letter: '€',
        s: -2,
        us: 65535,
        l: i32::MIN,
        ul: u32::MAX,
        ll: i64::MIN,
        ull: u64::MAX,
        f: 1.5,
        d: -2.25,
        ld: LongDouble::from(0.125),
        price: Fixed::from_units(-1250).unwrap(),
        text: "text".into(),
        short_text: BoundedString::try_from("thirteen char").unwrap(),
        long_text: "x".repeat(1000),
        wide: WString::from("wide"),
        short_wide: WString::from("four"),
        octets: vec![1, 2, 3],
        few: BoundedVec::try_from(vec![1, 2, 3, 4]).unwrap(),
        path: vec![Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }],
        numbers: [[1, 2, 3], [4, 5, 6]],
        shades: [Colour::LightBlue; 40],
        favourite: Colour::Green,
        made: Stamp { ns: 7 },
        kind: Point::type_code(),
        target: None,
        extra: Any::from_value(&Point { x: 5.0, y: 6.0 }).unwrap(),
    }
}

#[test]
fn every_type_goes_there_and_back_and_no_cut_value_is_taken() {
    there_and_back(&everything());
    there_and_back(&Tree {
        label: "root".into(),
        children: vec![
            Tree::default(),
            Tree {
                label: "leaf".into(),
                children: vec![],
            },
        ],
    });
    there_and_back(&Choice::Number(3));
    there_and_back(&Choice::Words(Colour::LightBlue, "blue".into()));
    there_and_back(&Sparse::One("one".into()));
    there_and_back(&Sparse::Place(-2, Point::default()));
    there_and_back(&Sparse::Rest(77, 1));
    there_and_back(&Maybe::Value(vec![Point::default()]));
    there_and_back(&Maybe::Other(false));
    there_and_back(&Lettered::Inner(vec![
        Lettered::LongWords("w".into()),
        Lettered::Other(Char(b'z')),
    ]));
    there_and_back(&Refused {
        reason: "no".into(),
        shade: Colour::Red,
    });
    there_and_back(&Square::default());
}

#[test]
fn a_discriminator_that_is_not_its_variants_is_not_written() {
    let mut octets = Vec::new();
    for wrong in [Sparse::Place(1, Point::default()), Sparse::Rest(3, 0)] {
        assert!(wrong.write(&mut Writer::new(&mut octets)).is_err());
    }
    assert!(
        Maybe::Other(true)
            .write(&mut Writer::new(&mut octets))
            .is_err()
    );
    assert!(
        Choice::Words(Colour::Red, String::new())
            .write(&mut Writer::new(&mut octets))
            .is_err()
    );
}

#[test]
fn a_number_that_is_no_enumerator_is_refused() {
    let octets = [3, 0, 0, 0];
    assert!(Colour::parse(&mut Reader::new(&octets, ByteOrder::Little)).is_err());
    assert_eq!(Colour::ALL.len(), 3);
}

#[test]
fn unions_by_every_selecting_type_and_values_at_their_ends_go_there_and_back() {
    there_and_back(&ByShort::Minus(-5));
    there_and_back(&ByShort::Rest(i16::MIN, 0.5));
    there_and_back(&ByULong::Top(9));
    there_and_back(&ByULong::Other(0));
    there_and_back(&ByLongLong::Low("low".into()));
    there_and_back(&ByLongLong::None(Point { x: 1.0, y: -1.0 }));
    there_and_back(&ByLongLong::Other(i64::MIN));
    there_and_back(&ByULongLong::Top('\u{FFFD}'));
    there_and_back(&ByULongLong::Rest(1, Any::from_value(&7_u8).unwrap()));
    there_and_back(&ByWide::Narrow(WString::from("\u{FEFF}mark")));
    there_and_back(&ByWide::Money(BoundedVec::try_from(vec![1, 2]).unwrap()));
    there_and_back(&ByWide::Other('\u{FEFF}'));
    there_and_back(&ByUShort::Inner(65535, ByShort::Minus(1)));
    let any = Any::from_value(&Any::from_value(&everything()).unwrap()).unwrap();
    let anys = vec![vec![], vec![any.clone(), Any::empty()], vec![any]];
    there_and_back(&Corners {
        even: Fixed::from_units(-9999).unwrap(),
        single: Fixed::from_units(-9).unwrap(),
        fraction: Fixed::from_units(10_i128.pow(31) - 1).unwrap(),
        cube: [[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]],
        halves: BoundedVec::try_from(vec![LongDouble::from(0.5), LongDouble::from(-1e300)])
            .unwrap(),
        anys: BoundedVec::try_from(anys).unwrap(),
        answers: vec![true, false, true],
        letters: vec!['a', '€', '\u{FFFE}'],
        table: [[Colour::Red, Colour::Green], [Colour::LightBlue; 2]],
        shorts: [ByShort::Minus(0), ByShort::Rest(0, 0.0)],
        many: vec![Bounded::default()],
    });
}

#[test]
fn strings_within_sequences_and_arrays_keep_to_their_bounds() {
    let whole = Bounded {
        wides: vec![WString::from("four"), WString::default()],
        longs: ["x".repeat(300), String::new()],
        deep: vec![vec![], vec!["y".repeat(300)]],
    };
    there_and_back(&whole);
    let (mut wide, mut long, mut deep) = (whole.clone(), whole.clone(), whole.clone());
    wide.wides.push(WString::from("fives"));
    long.longs[1] = "x".repeat(301);
    deep.deep[1].push("z".repeat(301));
    for exceeding in [&wide, &long, &deep] {
        let written = exceeding.write(&mut Writer::new(&mut Vec::new()));
        assert_eq!(written, Err(EncodeError::BoundExceeded));
        // A peer that does not check bounds sends such octets: the members one by one.
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets);
        exceeding.wides.write(&mut w).unwrap();
        exceeding.longs.write(&mut w).unwrap();
        exceeding.deep.write(&mut w).unwrap();
        let read = Bounded::parse(&mut Reader::new(&octets, ByteOrder::NATIVE));
        assert_eq!(
            read.map_err(|error| error.fact),
            Err(DecodeFact::BoundExceeded)
        );
    }
}

#[test]
fn strings_beyond_their_bound_are_neither_written_nor_read() {
    let mut value = everything();
    value.long_text.push('x');
    assert!(value.write(&mut Writer::new(&mut Vec::new())).is_err());
    let mut value = everything();
    value.short_wide = WString::from("fives");
    assert!(value.write(&mut Writer::new(&mut Vec::new())).is_err());
    for (length, taken) in [(300, true), (301, false)] {
        let mut octets = Vec::new();
        let w = &mut Writer::new(&mut octets);
        Char(b'b').write(w).unwrap();
        "x".repeat(length).write(w).unwrap();
        let read = Lettered::parse(&mut Reader::new(&octets, ByteOrder::NATIVE));
        assert_eq!(read.is_ok(), taken);
    }
}

#[test]
fn constants_have_their_values() {
    assert_eq!(
        (broad::ANSWER, broad::ALL, broad::HALF, broad::THIRD),
        (42, u64::MAX, 0.5, 0.25)
    );
    assert_eq!((broad::GREETING, broad::WIDE), ("hello there\n", "café"));
    assert_eq!(
        (broad::LETTER, broad::YES, broad::MASK),
        (Char(b'A'), true, 0x3f)
    );
    assert_eq!(broad::PRICE.units(), 125);
    assert_eq!(broad::LONG_HALF, LongDouble::from(0.5));
    assert_eq!(broad::FAVOURITE, Colour::LightBlue);
    assert_eq!(broad::clock::NOON, 12);
}

#[test]
fn type_codes_describe_what_was_written_and_recursion_ends() {
    let code = Tree::type_code();
    assert_eq!(code.id(), Some("IDL:Broad/Tree:1.0"));
    let child = code.member_type(1).unwrap().content_type().unwrap();
    assert_eq!(child.id(), code.id());
    assert_eq!(child.member_count(), 2);
    let pair = Other::type_code().member_type(0).unwrap();
    assert_eq!(pair.id(), Some("IDL:Broad/Other/Pair:1.0"));
    let again = pair
        .member_type(0)
        .unwrap()
        .unaliased()
        .content_type()
        .unwrap();
    assert_eq!(again, Other::type_code());
    assert_eq!(Sparse::type_code().default_index(), Some(3));
    assert_eq!(Sparse::type_code().member_label(1), Some(-2));
    assert_eq!(
        Stamp::type_code().id(),
        Some("IDL:example.org/Shared/Stamp:1.0")
    );
    assert_eq!(
        Refused::type_code().kind(),
        deckwatch_cdr::typecode::Kind::Except
    );
    assert_eq!(
        CalculatorRef::type_code().id(),
        Some("IDL:Broad/Calculator:1.0")
    );
}

#[test]
fn calls_carry_arguments_results_and_out_parameters() {
    let calculator = calculator();
    assert_eq!(calculator.add(2, 3).unwrap(), 5);
    assert_eq!(calculator.divide(17, 5).unwrap(), (3, 2));
    assert_eq!(
        calculator.concat("a", "b").unwrap(),
        ("ab".to_owned(), "ba".to_owned())
    );
    assert_eq!(calculator.mirror(&[1, 2, 3]).unwrap(), [3, 2, 1]);
    assert_eq!(calculator.round(&everything()).unwrap(), everything());
    let track = [Point { x: 1.0, y: 0.0 }, Point { x: 2.0, y: 0.0 }];
    assert_eq!(calculator.reverse(&track).unwrap()[0], track[1]);
    assert_eq!(
        calculator
            .blend(Colour::Red, Colour::Green, &track[0])
            .unwrap(),
        Colour::Green
    );
    let inner = broad::holder::Inner { value: 9 };
    assert_eq!(
        calculator
            .unwrap(&Holder {
                content: inner,
                condition: broad::holder::State::Busy
            })
            .unwrap(),
        inner
    );
    assert_eq!(
        calculator
            .wrap(&everything().extra, &TypeCode::long())
            .unwrap(),
        everything().extra
    );
}

#[test]
fn unions_go_in_inout_and_out() {
    let (choice, sparse, maybe) = calculator()
        .choose(&Choice::Number(1), &Sparse::One("x".into()))
        .unwrap();
    assert_eq!(
        (choice, sparse, maybe),
        (Choice::Number(1), Sparse::Rest(100, 1), Maybe::Other(false))
    );
    let letters = Lettered::Inner(vec![Lettered::Other(Char(b'q'))]);
    assert_eq!(calculator().letters(&letters).unwrap(), letters);
}

#[test]
fn exceptions_arrive_as_what_was_raised() {
    let calculator = calculator();
    assert_eq!(
        calculator.divide(1, 0),
        Err(CalculatorDivideError::Empty(Empty))
    );
    let refused = Refused {
        reason: "negative".into(),
        shade: Colour::Red,
    };
    assert_eq!(calculator.divide(1, -1), Err(refused.into()));
    assert_eq!(
        calculator.advance(100),
        Err(broad::clock::Stopped { at: 100 }.into())
    );
    match calculator.divide(1, 77) {
        Err(CalculatorDivideError::System(exception)) => {
            assert_eq!(exception.kind, SystemExceptionKind::NoPermission)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn attributes_are_read_and_written_and_inherited_operations_served() {
    let calculator = calculator();
    assert_eq!(calculator.name().unwrap(), "abacus");
    calculator.set_hour(5).unwrap();
    assert_eq!(
        (
            calculator.hour().unwrap(),
            calculator.advance(2).unwrap(),
            calculator.hour().unwrap()
        ),
        (5, 7, 7)
    );
    assert_eq!(calculator.tick().unwrap(), Stamp { ns: 1 });
    let ticker: idl::shared::TickerRef = calculator.clone().into();
    assert_eq!(ticker.tick().unwrap(), Stamp { ns: 2 });
    let root: RootRef = calculator.into();
    root.touch().unwrap();
}

#[test]
fn references_narrow_to_what_the_object_is() {
    let calculator = calculator();
    let object: ObjectRef = calculator.clone().into();
    assert_eq!(
        ClockRef::narrow(&object)
            .unwrap()
            .map(|clock| clock.hour().unwrap()),
        Some(0)
    );
    let root = ObjectRef::to(Arc::new(RootSkeleton::new(Arc::new(Abacus::default()))));
    assert_eq!(CalculatorRef::narrow(&root).unwrap(), None);
    let own = calculator.self_(Some(&calculator), Some(&object)).unwrap();
    assert_eq!(own.as_ref(), Some(&calculator));
    assert_eq!(calculator.self_(None, None).unwrap(), None);
}

#[test]
fn bounded_results_and_arguments_beyond_their_bound_are_refused_on_either_side() {
    let calculator = calculator();
    assert_eq!(&*calculator.at_most_three(&[1, 2]).unwrap(), [1, 2]);
    assert_eq!(
        calculator.at_most_three(&[1, 2, 3, 4]).unwrap_err().kind,
        SystemExceptionKind::Marshal
    );
    // The servant repeats three values, and six exceed the bound of its result.
    assert_eq!(
        calculator.at_most_three(&[1, 2, 3]).unwrap_err().kind,
        SystemExceptionKind::Marshal
    );
    assert_eq!(calculator.limited(&"x".repeat(150)).unwrap().len(), 300);
    assert_eq!(
        calculator.limited(&"x".repeat(151)).unwrap_err().kind,
        SystemExceptionKind::Marshal
    );
    assert_eq!(
        calculator.limited(&"x".repeat(301)).unwrap_err().kind,
        SystemExceptionKind::Marshal
    );
}

#[test]
fn oneways_arrive_and_unknown_operations_are_refused() {
    let servant = Arc::new(Abacus::default());
    let calculator = CalculatorRef::unchecked_narrow(ObjectRef::to(Arc::new(
        CalculatorSkeleton::new(Arc::clone(&servant)),
    )));
    calculator
        .notify("heard", &[Colour::Red, Colour::Green])
        .unwrap();
    assert_eq!(*servant.heard.lock().unwrap(), [("heard".to_owned(), 2)]);
    let root = ObjectRef::to(Arc::new(RootSkeleton::new(servant)));
    let wrong = CalculatorRef::unchecked_narrow(root);
    assert_eq!(
        wrong.add(1, 2).unwrap_err().kind,
        SystemExceptionKind::BadOperation
    );
}
