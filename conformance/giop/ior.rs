//! References by clause (CORBA 3.3 part 2, clauses 7.6 and 9.7): IORs, their profiles and components, and object URLs.

use crate::common;
use crate::common::ior::{Ior, Profile, TAG_INTERNET_IOP, iiop_profile};
use crate::common::message::{LOCATION_FORWARD, NO_EXCEPTION, REQUEST};
use crate::common::servant::{PROBE_ID, call, call_with};
use crate::common::{Cursor, Lanes, OMG, ORDERS, Octets, Order, Over, Peer, World, over_each};
use deckwatch_orb::{Completion, ObjectRef, Orb, SystemException, SystemExceptionKind as Kind};

const TAG_MULTIPLE_COMPONENTS: u32 = 1;
const TAG_ORB_TYPE: u32 = 0;
const TAG_CODE_SETS: u32 = 1;
const TAG_ALTERNATE_IIOP_ADDRESS: u32 = 3;

fn object(orb: &Orb, text: &str) -> ObjectRef {
    orb.string_to_object(text).expect(text).expect("not nil")
}

fn refused(orb: &Orb, text: &str) -> SystemException {
    match orb.string_to_object(text) {
        Err(exception) => exception,
        Ok(found) => panic!("{text} is taken for {found:?}"),
    }
}

/// The profiles of the reference that a URL denotes.
fn profiles(orb: &Orb, url: &str) -> Vec<Profile> {
    let ior = Ior::of_text(&orb.object_to_string(&object(orb, url)));
    ior.profiles
        .iter()
        .map(|(tag, data)| {
            assert_eq!(*tag, TAG_INTERNET_IOP);
            Profile::read(data)
        })
        .collect()
}

/// A profile with the key and address of the world's object, but with another version and more components.
fn profile_like(world: &World, minor: u8, components: &[(u32, Vec<u8>)]) -> (u32, Vec<u8>) {
    let own = Profile::read(&world.profile().1);
    let all = [own.components, components.to_vec()].concat();
    (
        TAG_INTERNET_IOP,
        iiop_profile(Order::Little, minor, (&own.host, own.port), &own.key, &all),
    )
}

fn nowhere() -> (String, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    (
        "127.0.0.1".to_owned(),
        listener.local_addr().expect("an address").port(),
    )
}

