//! Servant activators and servant locators: when they are called, and how their exceptions reach the client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{
    Bench, Gate, Server, TEST_ID, call, call_octets, client_of, forged, seen_by, wait_for,
};
use deckwatch_orb::limits::OBJECT_ID_SIZE_MAX;
use deckwatch_orb::{
    Completion, Cookie, Counter, ForwardRequest, IdAssignment, IdUniqueness, Lifespan, ObjectKey,
    ObjectRef, Poa, PoaError, Policies, RequestProcessing, Servant, ServantActivator,
    ServantLocator, ServantManager, ServantManagerError, ServantRetention, SystemException,
    SystemExceptionKind as Kind, minor,
};

fn raised(kind: Kind, minor: u32) -> SystemException {
    SystemException::new(kind, minor, Completion::No)
}

/// The events, in order.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn await_len(&self, len: usize) -> Vec<String> {
        wait_for(|| self.0.lock().unwrap().len() >= len);
        self.read()
    }
}

/// A servant activator that creates benches; the object id selects an error.
#[derive(Default)]
struct Activator {
    log: Log,
    elsewhere: Mutex<Option<ObjectRef>>,
    /// The gate that `etherealize` waits for.
    gate: Option<Arc<Gate>>,
    shared: Option<Arc<Bench>>,
    within: AtomicUsize,
    overlaps: AtomicUsize,
}

