//! The cost of finding the types of values.

use crate::limits::{VALUE_ID_SIZE_MAX, VALUE_IDS_MAX};
use crate::typecode::valuetype::counted::octets_searched;
use crate::typecode::{Member, ValueModifier};
use crate::walk::ids::{counted::ids_gathered, write_indirection};
use crate::walk::tags::{CHUNKED, FIRST_TAG, ID_LIST, ONE_ID};
use crate::walk::{copy_value, keep_value, survey_value};
use crate::{ByteOrder, Reader, TypeCode, Write, Writer};

/// How many types the members are declared as, and how many lists of ids there are.
const FORMALS: usize = 16;
const LISTS: usize = 16;
const ID: &str = "V";

fn value(id: &str) -> TypeCode {
    TypeCode::value(id, "V", ValueModifier::None, None, &[])
}

/// `struct { octets lists; sequence<Row> rows; };`: a row has values of many types with one id, and one of a type with
/// a long id.
fn rows() -> TypeCode {
    let long_id = "K".repeat(VALUE_ID_SIZE_MAX - 1);
    let (short, long) = (value(ID), value(&long_id));
    let member = |type_code| Member {
        name: "m",
        type_code,
    };
    let mut members = vec![member(&short); FORMALS];
    members.push(member(&long));
    let row = TypeCode::structure("IDL:Row:1.0", "Row", &members);
    let octets = TypeCode::sequence(&TypeCode::octet(), 0);
    let rows = TypeCode::sequence(&row, 0);
    TypeCode::structure("IDL:Rows:1.0", "Rows", &[member(&octets), member(&rows)])
}

fn put_indirection(there: usize, w: &mut Writer<'_>) {
    write_indirection(there, w).expect("room");
}

/// A list of unknown ids, each an indirection, and one known id at its end.
fn put_list(unknown: usize, w: &mut Writer<'_>) {
    w.write_u32(VALUE_IDS_MAX as u32).expect("room");
    (1..VALUE_IDS_MAX).for_each(|_| put_indirection(unknown, w));
    ID.write(w).expect("room");
}

/// Returns the octets of ids searched for in passing over rows whose values have headers of this form, and the octets
/// of the rows. `put` gets the places of an unknown id, of the known one, and of a list of both.
fn searched(put: impl Fn([usize; 3], &mut Writer<'_>)) -> (usize, usize) {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets);
    w.write_u32(0).expect("room");
    let unknown = w.position();
    "U".repeat(VALUE_ID_SIZE_MAX - 1)
        .write(&mut w)
        .expect("room");
    w.align(4).expect("room");
    let known = w.position();
    ID.write(&mut w).expect("room");
    let mut lists = Vec::new();
    for _ in 0..LISTS {
        w.align(4).expect("room");
        lists.push(w.position());
        put_list(unknown, &mut w);
    }
    let size = w.position() - 4;
    w.patch_u32(0, size as u32);
    w.write_u32(LISTS as u32).expect("room");
    for list in lists {
        (0..FORMALS).for_each(|_| put([unknown, known, list], &mut w));
        w.write_u32(0).expect("room");
    }
    let code = rows();
    let mut r = Reader::new(&octets, ByteOrder::NATIVE);
    let before = octets_searched();
    let survey = survey_value(&code, &mut r).expect("it is a value");
    assert!(survey.values && r.remaining() == 0);
    (octets_searched() - before, octets.len())
}

#[test]
fn an_id_that_values_share_is_searched_for_once() {
    let of_lists = |[_, _, list]: [usize; 3], w: &mut Writer<'_>| {
        w.write_u32(FIRST_TAG | ID_LIST | CHUNKED).expect("room");
        put_indirection(list, w);
        w.write_u32(u32::MAX).expect("room");
    };
    let each_led_to = |[unknown, known, _]: [usize; 3], w: &mut Writer<'_>| {
        w.write_u32(FIRST_TAG | ID_LIST | CHUNKED).expect("room");
        w.write_u32(VALUE_IDS_MAX as u32).expect("room");
        (1..VALUE_IDS_MAX).for_each(|_| put_indirection(unknown, w));
        put_indirection(known, w);
        w.write_u32(u32::MAX).expect("room");
    };
    let alone = |[_, known, _]: [usize; 3], w: &mut Writer<'_>| {
        w.write_u32(FIRST_TAG | ONE_ID).expect("room");
        put_indirection(known, w);
    };
    for (octets, sent) in [searched(of_lists), searched(each_led_to)] {
        let once = VALUE_ID_SIZE_MAX + LISTS;
        assert!(octets <= once, "{octets} of {sent}");
    }
    assert!(searched(alone).0 <= 1);
}

#[test]
fn an_id_longer_than_all_that_are_known_is_not_searched_for() {
    let outer = value("IDL:Outer:1.0");
    let before = octets_searched();
    let id = "U".repeat(VALUE_ID_SIZE_MAX - 1);
    assert!(outer.find_value(&id).is_none());
    assert_eq!(octets_searched(), before);
}

#[test]
fn ids_of_opaque_values_that_share_a_list_are_gathered_once_where_they_are_written() {
    const VALUES: usize = 100;
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets);
    w.write_u32(VALUES as u32).expect("room");
    let mut list = None;
    for _ in 0..VALUES {
        w.write_u8(0).expect("room");
        w.write_u32(FIRST_TAG | ID_LIST | CHUNKED).expect("room");
        if let Some(list) = list {
            put_indirection(list, &mut w);
        } else {
            list = Some(w.position());
            w.write_u32(VALUE_IDS_MAX as u32 - 1).expect("room");
            for letter in (b'A'..).take(VALUE_IDS_MAX - 1) {
                char::from(letter).to_string().write(&mut w).expect("room");
            }
        }
        w.write_u32(u32::MAX).expect("room");
    }
    let code = TypeCode::sequence(&TypeCode::abstract_interface("IDL:I:1.0", "I"), 0);
    let before = ids_gathered();
    let mut r = Reader::new(&octets, ByteOrder::NATIVE);
    let survey = survey_value(&code, &mut r).expect("it is a value");
    assert!(survey.opaque && r.remaining() == 0);
    assert_eq!(ids_gathered(), before);
    for write in [keep_value, copy_value] {
        let (before, mut written) = (ids_gathered(), Vec::new());
        let mut r = Reader::new(&octets, ByteOrder::NATIVE);
        write(&code, &mut r, &mut Writer::new(&mut written)).expect("it can be written");
        assert_eq!(ids_gathered() - before, VALUE_IDS_MAX - 1);
        assert!(written == octets, "{} of {}", written.len(), octets.len());
    }
}
