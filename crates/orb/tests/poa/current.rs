//! `POACurrent`: what a servant can read about the request it serves.

use std::sync::{Arc, Mutex};

use crate::support::world::World;
use crate::support::{Bench, Server, TEST_ID, call, client_of, seen_by};
use deckwatch_orb::{
    Completion, Cookie, IdUniqueness, NoContext, ObjectRef, Orb, Poa, PoaCurrent, Policies,
    RequestProcessing, Servant, ServantLocator, ServantManager, ServantManagerError,
    ServantRetention, ServerRequest, SystemException, SystemExceptionKind as Kind, ThreadPolicy,
};

/// A servant that records the values of `POACurrent`.
struct Witness {
    current: PoaCurrent,
    seen: Mutex<Vec<Seen>>,
    /// If set, called within the next request.
    next: Mutex<Option<ObjectRef>>,
}

#[derive(Debug, PartialEq)]
struct Seen {
    poa: String,
    id: Vec<u8>,
    is_me: bool,
    reference: String,
}

impl Witness {
    fn new(orb: &Orb) -> Arc<Self> {
        Arc::new(Self {
            current: orb.poa_current(),
            seen: Mutex::default(),
            next: Mutex::default(),
        })
    }

    fn look(&self) -> Seen {
        let servant = self.current.servant().unwrap();
        Seen {
            poa: self.current.poa().unwrap().the_name().to_owned(),
            id: self.current.object_id().unwrap().to_vec(),
            is_me: std::ptr::addr_eq(Arc::as_ptr(&servant), self),
            reference: self.current.reference().unwrap().to_string(),
        }
    }
}

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let before = self.look();
        if request.operation() == b"leave" {
            let poa = self.current.poa().unwrap();
            poa.deactivate_object(&before.id).unwrap();
            // The request keeps the object id it started with.
            assert_eq!(self.look().id, before.id);
        }
        let next = self.next.lock().unwrap().take();
        if let Some(next) = next {
            call(&next, "ping")?;
            assert_eq!(self.look(), before);
        }
        assert_eq!(request.object_id(), before.id);
        self.seen.lock().unwrap().push(before);
        request.reply().map(drop)
    }

    fn non_existent(&self, object_id: &[u8]) -> Result<bool, SystemException> {
        assert_eq!(&*self.current.object_id().unwrap(), object_id);
        Ok(object_id == b"nobody")
    }
}

fn default_policies(servant_retention: ServantRetention) -> Policies {
    Policies {
        request_processing: RequestProcessing::UseDefaultServant,
        id_uniqueness: IdUniqueness::MultipleId,
        servant_retention,
        ..Policies::persistent()
    }
}

#[test]
fn outside_of_a_request_there_is_no_context() {
    let server = Server::start();
    let current = server.orb.poa_current();
    assert_eq!(current.poa(), Err(NoContext));
    assert_eq!(current.object_id(), Err(NoContext));
    assert_eq!(current.reference(), Err(NoContext));
    assert!(current.servant().is_err());
    let (_client, bench) = client_of(&server);
    assert_eq!(call(&bench, "panic").unwrap_err().kind, Kind::Unknown);
    assert_eq!(current.object_id(), Err(NoContext));
}

#[test]
fn an_active_object_sees_itself_also_after_it_has_deactivated_itself() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let witness = Witness::new(&server.orb);
    let id = server.root.activate_object(witness.clone()).unwrap();
    let reference = server.root.id_to_reference(&id).unwrap();
    let object = seen_by(&client, &reference);
    assert_eq!(call(&object, "ping"), Ok(()));
    assert_eq!(call(&object, "leave"), Ok(()));
    let expected = || Seen {
        poa: "RootPOA".into(),
        id: id.to_vec(),
        is_me: true,
        reference: reference.to_string(),
    };
    assert_eq!(*witness.seen.lock().unwrap(), [expected(), expected()]);
    assert_eq!(
        call(&object, "ping").unwrap_err().kind,
        Kind::ObjectNotExist
    );
}

#[test]
fn a_default_servant_is_told_which_of_its_objects_is_asked_and_may_ask_for_a_reference_to_it() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    for retention in [ServantRetention::Retain, ServantRetention::NonRetain] {
        let manager = server.root.the_poa_manager();
        let poa = server
            .root
            .create_poa("default", Some(manager), &default_policies(retention))
            .unwrap();
        let witness = Witness::new(&server.orb);
        poa.set_servant(witness.clone()).unwrap();
        let mut expected = Vec::new();
        for id in [&b"one"[..], b"two"] {
            let reference = poa.create_reference_with_id(id, TEST_ID).unwrap();
            assert_eq!(call(&seen_by(&client, &reference), "ping"), Ok(()));
            expected.push(Seen {
                poa: "default".into(),
                id: id.to_vec(),
                is_me: true,
                reference: reference.to_string(),
            });
        }
        assert_eq!(*witness.seen.lock().unwrap(), expected);
        for (id, is_missing) in [(&b"nobody"[..], true), (b"one", false)] {
            let reference = poa.create_reference_with_id(id, TEST_ID).unwrap();
            assert_eq!(seen_by(&client, &reference).non_existent(), Ok(is_missing));
        }
        poa.destroy(false, true).unwrap();
    }
}

