//! Limits on the memory of value types that a peer sends.

use deckwatch_cdr::limits::{
    ANY_PARTS, INSTANCE_PARTS, OPAQUE_PARTS, TYPE_CODE_PARTS, VALUE_BASES_MAX, VALUE_PARTS_MAX,
};
use deckwatch_cdr::typecode::{Member, ValueMember, ValueModifier};
use deckwatch_cdr::{Any, ByteOrder, DecodeFact, Parse, Reader, TypeCode, Write, Writer};

fn code(id: &str, base: Option<&TypeCode>, members: &[&TypeCode]) -> TypeCode {
    let members = members.iter().map(|type_code| ValueMember {
        name: "m",
        type_code,
        is_public: true,
    });
    let members: Vec<_> = members.collect();
    TypeCode::value(id, "V", ValueModifier::None, base, &members)
}

/// The octets of an Any: this TypeCode, then what `write` writes.
fn octets(code: &TypeCode, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets);
    code.write(&mut w).expect("a TypeCode");
    write(&mut w);
    octets
}

fn parsed(octets: &[u8]) -> Result<Any, DecodeFact> {
    let mut r = Reader::new(octets, ByteOrder::NATIVE);
    let any = Any::parse(&mut r).map_err(|error| error.fact)?;
    r.finish().map_err(|error| error.fact)?;
    Ok(any)
}

fn back_to(target: usize, w: &mut Writer<'_>) {
    w.write_u32(u32::MAX).expect("room");
    let back = w.position() - target;
    w.write_u32((back as u32).wrapping_neg()).expect("room");
}

#[test]
fn bases_above_one_another_end_at_the_limit() {
    let of = |bases: usize| {
        let mut top = code("IDL:V0:1.0", None, &[]);
        for number in 1..=bases {
            top = code(&format!("IDL:V{number}:1.0"), Some(&top), &[]);
        }
        parsed(&octets(&top, |w| w.write_u32(0).expect("room")))
    };
    assert!(of(VALUE_BASES_MAX).is_ok());
    assert_eq!(
        of(VALUE_BASES_MAX + 1).err(),
        Some(DecodeFact::NestingTooDeep)
    );
}

#[test]
fn values_that_share_a_long_id_are_not_kept_with_it_each() {
    let id = format!("IDL:{}:1.0", "x".repeat(900));
    let element = code(&id, None, &[&TypeCode::octet()]);
    let count = 10_000;
    let sent = octets(&TypeCode::sequence(&element, 0), |w| {
        w.write_u32(count).expect("room");
        w.write_u32(0x7fff_ff02).expect("room");
        let first = w.position();
        id.write(w).expect("room");
        w.write_u8(1).expect("room");
        for _ in 1..count {
            w.write_u32(0x7fff_ff02).expect("room");
            back_to(first, w);
            w.write_u8(1).expect("room");
        }
    });
    let any = parsed(&sent).expect("an Any");
    assert!(any.reader().remaining() <= sent.len());
    let mut again = Vec::new();
    any.write(&mut Writer::new(&mut again))
        .expect("it can be written");
    assert_eq!(again, sent);
}

#[test]
fn an_id_beyond_ascii_is_kept_once_and_known_again() {
    let id = format!("IDL:{}:1.0", "ä".repeat(450));
    let element = code(&id, None, &[&TypeCode::octet()]);
    let count = 10_000;
    let sent = octets(&TypeCode::sequence(&element, 0), |w| {
        w.write_u32(count).expect("room");
        for _ in 0..count {
            w.write_u32(0x7fff_ff00).expect("room");
            w.write_u8(1).expect("room");
        }
    });
    let any = parsed(&sent).expect("an Any");
    assert!(any.reader().remaining() < 3 * sent.len());
    let mut again = Vec::new();
    any.write(&mut Writer::new(&mut again))
        .expect("it can be written");
    assert_eq!(parsed(&again), Ok(any));
}

#[test]
fn what_is_shared_again_and_again_is_kept_once_and_no_tree_is_made_of_it() {
    let itself = TypeCode::recursive("IDL:V:1.0");
    let pair = code("IDL:V:1.0", None, &[&itself, &itself]);
    let sent = octets(&pair, |w| {
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
            back_to(*start, w);
        }
    });
    let any = parsed(&sent).expect("an Any");
    assert!(any.reader().remaining() < 3 * sent.len());
    let fact = any.to_dynamic().map_err(|error| error.fact);
    assert_eq!(fact, Err(DecodeFact::ValueTooLarge));
    assert!(any == any.clone());
}

#[test]
fn octets_that_many_places_share_are_read_but_a_few_times() {
    let element = code("IDL:V:1.0", None, &[&TypeCode::unbounded_string()]);
    let places = |count: u32| {
        let sent = octets(&TypeCode::sequence(&element, 0), |w| {
            w.write_u32(count).expect("room");
            w.write_u32(0x7fff_ff00).expect("room");
            let first = w.position() - 4;
            "x".repeat(1 << 16).write(w).expect("room");
            (1..count).for_each(|_| back_to(first, w));
        });
        let any = parsed(&sent).expect("an Any");
        any.to_dynamic().map(drop).map_err(|error| error.fact)
    };
    assert_eq!(places(4), Ok(()));
    assert_eq!(places(5), Err(DecodeFact::ValueTooLarge));
}

