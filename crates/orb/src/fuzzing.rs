//! What the fuzz targets need of the inside of an ORB.

use crate::Orb;
#[cfg(feature = "tls")]
pub use crate::tls::fuzzing::{Shaken, TlsEntrance};

/// Returns what the peers of all lanes hold together: connections, those of them through shared memory, octets of
/// unfinished messages and queued requests, octets of unread replies. An ORB without connections holds nothing.
#[must_use]
pub fn held(orb: &Orb) -> [usize; 4] {
    orb.held_by_peers()
}
