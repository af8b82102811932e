//! Octets made by hand from the standard (CORBA 3.3 part 2, clause 9.3), and the values they encode. Our own writer and
//! reader could share a misreading of the standard.

use deckwatch_cdr::value::{Value, read_value, write_value};
use deckwatch_cdr::{
    BoundedString, ByteOrder, CharSet, Codec, DecodeFact, EncodeError, Fixed, LongDouble, Parse,
    Reader, TypeCode, Version, WString, WideSet, Write, Writer,
};

fn codec(version: Version) -> Codec {
    Codec::DEFAULT.with_version(version)
}

fn written(value: &impl Write, order: ByteOrder, codec: Codec) -> Result<Vec<u8>, EncodeError> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(order).with_codec(codec);
    value.write(&mut w).map(|()| octets)
}

fn read<'a, T: Parse<'a>>(
    octets: &'a [u8],
    order: ByteOrder,
    codec: Codec,
) -> Result<T, DecodeFact> {
    let mut r = Reader::new(octets, order).with_codec(codec);
    let value = T::parse(&mut r).map_err(|error| error.fact)?;
    r.finish().map_err(|error| error.fact).map(|()| value)
}

#[test]
fn wide_characters_of_giop_1_2_carry_their_length_and_are_big_endian_unless_marked() {
    let v1_2 = codec(Version::V1_2);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for (octets, character) in [
            (&[2, 0x26, 0x93][..], '\u{2693}'),
            (&[4, 0xFE, 0xFF, 0x26, 0x93], '\u{2693}'),
            (&[4, 0xFF, 0xFE, 0x93, 0x26], '\u{2693}'),
            (&[4, 0xD8, 0x3D, 0xDE, 0xA2], '\u{1F6A2}'),
            (&[6, 0xFF, 0xFE, 0x3D, 0xD8, 0xA2, 0xDE], '\u{1F6A2}'),
            (&[4, 0xFE, 0xFF, 0xFE, 0xFF], '\u{FEFF}'),
        ] {
            assert_eq!(read(octets, order, v1_2), Ok(character), "{octets:x?}");
        }
        for (octets, fact) in [
            (&[0][..], DecodeFact::NotInCodeSet),
            (&[1, 0x61], DecodeFact::WideLengthOdd),
            (&[2, 0xD8, 0x3D], DecodeFact::NotInCodeSet),
            (&[4, 0, 0x61, 0, 0x62], DecodeFact::NotInCodeSet),
            (&[4, 0, 0x61], DecodeFact::LengthExceedsMessage),
        ] {
            assert_eq!(read::<char>(octets, order, v1_2), Err(fact), "{octets:x?}");
        }
        assert_eq!(written(&'\u{2693}', order, v1_2), Ok(vec![2, 0x26, 0x93]));
        assert_eq!(
            written(&'\u{1F6A2}', order, v1_2),
            Ok(vec![4, 0xD8, 0x3D, 0xDE, 0xA2])
        );
    }
}

#[test]
fn wide_characters_of_giop_1_1_are_two_octets_in_the_order_of_their_message() {
    let v1_1 = codec(Version::V1_1);
    let anchor = [
        (ByteOrder::Big, [0x26, 0x93]),
        (ByteOrder::Little, [0x93, 0x26]),
    ];
    for (order, octets) in anchor {
        assert_eq!(written(&'\u{2693}', order, v1_1), Ok(octets.to_vec()));
        assert_eq!(read(&octets, order, v1_1), Ok('\u{2693}'));
        // A character of two UTF-16 units cannot be written, and half a character cannot be read.
        assert_eq!(
            written(&'\u{1F6A2}', order, v1_1),
            Err(EncodeError::NotInCodeSet)
        );
    }
    assert_eq!(
        read::<char>(&[0xD8, 0x3D], ByteOrder::Big, v1_1),
        Err(DecodeFact::NotInCodeSet)
    );
    let ship = WString::from("\u{1F6A2}");
    let octets = [0, 0, 0, 3, 0xD8, 0x3D, 0xDE, 0xA2, 0, 0];
    assert_eq!(written(&ship, ByteOrder::Big, v1_1), Ok(octets.to_vec()));
    assert_eq!(read(&octets, ByteOrder::Big, v1_1), Ok(ship));
    for (octets, fact) in [
        (&[0, 0, 0, 0][..], DecodeFact::StringLengthZero),
        (&[0, 0, 0, 1, 0, 0x61], DecodeFact::StringNotTerminated),
        (&[0, 0, 0, 2, 0, 0, 0, 0], DecodeFact::StringHoldsNull),
        (&[0, 0, 0, 9, 0, 0], DecodeFact::LengthExceedsMessage),
    ] {
        assert_eq!(
            read::<WString>(octets, ByteOrder::Big, v1_1),
            Err(fact),
            "{octets:x?}"
        );
    }
}