#[test]
fn a_long_id_that_values_share_counts_for_each_of_them_in_a_tree() {
    let id = format!("IDL:{}:1.0", "x".repeat(1 << 16));
    let element = code(&id, None, &[]);
    let values = |count: u32| {
        let sent = octets(&TypeCode::sequence(&element, 0), |w| {
            w.write_u32(count).expect("room");
            (0..count).for_each(|_| w.write_u32(0x7fff_ff00).expect("room"));
        });
        let any = parsed(&sent).expect("an Any");
        any.to_dynamic().map(drop).map_err(|error| error.fact)
    };
    assert_eq!(values(10), Ok(()));
    assert_eq!(values(1_100), Err(DecodeFact::ValueTooLarge));
}

#[test]
fn what_takes_much_memory_is_many_parts_of_a_tree() {
    let tree_of = |element: &TypeCode, count: usize, value: &[u32]| {
        let row = TypeCode::sequence(element, 0);
        let sent = octets(&row, |w| {
            w.write_u32(count as u32).expect("room");
            let mut words = (0..count).flat_map(|_| value);
            words.try_for_each(|word| w.write_u32(*word)).expect("room");
        });
        let tree = parsed(&sent).expect("an Any").to_dynamic();
        tree.map(drop).map_err(|error| error.fact)
    };
    let plain = code("IDL:P:1.0", None, &[]);
    let custom = TypeCode::value("IDL:C:1.0", "C", ValueModifier::Custom, None, &[]);
    let (a_plain, a_custom) = ([0x7fff_ff00], [0x7fff_ff08, u32::MAX]);
    // Each value is a part itself.
    let plains = (VALUE_PARTS_MAX - 1) / (1 + INSTANCE_PARTS);
    let customs = (VALUE_PARTS_MAX - 1) / (1 + INSTANCE_PARTS + OPAQUE_PARTS);
    assert_eq!(tree_of(&plain, plains, &a_plain), Ok(()));
    assert_eq!(tree_of(&custom, customs, &a_custom), Ok(()));
    let refused = Err(DecodeFact::ValueTooLarge);
    assert_eq!(tree_of(&plain, plains + 1, &a_plain), refused);
    assert_eq!(tree_of(&custom, customs + 1, &a_custom), refused);
    assert_eq!(tree_of(&plain, plains + 1, &[0]), Ok(()));
    // TypeCodes of bounded strings, of numbers, which need no memory, and of values.
    let (bounded, number) = ([18, 7], [5]);
    let types = VALUE_PARTS_MAX / (1 + TYPE_CODE_PARTS);
    let type_code = TypeCode::meta();
    assert_eq!(tree_of(&type_code, types, &bounded), refused);
    assert_eq!(tree_of(&type_code, types / 4, &bounded), Ok(()));
    assert_eq!(tree_of(&type_code, types, &number), Ok(()));
    let anys = VALUE_PARTS_MAX / (1 + ANY_PARTS + TYPE_CODE_PARTS);
    let (bounded, number) = ([18, 7, 4, u32::from_ne_bytes(*b"abc\0")], [5, 7]);
    assert_eq!(tree_of(&TypeCode::any(), anys, &bounded), refused);
    assert_eq!(tree_of(&TypeCode::any(), anys / 4, &bounded), Ok(()));
    assert_eq!(tree_of(&TypeCode::any(), anys, &number), Ok(()));
}

#[test]
fn what_is_shared_as_another_type_of_its_id_is_read_but_a_few_times() {
    let number = code("IDL:V:1.0", None, &[&TypeCode::ulong()]);
    let octets_of = TypeCode::sequence(&TypeCode::octet(), 0);
    let text = code("IDL:V:1.0", None, &[&octets_of]);
    let members = [("numbers", &number), ("texts", &text)];
    let sequences = members.map(|(name, code)| (name, TypeCode::sequence(code, 0)));
    let members: Vec<_> = sequences
        .iter()
        .map(|(name, type_code)| Member { name, type_code })
        .collect();
    let count = 1_000;
    let sent = octets(&TypeCode::structure("IDL:S:1.0", "S", &members), |w| {
        let mut starts = Vec::new();
        w.write_u32(count).expect("room");
        for _ in 0..count {
            w.write_u32(0x7fff_ff00).expect("room");
            starts.push(w.position() - 4);
            // A count of octets that covers all values with an indirection back to here.
            w.write_u32(8 * count).expect("room");
        }
        w.write_u32(count).expect("room");
        starts.into_iter().for_each(|start| back_to(start, w));
    });
    let any = parsed(&sent).expect("an Any");
    let fact = any.to_dynamic().map(drop).map_err(|error| error.fact);
    assert_eq!(fact, Err(DecodeFact::ValueTooLarge));
}

#[test]
fn a_value_that_arguments_share_is_known_to_have_been_cut() {
    let base = code("IDL:B:1.0", None, &[&TypeCode::long()]);
    let mut sent = Vec::new();
    let mut w = Writer::new(&mut sent);
    // In chunks, with the ids of an unknown type and of its base.
    w.write_u32(0x7fff_ff0e).expect("room");
    w.write_u32(2).expect("room");
    "IDL:D:1.0".write(&mut w).expect("room");
    "IDL:B:1.0".write(&mut w).expect("room");
    for number in [4, 7, u32::MAX] {
        w.write_u32(number).expect("room");
    }
    back_to(0, &mut w);
    w.write_u32(9).expect("room");
    let types = [&base, &base, &TypeCode::long()];
    let mut r = Reader::new(&sent, ByteOrder::NATIVE);
    let all = Any::read_all(types.into_iter(), &mut r).expect("values");
    assert!(r.finish().is_ok() && all[0] == all[1]);
    let truncated: Vec<_> = all.iter().map(Any::is_truncated).collect();
    assert_eq!(truncated, [true, true, false]);
}