impl Activator {
    fn enter(&self) {
        if self.within.fetch_add(1, Ordering::SeqCst) != 0 {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        std::thread::yield_now();
    }

    fn leave(&self) {
        self.within.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ServantActivator for Activator {
    fn incarnate(
        &self,
        object_id: &[u8],
        adapter: &Poa,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.enter();
        let id = String::from_utf8_lossy(object_id).into_owned();
        self.log
            .note(format!("incarnate {id} at {}", adapter.the_name()));
        self.leave();
        match object_id {
            b"elsewhere" => {
                let forward_reference = self.elsewhere.lock().unwrap().clone().unwrap();
                Err(ForwardRequest { forward_reference }.into())
            }
            b"missing" => Err(raised(Kind::ObjectNotExist, 77).into()),
            b"panic" => panic!("an activator panics, as the test asked it to"),
            _ => match &self.shared {
                Some(shared) => Ok(Arc::clone(shared) as Arc<dyn Servant>),
                None => Ok(Arc::new(Bench::default())),
            },
        }
    }

    fn etherealize(
        &self,
        object_id: &[u8],
        _: &Poa,
        servant: Arc<dyn Servant>,
        cleanup_in_progress: bool,
        remaining_activations: bool,
    ) {
        self.enter();
        let id = String::from_utf8_lossy(object_id).into_owned();
        self.log.note(format!(
            "etherealize {id} {cleanup_in_progress} {remaining_activations}"
        ));
        if let Some(gate) = &self.gate {
            gate.pass();
        }
        drop(servant);
        self.leave();
    }
}

fn activator_policies() -> Policies {
    Policies {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::UserId,
        request_processing: RequestProcessing::UseServantManager,
        ..Policies::default()
    }
}

fn locator_policies() -> Policies {
    Policies {
        servant_retention: ServantRetention::NonRetain,
        ..activator_policies()
    }
}

fn poa_with(server: &Server, policies: &Policies, manager: ServantManager) -> Poa {
    let manager_of_root = server.root.the_poa_manager();
    let poa = server
        .root
        .create_poa("made", Some(manager_of_root), policies)
        .unwrap();
    poa.set_servant_manager(manager).unwrap();
    poa
}

/// A reference of `poa` in another client.
fn reference(client: &deckwatch_orb::Orb, poa: &Poa, id: &[u8]) -> ObjectRef {
    let made = poa.create_reference_with_id(id, TEST_ID).unwrap();
    seen_by(client, &made)
}

#[test]
fn an_activator_makes_a_servant_once_and_the_object_stays_active() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let activator = Arc::new(Activator::default());
    let manager = ServantManager::Activator(activator.clone());
    let poa = poa_with(&server, &activator_policies(), manager);
    let object = reference(&client, &poa, b"one");
    assert_eq!(
        poa.id_to_servant(b"one").err(),
        Some(PoaError::ObjectNotActive)
    );
    for _ in 0..3 {
        assert_eq!(call_octets(&object, b"abc").unwrap(), b"abc");
    }
    assert_eq!(activator.log.read(), ["incarnate one at made"]);
    assert!(poa.id_to_servant(b"one").is_ok());
    assert_eq!(object.non_existent(), Ok(false));
}

#[test]
fn what_an_activator_raises_goes_to_the_caller_and_a_panic_is_unknown() {
    let server = Server::start();
    let (client, bench) = client_of(&server);
    let activator = Arc::new(Activator::default());
    *activator.elsewhere.lock().unwrap() = Some(bench);
    let manager = ServantManager::Activator(activator.clone());
    let poa = poa_with(&server, &activator_policies(), manager);
    let missing = reference(&client, &poa, b"missing");
    assert_eq!(
        call(&missing, "ping"),
        Err(raised(Kind::ObjectNotExist, 77))
    );
    assert_eq!(missing.non_existent(), Ok(true));
    let panics = reference(&client, &poa, b"panic");
    let unknown = call(&panics, "ping").unwrap_err();
    assert_eq!(
        (unknown.kind, unknown.completed),
        (Kind::Unknown, Completion::Maybe)
    );
    assert_eq!(server.orb.counters().read(Counter::ServantPanics), 1);
    // No state remains: the next request calls `incarnate` again.
    assert!(call(&panics, "ping").is_err());
    assert_eq!(call(&reference(&client, &poa, b"fine"), "ping"), Ok(()));
    let elsewhere = reference(&client, &poa, b"elsewhere");
    assert_eq!(call_octets(&elsewhere, b"there").unwrap(), b"there");
    assert_eq!(client.counters().read(Counter::Forwards), 1);
    assert_eq!(server.bench.calls.load(Ordering::SeqCst), 1);
}

#[test]
fn requests_at_the_same_time_share_one_incarnation_and_calls_of_the_activator_do_not_overlap() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let activator = Arc::new(Activator::default());
    let manager = ServantManager::Activator(activator.clone());
    let poa = poa_with(&server, &activator_policies(), manager);
    let callers: Vec<_> = (0..6)
        .map(|caller| {
            let id = format!("object {}", caller % 2);
            let object = reference(&client, &poa, id.as_bytes());
            std::thread::spawn(move || {
                for _ in 0..20 {
                    assert_eq!(call(&object, "ping"), Ok(()));
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    let mut log = activator.log.read();
    log.sort();
    assert_eq!(
        log,
        ["incarnate object 0 at made", "incarnate object 1 at made"]
    );
    assert_eq!(activator.overlaps.load(Ordering::SeqCst), 0);
}

#[test]
fn a_servant_goes_back_after_the_last_request_and_new_requests_wait_for_the_next_incarnation() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let shared = Arc::new(Bench::default());
    let activator = Arc::new(Activator {
        shared: Some(Arc::clone(&shared)),
        ..Activator::default()
    });
    let manager = ServantManager::Activator(activator.clone());
    let poa = poa_with(&server, &activator_policies(), manager);
    let object = reference(&client, &poa, b"one");
    let meeting = std::thread::spawn({
        let object = object.clone();
        move || call(&object, "meet")
    });
    shared.gate.wait_for_arrivals(1);
    poa.deactivate_object(b"one").unwrap();
    assert_eq!(
        poa.deactivate_object(b"one"),
        Err(PoaError::ObjectNotActive)
    );
    assert_eq!(
        poa.id_to_servant(b"one").err(),
        Some(PoaError::ObjectNotActive)
    );
    let waiting = std::thread::spawn(move || call(&object, "ping"));
    assert_eq!(activator.log.read(), ["incarnate one at made"]);
    shared.gate.open();
    assert_eq!(meeting.join().unwrap(), Ok(()));
    assert_eq!(waiting.join().unwrap(), Ok(()));
    let log = activator.log.read();
    let expected = [
        "incarnate one at made",
        "etherealize one false false",
        "incarnate one at made",
    ];
    assert_eq!(log, expected);
    assert_eq!(activator.overlaps.load(Ordering::SeqCst), 0);
}

#[test]
fn an_activator_is_told_whether_the_servant_serves_other_objects_and_whether_all_ends() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let activator = Arc::new(Activator {
        shared: Some(Arc::new(Bench::default())),
        ..Activator::default()
    });
    let policies = Policies {
        id_uniqueness: IdUniqueness::MultipleId,
        ..activator_policies()
    };
    let manager = ServantManager::Activator(activator.clone());
    let poa = poa_with(&server, &policies, manager);
    for id in [&b"a"[..], b"b", b"c"] {
        assert_eq!(call(&reference(&client, &poa, id), "ping"), Ok(()));
    }
    poa.deactivate_object(b"a").unwrap();
    assert_eq!(activator.log.await_len(4)[3], "etherealize a false true");
    poa.destroy(true, true).unwrap();
    let log = activator.log.read();
    let mut ends: Vec<_> = log[4..]
        .iter()
        .map(|end| end.replace(['b', 'c'], "?"))
        .collect();
    ends.sort();
    assert_eq!(
        ends,
        ["etherealize ? true false", "etherealize ? true true"]
    );
    // Nothing holds a reference to the manager any more.
    assert_eq!(Arc::strong_count(&activator), 1);
}

#[test]
fn a_servant_that_is_active_elsewhere_violates_the_policy() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let activator = Arc::new(Activator {
        shared: Some(Arc::new(Bench::default())),
        ..Activator::default()
    });
    let poa = poa_with(
        &server,
        &activator_policies(),
        ServantManager::Activator(activator),
    );
    assert_eq!(call(&reference(&client, &poa, b"a"), "ping"), Ok(()));
    let against = raised(Kind::ObjAdapter, minor::INCARNATION_AGAINST_POLICY);
    assert_eq!(call(&reference(&client, &poa, b"b"), "ping"), Err(against));
}

#[test]
fn reactivation_by_hand_waits_until_the_servant_has_gone_back() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let gate = Arc::new(Gate::default());
    let activator = Arc::new(Activator {
        gate: Some(Arc::clone(&gate)),
        ..Activator::default()
    });
    let manager = ServantManager::Activator(activator.clone());
    let poa = poa_with(&server, &activator_policies(), manager);
    let object = reference(&client, &poa, b"one");
    assert_eq!(call(&object, "ping"), Ok(()));
    // `deactivate_object` does not wait for `etherealize`, which waits for the gate.
    poa.deactivate_object(b"one").unwrap();
    gate.wait_for_arrivals(1);
    let by_hand = std::thread::spawn({
        let poa = poa.clone();
        move || poa.activate_object_with_id(b"one", Arc::new(Bench::default()))
    });
    gate.open();
    assert_eq!(by_hand.join().unwrap(), Ok(()));
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(activator.log.read().len(), 2);
}

/// A servant activator that deactivates the object before the last.
#[derive(Default)]
struct Evictor {
    last: Mutex<Option<Vec<u8>>>,
    log: Log,
}

impl ServantActivator for Evictor {
    fn incarnate(
        &self,
        object_id: &[u8],
        adapter: &Poa,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        if let Some(last) = self.last.lock().unwrap().replace(object_id.to_vec()) {
            adapter.deactivate_object(&last).unwrap();
        }
        Ok(Arc::new(Bench::default()))
    }

    fn etherealize(&self, object_id: &[u8], _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.log.note(String::from_utf8_lossy(object_id));
    }
}

#[test]
fn an_activator_may_deactivate_other_objects_while_it_makes_one() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let evictor = Arc::new(Evictor::default());
    let manager = ServantManager::Activator(evictor.clone());
    let poa = poa_with(&server, &activator_policies(), manager);
    for id in ["a", "b", "a", "c"] {
        let object = reference(&client, &poa, id.as_bytes());
        assert_eq!(call(&object, "ping"), Ok(()));
    }
    assert_eq!(evictor.log.await_len(3), ["a", "b", "a"]);
}

/// A servant locator that gives each request a bench; the object id selects an error.
#[derive(Default)]
struct Locator {
    log: Log,
    bench: Arc<Bench>,
    elsewhere: Mutex<Option<ObjectRef>>,
    requests: AtomicUsize,
}

impl ServantLocator for Locator {
    fn preinvoke(
        &self,
        object_id: &[u8],
        adapter: &Poa,
        operation: &str,
        cookie: &mut Cookie,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        let id = String::from_utf8_lossy(object_id).into_owned();
        self.log
            .note(format!("pre {id} {operation} at {}", adapter.the_name()));
        *cookie = Some(Box::new(self.requests.fetch_add(1, Ordering::SeqCst)));
        match object_id {
            b"elsewhere" => {
                let forward_reference = self.elsewhere.lock().unwrap().clone().unwrap();
                Err(ForwardRequest { forward_reference }.into())
            }
            b"missing" => Err(raised(Kind::NoPermission, 5).into()),
            b"panic" => panic!("a locator panics, as the test asked it to"),
            _ => Ok(Arc::clone(&self.bench) as Arc<dyn Servant>),
        }
    }

