//! The seam between protocol and waiting: every call that blocks is behind these traits.
//!
//! [`SocketTransport`] is the operating-system form. A simulated form runs two ORBs in one thread in virtual time:
//! where its `Stream::read` would block, it advances the simulated world.

mod endpoint;
mod over_tls;
mod resolve;
mod shared_memory;
mod socket;
mod spin;

use std::fmt;
use std::io::IoSlice;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_os::shared::SharedStream;

use crate::Caller;
use crate::access::AccessLog;
use crate::peers::Peer;

pub use deckwatch_os::poller::{Event, Interest};
pub use deckwatch_os::stream::{PacketPriority, StreamOptions};
pub(crate) use endpoint::{ANY_ADDRESS, ANY_ADDRESS_IPV6, ENDPOINT_FORM};
pub use endpoint::{Endpoint, EndpointMalformed};
pub use socket::SocketTransport;
#[cfg(feature = "tls")]
pub(crate) use socket::fact;
pub use spin::SPIN_FOREVER;
pub(crate) use spin::{is_time_sharing, may_spin, read_spinning};

/// A point in time: nanoseconds of the transport's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant64(pub u64);

impl Instant64 {
    /// The point `wait` after this one, saturating.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// The time since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// The time of CLOCK_MONOTONIC in nanoseconds after `wait`. Returns `None` if it is out of range.
pub(crate) fn monotonic_after(wait: Duration) -> Option<u64> {
    let now_ns = u64::try_from(deckwatch_os::clock::monotonic_ns()).ok()?;
    now_ns.checked_add(u64::try_from(wait.as_nanos()).ok()?)
}

/// An error below the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportError {
    /// The deadline has passed.
    TimedOut,
    /// The host's name has no address.
    UnknownHost,
    /// No process listens there.
    Refused,
    /// There is no route to the host.
    Unreachable,
    /// The address is in use.
    InUse,
    /// The folder of a unix socket does not exist.
    FolderMissing,
    /// The path of a unix socket is longer than the system's addresses.
    PathTooLong,
    /// Not permitted.
    Denied,
    /// The peer that gave the reference may not have this address called.
    OutOfReach,
    /// The connection has broken.
    Broken,
    /// Descriptors or memory have run out.
    Exhausted,
    /// No certificate, or no authority, is set for TLS here; or this program was built without TLS.
    TlsNotSet,
    /// The peer does not speak TLS.
    NotTls,
    /// No authority that is trusted here has signed the peer's certificate.
    Untrusted,
    /// The peer's certificate has expired, or is not valid yet.
    CertificateExpired,
    /// The peer's certificate is on a revocation list.
    CertificateRevoked,
    /// The peer's certificate does not name the host that was called.
    CertificateOfAnother,
    /// The peer shows no certificate.
    CertificateMissing,
    /// The peer's certificate is damaged, or not for this use.
    CertificateUnfit,
    /// The peer refuses our certificate, or demands one.
    RefusedByPeer,
    /// Both ends have no version or cipher of TLS in common, or the peer broke the protocol.
    HandshakeFailed,
    /// Any other error of the system.
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
            Self::OutOfReach => "The peer that gave the address may not have it called.",
            Self::Broken => "The connection has broken.",
            Self::Exhausted => "Descriptors or memory have run out.",
            Self::TlsNotSet => {
                "TLS needs a certificate with its key to serve, and the authorities to call; they are not set."
            }
            Self::NotTls => "The peer does not speak TLS.",
            Self::Untrusted => "No trusted authority has signed the certificate of the peer.",
            Self::CertificateExpired => {
                "The certificate of the peer has expired, or is not valid yet."
            }
            Self::CertificateRevoked => "The certificate of the peer is revoked.",
            Self::CertificateOfAnother => {
                "The certificate of the peer does not name the host that was called."
            }
            Self::CertificateMissing => "The peer shows no certificate.",
            Self::CertificateUnfit => {
                "The certificate of the peer is damaged, or not for this use."
            }
            Self::RefusedByPeer => "The peer refuses the certificate shown to it, or demands one.",
            Self::HandshakeFailed => {
                "The peer has no version or cipher of TLS in common, or broke its protocol."
            }
            Self::Other => "The system refused.",
        })
    }
}

impl std::error::Error for TransportError {}

