//! Shared code of the integration tests: a servant written by hand against the interface that generated code uses, and
//! its client.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its own part"
)]

pub mod fake;
pub mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deckwatch_cdr::{EncodeError, Parse, Reader, UserException, Write, Writer};
use deckwatch_orb::transport::TransportError;
use deckwatch_orb::{
    BuildError, Completion, Counter, ObjectRef, Orb, OrbBuilder, Poa, Servant, ServerRequest,
    SystemException, SystemExceptionKind,
};

pub const TEST_ID: &str = "IDL:deckwatch.test/Bench:1.0";

/// The servant of the tests.
#[derive(Default)]
pub struct Bench {
    pub calls: AtomicU64,
    pub order: Mutex<Vec<u32>>,
    /// The gate that the operation `meet` waits for.
    pub gate: Gate,
}

/// A gate that a test opens.
#[derive(Default)]
pub struct Gate {
    open: Mutex<bool>,
    changed: std::sync::Condvar,
    arrived: AtomicU64,
}

impl Gate {
    pub fn pass(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_while(open, |open| !*open).unwrap());
    }

    /// Closes the gate again.
    pub fn close(&self) {
        *self.open.lock().unwrap() = false;
        self.arrived.store(0, Ordering::SeqCst);
    }

    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    pub fn wait_for_arrivals(&self, count: u64) {
        while self.arrived.load(Ordering::SeqCst) < count {
            std::thread::yield_now();
        }
    }
}

#[derive(Debug, PartialEq)]
pub struct Refused {
    pub code: u32,
}

impl Write for Refused {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.code.write(w)
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "refused with {}", self.code)
    }
}

impl std::error::Error for Refused {}

impl UserException for Refused {
    const REPOSITORY_ID: &'static str = "IDL:deckwatch.test/Refused:1.0";
}

#[derive(Debug, PartialEq)]
pub enum CallError {
    Refused(Refused),
    System(SystemException),
}

impl From<SystemException> for CallError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl Servant for Bench {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID, "IDL:deckwatch.test/Base:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut arguments = request.arguments();
        match request.operation() {
            b"ping" => {
                request.reply()?;
            }
            b"octets" => {
                let octets = arguments.read_octet_sequence()?;
                request.reply()?.write_octet_sequence(octets)?;
            }
            b"text" => {
                let text = String::parse(&mut arguments)?;
                text.write(&mut request.reply()?)?;
            }
            b"refuse" => {
                let code = arguments.read_u32()?;
                request.raise(&Refused { code })?;
            }
            b"fail" => {
                return Err(SystemException::new(
                    SystemExceptionKind::NoPermission,
                    7,
                    Completion::Yes,
                ));
            }
            b"panic" => panic!("a servant panics, as the test asked it to"),
            b"note" => self.order.lock().unwrap().push(arguments.read_u32()?),
            b"noted" => {
                let count = u32::try_from(self.order.lock().unwrap().len()).unwrap();
                request.reply()?.write_u32(count)?;
            }
            b"meet" => {
                self.gate.pass();
                request.reply()?;
            }
            b"call_back" => {
                let peer = Option::<ObjectRef>::parse(&mut arguments)?
                    .expect("the test gives a reference");
                let octets = call_octets(&peer, b"called back")?;
                request.reply()?.write_octet_sequence(&octets)?;
            }
            _ => {
                return Err(SystemException::new(
                    SystemExceptionKind::BadOperation,
                    0,
                    Completion::No,
                ));
            }
        }
        Ok(())
    }
}

fn no_exception<E>(_: &str, _: &mut Reader<'_>) -> Result<Option<E>, deckwatch_cdr::DecodeError> {
    Ok(None)
}

pub fn call(reference: &ObjectRef, operation: &str) -> Result<(), SystemException> {
    reference.invoke(operation, |_| Ok(()), |_| Ok(()), no_exception)
}

pub fn call_octets(reference: &ObjectRef, octets: &[u8]) -> Result<Vec<u8>, SystemException> {
    let read = |r: &mut Reader<'_>| r.read_octet_sequence().map(<[u8]>::to_vec);
    reference.invoke(
        "octets",
        |w| w.write_octet_sequence(octets),
        read,
        no_exception,
    )
}

fn read_text(r: &mut Reader<'_>) -> Result<String, deckwatch_cdr::DecodeError> {
    String::parse(r)
}

pub fn call_text(reference: &ObjectRef, text: &str) -> Result<String, SystemException> {
    reference.invoke("text", |w| text.write(w), read_text, no_exception)
}

pub fn call_refuse(reference: &ObjectRef, code: u32) -> Result<(), CallError> {
    reference.invoke(
        "refuse",
        |w| code.write(w),
        |_| Ok(()),
        |id, r| {
            if id == Refused::REPOSITORY_ID {
                return Ok(Some(CallError::Refused(Refused {
                    code: r.read_u32()?,
                })));
            }
            Ok(None)
        },
    )
}

pub fn note(reference: &ObjectRef, value: u32) -> Result<(), SystemException> {
    reference.invoke_oneway("note", |w| value.write(w))
}

pub fn noted(reference: &ObjectRef) -> Result<u32, SystemException> {
    reference.invoke("noted", |_| Ok(()), |r| r.read_u32(), no_exception)
}

pub fn call_back(reference: &ObjectRef, peer: &ObjectRef) -> Result<Vec<u8>, SystemException> {
    let read = |r: &mut Reader<'_>| r.read_octet_sequence().map(<[u8]>::to_vec);
    reference.invoke("call_back", |w| Some(peer).write(w), read, no_exception)
}

/// A GIOP 1.2 request for the operation `octets` with an argument of this many octets.
pub fn request(bench: &ObjectRef, id: u32, octets: u32) -> Vec<u8> {
    let mut arguments = octets.to_be_bytes().to_vec();
    arguments.resize(arguments.len() + octets as usize, 1);
    request_of(bench, (id, 3), "octets", &arguments)
}

