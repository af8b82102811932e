//! A supplier and consumers of bare sockets: what they send and what they take is under the test's control, and they
//! allocate nothing once they run.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use deckwatch_cdr::{Any, ByteOrder, Write as _, Writer};
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

    /// A reference to an object that it could have.
    pub(crate) fn object(&self, orb: &Orb) -> ObjectRef {
        object_at(&self.listener, orb)
    }
}

/// A reference to an object behind this listener.
fn object_at(listener: &TcpListener, orb: &Orb) -> ObjectRef {
    let port = listener.local_addr().expect("it listens").port();
    let profile = IiopProfile::new("127.0.0.1", port, b"raw consumer");
    let ior = Ior::with_iiop("IDL:omg.org/CosEventComm/PushConsumer:1.0", &profile);
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
        object_at(&self.listener, orb)
    }

    /// Answers the requests of one connection in a thread, and counts them.
    pub(crate) fn run(self, taken: Arc<AtomicUsize>) {
        std::thread::spawn(move || {
            let (mut stream, _) = self.listener.accept().expect("a channel connects");
            stream.set_nodelay(true).expect("an option");
            let mut message = vec![0; 64 << 10];
            let mut reply = *b"GIOP\x01\x02\x01\x01\x0c\0\0\0....\0\0\0\0\0\0\0\0";
            loop {
                if stream.read_exact(&mut message[..12]).is_err() {
                    return;
                }
                let size = u32::from_le_bytes(message[8..12].try_into().expect("four octets"));
                let rest = stream.read_exact(&mut message[12..12 + size as usize]);
                rest.expect("a whole message");
                reply[12..16].copy_from_slice(&message[12..16]);
                taken.fetch_add(1, Ordering::SeqCst);
                if stream.write_all(&reply).is_err() {
                    return;
                }
            }
        });
    }
}

/// A supplier that sends the same push again and again.
pub(crate) struct Supplier {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Supplier {
    /// Pushes `event` to the proxy, which stands at the first address of its reference.
    pub(crate) fn new(proxy: &ObjectRef, event: &Any) -> Self {
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
