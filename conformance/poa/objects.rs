//! The object adapter by clause (CORBA 3.3 part 1, clause 15), as a client sees it: objects, their ids and
//! references, and the policies of adapters.

use std::sync::Arc;

use crate::common::message::{NO_EXCEPTION, Request};
use crate::common::poa::{
    FORM, OBJECT_NOT_EXIST, ask, child, key_of, probe, raises, user_ids, who, with_default,
    with_manager, world,
};
use crate::common::servant::{PROBE_ID, Probe};
use crate::common::{Lanes, OMG, Over, World, over_each};
use deckwatch_orb::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, NoContext, Orb, Poa, PoaError,
    Policies, RequestProcessing, Servant, ServantRetention, ServerRequest, SystemException,
    SystemExceptionKind as Kind, ThreadPolicy,
};

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
        // The reference is also invalid in a later process of the same server.
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
        // With MULTIPLE_ID, each call activates a new object.
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
        // Without UNIQUE_ID and IMPLICIT_ACTIVATION, the adapter cannot choose one of the servant's objects.
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
        // Other objects are served meanwhile; the second request waits.
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

/// The default policies are those of the standard; the root adapter has its own.
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

/// Replies with values of `PoaCurrent`: object id, adapter name, object key.
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
