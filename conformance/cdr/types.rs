//! CDR by clause (CORBA 3.3 part 2, clause 9.3): every type compared with octets made by hand.

use crate::common::{ORDERS, Octets, Order};
use deckwatch_cdr::{
    BoundedString, BoundedVec, ByteOrder, Char, DecodeError, Fixed, LongDouble, Parse, Reader,
    TypeCode, Write, Writer,
};

fn byte_order(order: Order) -> ByteOrder {
    match order {
        Order::Big => ByteOrder::Big,
        Order::Little => ByteOrder::Little,
    }
}

/// Writes the value after one octet, so that alignment matters.
fn written<T: Write>(value: &T, order: Order) -> Vec<u8> {
    let mut buffer = vec![0xee];
    let mut w = Writer::new(&mut buffer)
        .with_origin(0)
        .with_order(byte_order(order));
    value.write(&mut w).expect("it can be written");
    buffer
}

fn read<T: for<'a> Parse<'a>>(octets: &[u8], order: Order) -> Result<T, DecodeError> {
    let mut r = Reader::new(octets, byte_order(order)).at_position(1);
    let value = T::parse(&mut r)?;
    r.finish()?;
    Ok(value)
}

/// Checks in both byte orders that the value is written as these octets, and that they are read as the value.
#[track_caller]
fn is_written_as<T: Write + for<'a> Parse<'a> + PartialEq + std::fmt::Debug>(
    value: &T,
    form: impl Fn(&mut Octets),
) {
    for order in ORDERS {
        let mut expected = Octets::new(order);
        expected.u8(0xee);
        form(&mut expected);
        assert_eq!(
            written(value, order),
            expected.octets,
            "{value:?} in {order:?}"
        );
        assert_eq!(
            read::<T>(&expected.octets, order).as_ref(),
            Ok(value),
            "{order:?}"
        );
    }
}

