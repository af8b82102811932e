//! How a member that is not the primary answers clients.

use std::sync::{Arc, Weak};

use deckwatch_orb::{
    ForwardRequest, ObjectRef, Orb, Origin, Poa, Servant, ServantActivator, ServantManagerError,
    SystemException, SystemExceptionKind as Kind,
};

use super::Inner;
use crate::channel_group::Role;
use crate::group::Profiles;
use crate::raise::{raise, system};

/// Sends clients of a backup to the primary.
pub(super) struct Forwarding(pub(super) Weak<Inner>);

impl ServantActivator for Forwarding {
    fn incarnate(
        &self,
        object_id: &[u8],
        adapter: &Poa,
    ) -> Result<Arc<dyn Servant>, ServantManagerError> {
        let inner = self.0.upgrade();
        let inner = inner.ok_or_else(|| raise(Kind::ObjectNotExist))?;
        let (role, leader) = {
            let state = inner.state.lock("group.state");
            (state.role, state.leader)
        };
        match (role, leader) {
            (Role::Leading, _) => Err(raise(Kind::ObjectNotExist).into()),
            (Role::Following, Some(leader)) => {
                let own = adapter.create_reference_with_id(object_id, "");
                let at = inner.group.members[leader].clone();
                let forward_reference = primary(&inner.orb, &own.map_err(system)?, at)?;
                Err(ForwardRequest { forward_reference }.into())
            }
            _ => Err(raise(Kind::Transient).into()),
        }
    }

    fn etherealize(&self, _: &[u8], _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {}
}

/// The same object at the primary alone.
fn primary(orb: &Orb, own: &ObjectRef, at: (String, u16)) -> Result<ObjectRef, SystemException> {
    let both = Profiles::new(orb, vec![at]).add_to(own.clone());
    let mut ior = both.ior().clone();
    let last = ior.profiles.pop();
    ior.profiles.clear();
    ior.profiles.extend(last);
    let object = orb.string_to_object_of(&ior.to_string(), Origin::Own)?;
    object.ok_or_else(|| raise(Kind::Transient))
}
