//! Values in an Any whose types the receiver does not know, by clause (CORBA 3.3 part 2, clause 9.3.4.1, and part 1,
//! clause 9.5): truncated, passed on, or refused.

use crate::common::anys::{
    ABSTRACT_INTERFACE, Form, LOCAL_INTERFACE, LONG, NATIVE, NULL, VALUE, comes_back, complex,
    is_refused, named,
};
use crate::common::message::{NO_EXCEPTION, SYSTEM_EXCEPTION};
use crate::common::values::{
    ABSTRACT, CHUNKED, CUSTOM, ID_LIST, ONE_ID, PLACE, POINT, TRUNCATABLE, WITHOUT_ID, a_place,
    back_to, chunk, pair, place, point,
};
use crate::common::{ORDERS, Octets, World, in_each_world};

/// `custom valuetype C { public long x; };`
fn custom(o: &mut Octets) {
    complex(o, VALUE, |p| {
        named(p, "C").u16(CUSTOM).u32(NULL).u32(1);
        p.string("x").u32(LONG).u16(1);
    });
}

/// A state that its TypeCode does not describe: an aligned number, nested values, one end tag for several values.
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

const NOTHING: Form = |_| ();

/// Sends a message of these three parts: before the state, the state, after it. Checks that it comes back unchanged if
/// the reply has the same byte order, and that it is refused otherwise.
#[track_caller]
fn keeps_its_form(world: &World, name: &str, [before, state, behind]: [Form; 3]) {
    for order in ORDERS {
        for minor in 0..3 {
            let mut sent = Vec::new();
            let request = world.request((minor, order), "any").with(|o| {
                before(o);
                let start = o.octets.len().next_multiple_of(4);
                state(o);
                sent = o.octets[start..].to_vec();
                behind(o);
            });
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
            before(&mut octets);
            state(&mut octets);
            let end = octets.octets.len();
            behind(&mut octets);
            // Before GIOP 1.2 the body is not aligned; one more number may align the state.
            if minor == 2 {
                assert_eq!(body, octets.octets, "{name} in 1.{minor} {order:?}");
            }
            let answered = &body[..body.len() - (octets.octets.len() - end)];
            assert!(
                answered.ends_with(&sent),
                "{name} in 1.{minor} {order:?}: {body:02x?}"
            );
        }
    }
}

in_each_world! {
    fn a_value_of_an_unknown_type_is_cut_down_to_its_base(world) {
        comes_back(world, "a harbour", |o| {
            place(o);
            o.u32(ID_LIST | CHUNKED).u32(3).string("IDL:Harbour:1.0").string(PLACE).string(POINT);
            chunk(o, |o| { o.u32(7).string("harbour").sequence(&[1, 2, 3]).u64(99); });
            // State that the base type does not know: a value, a nested value with the same end tag, a further chunk.
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
        keeps_its_form(world, "a custom value", [|o| {
            custom(o);
            o.u32(ONE_ID | CHUNKED).string("IDL:C:1.0");
        }, a_state, NOTHING]);
        keeps_its_form(world, "in a value in chunks", [|o| {
            complex(o, VALUE, |p| {
                named(p, "T").u16(TRUNCATABLE).u32(NULL).u32(2).string("c");
                custom(p);
                p.u16(1).string("x").u32(LONG).u16(1);
            });
            o.u32(ONE_ID | CHUNKED).string("IDL:T:1.0").u32(ONE_ID | CHUNKED).string("IDL:C:1.0");
        }, |o| {
            chunk(o, |o| { o.u64(7); });
            o.u32(2_u32.wrapping_neg());
            chunk(o, |o| { o.u32(9); });
            o.u32(u32::MAX);
        }, NOTHING]);
        keeps_its_form(world, "of an octet, twice", [|o| {
            pair(o, ("a", custom), ("b", custom));
            o.u32(ONE_ID | CHUNKED).string("IDL:C:1.0");
        }, |o| {
            chunk(o, |o| { o.u8(1); });
            o.u32(u32::MAX);
        }, |o| {
            // Back over the state, the id and the tag.
            let start = o.octets.len() - (12 + 16 + 4);
            back_to(o, start);
        }]);
    }

    fn a_value_of_an_unknown_type_passes_through_as_an_abstract_interface(world) {
        keeps_its_form(world, "one id", [|o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ONE_ID | CHUNKED).string("IDL:Unknown:1.0");
        }, a_state, NOTHING]);
        keeps_its_form(world, "with bases", [|o| {
            complex(o, ABSTRACT_INTERFACE, |p| { named(p, "I"); });
            o.u8(0).u32(ID_LIST | CHUNKED).u32(2).string("IDL:Unknown:1.0").string(PLACE);
        }, a_state, NOTHING]);
        keeps_its_form(world, "an abstract value", [|o| {
            complex(o, VALUE, |p| { named(p, "A").u16(ABSTRACT).u32(NULL).u32(0); });
            o.u32(ONE_ID | CHUNKED).string("IDL:Unknown:1.0");
        }, a_state, NOTHING]);
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
        is_refused(world, "a local interface", |o| { complex(o, LOCAL_INTERFACE, |p| { named(p, "I"); }); o.u32(0).u32(0).u32(0); }, unknown);
        is_refused(world, "a native type", |o| { complex(o, NATIVE, |p| { named(p, "N"); }); o.u32(0).u32(0).u32(0); }, unknown);
    }
}