    fn postinvoke(
        &self,
        object_id: &[u8],
        _: &Poa,
        operation: &str,
        cookie: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        let number = *cookie.unwrap().downcast::<usize>().unwrap();
        let id = String::from_utf8_lossy(object_id).into_owned();
        self.log.note(format!("post {id} {operation} {number}"));
        if object_id == b"late" {
            return Err(raised(Kind::NoResources, 9));
        }
        assert_ne!(
            object_id, b"late panic",
            "a locator panics, as the test asked it to"
        );
        Ok(())
    }
}

fn locator(server: &Server) -> (Arc<Locator>, Poa) {
    let locator = Arc::new(Locator::default());
    let manager = ServantManager::Locator(locator.clone());
    let poa = poa_with(server, &locator_policies(), manager);
    (locator, poa)
}

#[test]
fn a_locator_is_asked_before_each_request_and_told_after_it_with_its_cookie() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let (locator, poa) = locator(&server);
    let object = reference(&client, &poa, b"one");
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(call_octets(&object, b"abc").unwrap(), b"abc");
    assert_eq!(object.is_a("IDL:deckwatch.test/Base:1.0"), Ok(true));
    let expected = [
        "pre one ping at made",
        "post one ping 0",
        "pre one octets at made",
        "post one octets 1",
        "pre one _is_a at made",
        "post one _is_a 2",
    ];
    assert_eq!(locator.log.read(), expected);
    assert_eq!(poa.id_to_servant(b"one").err(), Some(PoaError::WrongPolicy));
}

