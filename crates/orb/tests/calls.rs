//! Calls over loopback: results, exceptions, order, callbacks, references.

use std::sync::Arc;

use crate::support;
use crate::support::{
    Bench, CallError, Refused, Server, TEST_ID, call, call_back, call_octets, call_refuse,
    call_text, client_of, note, noted, wait_for,
};
use deckwatch_orb::{
    Completion, Counter, Orb, Policies, Servant, ServerRequest, SystemException,
    SystemExceptionKind as Kind,
};

#[test]
fn results_come_back_as_the_servant_gave_them() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    for len in [0, 1, 64, 8_192, 100_000, 3_000_000] {
        let octets: Vec<u8> = (0..len).map(|index| index as u8).collect();
        assert_eq!(call_octets(&bench, &octets).unwrap(), octets);
    }
    assert_eq!(call_text(&bench, "plain text").unwrap(), "plain text");
    assert_eq!(server.orb.counters().read(Counter::ConnectionsAccepted), 1);
}

#[test]
fn exceptions_come_back_with_their_members_and_completion() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    assert_eq!(
        call_refuse(&bench, 17),
        Err(CallError::Refused(Refused { code: 17 }))
    );
    assert_eq!(
        call(&bench, "fail"),
        Err(SystemException::new(Kind::NoPermission, 7, Completion::Yes))
    );
    assert_eq!(
        call(&bench, "nonsense").unwrap_err().kind,
        Kind::BadOperation
    );
    // A user exception that is not in the operation's raises clause.
    let unknown: Result<(), SystemException> =
        bench.invoke("refuse", |w| w.write_u32(1), |_| Ok(()), |_, _| Ok(None));
    assert_eq!(unknown.unwrap_err().kind, Kind::Unknown);
}

#[test]
fn a_servant_that_panics_raises_unknown_and_hurts_nobody_else() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let raised = call(&bench, "panic").unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Unknown, Completion::Maybe)
    );
    assert_eq!(call(&bench, "ping"), Ok(()));
    assert_eq!(server.orb.counters().read(Counter::ServantPanics), 1);
    assert_eq!(server.orb.counters().read(Counter::ConnectionsAccepted), 1);
}

#[test]
fn oneways_are_served_in_the_order_of_their_calls() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    for value in 0..5_000 {
        note(&bench, value).unwrap();
    }
    wait_for(|| noted(&bench).unwrap() == 5_000);
    assert!(
        server
            .bench
            .order
            .lock()
            .unwrap()
            .iter()
            .copied()
            .eq(0..5_000)
    );
}

#[test]
fn a_servant_may_call_back_its_client_and_that_one_again() {
    let server = Server::start();
    let (client, bench) = client_of(&server);
    let root = client.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let here: Arc<dyn Servant> = Arc::new(Bench::default());
    let own = root.servant_to_reference(&here).unwrap();
    assert_eq!(call_back(&bench, &own).unwrap(), b"called back");
    // The callback may go to the caller itself, while its only other thread serves this call.
    assert_eq!(call_back(&bench, &bench).unwrap(), b"called back");
}

#[test]
fn calls_of_many_threads_get_each_its_own_reply() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let callers: Vec<_> = (0..8_u8)
        .map(|caller| {
            let bench = bench.clone();
            std::thread::spawn(move || {
                for len in 0..200 {
                    let octets = vec![caller; len];
                    assert_eq!(call_octets(&bench, &octets).unwrap(), octets);
                }
            })
        })
        .collect();
    callers
        .into_iter()
        .for_each(|caller| caller.join().unwrap());
}

#[test]
fn more_clients_than_threads_meet_in_one_operation() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let callers: Vec<_> = (0..12)
        .map(|_| {
            let bench = bench.clone();
            std::thread::spawn(move || call(&bench, "meet"))
        })
        .collect();
    server.bench.gate.wait_for_arrivals(12);
    assert_eq!(
        call_text(&bench, "served meanwhile").unwrap(),
        "served meanwhile"
    );
    server.bench.gate.open();
    callers
        .into_iter()
        .for_each(|caller| caller.join().unwrap().unwrap());
}

