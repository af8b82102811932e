//! POA managers: the treatment of requests in each state, the operations that wait, and the factory that finds managers
//! by name.

use std::sync::Arc;

use crate::support::{Bench, Server, TEST_ID, call, client_of, seen_by, wait_for};
use deckwatch_orb::{
    Completion, Counter, ManagerAlreadyExists, ManagerState, PoaManager, PoaManagerError, Policies,
    Servant, ServerRequest, SystemException, SystemExceptionKind as Kind, minor,
};

fn raised(kind: Kind, minor: u32) -> SystemException {
    SystemException::new(kind, minor, Completion::No)
}

#[test]
fn requests_are_held_served_discarded_and_refused_as_the_state_says() {
    let server = Server::start();
    let (_client, bench) = client_of(&server);
    let manager = server.root.the_poa_manager();
    assert_eq!(manager.state(), ManagerState::Active);
    manager.discard_requests(true).unwrap();
    let discarded = raised(Kind::Transient, minor::REQUEST_DISCARDED);
    assert_eq!(call(&bench, "ping"), Err(discarded));
    assert_eq!(server.orb.counters().read(Counter::RequestsDiscarded), 1);
    manager.hold_requests(true).unwrap();
    let held = std::thread::spawn({
        let bench = bench.clone();
        move || call(&bench, "ping")
    });
    manager.activate().unwrap();
    assert_eq!(held.join().unwrap(), Ok(()));
    manager.deactivate(true, true).unwrap();
    let inactive = raised(Kind::ObjAdapter, minor::ADAPTER_UNAVAILABLE);
    assert_eq!(call(&bench, "ping"), Err(inactive));
    assert_eq!(manager.state(), ManagerState::Inactive);
    for again in [
        manager.activate(),
        manager.hold_requests(false),
        manager.discard_requests(false),
        manager.deactivate(false, false),
    ] {
        assert_eq!(again, Err(PoaManagerError::AdapterInactive));
    }
}

#[test]
fn a_manager_that_is_told_to_wait_returns_when_the_last_request_has_ended() {
    let server = Server::start();
    let (_client, bench) = client_of(&server);
    for change in [
        (|manager| manager.hold_requests(true)) as fn(&PoaManager) -> _,
        |manager| manager.discard_requests(true),
        |manager| manager.deactivate(true, true),
    ] {
        let meeting = std::thread::spawn({
            let bench = bench.clone();
            move || call(&bench, "meet")
        });
        server.bench.gate.wait_for_arrivals(1);
        let waiting = std::thread::spawn({
            let manager = server.root.the_poa_manager().clone();
            move || change(&manager)
        });
        wait_for(|| server.root.the_poa_manager().state() != ManagerState::Active);
        assert!(!waiting.is_finished() && !meeting.is_finished());
        server.bench.gate.open();
        assert_eq!(waiting.join().unwrap(), Ok(()));
        assert_eq!(meeting.join().unwrap(), Ok(()));
        server.bench.gate.close();
        let _ = server.root.the_poa_manager().activate(); // It may be inactive for good by then.
    }
}

#[test]
fn a_held_request_sees_what_was_activated_and_what_was_destroyed_meanwhile() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = server
        .root
        .create_poa("held", None, &Policies::persistent())
        .unwrap();
    assert_eq!(poa.the_poa_manager().state(), ManagerState::Holding);
    let ask = |id: &[u8]| {
        let made = poa.create_reference_with_id(id, TEST_ID).unwrap();
        let object = seen_by(&client, &made);
        std::thread::spawn(move || call(&object, "ping"))
    };
    poa.activate_object_with_id(b"leaves", Arc::new(Bench::default()))
        .unwrap();
    let (comes, leaves) = (ask(b"comes"), ask(b"leaves"));
    poa.activate_object_with_id(b"comes", Arc::new(Bench::default()))
        .unwrap();
    poa.deactivate_object(b"leaves").unwrap();
    poa.the_poa_manager().activate().unwrap();
    assert_eq!(comes.join().unwrap(), Ok(()));
    let unknown = raised(Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN);
    assert_eq!(leaves.join().unwrap(), Err(unknown));
}

