//! Values of value types within an Any, by clause (CORBA 3.3 part 2, clause 9.3.4): each through a server and back, octets made by hand.

#[path = "common/mod.rs"]
mod common;
#[path = "common/valuetypes.rs"]
mod valuetypes;

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::typecode::ValueModifier;
use deckwatch_cdr::value::make_type_known;
use valuetypes::valuetype;

use common::message::{NO_EXCEPTION, SYSTEM_EXCEPTION};
use common::octets::{complex, named};
use common::{ORDERS, Octets, Order, World, in_each_world};

const NULL: u32 = 0;
const LONG: u32 = 3;
const DOUBLE: u32 = 7;
const OCTET: u32 = 10;
const ANY: u32 = 11;
const STRING: u32 = 18;
const SEQUENCE: u32 = 19;
const STRUCT: u32 = 15;
const WSTRING: u32 = 27;
const VALUE: u32 = 29;
const VALUE_BOX: u32 = 30;
const ABSTRACT_INTERFACE: u32 = 32;

const NONE: u16 = 0;
const CUSTOM: u16 = 1;
const ABSTRACT: u16 = 2;
const TRUNCATABLE: u16 = 3;

/// Tags of values: with one repository id, with a list of them; chunks.
const ONE_ID: u32 = 0x7fff_ff02;
const ID_LIST: u32 = 0x7fff_ff06;
const WITHOUT_ID: u32 = 0x7fff_ff00;
const CODE_BASE: u32 = 1;
const CHUNKED: u32 = 8;
const INDIRECTION: u32 = u32::MAX;

const POINT: &str = "IDL:Point:1.0";
const PLACE: &str = "IDL:Place:1.0";
const NODE: &str = "IDL:Node:1.0";

type Form = fn(&mut Octets);

/// Back to `target`, an index of the octets.
fn back_to(o: &mut Octets, target: usize) {
    o.u32(INDIRECTION);
    let offset = target as i64 - o.octets.len() as i64;
    o.u32(offset as u32);
}

/// `valuetype Point { public long x; };`
fn point(o: &mut Octets) {
    complex(o, VALUE, |p| {
        named(p, "Point").u16(NONE).u32(NULL).u32(1);
        p.string("x").u32(LONG).u16(1);
    });
}