#[test]
fn a_lone_surrogate_comes_back_as_it_came_and_is_no_string() {
    let text = WString::from_units(vec![0x61, 0xDE00, 0xD83D]);
    let (big, little) = (ByteOrder::Big, ByteOrder::Little);
    let v1_1 = codec(Version::V1_1);
    let v1_2 = codec(Version::V1_2);
    let octets_1_1 = |unit: fn(u16) -> [u8; 2], count: [u8; 4]| {
        let units = [0x61, 0xDE00, 0xD83D, 0].map(unit);
        [&count[..], units.as_flattened()].concat()
    };
    let in_1_2 = [0, 0x61, 0xDE, 0, 0xD8, 0x3D];
    for (order, version, octets) in [
        (big, v1_1, octets_1_1(u16::to_be_bytes, [0, 0, 0, 4])),
        (little, v1_1, octets_1_1(u16::to_le_bytes, [4, 0, 0, 0])),
        (big, v1_2, [&[0, 0, 0, 6], &in_1_2[..]].concat()),
        (little, v1_2, [&[6, 0, 0, 0], &in_1_2[..]].concat()),
    ] {
        assert_eq!(read(&octets, order, version), Ok(text.clone()));
        assert_eq!(written(&text, order, version), Ok(octets.clone()));
        // Within an any too, by its TypeCode.
        let mut r = Reader::new(&octets, order).with_codec(version);
        let value = read_value(&TypeCode::wstring(3), &mut r);
        assert_eq!(value, Ok(Value::WString(text.clone())));
    }
    // A byte order mark that says little-endian.
    let marked = [0, 0, 0, 4, 0xFF, 0xFE, 0x3D, 0xD8];
    let half = WString::from_units(vec![0xD83D]);
    assert_eq!(read(&marked, big, v1_2), Ok(half.clone()));
    assert!(String::try_from(&half).is_err());
    assert_eq!(half.to_string(), "\u{FFFD}");
    assert_eq!(format!("{half:?}"), "\"\\u{d83d}\"");
    let whole = String::try_from(WString::from("a\u{1F6A2}"));
    assert!(whole.is_ok_and(|text| text == "a\u{1F6A2}"));
}

#[test]
fn wide_text_has_no_form_in_giop_1_0_and_for_a_peer_without_a_code_set_for_it() {
    let (v1_0, anchor) = (codec(Version::V1_0), WString::from("\u{2693}"));
    let order = ByteOrder::Big;
    assert_eq!(
        written(&anchor, order, v1_0),
        Err(EncodeError::WideInGiop10)
    );
    assert_eq!(written(&'a', order, v1_0), Err(EncodeError::WideInGiop10));
    assert_eq!(
        read::<WString>(&[0, 0, 0, 2, 0, 0x61, 0, 0], order, v1_0),
        Err(DecodeFact::WideInGiop10)
    );
    assert_eq!(
        read::<char>(&[0, 0x61], order, v1_0),
        Err(DecodeFact::WideInGiop10)
    );
    for version in [Version::V1_1, Version::V1_2] {
        let none = codec(version).with_wide(WideSet::None);
        assert_eq!(
            written(&anchor, order, none),
            Err(EncodeError::WideSetMissing)
        );
        assert_eq!(written(&'a', order, none), Err(EncodeError::WideSetMissing));
        let octets = written(&anchor, order, codec(version)).unwrap();
        assert_eq!(read(&octets, order, none), Ok(anchor.clone()));
    }
}