#[test]
fn a_locator_is_told_also_where_the_servant_raised_or_panicked() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let (locator, poa) = locator(&server);
    let object = reference(&client, &poa, b"one");
    assert_eq!(call(&object, "fail").unwrap_err().kind, Kind::NoPermission);
    assert_eq!(call(&object, "panic").unwrap_err().kind, Kind::Unknown);
    assert_eq!(
        call(&object, "nonsense").unwrap_err().kind,
        Kind::BadOperation
    );
    let log = locator.log.read();
    let ends: Vec<_> = log.iter().filter(|line| line.starts_with("post")).collect();
    assert_eq!(
        ends,
        ["post one fail 0", "post one panic 1", "post one nonsense 2"]
    );
}

#[test]
fn what_a_locator_raises_goes_to_the_caller_before_and_after_the_servant() {
    let server = Server::start();
    let (client, bench) = client_of(&server);
    let (locator, poa) = locator(&server);
    *locator.elsewhere.lock().unwrap() = Some(bench);
    let missing = reference(&client, &poa, b"missing");
    assert_eq!(call(&missing, "ping"), Err(raised(Kind::NoPermission, 5)));
    let panics = reference(&client, &poa, b"panic");
    assert_eq!(call(&panics, "ping").unwrap_err().kind, Kind::Unknown);
    let elsewhere = reference(&client, &poa, b"elsewhere");
    assert_eq!(call(&elsewhere, "ping"), Ok(()));
    assert_eq!(server.bench.calls.load(Ordering::SeqCst), 1);
    // None of the three requests had a servant, so `postinvoke` is not called.
    assert!(
        locator
            .log
            .read()
            .iter()
            .all(|line| line.starts_with("pre"))
    );
    let late = reference(&client, &poa, b"late");
    assert_eq!(call(&late, "ping"), Err(raised(Kind::NoResources, 9)));
    let late = reference(&client, &poa, b"late panic");
    assert_eq!(call(&late, "ping").unwrap_err().kind, Kind::Unknown);
    assert_eq!(locator.bench.calls.load(Ordering::SeqCst), 2);
}

