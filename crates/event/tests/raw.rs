//! A supplier and consumers of bare sockets: what they send and what they take is under the test's control, and they
//! allocate nothing once they run.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use deckwatch_cdr::{ByteOrder, Write, Writer};
use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;
use deckwatch_orb::{ObjectRef, Orb};

/// A listener that accepts every connection and never reads more than the first octet of it.
pub(crate) struct Silent {
    listener: Arc<TcpListener>,
    /// Gets a message when the first octet has arrived.
    pub(crate) first: mpsc::Receiver<()>,
}

impl Silent {
    pub(crate) fn new() -> Self {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let (tell, first) = mpsc::channel();
        let accepts = listener.clone();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = accepts.accept() {
                if stream.read_exact(&mut [0]).is_err() || tell.send(()).is_err() {
                    return;
                }
                kept.push(stream);
            }
        });
        Self { listener, first }
    }

    /// A reference to a consumer that it could have.
    pub(crate) fn object(&self, orb: &Orb) -> ObjectRef {
        self.object_of(CONSUMER, orb)
    }

    /// A reference to an object of this type that it could have.
    pub(crate) fn object_of(&self, type_id: &str, orb: &Orb) -> ObjectRef {
        object_at(&self.listener, type_id, orb)
    }
}

const CONSUMER: &str = "IDL:omg.org/CosEventComm/PushConsumer:1.0";

/// A reference to an object behind this listener.
fn object_at(listener: &TcpListener, type_id: &str, orb: &Orb) -> ObjectRef {
    let port = listener.local_addr().expect("it listens").port();
    let profile = IiopProfile::new("127.0.0.1", port, b"raw consumer");
    let ior = Ior::with_iiop(type_id, &profile);
    let text = ior.expect("a reference").to_string();
    let object = orb.string_to_object(&text).expect("an IOR");
    object.expect("not nil")
}

/// A consumer that takes every event and answers it.
pub(crate) struct Answering {
    listener: TcpListener,
}

impl Answering {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self { listener }
    }

    pub(crate) fn object(&self, orb: &Orb) -> ObjectRef {
        object_at(&self.listener, CONSUMER, orb)
    }

    /// A reference with the code sets of `other`.
    pub(crate) fn object_like(&self, other: &ObjectRef, orb: &Orb) -> ObjectRef {
        let port = self.listener.local_addr().expect("it listens").port();
        let profile = other.ior().iiop_profiles().next();
        let profile = IiopProfile {
            components: profile.expect("a profile").expect("whole").components,
            ..IiopProfile::new("127.0.0.1", port, b"raw consumer")
        };
        let ior = Ior::with_iiop(other.type_id(), &profile).expect("a reference");
        let object = orb.string_to_object(&ior.to_string()).expect("an IOR");
        object.expect("not nil")
    }

    /// Answers the requests of one connection in a thread, and counts them.
    pub(crate) fn run(self, taken: Arc<AtomicUsize>) {
        std::thread::spawn(move || serve(&self.listener, &taken));
    }

    /// The same for `count` consumers behind one connection: their answers to an event are written at once.
    pub(crate) fn run_together(self, count: usize, taken: Arc<AtomicUsize>) {
        std::thread::spawn(move || {
            let (mut stream, _) = self.listener.accept().expect("a channel connects");
            stream.set_nodelay(true).expect("an option");
            let mut message = vec![0; 64 << 10];
            let one = reply([0; 4], 0, &[]);
            let mut answers = one.repeat(count);
            loop {
                for answer in answers.chunks_mut(one.len()) {
                    let Some(id) = read_request(&mut stream, &mut message) else {
                        return;
                    };
                    answer[12..16].copy_from_slice(&id);
                }
                taken.fetch_add(count, Ordering::SeqCst);
                if stream.write_all(&answers).is_err() {
                    return;
                }
            }
        });
    }

    /// Takes `window` events without an answer, answers the first and writes `last`, for which the channel ends the
    /// connection; without `last`, it closes the connection itself. Answers all events of the next connection. Returns
    /// the numbers of all, as they come.
    pub(crate) fn run_closing(self, window: usize, last: &'static [u8]) -> mpsc::Receiver<u32> {
        let (tell, numbers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut message = vec![0; 64 << 10];
            let mut next = |stream: &mut TcpStream| {
                let (id, size) = read_sized(stream, &mut message)?;
                let number = message[12 + size - 4..12 + size].try_into();
                tell.send(u32::from_le_bytes(number.ok()?)).ok()?;
                Some(id)
            };
            let (mut stream, _) = self.listener.accept().expect("a channel connects");
            let taken: Vec<_> = (0..window).map_while(|_| next(&mut stream)).collect();
            let end = [&reply(taken[0], 0, &[])[..], last].concat();
            stream.write_all(&end).expect("it reads");
            let ended = (!last.is_empty()).then_some(stream);
            let (mut stream, _) = self.listener.accept().expect("it connects again");
            drop(ended);
            while let Some(id) = next(&mut stream) {
                if stream.write_all(&reply(id, 0, &[])).is_err() {
                    return;
                }
            }
        });
        numbers
    }

    /// The same, after the first request of a first connection was answered by `first`, which gets the request's id.
    pub(crate) fn run_after(
        self,
        first: impl FnOnce([u8; 4]) -> Vec<u8> + Send + 'static,
        taken: Arc<AtomicUsize>,
    ) {
        std::thread::spawn(move || {
            let (mut stream, _) = self.listener.accept().expect("a channel connects");
            let id = read_request(&mut stream, &mut vec![0; 64 << 10]).expect("a request");
            stream.write_all(&first(id)).expect("it reads");
            drop(stream);
            serve(&self.listener, &taken);
        });
    }
}

