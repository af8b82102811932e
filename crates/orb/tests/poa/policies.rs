//! The policies of an adapter: valid combinations, and what each operation does or refuses under them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{Bench, Server, TEST_ID, call, call_octets, client_of, seen_by};
use deckwatch_orb::{
    Completion, IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, Poa, PoaError, Policies,
    RequestProcessing, Servant, ServantRetention, ServerRequest, SystemException,
    SystemExceptionKind as Kind, ThreadPolicy, minor,
};

fn raised(kind: Kind, minor: u32) -> SystemException {
    SystemException::new(kind, minor, Completion::No)
}

fn bench() -> Arc<dyn Servant> {
    Arc::new(Bench::default())
}

fn child(parent: &Poa, name: &str, policies: &Policies) -> Poa {
    parent
        .create_poa(name, Some(parent.the_poa_manager()), policies)
        .unwrap()
}

/// Every combination of the policies for which some combinations are invalid.
fn combinations() -> impl Iterator<Item = Policies> {
    let retentions = [ServantRetention::Retain, ServantRetention::NonRetain];
    let processings = [
        RequestProcessing::UseActiveObjectMapOnly,
        RequestProcessing::UseDefaultServant,
        RequestProcessing::UseServantManager,
    ];
    (0..2 * 3 * 2 * 2 * 2 * 2).map(move |number| Policies {
        servant_retention: retentions[number % 2],
        request_processing: processings[number / 2 % 3],
        id_uniqueness: [IdUniqueness::UniqueId, IdUniqueness::MultipleId][number / 6 % 2],
        id_assignment: [IdAssignment::SystemId, IdAssignment::UserId][number / 12 % 2],
        implicit_activation: [
            ImplicitActivation::NoImplicitActivation,
            ImplicitActivation::ImplicitActivation,
        ][number / 24 % 2],
        lifespan: [Lifespan::Transient, Lifespan::Persistent][number / 48],
        ..Policies::default()
    })
}

/// Whether the standard allows a combination (15.3.8).
fn is_allowed(policies: &Policies) -> bool {
    let retains = policies.servant_retention == ServantRetention::Retain;
    let needs_map = policies.request_processing == RequestProcessing::UseActiveObjectMapOnly;
    let has_default = policies.request_processing == RequestProcessing::UseDefaultServant;
    let is_multiple = policies.id_uniqueness == IdUniqueness::MultipleId;
    let is_implicit = policies.implicit_activation == ImplicitActivation::ImplicitActivation;
    let has_system_ids = policies.id_assignment == IdAssignment::SystemId;
    (retains || !needs_map)
        && (is_multiple || !has_default)
        && (!is_implicit || retains && has_system_ids)
}

#[test]
fn of_all_combinations_those_that_the_standard_allows_make_an_adapter() {
    let server = Server::start();
    let mut made = 0;
    for policies in combinations() {
        let poa = server.root.create_poa("tried", None, &policies);
        match poa {
            Ok(poa) => {
                assert!(is_allowed(&policies), "{policies:?}");
                assert_eq!(poa.policies(), &policies);
                poa.destroy(false, true).unwrap();
                made += 1;
            }
            Err(error) => {
                assert!(!is_allowed(&policies), "{policies:?}");
                assert!(matches!(error, PoaError::InvalidPolicy(18 | 20 | 21)));
            }
        }
    }
    assert!(made > 20);
}

#[test]
fn every_operation_is_refused_under_exactly_the_policies_that_the_standard_names() {
    let server = Server::start();
    let servant = bench();
    for policies in combinations().filter(is_allowed) {
        let poa = child(&server.root, "tried", &policies);
        let retains = policies.servant_retention == ServantRetention::Retain;
        let has_system_ids = policies.id_assignment == IdAssignment::SystemId;
        let has_default = policies.request_processing == RequestProcessing::UseDefaultServant;
        let has_manager = policies.request_processing == RequestProcessing::UseServantManager;
        let is_unique = policies.id_uniqueness == IdUniqueness::UniqueId;
        let is_implicit = policies.implicit_activation == ImplicitActivation::ImplicitActivation;
        let knows = retains && (is_unique || is_implicit);
        let wrong = Some(PoaError::WrongPolicy);
        let check = |what: &str, refused: bool, allowed: bool| {
            assert_eq!(!refused, allowed, "{what} under {policies:?}");
        };
        let refuses = |error: Option<PoaError>| error == wrong;

        let created = poa.create_reference(TEST_ID);
        check(
            "create_reference",
            refuses(created.clone().err()),
            has_system_ids,
        );
        let activated = poa.activate_object(bench()).err();
        check(
            "activate_object",
            refuses(activated),
            retains && has_system_ids,
        );
        let with_id = poa.activate_object_with_id(b"id", bench()).err();
        check("activate_object_with_id", refuses(with_id), retains);
        let deactivated = poa.deactivate_object(b"nobody").err();
        check("deactivate_object", refuses(deactivated), retains);
        let id = poa.servant_to_id(&servant).err();
        check("servant_to_id", refuses(id), has_default || knows);
        let reference = poa.servant_to_reference(&servant).err();
        check("servant_to_reference", refuses(reference), knows);
        let to_servant = poa.id_to_servant(b"nobody").err();
        check("id_to_servant", refuses(to_servant), retains || has_default);
        let to_reference = poa.id_to_reference(b"nobody").err();
        check("id_to_reference", refuses(to_reference), retains);
        let made = created.or_else(|_| poa.create_reference_with_id(b"id", TEST_ID));
        let to_servant = poa.reference_to_servant(&made.unwrap()).err();
        check(
            "reference_to_servant",
            refuses(to_servant),
            retains || has_default,
        );
        check(
            "servant_manager",
            refuses(poa.servant_manager().err()),
            has_manager,
        );
        check("servant", refuses(poa.servant().err()), has_default);
        check(
            "set_servant",
            refuses(poa.set_servant(bench()).err()),
            has_default,
        );
        poa.destroy(false, true).unwrap();
    }
}

