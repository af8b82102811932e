//! TypeCodes and Anys by clause (CORBA 3.3 part 2, clause 9.3.5): each is sent to a server and back.

use crate::common::anys::{
    ALIAS, ANY, ARRAY, BOOLEAN, CHAR, DOUBLE, ENUM, EXCEPT, FIXED, FLOAT, Form, LONG, LONGDOUBLE,
    LONGLONG, NULL, OBJREF, OCTET, PRINCIPAL, SEQUENCE, SHORT, STRING, STRUCT, TYPE_CODE, ULONG,
    ULONGLONG, UNION, USHORT, VOID, WCHAR, WSTRING, comes_back_in, complex, is_refused, named,
};
use crate::common::{Octets, Order, World, in_each_world};

const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

/// Types without parameters, and a value of each.
const SIMPLE: &[(&str, Form)] = &[
    ("Principal", |o| {
        o.u32(PRINCIPAL).sequence(b"me");
    }),
    ("null", |o| {
        o.u32(NULL);
    }),
    ("void", |o| {
        o.u32(VOID);
    }),
    ("short", |o| {
        o.u32(SHORT).u16(0x8001);
    }),
    ("long", |o| {
        o.u32(LONG).u32(0x8000_0001);
    }),
    ("unsigned short", |o| {
        o.u32(USHORT).u16(0x8001);
    }),
    ("unsigned long", |o| {
        o.u32(ULONG).u32(0x8000_0001);
    }),
    ("float", |o| {
        o.u32(FLOAT).u32(0x3f80_0000);
    }),
    ("double", |o| {
        o.u32(DOUBLE).u64(0x3ff0_0000_0000_0000);
    }),
    ("boolean", |o| {
        o.u32(BOOLEAN).u8(1);
    }),
    ("char", |o| {
        o.u32(CHAR).u8(b'x');
    }),
    ("octet", |o| {
        o.u32(OCTET).u8(0xff);
    }),
    ("long long", |o| {
        o.u32(LONGLONG).u64(1 << 63 | 5);
    }),
    ("unsigned long long", |o| {
        o.u32(ULONGLONG).u64(1 << 63 | 5);
    }),
    ("long double", |o| {
        o.u32(LONGDOUBLE);
        let order = o.order;
        let (a, b) = if order == Order::Big { (1, 2) } else { (2, 1) };
        o.u64(a).u64(b);
    }),
    ("any", |o| {
        o.u32(ANY).u32(LONG).u32(7);
    }),
    ("any of any", |o| {
        o.u32(ANY).u32(ANY).u32(OCTET).u8(7);
    }),
    ("TypeCode", |o| {
        o.u32(TYPE_CODE).u32(STRING).u32(5);
    }),
];

/// Types with simple parameters, directly after the kind.
const BESIDE: &[(&str, Form)] = &[
    ("string", |o| {
        o.u32(STRING).u32(0).string("abc");
    }),
    ("string<5>", |o| {
        o.u32(STRING).u32(5).string("abcde");
    }),
    ("fixed<5,2>", |o| {
        o.u32(FIXED).u16(5).u16(2).raw(&[0x12, 0x34, 0x5c]);
    }),
];

