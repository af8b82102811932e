//! A wrapper around the operating system's sockets whose peers over TCP seem to come over the network: all connections
//! of a test are local.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_orb::Caller;
use deckwatch_orb::peers::Peer;
use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Poller, SocketTransport, Source, Stream, StreamOptions, TlsUse,
    Transport, TransportError,
};

/// The address of peers, in a network for documentation.
pub(crate) const STRANGER: [u8; 4] = [198, 51, 100, 7];

#[derive(Default)]
pub(crate) struct Masked {
    sockets: SocketTransport,
    /// Until when threads were told to sleep.
    pub(crate) sleeps: Mutex<Vec<Instant64>>,
    /// References over TLS are called. Their names have this address, and nothing listens there.
    pub(crate) over_tls_at: Option<&'static str>,
    /// What was connected to over TLS.
    pub(crate) over_tls: Arc<Mutex<Vec<String>>>,
}

struct MaskedListener(Box<dyn Listener>);

struct MaskedStream(Box<dyn Stream>);

impl Transport for Masked {
    fn now(&self) -> Instant64 {
        self.sockets.now()
    }

    fn sleep_until(&self, at: Instant64) {
        self.sleeps.lock().expect("whole").push(at);
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        if matches!(endpoint, Endpoint::Tls { .. }) {
            let asked = endpoint.to_string();
            self.over_tls.lock().expect("whole").push(asked);
            return Err(TransportError::Refused);
        }
        self.sockets.connect(endpoint, options, deadline)
    }

    fn connect_at(
        &self,
        endpoint: &Endpoint,
        at: &Endpoint,
        _options: &StreamOptions,
        _deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let asked = format!("{endpoint} at {at}");
        self.over_tls.lock().expect("whole").push(asked);
        Err(TransportError::Refused)
    }

    fn tls_use(&self) -> TlsUse {
        self.over_tls_at
            .map_or(TlsUse::Never, |_| TlsUse::Preferred)
    }

    fn begin_connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Stream>, TransportError> {
        self.sockets.begin_connect(endpoint, options)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        let listener = self.sockets.listen(endpoint, options)?;
        Ok(Box::new(MaskedListener(listener)))
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

    fn resolve(
        &self,
        endpoint: &Endpoint,
        by: Peer,
        deadline: Option<Instant64>,
    ) -> Result<Vec<Endpoint>, TransportError> {
        if let (Endpoint::Tls { port, .. }, Some(at)) = (endpoint, self.over_tls_at) {
            return Ok(vec![Endpoint::tcp(at, *port)]);
        }
        self.sockets.resolve(endpoint, by, deadline)
    }

    fn interfaces(&self) -> Vec<(IpAddr, u8)> {
        self.sockets.interfaces()
    }
}

impl Listener for MaskedListener {
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        let accepted = self.0.accept()?;
        Ok(accepted.map(|stream| Box::new(MaskedStream(stream)) as Box<dyn Stream>))
    }

    fn is_pending(&self) -> bool {
        self.0.is_pending()
    }

    fn endpoint(&self) -> Endpoint {
        self.0.endpoint()
    }

    fn source(&self) -> Source<'_> {
        self.0.source()
    }
}

impl Stream for MaskedStream {
    fn read(&self, into: &mut [u8], deadline: Option<Instant64>) -> Result<usize, TransportError> {
        self.0.read(into, deadline)
    }

    fn read_within(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        self.0.read_within(into, wait)
    }

    fn read_spinning(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        self.0.read_spinning(into, wait)
    }

    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
        self.0.read_now(into)
    }

    fn is_readable(&self) -> bool {
        self.0.is_readable()
    }

    fn write_all(&self, octets: &[u8], deadline: Option<Instant64>) -> Result<(), TransportError> {
        self.0.write_all(octets, deadline)
    }

    fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError> {
        self.0.write_now(octets)
    }

    fn write_parts_now(&self, parts: &[IoSlice<'_>]) -> Result<usize, TransportError> {
        self.0.write_parts_now(parts)
    }

    fn shutdown(&self) {
        self.0.shutdown();
    }

    fn caller(&self) -> Caller {
        match self.0.caller() {
            Caller::Tcp(address) => Caller::Tcp(SocketAddr::from((STRANGER, address.port()))),
            other => other,
        }
    }

    fn source(&self) -> Source<'_> {
        self.0.source()
    }
}