struct Waits(PoaManager);

impl Servant for Waits {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let changed = match request.operation() {
            b"hold" => self.0.hold_requests(true),
            b"discard" => self.0.discard_requests(true),
            b"deactivate" => self.0.deactivate(true, true),
            _ => self.0.discard_requests(false),
        };
        match changed {
            Ok(()) => request.reply().map(drop),
            Err(PoaManagerError::System(exception)) => Err(exception),
            Err(PoaManagerError::AdapterInactive) => Err(raised(Kind::Internal, 0)),
        }
    }
}

#[test]
fn a_servant_may_not_wait_for_requests_to_end_and_changes_nothing_by_trying() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let manager = server.root.the_poa_manager();
    let servant: Arc<dyn Servant> = Arc::new(Waits(manager.clone()));
    let made = server.root.servant_to_reference(&servant).unwrap();
    let object = seen_by(&client, &made);
    let deadlock = raised(Kind::BadInvOrder, minor::WOULD_DEADLOCK);
    for operation in ["hold", "discard", "deactivate"] {
        assert_eq!(call(&object, operation), Err(deadlock));
        assert_eq!(manager.state(), ManagerState::Active);
    }
    assert_eq!(call(&object, "go"), Ok(()));
    assert_eq!(manager.state(), ManagerState::Discarding);
}

#[test]
fn a_manager_governs_the_adapters_that_it_was_given_to_and_no_others() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let factory = server.root.the_poa_manager_factory().unwrap();
    let manager = factory.create_poa_manager("shared").unwrap();
    manager.activate().unwrap();
    let objects: Vec<_> = [Some(&manager), Some(&manager), None]
        .iter()
        .zip(["a", "b", "c"])
        .map(|(manager, name)| {
            let poa = server
                .root
                .create_poa(name, *manager, &Policies::default())
                .unwrap();
            if manager.is_none() {
                poa.the_poa_manager().activate().unwrap();
            }
            let id = poa.activate_object(Arc::new(Bench::default())).unwrap();
            let made = poa.id_to_reference(&id).unwrap().to_string();
            client.string_to_object(&made).unwrap().unwrap()
        })
        .collect();
    manager.discard_requests(false).unwrap();
    let served: Vec<_> = objects.iter().map(|it| call(it, "ping").is_ok()).collect();
    assert_eq!(served, [false, false, true]);
}

#[test]
fn managers_are_found_by_name_as_long_as_somebody_has_them() {
    let server = Server::start();
    let factory = server.root.the_poa_manager_factory().unwrap();
    let before = factory.list().len();
    let manager = factory.create_poa_manager("radar").unwrap();
    assert_eq!(manager.id(), "radar");
    assert_eq!(manager.state(), ManagerState::Holding);
    assert_eq!(
        factory.create_poa_manager("radar").err(),
        Some(ManagerAlreadyExists)
    );
    assert_eq!(factory.find("radar"), Some(manager.clone()));
    assert_eq!(factory.find("sonar"), None);
    assert_eq!(factory.list().len(), before + 1);
    let poa = server
        .root
        .create_poa("own", None, &Policies::default())
        .unwrap();
    let own = poa.the_poa_manager();
    assert_eq!(factory.find(own.id()), Some(own.clone()));
    drop(manager);
    assert_eq!(factory.find("radar"), None);
    assert!(factory.create_poa_manager("radar").is_ok());
}

#[test]
fn the_end_of_the_orb_turns_held_requests_away() {
    let server = Server::start();
    let (_client, bench) = client_of(&server);
    server.root.the_poa_manager().hold_requests(true).unwrap();
    let held = std::thread::spawn(move || call(&bench, "ping"));
    // The request may be held already or come after the shutdown. In both cases it is not served, and it ends.
    server.orb.shutdown(true).expect("it ends");
    assert!(held.join().unwrap().is_err());
    assert_eq!(
        server.bench.calls.load(std::sync::atomic::Ordering::SeqCst),
        0
    );
}
