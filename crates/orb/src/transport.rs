//! The seam between protocol and waiting: everything that blocks stands behind these traits.
//!
//! [`SocketTransport`] is the operating-system form. A simulated form runs two ORBs in one thread in virtual time:
//! its `Stream::read` that would block runs the simulated world forward.

mod endpoint;
mod resolve;
mod shared_memory;
mod socket;
mod spin;

use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use deckwatch_os::shared::SharedStream;

pub use deckwatch_os::poller::{Event, Interest};
pub use deckwatch_os::stream::{PacketPriority, StreamOptions};
pub(crate) use endpoint::{ANY_ADDRESS, ANY_ADDRESS_IPV6, ENDPOINT_FORM};
pub use endpoint::{Endpoint, EndpointMalformed};
pub use socket::SocketTransport;
pub use spin::SPIN_FOREVER;
pub(crate) use spin::{may_spin, read_spinning};

/// A point in time: nanoseconds of a monotonic clock, the transport's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant64(pub u64);

impl Instant64 {
    /// The point `wait` after this one; the end of time where that is beyond it.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// How long since `earlier`; zero if that lies ahead.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The time of CLOCK_MONOTONIC, in nanoseconds, when `wait` will have passed; none: never.
pub(crate) fn monotonic_after(wait: Duration) -> Option<u64> {
    let now_ns = u64::try_from(deckwatch_os::clock::monotonic_ns()).ok()?;
    now_ns.checked_add(u64::try_from(wait.as_nanos()).ok()?)
}

/// What goes wrong below the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportError {
    /// The deadline has passed.
    TimedOut,
    /// The host's name has no address.
    UnknownHost,
    /// Nobody listens there.
    Refused,
    /// There is no way to the host.
    Unreachable,
    /// The address is in use.
    InUse,
    /// The folder of a unix socket does not exist.
    FolderMissing,
    /// The path of a unix socket is longer than the system's addresses.
    PathTooLong,
    /// Not permitted.
    Denied,
    /// The connection has broken.
    Broken,
    /// Descriptors or memory have run out.
    Exhausted,
    /// Anything else the system answers.
    Other,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TimedOut => "The deadline has passed.",
            Self::UnknownHost => "The name of the host has no address.",
            Self::Refused => "Nobody listens there.",
            Self::Unreachable => "There is no way to the host.",
            Self::FolderMissing => "Its folder does not exist.",
            Self::PathTooLong => "The path of a unix socket may have 107 octets.",
            Self::InUse => "The address is in use.",
            Self::Denied => "It is not permitted.",
            Self::Broken => "The connection has broken.",
            Self::Exhausted => "Descriptors or memory have run out.",
            Self::Other => "The system refused.",
        })
    }
}

impl std::error::Error for TransportError {}

/// How connections are made and time is told.
pub trait Transport: Send + Sync + 'static {
    /// The time: the only clock a lane or a binding reads.
    fn now(&self) -> Instant64;

    /// About the time, cheaper to read: late by some milliseconds at most.
    fn now_coarse(&self) -> Instant64 {
        self.now()
    }

    /// UTC as this host has it: nanoseconds since 1970, by a clock that may be set and that may be wrong.
    fn utc_ns(&self) -> u64 {
        u64::try_from(deckwatch_os::clock::realtime_ns()).unwrap_or(0)
    }

    /// Returns when the clock shows `at`, at once where it does already.
    fn sleep_until(&self, at: Instant64) {
        deckwatch_os::clock::sleep_until(i64::try_from(at.0).unwrap_or(i64::MAX));
    }

    /// Connects to `endpoint` by a connection with these options. A transport that has none connects without.
    ///
    /// # Errors
    /// [`TransportError::TimedOut`] at `deadline`, [`TransportError::Denied`] for a priority of packets that the host does
    /// not permit, else what stands in the way.
    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError>;

    /// Listens at `endpoint`, an address of this host, for connections with these options. A transport that has none
    /// listens without.
    ///
    /// # Errors
    /// [`TransportError::Denied`] for a priority of packets that the host does not permit, else what stands in the way.
    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError>;

    /// A poller for the streams and listeners of this transport.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] where no more descriptors are to be had.
    fn poller(&self) -> Result<Box<dyn Poller>, TransportError>;

    /// The hosts by which others reach a listener that takes connections at every address, at IPv6's too where it listens
    /// `over_ipv6`; most preferred first, at least one.
    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String>;

    /// The name of this host: who has the same reaches its unix sockets.
    fn host_name(&self) -> String;
}