#[test]
fn every_object_answers_what_it_is() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    assert_eq!(bench.type_id(), support::TEST_ID);
    assert_eq!(bench.is_a("IDL:deckwatch.test/Base:1.0"), Ok(true));
    assert_eq!(bench.is_a("IDL:deckwatch.test/Other:1.0"), Ok(false));
    assert_eq!(bench.is_a("IDL:omg.org/CORBA/Object:1.0"), Ok(true));
    assert_eq!(bench.non_existent(), Ok(false));
    assert_eq!(
        call(&bench, "_interface").unwrap_err().kind,
        Kind::IntfRepos
    );
    assert!(bench.is_equivalent(&bench.clone()));
}

#[test]
fn an_object_that_was_deactivated_does_not_exist() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let servant: Arc<dyn Servant> = server.bench.clone();
    let id = server.root.servant_to_id(&servant).unwrap();
    assert_eq!(call(&bench, "ping"), Ok(()));
    server.root.deactivate_object(&id).unwrap();
    assert_eq!(call(&bench, "ping").unwrap_err().kind, Kind::ObjectNotExist);
    assert_eq!(bench.non_existent(), Ok(true));
    // The slot is used again, with another object key.
    let again = server.root.servant_to_reference(&servant).unwrap();
    assert_ne!(again, bench);
    assert_eq!(call(&again, "ping"), Ok(()));
    assert_eq!(call(&bench, "ping").unwrap_err().kind, Kind::ObjectNotExist);
}

#[test]
fn a_persistent_reference_outlives_its_orb_and_a_transient_one_does_not() {
    let start = |endpoint: &str| {
        let server = Server::at(endpoint);
        let poa = server
            .root
            .create_poa("store", None, &Policies::persistent())
            .unwrap();
        poa.the_poa_manager().activate().unwrap();
        poa.activate_object_with_id(b"bench", Arc::new(Bench::default()))
            .unwrap();
        let persistent = poa.id_to_reference(b"bench").unwrap().to_string();
        (server, persistent)
    };
    let (first, text) = start("127.0.0.1:0");
    let (client, transient) = client_of(&first);
    let persistent = client.string_to_object(&text).unwrap().unwrap();
    assert_eq!(
        (call(&persistent, "ping"), call(&transient, "ping")),
        (Ok(()), Ok(()))
    );
    let endpoint = first.orb.endpoints()[0].to_string();
    first.orb.shutdown(true).expect("it ends");
    let (second, again) = start(&endpoint);
    assert_eq!(again, text);
    assert_eq!(call(&persistent, "ping"), Ok(()));
    assert_eq!(
        call(&transient, "ping").unwrap_err().kind,
        Kind::ObjectNotExist
    );
    second.orb.shutdown(true).expect("it ends");
}

#[test]
fn a_manager_turns_requests_away_while_it_discards_and_holds_them_while_it_holds() {
    let server = Server::start();
    let (_orb, bench) = client_of(&server);
    let manager = server.root.the_poa_manager();
    manager.discard_requests(false).unwrap();
    assert_eq!(call(&bench, "ping").unwrap_err().kind, Kind::Transient);
    manager.hold_requests(false).unwrap();
    let held = std::thread::spawn({
        let bench = bench.clone();
        move || call(&bench, "ping")
    });
    manager.activate().unwrap();
    assert_eq!(held.join().unwrap(), Ok(()));
    manager.deactivate(false, false).unwrap();
    assert_eq!(call(&bench, "ping").unwrap_err().kind, Kind::ObjAdapter);
}

#[test]
fn text_beyond_ascii_travels_as_utf_8_where_both_have_it() {
    let server = Server::start();
    let (client, bench) = client_of(&server);
    assert_eq!(
        call_text(&bench, "Schiff \u{2693}").unwrap(),
        "Schiff \u{2693}"
    );
    // Without the component, no code set is negotiated. The fallback is ISO 8859-1, which has no anchor character.
    let endpoint = &server.orb.endpoints()[0];
    server.orb.register_plain_key(b"Bench", &bench).unwrap();
    let plain = client
        .string_to_object(&format!("corbaloc:iiop:1.2@{endpoint}/Bench"))
        .unwrap()
        .unwrap();
    assert_eq!(call_text(&plain, "gr\u{fc}n").unwrap(), "gr\u{fc}n");
    assert_eq!(
        call_text(&plain, "\u{2693}").unwrap_err().kind,
        Kind::DataConversion
    );
}