impl Answering {
    /// Answers every request of every connection by `answer`, which gets the request's id.
    pub(crate) fn run_always(self, answer: impl Fn([u8; 4]) -> Vec<u8> + Send + 'static) {
        std::thread::spawn(move || {
            let mut message = vec![0; 64 << 10];
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = self.listener.accept() {
                let Some(id) = read_request(&mut stream, &mut message) else {
                    return;
                };
                if stream.write_all(&answer(id)).is_err() {
                    return;
                }
                kept.push(stream);
            }
        });
    }
}

impl Answering {
    /// Takes one event, then writes `first`, and `again` without end.
    pub(crate) fn run_flooding(self, first: Vec<u8>, again: Vec<u8>) {
        std::thread::spawn(move || {
            let (mut stream, _) = self.listener.accept().expect("a channel connects");
            read_request(&mut stream, &mut vec![0; 64 << 10]).expect("a request");
            stream.write_all(&first).expect("it reads");
            while stream.write_all(&again).is_ok() {}
        });
    }

    /// Accepts one connection and closes it. Returns a reference with a host name in place of the address.
    pub(crate) fn close_first(self, orb: &Orb) -> ObjectRef {
        let port = self.listener.local_addr().expect("it listens").port();
        std::thread::spawn(move || self.listener.accept().map(drop));
        let url = format!("corbaloc:iiop:1.2@localhost:{port}/raw");
        let object = orb.string_to_object(&url).expect("a URL");
        object.expect("not nil")
    }
}

/// A reply with this status and body.
pub(crate) fn reply(id: [u8; 4], status: u8, body: &[u8]) -> Vec<u8> {
    let mut reply = b"GIOP\x01\x02\x01\x01".to_vec();
    reply.extend(u32::to_le_bytes(12 + body.len() as u32));
    reply.extend(id);
    reply.extend([status, 0, 0, 0, 0, 0, 0, 0]);
    reply.extend(body);
    reply
}

/// CloseConnection.
pub(crate) const CLOSE: &[u8] = b"GIOP\x01\x00\x01\x05\0\0\0\0";

/// Reads one request. Returns its id; `None`: the connection has ended.
fn read_request(stream: &mut TcpStream, message: &mut [u8]) -> Option<[u8; 4]> {
    Some(read_sized(stream, message)?.0)
}

/// As [`read_request`], with the octets behind the message's header.
fn read_sized(stream: &mut TcpStream, message: &mut [u8]) -> Option<([u8; 4], usize)> {
    stream.read_exact(&mut message[..12]).ok()?;
    let size = u32::from_le_bytes(message[8..12].try_into().expect("four octets")) as usize;
    stream.read_exact(&mut message[12..12 + size]).ok()?;
    Some((message[12..16].try_into().ok()?, size))
}

fn serve(listener: &TcpListener, taken: &AtomicUsize) {
    let (mut stream, _) = listener.accept().expect("a channel connects");
    stream.set_nodelay(true).expect("an option");
    let mut message = vec![0; 64 << 10];
    let mut answer = reply([0; 4], 0, &[]);
    while let Some(id) = read_request(&mut stream, &mut message) {
        answer[12..16].copy_from_slice(&id);
        taken.fetch_add(1, Ordering::SeqCst);
        // The response flags: a one-way wants no answer.
        let is_oneway = message[16] == 0;
        if !is_oneway && stream.write_all(&answer).is_err() {
            return;
        }
    }
}

/// A supplier that sends the same push again and again.
pub(crate) struct Supplier {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Supplier {
    /// Pushes `event` to the proxy, which stands at the first address of its reference.
    pub(crate) fn new(proxy: &ObjectRef, event: &impl Write) -> Self {
        let profile = proxy
            .ior()
            .iiop_profiles()
            .next()
            .expect("a profile")
            .expect("whole");
        let mut request = Vec::new();
        let mut w = Writer::new(&mut request).with_order(ByteOrder::Little);
        let mut write = || {
            w.write_octets(b"GIOP\x01\x02\x01\0")?;
            w.write_u32(0)?;
            w.write_u32(1)?;
            w.write_octets(&[3, 0, 0, 0, 0, 0, 0, 0])?;
            w.write_octet_sequence(&profile.object_key)?;
            "push".write(&mut w)?;
            w.write_u32(0)?;
            w.align(8)?;
            event.write(&mut w)
        };
        write().expect("a few octets");
        let size = w.position() - 12;
        w.patch_u32(8, size as u32);
        let stream = TcpStream::connect((profile.host.as_str(), profile.port)).expect("it listens");
        stream.set_nodelay(true).expect("an option");
        Self { stream, request }
    }

    /// Pushes once, and waits for the reply.
    pub(crate) fn push(&mut self) {
        self.stream.write_all(&self.request).expect("it reads");
        let mut reply = [0; 24];
        self.stream.read_exact(&mut reply).expect("it answers");
        assert_eq!(reply[16..20], [0; 4], "no exception");
    }
}
