//! The operating-system form of the transport: TCP, unix sockets, shared memory, and epoll.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use deckwatch_os::stream::{self, StreamSocket, TcpListener};
use deckwatch_os::unix::{self, UnixListener};
use deckwatch_os::{poller, wake::Wake};

#[cfg(feature = "tls")]
use super::TlsUse;
use super::resolve::addresses;
use super::{
    Endpoint, Event, Instant64, Interest, Listener, Poller, Source, Stream, StreamOptions,
    Transport, TransportError, shared_memory,
};
use crate::limits::{CONNECT_TIMEOUT, LISTEN_BACKLOG, LOCAL_CONNECT_TIMEOUT};
use crate::peers::Peer;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::{Caller, LocalProcess};

/// TCP over IPv4 and IPv6, TLS over TCP, unix sockets and shared memory; time from CLOCK_MONOTONIC.
#[derive(Clone, Debug, Default)]
pub struct SocketTransport {
    unix_permissions: Option<u32>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
}

impl SocketTransport {
    /// The same, whose unix sockets get these permissions (such as `0o660`) in place of those of the process's mask.
    #[must_use]
    pub fn with_unix_permissions(mut self, permissions: u32) -> Self {
        self.unix_permissions = Some(permissions);
        self
    }

    /// The same, with certificates and authorities for TLS.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }
}

impl Transport for SocketTransport {
    fn now(&self) -> Instant64 {
        Instant64(stream::monotonic_ns())
    }

    fn now_coarse(&self) -> Instant64 {
        Instant64(stream::monotonic_coarse_ns())
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let host = endpoint.host_of_local().unwrap_or_default();
        if !host.is_empty() && *host != self.host_name() {
            return Err(TransportError::Unreachable);
        }
        match endpoint {
            Endpoint::Tcp { host, port } => connect_tcp(host, *port, options, deadline),
            Endpoint::Tls { host, port } => {
                return self.connect_tls(host, (host, *port), options, deadline);
            }
            Endpoint::Unix { path, .. } => {
                unix::connect_with(Path::new(path), deadline.map(|at| at.0), options)
                    .map_err(|error| fact(&error))
            }
            Endpoint::SharedMemory { path, .. } => return shared_memory::connect(path, deadline),
        }
        .map(|stream| Box::new(stream) as Box<dyn Stream>)
    }

    fn connect_at(
        &self,
        endpoint: &Endpoint,
        at: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        match (endpoint, at) {
            (
                Endpoint::Tls { host: name, .. },
                Endpoint::Tcp { host, port } | Endpoint::Tls { host, port },
            ) => self.connect_tls(name, (host, *port), options, deadline),
            (_, at) => self.connect(at, options, deadline),
        }
    }

    /// A host name is resolved first, which may take up to [`CONNECT_TIMEOUT`], and so may a handshake of TLS. Unix
    /// sockets and shared memory connect at once, or not within [`LOCAL_CONNECT_TIMEOUT`].
    fn begin_connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let Endpoint::Tcp { host, port } = endpoint else {
            let is_tls = matches!(endpoint, Endpoint::Tls { .. });
            let limit = if is_tls {
                CONNECT_TIMEOUT
            } else {
                LOCAL_CONNECT_TIMEOUT
            };
            let deadline = self.now().after(limit);
            return self.connect(endpoint, options, Some(deadline));
        };
        let mut failure = TransportError::UnknownHost;
        for address in addresses(host, *port, None, Some(self.now().after(CONNECT_TIMEOUT)))? {
            match StreamSocket::begin_connect(address, options) {
                Ok(stream) => return Ok(Box::new(stream)),
                Err(error) => failure = fact(&error),
            }
        }
        Err(failure)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        match endpoint {
            Endpoint::Tcp { host, port } => {
                let listener = listen_tcp(host, *port, options)?;
                Ok(Box::new(listener))
            }
            Endpoint::Tls { host, port } => self.listen_tls(host, *port, options),
            Endpoint::Unix { path, .. } => {
                let path = Path::new(path);
                UnixListener::listen(path, LISTEN_BACKLOG, self.unix_permissions)
                    .inspect(|listener| listener.set_options(*options))
                    .map(|listener| Box::new(listener) as Box<dyn Listener>)
                    .map_err(|error| fact_of_path(&error))
            }
            Endpoint::SharedMemory { path, .. } => {
                shared_memory::listen(path, self.unix_permissions)
            }
        }
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        let poller = SocketPoller::new().map_err(|error| fact(&error))?;
        Ok(Box::new(poller))
    }

    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String> {
        let addresses = stream::outward_addresses(over_ipv6);
        addresses.iter().map(ToString::to_string).collect()
    }

    fn host_name(&self) -> String {
        unix::host_name()
    }

    #[cfg(feature = "tls")]
    fn tls_use(&self) -> TlsUse {
        self.tls.as_ref().map_or(TlsUse::Never, Tls::tls_use)
    }

    fn resolve(
        &self,
        endpoint: &Endpoint,
        by: Peer,
        deadline: Option<Instant64>,
    ) -> Result<Vec<Endpoint>, TransportError> {
        let (Endpoint::Tcp { host, port } | Endpoint::Tls { host, port }) = endpoint else {
            return Ok(vec![endpoint.clone()]);
        };
        let found = addresses(host, *port, Some(by), deadline)?;
        let host_of = |address: SocketAddr| match address {
            SocketAddr::V6(at) if at.scope_id() != 0 => format!("{}%{}", at.ip(), at.scope_id()),
            address => address.ip().to_string(),
        };
        let endpoint = |address| Endpoint::tcp(&host_of(address), *port);
        Ok(found.into_iter().map(endpoint).collect())
    }

    fn interfaces(&self) -> Vec<(IpAddr, u8)> {
        stream::interface_addresses().unwrap_or_default()
    }
}