/// A GIOP 1.2 request with this request id and these response flags.
pub fn request_of(
    bench: &ObjectRef,
    id_and_flags: (u32, u8),
    operation: &str,
    arguments: &[u8],
) -> Vec<u8> {
    request_saying(bench, id_and_flags, operation, None, arguments)
}

/// As `request_of`, with a service context.
pub fn request_saying(
    bench: &ObjectRef,
    (id, flags): (u32, u8),
    operation: &str,
    context: Option<(u32, &[u8])>,
    arguments: &[u8],
) -> Vec<u8> {
    let key = bench.object_key().unwrap();
    let mut body = id.to_be_bytes().to_vec();
    body.extend([flags, 0, 0, 0, 0, 0, 0, 0]);
    body.extend(u32::try_from(key.len()).unwrap().to_be_bytes());
    body.extend(key);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(u32::try_from(operation.len() + 1).unwrap().to_be_bytes());
    body.extend(operation.as_bytes());
    body.push(0);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(u32::from(context.is_some()).to_be_bytes());
    if let Some((number, data)) = context {
        body.extend(number.to_be_bytes());
        body.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        body.extend(data);
    }
    body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
    body.extend(arguments);
    let mut message = b"GIOP\x01\x02\x00\x00".to_vec();
    message.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
    message.extend(body);
    message
}

/// A path for a unix socket that no other test uses, in the directory for temporary files.
pub fn socket_path() -> String {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let number = TAKEN.fetch_add(1, Ordering::Relaxed);
    let name = format!("deckwatch-orb-{}-{number}", std::process::id());
    std::env::temp_dir().join(name).display().to_string()
}

/// A server on loopback with one `Bench`, and its stringified reference.
pub struct Server {
    pub orb: Orb,
    pub root: Poa,
    pub bench: Arc<Bench>,
    pub text: String,
}

impl Server {
    pub fn start() -> Self {
        Self::at("127.0.0.1:0")
    }

    pub fn at(endpoint: &str) -> Self {
        Self::with(Orb::builder().listen(endpoint).unwrap().build().unwrap())
    }

    /// A server on loopback; `shape` changes the ORB builder.
    pub fn shaped(shape: impl FnOnce(OrbBuilder) -> OrbBuilder) -> Self {
        let builder = Orb::builder().listen("127.0.0.1:0").unwrap();
        Self::with(shape(builder).build().unwrap())
    }

    pub fn with(orb: Orb) -> Self {
        let root = orb.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let bench = Arc::new(Bench::default());
        let servant: Arc<dyn Servant> = bench.clone();
        let text = root.servant_to_reference(&servant).unwrap().to_string();
        Self {
            orb,
            root,
            bench,
            text,
        }
    }

    pub fn address(&self) -> std::net::SocketAddr {
        self.orb.endpoints()[0].to_string().parse().unwrap()
    }
}

/// Time limit for each wait of a test, long enough for a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until another thread makes the condition true.
#[track_caller]
pub fn wait_for(mut what: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}

/// A client ORB and its reference to the server.
pub fn client_of(server: &Server) -> (Orb, ObjectRef) {
    let orb = Orb::builder()
        .round_trip_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let reference = orb.string_to_object(&server.text).unwrap().unwrap();
    (orb, reference)
}

/// The reference to the object in another ORB.
pub fn seen_by(client: &Orb, object: &ObjectRef) -> ObjectRef {
    let text = object.to_string();
    client.string_to_object(&text).unwrap().unwrap()
}

/// A forged reference: this object key at the server's endpoint.
pub fn forged(client: &Orb, server: &Server, key: &[u8]) -> ObjectRef {
    let key: String = key.iter().map(|octet| format!("%{octet:02x}")).collect();
    let url = format!("corbaloc::{}/{key}", server.orb.endpoints()[0]);
    client.string_to_object(&url).unwrap().unwrap()
}

/// Makes every kind of call to a server that listens at `endpoint`. Another server, which is called back, listens at
/// `other`.
pub fn make_every_kind_of_call(endpoint: &str, other: &str, notes: u32) {
    let server = Server::at(endpoint);
    let (client, bench) = client_of(&server);
    assert_eq!(call(&bench, "ping"), Ok(()));
    // More than the socket buffers and rings can hold, in both directions.
    let large = vec![7; 3 << 20];
    assert_eq!(call_octets(&bench, &large), Ok(large));
    assert_eq!(
        call_refuse(&bench, 5),
        Err(CallError::Refused(Refused { code: 5 }))
    );
    for value in 0..notes {
        note(&bench, value).unwrap();
    }
    while noted(&bench).unwrap() < notes {
        std::thread::yield_now();
    }
    assert_eq!(
        *server.bench.order.lock().unwrap(),
        (0..notes).collect::<Vec<_>>()
    );
    // The servant's call back uses another connection, in the other direction.
    let other = Server::at(other);
    let peer = client.string_to_object(&other.text).unwrap().unwrap();
    assert_eq!(call_back(&bench, &peer).unwrap(), b"called back");
    // One connection for two-way requests, one for one-way requests.
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 2);
}

/// Checks that listening at each of these addresses of a protocol fails, with this error.
#[track_caller]
pub fn expect_no_listener(protocol: &str, places: &[(&str, TransportError)]) {
    for &(path, expected) in places {
        let builder = Orb::builder()
            .listen(&format!("{protocol}:{path}"))
            .unwrap();
        match builder.build() {
            Err(BuildError::CannotListen { error, .. }) => assert_eq!(error, expected, "{path}"),
            other => panic!("{path}: {other:?}"),
        }
    }
}
