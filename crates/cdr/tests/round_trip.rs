//! Every type comes back as it was written, in both byte orders and at every alignment; no octets make a reader panic.

use deckwatch_cdr::{
    BoundedString, BoundedVec, ByteOrder, Char, CharSet, Codec, Fixed, LongDouble, Parse, Reader,
    TypeCode, Version, WString, Write, Writer,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::fmt::Debug;

const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

fn written<T: Write + ?Sized>(value: &T, order: ByteOrder, phase: usize, codec: Codec) -> Vec<u8> {
    let mut buffer = vec![0xAA; phase];
    let mut w = Writer::new(&mut buffer)
        .with_origin(0)
        .with_order(order)
        .with_codec(codec);
    value.write(&mut w).unwrap();
    buffer
}

fn reader(buffer: &[u8], order: ByteOrder, phase: usize, codec: Codec) -> Reader<'_> {
    Reader::new(buffer, order)
        .at_position(phase)
        .with_codec(codec)
}

/// Writes and reads `value` in every order and alignment, and checks that every truncated form is refused.
fn round_trip<T: Write + for<'a> Parse<'a> + PartialEq + Debug>(value: &T) {
    let codec = Codec::DEFAULT.with_chars(CharSet::Utf8);
    for order in ORDERS {
        for phase in 0..8 {
            let buffer = written(value, order, phase, codec);
            let mut r = reader(&buffer, order, phase, codec);
            assert_eq!(T::parse(&mut r).as_ref(), Ok(value));
            assert_eq!(r.finish(), Ok(()));
            assert!(buffer.len() - phase >= T::SIZE_MIN);
            let short = &buffer[..buffer.len() - 1];
            assert!(
                T::parse(&mut reader(short, order, phase, codec)).is_err(),
                "{value:?} from too few octets"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn numbers(a: u8, b: i16, c: u16, d: i32, e: u32, f: i64, g: u64, h: bool, i: u128) {
        round_trip(&a);
        round_trip(&b);
        round_trip(&c);
        round_trip(&d);
        round_trip(&e);
        round_trip(&f);
        round_trip(&g);
        round_trip(&h);
        round_trip(&Char(a));
        round_trip(&LongDouble(i));
        round_trip(&f32::from_bits(e & 0x7F7F_FFFF));
        round_trip(&f64::from_bits(g & 0x7FEF_FFFF_FFFF_FFFF));
    }

    #[test]
    fn text(s in "[^\0]{0,40}", c: char) {
        round_trip(&s);
        round_trip(&WString::from(s.as_str()));
        round_trip(&c);
        let octets: String = s.chars().take(3).collect();
        round_trip(&BoundedString::<12>::try_from(octets.as_str()).unwrap());
    }

    #[test]
    fn wide_text_of_giop_1_1_in_both_orders(s in "[^\0]{0,40}") {
        let codec = Codec::DEFAULT.with_version(Version::V1_1);
        for order in ORDERS {
            let value = WString::from(s.as_str());
            let buffer = written(&value, order, 2, codec);
            prop_assert_eq!(WString::parse(&mut reader(&buffer, order, 2, codec)), Ok(value));
        }
    }

    #[test]
    fn latin_1_text_is_one_octet_a_character(s in "[\u{1}-\u{FF}]{0,40}") {
        let codec = Codec::DEFAULT;
        let buffer = written(&s, ByteOrder::Big, 0, codec);
        prop_assert_eq!(buffer.len(), 5 + s.chars().count());
        prop_assert_eq!(String::parse(&mut reader(&buffer, ByteOrder::Big, 0, codec)), Ok(s));
    }

    #[test]
    fn sequences(a: Vec<u8>, b: Vec<i16>, c: Vec<u32>, d: Vec<i64>, e: Vec<bool>, f: Vec<Vec<u16>>, g in prop::collection::vec("[a-z]{0,5}", 0..5)) {
        round_trip(&a);
        round_trip(&b);
        round_trip(&c);
        round_trip(&d);
        round_trip(&e);
        round_trip(&f);
        round_trip(&g);
        round_trip(&a.iter().copied().map(Char).collect::<Vec<_>>());
        round_trip(&d.iter().map(|d| f64::from_bits(d.cast_unsigned() >> 2)).collect::<Vec<_>>());
        let few: Vec<_> = b.into_iter().take(5).collect();
        round_trip(&BoundedVec::<i16, 5>::try_from(few).unwrap());
    }

    #[test]
    fn arrays_and_fixed(a: [u8; 5], b: [i64; 3], c: [u16; 1], units in -99_999_i128..100_000) {
        round_trip(&a);
        round_trip(&b);
        round_trip(&c);
        let fixed = Fixed::<5, 2>::from_units(units).unwrap();
        round_trip(&fixed);
        prop_assert_eq!(fixed.to_string().parse(), Ok(fixed));
        round_trip(&Fixed::<6, 0>::from_units(units).unwrap());
    }

    #[test]
    fn random_octets_never_make_a_reader_panic(octets: Vec<u8>, little: bool, version in 0_u8..3) {
        let order = ORDERS[usize::from(little)];
        let codec = Codec::DEFAULT.with_version(Version::from_minor(version).unwrap());
        let r = reader(&octets, order, 0, codec);
        let _ = String::parse(&mut r.clone());
        let _ = WString::parse(&mut r.clone());
        let _ = char::parse(&mut r.clone());
        let _ = Vec::<Vec<bool>>::parse(&mut r.clone());
        let _ = Vec::<String>::parse(&mut r.clone());
        let _ = Cow::<[Char]>::parse(&mut r.clone());
        let _ = BoundedString::<7>::parse(&mut r.clone());
        let _ = Fixed::<31, 7>::parse(&mut r.clone());
        let _ = TypeCode::parse(&mut r.clone());
        let _ = r.clone().read_encapsulation();
    }
}

#[test]
fn octets_chars_and_booleans_are_lent() {
    let buffer = [0, 0, 0, 2, 1, 0];
    assert!(matches!(
        Cow::<[u8]>::parse(&mut Reader::new(&buffer, ByteOrder::Big)),
        Ok(Cow::Borrowed([1, 0]))
    ));
    assert!(matches!(
        Cow::<[bool]>::parse(&mut Reader::new(&buffer, ByteOrder::Big)),
        Ok(Cow::Borrowed([true, false]))
    ));
    assert!(matches!(
        Cow::<[Char]>::parse(&mut Reader::new(&buffer, ByteOrder::Big)),
        Ok(Cow::Borrowed([Char(1), Char(0)]))
    ));
    let text = [0, 0, 0, 3, b'h', b'i', 0];
    assert!(matches!(
        Cow::<str>::parse(&mut Reader::new(&text, ByteOrder::Big)),
        Ok(Cow::Borrowed("hi"))
    ));
}