over_each! {
    fn a_reference_of_ours_tells_type_version_address_and_key(over) {
        let world = World::new(over, Lanes::Many);
        let ior = Ior::of_text(&world.orb.object_to_string(&world.object));
        assert_eq!(ior.type_id, PROBE_ID);
        let own = Profile::read(&world.profile().1);
        assert_eq!((own.version, &own.key), ((1, 2), &world.key));
        if over == Over::Tcp {
            assert_eq!(format!("{}:{}", own.host, own.port), world.orb.endpoints()[0].to_string());
        }
    }

    fn a_reference_of_ours_has_its_code_sets(over) {
        let world = World::new(over, Lanes::Many);
        let own = Profile::read(&world.profile().1);
        let tags: Vec<u32> = own.components.iter().map(|(tag, _)| *tag).collect();
        assert!(tags.contains(&TAG_CODE_SETS), "{tags:?}");
    }

    fn a_reference_made_by_hand_leads_to_the_object_in_either_byte_order(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let ior = Ior { type_id: PROBE_ID.to_owned(), profiles: vec![world.profile()] };
        for order in ORDERS {
            assert_eq!(call(&object(&client, &ior.text(order)), "ping"), Ok(()));
        }
    }

    fn profiles_of_other_protocols_are_passed_over(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let foreign = (0x4242_4242, b"whatever".to_vec());
        let components = (TAG_MULTIPLE_COMPONENTS, Octets::encapsulation(Order::Big).u32(0).octets.clone());
        let ior = Ior { type_id: String::new(), profiles: vec![foreign.clone(), components, world.profile(), foreign] };
        assert_eq!(call(&object(&client, &ior.text(Order::Big)), "ping"), Ok(()));
    }

    fn what_is_not_understood_in_a_reference_is_kept(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let strange = [(0x4242_4242, vec![1, 2, 3]), (TAG_ORB_TYPE, vec![0, 0, 0, 0, b'T', b'A', b'O', 0])];
        let ior = Ior {
            type_id: "IDL:Unheard/Of:7.3".to_owned(),
            profiles: vec![(0x4141_4141, vec![9; 5]), profile_like(&world, 2, &strange)],
        };
        let found = object(&client, &ior.text(Order::Big));
        assert_eq!(Ior::of_text(&client.object_to_string(&found)), ior);
        // The same holds for a reference that was sent in a call and back.
        let here = object(&client, &world.orb.object_to_string(&world.object));
        let back = call_with(&here, "object", &Some(found)).unwrap().unwrap();
        assert_eq!(Ior::of_text(&client.object_to_string(&back)), ior);
    }

    fn a_reference_of_a_hundred_profiles_is_read_and_tried_within_bounds(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let foreign = (0x4242_4242, vec![7; 100]);
        let mut profiles = vec![foreign; 60];
        profiles.push(world.profile());
        let ior = Ior { type_id: String::new(), profiles };
        assert_eq!(call(&object(&client, &ior.text(Order::Big)), "ping"), Ok(()));
        // A reference with 100 addresses without a listener ends with a standard exception; not all addresses are
        // tried.
        let (host, port) = nowhere();
        let dead = (TAG_INTERNET_IOP, iiop_profile(Order::Big, 2, (&host, port), b"K", &[]));
        let ior = Ior { type_id: String::new(), profiles: vec![dead; 100] };
        let raised = match client.string_to_object(&ior.text(Order::Big)) {
            Ok(found) => call(&found.expect("not nil"), "ping").unwrap_err(),
            Err(raised) => raised,
        };
        assert!(matches!(raised.kind, Kind::Transient | Kind::InvObjref | Kind::BadParam | Kind::Marshal), "{raised:?}");
        assert_eq!(raised.completed, Completion::No);
    }

    fn the_profiles_of_a_reference_are_tried_in_turn(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let (host, port) = nowhere();
        let dead = (TAG_INTERNET_IOP, iiop_profile(Order::Big, 2, (&host, port), &world.key, &[]));
        let ior = Ior { type_id: String::new(), profiles: vec![dead, world.profile()] };
        assert_eq!(call(&object(&client, &ior.text(Order::Big)), "ping"), Ok(()));
    }

    fn a_client_speaks_no_higher_version_than_the_profile_has(over) {
        let peer = Peer::answering(over, |_, asked| {
            asked.answered(NO_EXCEPTION, |_| ())
        });
        let client = common::client();
        // An unknown minor version: the server also understands the lower versions, so 1.2 is used.
        for (minor, spoken) in [(0, 0), (1, 1), (2, 2), (3, 2), (99, 2)] {
            if !peer.minors().contains(&spoken) {
                continue;
            }
            assert_eq!(call(&peer.seen_by(&client, minor), "ping"), Ok(()));
            let heard = peer.heard();
            assert_eq!((heard.kind(), heard.minor()), (REQUEST, spoken), "profile 1.{minor}");
        }
    }

    fn a_profile_of_another_major_version_is_of_no_use(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let mut profile = world.profile();
        profile.1[1] = 2;
        let ior = Ior { type_id: String::new(), profiles: vec![profile] };
        let raised = match client.string_to_object(&ior.text(Order::Big)) {
            Ok(found) => call(&found.expect("not nil"), "ping").unwrap_err(),
            Err(exception) => exception,
        };
        assert!(matches!(raised.kind, Kind::InvObjref | Kind::Transient), "{raised:?}");
        assert_eq!(raised.completed, Completion::No);
    }

    fn what_follows_the_known_members_of_a_profile_is_passed_over(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let mut profile = profile_like(&world, 2, &[]);
        profile.1[2] = 9;
        profile.1.extend(b"members of a later version");
        let ior = Ior { type_id: String::new(), profiles: vec![profile] };
        assert_eq!(call(&object(&client, &ior.text(Order::Big)), "ping"), Ok(()));
    }

    fn nil_travels_as_no_type_and_no_profile(over) {
        let world = World::new(over, Lanes::Many);
        for form in common::FORMS {
            let request = world.request(form, "object").with(|o| { o.string("").u32(0); });
            let mut reply = world.dial().ask(&request).reply();
            assert_eq!((reply.body.string(), reply.body.u32(), reply.body.rest()), (String::new(), 0, &[][..]));
        }
    }

    fn a_reference_travels_in_the_byte_order_of_its_message_and_its_profiles_in_their_own(over) {
        let world = World::new(over, Lanes::Many);
        let own = Ior { type_id: "IDL:A:1.0".to_owned(), profiles: vec![(5, vec![0, 1, 2, 3, 4]), world.profile()] };
        for form in common::FORMS {
            let request = world.request(form, "object").with(|o| own.write(o));
            let mut reply = world.dial().ask(&request).reply();
            assert_eq!(Ior::read(&mut reply.body), own, "{form:?}");
        }
    }

    fn a_plain_key_is_answered_here_or_by_a_forward(over) {
        let world = World::new(over, Lanes::Many);
        let elsewhere = World::new(over, Lanes::Many);
        world.orb.register_plain_key(b"Here", &world.object).unwrap();
        let there = elsewhere.seen_by(&world.orb);
        world.orb.register_plain_key(b"There", &there).unwrap();
        for form in common::FORMS {
            let ask = |key: &[u8]| world.dial().ask(&common::Request::new(form, key, "ping").bare()).reply();
            assert_eq!(ask(b"Here").status, NO_EXCEPTION);
            let mut forward = ask(b"There");
            assert_eq!(forward.status, LOCATION_FORWARD);
            let ior = Ior::read(&mut forward.body);
            assert_eq!(Profile::read(&ior.profiles[0].1).key, elsewhere.key);
        }
        let client = common::client();
        if over == Over::Tcp {
            let url = format!("corbaloc:iiop:1.2@{}/There", world.orb.endpoints()[0]);
            assert_eq!(call(&object(&client, &url), "ping"), Ok(()));
            assert_eq!(elsewhere.probe.calls(), 1);
        }
    }
}

