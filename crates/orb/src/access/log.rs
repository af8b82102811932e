//! What an ORB tells an access log.

use deckwatch_access::Action;

use super::Refusal;
use crate::Caller;

/// Something that a log of access is told. A request that is neither refused nor administrative is not told.
#[derive(Clone, Copy, Debug)]
pub enum AccessEvent<'a> {
    /// A table refused a request.
    Refused(&'a Refusal),
    /// A table that came into force does not permit what a connected client does: it is disconnected.
    Disconnected(&'a Refusal),
    /// A table permitted a request that binds or administers, which is called next.
    Administered {
        /// The peer.
        caller: Caller,
        /// The name in its certificate.
        name: Option<&'a str>,
        /// What the operation does.
        action: Action,
        /// The operation.
        operation: &'a [u8],
        /// The name of the object in the rules.
        object: Option<&'a str>,
        /// What the operation is about, such as a name that it binds.
        about: Option<&'a str>,
    },
    /// A peer has connected.
    Connected {
        /// The peer.
        caller: Caller,
        /// The name in its certificate.
        name: Option<&'a str>,
    },
    /// A peer was not let in.
    ConnectionRefused {
        /// Its address.
        peer: &'a str,
        /// Why.
        reason: &'a str,
    },
}

/// Takes what happens at the doors of an ORB: [`OrbBuilder::access_log`](crate::OrbBuilder::access_log).
pub trait AccessLog: Send + Sync + 'static {
    /// Called on the thread that serves the peer: it must neither block nor panic.
    fn note(&self, event: &AccessEvent<'_>);
}
