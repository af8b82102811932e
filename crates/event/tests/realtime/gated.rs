//! Sockets whose writes to one port wait at a gate: a thread that writes there is held.

use std::io::IoSlice;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use deckwatch_orb::ObjectRef;
use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Poller, SocketTransport, Source, Stream, StreamOptions,
    Transport, TransportError,
};

#[derive(Default)]
pub(super) struct Gated {
    sockets: SocketTransport,
    /// 0: the gate is open.
    port: Arc<AtomicU16>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    lock: Mutex<()>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gated {
    /// Closes the gate for writes to the server of this object.
    pub(super) fn close(&self, object: &ObjectRef) {
        let profile = object.ior().iiop_profiles().next();
        let port = profile.expect("a profile").expect("whole").port;
        self.port.store(port, SeqCst);
    }

    /// Threads that are held.
    pub(super) fn waiting(&self) -> usize {
        self.gate.waiting.load(SeqCst)
    }

    pub(super) fn open(&self) {
        let _lock = self.gate.lock.lock().expect("whole");
        self.port.store(0, SeqCst);
        self.gate.opened.notify_all();
    }
}

struct GatedStream {
    stream: Box<dyn Stream>,
    own: u16,
    port: Arc<AtomicU16>,
    gate: Arc<Gate>,
}

impl GatedStream {
    fn pass(&self) {
        let mut lock = self.gate.lock.lock().expect("whole");
        self.gate.waiting.fetch_add(1, SeqCst);
        while self.port.load(SeqCst) == self.own {
            lock = self.gate.opened.wait(lock).expect("whole");
        }
        self.gate.waiting.fetch_sub(1, SeqCst);
    }
}

impl Stream for GatedStream {
    fn read(&self, into: &mut [u8], deadline: Option<Instant64>) -> Result<usize, TransportError> {
        self.stream.read(into, deadline)
    }

    fn read_within(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        self.stream.read_within(into, wait)
    }

    fn read_spinning(
        &self,
        into: &mut [u8],
        wait: Duration,
    ) -> Result<Option<usize>, TransportError> {
        self.stream.read_spinning(into, wait)
    }

    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
        self.stream.read_now(into)
    }

    fn is_readable(&self) -> bool {
        self.stream.is_readable()
    }

    fn write_all(&self, octets: &[u8], deadline: Option<Instant64>) -> Result<(), TransportError> {
        self.stream.write_all(octets, deadline)
    }

    fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError> {
        self.stream.write_now(octets)
    }

    fn write_parts_now(&self, parts: &[IoSlice<'_>]) -> Result<usize, TransportError> {
        self.pass();
        self.stream.write_parts_now(parts)
    }

    fn shutdown(&self) {
        self.stream.shutdown();
    }

    fn source(&self) -> Source<'_> {
        self.stream.source()
    }
}

impl Transport for Gated {
    fn now(&self) -> Instant64 {
        self.sockets.now()
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
        deadline: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        self.sockets.connect(endpoint, options, deadline)
    }

    fn begin_connect(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let stream = self.sockets.begin_connect(endpoint, options)?;
        let Endpoint::Tcp { port, .. } = endpoint else {
            return Ok(stream);
        };
        Ok(Box::new(GatedStream {
            stream,
            own: *port,
            port: Arc::clone(&self.port),
            gate: Arc::clone(&self.gate),
        }))
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        options: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
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