#[test]
fn a_plain_key_leads_to_its_object_in_every_giop_version_and_to_another_server_by_a_forward() {
    let server = Server::start();
    let (client, bench) = client_of(&server);
    let here = server.orb.string_to_object(&server.text).unwrap().unwrap();
    server.orb.register_plain_key(b"Bench", &here).unwrap();
    let gateway = Server::start();
    gateway.orb.register_plain_key(b"Bench", &bench).unwrap();
    for (endpoint, forwards) in [
        (&server.orb.endpoints()[0], 0),
        (&gateway.orb.endpoints()[0], 1),
    ] {
        for version in ["1.0", "1.1", "1.2"] {
            let before = client.counters().read(Counter::Forwards);
            let url = format!("corbaloc:iiop:{version}@{endpoint}/Bench");
            let found = client.string_to_object(&url).unwrap().unwrap();
            assert_eq!(call_octets(&found, b"abc").unwrap(), b"abc", "{url}");
            assert_eq!(call_octets(&found, b"def").unwrap(), b"def", "{url}");
            assert_eq!(
                call_refuse(&found, 3),
                Err(CallError::Refused(Refused { code: 3 })),
                "{url}"
            );
            assert_eq!(
                client.counters().read(Counter::Forwards) - before,
                forwards,
                "{url}"
            );
        }
    }
    let nobody = client
        .string_to_object(&format!("corbaloc::{}/Nobody", server.orb.endpoints()[0]))
        .unwrap()
        .unwrap();
    assert_eq!(
        call(&nobody, "ping").unwrap_err().kind,
        Kind::ObjectNotExist
    );
}

#[test]
fn initial_references_are_found_by_name_and_what_is_no_reference_is_refused() {
    let server = Server::start();
    let orb = Orb::init(&mut vec![
        "-ORBInitRef".into(),
        format!("Bench={}", server.text),
    ])
    .unwrap();
    assert_eq!(
        call(&orb.resolve_initial_references("Bench").unwrap(), "ping"),
        Ok(())
    );
    assert_eq!(
        call(
            &orb.string_to_object("corbaloc:rir:/Bench")
                .unwrap()
                .unwrap(),
            "ping"
        ),
        Ok(())
    );
    assert_eq!(
        orb.resolve_initial_references("Nobody").unwrap_err().kind,
        Kind::BadParam
    );
    for wrong in ["", "IOR:", "IOR:0", "http://ship/", "corbaloc:", "IOR:zz"] {
        assert_eq!(
            orb.string_to_object(wrong).unwrap_err().kind,
            Kind::BadParam,
            "{wrong}"
        );
    }
}

#[test]
fn initial_references_that_lead_to_each_other_are_a_wrong_text_and_no_endless_way() {
    let orb = Orb::builder()
        .initial_reference("NameService", "corbaloc:rir:/Other")
        .initial_reference("Other", "corbaname:rir:#name")
        .initial_reference("Real", "corbaloc::127.0.0.1:9/there")
        .initial_reference("Alias", "corbaloc:rir:/Real")
        .build()
        .unwrap();
    for name in ["NameService", "Other"] {
        let raised = orb.resolve_initial_references(name).unwrap_err();
        assert_eq!(raised.kind, Kind::BadParam);
    }
    assert!(orb.resolve_initial_references("Alias").is_ok());
}

/// A servant whose `drop` panics.
struct Doomed(Arc<Bench>);

impl Servant for Doomed {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        self.0.dispatch(request)
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        panic!("a servant panics at its end, as the test asked it to");
    }
}

#[test]
fn a_servant_that_panics_at_its_end_takes_no_thread_of_the_lane_with_it() {
    let server = Server::shaped(|builder| builder.threads(1).dynamic_threads(0));
    let (client, other) = client_of(&server);
    let bench = Arc::new(Bench::default());
    let id = server
        .root
        .activate_object(Arc::new(Doomed(bench.clone())))
        .unwrap();
    let text = server.root.id_to_reference(&id).unwrap().to_string();
    let doomed = client.string_to_object(&text).unwrap().unwrap();
    let caller = std::thread::spawn(move || call(&doomed, "meet"));
    bench.gate.wait_for_arrivals(1);
    // The request holds the last reference to the servant.
    server.root.deactivate_object(&id).unwrap();
    bench.gate.open();
    let raised = caller.join().unwrap().unwrap_err();
    assert_eq!(
        (raised.kind, raised.completed),
        (Kind::Unknown, Completion::Maybe)
    );
    assert_eq!(server.orb.counters().read(Counter::ServantPanics), 1);
    assert_eq!(call(&other, "ping"), Ok(()));
}
