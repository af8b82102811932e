//! Costs of values whose state only their own code can read, and which of these values are refused.

use crate::states::{
    CHUNKED, CUSTOM, ID_LIST, ONE_ID, POINT, a_chunk, back_to, chunk, custom, end, interface,
    octets, parsed, point, structure, written,
};
use deckwatch_cdr::limits::{VALUE_ID_SIZE_MAX, VALUE_IDS_MAX, VALUE_PARTS_MAX};
use deckwatch_cdr::{ByteOrder, DecodeFact, TypeCode, Write, Writer};

#[test]
fn states_that_are_cut_off_or_lead_outside_are_refused() {
    let order = ByteOrder::Big;
    let both = structure(&[("p", &point()), ("c", &custom())]);
    let with = |write: &dyn Fn(&mut Writer<'_>, usize, usize)| {
        octets(&both, order, |w| {
            w.write_u32(ONE_ID).expect("room");
            let value = w.position() - 4;
            let id = w.position();
            POINT.write(w).expect("room");
            w.write_u32(7).expect("room");
            w.write_u32(ONE_ID | CHUNKED).expect("room");
            CUSTOM.write(w).expect("room");
            write(w, value, id);
        })
    };
    let whole = with(&|w, _, _| {
        a_chunk(w);
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        POINT.write(w).expect("room");
        a_chunk(w);
        w.write_u32(2_u32.wrapping_neg()).expect("room");
        a_chunk(w);
        end(w);
    });
    assert!(parsed(&whole, order).is_ok());
    for cut in 0..whole.len() {
        assert!(parsed(&whole[..cut], order).is_err(), "{cut}");
    }
    let shared = with(&|w, value, _| {
        chunk(w, |w| back_to(value, w));
        end(w);
    });
    assert_eq!(parsed(&shared, order), Err(DecodeFact::TypeUnsupported));
    let id_outside = with(&|w, _, id| {
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        back_to(id, w);
        chunk(w, |w| w.write_u8(1).expect("room"));
        end(w);
    });
    assert_eq!(parsed(&id_outside, order), Err(DecodeFact::TypeUnsupported));
    let nowhere = with(&|w, value, _| {
        chunk(w, |w| back_to(value + 4, w));
        end(w);
    });
    // Numbers that look like an indirection but do not point to a value are plain numbers.
    assert!(parsed(&nowhere, order).is_ok());
    let no_chunks = with(&|w, _, _| w.write_u32(5).expect("room"));
    assert!(parsed(&no_chunks, order).is_err());
    for lie in [0x7fff_0000_u32, 0xffff_fff0, 0x7fff_ff04] {
        let lying = with(&|w, _, _| w.write_u32(lie).expect("room"));
        assert!(parsed(&lying, order).is_err(), "{lie:x}");
    }
}

#[test]
fn states_cost_no_more_than_their_octets() {
    let order = ByteOrder::NATIVE;
    // Nested values of any depth use no stack.
    let deep = octets(&custom(), order, |w| {
        w.write_u32(ONE_ID | CHUNKED).expect("room");
        CUSTOM.write(w).expect("room");
        for _ in 0..100_000 {
            w.write_u32(0x7fff_ff00 | CHUNKED).expect("room");
        }
        end(w);
    });
    let any = parsed(&deep, order).expect("an Any");
    assert_eq!(written(&any, order).as_deref(), Ok(&*deep));
    assert!(any.to_dynamic().is_ok());
    // A long id that all values share is stored once.
    let id = format!("IDL:{}:1.0", "x".repeat(900));
    let count = 10_000;
    let many = |id: &str| {
        octets(&TypeCode::sequence(&interface(), 0), order, |w| {
            w.write_u32(count).expect("room");
            let mut first = None;
            for _ in 0..count {
                w.write_u8(0).expect("room");
                w.write_u32(ONE_ID | CHUNKED).expect("room");
                if let Some(first) = first {
                    back_to(first, w);
                } else {
                    first = Some(w.position());
                    id.write(w).expect("room");
                }
                chunk(w, |w| w.write_u8(1).expect("room"));
                end(w);
            }
        })
    };
    let sent = many(&id);
    let any = parsed(&sent, order).expect("an Any");
    assert!(any.reader().remaining() < 2 * sent.len());
    assert!(written(&any, order).expect("it can be written").len() < 2 * sent.len());
    let longer = many(&"x".repeat(VALUE_ID_SIZE_MAX + 1));
    assert_eq!(parsed(&longer, order), Err(DecodeFact::TypeUnsupported));
}

#[test]
fn ids_of_bases_that_values_share_are_parts_of_a_tree_each() {
    let order = ByteOrder::NATIVE;
    let count = VALUE_PARTS_MAX / (VALUE_IDS_MAX - 2);
    let many = |count: usize| {
        octets(&TypeCode::sequence(&interface(), 0), order, |w| {
            w.write_u32(count as u32).expect("room");
            let mut list = None;
            for _ in 0..count {
                w.write_u8(0).expect("room");
                w.write_u32(ID_LIST | CHUNKED).expect("room");
                if let Some(list) = list {
                    back_to(list, w);
                } else {
                    w.write_u32(VALUE_IDS_MAX as u32 - 1).expect("room");
                    list = Some(w.position() - 4);
                    for letter in (b'A'..).take(VALUE_IDS_MAX - 1) {
                        let id = char::from(letter).to_string();
                        id.write(w).expect("room");
                    }
                }
                end(w);
            }
        })
    };
    let few = parsed(&many(8), order).expect("an Any");
    assert!(few.to_dynamic().is_ok());
    let any = parsed(&many(count), order).expect("an Any");
    let tree = any.to_dynamic().map_err(|error| error.fact);
    assert!(tree == Err(DecodeFact::ValueTooLarge));
}
