//! Messages in fragments of GIOP 1.1, in which alignment counts from each fragment header (CORBA 3.3 part 2, clause
//! 9.4.9).

use crate::support::typed_values;
use deckwatch_cdr::value::{Value, read_value, skip_value, write_value};
use deckwatch_cdr::{
    Any, ByteOrder, CharSet, Codec, Divided, Parse, Reader, TypeCode, Version, Write, Writer,
};
use proptest::prelude::*;

/// The size of the message header at the start. The headers of later fragments are left out.
const HEADER_SIZE: usize = 12;
const CODEC: Codec = Codec::DEFAULT.with_chars(CharSet::Utf8);

/// Writes after `before` octets of a message, in fragments of `size`. Returns the octets and the end of each fragment.
fn divided(
    size: usize,
    before: usize,
    order: ByteOrder,
    write: impl Fn(&mut Writer<'_>),
) -> (Vec<u8>, Vec<u32>) {
    let mut octets = vec![0; HEADER_SIZE + before];
    let mut w = Writer::new(&mut octets)
        .with_origin(0)
        .with_order(order)
        .with_codec(CODEC)
        .with_fragments(size);
    write(&mut w);
    let ends = (size..octets.len()).step_by(size - HEADER_SIZE);
    let ends = ends.map(|end| end as u32).collect();
    (octets, ends)
}

/// Reads the fragments without [`Divided`]: each fragment alone, aligned from its own header.
fn naive_doubles(octets: &[u8], size: usize, count: usize) -> Vec<f64> {
    let mut fragments = vec![octets[..size.min(octets.len())].to_vec()];
    for rest in octets[size.min(octets.len())..].chunks(size - HEADER_SIZE) {
        fragments.push([&[0; HEADER_SIZE], rest].concat());
    }
    let mut found = Vec::new();
    for (index, fragment) in fragments.iter().enumerate() {
        let mut r = Reader::new(fragment, ByteOrder::Big).at_position(if index == 0 {
            HEADER_SIZE + 4
        } else {
            HEADER_SIZE
        });
        while found.len() < count
            && let Ok(number) = f64::parse(&mut r)
        {
            found.push(number);
        }
    }
    found
}

#[test]
fn data_in_a_fragment_is_aligned_relative_to_its_position_in_the_fragment() {
    let numbers: Vec<f64> = (0..20).map(f64::from).collect();
    for size in [24, 32, 40, 64, 1024] {
        let (octets, ends) = divided(size, 0, ByteOrder::Big, |w| numbers.write(w).unwrap());
        assert_eq!(
            naive_doubles(&octets, size, numbers.len()),
            numbers,
            "{size}"
        );
        let message = Divided::new(&octets, &ends);
        let mut r = Reader::of_divided(&message, ByteOrder::Big, HEADER_SIZE);
        assert_eq!(Vec::<f64>::parse(&mut r).as_ref(), Ok(&numbers), "{size}");
    }
}

#[test]
fn a_divided_message_stays_within_the_writers_limit() {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_limit(100).with_fragments(24);
    for _ in 0..25 {
        if 7_u64.write(&mut w).is_err() {
            break;
        }
    }
    assert!(1_u64.write(&mut w).is_err() && vec![1_u8; 9].write(&mut w).is_err());
    assert!(octets.len() <= 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn values_come_back_from_fragments_of_every_size((code, value) in typed_values(), steps in 0_usize..9, before in 0_usize..40, little: bool) {
        let order = if little { ByteOrder::Little } else { ByteOrder::Big };
        let (octets, ends) = divided(24 + 8 * steps, before, order, |w| {
            write_value(&code, &value, w).unwrap();
            7_u8.write(w).unwrap();
        });
        let message = Divided::new(&octets, &ends);
        let at_value = Reader::of_divided(&message, order, HEADER_SIZE + before).with_codec(CODEC);
        let mut r = at_value;
        prop_assert_eq!(&read_value(&code, &mut r).unwrap(), &value);
        let mut skipped = at_value;
        skip_value(&code, &mut skipped).unwrap();
        prop_assert_eq!(skipped.position(), r.position());
        prop_assert_eq!(u8::parse(&mut r), Ok(7));
        prop_assert_eq!(r.finish(), Ok(()));
    }

    #[test]
    fn an_any_that_came_in_fragments_is_the_same_elsewhere((code, value) in typed_values(), steps in 0_usize..9, before in 0_usize..40, little: bool) {
        let order = if little { ByteOrder::Little } else { ByteOrder::Big };
        let any = Any::from_dynamic(&code, &value).unwrap();
        let (octets, ends) = divided(24 + 8 * steps, before, order, |w| any.write(w).unwrap());
        let message = Divided::new(&octets, &ends);
        let mut r = Reader::of_divided(&message, order, HEADER_SIZE + before).with_codec(CODEC);
        let parsed = Any::parse(&mut r).unwrap();
        prop_assert_eq!(r.finish(), Ok(()));
        prop_assert_eq!(&parsed, &any);
        let (octets, ends) = divided(32, before, order, |w| parsed.write(w).unwrap());
        let message = Divided::new(&octets, &ends);
        let mut r = Reader::of_divided(&message, order, HEADER_SIZE + before).with_codec(CODEC);
        prop_assert_eq!(Any::parse(&mut r), Ok(any));
    }

    #[test]
    fn octets_divided_anywhere_never_make_a_reader_panic((code, _) in typed_values(), octets: Vec<u8>, mut ends in prop::collection::vec(0_u32..60, 0..6)) {
        ends.sort_unstable();
        let message = Divided::new(&octets, &ends);
        let r = Reader::of_divided(&message, ByteOrder::Little, 0).with_codec(CODEC.with_version(Version::V1_1));
        let skipped = skip_value(&code, &mut r.clone()).is_ok();
        if let Ok(value) = read_value(&code, &mut r.clone()) {
            prop_assert!(skipped);
            prop_assert!(value != Value::Nothing || code == TypeCode::null());
        }
        let _ = Any::parse(&mut r.clone());
    }
}