pub(super) fn connect_tcp(
    host: &str,
    port: u16,
    options: &StreamOptions,
    deadline: Option<Instant64>,
) -> Result<StreamSocket, TransportError> {
    let mut failure = TransportError::UnknownHost;
    for address in addresses(host, port, None, deadline)? {
        match StreamSocket::connect_with(address, deadline.map(|at| at.0), options) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = fact(&error),
        }
        if failure == TransportError::TimedOut {
            break;
        }
    }
    Err(failure)
}

pub(super) fn listen_tcp(
    host: &str,
    port: u16,
    options: &StreamOptions,
) -> Result<TcpListener, TransportError> {
    let mut failure = TransportError::UnknownHost;
    for address in addresses(host, port, None, None)? {
        let listening = TcpListener::listen(address, LISTEN_BACKLOG);
        match listening.and_then(|listener| listener.set_options(*options).map(|()| listener)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = fact(&error),
        }
    }
    Err(failure)
}

/// The error of a path to listen at.
pub(super) fn fact_of_path(error: &io::Error) -> TransportError {
    match error.kind() {
        io::ErrorKind::NotFound => TransportError::FolderMissing,
        _ => fact(error),
    }
}

pub(crate) fn fact(error: &io::Error) -> TransportError {
    if stream::is_exhaustion(error) {
        return TransportError::Exhausted;
    }
    match error.kind() {
        io::ErrorKind::TimedOut => TransportError::TimedOut,
        // Without a file no process listens: a listener creates it.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => TransportError::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            TransportError::Unreachable
        }
        io::ErrorKind::InvalidFilename => TransportError::PathTooLong,
        io::ErrorKind::AddrInUse => TransportError::InUse,
        io::ErrorKind::PermissionDenied => TransportError::Denied,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::InvalidData => TransportError::Broken,
        _ => TransportError::Other,
    }
}

/// Methods of [`Stream`] that a stream of `os` has under the same name.
macro_rules! as_its_own {
    () => {
        fn read(
            &self,
            into: &mut [u8],
            deadline: Option<Instant64>,
        ) -> Result<usize, TransportError> {
            Self::read(self, into, deadline.map(|at| at.0)).map_err(|error| fact(&error))
        }

        fn read_spinning(
            &self,
            into: &mut [u8],
            wait: Duration,
        ) -> Result<Option<usize>, TransportError> {
            Self::read_spinning(self, into, wait).map_err(|error| fact(&error))
        }

        fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
            Self::read_now(self, into).map_err(|error| fact(&error))
        }

        fn is_readable(&self) -> bool {
            Self::is_readable(self)
        }

        fn write_all(
            &self,
            octets: &[u8],
            deadline: Option<Instant64>,
        ) -> Result<(), TransportError> {
            Self::write_all(self, octets, deadline.map(|at| at.0)).map_err(|error| fact(&error))
        }

        fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError> {
            Self::write_now(self, octets).map_err(|error| fact(&error))
        }

        fn shutdown(&self) {
            Self::shutdown(self);
        }
    };
}
pub(super) use as_its_own;

