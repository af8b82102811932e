//! Adapters as a client sees them: hand-made requests to object keys that adapters have created.

use std::sync::Arc;

use deckwatch_orb::{
    IdAssignment, IdUniqueness, ObjectRef, Poa, PoaError, Policies, RequestProcessing, Servant,
    ServantRetention, SystemException, SystemExceptionKind as Kind,
};

use super::message::{NO_EXCEPTION, Reply, Request};
use super::octets::Order;
use super::servant::Probe;
use super::{Lanes, OMG, Over, World};

pub(crate) const COMPLETED_NO: u32 = 1;
pub(crate) const FORM: (u8, Order) = (2, Order::Big);

pub(crate) const OBJECT_NOT_EXIST: &str = "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0";
pub(crate) const OBJ_ADAPTER: &str = "IDL:omg.org/CORBA/OBJ_ADAPTER:1.0";
pub(crate) const TRANSIENT: &str = "IDL:omg.org/CORBA/TRANSIENT:1.0";

pub(crate) fn world(over: Over) -> World {
    World::new(over, Lanes::Many)
}

pub(crate) fn key_of(reference: &ObjectRef) -> Vec<u8> {
    reference.object_key().expect("an IIOP profile").to_vec()
}

pub(crate) fn ask(world: &World, key: &[u8], operation: &str) -> Reply {
    world
        .dial()
        .ask(&Request::new(FORM, key, operation).bare())
        .reply()
}

/// The object id under which the servant received the request.
#[track_caller]
pub(crate) fn who(world: &World, key: &[u8]) -> Vec<u8> {
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
pub(crate) fn raises(world: &World, key: &[u8], id: &str, minor: u32) {
    let raised = ask(world, key, "who").exception();
    assert_eq!(raised, (id.to_owned(), OMG | minor, COMPLETED_NO));
}

pub(crate) fn child(world: &World, name: &str, policies: &Policies) -> Poa {
    let manager = world.root.the_poa_manager();
    world
        .root
        .create_poa(name, Some(manager), policies)
        .expect("policies that go together")
}

pub(crate) fn probe() -> Arc<dyn Servant> {
    Arc::new(Probe::default())
}

pub(crate) fn user_ids() -> Policies {
    Policies {
        id_assignment: IdAssignment::UserId,
        ..Policies::default()
    }
}

pub(crate) fn with_manager(retention: ServantRetention) -> Policies {
    Policies {
        servant_retention: retention,
        request_processing: RequestProcessing::UseServantManager,
        ..user_ids()
    }
}

pub(crate) fn with_default(retention: ServantRetention) -> Policies {
    Policies {
        servant_retention: retention,
        request_processing: RequestProcessing::UseDefaultServant,
        id_uniqueness: IdUniqueness::MultipleId,
        ..user_ids()
    }
}

pub(crate) fn system(kind: Kind, minor: u32) -> PoaError {
    PoaError::System(SystemException::new(
        kind,
        minor,
        deckwatch_orb::Completion::No,
    ))
}
