//! Raw connections, and hand-written servers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{ObjectRef, Orb};
use deckwatch_os::shared::{self, SharedListener, SharedStream};
use deckwatch_os::stream::monotonic_ns;

use super::ior::{Ior, TAG_INTERNET_IOP, iiop_profile};
use super::message::Received;
use super::octets::{Octets, Order};
use super::{Over, PATIENCE, fresh_path};

trait Socket: Read + Write + Send {
    fn end(&self);
}

impl Socket for TcpStream {
    fn end(&self) {
        let _ = self.shutdown(std::net::Shutdown::Write); // It may be gone already.
    }
}

impl Socket for UnixStream {
    fn end(&self) {
        let _ = self.shutdown(std::net::Shutdown::Write); // It may be gone already.
    }
}

/// A shared-memory connection with a time limit for reads and writes.
struct Shared(SharedStream);

fn patience_ns() -> Option<u64> {
    Some(monotonic_ns() + u64::try_from(PATIENCE.as_nanos()).expect("a minute"))
}

impl Read for Shared {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(into, patience_ns())
    }
}

impl Write for Shared {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0
            .write_all(octets, patience_ns())
            .map(|()| octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Socket for Shared {
    fn end(&self) {
        self.0.shutdown_write();
    }
}

/// A raw connection; tests exchange octets over it.
pub(crate) struct Wire(Box<dyn Socket>);

impl Wire {
    fn of_tcp(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("a socket option");
        Self(Box::new(stream))
    }

    fn of_unix(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self(Box::new(stream))
    }

    /// Connects to a host and port.
    pub(crate) fn at(address: &(String, u16)) -> Self {
        let (host, port) = address;
        Self::of_tcp(TcpStream::connect((host.as_str(), *port)).expect("it listens"))
    }

    /// Connects to the first endpoint of a server of ours.
    pub(crate) fn to(orb: &Orb) -> Self {
        Self::reach(&orb.endpoints()[0]).expect("it listens")
    }

    /// Connects to an endpoint of a server of ours. Returns an error if nothing listens there.
    pub(crate) fn reach(endpoint: &Endpoint) -> std::io::Result<Self> {
        Ok(match endpoint {
            Endpoint::Tcp { host, port } => {
                Self::of_tcp(TcpStream::connect((host.as_str(), *port))?)
            }
            Endpoint::Unix { path, .. } => Self::of_unix(UnixStream::connect(path)?),
            Endpoint::SharedMemory { path, .. } => {
                let connected = shared::connect(Path::new(path), patience_ns())?;
                Self(Box::new(Shared(connected)))
            }
            other => panic!("no test speaks to {other}"),
        })
    }

    /// Sends octets. Ignores an error, because the server may have closed the connection already.
    pub(crate) fn say(&mut self, octets: &[u8]) {
        let _ = self.0.write_all(octets); // It may be closed already.
    }

    /// Reads the next message. Returns `None` if the other side has closed the connection.
    pub(crate) fn hear(&mut self) -> Option<Received> {
        let mut octets = vec![0; 12];
        match self.0.read_exact(&mut octets) {
            Ok(()) => {}
            Err(error) => {
                let kind = error.kind();
                let is_patience = matches!(
                    kind,
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                assert!(!is_patience, "no message in {PATIENCE:?}");
                return None;
            }
        }
        assert_eq!(&octets[..4], b"GIOP");
        let stated = [octets[8], octets[9], octets[10], octets[11]];
        let size = match octets[6] & 1 {
            0 => u32::from_be_bytes(stated),
            _ => u32::from_le_bytes(stated),
        };
        octets.resize(12 + size as usize, 0);
        self.0
            .read_exact(&mut octets[12..])
            .expect("a message is sent whole");
        Some(Received { octets })
    }

    /// Sends octets and reads the reply.
    #[track_caller]
    pub(crate) fn ask(&mut self, octets: &[u8]) -> Received {
        self.say(octets);
        self.hear().expect("an answer")
    }

    /// Checks that the other side closes the connection without another message.
    #[track_caller]
    pub(crate) fn expect_end(&mut self) {
        if let Some(message) = self.hear() {
            panic!("a message instead of the end: {:02x?}", message.octets);
        }
    }

    /// Closes the sending direction.
    pub(crate) fn end(&self) {
        self.0.end();
    }
}

/// A hand-written server; its script handles one connection after the other.
pub(crate) struct Peer {
    address: Address,
    heard: Mutex<Receiver<Received>>,
}

/// Where a peer listens.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Tcp(u16),
    Unix(String),
    Shared(String),
}

/// omniORB's component for a unix socket: the host name, then the path. The port of its profile is 0.
pub(crate) const TAG_OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;

/// A component of this ORB for shared memory, in the same form.
pub(crate) const TAG_DECKWATCH_SHARED_MEMORY: u32 = 0x4457_0001;

type Connections = Box<dyn Iterator<Item = Wire> + Send>;

fn listen(over: Over) -> (Address, Connections) {
    match over {
        Over::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = listener.local_addr().expect("an address").port();
            let accept = move || Some(Wire::of_tcp(listener.accept().ok()?.0));
            (Address::Tcp(port), Box::new(std::iter::from_fn(accept)))
        }
        Over::Unix => {
            let path = fresh_path();
            let listener = UnixListener::bind(&path).expect("a free path");
            let accept = move || Some(Wire::of_unix(listener.accept().ok()?.0));
            (Address::Unix(path), Box::new(std::iter::from_fn(accept)))
        }
        Over::Shared => {
            let path = fresh_path();
            let listener = SharedListener::listen(Path::new(&path), 8, None);
            let listener = listener.expect("a free path");
            let accept = move || {
                let connected = loop {
                    match listener.accept().ok()? {
                        Some(connected) => break connected,
                        None => wait_readable(&listener),
                    }
                };
                Some(Wire(Box::new(Shared(connected))))
            };
            (Address::Shared(path), Box::new(std::iter::from_fn(accept)))
        }
    }
}

/// Waits until a connection can be accepted.
fn wait_readable(listener: &SharedListener) {
    let poller = deckwatch_os::poller::Poller::new().expect("a poller");
    let watched = poller.watch(listener, 1, deckwatch_os::poller::Interest::Pending);
    watched.expect("a descriptor");
    let _ = poller.wait(None); // The caller looks again.
}

impl Peer {
    /// Runs `script` for connection 0, 1 and so on. [`Peer::heard`] returns the messages that the script passes on.
    pub(crate) fn start(
        over: Over,
        mut script: impl FnMut(usize, &mut Wire, &mut dyn FnMut(Received)) + Send + 'static,
    ) -> Self {
        let (address, connections) = listen(over);
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            for (index, mut wire) in connections.enumerate() {
                script(index, &mut wire, &mut |message| {
                    let _ = sender.send(message); // The test may be over.
                });
            }
        });
        let heard = Mutex::new(heard);
        Self { address, heard }
    }

    /// As [`Peer::answering`], but serves all connections at the same time; `answer` also gets the connection's number.
    pub(crate) fn answering_all(
        over: Over,
        answer: impl Fn(usize, &Received) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        let (address, connections) = listen(over);
        let (sender, heard) = channel();
        let answer = std::sync::Arc::new(answer);
        std::thread::spawn(move || {
            for (index, mut wire) in connections.enumerate() {
                let (sender, answer) = (sender.clone(), answer.clone());
                std::thread::spawn(move || {
                    while let Some(message) = wire.hear() {
                        let answer = answer(index, &message);
                        let _ = sender.send(message); // The test may be over.
                        wire.say(&answer);
                    }
                });
            }
        });
        let heard = Mutex::new(heard);
        Self { address, heard }
    }

    /// Replies to every request with the octets that `answer` returns, and passes the requests on to the test.
    pub(crate) fn answering(
        over: Over,
        mut answer: impl FnMut(usize, &Received) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let mut count = 0;
        Self::start(over, move |_, wire, tell| {
            while let Some(message) = wire.hear() {
                let answer = answer(count, &message);
                count += 1;
                tell(message);
                wire.say(&answer);
            }
        })
    }

    /// Reads requests, passes them on and does not reply.
    pub(crate) fn silent(over: Over) -> Self {
        Self::start(over, |_, wire, tell| {
            while let Some(message) = wire.hear() {
                tell(message);
            }
        })
    }

    /// Waits for the next message that the script has passed on.
    #[track_caller]
    pub(crate) fn heard(&self) -> Received {
        let heard = self.heard.lock().expect("nobody panics with it");
        heard
            .recv_timeout(PATIENCE)
            .expect("the peer hears something")
    }

    /// The number of messages passed on so far.
    pub(crate) fn heard_so_far(&self) -> usize {
        let heard = self.heard.lock().expect("nobody panics with it");
        heard.try_iter().count()
    }

    /// The GIOP minor versions for calls to this peer. A profile of IIOP 1.0 has no components, and a unix socket needs
    /// one.
    pub(crate) fn minors(&self) -> std::ops::Range<u8> {
        match self.address {
            Address::Tcp(_) => 0..3,
            Address::Unix(_) | Address::Shared(_) => 1..3,
        }
    }

    /// The port of a TCP peer.
    pub(crate) fn port(&self) -> u16 {
        match self.address {
            Address::Tcp(port) => port,
            Address::Unix(_) | Address::Shared(_) => 0,
        }
    }

    /// A profile with this peer's address.
    pub(crate) fn profile(
        &self,
        minor: u8,
        key: &[u8],
        components: &[(u32, Vec<u8>)],
    ) -> (u32, Vec<u8>) {
        let mut components = components.to_vec();
        let local = match &self.address {
            Address::Tcp(_) => None,
            Address::Unix(path) => Some((TAG_OMNIORB_UNIX_TRANS, path)),
            Address::Shared(path) => Some((TAG_DECKWATCH_SHARED_MEMORY, path)),
        };
        if let Some((tag, path)) = local {
            let host = Orb::builder()
                .build()
                .expect("a client")
                .transport()
                .host_name();
            let mut octets = Octets::encapsulation(Order::Big);
            octets.string(&host).string(path);
            components.push((tag, octets.octets));
        }
        let address = ("127.0.0.1", self.port());
        let profile = iiop_profile(Order::Big, minor, address, key, &components);
        (TAG_INTERNET_IOP, profile)
    }

    /// A reference to an object of this peer.
    pub(crate) fn ior(&self, minor: u8, key: &[u8]) -> Ior {
        Ior {
            type_id: "IDL:conformance/Fake:1.0".to_owned(),
            profiles: vec![self.profile(minor, key, &[])],
        }
    }

    /// The reference to the object `Fake` of this peer, in a client of ours.
    pub(crate) fn seen_by(&self, client: &Orb, minor: u8) -> ObjectRef {
        let text = self.ior(minor, b"Fake").text(Order::Big);
        client
            .string_to_object(&text)
            .expect("a reference")
            .expect("not nil")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Address::Unix(path) | Address::Shared(path) = &self.address {
            let _ = std::fs::remove_file(path); // It may be gone already.
        }
    }
}
