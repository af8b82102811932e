//! The protocols of a lane's adapters (RTCORBA 1.2: ServerProtocolPolicy): how the connections are that it takes in.

use super::Lane;
use crate::rt::{NetworkPriorityMapping, Protocols, stream_options};
use crate::transport::TransportError;
use crate::{Completion, SystemException, minor, raise, raise::own};

impl Lane {
    /// Takes connections in from now on as these protocols say; true where none had been said before.
    ///
    /// # Errors
    /// INV_POLICY where other protocols have been said before, or the lane listens by none of these; DATA_CONVERSION where packets are to
    /// have a priority and the mapping has none, NO_PERMISSION where the host does not permit it.
    pub(crate) fn set_protocols(
        &self,
        protocols: Protocols,
        mapping: &dyn NetworkPriorityMapping,
    ) -> Result<bool, SystemException> {
        let says = |kind: u32| {
            protocols
                .iter()
                .any(|protocol| protocol.protocol_type == kind)
        };
        if !self.endpoints.iter().any(|at| says(at.protocol_type())) {
            return Err(raise::inv_policy(own::PROTOCOLS_MISSED, Completion::No));
        }
        let options = self
            .endpoints
            .iter()
            .map(|at| stream_options(&protocols, at, mapping, self.station.priority))
            .collect::<Result<Vec<_>, _>>()?;
        let mut said = self.protocols.lock("lane.protocols");
        if said.is_some_and(|said| said != protocols) {
            return Err(raise::inv_policy(own::PROTOCOLS_OF_OTHERS, Completion::No));
        }
        let listeners = self.listeners.lock("lane.protocols");
        for (listener, options) in listeners.iter().zip(options) {
            listener.set_options(options).map_err(|error| match error {
                TransportError::Denied => {
                    raise::no_permission(own::NETWORK_PRIORITY_DENIED, Completion::No)
                }
                _ => raise::no_resources(minor::NONE, Completion::No),
            })?;
        }
        Ok(said.replace(protocols).is_none())
    }

    /// Others may be said again: nothing has come of the adapter that they were said for.
    pub(crate) fn forget_protocols(&self) {
        *self.protocols.lock("lane.protocols") = None;
    }
}
