//! The object adapter by clause (CORBA 3.3 part 1, clause 15), as a client sees it: requests made by hand to keys that adapters have made.

#[path = "common/mod.rs"]
mod common;

use std::sync::{Arc, Mutex};

use common::ior::Ior;
use common::message::{LOCATION_FORWARD, NO_EXCEPTION, Reply, Request};
use common::servant::{PROBE_ID, Probe};
use common::{Lanes, Order, Over, World, over_each, wait_for};
use deckwatch_orb::{
    AdapterActivator, Cookie, ForwardRequest, IdAssignment, IdUniqueness, ImplicitActivation,
    Lifespan, ManagerAlreadyExists, ManagerState, NoContext, ObjectRef, Orb, Poa, PoaError,
    PoaManagerError, Policies, RequestProcessing, Servant, ServantActivator, ServantLocator,
    ServantManager, ServantManagerError, ServantRetention, ServerRequest, SystemException,
    SystemExceptionKind as Kind, ThreadPolicy,
};

const OMG: u32 = 0x4f4d_0000;
const COMPLETED_NO: u32 = 1;
const FORM: (u8, Order) = (2, Order::Big);

const OBJECT_NOT_EXIST: &str = "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0";
const OBJ_ADAPTER: &str = "IDL:omg.org/CORBA/OBJ_ADAPTER:1.0";
const TRANSIENT: &str = "IDL:omg.org/CORBA/TRANSIENT:1.0";

fn world(over: Over) -> World {
    World::new(over, Lanes::Many)
}

fn key_of(reference: &ObjectRef) -> Vec<u8> {
    reference.object_key().expect("an IIOP profile").to_vec()
}

fn ask(world: &World, key: &[u8], operation: &str) -> Reply {
    world
        .dial()
        .ask(&Request::new(FORM, key, operation).bare())
        .reply()
}

/// The id under which the request arrived.
#[track_caller]
fn who(world: &World, key: &[u8]) -> Vec<u8> {
    let mut reply = ask(world, key, "who");
    assert_eq!(
        reply.status,
        NO_EXCEPTION,
        "{:?}",
        String::from_utf8_lossy(reply.body.rest())
    );
    reply.body.sequence()
}

#[track_caller]
fn raises(world: &World, key: &[u8], id: &str, minor: u32) {
    let raised = ask(world, key, "who").exception();
    assert_eq!(raised, (id.to_owned(), OMG | minor, COMPLETED_NO));
}

fn child(world: &World, name: &str, policies: &Policies) -> Poa {
    let manager = world.root.the_poa_manager();
    world
        .root
        .create_poa(name, Some(manager), policies)
        .expect("policies that go together")
}

fn probe() -> Arc<dyn Servant> {
    Arc::new(Probe::default())
}

fn user_ids() -> Policies {
    Policies {
        id_assignment: IdAssignment::UserId,
        ..Policies::default()
    }
}

fn with_manager(retention: ServantRetention) -> Policies {
    Policies {
        servant_retention: retention,
        request_processing: RequestProcessing::UseServantManager,
        ..user_ids()
    }
}

fn with_default(retention: ServantRetention) -> Policies {
    Policies {
        servant_retention: retention,
        request_processing: RequestProcessing::UseDefaultServant,
        id_uniqueness: IdUniqueness::MultipleId,
        ..user_ids()
    }
}

fn system(kind: Kind, minor: u32) -> PoaError {
    PoaError::System(SystemException::new(
        kind,
        minor,
        deckwatch_orb::Completion::No,
    ))
}