/// Types with parameters in an encapsulation.
const ENCAPSULATED: &[(&str, Form)] = &[
    ("Object", |o| {
        complex(o, OBJREF, |p| {
            p.string(OBJECT_ID).string("Object");
        });
        o.string("").u32(0);
    }),
    ("interface", |o| {
        complex(o, OBJREF, |p| {
            named(p, "I");
        });
        o.string("IDL:I:1.0")
            .u32(1)
            .u32(0x4242_4242)
            .sequence(b"profile");
    }),
    ("struct", |o| {
        complex(o, STRUCT, |p| {
            named(p, "S")
                .u32(3)
                .string("a")
                .u32(OCTET)
                .string("b")
                .u32(DOUBLE)
                .string("c")
                .u32(SHORT);
        });
        o.u8(1).u64(0x3ff0_0000_0000_0000).u16(2);
    }),
    ("struct without members", |o| {
        complex(o, STRUCT, |p| {
            named(p, "S").u32(0);
        });
    }),
    ("struct of a struct", |o| {
        complex(o, STRUCT, |p| {
            named(p, "O").u32(2).string("i");
            complex(p, STRUCT, |q| {
                named(q, "S").u32(1).string("t").u32(STRING).u32(0);
            });
            p.string("l").u32(LONG);
        });
        o.string("text").u32(9);
    }),
    ("union, a case", |o| {
        complex(o, UNION, |p| {
            named(p, "U").u32(SHORT).u32(1).u32(3);
            p.u16(1).string("one").u32(LONG);
            // The label of the default member is a zero octet without a meaning.
            p.u16(0).string("other").u32(OCTET);
            p.u16(2).string("two").u32(STRING).u32(0);
        });
        o.u16(2).string("two");
    }),
    ("union, the default", |o| {
        complex(o, UNION, |p| {
            named(p, "U").u32(LONG).u32(0).u32(2);
            p.u32(0).string("other").u32(OCTET);
            p.u32(5).string("five").u32(LONG);
        });
        o.u32(77).u8(8);
    }),
    ("union, no member", |o| {
        complex(o, UNION, |p| {
            named(p, "U")
                .u32(BOOLEAN)
                .u32(u32::MAX)
                .u32(1)
                .u8(1)
                .string("yes")
                .u32(LONG);
        });
        o.u8(0);
    }),
    ("union of an enum", |o| {
        complex(o, UNION, |p| {
            named(p, "U");
            complex(p, ENUM, |q| {
                named(q, "E").u32(2).string("A").string("B");
            });
            p.u32(u32::MAX).u32(1).u32(1).string("b").u32(DOUBLE);
        });
        o.u32(1).u64(5);
    }),
    ("enum", |o| {
        complex(o, ENUM, |p| {
            named(p, "E").u32(3).string("A").string("B").string("C");
        });
        o.u32(2);
    }),
    ("sequence", |o| {
        complex(o, SEQUENCE, |p| {
            p.u32(LONG).u32(0);
        });
        o.u32(2).u32(1).u32(2);
    }),
    ("sequence<octet,3>", |o| {
        complex(o, SEQUENCE, |p| {
            p.u32(OCTET).u32(3);
        });
        o.sequence(&[1, 2, 3]);
    }),
    ("sequence of sequences", |o| {
        complex(o, SEQUENCE, |p| {
            complex(p, SEQUENCE, |q| {
                q.u32(USHORT).u32(0);
            });
            p.u32(0);
        });
        o.u32(2).u32(1).u16(1).u32(0);
    }),
    ("array", |o| {
        complex(o, ARRAY, |p| {
            p.u32(SHORT).u32(3);
        });
        o.u16(1).u16(2).u16(3);
    }),
    ("array of arrays", |o| {
        complex(o, ARRAY, |p| {
            complex(p, ARRAY, |q| {
                q.u32(OCTET).u32(2);
            });
            p.u32(2);
        });
        o.raw(&[1, 2, 3, 4]);
    }),
    ("alias", |o| {
        complex(o, ALIAS, |p| {
            named(p, "A").u32(ULONG);
        });
        o.u32(7);
    }),
    ("exception", |o| {
        complex(o, EXCEPT, |p| {
            named(p, "X").u32(1).string("why").u32(STRING).u32(0);
        });
        o.string("IDL:X:1.0").string("because");
    }),
];

/// Types with indirections: an offset back to an enclosing type.
const RECURSIVE: &[(&str, Form)] = &[("a tree", |o| {
    // struct Tree { long value; sequence<Tree> children; }
    complex(o, STRUCT, |p| {
        named(p, "Tree")
            .u32(2)
            .string("value")
            .u32(LONG)
            .string("children");
        complex(p, SEQUENCE, |q| {
            q.u32(u32::MAX);
            // Back over 8 octets of this encapsulation, its length and kind, to the kind of the struct.
            let back = 8 + 8 + p_offset();
            q.u32(0_u32.wrapping_sub(back)).u32(0);
        });
    });
    o.u32(1).u32(2).u32(2).u32(0).u32(3).u32(0);
})];

/// The distance from the kind of the struct to the kind of the sequence in it.
fn p_offset() -> u32 {
    // Kind and length; then byte order, id, name, count, member name, type, member name.
    let mut inside = Octets::encapsulation(Order::Big);
    named(&mut inside, "Tree")
        .u32(2)
        .string("value")
        .u32(LONG)
        .string("children")
        .align(4);
    8 + u32::try_from(inside.octets.len()).expect("short")
}

/// Checks that each Any comes back as it was sent.
#[track_caller]
fn come_back(world: &World, cases: &[(&str, Form)], minors: &[u8]) {
    for (name, form) in cases {
        comes_back_in(world, minors, name, *form, *form);
    }
}