/// `valuetype Place : truncatable Point { private string name; private sequence<octet> mark; };`
fn place(o: &mut Octets) {
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
fn node(o: &mut Octets, modifier: u16) {
    complex(o, VALUE, |p| {
        named(p, "Node").u16(modifier).u32(NULL).u32(2);
        p.string("x")
            .u32(LONG)
            .u16(1)
            .string("next")
            .u32(INDIRECTION);
        // From here back over this encapsulation, its length and kind.
        let back = 8 + p.octets.len() as u32;
        p.u32(0_u32.wrapping_sub(back)).u16(1);
    });
}

/// A point as it comes back.
fn a_point(o: &mut Octets) {
    point(o);
    o.u32(ONE_ID).string(POINT).u32(7);
}

/// A place as it comes back: truncatable values travel in chunks, with all that they may be read as.
fn a_place(o: &mut Octets) {
    place(o);
    o.u32(ID_LIST | CHUNKED).u32(2).string(PLACE).string(POINT);
    chunk(o, |o| {
        o.u32(7).string("harbour");
    });
    // Texts and arrays end their chunk.
    chunk(o, |o| {
        o.sequence(&[1, 2, 3]);
    });
    o.u32(u32::MAX);
}

fn chunk(o: &mut Octets, content: impl FnOnce(&mut Octets)) {
    o.u32(0);
    let start = o.octets.len();
    content(o);
    let mut size = Octets::new(o.order);
    size.u32((o.octets.len() - start) as u32);
    o.octets[start - 4..start].copy_from_slice(&size.octets);
}

/// `struct S` of two members.
fn pair(o: &mut Octets, a: (&str, Form), b: (&str, Form)) {
    complex(o, STRUCT, |p| {
        named(p, "S").u32(2);
        for (name, code) in [a, b] {
            p.string(name);
            code(p);
        }
    });
}

/// `valuetype Wide { public wstring w; public octet o; };`
fn wide(o: &mut Octets) {
    complex(o, VALUE, |p| {
        named(p, "Wide").u16(NONE).u32(NULL).u32(2);
        p.string("w").u32(WSTRING).u32(0).u16(1);
        p.string("o").u32(OCTET).u16(1);
    });
}

/// `custom valuetype C { public long x; };`
fn custom(o: &mut Octets) {
    complex(o, VALUE, |p| {
        named(p, "C").u16(CUSTOM).u32(NULL).u32(1);
        p.string("x").u32(LONG).u16(1);
    });
}

/// A state that its type does not describe: a number that is aligned, values within, one end of several.
fn a_state(o: &mut Octets) {
    chunk(o, |o| {
        o.u32(7).u64(0x0102_0304_0506_0708).string("own");
    });
    o.u32(ONE_ID | CHUNKED).string("IDL:Inner:1.0");
    chunk(o, |o| {
        o.u8(1);
    });
    o.u32(WITHOUT_ID | CHUNKED);
    chunk(o, |o| {
        o.u16(2);
    });
    o.u32(2_u32.wrapping_neg());
    chunk(o, |o| {
        o.u8(3);
    });
    o.u32(u32::MAX);
}

/// `valuetype Known : truncatable KnownBase { public string more; public KnownBase other; };`, and its base.
fn known_types() -> (TypeCode, TypeCode) {
    let x = [("x", &TypeCode::long())];
    let base = valuetype("IDL:KnownBase:1.0", ValueModifier::None, None, &x);
    let members = [("more", &TypeCode::unbounded_string()), ("other", &base)];
    let modifier = ValueModifier::Truncatable;
    let known = valuetype("IDL:Known:1.0", modifier, Some(&base), &members);
    (known, base)
}

/// What is sent comes back as it was in the byte order of the answer; in the other it is refused.
#[track_caller]
fn keeps_its_form(world: &World, name: &str, form: Form) {
    for order in ORDERS {
        for minor in 0..3 {
            let request = world.request((minor, order), "any").with(form);
            let answer = world.dial().ask(&request);
            let reply = answer.reply();
            if answer.order() != order {
                assert_eq!(reply.status, SYSTEM_EXCEPTION, "{name} 1.{minor}");
                assert!(reply.exception().0.contains("NO_IMPLEMENT"), "{name}");
                continue;
            }
            let (status, body) = (reply.status, reply.body.rest());
            assert_eq!(status, NO_EXCEPTION, "{name} 1.{minor} {order:?}");
            let mut octets = Octets::new(order);
            form(&mut octets);
            // Before 1.2 a body begins where it may, and one more number may align the state.
            if minor == 2 {
                assert_eq!(body, octets.octets, "{name} in 1.{minor} {order:?}");
            }
        }
    }
}

/// What is sent comes back as `expected`.
#[track_caller]
fn comes_back(world: &World, name: &str, sent: Form, expected: Form) {
    comes_back_in(world, &[0, 1, 2], name, sent, expected);
}

/// As [`comes_back`], in these versions of GIOP.
#[track_caller]
fn comes_back_in(world: &World, minors: &[u8], name: &str, sent: Form, expected: Form) {
    for minor in minors.iter().copied() {
        for order in ORDERS {
            let request = world.request((minor, order), "any").with(sent);
            let answer = world.dial().ask(&request);
            let reply = answer.reply();
            let status = reply.status;
            let body = reply.body.rest();
            assert_eq!(
                status, NO_EXCEPTION,
                "{name} 1.{minor} {order:?}: {body:02x?}"
            );
            let mut octets = Octets::new(answer.order());
            expected(&mut octets);
            assert_eq!(body, octets.octets, "{name} in 1.{minor} {order:?}");
        }
    }
}

/// What is sent is refused by one of these exceptions.
#[track_caller]
fn is_refused(world: &World, name: &str, sent: Form, kinds: &[&str]) {
    for order in ORDERS {
        let reply = world
            .dial()
            .ask(&world.request((2, order), "any").with(sent))
            .reply();
        assert_eq!(reply.status, SYSTEM_EXCEPTION, "{name} {order:?}");
        let (id, _, completed) = reply.exception();
        assert!(kinds.iter().any(|kind| id.contains(kind)), "{name}: {id}");
        assert_eq!(completed, 1, "{name}");
    }
    let ping = world.request((2, Order::Big), "ping").bare();
    assert_eq!(
        world.dial().ask(&ping).reply().status,
        NO_EXCEPTION,
        "{name}"
    );
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
            // A chunk for each member, and some within them.
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
            // A struct whose first member is a text that looks like an id.
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
        // One tag ends all values that end at once.
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
            // Null may stand between chunks.
            chunk(o, |o| { o.u32(3); });
            o.u32(0).u32(u32::MAX);
        }, expected);
    }

    fn a_value_of_an_unknown_type_is_cut_down_to_its_base(world) {
        comes_back(world, "a harbour", |o| {
            place(o);
            o.u32(ID_LIST | CHUNKED).u32(3).string("IDL:Harbour:1.0").string(PLACE).string(POINT);
            chunk(o, |o| { o.u32(7).string("harbour").sequence(&[1, 2, 3]).u64(99); });
            // What the base does not know: a value, one within it that both end at once, a further chunk.
            o.u32(ONE_ID | CHUNKED).string("IDL:Quay:1.0");
            chunk(o, |o| { o.u8(1); });
            o.u32(WITHOUT_ID | CHUNKED);
            chunk(o, |o| { o.u32(2); });
            o.u32(2_u32.wrapping_neg());
            chunk(o, |o| { o.string("mole"); });
            o.u32(u32::MAX);
        }, a_place);
    }

    fn a_custom_value_passes_through_in_the_form_it_came_in(world) {
        keeps_its_form(world, "a custom value", |o| {
            custom(o);
            o.u32(ONE_ID | CHUNKED).string("IDL:C:1.0");
            a_state(o);
        });
        keeps_its_form(world, "in a value in chunks", |o| {
            complex(o, VALUE, |p| {
                named(p, "T").u16(TRUNCATABLE).u32(NULL).u32(2).string("c");
                custom(p);
                p.u16(1).string("x").u32(LONG).u16(1);
            });
            o.u32(ONE_ID | CHUNKED).string("IDL:T:1.0").u32(ONE_ID | CHUNKED).string("IDL:C:1.0");
            chunk(o, |o| { o.u64(7); });
            o.u32(2_u32.wrapping_neg());
            chunk(o, |o| { o.u32(9); });
            o.u32(u32::MAX);
        });
        keeps_its_form(world, "without a state, twice", |o| {
            pair(o, ("a", custom), ("b", custom));
            o.u32(ONE_ID | CHUNKED);
            let start = o.octets.len() - 4;
            o.string("IDL:C:1.0");
            chunk(o, |o| { o.u8(1); });
            o.u32(u32::MAX);
            back_to(o, start);
        });
    }

    fn a_value_of_an_unknown_type_passes_through_as_an_abstract_interface(world) {
        keeps_its_form(world, "one id", |o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ONE_ID | CHUNKED).string("IDL:Unknown:1.0");
            a_state(o);
        });
        keeps_its_form(world, "with bases", |o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ID_LIST | CHUNKED).u32(2).string("IDL:Unknown:1.0").string(PLACE);
            a_state(o);
        });
        keeps_its_form(world, "an abstract value", |o| {
            complex(o, VALUE, |p| { named(p, "A").u16(ABSTRACT).u32(NULL).u32(0); });
            o.u32(ONE_ID | CHUNKED).string("IDL:Unknown:1.0");
            a_state(o);
        });
    }

    fn a_value_of_a_type_that_was_made_known_stands_where_its_type_is_not_described(world) {
        let (known, base) = known_types();
        assert!(make_type_known(&known) && make_type_known(&base) && make_type_known(&known));
        let value: Form = |o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ONE_ID).string("IDL:KnownBase:1.0").u32(7);
        };
        comes_back(world, "in place of an abstract interface", value, value);
        comes_back(world, "in chunks", |o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ONE_ID | CHUNKED).string("IDL:KnownBase:1.0");
            chunk(o, |o| { o.u32(7); });
            o.u32(u32::MAX);
        }, value);
        // What is declared describes the base alone, and nothing is cut off.
        let derived: Form = |o| {
            complex(o, VALUE, |p| {
                named(p, "KnownBase").u16(NONE).u32(NULL).u32(1);
                p.string("x").u32(LONG).u16(1);
            });
            o.u32(ID_LIST | CHUNKED).u32(2).string("IDL:Known:1.0").align(4);
            let id = o.octets.len();
            o.string("IDL:KnownBase:1.0");
            chunk(o, |o| { o.u32(7).string("more"); });
            // A value of a type that the description around it lacks, too.
            o.u32(ONE_ID | CHUNKED);
            back_to(o, id);
            chunk(o, |o| { o.u32(8); });
            o.u32(u32::MAX);
        };
        comes_back(world, "in place of its base", derived, derived);
        is_refused(world, "where another type is declared", |o| {
            point(o);
            o.u32(ONE_ID).string("IDL:KnownBase:1.0").u32(7);
        }, &["NO_IMPLEMENT"]);
        is_refused(world, "cut off", |o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ONE_ID).string("IDL:KnownBase:1.0");
        }, &["MARSHAL"]);
    }

    fn values_of_types_that_are_not_known_are_refused(world) {
        let unknown = &["NO_IMPLEMENT"];
        is_refused(world, "another type", |o| { point(o); o.u32(ONE_ID).string(PLACE).u32(7); }, unknown);
        is_refused(world, "another type in chunks", |o| {
            point(o);
            o.u32(ONE_ID | CHUNKED).string(PLACE);
            chunk(o, |o| { o.u32(7); });
            o.u32(u32::MAX);
        }, unknown);
        is_refused(world, "a custom value without chunks", |o| {
            custom(o);
            o.u32(ONE_ID).string("IDL:C:1.0").u32(7);
        }, unknown);
        is_refused(world, "a custom value where another type is declared", |o| {
            point(o);
            o.u32(ONE_ID | CHUNKED).string("IDL:C:1.0");
            chunk(o, |o| { o.u32(7); });
            o.u32(u32::MAX);
        }, unknown);
        is_refused(world, "a custom value that shares one outside it", |o| {
            pair(o, ("p", point), ("c", custom));
            o.u32(ONE_ID);
            let start = o.octets.len() - 4;
            o.string(POINT).u32(7).u32(ONE_ID | CHUNKED).string("IDL:C:1.0");
            chunk(o, |o| back_to(o, start));
            o.u32(u32::MAX);
        }, unknown);
        is_refused(world, "an abstract value", |o| {
            complex(o, VALUE, |p| { named(p, "A").u16(ABSTRACT).u32(NULL).u32(0); });
            o.u32(WITHOUT_ID);
        }, unknown);
        is_refused(world, "a value as an abstract interface", |o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ONE_ID).string(POINT).u32(7);
        }, unknown);
        is_refused(world, "a local interface", |o| { complex(o, 33, |p| { named(p, "I"); }); o.u32(0).u32(0).u32(0); }, unknown);
        is_refused(world, "a native type", |o| { complex(o, 31, |p| { named(p, "N"); }); o.u32(0).u32(0).u32(0); }, unknown);
    }

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