over_each! {
    fn an_activated_object_is_reached_by_its_reference(over) {
        let world = world(over);
        let poa = child(&world, "a", &user_ids());
        poa.activate_object_with_id(b"one", probe()).unwrap();
        let reference = poa.id_to_reference(b"one").unwrap();
        assert_eq!(reference.type_id(), PROBE_ID);
        assert_eq!(who(&world, &key_of(&reference)), b"one");
    }

    fn an_id_is_active_once_and_the_same_again_after_its_end(over) {
        let world = world(over);
        let poa = child(&world, "a", &user_ids());
        poa.activate_object_with_id(b"one", probe()).unwrap();
        assert_eq!(poa.activate_object_with_id(b"one", probe()), Err(PoaError::ObjectAlreadyActive));
        let key = key_of(&poa.id_to_reference(b"one").unwrap());
        poa.deactivate_object(b"one").unwrap();
        raises(&world, &key, OBJECT_NOT_EXIST, 2);
        assert_eq!(poa.deactivate_object(b"one"), Err(PoaError::ObjectNotActive));
        assert_eq!(poa.id_to_reference(b"one"), Err(PoaError::ObjectNotActive));
        poa.activate_object_with_id(b"one", probe()).unwrap();
        assert_eq!(who(&world, &key), b"one");
    }

    fn an_object_that_serves_is_deactivated_after_its_requests(over) {
        let world = world(over);
        let poa = child(&world, "a", &user_ids());
        let servant = Arc::new(Probe::default());
        poa.activate_object_with_id(b"one", servant.clone()).unwrap();
        let key = key_of(&poa.id_to_reference(b"one").unwrap());
        let mut wire = world.dial();
        wire.say(&Request::new(FORM, &key, "meet").bare());
        servant.gate.wait_for_arrivals(1);
        poa.deactivate_object(b"one").unwrap();
        servant.gate.open();
        assert_eq!(wire.hear().expect("a reply").reply().status, NO_EXCEPTION);
    }

    fn a_reference_may_be_made_before_its_object(over) {
        let world = world(over);
        let poa = child(&world, "a", &user_ids());
        let reference = poa.create_reference_with_id(b"later", "IDL:Later:1.0").unwrap();
        assert_eq!(reference.type_id(), "IDL:Later:1.0");
        raises(&world, &key_of(&reference), OBJECT_NOT_EXIST, 2);
        poa.activate_object_with_id(b"later", probe()).unwrap();
        assert_eq!(who(&world, &key_of(&reference)), b"later");
        let system = child(&world, "s", &Policies::default());
        let made = system.create_reference("IDL:Later:1.0").unwrap();
        let id = system.reference_to_id(&made).unwrap();
        system.activate_object_with_id(&id, probe()).unwrap();
        assert_eq!(who(&world, &key_of(&made)), id.to_vec());
    }

    fn transient_references_end_with_their_adapter_and_do_not_come_back(over) {
        let one = world(over);
        let poa = child(&one, "a", &user_ids());
        poa.activate_object_with_id(b"x", probe()).unwrap();
        let key = key_of(&poa.id_to_reference(b"x").unwrap());
        assert_eq!(who(&one, &key), b"x");
        poa.destroy(true, true).unwrap();
        assert_eq!(ask(&one, &key, "who").exception().0, OBJECT_NOT_EXIST);
        let again = child(&one, "a", &user_ids());
        again.activate_object_with_id(b"x", probe()).unwrap();
        assert_eq!(ask(&one, &key, "who").exception().0, OBJECT_NOT_EXIST);
        // Nor in another life of the same server.
        let other = world(over);
        child(&other, "a", &user_ids()).activate_object_with_id(b"x", probe()).unwrap();
        assert_eq!(ask(&other, &key, "who").exception().0, OBJECT_NOT_EXIST);
    }

    fn persistent_references_hold_wherever_the_same_adapter_serves_the_same_id(over) {
        let [one, other] = [world(over), world(over)];
        let key = [&one, &other].map(|world| {
            let poa = child(world, "store", &Policies::persistent());
            let below = poa.create_poa("below", Some(world.root.the_poa_manager()), &Policies::persistent()).unwrap();
            below.activate_object_with_id(b"x\0/y", probe()).unwrap();
            key_of(&below.id_to_reference(b"x\0/y").unwrap())
        });
        assert_eq!(key[0], key[1]);
        assert_eq!(who(&other, &key[0]), b"x\0/y");
    }

    fn unique_ids_take_a_servant_once_and_multiple_ids_as_often_as_one_likes(over) {
        let world = world(over);
        let unique = child(&world, "unique", &user_ids());
        let servant = probe();
        unique.activate_object_with_id(b"1", Arc::clone(&servant)).unwrap();
        assert_eq!(unique.activate_object_with_id(b"2", Arc::clone(&servant)), Err(PoaError::ServantAlreadyActive));
        let multiple = child(&world, "multiple", &Policies { id_uniqueness: IdUniqueness::MultipleId, ..user_ids() });
        for id in [b"1", b"2"] {
            multiple.activate_object_with_id(id, Arc::clone(&servant)).unwrap();
            assert_eq!(who(&world, &key_of(&multiple.id_to_reference(id).unwrap())), id);
        }
    }

    fn system_ids_are_the_adapters_and_user_ids_the_applications(over) {
        let world = world(over);
        let user = child(&world, "user", &user_ids());
        assert_eq!(user.activate_object(probe()), Err(PoaError::WrongPolicy));
        assert_eq!(user.create_reference("").map(drop), Err(PoaError::WrongPolicy));
        let system_ids = child(&world, "system", &Policies::default());
        let [one, two] = [(); 2].map(|()| system_ids.activate_object(probe()).unwrap());
        assert_ne!(one, two);
        let Err(PoaError::System(foreign)) = system_ids.activate_object_with_id(b"made by no adapter", probe()) else {
            panic!("an id of the application's under SYSTEM_ID");
        };
        assert_eq!((foreign.kind, foreign.minor), (Kind::BadParam, OMG | 14));
    }

    fn without_retention_nothing_is_activated(over) {
        let world = world(over);
        let poa = child(&world, "a", &with_default(ServantRetention::NonRetain));
        assert_eq!(poa.activate_object_with_id(b"x", probe()), Err(PoaError::WrongPolicy));
        assert_eq!(poa.deactivate_object(b"x"), Err(PoaError::WrongPolicy));
        assert_eq!(poa.id_to_reference(b"x").map(drop), Err(PoaError::WrongPolicy));
    }

    fn implicit_activation_happens_where_a_reference_to_a_servant_is_asked_for(over) {
        let world = world(over);
        let servant = probe();
        let reference = world.root.servant_to_reference(&servant).unwrap();
        assert_eq!(ask(&world, &key_of(&reference), "ping").status, NO_EXCEPTION);
        assert_eq!(world.root.servant_to_id(&servant), world.root.reference_to_id(&reference));
        let explicit = child(&world, "explicit", &Policies::default());
        assert_eq!(explicit.servant_to_id(&servant), Err(PoaError::ServantNotActive));
        assert_eq!(explicit.servant_to_reference(&servant).map(drop), Err(PoaError::ServantNotActive));
        // With MULTIPLE_ID each asking makes an object of its own.
        let many = Policies { id_uniqueness: IdUniqueness::MultipleId, ..Policies::root() };
        let many = child(&world, "many", &many);
        assert_ne!(many.servant_to_id(&servant).unwrap(), many.servant_to_id(&servant).unwrap());
    }

    fn servants_are_told_apart_only_where_the_policies_keep_them_apart(over) {
        let world = world(over);
        let servant = probe();
        let wrong = |poa: &Poa| {
            assert_eq!(poa.servant_to_id(&servant), Err(PoaError::WrongPolicy));
            assert_eq!(poa.servant_to_reference(&servant).map(drop), Err(PoaError::WrongPolicy));
        };
        // Neither UNIQUE_ID nor IMPLICIT_ACTIVATION: which of its objects would it be?
        let multiple = child(&world, "multiple", &Policies { id_uniqueness: IdUniqueness::MultipleId, ..user_ids() });
        multiple.activate_object_with_id(b"x", Arc::clone(&servant)).unwrap();
        wrong(&multiple);
        let unretained = child(&world, "unretained", &with_manager(ServantRetention::NonRetain));
        wrong(&unretained);
        assert_eq!(unretained.id_to_servant(b"x").map(drop), Err(PoaError::WrongPolicy));
        let reference = unretained.create_reference_with_id(b"x", "").unwrap();
        assert_eq!(unretained.reference_to_servant(&reference).map(drop), Err(PoaError::WrongPolicy));
    }

    fn a_single_thread_adapter_serves_one_request_at_a_time(over) {
        let world = world(over);
        let poa = child(&world, "a", &Policies { thread: ThreadPolicy::SingleThreadModel, ..user_ids() });
        let servant = Arc::new(Probe::default());
        poa.activate_object_with_id(b"x", servant.clone()).unwrap();
        let key = key_of(&poa.id_to_reference(b"x").unwrap());
        let mut wires = [world.dial(), world.dial()];
        wires[0].say(&Request::new(FORM, &key, "meet").bare());
        servant.gate.wait_for_arrivals(1);
        wires[1].say(&Request::new(FORM, &key, "ping").bare());
        // Others are served meanwhile; the second request is not.
        for _ in 0..20 {
            assert_eq!(ask(&world, &world.key, "ping").status, NO_EXCEPTION);
        }
        assert_eq!(servant.calls(), 1);
        servant.gate.open();
        for wire in &mut wires {
            assert_eq!(wire.hear().expect("a reply").reply().status, NO_EXCEPTION);
        }
    }

    fn an_adapter_under_the_orbs_control_serves_requests_at_the_same_time(over) {
        let world = world(over);
        let mut wires = [world.dial(), world.dial(), world.dial()];
        for wire in &mut wires {
            wire.say(&world.request(FORM, "meet").bare());
        }
        world.probe.gate.wait_for_arrivals(3);
        world.probe.gate.open();
        for wire in &mut wires {
            assert_eq!(wire.hear().expect("a reply").reply().status, NO_EXCEPTION);
        }
    }

    fn the_active_object_map_alone_knows_no_other_objects(over) {
        let world = world(over);
        let poa = child(&world, "a", &user_ids());
        raises(&world, &key_of(&poa.create_reference_with_id(b"x", "").unwrap()), OBJECT_NOT_EXIST, 2);
    }

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
        // What is active is served by its own servant.
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
        // And again when it is asked again.
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

    fn references_and_ids_and_servants_lead_to_each_other(over) {
        let world = world(over);
        let poa = child(&world, "a", &user_ids());
        let servant = probe();
        poa.activate_object_with_id(b"x", Arc::clone(&servant)).unwrap();
        let reference = poa.id_to_reference(b"x").unwrap();
        assert_eq!(poa.servant_to_id(&servant).unwrap().to_vec(), b"x");
        assert!(poa.servant_to_reference(&servant).unwrap().is_equivalent(&reference));
        assert_eq!(poa.reference_to_id(&reference).unwrap().to_vec(), b"x");
        assert!(Arc::ptr_eq(&poa.reference_to_servant(&reference).unwrap(), &servant));
        assert!(Arc::ptr_eq(&poa.id_to_servant(b"x").unwrap(), &servant));
        assert_eq!(poa.id_to_servant(b"y").map(drop), Err(PoaError::ObjectNotActive));
        assert_eq!(poa.servant_to_id(&probe()), Err(PoaError::ServantNotActive));
        for foreign in [world.object.clone(), child(&world, "b", &user_ids()).create_reference_with_id(b"x", "").unwrap()] {
            assert_eq!(poa.reference_to_id(&foreign), Err(PoaError::WrongAdapter));
            assert_eq!(poa.reference_to_servant(&foreign).map(drop), Err(PoaError::WrongAdapter));
        }
    }

    fn current_tells_a_servant_which_object_it_serves_and_nobody_else_anything(over) {
        let world = world(over);
        let poa = child(&world, "a", &with_default(ServantRetention::NonRetain));
        poa.set_servant(Arc::new(Asker(world.orb.clone()))).unwrap();
        for id in [&b"one"[..], b"two"] {
            let key = key_of(&poa.create_reference_with_id(id, PROBE_ID).unwrap());
            let mut reply = ask(&world, &key, "current");
            assert_eq!(reply.status, NO_EXCEPTION);
            assert_eq!((reply.body.sequence(), reply.body.string(), reply.body.sequence()), (id.to_vec(), "a".to_owned(), key));
        }
        let current = world.orb.poa_current();
        assert_eq!((current.object_id(), current.poa().map(drop)), (Err(NoContext), Err(NoContext)));
        assert_eq!((current.reference().map(drop), current.servant().map(drop)), (Err(NoContext), Err(NoContext)));
    }
}