#[test]
fn a_servant_is_active_once_under_unique_id_and_often_under_multiple_id() {
    let server = Server::start();
    let unique = child(&server.root, "unique", &Policies::default());
    let servant = bench();
    assert_eq!(
        unique.servant_to_id(&servant),
        Err(PoaError::ServantNotActive)
    );
    let id = unique.activate_object(Arc::clone(&servant)).unwrap();
    assert_eq!(
        unique.activate_object(Arc::clone(&servant)),
        Err(PoaError::ServantAlreadyActive)
    );
    assert_eq!(
        unique.activate_object_with_id(&id, bench()),
        Err(PoaError::ObjectAlreadyActive)
    );
    assert_eq!(unique.servant_to_id(&servant), Ok(id.clone()));
    let reference = unique.servant_to_reference(&servant).unwrap();
    assert_eq!(unique.reference_to_id(&reference), Ok(id.clone()));
    let found = unique.reference_to_servant(&reference).unwrap();
    assert!(Arc::ptr_eq(&found, &servant));
    // Each adapter has a map of its own.
    let multiple = child(
        &server.root,
        "multiple",
        &Policies {
            id_uniqueness: IdUniqueness::MultipleId,
            ..Policies::default()
        },
    );
    assert_eq!(
        multiple.reference_to_id(&reference),
        Err(PoaError::WrongAdapter)
    );
    let first = multiple.activate_object(Arc::clone(&servant)).unwrap();
    let second = multiple.activate_object(Arc::clone(&servant)).unwrap();
    assert_ne!(first, second);
    multiple.deactivate_object(&first).unwrap();
    assert!(multiple.id_to_servant(&second).is_ok());
    assert_eq!(
        multiple.deactivate_object(&first),
        Err(PoaError::ObjectNotActive)
    );
}

#[test]
fn an_implicit_activation_happens_when_a_reference_is_asked_for_once_under_unique_id() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let servant = bench();
    let reference = server.root.servant_to_reference(&servant).unwrap();
    assert_eq!(
        server.root.servant_to_reference(&servant),
        Ok(reference.clone())
    );
    assert_eq!(call(&seen_by(&client, &reference), "ping"), Ok(()));
    let multiple = child(
        &server.root,
        "multiple",
        &Policies {
            id_uniqueness: IdUniqueness::MultipleId,
            ..Policies::root()
        },
    );
    let first = multiple.servant_to_id(&servant).unwrap();
    assert_ne!(multiple.servant_to_id(&servant), Ok(first));
}

#[test]
fn under_system_id_only_ids_that_the_adapter_can_have_made_are_taken() {
    let server = Server::start();
    let invalid = PoaError::System(raised(Kind::BadParam, minor::OBJECT_ID_INVALID));
    for lifespan in [Lifespan::Transient, Lifespan::Persistent] {
        let policies = Policies {
            lifespan,
            ..Policies::default()
        };
        let poa = child(&server.root, "system", &policies);
        let id = poa.activate_object(bench()).unwrap();
        poa.deactivate_object(&id).unwrap();
        assert_eq!(poa.activate_object_with_id(&id, bench()), Ok(()));
        let mut next = id.to_vec();
        next[7] += 1;
        for wrong in [&b"mine"[..], &next, b""] {
            assert_eq!(poa.activate_object_with_id(wrong, bench()), Err(invalid));
            let reference = poa.create_reference_with_id(wrong, TEST_ID);
            assert_eq!(reference.err(), Some(invalid));
        }
        assert!(poa.create_reference_with_id(&id, TEST_ID).is_ok());
        poa.destroy(false, true).unwrap();
    }
}

