//! Who a peer is, as far as its connection tells: what a table is asked about, during a request and after it.

use std::sync::Arc;

use deckwatch_access::Subject;

use crate::{Caller, LocalProcess};

/// A peer as tables know it. A service keeps it with a client that stays connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The process.
    pub caller: Caller,
    /// The name in its certificate.
    pub name: Option<Arc<str>>,
    /// It connected from the address that it connected to.
    pub is_this_host: bool,
}

impl Identity {
    /// A peer of which nothing is known.
    pub const UNKNOWN: Self = Self {
        caller: Caller::Unknown,
        name: None,
        is_this_host: false,
    };

    pub(super) fn subject(&self) -> Subject<'_> {
        let mut subject = Subject {
            name: self.name.as_deref(),
            is_this_host: self.is_this_host,
            ..Subject::UNKNOWN
        };
        match self.caller {
            Caller::Tcp(address) => {
                subject.address = Some(address.ip());
                subject.is_this_host |= address.ip().is_loopback();
            }
            Caller::Unix(LocalProcess { uid, .. })
            | Caller::SharedMemory(LocalProcess { uid, .. }) => {
                subject.user = Some(uid);
            }
            Caller::ThisProcess | Caller::Unknown => {}
        }
        subject
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_of_a_peer_is_the_one_that_the_kernel_tells() {
        let of = |caller| Identity {
            caller,
            ..Identity::UNKNOWN
        };
        let process = LocalProcess { uid: 7, pid: 9 };
        for caller in [Caller::Unix(process), Caller::SharedMemory(process)] {
            assert_eq!(of(caller).subject(), Subject::user(7));
        }
        assert_eq!(Identity::UNKNOWN.subject(), Subject::UNKNOWN);
    }
}
