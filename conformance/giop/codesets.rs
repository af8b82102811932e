//! Code sets by clause (CORBA 3.3 part 2, clauses 7.10 and 9.3.1.6): offer, choice, and the encoding of text.

use crate::common;
use crate::common::ior::Profile;
use crate::common::message::{NO_EXCEPTION, mirror};
use crate::common::servant::call_with;
use crate::common::{
    Cursor, Lanes, OMG, ORDERS, Octets, Order, Over, Peer, World, in_each_world, over_each,
};
use deckwatch_cdr::WString;
use deckwatch_orb::{Completion, SystemExceptionKind as Kind};

const TAG_ORB_TYPE: u32 = 0;
const TAG_CODE_SETS: u32 = 1;
/// The id of the service context.
const CODE_SETS: u32 = 1;
const ISO_8859_1: u32 = 0x0001_0001;
const UTF_16: u32 = 0x0001_0109;
const UTF_8: u32 = 0x0501_0001;
const EBCDIC: u32 = 0x1002_0025;
const UCS_2: u32 = 0x0001_0100;

fn context(order: Order, chars: u32, wide: u32) -> Vec<u8> {
    let mut octets = Octets::encapsulation(order);
    octets.u32(chars).u32(wide);
    octets.octets
}

/// A CodeSets component: native code set, then conversion code sets, for char and for wchar.
fn component(order: Order, chars: &[u32], wide: &[u32]) -> (u32, Vec<u8>) {
    let mut octets = Octets::encapsulation(order);
    for sets in [chars, wide] {
        octets
            .u32(sets[0])
            .u32(u32::try_from(sets.len() - 1).expect("few"));
        for set in &sets[1..] {
            octets.u32(*set);
        }
    }
    (TAG_CODE_SETS, octets.octets)
}

fn read_context(data: &[u8]) -> (u32, u32) {
    let mut body = Cursor::encapsulated(data);
    (body.u32(), body.u32())
}

/// A peer that echoes the octets of the arguments.
fn mirroring(over: Over) -> Peer {
    Peer::answering(over, |_, asked| mirror(asked))
}

fn seen(
    peer: &Peer,
    client: &deckwatch_orb::Orb,
    minor: u8,
    components: &[(u32, Vec<u8>)],
) -> deckwatch_orb::ObjectRef {
    let mut ior = peer.ior(minor, b"Fake");
    ior.profiles = vec![peer.profile(minor, b"Fake", components)];
    client
        .string_to_object(&ior.text(Order::Big))
        .unwrap()
        .unwrap()
}

