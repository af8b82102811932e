//! A wrapper around the operating system's sockets. A test decides whether each socket may be created, may move the
//! clock forward, and may set the UTC clock wrong.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use deckwatch_os::stream::StreamSocket;

use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Poller, SocketTransport, Stream, StreamOptions, Transport,
    TransportError,
};

type Before = dyn Fn(&Endpoint, &StreamOptions) -> Result<(), TransportError> + Send + Sync;

pub(crate) struct Around {
    sockets: SocketTransport,
    before: Box<Before>,
    ahead_ns: AtomicU64,
    utc_ahead_ns: i64,
    source: Option<IpAddr>,
}

impl Around {
    /// Calls `before` for each socket that connects or listens; its error is returned in place of the socket.
    pub(crate) fn asking(
        before: impl Fn(&Endpoint, &StreamOptions) -> Result<(), TransportError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            sockets: SocketTransport::default(),
            before: Box::new(before),
            ahead_ns: AtomicU64::new(0),
            utc_ahead_ns: 0,
            source: None,
        }
    }

    /// Connects from this address of the host.
    pub(crate) fn from_address(source: IpAddr) -> Self {
        Self {
            source: Some(source),
            ..Self::default()
        }
    }

    /// The UTC clock is ahead by `ns`; a negative value sets it behind.
    pub(crate) fn with_utc_ahead(ns: i64) -> Self {
        Self {
            utc_ahead_ns: ns,
            ..Self::default()
        }
    }

    /// Moves the clock forward by `time`.
    pub(crate) fn pass(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).expect("less than a lifetime");
        self.ahead_ns.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Default for Around {
    fn default() -> Self {
        Self::asking(|_, _| Ok(()))
    }
}

impl Transport for Around {
    fn now(&self) -> Instant64 {
        Instant64(self.sockets.now().0 + self.ahead_ns.load(Ordering::Relaxed))
    }

    fn utc_ns(&self) -> u64 {
        self.sockets
            .utc_ns()
            .saturating_add_signed(self.utc_ahead_ns)
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        (self.before)(endpoint, options)?;
        if let (Some(source), Endpoint::Tcp { host, port }) = (self.source, endpoint) {
            let address = SocketAddr::new(host.parse().expect("an address"), *port);
            let stream = StreamSocket::connect_from(source, address, deadline.map(|at| at.0));
            return match stream {
                Ok(stream) => Ok(Box::new(stream)),
                Err(_) => Err(TransportError::Other),
            };
        }
        self.sockets.connect(endpoint, options, deadline)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        (self.before)(endpoint, options)?;
        self.sockets.listen(endpoint, options)
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        self.sockets.poller()
    }

    fn outward_hosts(&self, over_ipv6: bool) -> Vec<String> {
        self.sockets.outward_hosts(over_ipv6)
    }

    fn host_name(&self) -> String {
        self.sockets.host_name()
    }
}
