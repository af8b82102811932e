//! The real-time policies in a reference, and whether the caller's overrides are consistent with them.

use deckwatch_giop::ior::policies::{PriorityModelValue, policies_component};
use deckwatch_giop::ior::{IiopProfile, profile_tag};

use super::ObjectRef;
use super::route_key;
use crate::SystemException;
use crate::policy::{Policy, PolicyType};
use crate::rt::{
    self, Exposed, Priority, PriorityBands, PriorityModel, PriorityModelPolicy, Protocol, Protocols,
};

impl ObjectRef {
    /// The policy of this kind that a call from this thread would have (Object::get_policy): as
    /// [`ObjectRef::client_policy`], or the protocols or bands in the reference itself.
    ///
    /// # Errors
    /// As there; INV_POLICY with the standard's minor code 1 if both set it; NO_RESOURCES at
    /// [`crate::limits::POLICY_LISTS_MAX`] different lists in the process.
    pub fn policy(&self, kind: PolicyType) -> Result<Option<Policy>, SystemException> {
        let orb = self.0.orb()?;
        let in_force = self.in_force(orb);
        let exposed = self.0.current().routes()?.exposed();
        match kind {
            PolicyType::PRIORITY_BANDED_CONNECTION => {
                let bands = route_key::bands(exposed, &in_force);
                let bands = bands.map_err(route_key::Inconsistent::exception)?;
                let policy = PriorityBands::new(bands)?;
                Ok((!bands.is_empty()).then_some(Policy::PriorityBandedConnection(policy)))
            }
            PolicyType::CLIENT_PROTOCOL => {
                let protocols = self.protocols(exposed)?;
                let policy = Protocols::new(protocols)?;
                Ok((!protocols.is_empty()).then_some(Policy::ClientProtocol(policy)))
            }
            kind => in_force.in_force(kind),
        }
    }

    /// Returns the protocols of its connections by the policies in force or by the reference, most preferred first; all
    /// protocols if the list is empty.
    ///
    /// # Errors
    /// INV_POLICY if both have a list; BAD_INV_ORDER for a reference without an ORB.
    pub(crate) fn protocols<'e>(
        &self,
        exposed: Option<&'e Exposed>,
    ) -> Result<&'e [Protocol], SystemException> {
        let in_force = self.in_force(self.0.orb()?);
        route_key::protocols(exposed, &in_force).map_err(route_key::Inconsistent::exception)
    }

    /// The priority model of its object (Object::get_policy for [`PolicyType::PRIORITY_MODEL`]), which only the server
    /// sets. `None` if the reference has none.
    ///
    /// # Errors
    /// INV_OBJREF for a reference without a usable profile, BAD_INV_ORDER for one without an ORB.
    pub fn priority_model(&self) -> Result<Option<PriorityModelPolicy>, SystemException> {
        let exposed = self.0.current().routes()?.exposed();
        Ok(exposed.and_then(|exposed| exposed.model))
    }

    /// The same reference with the priority model CLIENT_PROPAGATED: requests carry the priority of their caller. For a
    /// server that orders the work of a request by its priority, and leaves the thread that reads it alone.
    ///
    /// # Errors
    /// MARSHAL for a profile that cannot be read or written.
    pub fn with_propagated_priority(
        &self,
        server_priority: Priority,
    ) -> Result<Self, SystemException> {
        let model = PriorityModelValue {
            model: PriorityModel::ClientPropagated as u32,
            server_priority: server_priority.value(),
        };
        let component = policies_component(&[model.to_policy()?])?;
        let mut ior = self.ior().clone();
        for profile in &mut ior.profiles {
            if profile.tag == profile_tag::INTERNET_IOP {
                let mut iiop = IiopProfile::from_octets(&profile.data)?;
                iiop.components.push(component.clone());
                *profile = iiop.to_tagged()?;
            }
        }
        Ok(self.like(ior))
    }

    /// The kinds of policies because of which a call from this thread, at its present priority, would raise INV_POLICY
    /// (the parameter of Object::validate_connection). Empty if all are consistent.
    ///
    /// # Errors
    /// As [`ObjectRef::priority_model`].
    pub fn inconsistent_policies(&self) -> Result<&'static [PolicyType], SystemException> {
        let current = self.0.current();
        let forwarded = current.forwarded();
        let routes = match &forwarded {
            Some(routes) => &**routes,
            None => current.routes()?,
        };
        let in_force = self.in_force(self.0.orb()?);
        Ok(routes.inconsistent(&in_force, rt::current::priority()))
    }
}