#[test]
fn stringified_references_are_hexadecimal_digits_in_either_case_behind_ior() {
    let client = common::client();
    let ior = Ior {
        type_id: "IDL:J/K:1.0".to_owned(),
        profiles: vec![(
            TAG_INTERNET_IOP,
            iiop_profile(Order::Big, 2, ("ship", 2809), b"\xab\xcd", &[]),
        )],
    };
    let text = ior.text(Order::Big);
    let digits = text.strip_prefix("IOR:").unwrap();
    for text in [
        text.clone(),
        format!("IOR:{}", digits.to_uppercase()),
        format!("ior:{digits}"),
        format!("IoR:{digits}"),
    ] {
        assert_eq!(object(&client, &text).type_id(), "IDL:J/K:1.0", "{text}");
    }
    let own = client.object_to_string(&object(&client, &text));
    assert!(own.starts_with("IOR:0"), "{own}");
}

#[test]
fn a_stringified_nil_is_nil() {
    let client = common::client();
    for order in ORDERS {
        let nil = Ior {
            type_id: String::new(),
            profiles: Vec::new(),
        };
        assert_eq!(client.string_to_object(&nil.text(order)), Ok(None));
    }
}

#[test]
fn texts_that_are_no_reference_are_bad_param_with_the_minor_that_says_why() {
    let client = common::client();
    // Minor codes of BAD_PARAM: 7, the scheme; 8, the address; 9, the rest of the URL; 10, anything else.
    for (text, minor) in [
        ("", 7),
        ("gopher://ship/", 7),
        ("corbalok::ship/K", 7),
        ("no colon", 7),
        ("corbaloc:", 8),
        ("corbaloc:smtp:ship/K", 8),
        ("corbaloc:iiop:x@ship/K", 8),
        ("corbaloc::ship:port/K", 8),
        ("corbaloc::ship:70000/K", 8),
        ("corbaloc::[::1/K", 8),
        ("corbaloc::/K", 8),
        ("corbaloc::ship/K%", 9),
        ("corbaloc::ship/K%4", 9),
        ("corbaloc::ship/K%zz", 9),
        ("IOR:", 10),
        ("IOR:0", 10),
        ("IOR:00zz", 10),
        ("IOR:02", 10),
        ("IOR:00000000ffffffff", 10),
    ] {
        let raised = refused(&client, text);
        assert_eq!(
            (raised.kind, raised.minor),
            (Kind::BadParam, OMG | minor),
            "{text}"
        );
        assert_eq!(raised.completed, Completion::No);
    }
}

