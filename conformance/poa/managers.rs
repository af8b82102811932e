//! The tree of adapters, adapter activators and managers by clause (CORBA 3.3 part 1, 15.3.2 to 15.3.4).

use std::sync::{Arc, Mutex};

use crate::common::message::{NO_EXCEPTION, Request};
use crate::common::poa::{
    COMPLETED_NO, FORM, OBJ_ADAPTER, OBJECT_NOT_EXIST, TRANSIENT, ask, child, key_of, probe,
    raises, system, user_ids, who, world,
};
use crate::common::{OMG, World, over_each};
use deckwatch_orb::{
    AdapterActivator, ManagerAlreadyExists, ManagerState, Poa, PoaError, PoaManagerError, Policies,
    SystemException, SystemExceptionKind as Kind,
};

over_each! {
    fn a_manager_holds_at_first_and_lets_through_what_it_held(over) {
        let world = world(over);
        let poa = world.root.create_poa("a", None, &user_ids()).unwrap();
        assert_eq!(poa.the_poa_manager().state(), ManagerState::Holding);
        poa.activate_object_with_id(b"x", probe()).unwrap();
        let mut wire = world.dial();
        wire.say(&Request::new(FORM, &key_of(&poa.id_to_reference(b"x").unwrap()), "who").bare());
        assert_eq!(ask(&world, &world.key, "ping").status, NO_EXCEPTION);
        poa.the_poa_manager().activate().unwrap();
        assert_eq!(wire.hear().expect("a reply").reply().body.sequence(), b"x");
        poa.the_poa_manager().hold_requests(false).unwrap();
        assert_eq!(poa.the_poa_manager().state(), ManagerState::Holding);
    }

    fn a_manager_that_discards_raises_transient(over) {
        let world = world(over);
        let manager = world.root.the_poa_manager();
        manager.discard_requests(false).unwrap();
        assert_eq!(manager.state(), ManagerState::Discarding);
        raises(&world, &world.key, TRANSIENT, 1);
        manager.activate().unwrap();
        assert_eq!(ask(&world, &world.key, "ping").status, NO_EXCEPTION);
    }

    fn a_manager_that_is_inactive_stays_so(over) {
        let world = world(over);
        let manager = world.root.the_poa_manager();
        manager.deactivate(true, true).unwrap();
        assert_eq!(manager.state(), ManagerState::Inactive);
        let (id, _, completed) = ask(&world, &world.key, "ping").exception();
        assert_eq!((id.as_str(), completed), (OBJ_ADAPTER, COMPLETED_NO));
        let inactive = Err(PoaManagerError::AdapterInactive);
        assert_eq!(manager.activate(), inactive);
        assert_eq!(manager.hold_requests(false), inactive);
        assert_eq!(manager.discard_requests(false), inactive);
        assert_eq!(manager.deactivate(false, false), inactive);
    }

    fn adapters_of_one_manager_change_together_and_others_do_not(over) {
        let world = world(over);
        let [with_root, own] = [Some(world.root.the_poa_manager()), None]
            .map(|manager| world.root.create_poa(if manager.is_some() { "shared" } else { "own" }, manager, &user_ids()).unwrap());
        own.the_poa_manager().activate().unwrap();
        for poa in [&with_root, &own] {
            poa.activate_object_with_id(b"x", probe()).unwrap();
        }
        world.root.the_poa_manager().discard_requests(false).unwrap();
        raises(&world, &key_of(&with_root.id_to_reference(b"x").unwrap()), TRANSIENT, 1);
        assert_eq!(who(&world, &key_of(&own.id_to_reference(b"x").unwrap())), b"x");
    }

    fn the_factory_makes_lists_and_finds_managers(over) {
        let world = world(over);
        let factory = world.root.the_poa_manager_factory().unwrap();
        let made = factory.create_poa_manager("mine").unwrap();
        assert_eq!((made.id(), made.state()), ("mine", ManagerState::Holding));
        assert_eq!(factory.create_poa_manager("mine").map(drop), Err(ManagerAlreadyExists));
        assert!(factory.find("mine").is_some() && factory.find("yours").is_none());
        let ids: Vec<_> = factory.list().iter().map(|manager| manager.id().to_owned()).collect();
        assert!(ids.contains(&"mine".to_owned()) && ids.contains(&"RootPOAManager".to_owned()), "{ids:?}");
    }

    fn an_adapter_activator_makes_adapters_when_requests_come_for_them(over) {
        let [maker, server] = [world(over), world(over)];
        let below = |world: &World, name: &str| {
            let store = world.root.find_poa("store", false).unwrap_or_else(|_| child(world, "store", &Policies::persistent()));
            (store.clone(), store.create_poa(name, Some(world.root.the_poa_manager()), &Policies::persistent()))
        };
        let (_, made) = below(&maker, "made");
        let key = key_of(&made.unwrap().create_reference_with_id(b"x", "").unwrap());
        let (_, refused) = below(&maker, "refused");
        let refused = key_of(&refused.unwrap().create_reference_with_id(b"x", "").unwrap());
        let (_, broken) = below(&maker, "broken");
        let broken = key_of(&broken.unwrap().create_reference_with_id(b"x", "").unwrap());

        let store = child(&server, "store", &Policies::persistent());
        raises(&server, &key, OBJECT_NOT_EXIST, 2);
        let activator = Arc::new(Opener::default());
        store.set_the_activator(Some(activator.clone())).unwrap();
        assert_eq!(who(&server, &key), b"x");
        assert_eq!(who(&server, &key), b"x");
        raises(&server, &refused, OBJECT_NOT_EXIST, 2);
        raises(&server, &broken, OBJ_ADAPTER, 1);
        assert_eq!(*activator.asked.lock().unwrap(), ["made", "refused", "broken"]);
    }

    fn find_poa_asks_the_activator_where_it_shall(over) {
        let world = world(over);
        let store = child(&world, "store", &Policies::persistent());
        assert_eq!(store.find_poa("made", true).map(drop), Err(PoaError::AdapterNonExistent));
        store.set_the_activator(Some(Arc::new(Opener::default()))).unwrap();
        assert_eq!(store.find_poa("made", false).map(drop), Err(PoaError::AdapterNonExistent));
        assert_eq!(store.find_poa("made", true).unwrap().the_name(), "made");
        assert_eq!(store.find_poa("refused", true).map(drop), Err(PoaError::AdapterNonExistent));
        assert_eq!(store.find_poa("broken", true).map(drop), Err(system(Kind::ObjAdapter, OMG | 1)));
    }

    fn adapters_have_names_parents_and_children(over) {
        let world = world(over);
        let a = child(&world, "a", &Policies::default());
        let b = a.create_poa("b", None, &Policies::default()).unwrap();
        assert_eq!(world.root.create_poa("a", None, &Policies::default()).map(drop), Err(PoaError::AdapterAlreadyExists));
        assert_eq!((world.root.the_name(), a.the_name(), b.the_name()), ("RootPOA", "a", "b"));
        assert_eq!((a.the_parent(), b.the_parent(), world.root.the_parent()), (Some(world.root.clone()), Some(a.clone()), None));
        assert_eq!(a.the_children().unwrap(), vec![b.clone()]);
        assert_eq!((world.root.find_poa("a", false), a.find_poa("b", false)), (Ok(a.clone()), Ok(b.clone())));
        assert_eq!(world.root.find_poa("b", false).map(drop), Err(PoaError::AdapterNonExistent));
        assert!(a.id() != b.id() && a.id() != world.root.id());
    }

    fn destroying_an_adapter_destroys_those_below_it(over) {
        let world = world(over);
        let a = child(&world, "a", &user_ids());
        let b = a.create_poa("b", Some(world.root.the_poa_manager()), &user_ids()).unwrap();
        b.activate_object_with_id(b"x", probe()).unwrap();
        let key = key_of(&b.id_to_reference(b"x").unwrap());
        assert_eq!(who(&world, &key), b"x");
        a.destroy(false, true).unwrap();
        assert_eq!(ask(&world, &key, "who").exception().0, OBJECT_NOT_EXIST);
        for poa in [&a, &b] {
            let Err(PoaError::System(raised)) = poa.activate_object_with_id(b"y", probe()) else {
                panic!("a destroyed adapter activates");
            };
            assert_eq!(raised.kind, Kind::ObjectNotExist);
        }
        assert_eq!(world.root.find_poa("a", false).map(drop), Err(PoaError::AdapterNonExistent));
        assert!(world.root.create_poa("a", None, &user_ids()).is_ok(), "its name is free");
    }
}

/// An adapter activator: creates the adapter `made` with an object `x`, refuses other names, and raises for `broken`.
#[derive(Default)]
struct Opener {
    asked: Mutex<Vec<String>>,
}

impl AdapterActivator for Opener {
    fn unknown_adapter(&self, parent: &Poa, name: &str) -> Result<bool, SystemException> {
        self.asked.lock().unwrap().push(name.to_owned());
        match name {
            "made" => {
                let manager = parent.the_poa_manager().clone();
                let made = parent
                    .create_poa(name, Some(&manager), &Policies::persistent())
                    .expect("it is not there yet");
                made.activate_object_with_id(b"x", probe())
                    .expect("nor its object");
                Ok(true)
            }
            "broken" => Err(SystemException::new(
                Kind::NoMemory,
                0,
                deckwatch_orb::Completion::No,
            )),
            _ => Ok(false),
        }
    }
}
