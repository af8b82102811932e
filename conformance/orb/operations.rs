//! The ORB's own operations by clause (CORBA 3.3 part 1, clause 8): references, initial services, start and end.

use std::collections::HashSet;
use std::sync::mpsc::channel;

use crate::common;
use crate::common::ior::{Ior, TAG_INTERNET_IOP, iiop_profile};
use crate::common::message::{CLOSE_CONNECTION, NO_EXCEPTION, SYSTEM_EXCEPTION};
use crate::common::servant::{BASE_ID, PROBE_ID, call, call_with, note};
use crate::common::{Lanes, OMG, Order, Over, Peer, World, over_each};
use deckwatch_orb::{Completion, ObjectRef, Orb, SystemException, SystemExceptionKind as Kind};

const OBJECT_ID: &str = "IDL:omg.org/CORBA/Object:1.0";

/// The exception of every operation after the ORB has been shut down.
const SHUT_DOWN: SystemException = SystemException::new(Kind::BadInvOrder, OMG | 4, Completion::No);

fn named(host: &str, key: &str) -> String {
    let profile = iiop_profile(Order::Big, 2, (host, 2809), key.as_bytes(), &[]);
    Ior {
        type_id: "IDL:Some/Thing:1.0".to_owned(),
        profiles: vec![(TAG_INTERNET_IOP, profile)],
    }
    .text(Order::Big)
}

fn object(orb: &Orb, text: &str) -> ObjectRef {
    orb.string_to_object(text)
        .expect("a reference")
        .expect("not nil")
}