/// One connection. One thread may read while another writes.
pub trait Stream: Send + Sync {
    /// Reads what has arrived, waiting until `deadline`. 0: the peer has ended its side.
    ///
    /// # Errors
    /// [`TransportError::TimedOut`] at the deadline, else how the connection broke.
    fn read(&self, into: &mut [u8], deadline: Option<Instant64>) -> Result<usize, TransportError>;

    /// Reads, waiting about `wait` at most. `None`: nothing came.
    ///
    /// # Errors
    /// How the connection broke.
    fn read_within(&self, into: &mut [u8], wait: Duration)
    -> Result<Option<usize>, TransportError>;

    /// Reads as soon as octets are there, looking again and again without giving up the processor, for `wait` at most. `None`:
    /// nothing came.
    ///
    /// # Errors
    /// How the connection broke.
    fn read_spinning(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError>;

    /// Reads what has arrived without waiting. `None`: nothing has.
    ///
    /// # Errors
    /// How the connection broke.
    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError>;

    /// Whether a read would not wait (octets, end or error). Takes nothing out.
    fn is_readable(&self) -> bool;

    /// Writes all of `octets`, waiting until `deadline` where the peer does not read.
    ///
    /// # Errors
    /// [`TransportError::TimedOut`] at the deadline (a part may have gone), else how the connection broke.
    fn write_all(&self, octets: &[u8], deadline: Option<Instant64>) -> Result<(), TransportError>;

    /// Writes all of `first` and then of `second`, as [`Stream::write_all`] writes all of one.
    ///
    /// # Errors
    /// As [`Stream::write_all`].
    fn write_both(
        &self,
        first: &[u8],
        second: &[u8],
        deadline: Option<Instant64>,
    ) -> Result<(), TransportError> {
        self.write_all(first, deadline)?;
        self.write_all(second, deadline)
    }

    /// Writes what goes without waiting, and returns how many octets that is; 0: none.
    ///
    /// # Errors
    /// How the connection broke.
    fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError>;

    /// Ends both directions; whoever waits in a read comes back.
    fn shutdown(&self);

    /// Who is at the other end, as far as the transport can tell.
    fn peer(&self) -> String {
        "a peer without an address".to_owned()
    }

    /// What a poller watches.
    fn source(&self) -> Source<'_>;
}

/// Where connections come in.
pub trait Listener: Send + Sync {
    /// Takes one waiting connection. `None`: none waits.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] passes when something is given back; others do not pass.
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError>;

    /// Gives the connections that are taken from now on these options.
    ///
    /// # Errors
    /// [`TransportError::Denied`] for a priority of packets that the host does not permit.
    fn set_options(&self, options: StreamOptions) -> Result<(), TransportError> {
        let _has_none = options;
        Ok(())
    }

    /// Whether a connection waits to be taken.
    fn is_pending(&self) -> bool;

    /// Where it listens, with the port that was chosen.
    fn endpoint(&self) -> Endpoint;

    /// What a poller watches.
    fn source(&self) -> Source<'_>;
}

/// Waits for many streams and listeners; several threads may wait in one.
pub trait Poller: Send + Sync {
    /// Watches `source`; its events carry `token`.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] at the system's limit of watches.
    fn watch(
        &self,
        source: Source<'_>,
        token: u64,
        interest: Interest,
    ) -> Result<(), TransportError>;

    /// Changes the interest in `source`; a fact that already holds is told anew.
    fn rewatch(&self, source: Source<'_>, token: u64, interest: Interest);

    /// Watches `source`, besides for what else it is watched, for room to write into: an event with this other token is
    /// told once per time, and at once where there is some.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] at the system's limit of watches.
    fn watch_room(&self, source: Source<'_>, token: u64) -> Result<(), TransportError>;

    /// Stops watching `source` for room.
    fn forget_room(&self, source: Source<'_>);

    /// Stops watching `source`.
    fn forget(&self, source: Source<'_>);

    /// One event; `None` when `timeout` has passed or another thread has called [`Poller::wake`].
    fn wait(&self, timeout: Option<Duration>) -> Option<Event>;

    /// Whether a wait would return at once.
    fn is_pending(&self) -> bool;

    /// What another poller watches this one by, which then is told while this one has something to tell; `None`: nothing, and what
    /// comes while all threads of a lane serve waits until one of them is done.
    fn source(&self) -> Option<Source<'_>> {
        None
    }

    /// Makes one thread that waits, or is about to, come back.
    fn wake(&self);

    /// Makes all threads that wait, now or later, come back at once: the end.
    fn close(&self);
}

/// What a poller knows a stream or listener by.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A descriptor of the operating system.
    Descriptor(BorrowedFd<'a>),
    /// A connection through shared memory: it must know that a poller watches it.
    SharedMemory(&'a SharedStream),
    /// A number of the simulated world.
    Simulated(u64),
}