#[test]
fn a_servant_manager_is_set_once_and_is_of_the_kind_that_the_policies_ask_for() {
    let server = Server::start();
    let activator = || ServantManager::Activator(Arc::new(Activator::default()));
    let locator = || ServantManager::Locator(Arc::new(Locator::default()));
    assert_eq!(
        server.root.set_servant_manager(activator()),
        Err(PoaError::WrongPolicy)
    );
    assert_eq!(
        server.root.servant_manager().err(),
        Some(PoaError::WrongPolicy)
    );
    let retaining = server
        .root
        .create_poa("retaining", None, &activator_policies())
        .unwrap();
    let asking = server
        .root
        .create_poa("asking", None, &locator_policies())
        .unwrap();
    let unfit = PoaError::System(raised(Kind::ObjAdapter, minor::NO_SERVANT_MANAGER));
    assert_eq!(retaining.set_servant_manager(locator()), Err(unfit));
    assert_eq!(asking.set_servant_manager(activator()), Err(unfit));
    assert!(asking.servant_manager().unwrap().is_none());
    assert_eq!(asking.set_servant_manager(locator()), Ok(()));
    assert!(matches!(
        asking.servant_manager(),
        Ok(Some(ServantManager::Locator(_)))
    ));
    let twice = PoaError::System(raised(Kind::BadInvOrder, minor::SERVANT_MANAGER_SET));
    assert_eq!(asking.set_servant_manager(locator()), Err(twice));
}

#[test]
fn without_a_servant_manager_there_is_no_servant() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    for policies in [activator_policies(), locator_policies()] {
        let poa = server
            .root
            .create_poa("empty", Some(server.root.the_poa_manager()), &policies)
            .unwrap();
        let object = reference(&client, &poa, b"one");
        let none = raised(Kind::ObjAdapter, minor::NO_SERVANT_MANAGER);
        assert_eq!(call(&object, "ping"), Err(none));
        poa.destroy(false, true).unwrap();
    }
}

#[test]
fn ids_longer_than_an_object_may_have_do_not_reach_a_servant_manager() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let (locator, poa) = locator(&server);
    let ask = |len| {
        let key = ObjectKey::Persistent {
            path: poa.the_name().as_bytes(),
            id: &vec![b'x'; len],
        };
        call(&forged(&client, &server, &key.to_octets()), "ping")
    };
    let unknown = raised(Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN);
    assert_eq!(ask(OBJECT_ID_SIZE_MAX + 1), Err(unknown));
    assert!(locator.log.read().is_empty());
    assert_eq!(ask(OBJECT_ID_SIZE_MAX), Ok(()));
}
