//! The priority mapping of an ORB, which the application may replace.

use std::fmt;
use std::sync::Arc;

use crate::rt::current::ThreadPriorities;
use crate::rt::{PriorityMapping, Scheduling};

/// The priority mapping of an ORB; `PriorityMappingManager` among TAO's initial references.
#[derive(Clone)]
pub struct PriorityMappingManager(pub(crate) Arc<ThreadPriorities>);

impl PriorityMappingManager {
    /// Returns the mapping that is in use.
    #[must_use]
    pub fn mapping(&self) -> Arc<dyn PriorityMapping> {
        self.0.mappings.mapping()
    }

    /// Replaces the mapping from now on. Threads keep their native priorities until these are set again.
    pub fn set_mapping(&self, mapping: impl PriorityMapping) {
        self.0.mappings.set(Arc::new(mapping));
    }

    /// Returns the class of the native priorities; the builder chooses it.
    #[must_use]
    pub fn scheduling(&self) -> Scheduling {
        self.0.mappings.scheduling()
    }
}

impl fmt::Debug for PriorityMappingManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PriorityMappingManager")
            .field("scheduling", &self.scheduling())
            .finish_non_exhaustive()
    }
}