over_each! {
    fn a_stringified_reference_leads_to_the_same_object_in_every_orb(over) {
        let world = World::new(over, Lanes::Many);
        let text = world.orb.object_to_string(&world.object);
        for orb in [world.orb.clone(), common::client(), common::client()] {
            let found = object(&orb, &text);
            assert!(found.is_equivalent(&world.object));
            assert_eq!(orb.object_to_string(&found), text);
            assert_eq!(call(&found, "ping"), Ok(()));
        }
    }

    fn is_a_asks_the_object_where_the_reference_does_not_tell(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let mut ior = Ior::of_text(&world.orb.object_to_string(&world.object));
        ior.type_id = "IDL:Something/Else:1.0".to_owned();
        let found = object(&client, &ior.text(Order::Big));
        for (id, expected) in [(PROBE_ID, true), (BASE_ID, true), (OBJECT_ID, true), ("IDL:No/Such:1.0", false)] {
            assert_eq!(found.is_a(id), Ok(expected), "{id}");
        }
    }

    fn is_a_of_the_references_own_type_and_of_object_asks_nobody(over) {
        let peer = Peer::answering(over, |_, asked| {
            asked.answered(NO_EXCEPTION, |o| { o.u8(1); })
        });
        let client = common::client();
        let found = peer.seen_by(&client, 2);
        assert_eq!((found.is_a("IDL:conformance/Fake:1.0"), found.is_a(OBJECT_ID)), (Ok(true), Ok(true)));
        assert_eq!(peer.heard_so_far(), 0);
        assert_eq!(found.is_a("IDL:Other:1.0"), Ok(true));
        let mut asked = peer.heard().asked();
        assert_eq!((asked.operation.as_str(), asked.body.string().as_str()), ("_is_a", "IDL:Other:1.0"));
    }

    fn non_existent_is_true_where_the_server_says_so_and_raises_where_nobody_can_say(over) {
        for (answer, expected) in [
            (None, Ok(true)),
            (Some("OBJECT_NOT_EXIST"), Ok(true)),
            (Some("NO_PERMISSION"), Err(Kind::NoPermission)),
            (Some("TRANSIENT"), Err(Kind::Transient)),
        ] {
            let peer = Peer::answering(over, move |_, asked| {
                assert_eq!(asked.asked().operation, "_non_existent");
                match answer {
                    None => asked.answered(NO_EXCEPTION, |o| { o.u8(1); }),
                    Some(name) => asked.answered(SYSTEM_EXCEPTION, |o| {
                        o.string(&format!("IDL:omg.org/CORBA/{name}:1.0")).u32(0).u32(1);
                    }),
                }
            });
            let client = common::client();
            let found = peer.seen_by(&client, 2).non_existent();
            assert_eq!(found.map_err(|raised| raised.kind), expected, "{answer:?}");
        }
    }

    fn interface_without_a_repository_is_intf_repos(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        assert_eq!(world.seen_by(&client).interface().unwrap_err().kind, Kind::IntfRepos);
        assert_eq!(world.seen_by(&client).component(), Ok(None), "an object that is no component");
    }

    fn a_servant_that_panics_is_unknown_and_nobody_else_is_hurt(over) {
        let world = World::new(over, Lanes::OneThread);
        let client = common::client();
        let found = world.seen_by(&client);
        let raised = call(&found, "panic").unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::Unknown, Completion::Maybe));
        assert_eq!(call(&found, "ping"), Ok(()));
    }

    fn shutdown_lets_requests_in_progress_finish_and_takes_no_new_ones(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let found = world.seen_by(&client);
        let meeting = std::thread::spawn({
            let found = found.clone();
            move || call(&found, "meet")
        });
        world.probe.gate.wait_for_arrivals(1);
        let mut idle = world.dial();
        assert_eq!(idle.ask(&world.request((2, Order::Big), "ping").bare()).reply().status, NO_EXCEPTION);
        let ending = std::thread::spawn({
            let orb = world.orb.clone();
            move || orb.shutdown(true)
        });
        world.probe.gate.open();
        assert_eq!(meeting.join().unwrap(), Ok(()));
        assert_eq!(idle.hear().expect("a farewell").kind(), CLOSE_CONNECTION);
        assert_eq!(ending.join().unwrap(), Ok(()));
        assert!(matches!(call(&found, "ping").unwrap_err().kind, Kind::Transient | Kind::CommFailure));
    }

    fn run_returns_when_the_orb_is_shut_down(over) {
        let world = World::new(over, Lanes::Many);
        let (ended, end) = channel();
        let runner = std::thread::spawn({
            let orb = world.orb.clone();
            move || {
                let _ = ended.send(orb.run()); // It may be gone already.
            }
        });
        let client = common::client();
        assert_eq!(call(&world.seen_by(&client), "ping"), Ok(()));
        assert!(end.try_recv().is_err(), "it runs");
        world.orb.shutdown(true).expect("it ends");
        // A thread that starts late finds the ORB already shut down.
        let ran = end.recv_timeout(common::PATIENCE).expect("it returns");
        assert!(matches!(ran, Ok(()) | Err(SHUT_DOWN)), "{ran:?}");
        runner.join().unwrap();
        // After the shutdown, `run` and a second `shutdown` raise.
        assert_eq!((world.orb.shutdown(true), world.orb.run()), (Err(SHUT_DOWN), Err(SHUT_DOWN)));
    }

    fn after_shutdown_every_operation_is_bad_inv_order(over) {
        let world = World::new(over, Lanes::Many);
        let orb = World::new(over, Lanes::Many);
        let found = world.seen_by(&orb.orb);
        assert_eq!(call(&found, "ping"), Ok(()));
        orb.orb.shutdown(true).expect("it ends");
        assert_eq!(call(&found, "ping"), Err(SHUT_DOWN));
        assert_eq!(note(&found, 1), Err(SHUT_DOWN));
        assert_eq!(orb.orb.root_poa().map(drop), Err(SHUT_DOWN));
        assert_eq!(orb.orb.string_to_object(&named("ship", "K")).map(drop), Err(SHUT_DOWN));
        assert_eq!(orb.orb.resolve_initial_references("NameService").map(drop), Err(SHUT_DOWN));
        assert_eq!(orb.orb.register_plain_key(b"K", &found), Err(SHUT_DOWN));
        // Other ORBs keep running.
        assert_eq!(call(&world.object, "ping"), Ok(()));
    }

    fn orbs_of_one_process_are_apart(over) {
        let one = World::new(over, Lanes::Many);
        let other = World::new(over, Lanes::Many);
        assert_ne!(one.orb.endpoints(), other.orb.endpoints());
        assert!(!one.object.is_equivalent(&other.object));
        one.orb.register_initial_reference("Here", &one.object);
        assert!(other.orb.resolve_initial_references("Here").is_err());
        one.orb.shutdown(true).expect("it ends");
        let client = common::client();
        assert_eq!(call(&other.seen_by(&client), "ping"), Ok(()));
    }

    fn a_client_that_never_listens_calls_all_the_same(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        assert_eq!(call_with(&world.seen_by(&client), "number", &7_u64), Ok(7));
        assert!(client.endpoints().is_empty());
    }
}

