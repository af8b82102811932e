//! Priorities of single objects by clause (RTCORBA 1.2: RTPortableServer).

use crate::common::lanes::{DecodedReference, LaneWorld, declared, priority, propagated};
use crate::common::servant::PROBE_ID;
use crate::common::{Over, over_each};
use deckwatch_orb::{
    IdAssignment, PoaError, Policies, Priority, RequestProcessing, SystemExceptionKind as Kind,
    limits,
};

fn declaring(world: &LaneWorld, id_assignment: IdAssignment) -> Policies {
    Policies {
        threadpool: Some(world.pool(&[5, 90])),
        priority_model: declared(5),
        id_assignment,
        ..Policies::default()
    }
}

#[track_caller]
fn raises<T: std::fmt::Debug>(outcome: Result<T, PoaError>, kind: Kind) {
    match outcome {
        Err(PoaError::System(exception)) => assert_eq!(exception.kind, kind),
        other => panic!("a system exception: {other:?}"),
    }
}

#[test]
fn an_object_activated_with_a_priority_is_served_at_it() {
    let world = LaneWorld::new(Over::Tcp);
    let poa = world.adapter("a", &declaring(&world, IdAssignment::SystemId));
    let id = poa.activate_object_with_priority(world.servant(), priority(90));
    let told = DecodedReference::of(&poa.id_to_reference(&id.unwrap()).unwrap());
    assert_eq!((told.model(), told.lanes.len()), ((1, 90), 1));
    assert_eq!(told.ask_priority(&told.address(), None).0, 90);
}

#[test]
fn an_object_activated_with_id_and_priority_is_served_at_it_and_others_at_the_adapters() {
    let world = LaneWorld::new(Over::Tcp);
    let policies = Policies {
        id_uniqueness: deckwatch_orb::IdUniqueness::MultipleId,
        ..declaring(&world, IdAssignment::UserId)
    };
    let poa = world.adapter("a", &policies);
    poa.activate_object_with_id_and_priority(b"high", world.servant(), priority(90))
        .unwrap();
    poa.activate_object_with_id(b"low", world.servant())
        .unwrap();
    for (id, served) in [(&b"high"[..], 90), (b"low", 5)] {
        let told = DecodedReference::of(&poa.id_to_reference(id).unwrap());
        assert_eq!(told.model(), (1, served));
        assert_eq!(told.ask_priority(&told.address(), None).0, served);
    }
}

#[test]
fn a_reference_made_with_a_priority_leads_to_its_lane_and_its_object_gets_it() {
    let world = LaneWorld::new(Over::Tcp);
    let poa = world.adapter("a", &declaring(&world, IdAssignment::UserId));
    let made = poa.create_reference_with_id_and_priority(b"later", PROBE_ID, priority(90));
    let told = DecodedReference::of(&made.unwrap());
    assert_eq!(told.model(), (1, 90));
    poa.activate_object_with_id(b"later", world.servant())
        .unwrap();
    assert_eq!(told.ask_priority(&told.address(), None).0, 90);
    let again = DecodedReference::of(&poa.id_to_reference(b"later").unwrap());
    assert_eq!(again.address(), told.address());
}

#[test]
fn a_reference_made_with_a_priority_and_no_id_leads_to_its_lane() {
    let world = LaneWorld::new(Over::Tcp);
    let policies = Policies {
        request_processing: RequestProcessing::UseDefaultServant,
        id_uniqueness: deckwatch_orb::IdUniqueness::MultipleId,
        ..declaring(&world, IdAssignment::SystemId)
    };
    let poa = world.adapter("a", &policies);
    poa.set_servant(world.servant()).unwrap();
    for number in [5, 90] {
        let made = poa.create_reference_with_priority(PROBE_ID, priority(number));
        let told = DecodedReference::of(&made.unwrap());
        assert_eq!(told.ask_priority(&told.address(), None).0, number);
    }
}

#[test]
fn a_priority_without_a_lane_is_bad_param_and_so_is_one_that_is_none() {
    let world = LaneWorld::new(Over::Tcp);
    let poa = world.adapter("a", &declaring(&world, IdAssignment::SystemId));
    raises(
        poa.activate_object_with_priority(world.servant(), priority(6)),
        Kind::BadParam,
    );
    raises(
        poa.create_reference_with_priority(PROBE_ID, priority(6)),
        Kind::BadParam,
    );
    for number in [-1, i16::MIN] {
        let refused = Priority::try_from(number).map(drop);
        assert_eq!(refused.unwrap_err().kind, Kind::BadParam);
    }
}

