//! Values of value types in an Any, by clause (CORBA 3.3 part 2, clause 9.3.4): each is sent to a server and back, in
//! octets made by hand.

use crate::common::anys::{
    ABSTRACT_INTERFACE, ANY, Form, LONG, NULL, OCTET, STRING, STRUCT, VALUE, VALUE_BOX, comes_back,
    comes_back_in, complex, named,
};
use crate::common::values::{
    ABSTRACT, CHUNKED, CODE_BASE, ID_LIST, NODE, NONE, ONE_ID, PLACE, POINT, TRUNCATABLE,
    WITHOUT_ID, a_place, back_to, chunk, node, pair, place, point, wide,
};
use crate::common::{Octets, in_each_world};

/// A `Point` as our server sends it.
fn a_point(o: &mut Octets) {
    point(o);
    o.u32(ONE_ID).string(POINT).u32(7);
}

in_each_world! {
    fn null_is_the_tag_0_wherever_a_value_is_declared(world) {
        let cases: &[(&str, Form)] = &[
            ("a value", |o| { point(o); o.u32(0); }),
            ("a truncatable value", |o| { place(o); o.u32(0); }),
            ("a boxed value", |o| { complex(o, VALUE_BOX, |p| { named(p, "B").u32(LONG); }); o.u32(0); }),
            ("an abstract value", |o| { complex(o, VALUE, |p| { named(p, "A").u16(ABSTRACT).u32(NULL).u32(0); }); o.u32(0); }),
            ("an abstract interface", |o| { complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); }); o.u8(0).u32(0); }),
            ("in a struct", |o| {
                complex(o, STRUCT, |p| {
                    named(p, "S").u32(2).string("a");
                    point(p);
                    p.string("b").u32(OCTET);
                });
                o.u32(0).u8(9);
            }),
        ];
        for (name, form) in cases {
            comes_back(world, name, *form, *form);
        }
    }

    fn a_value_is_a_tag_its_type_and_its_state(world) {
        comes_back(world, "one id", a_point, a_point);
        comes_back(world, "no id: the declared type", |o| { point(o); o.u32(WITHOUT_ID).u32(7); }, a_point);
        comes_back(world, "a list", |o| { point(o); o.u32(ID_LIST).u32(1).string(POINT).u32(7); }, a_point);
        comes_back(world, "a code base", |o| { point(o); o.u32(ONE_ID | CODE_BASE).string("http://here/").string(POINT).u32(7); }, a_point);
        comes_back(world, "in chunks", |o| {
            point(o);
            o.u32(ONE_ID | CHUNKED).string(POINT);
            chunk(o, |o| { o.u32(7); });
            o.u32(u32::MAX);
        }, a_point);
    }

    fn members_of_bases_stand_first(world) {
        comes_back(world, "a place", |o| {
            place(o);
            o.u32(ID_LIST | CHUNKED).u32(2).string(PLACE).string(POINT);
            // A chunk for each member, and some within a member.
            chunk(o, |o| { o.u32(7); });
            chunk(o, |o| { o.u32(8).raw(b"har"); });
            chunk(o, |o| { o.raw(b"bour\0"); });
            chunk(o, |o| { o.u32(3).raw(&[1]); });
            chunk(o, |o| { o.raw(&[2, 3]); });
            o.u32(u32::MAX);
        }, a_place);
        comes_back(world, "where a point is declared", |o| {
            pair(o, ("a", place), ("b", point));
            o.u32(0).u32(ID_LIST | CHUNKED).u32(2).string(PLACE).string(POINT);
            chunk(o, |o| { o.u32(7).string("harbour").sequence(&[1]); });
            o.u32(u32::MAX);
        }, |o| {
            pair(o, ("a", place), ("b", point));
            o.u32(0).u32(ID_LIST | CHUNKED).u32(2).string(PLACE).string(POINT);
            chunk(o, |o| { o.u32(7).string("harbour"); });
            chunk(o, |o| { o.sequence(&[1]); });
            o.u32(u32::MAX);
        });
    }

    fn wide_texts_may_be_divided_between_chunks(world) {
        comes_back_in(world, &[2], "octets", |o| {
            wide(o);
            o.u32(ONE_ID | CHUNKED).string("IDL:Wide:1.0");
            chunk(o, |o| { o.u32(4); });
            chunk(o, |o| { o.raw(b"\0"); });
            chunk(o, |o| { o.raw(b"a\x26"); });
            chunk(o, |o| { o.raw(b"\x93").u8(9); });
            o.u32(u32::MAX);
        }, |o| {
            wide(o);
            o.u32(ONE_ID).string("IDL:Wide:1.0").sequence(b"\0a\x26\x93").u8(9);
        });
        comes_back_in(world, &[1], "units", |o| {
            wide(o);
            o.u32(ONE_ID | CHUNKED).string("IDL:Wide:1.0");
            chunk(o, |o| { o.u32(3).u16(0x61); });
            chunk(o, |o| { o.u16(0x2693); });
            chunk(o, |o| { o.u16(0).u8(9); });
            o.u32(u32::MAX);
        }, |o| {
            wide(o);
            o.u32(ONE_ID).string("IDL:Wide:1.0").u32(3).u16(0x61).u16(0x2693).u16(0).u8(9);
        });
    }

    fn a_boxed_value_is_a_value_of_one_member(world) {
        let boxed: Form = |o| {
            complex(o, VALUE_BOX, |p| { named(p, "B").u32(STRING).u32(0); });
            o.u32(ONE_ID).string("IDL:B:1.0").string("inside");
        };
        comes_back(world, "a box", boxed, boxed);
        comes_back(world, "a box without its id", |o| {
            complex(o, VALUE_BOX, |p| { named(p, "B").u32(STRING).u32(0); });
            o.u32(WITHOUT_ID).string("inside");
        }, boxed);
    }

    fn an_abstract_interface_is_a_reference_or_a_value(world) {
        let reference: Form = |o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(1).string("IDL:I:1.0").u32(1).u32(0x4242_4242).sequence(b"profile");
        };
        comes_back(world, "a reference", reference, reference);
    }

    fn a_value_that_is_shared_is_written_once(world) {
        let cyclic: Form = |o| {
            node(o, NONE);
            o.u32(ONE_ID);
            let start = o.octets.len() - 4;
            o.string(NODE).u32(1);
            back_to(o, start);
        };
        comes_back(world, "a value that contains itself", cyclic, cyclic);
        let shared: Form = |o| {
            complex(o, STRUCT, |p| {
                named(p, "S").u32(3).string("a");
                point(p);
                p.string("b");
                point(p);
                p.string("c").u32(OCTET);
            });
            o.u32(ONE_ID);
            let start = o.octets.len() - 4;
            o.string(POINT).u32(7);
            back_to(o, start);
            o.u8(1);
        };
        comes_back(world, "a value in two members", shared, shared);
        let chunks: Form = |o| {
            node(o, TRUNCATABLE);
            o.u32(ONE_ID | CHUNKED);
            let start = o.octets.len() - 4;
            o.string(NODE);
            chunk(o, |o| {
                o.u32(1);
                back_to(o, start);
            });
            o.u32(u32::MAX);
        };
        comes_back(world, "in a chunk", chunks, chunks);
    }

    fn a_repository_id_may_stand_for_one_before_it(world) {
        let twice: Form = |o| {
            node(o, NONE);
            o.u32(ONE_ID);
            let id = o.octets.len();
            o.string(NODE).u32(1).u32(ONE_ID);
            back_to(o, id);
            o.u32(2).u32(0);
        };
        comes_back(world, "an id", twice, twice);
        comes_back(world, "a list of ids", |o| {
            node(o, NONE);
            o.u32(ID_LIST);
            let list = o.octets.len();
            o.u32(1).string(NODE).u32(1).u32(ID_LIST);
            back_to(o, list);
            o.u32(2).u32(0);
        }, twice);
        comes_back(world, "the id in front of an Any", |o| {
            // A struct whose first member is a string that looks like a repository id.
            complex(o, STRUCT, |p| {
                named(p, "S").u32(2).string("t").u32(STRING).u32(0).string("n").u32(ANY);
            });
            let id = o.octets.len();
            o.string(NODE);
            node(o, NONE);
            o.u32(ONE_ID);
            back_to(o, id);
            o.u32(1).u32(0);
        }, |o| {
            complex(o, STRUCT, |p| {
                named(p, "S").u32(2).string("t").u32(STRING).u32(0).string("n").u32(ANY);
            });
            o.string(NODE);
            node(o, NONE);
            o.u32(ONE_ID).string(NODE).u32(1).u32(0);
        });
    }

    fn values_in_chunks_end_with_the_number_of_their_level(world) {
        // One end tag ends all values that end at the same place.
        let expected: Form = |o| {
            node(o, TRUNCATABLE);
            o.u32(ONE_ID | CHUNKED);
            let id = o.octets.len();
            o.string(NODE);
            chunk(o, |o| { o.u32(1); });
            o.u32(ONE_ID | CHUNKED);
            back_to(o, id);
            chunk(o, |o| { o.u32(2); });
            o.u32(ONE_ID | CHUNKED);
            back_to(o, id);
            chunk(o, |o| { o.u32(3).u32(0); });
            o.u32(u32::MAX);
        };
        comes_back(world, "each its own end", |o| {
            node(o, TRUNCATABLE);
            o.u32(ONE_ID | CHUNKED).string(NODE);
            chunk(o, |o| { o.u32(1); });
            o.u32(ONE_ID | CHUNKED).string(NODE);
            chunk(o, |o| { o.u32(2); });
            o.u32(ONE_ID | CHUNKED).string(NODE);
            chunk(o, |o| { o.u32(3).u32(0); });
            for level in [3_u32, 2, 1] { o.u32(level.wrapping_neg()); }
        }, expected);
        comes_back(world, "one end of all", |o| {
            node(o, TRUNCATABLE);
            o.u32(ONE_ID | CHUNKED).string(NODE);
            chunk(o, |o| { o.u32(1); });
            o.u32(ONE_ID | CHUNKED).string(NODE);
            chunk(o, |o| { o.u32(2); });
            o.u32(WITHOUT_ID | CHUNKED);
            // A null value may be between chunks.
            chunk(o, |o| { o.u32(3); });
            o.u32(0).u32(u32::MAX);
        }, expected);
    }
}
