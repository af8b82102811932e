//! The operating-system form of the transport: TCP sockets and epoll.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use deckwatch_os::{poller, tcp, wake::Wake};

use super::{
    Endpoint, Event, Instant64, Interest, Listener, Poller, Source, Stream, Transport,
    TransportError,
};
use crate::limits::{LISTEN_BACKLOG, RESOLUTIONS_MAX};

/// TCP over IPv4 and IPv6, time by CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpTransport;

impl Transport for TcpTransport {
    fn now(&self) -> Instant64 {
        Instant64(tcp::monotonic_ns())
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let mut failure = TransportError::UnknownHost;
        for address in addresses(endpoint, deadline)? {
            match tcp::TcpStream::connect(address, deadline.map(|at| at.0)) {
                Ok(stream) => return Ok(Box::new(stream)),
                Err(error) => failure = fact(&error),
            }
            if failure == TransportError::TimedOut {
                break;
            }
        }
        Err(failure)
    }

    fn listen(&self, endpoint: &Endpoint) -> Result<Box<dyn Listener>, TransportError> {
        let mut failure = TransportError::UnknownHost;
        for address in addresses(endpoint, None)? {
            match tcp::TcpListener::listen(address, LISTEN_BACKLOG) {
                Ok(listener) => return Ok(Box::new(listener)),
                Err(error) => failure = fact(&error),
            }
        }
        Err(failure)
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        let poller = TcpPoller::new().map_err(|error| fact(&error))?;
        Ok(Box::new(poller))
    }

    fn outward_host(&self) -> String {
        tcp::outward_address().to_string()
    }
}

/// An address is taken as it is; only a name asks the resolver.
fn addresses(
    endpoint: &Endpoint,
    deadline: Option<Instant64>,
) -> Result<Vec<SocketAddr>, TransportError> {
    if let Ok(address) = endpoint.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, endpoint.port)]);
    }
    resolve(endpoint.clone(), deadline, &RESOLUTIONS, |endpoint| {
        let found = (endpoint.host.as_str(), endpoint.port).to_socket_addrs();
        found.map(Iterator::collect).unwrap_or_default()
    })
}

/// Names being resolved now.
static RESOLUTIONS: AtomicUsize = AtomicUsize::new(0);

/// Asks the resolver on a thread of its own, since it knows no deadline; a caller whose deadline has passed leaves it behind.
fn resolve(
    endpoint: Endpoint,
    deadline: Option<Instant64>,
    running: &'static AtomicUsize,
    ask: impl FnOnce(&Endpoint) -> Vec<SocketAddr> + Send + 'static,
) -> Result<Vec<SocketAddr>, TransportError> {
    if running.fetch_add(1, Ordering::AcqRel) >= RESOLUTIONS_MAX {
        running.fetch_sub(1, Ordering::AcqRel);
        return Err(TransportError::Exhausted);
    }
    let (tell, answer) = sync_channel(1);
    let asking = std::thread::Builder::new()
        .name("orb-resolver".to_owned())
        .spawn(move || {
            let found = ask(&endpoint);
            running.fetch_sub(1, Ordering::AcqRel);
            let _caller_gave_up = tell.send(found);
        });
    if asking.is_err() {
        running.fetch_sub(1, Ordering::AcqRel);
        return Err(TransportError::Exhausted);
    }
    let found = match deadline {
        None => answer.recv().unwrap_or_default(),
        Some(deadline) => {
            let remaining = deadline.since(Instant64(tcp::monotonic_ns()));
            answer
                .recv_timeout(remaining)
                .map_err(|_| TransportError::TimedOut)?
        }
    };
    if found.is_empty() {
        return Err(TransportError::UnknownHost);
    }
    Ok(found)
}

fn fact(error: &io::Error) -> TransportError {
    if tcp::is_exhaustion(error) {
        return TransportError::Exhausted;
    }
    match error.kind() {
        io::ErrorKind::TimedOut => TransportError::TimedOut,
        io::ErrorKind::ConnectionRefused => TransportError::Refused,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            TransportError::Unreachable
        }
        io::ErrorKind::AddrInUse => TransportError::InUse,
        io::ErrorKind::PermissionDenied => TransportError::Denied,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => TransportError::Broken,
        _ => TransportError::Other,
    }
}