in_each_world! {
    fn every_simple_type_code_comes_back_with_its_value(world) {
        come_back(world, SIMPLE, &[0, 1, 2]);
    }

    fn type_codes_with_parameters_beside_them_come_back(world) {
        come_back(world, BESIDE, &[0, 1, 2]);
    }

    fn type_codes_with_encapsulated_parameters_come_back(world) {
        come_back(world, ENCAPSULATED, &[0, 1, 2]);
    }

    fn recursive_type_codes_come_back_as_indirections(world) {
        come_back(world, RECURSIVE, &[0, 1, 2]);
    }

    fn wide_types_come_back_in_the_form_of_their_version(world) {
        let cases: &[(&str, Form)] = &[
            ("wchar", |o| { o.u32(WCHAR).u8(2).raw(b"\x26\x93"); }),
            ("wstring", |o| { o.u32(WSTRING).u32(0).sequence(b"\0a\x26\x93"); }),
            ("wstring<2>", |o| { o.u32(WSTRING).u32(2).sequence(b"\0a\0b"); }),
            ("half of a surrogate pair", |o| { o.u32(WSTRING).u32(2).sequence(b"\xd8\x3d\0b"); }),
        ];
        come_back(world, cases, &[2]);
        let cases: &[(&str, Form)] = &[
            ("wchar", |o| { o.u32(WCHAR).u16(0x2693); }),
            ("wstring", |o| { o.u32(WSTRING).u32(0).u32(3).u16(0x61).u16(0x2693).u16(0); }),
            ("half of a surrogate pair", |o| { o.u32(WSTRING).u32(0).u32(2).u16(0xd83d).u16(0); }),
        ];
        come_back(world, cases, &[1]);
    }

    fn an_encapsulated_type_code_may_have_another_byte_order_than_its_message(world) {
        for (outer, inner) in [(Order::Big, Order::Little), (Order::Little, Order::Big)] {
            let request = world.request((2, outer), "any").with(|o| {
                let mut inside = Octets::encapsulation(inner);
                named(&mut inside, "S").u32(1).string("a").u32(LONG);
                o.u32(STRUCT).sequence(&inside.octets).u32(0x0102_0304);
            });
            let answer = world.dial().ask(&request);
            let mut expected = Octets::new(answer.order());
            complex(&mut expected, STRUCT, |p| { named(p, "S").u32(1).string("a").u32(LONG); });
            expected.u32(0x0102_0304);
            assert_eq!(answer.reply().body.rest(), expected.octets);
        }
    }

    fn type_codes_and_values_that_lie_are_refused_and_hurt_nobody(world) {
        let cases: &[(&str, Form)] = &[
            ("an unknown kind", |o| { o.u32(99); }),
            ("an indirection to nowhere", |o| { o.u32(u32::MAX).u32(0xffff_ff00); }),
            ("an indirection forward", |o| { o.u32(u32::MAX).u32(8); }),
            ("an indirection to itself", |o| { o.u32(u32::MAX).u32(0xffff_fffc); }),
            ("an enumerator that is not there", |o| { complex(o, ENUM, |p| { named(p, "E").u32(1).string("A"); }); o.u32(1); }),
            ("a sequence above its bound", |o| { complex(o, SEQUENCE, |p| { p.u32(OCTET).u32(2); }); o.sequence(&[1, 2, 3]); }),
            ("a string above its bound", |o| { o.u32(STRING).u32(2).string("abc"); }),
            ("a value that is cut short", |o| { o.u32(DOUBLE).u32(1); }),
            ("more members than octets", |o| { complex(o, STRUCT, |p| { named(p, "S").u32(0x7fff_ffff); }); }),
            ("a boolean of 2", |o| { o.u32(BOOLEAN).u8(2); }),
            ("a boolean of 2 within another any", |o| { o.u32(ANY).u32(BOOLEAN).u8(2); }),
            ("a boolean of 2 behind many", |o| {
                complex(o, SEQUENCE, |p| { p.u32(BOOLEAN).u32(0); });
                o.u32(200).raw(&[1; 199]).u8(2);
            }),
            ("a string without its null", |o| { o.u32(STRING).u32(0).u32(3).raw(b"abc"); }),
            ("a string with a null within", |o| { o.u32(STRING).u32(0).u32(4).raw(b"a\0c\0"); }),
            ("a discriminator that is no enumerator", |o| {
                complex(o, UNION, |p| {
                    named(p, "U");
                    complex(p, ENUM, |e| { named(e, "E").u32(1).string("A"); });
                    p.u32(u32::MAX).u32(1).u32(0).string("a").u32(OCTET);
                });
                o.u32(7).u8(0);
            }),
        ];
        for (name, form) in cases {
            is_refused(world, name, *form, &["MARSHAL", "BAD_TYPECODE", "BAD_PARAM"]);
        }
    }
}
