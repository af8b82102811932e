//! The network priority mapping of an ORB, which the application may replace.

use std::fmt;
use std::sync::Arc;

use crate::call_side::CallSide;
use crate::rt::NetworkPriorityMapping;

/// The network priority mapping of an ORB; `NetworkPriorityMappingManager` among TAO's initial references. It applies
/// to connections whose protocol properties enable network priorities.
#[derive(Clone)]
pub struct NetworkPriorityMappingManager(pub(crate) Arc<CallSide>);

impl NetworkPriorityMappingManager {
    /// Returns the mapping that is in use.
    #[must_use]
    pub fn mapping(&self) -> Arc<dyn NetworkPriorityMapping> {
        self.0.client.network_mapping()
    }

    /// Replaces the mapping for connections made from now on.
    pub fn set_mapping(&self, mapping: impl NetworkPriorityMapping) {
        self.0.client.network.set(Arc::new(mapping));
    }
}

impl fmt::Debug for NetworkPriorityMappingManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NetworkPriorityMappingManager")
    }
}