#[test]
fn ids_of_a_persistent_adapter_do_not_come_back_in_a_later_life_and_are_taken_there() {
    let policies = Policies {
        lifespan: Lifespan::Persistent,
        ..Policies::default()
    };
    let servers = [Server::start(), Server::start()];
    let lives = servers
        .each_ref()
        .map(|it| child(&it.root, "store", &policies));
    let old = lives[0].activate_object(bench()).unwrap();
    let new = lives[1].activate_object(bench()).unwrap();
    assert_ne!(old, new);
    assert_eq!(lives[1].activate_object_with_id(&old, bench()), Ok(()));
}

#[test]
fn a_default_servant_serves_every_id_that_is_not_active() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    for servant_retention in [ServantRetention::Retain, ServantRetention::NonRetain] {
        let policies = Policies {
            request_processing: RequestProcessing::UseDefaultServant,
            id_uniqueness: IdUniqueness::MultipleId,
            servant_retention,
            ..Policies::persistent()
        };
        let poa = child(&server.root, "default", &policies);
        let object = seen_by(
            &client,
            &poa.create_reference_with_id(b"any", TEST_ID).unwrap(),
        );
        let none = raised(Kind::ObjAdapter, minor::NO_SERVANT);
        assert_eq!(call(&object, "ping"), Err(none));
        assert_eq!(poa.servant().err(), Some(PoaError::NoServant));
        assert_eq!(
            poa.id_to_servant(b"any").err(),
            Some(PoaError::ObjectNotActive)
        );
        let default = Arc::new(Bench::default());
        poa.set_servant(default.clone()).unwrap();
        assert_eq!(call_octets(&object, b"abc").unwrap(), b"abc");
        assert_eq!(object.is_a("IDL:deckwatch.test/Base:1.0"), Ok(true));
        assert_eq!(object.non_existent(), Ok(false));
        assert_eq!(default.calls.load(Ordering::SeqCst), 1);
        assert!(poa.id_to_servant(b"any").is_ok());
        // Outside a request, the default servant has no id.
        let known: Arc<dyn Servant> = default.clone();
        assert_eq!(poa.servant_to_id(&known), Err(PoaError::ServantNotActive));
        if servant_retention == ServantRetention::Retain {
            poa.activate_object_with_id(b"own", bench()).unwrap();
            let own = seen_by(&client, &poa.id_to_reference(b"own").unwrap());
            assert_eq!(call(&own, "ping"), Ok(()));
            assert_eq!(default.calls.load(Ordering::SeqCst), 1);
            poa.deactivate_object(b"own").unwrap();
            assert_eq!(call(&own, "ping"), Ok(()));
            assert_eq!(default.calls.load(Ordering::SeqCst), 2);
        }
        poa.destroy(false, true).unwrap();
        assert_eq!(Arc::strong_count(&default), 2);
    }
}

/// A servant that records how many threads are in it at the same time.
#[derive(Default)]
struct Crowd {
    within: AtomicUsize,
    most: AtomicUsize,
    meet: AtomicUsize,
}

impl Servant for Crowd {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let within = self.within.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(within, Ordering::SeqCst);
        // Waits for other threads if the adapter lets them in.
        while self.within.load(Ordering::SeqCst) < self.meet.load(Ordering::SeqCst)
            && self.most.load(Ordering::SeqCst) < self.meet.load(Ordering::SeqCst)
        {
            std::thread::yield_now();
        }
        for _ in 0..50 {
            std::thread::yield_now();
        }
        self.within.fetch_sub(1, Ordering::SeqCst);
        request.reply().map(drop)
    }
}

fn crowd(thread: ThreadPolicy, meet: usize) -> usize {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let policies = Policies {
        thread,
        ..Policies::default()
    };
    let poa = child(&server.root, "crowd", &policies);
    let crowd = Arc::new(Crowd::default());
    crowd.meet.store(meet, Ordering::SeqCst);
    let id = poa.activate_object(crowd.clone()).unwrap();
    let object = seen_by(&client, &poa.id_to_reference(&id).unwrap());
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let object = object.clone();
            std::thread::spawn(move || {
                for _ in 0..10 {
                    assert_eq!(call(&object, "ping"), Ok(()));
                }
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    crowd.most.load(Ordering::SeqCst)
}

#[test]
fn the_thread_policy_lets_many_in_or_one() {
    assert_eq!(crowd(ThreadPolicy::OrbCtrlModel, 3), 3);
    assert_eq!(crowd(ThreadPolicy::SingleThreadModel, 1), 1);
}