/// Wraps a connection that `os` has accepted.
pub(super) fn taken<S: Stream + 'static>(
    accepted: io::Result<Option<S>>,
) -> Result<Option<Box<dyn Stream>>, TransportError> {
    let accepted = accepted.map_err(|error| fact(&error))?;
    Ok(accepted.map(|stream| Box::new(stream) as Box<dyn Stream>))
}

impl Stream for StreamSocket {
    as_its_own!();

    fn write_both(
        &self,
        first: &[u8],
        second: &[u8],
        deadline: Option<Instant64>,
    ) -> Result<(), TransportError> {
        Self::write_both(self, first, second, deadline.map(|at| at.0)).map_err(|error| fact(&error))
    }

    fn write_parts_now(&self, parts: &[IoSlice<'_>]) -> Result<usize, TransportError> {
        Self::write_parts_now(self, parts).map_err(|error| fact(&error))
    }

    fn peer(&self) -> String {
        match (self.peer_address(), self.local_address()) {
            (Ok(address), _) => address.to_string(),
            (Err(_), Ok(_)) => "unknown".to_owned(), // As its caller.
            (Err(_), Err(_)) => "unix".to_owned(),
        }
    }

    fn caller(&self) -> Caller {
        match (self.peer_address(), self.local_address()) {
            (Ok(address), _) => {
                Caller::Tcp(SocketAddr::new(address.ip().to_canonical(), address.port()))
            }
            (Err(_), Ok(_)) => Caller::Unknown, // A broken connection that was made here has no peer any more.
            (Err(_), Err(_)) => local(self, Caller::Unix),
        }
    }

    fn is_from_own_address(&self) -> bool {
        let ends = self.peer_address().ok().zip(self.local_address().ok());
        ends.is_some_and(|(peer, own)| peer.ip().to_canonical() == own.ip().to_canonical())
    }

    fn read_within(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1);
        Self::read_within(self, into, wait_ms).map_err(|error| fact(&error))
    }

    fn source(&self) -> Source<'_> {
        Source::Descriptor(self.as_fd())
    }
}

/// The caller at the other end of a unix socket.
pub(super) fn local(socket: impl AsFd, caller: fn(LocalProcess) -> Caller) -> Caller {
    let peer = unix::peer_process(socket);
    peer.map_or(Caller::Unknown, |peer| {
        caller(LocalProcess {
            uid: peer.uid,
            pid: peer.pid,
        })
    })
}

impl Listener for TcpListener {
    fn set_options(&self, options: StreamOptions) -> Result<(), TransportError> {
        Self::set_options(self, options).map_err(|error| fact(&error))
    }

    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        taken(Self::accept(self))
    }

    fn is_pending(&self) -> bool {
        stream::is_readable_now(self)
    }

    fn endpoint(&self) -> Endpoint {
        match self.local_address() {
            Ok(address) => Endpoint::tcp(&address.ip().to_string(), address.port()),
            Err(_) => Endpoint::tcp("", 0),
        }
    }

    fn source(&self) -> Source<'_> {
        Source::Descriptor(self.as_fd())
    }
}

impl Listener for UnixListener {
    fn set_options(&self, options: StreamOptions) -> Result<(), TransportError> {
        Self::set_options(self, options);
        Ok(())
    }

    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        taken(Self::accept(self))
    }

    fn is_pending(&self) -> bool {
        stream::is_readable_now(self)
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::Unix {
            host: unix::host_name(),
            path: self.path().to_string_lossy().into_owned(),
        }
    }

    fn source(&self) -> Source<'_> {
        Source::Descriptor(self.as_fd())
    }
}

/// epoll, with one eventfd that wakes a single thread and one that wakes all for good. Room to write is watched by an
/// inner poller, so that neither watch disturbs the edges of the other.
struct SocketPoller {
    poller: poller::Poller,
    room: poller::Poller,
    wake: Wake,
    close: Wake,
}

/// Tokens that no stream or listener has.
const WOKEN: u64 = u64::MAX;
const ROOM: u64 = u64::MAX - 1;

