//! Objects and adapters from creation to destruction, and what references to them mean during and after their life.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::support::{Bench, Server, TEST_ID, call, client_of, seen_by, wait_for};
use deckwatch_orb::{
    Completion, IdAssignment, Poa, PoaError, Policies, RequestProcessing, Servant,
    ServantActivator, ServantManager, ServantManagerError, ServerRequest, SystemException,
    SystemExceptionKind as Kind, minor,
};

fn raised(kind: Kind, minor: u32) -> SystemException {
    SystemException::new(kind, minor, Completion::No)
}

fn unknown() -> SystemException {
    raised(Kind::ObjectNotExist, minor::ADAPTER_UNKNOWN)
}

fn child(parent: &Poa, name: &str, policies: &Policies) -> Poa {
    parent
        .create_poa(name, Some(parent.the_poa_manager()), policies)
        .unwrap()
}

fn user_ids() -> Policies {
    Policies {
        id_assignment: IdAssignment::UserId,
        ..Policies::default()
    }
}

#[test]
fn an_object_that_is_activated_again_under_its_id_is_reached_by_its_first_reference() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    for policies in [Policies::default(), user_ids(), Policies::persistent()] {
        let poa = child(&server.root, "again", &policies);
        let id = match policies.id_assignment {
            IdAssignment::SystemId => poa.activate_object(Arc::new(Bench::default())).unwrap(),
            IdAssignment::UserId => {
                poa.activate_object_with_id(b"id", Arc::new(Bench::default()))
                    .unwrap();
                deckwatch_orb::ObjectId::new(*b"id")
            }
        };
        let first = seen_by(&client, &poa.id_to_reference(&id).unwrap());
        assert_eq!(call(&first, "ping"), Ok(()));
        poa.deactivate_object(&id).unwrap();
        assert_eq!(call(&first, "ping"), Err(unknown()));
        poa.activate_object_with_id(&id, Arc::new(Bench::default()))
            .unwrap();
        assert_eq!(call(&first, "ping"), Ok(()));
        poa.destroy(false, true).unwrap();
        assert_eq!(call(&first, "ping"), Err(unknown()));
    }
}

#[test]
fn a_reference_made_before_its_object_leads_to_it_once_it_is_active() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = child(&server.root, "later", &Policies::default());
    let made = poa.create_reference(TEST_ID).unwrap();
    assert_eq!(made.type_id(), TEST_ID);
    let object = seen_by(&client, &made);
    assert_eq!(call(&object, "ping"), Err(unknown()));
    let id = poa.reference_to_id(&made).unwrap();
    poa.activate_object_with_id(&id, Arc::new(Bench::default()))
        .unwrap();
    assert_eq!(call(&object, "ping"), Ok(()));
}

#[test]
fn a_request_in_progress_outlives_the_deactivation_of_its_object() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = child(&server.root, "busy", &user_ids());
    let bench = Arc::new(Bench::default());
    poa.activate_object_with_id(b"id", bench.clone()).unwrap();
    let object = seen_by(&client, &poa.id_to_reference(b"id").unwrap());
    let meeting = std::thread::spawn({
        let object = object.clone();
        move || call(&object, "meet")
    });
    bench.gate.wait_for_arrivals(1);
    poa.deactivate_object(b"id").unwrap();
    assert_eq!(call(&object, "ping"), Err(unknown()));
    // Its servant can be activated again at once, under another id.
    poa.activate_object_with_id(b"other", bench.clone())
        .unwrap();
    let next = std::thread::spawn({
        let poa = poa.clone();
        move || poa.activate_object_with_id(b"id", Arc::new(Bench::default()))
    });
    bench.gate.open();
    assert_eq!(meeting.join().unwrap(), Ok(()));
    assert_eq!(next.join().unwrap(), Ok(()));
    assert_eq!(call(&object, "ping"), Ok(()));
}

/// A servant that does to its adapter what the operation names, and returns the outcome as a minor code.
struct Selfish(Poa);

impl Servant for Selfish {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let id = request.object_id().to_vec();
        let done = match request.operation() {
            b"swap" => self.0.deactivate_object(&id).and_then(|()| {
                self.0
                    .activate_object_with_id(&id, Arc::new(Bench::default()))
            }),
            b"destroy" => self.0.destroy(true, true),
            b"leave" => self.0.destroy(true, false),
            _ => Ok(()),
        };
        match done {
            Ok(()) => request.reply().map(drop),
            Err(PoaError::System(exception)) => Err(exception),
            Err(_) => Err(raised(Kind::Internal, 0)),
        }
    }
}

