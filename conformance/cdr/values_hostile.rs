//! Hostile values in an Any, by clause (CORBA 3.3 part 2, clause 9.3.4): the server refuses them and still serves.

use crate::common::anys::{
    DOUBLE, Form, LONG, NULL, STRUCT, VALUE, VALUE_BOX, complex, is_refused, named,
};
use crate::common::in_each_world;
use crate::common::values::{
    CHUNKED, ID_LIST, INDIRECTION, NODE, NONE, ONE_ID, PLACE, POINT, TRUNCATABLE, WITHOUT_ID,
    back_to, chunk, node, point, wide,
};

in_each_world! {
    fn values_that_lie_are_refused_and_hurt_nobody(world) {
        let marshal = &["MARSHAL"];
        let cases: &[(&str, Form)] = &[
            ("no tag", |o| { point(o); o.u32(5).u32(7); }),
            ("a tag of no form", |o| { point(o); o.u32(0x7fff_ff04).u32(7); }),
            ("an end in place of a value", |o| { point(o); o.u32(0xffff_fff0); }),
            ("an indirection to nothing", |o| { point(o); back_to(o, 4); }),
            ("an indirection forwards", |o| { point(o); o.u32(INDIRECTION).u32(64); }),
            ("an indirection to an id", |o| {
                node(o, NONE);
                o.u32(ONE_ID);
                let id = o.octets.len();
                o.string(NODE).u32(1);
                back_to(o, id);
            }),
            ("an indirection to a value of another type", |o| {
                complex(o, STRUCT, |p| {
                    named(p, "S").u32(2).string("a");
                    point(p);
                    p.string("b");
                    complex(p, VALUE_BOX, |q| { named(q, "B").u32(LONG); });
                });
                o.u32(ONE_ID);
                let start = o.octets.len() - 4;
                o.string(POINT).u32(7);
                back_to(o, start);
            }),
            ("an id that stands for itself", |o| { point(o); o.u32(ONE_ID).u32(INDIRECTION).u32(0xffff_fffc).u32(7); }),
            ("no ids in a list", |o| { point(o); o.u32(ID_LIST).u32(0).u32(7); }),
            ("more ids than octets", |o| { point(o); o.u32(ID_LIST).u32(0x7fff_ffff).u32(7); }),
            ("a chunk beyond the end", |o| { point(o); o.u32(ONE_ID | CHUNKED).string(POINT).u32(0x7fff_0000).u32(7); }),
            ("a number across a chunk's end", |o| {
                complex(o, VALUE, |p| { named(p, "D").u16(NONE).u32(NULL).u32(1).string("x").u32(DOUBLE).u16(1); });
                o.u32(ONE_ID | CHUNKED).string("IDL:D:1.0").u32(4).u64(0).u64(0).u32(u32::MAX);
            }),
            ("no end", |o| {
                point(o);
                o.u32(ONE_ID | CHUNKED).string(POINT);
                chunk(o, |o| { o.u32(7); });
            }),
            ("an end of a level that is not there", |o| {
                point(o);
                o.u32(ONE_ID | CHUNKED).string(POINT);
                chunk(o, |o| { o.u32(7); });
                o.u32(2_u32.wrapping_neg());
            }),
            ("more than the type knows", |o| {
                point(o);
                o.u32(ONE_ID | CHUNKED).string(POINT);
                chunk(o, |o| { o.u32(7).u32(8); });
                o.u32(u32::MAX);
            }),
            ("a value without chunks in one with them", |o| {
                node(o, TRUNCATABLE);
                o.u32(ONE_ID | CHUNKED).string(NODE);
                chunk(o, |o| { o.u32(1); });
                o.u32(ONE_ID).string(NODE).u32(2).u32(0).u32(u32::MAX);
            }),
            ("members behind the end of all", |o| {
                complex(o, VALUE, |p| {
                    named(p, "W").u16(TRUNCATABLE).u32(NULL).u32(2).string("p");
                    point(p);
                    p.u16(1).string("x").u32(LONG).u16(1);
                });
                o.u32(ONE_ID | CHUNKED).string("IDL:W:1.0").u32(ONE_ID | CHUNKED).string(POINT);
                chunk(o, |o| { o.u32(7); });
                o.u32(u32::MAX);
                chunk(o, |o| { o.u32(7); });
                o.u32(u32::MAX);
            }),
            ("a wide text that its chunks end before", |o| {
                wide(o);
                o.u32(ONE_ID | CHUNKED).string("IDL:Wide:1.0");
                chunk(o, |o| { o.u32(4).raw(b"\0a\0"); });
                o.u32(u32::MAX);
            }),
            ("a wide text of more octets than there are", |o| {
                wide(o);
                o.u32(ONE_ID | CHUNKED).string("IDL:Wide:1.0");
                chunk(o, |o| { o.u32(0x7fff_ffff).raw(b"\0a\0b"); });
                o.u32(u32::MAX);
            }),
            ("a wide text of an odd number of octets", |o| {
                wide(o);
                o.u32(ONE_ID | CHUNKED).string("IDL:Wide:1.0");
                chunk(o, |o| { o.u32(3).raw(b"\0a"); });
                chunk(o, |o| { o.raw(b"\0\x09"); });
                o.u32(u32::MAX);
            }),
            ("a base that is cut down without chunks", |o| {
                point(o);
                o.u32(ID_LIST).u32(2).string(PLACE).string(POINT).u32(7);
            }),
        ];
        for (name, form) in cases {
            is_refused(world, name, *form, marshal);
        }
        is_refused(world, "a type that is its own base", |o| {
            complex(o, VALUE, |p| {
                named(p, "V").u16(NONE).u32(INDIRECTION);
                let back = 8 + p.octets.len() as u32;
                p.u32(0_u32.wrapping_sub(back)).u32(0);
            });
            o.u32(0);
        }, &["BAD_TYPECODE"]);
        is_refused(world, "a base that is no value", |o| {
            complex(o, VALUE, |p| { named(p, "V").u16(NONE).u32(LONG).u32(0); });
            o.u32(0);
        }, &["BAD_TYPECODE"]);
        is_refused(world, "members that take no octets", |o| {
            complex(o, VALUE, |p| { named(p, "V").u16(NONE).u32(NULL).u32(1).string("n").u32(NULL).u16(1); });
            o.u32(0);
        }, &["BAD_TYPECODE"]);
        is_refused(world, "values within values without end", |o| {
            node(o, NONE);
            for _ in 0..100 { o.u32(WITHOUT_ID).u32(1); }
            o.u32(0);
        }, &["IMP_LIMIT"]);
    }
}
