//! Default servants and servant managers by clause (CORBA 3.3 part 1, 15.3.5 to 15.3.7): how requests for objects that
//! are not active are served.

use std::sync::{Arc, Mutex};

use crate::common::ior::Ior;
use crate::common::message::LOCATION_FORWARD;
use crate::common::poa::{
    OBJ_ADAPTER, OBJECT_NOT_EXIST, ask, child, key_of, probe, raises, system, who, with_default,
    with_manager, world,
};
use crate::common::servant::{PROBE_ID, Probe};
use crate::common::{OMG, over_each, wait_for};
use deckwatch_orb::{
    Cookie, ForwardRequest, ObjectRef, Poa, PoaError, Servant, ServantActivator, ServantLocator,
    ServantManager, ServantManagerError, ServantRetention, SystemException,
    SystemExceptionKind as Kind,
};

over_each! {
    fn a_default_servant_serves_what_is_not_active(over) {
        let world = world(over);
        for (name, retention) in [("retain", ServantRetention::Retain), ("not", ServantRetention::NonRetain)] {
            let poa = child(&world, name, &with_default(retention));
            let key = key_of(&poa.create_reference_with_id(b"any one", PROBE_ID).unwrap());
            assert_eq!(poa.servant().map(drop), Err(PoaError::NoServant));
            raises(&world, &key, OBJ_ADAPTER, 3);
            poa.set_servant(probe()).unwrap();
            assert_eq!(who(&world, &key), b"any one");
        }
        // An active object is served by its own servant.
        let poa = child(&world, "both", &with_default(ServantRetention::Retain));
        let default = Arc::new(Probe::default());
        poa.set_servant(default.clone()).unwrap();
        poa.activate_object_with_id(b"own", probe()).unwrap();
        assert_eq!(who(&world, &key_of(&poa.id_to_reference(b"own").unwrap())), b"own");
        assert_eq!(default.calls(), 0);
    }

    fn set_servant_and_set_servant_manager_need_their_policies(over) {
        let world = world(over);
        assert_eq!(world.root.set_servant(probe()), Err(PoaError::WrongPolicy));
        assert_eq!(world.root.servant().map(drop), Err(PoaError::WrongPolicy));
        let activator = || ServantManager::Activator(Arc::new(Maker::default()));
        assert_eq!(world.root.set_servant_manager(activator()), Err(PoaError::WrongPolicy));
        let poa = child(&world, "a", &with_manager(ServantRetention::Retain));
        assert!(poa.servant_manager().unwrap().is_none());
        poa.set_servant_manager(activator()).unwrap();
        assert_eq!(poa.set_servant_manager(activator()), Err(system(Kind::BadInvOrder, OMG | 6)));
        let locator = child(&world, "l", &with_manager(ServantRetention::NonRetain));
        assert_eq!(locator.set_servant_manager(activator()), Err(system(Kind::ObjAdapter, OMG | 4)));
    }

    fn without_a_servant_manager_a_request_is_obj_adapter(over) {
        let world = world(over);
        for (name, retention) in [("a", ServantRetention::Retain), ("l", ServantRetention::NonRetain)] {
            let poa = child(&world, name, &with_manager(retention));
            raises(&world, &key_of(&poa.create_reference_with_id(b"x", "").unwrap()), OBJ_ADAPTER, 4);
        }
    }

    fn an_activator_incarnates_once_and_gets_the_servant_back_at_the_end(over) {
        let world = world(over);
        let maker = Arc::new(Maker::default());
        let poa = child(&world, "a", &with_manager(ServantRetention::Retain));
        poa.set_servant_manager(ServantManager::Activator(maker.clone())).unwrap();
        let key = key_of(&poa.create_reference_with_id(b"x", PROBE_ID).unwrap());
        for _ in 0..3 {
            assert_eq!(who(&world, &key), b"x");
        }
        assert_eq!(maker.log(), ["incarnate x"]);
        poa.deactivate_object(b"x").unwrap();
        wait_for(|| maker.log().len() == 2);
        // A second request works too.
        assert_eq!(who(&world, &key), b"x");
        poa.destroy(true, true).unwrap();
        assert_eq!(maker.log(), ["incarnate x", "etherealize x cleanup=false", "incarnate x", "etherealize x cleanup=true"]);
    }

    fn a_forward_request_of_a_servant_manager_is_a_location_forward(over) {
        let world = world(over);
        for (name, retention) in [("a", ServantRetention::Retain), ("l", ServantRetention::NonRetain)] {
            let maker = Arc::new(Maker::default());
            *maker.elsewhere.lock().unwrap() = Some(world.object.clone());
            let poa = child(&world, name, &with_manager(retention));
            poa.set_servant_manager(maker.as_manager(retention)).unwrap();
            let key = key_of(&poa.create_reference_with_id(b"elsewhere", "").unwrap());
            let mut reply = ask(&world, &key, "ping");
            assert_eq!(reply.status, LOCATION_FORWARD);
            let ior = Ior::read(&mut reply.body);
            assert_eq!(ior, Ior::of_text(&world.orb.object_to_string(&world.object)));
        }
    }

    fn what_a_servant_manager_raises_goes_to_the_client(over) {
        let world = world(over);
        for (name, retention) in [("a", ServantRetention::Retain), ("l", ServantRetention::NonRetain)] {
            let poa = child(&world, name, &with_manager(retention));
            poa.set_servant_manager(Arc::new(Maker::default()).as_manager(retention)).unwrap();
            let key = key_of(&poa.create_reference_with_id(b"missing", "").unwrap());
            raises(&world, &key, OBJECT_NOT_EXIST, 77);
        }
    }

    fn a_locator_is_asked_for_each_request_and_told_after_it_with_its_cookie(over) {
        let world = world(over);
        let maker = Arc::new(Maker::default());
        let poa = child(&world, "l", &with_manager(ServantRetention::NonRetain));
        poa.set_servant_manager(ServantManager::Locator(maker.clone())).unwrap();
        let key = key_of(&poa.create_reference_with_id(b"x", PROBE_ID).unwrap());
        assert_eq!(who(&world, &key), b"x");
        assert_eq!(ask(&world, &key, "fail").exception().0, "IDL:omg.org/CORBA/NO_PERMISSION:1.0");
        wait_for(|| maker.log().len() == 4);
        assert_eq!(maker.log(), ["preinvoke x who", "postinvoke x who 1", "preinvoke x fail", "postinvoke x fail 2"]);
    }
}