#[test]
fn a_corbaloc_has_version_1_0_and_port_2809_where_it_says_nothing() {
    let client = common::client();
    for url in [
        "corbaloc::ship/Key",
        "corbaloc:iiop:ship/Key",
        "corbaloc:IIOP:ship/Key",
    ] {
        let [profile] = profiles(&client, url).try_into().expect("one profile");
        assert_eq!(
            (profile.version, profile.host.as_str(), profile.port),
            ((1, 0), "ship", 2809),
            "{url}"
        );
        assert_eq!(profile.key, b"Key");
    }
}

#[test]
fn a_corbaloc_may_say_version_and_port() {
    let client = common::client();
    for (url, version, port) in [
        ("corbaloc::1.2@ship/Key", (1, 2), 2809),
        ("corbaloc:iiop:1.1@ship:5/Key", (1, 1), 5),
        ("corbaloc::ship:65535/Key", (1, 0), 65535),
    ] {
        let [profile] = profiles(&client, url).try_into().expect("one profile");
        assert_eq!(
            (profile.version, profile.host.as_str(), profile.port),
            (version, "ship", port),
            "{url}"
        );
    }
}

#[test]
fn an_ipv6_address_of_a_corbaloc_stands_in_brackets() {
    let client = common::client();
    let [profile] = profiles(&client, "corbaloc::[2001:db8::7]:99/Key")
        .try_into()
        .expect("one profile");
    assert_eq!((profile.host.as_str(), profile.port), ("2001:db8::7", 99));
}

#[test]
fn the_addresses_of_a_corbaloc_stand_behind_each_other_in_the_reference() {
    let client = common::client();
    let found = profiles(&client, "corbaloc::ship:1,iiop:1.2@port:2,:[::1]:3/Key");
    let addresses: Vec<_> = found
        .iter()
        .map(|profile| (profile.host.as_str(), profile.port, profile.version.1))
        .collect();
    assert_eq!(addresses, [("ship", 1, 0), ("port", 2, 2), ("::1", 3, 0)]);
    assert!(found.iter().all(|profile| profile.key == b"Key"));
}

#[test]
fn the_key_of_a_corbaloc_is_unescaped() {
    let client = common::client();
    for (text, key) in [
        ("Key", &b"Key"[..]),
        ("a%2fb%2Fc", b"a/b/c"),
        ("a/b/c", b"a/b/c"),
        ("%00%ff%25", b"\0\xff%"),
        (";/:?@&=+$,-_.!~*'()", b";/:?@&=+$,-_.!~*'()"),
        ("", b""),
    ] {
        let [profile] = profiles(&client, &format!("corbaloc::ship/{text}"))
            .try_into()
            .expect("one profile");
        assert_eq!(profile.key, key, "{text}");
    }
    let [keyless] = profiles(&client, "corbaloc::ship")
        .try_into()
        .expect("one profile");
    assert_eq!(keyless.key, b"");
}

#[test]
fn rir_is_what_resolve_initial_references_gives_and_nothing_is_the_name_service() {
    let orb = Orb::builder()
        .initial_reference("NameService", "corbaloc::ship/Names")
        .initial_reference("Other", "corbaloc::port/Thing")
        .build()
        .unwrap();
    for (url, host) in [
        ("corbaloc:rir:/Other", "port"),
        ("corbaloc:rir:/NameService", "ship"),
        ("corbaloc:rir:", "ship"),
        ("corbaloc:rir:/", "ship"),
    ] {
        let [profile] = profiles(&orb, url).try_into().expect("one profile");
        assert_eq!(profile.host, host, "{url}");
    }
    assert_eq!(refused(&orb, "corbaloc:rir:/Nobody").kind, Kind::BadParam);
    // `rir:` must be the only address.
    assert_eq!(
        refused(&orb, "corbaloc:rir:,:ship/Other").kind,
        Kind::BadParam
    );
}

#[test]
fn initial_references_are_given_by_ior_corbaloc_and_default_url() {
    let ior = Ior {
        type_id: String::new(),
        profiles: vec![(
            TAG_INTERNET_IOP,
            iiop_profile(Order::Big, 2, ("ship", 1), b"K", &[]),
        )],
    };
    let mut arguments: Vec<String> = [
        "-ORBInitRef",
        &format!("Text={}", ior.text(Order::Big)),
        "-ORBInitRef",
        "Url=corbaloc::port:7/Key",
        "-ORBDefaultInitRef",
        "corbaloc::harbour:9",
        "kept",
    ]
    .map(str::to_owned)
    .to_vec();
    let orb = Orb::init(&mut arguments).unwrap();
    assert_eq!(arguments, ["kept"]);
    for (name, host, key) in [
        ("Text", "ship", &b"K"[..]),
        ("Url", "port", b"Key"),
        ("Unlisted", "harbour", b"Unlisted"),
    ] {
        let found = orb.resolve_initial_references(name).unwrap();
        let profile = Profile::read(&Ior::of_text(&orb.object_to_string(&found)).profiles[0].1);
        assert_eq!(
            (profile.host.as_str(), profile.key.as_slice()),
            (host, key),
            "{name}"
        );
    }
}