impl SocketPoller {
    fn new() -> io::Result<Self> {
        let made = Self {
            poller: poller::Poller::new()?,
            room: poller::Poller::new()?,
            wake: Wake::new()?,
            close: Wake::new()?,
        };
        made.poller.watch(&made.wake, WOKEN, Interest::Arrival)?;
        made.poller.watch(&made.close, WOKEN, Interest::Pending)?;
        made.poller.watch(&made.room, ROOM, Interest::Pending)?;
        Ok(made)
    }

    /// An event of a watched source. Returns `None` for one of the poller's own.
    fn resolve(&self, event: Event) -> Option<Event> {
        match event.token {
            WOKEN => None,
            // Another thread may have got the event meanwhile.
            ROOM => self.room.wait(Some(Duration::ZERO)).ok().flatten(),
            _ => Some(event),
        }
    }
}

/// A watched source, as epoll knows it. Octets that already wait in shared memory are reported at once, as room to
/// write is.
fn watched(source: Source<'_>, interest: Interest) -> Option<(BorrowedFd<'_>, Interest)> {
    match source {
        Source::Descriptor(descriptor) => Some((descriptor, interest)),
        Source::Holding(descriptor) => {
            // The socket is writable, so the event is immediate.
            let is_watched = interest != Interest::Nothing;
            let interest = if is_watched {
                Interest::Handover
            } else {
                interest
            };
            Some((descriptor, interest))
        }
        Source::SharedMemory(stream) => {
            let waits = interest != Interest::Nothing && stream.begin_watch();
            let interest = if waits { Interest::Handover } else { interest };
            Some((stream.arrival(), interest))
        }
        Source::Simulated(_) => None,
    }
}

impl Poller for SocketPoller {
    fn watch(
        &self,
        source: Source<'_>,
        token: u64,
        interest: Interest,
    ) -> Result<(), TransportError> {
        let (descriptor, interest) = watched(source, interest).ok_or(TransportError::Other)?;
        let watched = self.poller.watch(descriptor, token, interest);
        watched.map_err(|error| fact(&error))
    }

    fn rewatch(&self, source: Source<'_>, token: u64, interest: Interest) {
        if let Some((descriptor, interest)) = watched(source, interest) {
            // Fails only for a source that is not watched any more.
            let _ = self.poller.rewatch(descriptor, token, interest);
        }
    }

    fn watch_room(&self, source: Source<'_>, token: u64) -> Result<(), TransportError> {
        let watch = |descriptor, interest| self.room.watch(descriptor, token, interest);
        match source {
            Source::Descriptor(descriptor) | Source::Holding(descriptor) => {
                watch(descriptor, Interest::Room)
            }
            // The socket that signals room is writable, so the event is immediate: there may be room already.
            Source::SharedMemory(stream) => watch(stream.room(), Interest::Handover),
            Source::Simulated(_) => return Err(TransportError::Other),
        }
        .map_err(|error| fact(&error))
    }

    fn forget_room(&self, source: Source<'_>) {
        let room = match source {
            Source::Descriptor(descriptor) | Source::Holding(descriptor) => descriptor,
            Source::SharedMemory(stream) => stream.room(),
            Source::Simulated(_) => return,
        };
        // Fails only for a source that is not watched.
        let _ = self.room.forget(room);
    }

    fn forget(&self, source: Source<'_>) {
        if let Some((descriptor, _)) = watched(source, Interest::Nothing) {
            // Fails only for a source that is not watched.
            let _ = self.poller.forget(descriptor);
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Option<Event> {
        self.resolve(self.poller.wait(timeout).ok().flatten()?)
    }

    fn wait_many(&self, events: &mut [Event], timeout: Option<Duration>) -> usize {
        let told = self.poller.wait_many(events, timeout).unwrap_or(0);
        let mut count = 0;
        for index in 0..told {
            if let Some(event) = self.resolve(events[index]) {
                events[count] = event;
                count += 1;
            }
        }
        count
    }

    fn is_pending(&self) -> bool {
        stream::is_readable_now(&self.poller)
    }

    fn source(&self) -> Option<Source<'_>> {
        Some(Source::Descriptor(self.poller.as_fd()))
    }

    fn wake(&self) {
        self.wake.notify();
    }

    fn close(&self) {
        self.close.notify();
    }
}