#[test]
fn a_servant_may_not_wait_for_its_own_end_and_may_begin_it() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = child(&server.root, "selfish", &user_ids());
    let activate = || {
        poa.activate_object_with_id(b"id", Arc::new(Selfish(poa.clone())))
            .unwrap();
        seen_by(&client, &poa.id_to_reference(b"id").unwrap())
    };
    let object = activate();
    let deadlock = raised(Kind::BadInvOrder, minor::WOULD_DEADLOCK);
    assert_eq!(call(&object, "swap"), Err(deadlock));
    let object = activate();
    assert_eq!(call(&object, "destroy"), Err(deadlock));
    // That did not destroy the adapter.
    assert_eq!(call(&object, "nothing"), Ok(()));
    assert_eq!(call(&object, "leave"), Ok(()));
    wait_for(|| server.root.find_poa("selfish", false).is_err());
    assert_eq!(
        poa.activate_object(Arc::new(Bench::default())),
        Err(PoaError::WrongPolicy)
    );
    let again = server.root.create_poa("selfish", None, &user_ids());
    assert!(again.is_ok());
    assert_eq!(call(&object, "nothing"), Err(unknown()));
}

#[test]
fn a_dying_adapter_finishes_what_it_serves_turns_the_rest_away_and_frees_its_name_afterwards() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = child(&server.root, "dying", &Policies::persistent());
    let below = child(&poa, "below", &Policies::persistent());
    let bench = Arc::new(Bench::default());
    below.activate_object_with_id(b"id", bench.clone()).unwrap();
    poa.activate_object_with_id(b"id", Arc::new(Bench::default()))
        .unwrap();
    let object = seen_by(&client, &below.id_to_reference(b"id").unwrap());
    let above = seen_by(&client, &poa.id_to_reference(b"id").unwrap());
    let meeting = std::thread::spawn({
        let object = object.clone();
        move || call(&object, "meet")
    });
    bench.gate.wait_for_arrivals(1);
    poa.destroy(false, false).unwrap();
    let dying = raised(Kind::Transient, minor::ADAPTER_DESTROYED);
    assert_eq!(call(&object, "ping"), Err(dying));
    // A parent is destroyed after its children.
    assert_eq!(call(&above, "ping"), Err(dying));
    let refused = raised(Kind::BadInvOrder, minor::ADAPTER_BEING_DESTROYED);
    assert_eq!(
        poa.create_poa("late", None, &Policies::default()),
        Err(PoaError::System(refused))
    );
    assert_eq!(
        server.root.find_poa("dying", false),
        Err(PoaError::AdapterNonExistent)
    );
    assert!(server.root.the_children().unwrap().is_empty());
    let next = std::thread::spawn({
        let root = server.root.clone();
        move || child(&root, "dying", &Policies::persistent())
    });
    bench.gate.open();
    assert_eq!(meeting.join().unwrap(), Ok(()));
    let next = next.join().unwrap();
    assert_ne!(next, poa);
    assert_eq!(call(&above, "ping"), Err(unknown()));
    next.activate_object_with_id(b"id", Arc::new(Bench::default()))
        .unwrap();
    assert_eq!(call(&above, "ping"), Ok(()));
}

#[test]
fn a_destroyed_adapter_does_nothing_any_more_and_its_transient_references_lead_nowhere_for_good() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = child(&server.root, "gone", &user_ids());
    poa.activate_object_with_id(b"id", Arc::new(Bench::default()))
        .unwrap();
    let reference = poa.id_to_reference(b"id").unwrap();
    let object = seen_by(&client, &reference);
    assert_eq!(call(&object, "ping"), Ok(()));
    poa.destroy(false, true).unwrap();
    let gone = PoaError::System(unknown());
    assert_eq!(poa.destroy(false, true), Err(gone));
    assert_eq!(poa.create_poa("x", None, &user_ids()), Err(gone));
    assert_eq!(poa.find_poa("x", true), Err(gone));
    assert_eq!(poa.the_children(), Err(gone));
    assert_eq!(poa.deactivate_object(b"id"), Err(gone));
    assert_eq!(poa.reference_to_id(&reference), Err(gone));
    assert_eq!(
        poa.activate_object_with_id(b"id", Arc::new(Bench::default())),
        Err(gone)
    );
    assert_eq!(
        poa.create_reference_with_id(b"id", TEST_ID).err(),
        Some(gone)
    );
    // A new adapter with the same name is a different adapter.
    let next = child(&server.root, "gone", &user_ids());
    next.activate_object_with_id(b"id", Arc::new(Bench::default()))
        .unwrap();
    assert_eq!(call(&object, "ping"), Err(unknown()));
    assert_eq!(
        next.reference_to_id(&reference),
        Err(PoaError::WrongAdapter)
    );
}

