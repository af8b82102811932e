//! The caller of the request that a thread serves: [`PoaCurrent::caller`](crate::PoaCurrent::caller).

use std::fmt;
use std::net::SocketAddr;

use crate::trace::NO_CONNECTION;

/// The process that sent a request.
///
/// A request does not carry it: the transport of the connection tells it. A peer over TCP is known by its address
/// alone; the kernel vouches for the user of a process on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Caller {
    /// This process: a collocated call.
    ThisProcess,
    /// A peer over TCP. An IPv4 address that arrived over IPv6 is an IPv4 address.
    Tcp(SocketAddr),
    /// A process of this host over a unix socket.
    Unix(LocalProcess),
    /// A process of this host through shared memory.
    SharedMemory(LocalProcess),
    /// The transport does not know it, or the connection has broken meanwhile.
    Unknown,
}

/// A process of this host, as it was when it connected. It may have ended, and its id may belong to another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LocalProcess {
    /// Its effective user.
    pub uid: u32,
    /// Its process id.
    pub pid: u32,
}

/// The connection that brought a request. Two requests with equal values came over the same connection of the same
/// ORB, or are both collocated calls.
///
/// It costs nothing to obtain. A service that has checked a caller once compares connections before it asks for the
/// caller again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallerConnection {
    /// Its token in the poller of its lane.
    pub(crate) token: u64,
    /// Its number in the trace, which no other connection of the ORB has.
    pub(crate) number: u32,
}

impl CallerConnection {
    /// Collocated calls. No connection of a lane has this token.
    pub(crate) const THIS_PROCESS: Self = Self {
        token: u64::MAX,
        number: NO_CONNECTION,
    };

    /// Returns false for a collocated call, and outside of a request.
    #[must_use]
    pub fn is_remote(self) -> bool {
        self != Self::THIS_PROCESS
    }

    /// The value as one number, to be kept in an atomic. Two connections of an ORB have the same number only if 2^32
    /// others were made between them.
    #[must_use]
    pub const fn number(self) -> u64 {
        (self.number as u64) << 32 | self.token >> 32
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisProcess => f.write_str("this process"),
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(LocalProcess { uid, pid }) => {
                write!(f, "user {uid} (process {pid}, unix socket)")
            }
            Self::SharedMemory(LocalProcess { uid, pid }) => {
                write!(f, "user {uid} (process {pid}, shared memory)")
            }
            Self::Unknown => f.write_str("an unknown peer"),
        }
    }
}