in_each_world! {
    fn the_offer_names_native_and_conversion_code_sets(world) {
        let profile = Profile::read(&world.profile().1);
        let (_, data) = profile.components.iter().find(|(tag, _)| *tag == TAG_CODE_SETS).expect("an offer");
        let mut body = Cursor::encapsulated(data);
        let mut sets = || {
            let native = body.u32();
            let count = body.u32();
            let conversion = (0..count).map(|_| body.u32());
            [vec![native], conversion.collect()].concat()
        };
        let (chars, wide) = (sets(), sets());
        assert!(chars.contains(&UTF_8) && chars.contains(&ISO_8859_1), "{chars:x?}");
        assert!(wide.contains(&UTF_16), "{wide:x?}");
    }

    fn text_is_iso_8859_1_where_nothing_was_negotiated(world) {
        for form in common::FORMS {
            let mut wire = world.dial();
            let mut reply = wire.ask(&world.request(form, "text").with(|o| { o.sequence(b"gr\xfcn\0"); })).reply();
            assert_eq!(reply.body.sequence(), b"gr\xfcn\0", "{form:?}");
            let mut counted = wire.ask(&world.request(form, "characters").with(|o| { o.sequence(b"\xe2\x9a\x93\0"); })).reply();
            assert_eq!(counted.body.u32(), 3, "an octet is a character");
        }
    }

    fn text_is_utf_8_where_the_request_says_so_in_either_byte_order(world) {
        for form in common::FORMS.into_iter().filter(|form| form.0 > 0) {
            for order in ORDERS {
                let told = |operation| world.request(form, operation).context(CODE_SETS, &context(order, UTF_8, UTF_16));
                let anchor = "\u{2693}\0".as_bytes();
                let mut reply = world.dial().ask(&told("text").with(|o| { o.sequence(anchor); })).reply();
                assert_eq!((reply.status, reply.body.sequence()), (NO_EXCEPTION, anchor.to_vec()), "{form:?}");
                let mut counted = world.dial().ask(&told("characters").with(|o| { o.sequence(anchor); })).reply();
                assert_eq!(counted.body.u32(), 1, "three octets are a character");
                // Octets that are not UTF-8 cannot be decoded.
                let raised = world.dial().ask(&told("text").with(|o| { o.sequence(b"gr\xfcn\0"); })).reply().exception();
                assert_eq!((raised.0.as_str(), raised.2), ("IDL:omg.org/CORBA/DATA_CONVERSION:1.0", 1), "{form:?}");
            }
        }
    }

    fn what_was_negotiated_holds_for_the_connection(world) {
        let form = (2, Order::Big);
        let mut wire = world.dial();
        let ask = |request: common::Request| request.with(|o| { o.sequence("\u{2693}\0".as_bytes()); });
        let first = ask(world.request(form, "characters").context(CODE_SETS, &context(Order::Big, UTF_8, UTF_16)));
        assert_eq!(wire.ask(&first).reply().body.u32(), 1);
        assert_eq!(wire.ask(&ask(world.request(form, "characters").id(8))).reply().body.u32(), 1);
        // The choice does not hold for another connection.
        assert_eq!(world.dial().ask(&ask(world.request(form, "characters"))).reply().body.u32(), 3);
    }

    fn what_a_request_says_holds_for_those_right_behind_it(world) {
        let ask = |id| world.request((2, Order::Big), "characters").id(id);
        let anchor = |request: common::Request| request.with(|o| { o.sequence("\u{2693}\0".as_bytes()); });
        let said = context(Order::Big, UTF_8, UTF_16);
        for nothing_was_said_before in [false, true].repeat(25) {
            let mut wire = common::Wire::to(&world.orb);
            if nothing_was_said_before {
                assert_eq!(wire.ask(&anchor(ask(5))).reply().body.u32(), 3);
            }
            wire.say(&[anchor(ask(7).context(CODE_SETS, &said)), anchor(ask(8))].concat());
            for _ in 0..2 {
                let mut counted = wire.hear().expect("a reply").reply();
                assert_eq!(counted.body.u32(), 1, "of request {}", counted.id);
            }
        }
    }

    fn another_choice_on_one_connection_is_marshal_with_minor_code_9(world) {
        let mut wire = world.dial();
        let ask = |id, chars| {
            let request = world.request((2, Order::Big), "text").id(id);
            request.context(CODE_SETS, &context(Order::Big, chars, UTF_16)).with(|o| { o.string("a"); })
        };
        assert_eq!(wire.ask(&ask(7, UTF_8)).reply().status, NO_EXCEPTION);
        assert_eq!(wire.ask(&ask(8, UTF_8)).reply().status, NO_EXCEPTION);
        let raised = wire.ask(&ask(9, ISO_8859_1)).reply().exception();
        assert_eq!(raised, ("IDL:omg.org/CORBA/MARSHAL:1.0".to_owned(), OMG | 9, 1));
        assert_eq!(wire.ask(&ask(10, UTF_8)).reply().status, NO_EXCEPTION);
        assert_eq!(world.dial().ask(&ask(7, ISO_8859_1)).reply().status, NO_EXCEPTION);
    }

    fn a_code_set_that_is_not_had_is_codeset_incompatible(world) {
        let request = world.request((2, Order::Big), "text").context(CODE_SETS, &context(Order::Big, EBCDIC, UTF_16));
        let raised = world.dial().ask(&request.with(|o| { o.string("a"); })).reply().exception();
        assert_eq!(raised, ("IDL:omg.org/CORBA/CODESET_INCOMPATIBLE:1.0".to_owned(), OMG | 2, 1));
    }

    fn a_malformed_code_set_context_hurts_nobody(world) {
        let request = world.request((2, Order::Big), "text").context(CODE_SETS, &[0, 1]);
        let (_, _, completed) = world.dial().ask(&request.with(|o| { o.string("a"); })).reply().exception();
        assert_eq!(completed, 1);
    }

    fn wide_text_of_1_2_is_counted_in_octets_without_nul_and_big_endian_unless_marked(world) {
        for order in ORDERS {
            let request = |octets: &'static [u8]| {
                world.request((2, order), "wide_text").context(CODE_SETS, &context(order, UTF_8, UTF_16)).with(|o| { o.sequence(octets); })
            };
            for octets in [&b"\0a\x26\x93"[..], b"\xfe\xff\0a\x26\x93", b"\xff\xfea\0\x93\x26"] {
                let mut reply = world.dial().ask(&request(octets)).reply();
                let back = reply.body.sequence();
                let plain = back.strip_prefix(b"\xfe\xff").unwrap_or(&back);
                assert_eq!(plain, b"\0a\x26\x93", "{octets:x?} in {order:?}");
            }
            assert_eq!(world.dial().ask(&request(b"")).reply().body.sequence(), b"");
        }
    }

    fn wide_text_of_1_1_is_counted_in_characters_with_nul_and_in_the_byte_order_of_its_message(world) {
        for order in ORDERS {
            let write = |o: &mut Octets| { o.u32(3).u16(0x61).u16(0x2693).u16(0); };
            let request = world.request((1, order), "wide_text").context(CODE_SETS, &context(order, UTF_8, UTF_16)).with(write);
            let mut reply = world.dial().ask(&request).reply();
            let units = [reply.body.u32(), u32::from(reply.body.u16()), u32::from(reply.body.u16()), u32::from(reply.body.u16())];
            assert_eq!((reply.status, units), (NO_EXCEPTION, [3, 0x61, 0x2693, 0]), "{order:?}");
        }
    }

    fn wide_text_in_1_0_is_marshal(world) {
        let request = world.request((0, Order::Big), "wide_text").with(|o| { o.u32(2).u16(0x61).u16(0); });
        let raised = world.dial().ask(&request).reply().exception();
        assert_eq!(raised, ("IDL:omg.org/CORBA/MARSHAL:1.0".to_owned(), OMG | 5, 1));
    }
}