#[test]
fn adapters_know_their_names_parents_children_and_ids() {
    let server = Server::start();
    let a = child(&server.root, "a", &Policies::persistent());
    let strange = child(&a, "b/c \u{2693}", &Policies::persistent());
    let b = child(&a, "b", &Policies::persistent());
    assert_eq!(server.root.the_name(), "RootPOA");
    assert_eq!(server.root.the_parent(), None);
    assert_eq!(strange.the_name(), "b/c \u{2693}");
    assert_eq!(strange.the_parent(), Some(a.clone()));
    let mut names: Vec<_> = a
        .the_children()
        .unwrap()
        .iter()
        .map(|child| child.the_name().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["b", "b/c \u{2693}"]);
    assert_eq!(a.find_poa("b", false), Ok(b.clone()));
    // A slash in a name is no separator: the adapter named `b/c \u{2693}` is not a child of `b`.
    assert_eq!(
        b.find_poa("c \u{2693}", false),
        Err(PoaError::AdapterNonExistent)
    );
    assert_ne!(a.id(), b.id());
    assert_ne!(a.id(), server.root.id());
    assert_eq!(
        server.root.create_poa("a", None, &Policies::default()),
        Err(PoaError::AdapterAlreadyExists)
    );
    for name in ["", "nul\0"] {
        let refused = server.root.create_poa(name, None, &Policies::default());
        assert!(matches!(refused, Err(PoaError::System(it)) if it.kind == Kind::BadParam));
    }
}

#[test]
fn a_persistent_reference_to_an_adapter_of_two_levels_survives_a_restart() {
    let start = |endpoint: &str| {
        let server = Server::at(endpoint);
        let manager = server.root.the_poa_manager();
        let above = server
            .root
            .create_poa("above", Some(manager), &Policies::default());
        let poa = child(&above.unwrap(), "below", &Policies::persistent());
        let bench = Arc::new(Bench::default());
        poa.activate_object_with_id(b"id", bench.clone()).unwrap();
        (server, poa, bench)
    };
    let (first, poa, _) = start("127.0.0.1:0");
    let reference = poa.id_to_reference(b"id").unwrap();
    let (client, _) = client_of(&first);
    let object = seen_by(&client, &reference);
    assert_eq!(call(&object, "ping"), Ok(()));
    let endpoint = first.orb.endpoints()[0].to_string();
    first.orb.shutdown(true).expect("it ends");
    let (second, poa, bench) = start(&endpoint);
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(bench.calls.load(Ordering::SeqCst), 1);
    assert_eq!(poa.id_to_reference(b"id").unwrap(), reference);
    assert_eq!(&*poa.reference_to_id(&reference).unwrap(), b"id");
    second.orb.shutdown(true).expect("it ends");
}

#[test]
fn of_many_objects_that_are_found_by_name_all_are_found_and_none_for_another() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let poa = child(&server.root, "many", &Policies::persistent());
    let count = 16_384_usize;
    let servants: Vec<_> = (0..count).map(|_| Arc::new(Bench::default())).collect();
    for (number, servant) in servants.iter().enumerate() {
        poa.activate_object_with_id(&number.to_be_bytes(), servant.clone())
            .unwrap();
    }
    let asked: Vec<_> = (0..count).step_by(97).collect();
    for _ in 0..2 {
        for number in &asked {
            let reference = poa.id_to_reference(&number.to_be_bytes()).unwrap();
            assert_eq!(call(&seen_by(&client, &reference), "ping"), Ok(()));
        }
    }
    for (number, servant) in servants.iter().enumerate() {
        let expected = if asked.contains(&number) { 2 } else { 0 };
        assert_eq!(servant.calls.load(Ordering::SeqCst), expected, "{number}");
    }
}

/// Object ids, and the `cleanup_in_progress` argument.
type Back = Mutex<Vec<(Vec<u8>, bool)>>;

/// A servant activator that records calls of `etherealize`.
#[derive(Default)]
struct Keeper(Arc<Back>);

impl ServantActivator for Keeper {
    fn incarnate(&self, _: &[u8], _: &Poa) -> Result<Arc<dyn Servant>, ServantManagerError> {
        Ok(Arc::new(Bench::default()))
    }

    fn etherealize(&self, id: &[u8], poa: &Poa, _: Arc<dyn Servant>, cleanup: bool, _: bool) {
        // If the adapter is being destroyed, it accepts no new objects.
        let is_gone = poa.activate_object(Arc::new(Bench::default())).is_err();
        assert!(is_gone || !cleanup);
        self.0.lock().unwrap().push((id.to_vec(), cleanup));
    }
}

#[test]
fn the_end_of_the_orb_gives_every_servant_back_and_a_destruction_may_leave_them() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let policies = Policies {
        request_processing: RequestProcessing::UseServantManager,
        ..Policies::persistent()
    };
    let back: Arc<Back> = Arc::default();
    let adapters: Vec<_> = ["left", "kept"]
        .iter()
        .map(|name| {
            let poa = child(&server.root, name, &policies);
            let keeper = Arc::new(Keeper(Arc::clone(&back)));
            poa.set_servant_manager(ServantManager::Activator(keeper))
                .unwrap();
            let id = name.as_bytes();
            let object = seen_by(&client, &poa.create_reference_with_id(id, TEST_ID).unwrap());
            assert_eq!(call(&object, "ping"), Ok(()));
            poa
        })
        .collect();
    adapters[0].destroy(false, true).unwrap();
    assert!(back.lock().unwrap().is_empty());
    server.orb.shutdown(true).expect("it ends");
    assert_eq!(*back.lock().unwrap(), [(b"kept".to_vec(), true)]);
    assert_eq!(Arc::strong_count(&back), 1);
}