#[test]
fn references_are_equivalent_by_their_address_and_key() {
    let orb = common::client();
    let one = object(&orb, &named("ship", "K"));
    assert!(one.is_equivalent(&one.clone()));
    assert!(one.is_equivalent(&object(&orb, &named("ship", "K"))));
    assert!(one.is_equivalent(&object(&orb, "corbaloc::1.2@ship/K")));
    assert!(!one.is_equivalent(&object(&orb, &named("ship", "L"))));
    assert!(!one.is_equivalent(&object(&orb, &named("port", "K"))));
}

#[test]
fn hash_is_equal_for_equivalent_references_never_changes_and_stays_below_its_maximum() {
    let orb = common::client();
    let one = object(&orb, &named("ship", "K"));
    for maximum in [1, 7, 1_000, u32::MAX] {
        let hash = one.hash(maximum);
        assert!(hash <= maximum);
        assert_eq!(hash, one.clone().hash(maximum));
        assert_eq!(
            hash,
            object(&common::client(), "corbaloc::1.2@ship/K").hash(maximum)
        );
    }
    let many: HashSet<u32> = (0..100)
        .map(|key| object(&orb, &named("ship", &key.to_string())).hash(u32::MAX))
        .collect();
    assert!(many.len() > 90, "{} of 100 differ", many.len());
}

#[test]
fn initial_services_are_listed_resolved_and_registered() {
    let orb = Orb::builder()
        .initial_reference("Given", &named("ship", "G"))
        .build()
        .unwrap();
    assert_eq!(
        orb.resolve_initial_references("Given")
            .unwrap()
            .object_key(),
        Some(&b"G"[..])
    );
    let raised = orb.resolve_initial_references("Nobody").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::BadParam, Completion::No)
    );
    let registered = object(&orb, &named("ship", "R"));
    orb.register_initial_reference("Registered", &registered);
    assert_eq!(orb.resolve_initial_references("Registered"), Ok(registered));
    let mut names = orb.list_initial_services();
    names.sort();
    assert_eq!(names, ["Given", "Registered"]);
}

#[test]
fn orb_init_takes_its_own_arguments_and_leaves_the_others_in_their_order() {
    let mut arguments: Vec<String> = [
        "a",
        "-ORBRoundTripTimeout",
        "1000",
        "-b",
        "-ORBInitRef",
        "X=corbaloc::ship/X",
        "c",
    ]
    .map(str::to_owned)
    .to_vec();
    let orb = Orb::init(&mut arguments).unwrap();
    assert_eq!(arguments, ["a", "-b", "c"]);
    assert!(orb.resolve_initial_references("X").is_ok());
    for wrong in [
        &["-ORBNoSuch", "x"][..],
        &["-ORBInitRef"],
        &["-ORBInitRef", "no equals sign"],
    ] {
        let mut arguments: Vec<String> = wrong
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        assert!(Orb::init(&mut arguments).is_err(), "{wrong:?}");
    }
}

#[test]
fn an_orb_has_the_id_that_orb_init_was_given() {
    let mut arguments: Vec<String> = ["-ORBid", "bridge"].map(str::to_owned).to_vec();
    let orb = Orb::init(&mut arguments).unwrap();
    assert_eq!((orb.id(), arguments.len()), ("bridge", 0));
    assert_eq!(common::client().id(), "");
}

#[test]
fn a_reference_with_no_profile_of_ours_is_inv_objref_when_it_is_called() {
    let orb = common::client();
    let ior = Ior {
        type_id: "IDL:Far/Away:1.0".to_owned(),
        profiles: vec![(0x4242_4242, vec![1, 2, 3])],
    };
    let raised = call(&object(&orb, &ior.text(Order::Big)), "ping").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::InvObjref, Completion::No)
    );
}

#[test]
fn a_profile_that_cannot_be_read_is_passed_over_and_alone_it_is_inv_objref() {
    let world = World::new(Over::Tcp, Lanes::Many);
    let orb = common::client();
    let broken = (TAG_INTERNET_IOP, vec![0, 1, 2, 0, 0, 0, 0, 99, b'x']);
    let both = Ior {
        type_id: String::new(),
        profiles: vec![broken.clone(), world.profile()],
    };
    assert_eq!(call(&object(&orb, &both.text(Order::Big)), "ping"), Ok(()));
    let alone = Ior {
        type_id: "IDL:X:1.0".to_owned(),
        profiles: vec![broken],
    };
    let raised = match orb.string_to_object(&alone.text(Order::Big)) {
        Ok(found) => call(&found.expect("not nil"), "ping").unwrap_err(),
        Err(raised) => raised,
    };
    assert!(
        matches!(raised.kind, Kind::InvObjref | Kind::BadParam),
        "{raised:?}"
    );
}