#[test]
fn fixed_point_is_packed_decimal_with_a_leading_zero_where_its_digits_are_even() {
    let order = ByteOrder::Big;
    let v1_2 = codec(Version::V1_2);
    let odd = Fixed::<5, 2>::from_units(-12345).unwrap();
    assert_eq!(written(&odd, order, v1_2), Ok(vec![0x12, 0x34, 0x5D]));
    let even = Fixed::<4, 2>::from_units(1234).unwrap();
    assert_eq!(written(&even, order, v1_2), Ok(vec![0x01, 0x23, 0x4C]));
    assert_eq!(read(&[0x01, 0x23, 0x4C], order, v1_2), Ok(even));
    let one = Fixed::<1, 0>::from_units(7).unwrap();
    assert_eq!(written(&one, order, v1_2), Ok(vec![0x7C]));
    for (octets, what) in [
        ([0x11, 0x23, 0x4C], "more digits than its type"),
        ([0x01, 0x2A, 0x4C], "a digit that is none"),
        ([0x01, 0x23, 0x41], "a sign that is none"),
    ] {
        let read = read::<Fixed<4, 2>>(&octets, order, v1_2);
        assert_eq!(read, Err(DecodeFact::FixedMalformed), "{what}");
    }
    // A scale below 0 is possible only at run time: 12 hundreds.
    let hundreds = TypeCode::fixed(3, -2);
    let mut r = Reader::new(&[0x01, 0x2C], order);
    assert_eq!(read_value(&hundreds, &mut r), Ok(Value::Fixed(12)));
    let mut octets = Vec::new();
    hundreds
        .write(&mut Writer::new(&mut octets).with_order(order))
        .unwrap();
    assert_eq!(octets, [0, 0, 0, 28, 0, 3, 0xFF, 0xFE]);
    assert_eq!(
        TypeCode::parse(&mut Reader::new(&octets, order)),
        Ok(hundreds)
    );
}

#[test]
fn a_long_double_is_sixteen_octets_aligned_to_eight() {
    let pi = LongDouble(0x4000_921F_B544_42D1_8469_898C_C517_01B8);
    let octets = 0x4000_921F_B544_42D1_8469_898C_C517_01B8_u128;
    for (order, expected) in [
        (ByteOrder::Big, octets.to_be_bytes()),
        (ByteOrder::Little, octets.to_le_bytes()),
    ] {
        let mut buffer = vec![1];
        let mut w = Writer::new(&mut buffer).with_origin(0).with_order(order);
        pi.write(&mut w).unwrap();
        assert_eq!(buffer[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(buffer[8..], expected);
        let mut r = Reader::new(&buffer, order).at_position(1);
        assert_eq!(LongDouble::parse(&mut r), Ok(pi));
    }
}

#[test]
fn the_bound_of_a_string_counts_octets_of_utf_8_by_the_type_and_by_its_type_code() {
    let code = TypeCode::string(4);
    let order = ByteOrder::Big;
    for chars in [CharSet::Utf8, CharSet::Latin1] {
        let codec = Codec::DEFAULT.with_chars(chars);
        for (text, fits) in [
            ("four", true),
            ("\u{e9}\u{e9}", true),
            ("fives", false),
            ("\u{e9}\u{e9}\u{e9}", false),
        ] {
            let octets = written(&text.to_owned(), order, codec).unwrap();
            let fixed = read::<BoundedString<4>>(&octets, order, codec);
            let dynamic = read_value(&code, &mut Reader::new(&octets, order).with_codec(codec));
            let (fixed, dynamic) = (
                fixed.map(drop),
                dynamic.map(drop).map_err(|error| error.fact),
            );
            let expected = if fits {
                Ok(())
            } else {
                Err(DecodeFact::BoundExceeded)
            };
            assert_eq!(
                (fixed, dynamic),
                (expected, expected),
                "{text} in {chars:?}"
            );
            let mut buffer = Vec::new();
            let mut w = Writer::new(&mut buffer).with_codec(codec);
            let sent = write_value(&code, &Value::String(text.to_owned()), &mut w);
            assert_eq!(sent.is_ok(), fits, "{text}");
            assert_eq!(BoundedString::<4>::try_from(text).is_ok(), fits, "{text}");
        }
    }
}
