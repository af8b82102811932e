//! Value types and their values in an Any, as octets made by hand (CORBA 3.3 part 2, clause 9.3.4).

use super::Octets;
use super::anys::{
    Form, LONG, NULL, OCTET, SEQUENCE, STRING, STRUCT, VALUE, WSTRING, complex, named,
};

/// ValueModifier of a value type.
pub(crate) const NONE: u16 = 0;
pub(crate) const CUSTOM: u16 = 1;
pub(crate) const ABSTRACT: u16 = 2;
pub(crate) const TRUNCATABLE: u16 = 3;

/// Value tags: with one repository id; with a list of ids; the flag for chunks.
pub(crate) const ONE_ID: u32 = 0x7fff_ff02;
pub(crate) const ID_LIST: u32 = 0x7fff_ff06;
pub(crate) const WITHOUT_ID: u32 = 0x7fff_ff00;
pub(crate) const CODE_BASE: u32 = 1;
pub(crate) const CHUNKED: u32 = 8;
pub(crate) const INDIRECTION: u32 = u32::MAX;

pub(crate) const POINT: &str = "IDL:Point:1.0";
pub(crate) const PLACE: &str = "IDL:Place:1.0";
pub(crate) const NODE: &str = "IDL:Node:1.0";

/// An indirection to `target`, an index into the octets.
pub(crate) fn back_to(o: &mut Octets, target: usize) {
    o.u32(INDIRECTION);
    let offset = target as i64 - o.octets.len() as i64;
    o.u32(offset as u32);
}

/// `valuetype Point { public long x; };`
pub(crate) fn point(o: &mut Octets) {
    complex(o, VALUE, |p| {
        named(p, "Point").u16(NONE).u32(NULL).u32(1);
        p.string("x").u32(LONG).u16(1);
    });
}

/// `valuetype Place : truncatable Point { private string name; private sequence<octet> mark; };`
pub(crate) fn place(o: &mut Octets) {
    complex(o, VALUE, |p| {
        named(p, "Place").u16(TRUNCATABLE);
        point(p);
        p.u32(2).string("name").u32(STRING).u32(0).u16(0);
        p.string("mark");
        complex(p, SEQUENCE, |q| {
            q.u32(OCTET).u32(0);
        });
        p.u16(0);
    });
}

/// `valuetype Node { public long x; public Node next; };`, truncatable or not.
pub(crate) fn node(o: &mut Octets, modifier: u16) {
    complex(o, VALUE, |p| {
        named(p, "Node").u16(modifier).u32(NULL).u32(2);
        p.string("x")
            .u32(LONG)
            .u16(1)
            .string("next")
            .u32(INDIRECTION);
        // Offset back to the start of the enclosing TypeCode: this encapsulation, its length and the kind.
        let back = 8 + p.octets.len() as u32;
        p.u32(0_u32.wrapping_sub(back)).u16(1);
    });
}

/// A `Place` as our server sends it: a truncatable value goes in chunks, with the ids of all types it can be truncated
/// to.
pub(crate) fn a_place(o: &mut Octets) {
    place(o);
    o.u32(ID_LIST | CHUNKED).u32(2).string(PLACE).string(POINT);
    chunk(o, |o| {
        o.u32(7).string("harbour");
    });
    // A string or an array ends its chunk.
    chunk(o, |o| {
        o.sequence(&[1, 2, 3]);
    });
    o.u32(u32::MAX);
}

pub(crate) fn chunk(o: &mut Octets, content: impl FnOnce(&mut Octets)) {
    o.u32(0);
    let start = o.octets.len();
    content(o);
    let mut size = Octets::new(o.order);
    size.u32((o.octets.len() - start) as u32);
    o.octets[start - 4..start].copy_from_slice(&size.octets);
}

/// `struct S` with two members.
pub(crate) fn pair(o: &mut Octets, a: (&str, Form), b: (&str, Form)) {
    complex(o, STRUCT, |p| {
        named(p, "S").u32(2);
        for (name, code) in [a, b] {
            p.string(name);
            code(p);
        }
    });
}

/// `valuetype Wide { public wstring w; public octet o; };`
pub(crate) fn wide(o: &mut Octets) {
    complex(o, VALUE, |p| {
        named(p, "Wide").u16(NONE).u32(NULL).u32(2);
        p.string("w").u32(WSTRING).u32(0).u16(1);
        p.string("o").u32(OCTET).u16(1);
    });
}
