//! Raw connections, and servers of the tests' own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use deckwatch_orb::{ObjectRef, Orb};

use super::ior::{Ior, TAG_INTERNET_IOP, iiop_profile};
use super::message::Received;
use super::octets::Order;
use super::{Over, PATIENCE};

trait Socket: Read + Write + Send {
    fn end(&self);
}

impl Socket for TcpStream {
    fn end(&self) {
        let _gone = self.shutdown(std::net::Shutdown::Write);
    }
}

/// A connection that speaks octets.
pub(crate) struct Wire(Box<dyn Socket>);

impl Wire {
    fn of_tcp(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("a socket option");
        Self(Box::new(stream))
    }

    /// To the first endpoint of a server of ours.
    pub(crate) fn to(orb: &Orb) -> Self {
        let endpoint = &orb.endpoints()[0];
        Self::of_tcp(
            TcpStream::connect((endpoint.host.as_str(), endpoint.port)).expect("it listens"),
        )
    }

    /// Sends octets; a server may have closed already.
    pub(crate) fn say(&mut self, octets: &[u8]) {
        let _closed = self.0.write_all(octets);
    }

    /// The next message; `None` where the other side has closed instead.
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

    /// Sends octets and gives the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, octets: &[u8]) -> Received {
        self.say(octets);
        self.hear().expect("an answer")
    }

    /// That the other side closes, having said nothing more.
    #[track_caller]
    pub(crate) fn expect_end(&mut self) {
        if let Some(message) = self.hear() {
            panic!("a message instead of the end: {:02x?}", message.octets);
        }
    }

    /// Says that nothing more will be sent.
    pub(crate) fn end(&self) {
        self.0.end();
    }
}

/// A server of the test's own: its script is given each connection in turn, one after the other.
pub(crate) struct Peer {
    host: String,
    port: u16,
    heard: Receiver<Received>,
}

impl Peer {
    /// Plays `script` with connection 0, 1 and so on. What it passes to the sender is what the test gets by [`Peer::heard`].
    pub(crate) fn start(
        over: Over,
        mut script: impl FnMut(usize, &mut Wire, &mut dyn FnMut(Received)) + Send + 'static,
    ) -> Self {
        let Over::Tcp = over;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            for (index, stream) in listener.incoming().flatten().enumerate() {
                let mut wire = Wire::of_tcp(stream);
                script(index, &mut wire, &mut |message| {
                    let _test_is_over = sender.send(message);
                });
            }
        });
        Self {
            host: "127.0.0.1".to_owned(),
            port,
            heard,
        }
    }

    /// Answers every request by `answer` of its message, and the test hears the requests.
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

    /// The next message that the script has passed on.
    #[track_caller]
    pub(crate) fn heard(&self) -> Received {
        self.heard
            .recv_timeout(PATIENCE)
            .expect("the peer hears something")
    }

    /// The messages passed on so far.
    pub(crate) fn heard_so_far(&self) -> usize {
        self.heard.try_iter().count()
    }

    /// A profile that leads to it.
    pub(crate) fn profile(
        &self,
        minor: u8,
        key: &[u8],
        components: &[(u32, Vec<u8>)],
    ) -> (u32, Vec<u8>) {
        let address = (self.host.as_str(), self.port);
        (
            TAG_INTERNET_IOP,
            iiop_profile(Order::Big, minor, address, key, components),
        )
    }

    /// A reference to an object of it.
    pub(crate) fn ior(&self, minor: u8, key: &[u8]) -> Ior {
        Ior {
            type_id: "IDL:conformance/Fake:1.0".to_owned(),
            profiles: vec![self.profile(minor, key, &[])],
        }
    }

    /// A reference to its object `Fake` in a client of ours.
    pub(crate) fn seen_by(&self, client: &Orb, minor: u8) -> ObjectRef {
        let text = self.ior(minor, b"Fake").text(Order::Big);
        client
            .string_to_object(&text)
            .expect("a reference")
            .expect("not nil")
    }
}