#[test]
fn an_object_keeps_the_priority_that_its_reference_was_made_with() {
    let world = LaneWorld::new(Over::Tcp);
    let poa = world.adapter("a", &declaring(&world, IdAssignment::UserId));
    let refer = |number| {
        poa.create_reference_with_id_and_priority(b"one", PROBE_ID, priority(number))
            .map(drop)
    };
    assert_eq!(refer(90), Ok(()));
    assert_eq!(refer(90), Ok(()));
    raises(refer(5), Kind::BadInvOrder);
    let activate = |number| {
        poa.activate_object_with_id_and_priority(b"one", world.servant(), priority(number))
    };
    raises(activate(5), Kind::BadInvOrder);
    assert_eq!(activate(90), Ok(()));
    raises(refer(5), Kind::BadInvOrder);
    assert_eq!(refer(90), Ok(()));
}

/// One more than the number of object priorities that an adapter may keep.
const MANY: usize = limits::OBJECT_PRIORITIES_MAX + 1;

#[test]
fn references_with_priorities_are_made_without_end_where_their_objects_end() {
    let world = LaneWorld::new(Over::Tcp);
    let poa = world.adapter("system", &declaring(&world, IdAssignment::SystemId));
    for _ in 0..MANY {
        poa.create_reference_with_priority(PROBE_ID, priority(90))
            .unwrap();
    }
    let poa = world.adapter("user", &declaring(&world, IdAssignment::UserId));
    let refer = |id: &[u8]| poa.create_reference_with_id_and_priority(id, PROBE_ID, priority(90));
    for number in 0..MANY {
        let id = number.to_be_bytes();
        refer(&id).unwrap();
        poa.activate_object_with_id(&id, world.servant()).unwrap();
        poa.deactivate_object(&id).unwrap();
    }
    // The adapter keeps the priorities of inactive objects up to a limit.
    for number in 1..MANY {
        refer(&[&b"kept"[..], &number.to_be_bytes()].concat()).unwrap();
    }
    raises(refer(b"one more"), Kind::NoResources);
}

#[test]
fn an_id_that_the_adapter_made_tells_its_priority_again_and_no_other_is_believed() {
    let world = LaneWorld::new(Over::Tcp);
    let poa = world.adapter("a", &declaring(&world, IdAssignment::SystemId));
    let id = poa
        .activate_object_with_priority(world.servant(), priority(90))
        .unwrap();
    poa.deactivate_object(&id).unwrap();
    raises(
        poa.activate_object_with_id_and_priority(&id, world.servant(), priority(5)),
        Kind::BadInvOrder,
    );
    poa.activate_object_with_id(&id, world.servant()).unwrap();
    let told = DecodedReference::of(&poa.id_to_reference(&id).unwrap());
    assert_eq!(told.model(), (1, 90));
    // No lane has priority 6; the other forged ids have a wrong length.
    for end in [&[0, 6][..], &[0], &[0, 90, 0]] {
        let forged = [&id[..id.len() - 2], end].concat();
        let made = poa.create_reference_with_id(&forged, PROBE_ID);
        match end.len() {
            2 => assert_eq!(DecodedReference::of(&made.unwrap()).model(), (1, 5)),
            _ => raises(made, Kind::BadParam),
        }
    }
}

over_each! {
    fn only_a_server_that_declares_priorities_gives_them_to_objects(over) {
        let world = LaneWorld::new(over);
        for (name, priority_model) in [("plain", None), ("propagated", propagated(5))] {
            let policies = Policies { priority_model, ..Policies::default() };
            let poa = world.adapter(name, &policies);
            let wrong = PoaError::WrongPolicy;
            let five = priority(5);
            let activated = poa.activate_object_with_priority(world.servant(), five);
            assert_eq!(activated.map(drop), Err(wrong));
            let activated = poa.activate_object_with_id_and_priority(b"id", world.servant(), five);
            assert_eq!(activated, Err(wrong));
            let made = poa.create_reference_with_priority(PROBE_ID, five);
            assert_eq!(made.map(drop), Err(wrong));
            let made = poa.create_reference_with_id_and_priority(b"id", PROBE_ID, five);
            assert_eq!(made.map(drop), Err(wrong));
        }
    }
}