#[test]
fn the_components_of_a_profile_are_tag_and_encapsulation() {
    let world = World::new(Over::Tcp, Lanes::Many);
    for (tag, data) in Profile::read(&world.profile().1).components {
        let mut body = Cursor::encapsulated(&data);
        if tag == TAG_CODE_SETS {
            let _ = body.u32(); // The native code set.
            for _ in 0..body.u32() {
                body.u32();
            }
            let _ = body.u32(); // The native wide code set.
            for _ in 0..body.u32() {
                body.u32();
            }
            assert_eq!(body.rest(), b"");
        }
    }
}

/// TCP only: the component holds a host and a port.
#[test]
fn an_alternate_address_of_a_profile_is_tried_too() {
    let world = World::new(Over::Tcp, Lanes::Many);
    let client = common::client();
    let own = Profile::read(&world.profile().1);
    let (host, port) = nowhere();
    for order in ORDERS {
        let mut address = Octets::encapsulation(order);
        address.string(&own.host).u16(own.port);
        let alternate = (TAG_ALTERNATE_IIOP_ADDRESS, address.octets);
        let profile = (
            TAG_INTERNET_IOP,
            iiop_profile(order, 2, (&host, port), &own.key, &[alternate]),
        );
        let ior = Ior {
            type_id: String::new(),
            profiles: vec![profile],
        };
        assert_eq!(
            call(&object(&client, &ior.text(Order::Big)), "ping"),
            Ok(())
        );
    }
}

/// TCP only: a unix socket is in a component, and IIOP 1.0 has no components.
#[test]
fn a_profile_of_1_0_has_no_components_and_serves_all_the_same() {
    let world = World::new(Over::Tcp, Lanes::Many);
    let client = common::client();
    let ior = Ior {
        type_id: String::new(),
        profiles: vec![profile_like(&world, 0, &[])],
    };
    let found = object(&client, &ior.text(Order::Big));
    assert_eq!(
        call_with(&found, "text", &"abc".to_owned()),
        Ok("abc".to_owned())
    );
}

/// TCP only: a URL cannot hold a unix socket.
#[test]
fn a_corbaname_is_resolved_by_the_naming_context_it_names() {
    let found = Ior {
        type_id: "IDL:Found:1.0".to_owned(),
        profiles: vec![(7, vec![1])],
    };
    let answer = found.clone();
    let peer = Peer::answering(Over::Tcp, move |_, asked| {
        asked.answered(NO_EXCEPTION, |o| answer.write(o))
    });
    let client = common::client();
    let port = peer.port();
    for (rest, key, name) in [
        ("#a.b/c", &b"NameService"[..], vec![("a", "b"), ("c", "")]),
        ("/Other#x", b"Other", vec![("x", "")]),
        ("#a%5c.b%20c", b"NameService", vec![("a.b c", "")]),
    ] {
        let url = format!("corbaname::1.2@127.0.0.1:{port}{rest}");
        assert_eq!(object(&client, &url).type_id(), "IDL:Found:1.0", "{url}");
        let mut asked = peer.heard().asked();
        assert!(["resolve", "resolve_str"].contains(&asked.operation.as_str()));
        assert_eq!(asked.key, key, "{url}");
        if asked.operation == "resolve" {
            let count = asked.body.u32();
            let components: Vec<_> = (0..count)
                .map(|_| (asked.body.string(), asked.body.string()))
                .collect();
            let expected: Vec<_> = name
                .iter()
                .map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned()))
                .collect();
            assert_eq!(components, expected, "{url}");
        }
    }
    // Without a name, the URL denotes the context itself, and no request is sent.
    assert_eq!(
        profiles(&client, &format!("corbaname::127.0.0.1:{port}"))[0].key,
        b"NameService"
    );
    assert_eq!(peer.heard_so_far(), 0);
}