#[test]
fn a_request_within_a_request_leaves_the_outer_one_as_it_was() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let (outer, inner) = (Witness::new(&server.orb), Witness::new(&server.orb));
    let refer = |witness: &Arc<Witness>| {
        let servant: Arc<dyn Servant> = witness.clone();
        seen_by(
            &client,
            &server.root.servant_to_reference(&servant).unwrap(),
        )
    };
    let (outer_object, inner_object) = (refer(&outer), refer(&inner));
    *outer.next.lock().unwrap() = Some(inner_object);
    assert_eq!(call(&outer_object, "ping"), Ok(()));
    assert_ne!(
        outer.seen.lock().unwrap()[0].id,
        inner.seen.lock().unwrap()[0].id
    );
}

#[test]
fn a_request_within_a_request_of_one_thread_and_one_single_threaded_adapter_is_served() {
    let world = World::new(7, (1_000, 1_000));
    let (client, server) = (world.orb("client"), world.orb("server"));
    let root = server.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let policies = Policies {
        thread: ThreadPolicy::SingleThreadModel,
        ..Policies::default()
    };
    let poa = root
        .create_poa("single", Some(root.the_poa_manager()), &policies)
        .unwrap();
    let (outer, inner) = (Witness::new(&server), Witness::new(&server));
    let refer = |witness: &Arc<Witness>| {
        let id = poa.activate_object(witness.clone()).unwrap();
        seen_by(&client, &poa.id_to_reference(&id).unwrap())
    };
    let (outer_object, inner_object) = (refer(&outer), refer(&inner));
    *outer.next.lock().unwrap() = Some(inner_object);
    assert_eq!(call(&outer_object, "ping"), Ok(()));
    assert_eq!(inner.seen.lock().unwrap().len(), 1);
    assert_eq!(outer.seen.lock().unwrap().len(), 1);
    assert_eq!(server.poa_current().object_id(), Err(NoContext));
    world.end();
}

/// Records the values in both of its operations.
struct Looking {
    current: PoaCurrent,
    servant: Arc<Witness>,
    seen: Mutex<Vec<(Vec<u8>, bool)>>,
}

impl Looking {
    fn look(&self) {
        let id = self.current.object_id().unwrap().to_vec();
        let has_servant = self.current.servant().is_ok();
        self.seen.lock().unwrap().push((id, has_servant));
    }
}

impl ServantLocator for Looking {
    fn preinvoke(
        &self,
        _: &[u8],
        _: &Poa,
        _: &str,
        _: &mut Cookie,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.look();
        Ok(self.servant.clone())
    }

    fn postinvoke(
        &self,
        _: &[u8],
        _: &Poa,
        _: &str,
        _: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        self.look();
        Ok(())
    }
}

#[test]
fn a_servant_locator_and_its_servant_see_the_request() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let policies = Policies {
        request_processing: RequestProcessing::UseServantManager,
        servant_retention: ServantRetention::NonRetain,
        ..Policies::persistent()
    };
    let manager = server.root.the_poa_manager();
    let poa = server
        .root
        .create_poa("located", Some(manager), &policies)
        .unwrap();
    let locator = Arc::new(Looking {
        current: server.orb.poa_current(),
        servant: Witness::new(&server.orb),
        seen: Mutex::default(),
    });
    poa.set_servant_manager(ServantManager::Locator(locator.clone()))
        .unwrap();
    let object = seen_by(
        &client,
        &poa.create_reference_with_id(b"it", TEST_ID).unwrap(),
    );
    assert_eq!(call(&object, "ping"), Ok(()));
    let seen = locator.seen.lock().unwrap();
    assert_eq!(*seen, [(b"it".to_vec(), false), (b"it".to_vec(), true)]);
    assert_eq!(locator.servant.seen.lock().unwrap()[0].id, b"it");
}

/// A servant that calls operations of its adapter within a request.
struct Asking(Poa, Mutex<Vec<Vec<u8>>>);

impl Servant for Asking {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let me = self.0.servant().unwrap();
        let id = self.0.servant_to_id(&me).unwrap();
        let reference = self.0.servant_to_reference(&me).unwrap();
        assert_eq!(self.0.reference_to_id(&reference), Ok(id.clone()));
        let stranger: Arc<dyn Servant> = Arc::new(Bench::default());
        if self.0.servant_to_id(&stranger).is_ok() {
            return Err(SystemException::new(Kind::Internal, 0, Completion::No));
        }
        self.1.lock().unwrap().push(id.to_vec());
        request.reply().map(drop)
    }
}

#[test]
fn an_adapter_tells_a_default_servant_the_id_and_the_reference_that_are_asked() {
    let server = Server::start();
    let (client, _) = client_of(&server);
    let manager = server.root.the_poa_manager();
    let policies = default_policies(ServantRetention::NonRetain);
    let poa = server
        .root
        .create_poa("asking", Some(manager), &policies)
        .unwrap();
    let asking = Arc::new(Asking(poa.clone(), Mutex::default()));
    poa.set_servant(asking.clone()).unwrap();
    for id in [&b"one"[..], b"two"] {
        let object = seen_by(&client, &poa.create_reference_with_id(id, TEST_ID).unwrap());
        assert_eq!(call(&object, "ping"), Ok(()));
    }
    assert_eq!(
        *asking.1.lock().unwrap(),
        [b"one".to_vec(), b"two".to_vec()]
    );
}