/// Makes connections and tells the time.
pub trait Transport: Send + Sync + 'static {
    /// The time. Lanes and bindings read no other clock.
    fn now(&self) -> Instant64;

    /// The time, up to some milliseconds late, at less cost.
    fn now_coarse(&self) -> Instant64 {
        self.now()
    }

    /// The host's UTC: nanoseconds since 1970. This clock may be set, and may be wrong.
    fn utc_ns(&self) -> u64 {
        u64::try_from(deckwatch_os::clock::realtime_ns()).unwrap_or(0)
    }

    /// Returns when the clock has reached `at`.
    fn sleep_until(&self, at: Instant64) {
        deckwatch_os::clock::sleep_until(i64::try_from(at.0).unwrap_or(i64::MAX));
    }

    /// Connects to `endpoint` with these options. A transport without options ignores them.
    ///
    /// # Errors
    /// [`TransportError::TimedOut`] at `deadline`; [`TransportError::Denied`] for a packet priority that the host does
    /// not permit; otherwise the system's error.
    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError>;

    /// Connects to `endpoint` at one of its addresses, without a second look at its name: the address has been checked.
    /// With TLS, the certificate still has to have the name.
    ///
    /// By default it is [`Transport::connect`] to that address, for transports without names.
    ///
    /// # Errors
    /// As [`Transport::connect`].
    fn connect_at(
        &self,
        endpoint: &Endpoint,
        at: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let _ = endpoint; // See above.
        self.connect(at, options, deadline)
    }

    /// Connects to `endpoint` without waiting for the peer. The stream may still be connecting: until it is connected,
    /// it has no room to write and nothing to read. A read reports why the peer could not be reached.
    ///
    /// By default it is [`Transport::connect`] with a limit of [`crate::limits::LOCAL_CONNECT_TIMEOUT`], for
    /// transports that connect at once.
    ///
    /// # Errors
    /// As [`Transport::connect`].
    fn begin_connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let deadline = self.now().after(crate::limits::LOCAL_CONNECT_TIMEOUT);
        self.connect(endpoint, options, Some(deadline))
    }

    /// Listens at `endpoint`, an address of this host, for connections with these options. A transport without options
    /// ignores them.
    ///
    /// # Errors
    /// [`TransportError::Denied`] for a packet priority that the host does not permit; otherwise the system's error.
    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError>;

    /// A poller for the streams and listeners of this transport.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] if no descriptor is free.
    fn poller(&self) -> Result<Box<dyn Poller>, TransportError>;

    /// The host names or addresses of a listener that listens at every address, with `over_ipv6` those of IPv6 too. The
    /// preferred one is first; there is at least one.
    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String>;

    /// The name of this host. Processes on a host of the same name can use its unix sockets.
    fn host_name(&self) -> String;

    /// Which addresses a caller uses where a reference has both plain ones and those over TLS.
    fn tls_use(&self) -> TlsUse {
        TlsUse::Never
    }

    /// The endpoints at the addresses of a host name that a peer gave: it has a share of what may be resolved at the
    /// same time. A transport without names returns the endpoint.
    ///
    /// # Errors
    /// [`TransportError::UnknownHost`], [`TransportError::TimedOut`], [`TransportError::Exhausted`].
    fn resolve(
        &self,
        endpoint: &Endpoint,
        by: Peer,
        deadline: Option<Instant64>,
    ) -> Result<Vec<Endpoint>, TransportError> {
        let _ = (by, deadline); // For transports with names.
        Ok(vec![endpoint.clone()])
    }

    /// The addresses of this host, with the lengths of the prefixes of their networks.
    fn interfaces(&self) -> Vec<(IpAddr, u8)> {
        Vec::new()
    }
}

/// Which addresses a caller uses where a reference has both plain ones and those over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsUse {
    /// The plain ones: this ORB has no authorities to check a server by.
    #[default]
    Never,
    /// Those over TLS, and a plain one where none of them is reached. A failed handshake ends the call.
    Preferred,
    /// Those over TLS alone.
    Required,
}

/// One connection. One thread may read while another writes.
pub trait Stream: Send + Sync {
    /// Reads what has arrived, waiting until `deadline`. Returns 0 if the peer has ended its side.
    ///
    /// # Errors
    /// [`TransportError::TimedOut`] at the deadline, otherwise the fault of the connection.
    fn read(&self, into: &mut [u8], deadline: Option<Instant64>) -> Result<usize, TransportError>;

    /// Reads what has arrived, waiting about `wait` at most. Returns `None` if nothing arrived.
    ///
    /// # Errors
    /// The fault of the connection.
    fn read_within(&self, into: &mut [u8], wait: Duration)
    -> Result<Option<usize>, TransportError>;