/// The policies of the standard where nothing is said, and those of the root.
#[test]
fn policies_where_nothing_is_said_are_those_of_the_standard() {
    let policies = Policies::default();
    assert_eq!(policies.thread, ThreadPolicy::OrbCtrlModel);
    assert_eq!(policies.lifespan, Lifespan::Transient);
    assert_eq!(policies.id_uniqueness, IdUniqueness::UniqueId);
    assert_eq!(policies.id_assignment, IdAssignment::SystemId);
    assert_eq!(policies.servant_retention, ServantRetention::Retain);
    assert_eq!(
        policies.request_processing,
        RequestProcessing::UseActiveObjectMapOnly
    );
    assert_eq!(
        policies.implicit_activation,
        ImplicitActivation::NoImplicitActivation
    );
    let root = World::new(Over::Tcp, Lanes::Many)
        .root
        .policies()
        .to_owned();
    assert_eq!(
        root,
        Policies {
            implicit_activation: ImplicitActivation::ImplicitActivation,
            ..policies
        }
    );
}

#[test]
fn policies_that_do_not_go_together_are_invalid_policy() {
    let world = World::new(Over::Tcp, Lanes::Many);
    let non_retain = Policies {
        servant_retention: ServantRetention::NonRetain,
        ..Policies::default()
    };
    let default_for_unique = Policies {
        request_processing: RequestProcessing::UseDefaultServant,
        ..Policies::default()
    };
    let implicit = |policies| Policies {
        implicit_activation: ImplicitActivation::ImplicitActivation,
        ..policies
    };
    for policies in [
        non_retain,
        default_for_unique,
        implicit(user_ids()),
        implicit(with_default(ServantRetention::NonRetain)),
    ] {
        let made = world.root.create_poa("a", None, &policies);
        assert!(
            matches!(made, Err(PoaError::InvalidPolicy(_))),
            "{policies:?}"
        );
    }
}

/// Makes probes, by either way; an id says what goes wrong.
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

/// Makes the adapter `made` with an object `x`, refuses others, and fails for `broken`.
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

/// Answers with what `PoaCurrent` tells it: id, name of the adapter, key.
struct Asker(Orb);

impl Servant for Asker {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[PROBE_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let current = self.0.poa_current();
        let gone =
            |NoContext| SystemException::new(Kind::Internal, 0, deckwatch_orb::Completion::No);
        let (id, poa) = (
            current.object_id().map_err(gone)?,
            current.poa().map_err(gone)?,
        );
        let reference = current.reference().map_err(gone)?;
        let mut w = request.reply()?;
        w.write_octet_sequence(&id)?;
        w.write_string_octets(poa.the_name().as_bytes())?;
        w.write_octet_sequence(reference.object_key().unwrap_or_default())?;
        Ok(())
    }
}