impl Stream for tcp::TcpStream {
    fn read(&self, into: &mut [u8], deadline: Option<Instant64>) -> Result<usize, TransportError> {
        Self::read(self, into, deadline.map(|at| at.0)).map_err(|error| fact(&error))
    }

    fn read_within(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX).max(1);
        Self::read_within(self, into, wait_ms).map_err(|error| fact(&error))
    }

    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
        Self::read_now(self, into).map_err(|error| fact(&error))
    }

    fn is_readable(&self) -> bool {
        Self::is_readable(self)
    }

    fn write_all(&self, octets: &[u8], deadline: Option<Instant64>) -> Result<(), TransportError> {
        Self::write_all(self, octets, deadline.map(|at| at.0)).map_err(|error| fact(&error))
    }

    fn shutdown(&self) {
        Self::shutdown(self);
    }

    fn source(&self) -> Source<'_> {
        Source::Descriptor(self.as_fd())
    }
}

impl Listener for tcp::TcpListener {
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        let accepted = Self::accept(self).map_err(|error| fact(&error))?;
        Ok(accepted.map(|stream| Box::new(stream) as Box<dyn Stream>))
    }

    fn endpoint(&self) -> Endpoint {
        let address = self.local_address();
        address.map_or(
            Endpoint {
                host: String::new(),
                port: 0,
            },
            |address| Endpoint {
                host: address.ip().to_string(),
                port: address.port(),
            },
        )
    }

    fn source(&self) -> Source<'_> {
        Source::Descriptor(self.as_fd())
    }
}

/// epoll, with one counter that wakes a single thread and one that wakes all for good.
struct TcpPoller {
    poller: poller::Poller,
    wake: Wake,
    close: Wake,
}

/// Tokens that no source of the ORB has.
const WOKEN: u64 = u64::MAX;

impl TcpPoller {
    fn new() -> io::Result<Self> {
        let made = Self {
            poller: poller::Poller::new()?,
            wake: Wake::new()?,
            close: Wake::new()?,
        };
        made.poller.watch(&made.wake, WOKEN, Interest::Arrival)?;
        made.poller.watch(&made.close, WOKEN, Interest::Pending)?;
        Ok(made)
    }
}

impl Poller for TcpPoller {
    fn watch(
        &self,
        source: Source<'_>,
        token: u64,
        interest: Interest,
    ) -> Result<(), TransportError> {
        let Source::Descriptor(descriptor) = source else {
            return Err(TransportError::Other);
        };
        self.poller
            .watch(descriptor, token, interest)
            .map_err(|error| fact(&error))
    }

    fn rewatch(&self, source: Source<'_>, token: u64, interest: Interest) {
        if let Source::Descriptor(descriptor) = source {
            let _not_watched = self.poller.rewatch(descriptor, token, interest);
        }
    }

    fn forget(&self, source: Source<'_>) {
        if let Source::Descriptor(descriptor) = source {
            let _not_watched = self.poller.forget(descriptor);
        }
    }

    fn wait(&self, timeout: Option<Duration>) -> Option<Event> {
        self.poller
            .wait(timeout)
            .ok()
            .flatten()
            .filter(|event| event.token != WOKEN)
    }

    fn wake(&self) {
        self.wake.notify();
    }

    fn close(&self) {
        self.close.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_that_does_not_answer_costs_its_callers_their_time_and_a_bounded_number_of_threads()
     {
        static RUNNING: AtomicUsize = AtomicUsize::new(0);
        let endpoint = Endpoint {
            host: "ship".to_owned(),
            port: 1,
        };
        let mut held = Vec::new();
        for _ in 0..RESOLUTIONS_MAX {
            let (release, waits) = sync_channel::<()>(0);
            held.push(release);
            let silent = move |_: &Endpoint| {
                let _released = waits.recv();
                Vec::new()
            };
            let soon = Instant64(tcp::monotonic_ns() + 1_000_000);
            let outcome = resolve(endpoint.clone(), Some(soon), &RUNNING, silent);
            assert_eq!(outcome, Err(TransportError::TimedOut));
        }
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let ask = move |_: &Endpoint| vec![address];
        let refused = resolve(endpoint.clone(), None, &RUNNING, ask);
        assert_eq!(refused, Err(TransportError::Exhausted));
        drop(held);
        while RUNNING.load(Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
        assert_eq!(resolve(endpoint, None, &RUNNING, ask), Ok(vec![address]));
    }
}