#[test]
fn integers_stand_at_multiples_of_their_size_in_the_order_of_the_message() {
    assert_eq!(written(&0x0102_u16, Order::Big), [0xee, 0, 1, 2]);
    assert_eq!(written(&0x0102_u16, Order::Little), [0xee, 0, 2, 1]);
    assert_eq!(
        written(&0x0102_0304_u32, Order::Big),
        [0xee, 0, 0, 0, 1, 2, 3, 4]
    );
    assert_eq!(
        written(&0x0102_0304_u32, Order::Little),
        [0xee, 0, 0, 0, 4, 3, 2, 1]
    );
    assert_eq!(
        written(&0x0102_0304_0506_0708_u64, Order::Big),
        [0xee, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    );
    is_written_as(&-2_i16, |o| {
        o.u16(0xfffe);
    });
    is_written_as(&-2_i32, |o| {
        o.u32(0xffff_fffe);
    });
    is_written_as(&-2_i64, |o| {
        o.u64(0xffff_ffff_ffff_fffe);
    });
    is_written_as(&i64::MIN, |o| {
        o.u64(1 << 63);
    });
}

#[test]
fn floats_are_ieee_754_and_keep_every_bit() {
    is_written_as(&1.0_f32, |o| {
        o.u32(0x3f80_0000);
    });
    is_written_as(&-2.5_f32, |o| {
        o.u32(0xc020_0000);
    });
    is_written_as(&1.0_f64, |o| {
        o.u64(0x3ff0_0000_0000_0000);
    });
    is_written_as(&f64::NEG_INFINITY, |o| {
        o.u64(0xfff0_0000_0000_0000);
    });
    is_written_as(&-0.0_f64, |o| {
        o.u64(1 << 63);
    });
    for bits in [0x7ff8_0000_0000_0001, 0xfff4_0000_dead_beef_u64] {
        let octets = written(&f64::from_bits(bits), Order::Big);
        assert_eq!(octets[8..], bits.to_be_bytes());
        assert_eq!(read::<f64>(&octets, Order::Big).unwrap().to_bits(), bits);
    }
}

#[test]
fn a_long_double_is_sixteen_octets_at_a_multiple_of_eight() {
    let bits = 0x3fff_0000_0000_0000_0011_2233_4455_6677_u128;
    let big = written(&LongDouble(bits), Order::Big);
    assert_eq!((big.len(), &big[8..]), (24, &bits.to_be_bytes()[..]));
    let little = written(&LongDouble(bits), Order::Little);
    assert_eq!(little[8..], bits.to_le_bytes());
    assert_eq!(
        read::<LongDouble>(&little, Order::Little),
        Ok(LongDouble(bits))
    );
}

#[test]
fn octets_booleans_and_chars_are_one_octet() {
    is_written_as(&0xab_u8, |o| {
        o.u8(0xab);
    });
    is_written_as(&true, |o| {
        o.u8(1);
    });
    is_written_as(&false, |o| {
        o.u8(0);
    });
    is_written_as(&Char(0xfc), |o| {
        o.u8(0xfc);
    });
}

#[test]
fn a_boolean_is_0_or_1_and_nothing_else() {
    for octet in [2, 0x80, 0xff] {
        assert!(read::<bool>(&[0xee, octet], Order::Big).is_err(), "{octet}");
    }
}

#[test]
fn an_array_is_its_elements_without_a_count() {
    is_written_as(&[1_u16, 2, 3], |o| {
        o.u16(1).u16(2).u16(3);
    });
    is_written_as(&[[1_u8, 2], [3, 4]], |o| {
        o.raw(&[1, 2, 3, 4]);
    });
}

#[test]
fn a_sequence_is_its_count_and_its_elements() {
    is_written_as(&Vec::<u64>::new(), |o| {
        o.u32(0);
    });
    is_written_as(&vec![7_u64], |o| {
        o.u32(1).u64(7);
    });
    is_written_as(&vec![1_u16, 2, 3], |o| {
        o.u32(3).u16(1).u16(2).u16(3);
    });
    is_written_as(&vec![vec![1_u8], vec![]], |o| {
        o.u32(2).u32(1).u8(1).u32(0);
    });
    is_written_as(
        &BoundedVec::<u8, 3>::try_from(vec![1, 2, 3]).unwrap(),
        |o| {
            o.sequence(&[1, 2, 3]);
        },
    );
}

#[test]
fn a_sequence_longer_than_its_bound_is_refused_on_either_side() {
    assert!(BoundedVec::<u8, 3>::try_from(vec![0; 4]).is_err());
    let mut octets = Octets::new(Order::Big);
    octets.u8(0xee).sequence(&[0; 4]);
    assert!(read::<BoundedVec<u8, 3>>(&octets.octets, Order::Big).is_err());
    assert!(read::<BoundedString<3>>(&octets.octets, Order::Big).is_err());
}

#[test]
fn a_string_is_its_length_with_the_null_its_octets_and_the_null() {
    is_written_as(&"abc".to_owned(), |o| {
        o.u32(4).raw(b"abc\0");
    });
    is_written_as(&String::new(), |o| {
        o.u32(1).u8(0);
    });
    is_written_as(&BoundedString::<3>::try_from("abc").unwrap(), |o| {
        o.u32(4).raw(b"abc\0");
    });
}

#[test]
fn a_string_without_its_null_is_refused() {
    for octets in [&b"\xee\0\0\0\0\0\0\x03abc"[..], b"\xee\0\0\0\0\0\0\x04abcd"] {
        assert!(read::<String>(octets, Order::Big).is_err());
    }
}

#[test]
fn a_fixed_is_packed_decimal_with_the_sign_in_its_last_half_octet() {
    let fixed = |text: &str| -> Fixed<5, 2> { text.parse().unwrap() };
    is_written_as(&fixed("123.45"), |o| {
        o.raw(&[0x12, 0x34, 0x5c]);
    });
    is_written_as(&fixed("-1.2"), |o| {
        o.raw(&[0x00, 0x12, 0x0d]);
    });
    // An even number of digits starts with a half octet of 0.
    let even: Fixed<4, 1> = "-123.4".parse().unwrap();
    is_written_as(&even, |o| {
        o.raw(&[0x01, 0x23, 0x4d]);
    });
    for malformed in [[0x12, 0x34, 0x5f], [0x1a, 0x34, 0x5c]] {
        let octets = [&[0xee][..], &malformed].concat();
        assert!(read::<Fixed<5, 2>>(&octets, Order::Big).is_err());
    }
}

#[test]
fn lengths_that_claim_more_than_there_is_cost_nothing() {
    for count in [9_u32, 0x7fff_ffff, u32::MAX] {
        let mut octets = Octets::new(Order::Big);
        octets.u8(0xee).u32(count).raw(&[0; 8]);
        assert!(read::<Vec<u8>>(&octets.octets, Order::Big).is_err());
        assert!(read::<Vec<u64>>(&octets.octets, Order::Big).is_err());
        assert!(read::<Vec<Vec<String>>>(&octets.octets, Order::Big).is_err());
        assert!(read::<String>(&octets.octets, Order::Big).is_err());
        assert!(read::<TypeCode>(&octets.octets, Order::Big).is_err());
    }
}

#[test]
fn an_encapsulation_has_its_own_byte_order_and_its_own_alignment() {
    for inner in ORDERS {
        let mut body = Octets::encapsulation(inner);
        body.u64(0x0102_0304_0506_0708);
        // The long long is at octet 8 of the encapsulation, wherever the encapsulation starts.
        assert_eq!(body.octets.len(), 16);
        let mut octets = Octets::new(Order::Big);
        octets.u8(0xee).sequence(&body.octets);
        let mut r = Reader::new(&octets.octets, ByteOrder::Big).at_position(1);
        let mut inside = r.read_encapsulation().unwrap();
        assert_eq!(u64::parse(&mut inside), Ok(0x0102_0304_0506_0708));
        assert_eq!((inside.finish(), r.finish()), (Ok(()), Ok(())));
    }
    let empty = [0, 0, 0, 0];
    assert!(
        Reader::new(&empty, ByteOrder::Big)
            .read_encapsulation()
            .is_err()
    );
}