/// A servant manager of both kinds that creates probes; the object id selects an error.
#[derive(Default)]
struct Maker {
    log: Mutex<Vec<String>>,
    elsewhere: Mutex<Option<ObjectRef>>,
    cookies: Mutex<u32>,
}

impl Maker {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn note(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }

    fn as_manager(self: &Arc<Self>, retention: ServantRetention) -> ServantManager {
        match retention {
            ServantRetention::Retain => ServantManager::Activator(self.clone()),
            ServantRetention::NonRetain => ServantManager::Locator(self.clone()),
        }
    }

    fn make(&self, id: &[u8]) -> Result<Arc<dyn Servant>, ServantManagerError> {
        match id {
            b"elsewhere" => {
                let forward_reference = self
                    .elsewhere
                    .lock()
                    .unwrap()
                    .clone()
                    .expect("the test has set it");
                Err(ForwardRequest { forward_reference }.into())
            }
            b"missing" => {
                let raised = SystemException::new(
                    Kind::ObjectNotExist,
                    OMG | 77,
                    deckwatch_orb::Completion::No,
                );
                Err(raised.into())
            }
            _ => Ok(probe()),
        }
    }
}

impl ServantActivator for Maker {
    fn incarnate(
        &self,
        object_id: &[u8],
        _: &Poa,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.note(format!("incarnate {}", String::from_utf8_lossy(object_id)));
        self.make(object_id)
    }

    fn etherealize(&self, object_id: &[u8], _: &Poa, _: Arc<dyn Servant>, cleanup: bool, _: bool) {
        self.note(format!(
            "etherealize {} cleanup={cleanup}",
            String::from_utf8_lossy(object_id)
        ));
    }
}

impl ServantLocator for Maker {
    fn preinvoke(
        &self,
        object_id: &[u8],
        _: &Poa,
        operation: &str,
        cookie: &mut Cookie,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        self.note(format!(
            "preinvoke {} {operation}",
            String::from_utf8_lossy(object_id)
        ));
        let mut count = self.cookies.lock().unwrap();
        *count += 1;
        *cookie = Some(Box::new(*count));
        self.make(object_id)
    }

    fn postinvoke(
        &self,
        object_id: &[u8],
        _: &Poa,
        operation: &str,
        cookie: Cookie,
        _: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        let cookie = cookie
            .and_then(|cookie| cookie.downcast::<u32>().ok())
            .expect("the cookie of preinvoke");
        self.note(format!(
            "postinvoke {} {operation} {cookie}",
            String::from_utf8_lossy(object_id)
        ));
        Ok(())
    }
}
