//! One address at which an object can be called.

use std::sync::{Arc, Weak};

use super::binding::Binding;
use super::collocated::CollocatedServer;
use crate::connection::bidirectional::Bidirectional;
use crate::wire::Profile;

/// One address at which an object can be called, and the connections to it.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) binding: Arc<Binding>,
    pub(crate) profile: Profile,
    /// The server of this ORB that listens there.
    pub(crate) here: Option<Weak<dyn CollocatedServer>>,
    /// Requests carry the priority of their caller.
    pub(crate) carries_priority: bool,
    /// The bidirectional connection that the reference arrived over: its server is called over it.
    pub(crate) way_back: Option<Weak<Bidirectional>>,
}