    /// Reads as soon as octets arrive, polling without giving up the processor, for `wait` at most. Returns `None` if
    /// nothing arrived.
    ///
    /// # Errors
    /// The fault of the connection.
    fn read_spinning(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError>;

    /// Reads what has arrived, without waiting. Returns `None` if nothing has.
    ///
    /// # Errors
    /// The fault of the connection.
    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError>;

    /// Whether a read would not wait (octets, end or error). Reads nothing.
    fn is_readable(&self) -> bool;

    /// Writes all of `octets`, waiting until `deadline` if the peer does not read.
    ///
    /// # Errors
    /// [`TransportError::TimedOut`] at the deadline (a part may have been written), otherwise the fault of the
    /// connection.
    fn write_all(&self, octets: &[u8], deadline: Option<Instant64>) -> Result<(), TransportError>;

    /// Writes all of `first`, then all of `second`, as [`Stream::write_all`].
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

    /// Writes as much as is possible without waiting, and returns how many octets that was.
    ///
    /// # Errors
    /// The fault of the connection.
    fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError>;

    /// Writes as much of `parts`, one behind the other, as is possible without waiting, with one call if the transport
    /// can. Returns how many octets that was.
    ///
    /// # Errors
    /// The fault of the connection.
    fn write_parts_now(&self, parts: &[IoSlice<'_>]) -> Result<usize, TransportError> {
        let mut written = 0;
        for part in parts {
            let count = self.write_now(part)?;
            written += count;
            if count < part.len() {
                break;
            }
        }
        Ok(written)
    }

    /// Ends both directions. A thread that waits in a read returns.
    fn shutdown(&self);

    /// The name or address of the peer, if the transport knows it.
    fn peer(&self) -> String {
        "a peer without an address".to_owned()
    }

    /// The process at the other end, if the transport knows it.
    fn caller(&self) -> Caller {
        Caller::Unknown
    }

    /// The name in the certificate that the peer has shown: the first DNS name, else the first URI, else the common name.
    /// `None` without a certificate.
    fn caller_name(&self) -> Option<Arc<str>> {
        None
    }

    /// Whether the peer's address is the one that it has connected to: it is a program of this host. A loopback address
    /// is known as such without this.
    fn is_from_own_address(&self) -> bool {
        false
    }

    /// The source that a poller watches.
    fn source(&self) -> Source<'_>;
}

/// Accepts connections.
pub trait Listener: Send + Sync {
    /// Accepts one connection. Returns `None` if none waits.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] may pass when descriptors are freed; other errors are permanent.
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError>;

    /// Sets the options of connections accepted from now on.
    ///
    /// # Errors
    /// [`TransportError::Denied`] for a packet priority that the host does not permit.
    fn set_options(&self, options: StreamOptions) -> Result<(), TransportError> {
        // A listener without options ignores them.
        let _ = options;
        Ok(())
    }

    /// Sets who is told of peers that it turns away before a lane accepts them. A listener that turns nobody away
    /// ignores it.
    fn set_access_log(&self, log: &Arc<dyn AccessLog>) {
        let _ = log; // See above.
    }

    /// Whether a connection waits to be accepted.
    fn is_pending(&self) -> bool;

    /// Where it listens, with the port that the system chose.
    fn endpoint(&self) -> Endpoint;

    /// The source that a poller watches.
    fn source(&self) -> Source<'_>;
}

/// Waits for many streams and listeners. Several threads may wait in one poller.
pub trait Poller: Send + Sync {
    /// Watches `source`. Its events carry `token`.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] at the system's limit of watches.
    fn watch(
        &self,
        source: Source<'_>,
        token: u64,
        interest: Interest,
    ) -> Result<(), TransportError>;

    /// Changes the interest in `source`. A condition that already holds is reported again.
    fn rewatch(&self, source: Source<'_>, token: u64, interest: Interest);

    /// Watches `source` for room to write, beside its other watch. An event with this second token is reported once per
    /// call, at once if there is room.
    ///
    /// # Errors
    /// [`TransportError::Exhausted`] at the system's limit of watches.
    fn watch_room(&self, source: Source<'_>, token: u64) -> Result<(), TransportError>;

    /// Stops watching `source` for room.
    fn forget_room(&self, source: Source<'_>);

    /// Stops watching `source`.
    fn forget(&self, source: Source<'_>);

    /// Waits for one event. Returns `None` if `timeout` has passed or another thread has called [`Poller::wake`].
    fn wait(&self, timeout: Option<Duration>) -> Option<Event>;

    /// As [`Poller::wait`], for as many events as are there and `events` has places for. Returns their number.
    fn wait_many(&self, events: &mut [Event], timeout: Option<Duration>) -> usize {
        let Some(event) = self.wait(timeout) else {
            return 0;
        };
        events[0] = event;
        1
    }

    /// Whether a wait would return at once.
    fn is_pending(&self) -> bool;

    /// The source by which another poller watches this one: it is ready while this one has an event. With `None`,
    /// events that arrive while all threads of a lane serve wait until one of them returns.
    fn source(&self) -> Option<Source<'_>> {
        None
    }

    /// Makes one thread return that waits or is about to wait.
    fn wake(&self);

    /// Makes all threads return at once that wait now or later. There is no way back.
    fn close(&self);
}

/// How a poller refers to a stream or listener.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A descriptor of the operating system.
    Descriptor(BorrowedFd<'a>),
    /// A descriptor whose stream holds octets that a read returns at once: a watch reports them though the descriptor
    /// itself may have none.
    Holding(BorrowedFd<'a>),
    /// A connection through shared memory, which must know that a poller watches it.
    SharedMemory(&'a SharedStream),
    /// A number of the simulated world.
    Simulated(u64),
}