over_each! {
    // TAO replaces each letter beyond ASCII that it receives in UTF-8.
    fn a_server_that_tao_made_is_spoken_to_in_its_own_iso_8859_1(over) {
        for (orb_type, expected) in [(0x5441_4F00, &b"gr\xfcn\0"[..]), (0x4154_5400, "gr\u{fc}n\0".as_bytes())] {
            let (peer, client) = (mirroring(over), common::client());
            let mut made_by = Octets::encapsulation(Order::Little);
            made_by.u32(orb_type);
            let offer = component(Order::Little, &[ISO_8859_1, UTF_8], &[UTF_16]);
            let object = seen(&peer, &client, 2, &[(TAG_ORB_TYPE, made_by.octets), offer]);
            assert_eq!(call_with(&object, "text", &"gr\u{fc}n".to_owned()), Ok("gr\u{fc}n".to_owned()));
            assert_eq!(peer.heard().asked().body.sequence(), expected, "{orb_type:#x}");
        }
    }

    fn the_client_tells_its_choice_in_a_service_context(over) {
        for order in ORDERS {
            for (offer, chosen) in [
                (component(order, &[UTF_8, ISO_8859_1], &[UTF_16]), UTF_8),
                (component(order, &[ISO_8859_1, UTF_8], &[UTF_16]), UTF_8),
                (component(order, &[EBCDIC, UTF_8], &[UTF_16]), UTF_8),
                (component(order, &[ISO_8859_1], &[UTF_16]), ISO_8859_1),
                // No common code set: the fallback that every server supports.
                (component(order, &[EBCDIC], &[UCS_2]), UTF_8),
            ] {
                let (peer, client) = (mirroring(over), common::client());
                let object = seen(&peer, &client, 2, &[offer]);
                assert_eq!(call_with(&object, "text", &"gr\u{fc}n".to_owned()), Ok("gr\u{fc}n".to_owned()));
                let asked = peer.heard().asked();
                let (_, data) = asked.contexts.iter().find(|(id, _)| *id == CODE_SETS).expect("a choice");
                let (chars, wide) = read_context(data);
                assert_eq!((chars, wide), (chosen, UTF_16));
                let expected: &[u8] = if chars == UTF_8 { b"gr\xc3\xbcn\0" } else { b"gr\xfcn\0" };
                let mut body = asked.body;
                assert_eq!(body.sequence(), expected);
            }
        }
    }

    fn without_an_offer_nothing_is_said_and_text_is_iso_8859_1(over) {
        let peer = mirroring(over);
        let client = common::client();
        for minor in peer.minors() {
            let object = seen(&peer, &client, minor, &[]);
            assert_eq!(call_with(&object, "text", &"gr\u{fc}n".to_owned()), Ok("gr\u{fc}n".to_owned()));
            let mut asked = peer.heard().asked();
            assert!(asked.contexts.iter().all(|(id, _)| *id != CODE_SETS));
            assert_eq!(asked.body.sequence(), b"gr\xfcn\0");
            let raised = call_with(&object, "text", &"\u{2693}".to_owned()).unwrap_err();
            assert_eq!((raised.kind, raised.minor, raised.completed), (Kind::DataConversion, OMG | 1, Completion::No));
        }
    }

    fn wide_text_of_a_client_is_utf_16(over) {
        let peer = mirroring(over);
        let client = common::client();
        let text = WString::from("a\u{2693}\u{1f6a2}");
        for minor in [1, 2] {
            let object = seen(&peer, &client, minor, &[component(Order::Big, &[UTF_8], &[UTF_16])]);
            assert_eq!(call_with(&object, "wide_text", &text), Ok(text.clone()), "1.{minor}");
            let mut asked = peer.heard().asked();
            let units = [0x61, 0x2693, 0xd83d, 0xdea2];
            if minor == 1 {
                assert_eq!(asked.body.u32(), 5);
                let sent: Vec<u16> = (0..5).map(|_| asked.body.u16()).collect();
                assert_eq!(sent, [0x61, 0x2693, 0xd83d, 0xdea2, 0]);
            } else {
                let octets = asked.body.sequence();
                let octets = octets.strip_prefix(b"\xfe\xff").unwrap_or(&octets).to_vec();
                let expected: Vec<u8> = units.iter().flat_map(|unit: &u16| unit.to_be_bytes()).collect();
                assert_eq!(octets, expected);
            }
        }
    }

    fn wide_text_for_a_server_that_offers_no_wide_code_set_is_inv_objref(over) {
        let peer = mirroring(over);
        let client = common::client();
        for minor in [1, 2] {
            let object = seen(&peer, &client, minor, &[component(Order::Big, &[UTF_8], &[0])]);
            let raised = call_with(&object, "wide_text", &WString::from("a")).unwrap_err();
            assert_eq!((raised.kind, raised.minor, raised.completed), (Kind::InvObjref, OMG | 1, Completion::No));
            assert_eq!(call_with(&object, "text", &"a".to_owned()), Ok("a".to_owned()));
        }
    }

    fn text_with_nul_is_not_sent(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let raised = call_with(&world.seen_by(&client), "text", &"a\0b".to_owned()).unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::BadParam, Completion::No));
        assert_eq!(world.probe.calls(), 0);
    }
}

/// TCP only: a unix socket is in a component, and IIOP 1.0 has no components.
#[test]
fn wide_text_of_a_client_in_1_0_is_marshal() {
    let peer = mirroring(Over::Tcp);
    let client = common::client();
    let raised = call_with(
        &seen(&peer, &client, 0, &[]),
        "wide_text",
        &WString::from("a"),
    )
    .unwrap_err();
    assert_eq!((raised.kind, raised.minor), (Kind::Marshal, OMG | 5));
    assert_eq!(peer.heard_so_far(), 0);
}
