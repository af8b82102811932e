//! What an application makes real-time entities with (RTCORBA 1.x, clause 5.9: RTCORBA::RTORB).

use std::fmt;
use std::sync::Arc;

use crate::Orb;
use crate::orb::OrbCore;

/// Makes threadpools and mutexes; `RTORB` among the standard's initial references.
#[derive(Clone)]
pub struct RtOrb(pub(crate) Arc<OrbCore>);

impl Orb {
    /// The real-time side of this ORB; `RTORB` among the standard's initial references.
    #[must_use]
    pub fn rt_orb(&self) -> RtOrb {
        RtOrb(Arc::clone(&self.0))
    }
}

impl fmt::Debug for RtOrb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtOrb").finish_non_exhaustive()
    }
}
