//! Handshakes of TLS 1.2 and 1.3 and what follows them, at the entrance of a listener: the client is `rustls` alone.
//!
//! What the client sends may be cut, changed in one octet, divided into other records, sent twice or out of order. Only
//! what the client has written is ever delivered, in its order, and nothing of a client that is not let in.

use std::cell::RefCell;
use std::io::Read;
use std::io::Write as _;
use std::sync::Arc;

use deckwatch_orb::fuzzing::{Shaken, TlsEntrance};
use deckwatch_orb::transport::{Stream, TransportError};
use deckwatch_orb::{Tls, TlsOptions};
use deckwatch_os::stream::StreamSocket;
use deckwatch_os::unix::{self, UnixListener};
use deckwatch_testkit::certificates::{Authority, Issued};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::counted;

/// Octets that one connection may have allocated at a time, its client included.
const MEMORY_MAX: usize = 4 << 20;
/// Exchanges until both ends are at rest.
const ROUNDS_MAX: usize = 64;
/// Octets of a text that may come one by one.
const SHORT: usize = 256;
/// Records that a text is written in, at most about so many.
const PIECES_MAX: usize = 64;
/// Octets of a record's header.
const HEADER: usize = 5;

/// What the client shows.
const OWN: usize = 0;
const NOTHING: usize = 1;
const OF_ANOTHER_AUTHORITY: usize = 2;

/// Certificates, and where the server listens: made once.
struct Place {
    _folder: tempfile::TempDir,
    listener: UnixListener,
    /// A certificate is required of clients, or not.
    entrances: [TlsEntrance; 2],
    /// By version and by what the client shows.
    clients: Vec<Arc<ClientConfig>>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = Authority::new(folder.path(), "ship");
        let other = Authority::new(folder.path(), "pirates");
        let server = authority.issue("nav", &["nav.ship"]);
        let options = || {
            TlsOptions::default()
                .certificate(&server.chain, &server.key)
                .authorities(authority.file())
        };
        let load = |options: TlsOptions| -> Tls { options.load().expect("sound files") };
        let entrances = [load(options().require()), load(options())];
        let shown = [
            Some(authority.issue("bridge", &["bridge.ship"])),
            None,
            Some(other.issue("bridge", &["bridge.ship"])),
        ];
        let mut clients = Vec::new();
        for version in [&TLS12, &TLS13] {
            for own in &shown {
                clients.push(client(&authority, version, own.as_ref()));
            }
        }
        let listener = UnixListener::listen(&folder.path().join("tls"), 16, None);
        Self {
            listener: listener.expect("a free path"),
            _folder: folder,
            entrances: entrances.each_ref().map(TlsEntrance::new),
            clients,
        }
    }

    fn connect(&self) -> (StreamSocket, StreamSocket) {
        let near = unix::connect(self.listener.path(), None).expect("it listens");
        let far = self.listener.accept().expect("a descriptor");
        (near, far.expect("it has connected"))
    }
}

fn client(
    authority: &Authority,
    version: &'static rustls::SupportedProtocolVersion,
    own: Option<&Issued>,
) -> Arc<ClientConfig> {
    let read = |file: &std::path::Path| std::fs::read(file).expect("it was written");
    let certificate = |pem: &[u8]| CertificateDer::from_pem_slice(pem).expect("it is sound");
    let mut roots = RootCertStore::empty();
    roots
        .add(certificate(&read(&authority.file())))
        .expect("it is sound");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_protocol_versions(&[version])
        .expect("it is known");
    let builder = builder.with_root_certificates(roots);
    let config = match own {
        None => Ok(builder.with_no_client_auth()),
        Some(own) => {
            let key = PrivateKeyDer::from_pem_slice(&read(&own.key)).expect("it is sound");
            builder.with_client_auth_cert(vec![certificate(&read(&own.chain))], key)
        }
    };
    Arc::new(config.expect("they belong together"))
}

thread_local! {
    static PLACE: RefCell<Place> = RefCell::new(Place::new());
}

/// What becomes of the client's octets on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    No,
    /// The stream ends at this octet.
    Cut(usize),
    /// This octet is another one.
    Octet(usize, u8),
    /// A piece of plaintext is sent twice, by its number.
    Twice(usize),
    /// A piece of plaintext and the next change places.
    Swapped(usize),
    /// The fuzzer's octets come in place of the client's; with `true` behind its ClientHello.
    Raw(bool),
}

/// How a connection goes, made of the fuzzer's octets.
struct Plan<'o> {
    /// An index of [`Place::clients`].
    client: usize,
    /// An index of [`Place::entrances`].
    entrance: usize,
    lie: Lie,
    /// How many octets come at a time.
    chunk: usize,
    /// Into how many records the ClientHello is divided.
    hello_parts: usize,
    /// The sizes of the pieces in which the client writes its plaintext.
    piece: usize,
    /// The size of the buffer that the server reads into.
    room: usize,
    data: &'o [u8],
}

impl<'o> Plan<'o> {
    fn of(octets: &'o [u8]) -> Option<Self> {
        let (head, data) = octets.split_first_chunk::<8>()?;
        let place = usize::from(u16::from_be_bytes([head[3], head[4]]));
        let lie = match head[2] % 8 {
            0 => Lie::No,
            1 | 2 => Lie::Cut(place),
            3 | 4 => Lie::Octet(place, head[5].max(1)),
            5 => Lie::Twice(place),
            6 => Lie::Swapped(place),
            _ => Lie::Raw(head[5] & 1 != 0),
        };
        // Single octets, and records of few, are for short texts: a connection takes some milliseconds.
        let chunk = [usize::MAX, 1, 5, 100, 1_000][usize::from(head[1] % 5)];
        let chunk_min = if data.len() > SHORT { 100 } else { 1 };
        let piece = usize::from(head[6]) * 8 + 1;
        Some(Self {
            client: usize::from(head[0] % 6),
            entrance: usize::from(head[0] >> 7),
            lie,
            chunk: chunk.max(chunk_min),
            hello_parts: usize::from(head[1] >> 5) + 1,
            piece: piece.max(data.len() / PIECES_MAX),
            room: [16_384, 1, 64, 40_000][usize::from(head[7] % 4)],
            data,
        })
    }

    fn is_let_in(&self) -> bool {
        match self.client % 3 {
            OWN => true,
            NOTHING => self.entrance == 1,
            OF_ANOTHER_AUTHORITY => false,
            _ => unreachable!("there are three"),
        }
    }
}

/// The server's end.
enum Far {
    Shaking(u64),
    Open(Box<dyn Stream>),
    Ended(Option<TransportError>),
}

struct Wire<'p> {
    entrance: &'p mut TlsEntrance,
    near: StreamSocket,
    far: Far,
    number: u64,
    /// How many octets of the client are behind us.
    passed: usize,
    has_been_open: bool,
    delivered: Vec<u8>,
    room: Vec<u8>,
    chunk: usize,
}

impl Wire<'_> {
    /// Brings octets to the server, and lets it look at them.
    fn bring(&mut self, octets: &[u8]) {
        for some in octets.chunks(self.chunk.min(octets.len()).max(1)) {
            let mut rest = some;
            while !rest.is_empty() {
                match self.near.write_now(rest) {
                    // It has ended, or does not read any more.
                    Err(_) => break,
                    Ok(0) if matches!(self.far, Far::Ended(_)) => break,
                    Ok(count) => rest = &rest[count..],
                }
                self.look();
            }
        }
    }

    /// The server takes what there is.
    fn look(&mut self) {
        if let Far::Shaking(number) = self.far {
            match self.entrance.step(number) {
                Shaken::Waits => return,
                Shaken::Failed => return self.far = Far::Ended(None),
                Shaken::Done(stream) => self.far = Far::Open(stream),
            }
            self.has_been_open = true;
        }
        while let Far::Open(stream) = &self.far {
            match stream.read_now(&mut self.room) {
                Ok(None) => break,
                Ok(Some(0)) => self.far = Far::Ended(None),
                Ok(Some(count)) => self.delivered.extend_from_slice(&self.room[..count]),
                Err(error) => self.far = Far::Ended(Some(error)),
            }
        }
    }
}

/// Plays the connection that these octets make.
///
/// # Panics
/// Where a promise is broken.
pub fn play(octets: &[u8]) {
    let Some(plan) = Plan::of(octets) else {
        return;
    };
    PLACE.with_borrow_mut(|place| {
        let before = counted::begin();
        let (near, far) = place.connect();
        let config = Arc::clone(&place.clients[plan.client]);
        let entrance = &mut place.entrances[plan.entrance];
        let number = entrance.begin(far).expect("one at a time");
        let name = ServerName::try_from("nav.ship").expect("a name");
        let client = ClientConnection::new(config, name).expect("a sound config");
        let wire = Wire {
            entrance,
            near,
            far: Far::Shaking(number),
            number,
            passed: 0,
            has_been_open: false,
            delivered: Vec::new(),
            room: vec![0; plan.room],
            chunk: plan.chunk,
        };
        play_on(&plan, client, wire);
        let most = counted::most().saturating_sub(before);
        assert!(most <= MEMORY_MAX, "{most} octets for one connection");
    });
}

/// What the client has sent, before the lie.
#[derive(Default)]
struct Sent {
    /// Its records of the handshake.
    shaken: Vec<u8>,
    /// The octets of each piece of plaintext, in records.
    pieces: Vec<Vec<u8>>,
}

fn play_on(plan: &Plan<'_>, mut client: ClientConnection, mut wire: Wire<'_>) {
    let mut sent = Sent::default();
    shake(plan, &mut client, &mut wire, &mut sent);
    let whole = sent.shaken.len();
    let is_shaken = !client.is_handshaking() && !matches!(plan.lie, Lie::Raw(_));
    if is_shaken {
        for piece in plan.data.chunks(plan.piece) {
            // A server that refuses the client's certificate may have said so already.
            if client.writer().write_all(piece).is_err() {
                break;
            }
            sent.pieces.push(taken(&mut client));
        }
        let mut order: Vec<usize> = (0..sent.pieces.len()).collect();
        match plan.lie {
            Lie::Twice(at) if !order.is_empty() => order.insert(at % order.len(), at % order.len()),
            Lie::Swapped(at) if order.len() > 1 => {
                let at = at % (order.len() - 1);
                order.swap(at, at + 1);
            }
            _ => {}
        }
        for index in order {
            send(plan.lie, &sent.pieces[index], &mut wire);
        }
    }
    if plan.lie == Lie::No && plan.is_let_in() {
        judge_whole(plan, &mut client, &mut wire);
    }
    judge(plan, &sent, whole, &wire);
    wire.near.shutdown();
    wire.look();
    let Wire {
        entrance,
        near,
        far,
        number,
        ..
    } = wire;
    drop((near, far));
    let _ = entrance.step(number); // It sees the end.
    assert!(entrance.is_empty(), "a handshake outlives its peer");
}

/// Takes the client's records.
fn taken(client: &mut ClientConnection) -> Vec<u8> {
    let mut octets = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut octets).expect("it is memory");
    }
    octets
}

/// Makes the handshake as far as it goes.
fn shake(plan: &Plan<'_>, client: &mut ClientConnection, wire: &mut Wire<'_>, sent: &mut Sent) {
    if plan.lie == Lie::Raw(false) {
        return wire.bring(plan.data);
    }
    for round in 0..ROUNDS_MAX {
        let mut octets = taken(client);
        if round == 0 {
            octets = divided(&octets, plan.hello_parts);
        }
        sent.shaken.extend_from_slice(&octets);
        send(plan.lie, &octets, wire);
        if plan.lie == Lie::Raw(true) {
            return wire.bring(plan.data);
        }
        let mut answer = [0; 16_384];
        let mut count = 0;
        while let Ok(Some(more @ 1..)) = wire.near.read_now(&mut answer) {
            count += more;
            let mut rest = &answer[..more];
            while !rest.is_empty() && client.read_tls(&mut rest).is_ok() {
                // A lie, or a refusal: its alert goes with the next round.
                let _ = client.process_new_packets();
            }
        }
        if count == 0 && !client.wants_write() {
            return;
        }
    }
    panic!("a handshake in a circle");
}

/// Divides the record of a ClientHello into several, which the standard permits.
fn divided(hello: &[u8], count: usize) -> Vec<u8> {
    let body = &hello[HEADER..];
    let mut octets = Vec::new();
    for part in body.chunks(body.len().div_ceil(count)) {
        octets.extend_from_slice(&hello[..3]);
        octets.extend((part.len() as u16).to_be_bytes());
        octets.extend_from_slice(part);
    }
    octets
}

/// Sends octets of the client, with the lie.
fn send(lie: Lie, octets: &[u8], wire: &mut Wire<'_>) {
    let begin = wire.passed;
    wire.passed += octets.len();
    match lie {
        Lie::Cut(at) if at <= begin => {}
        Lie::Cut(at) if at < wire.passed => wire.bring(&octets[..at - begin]),
        Lie::Octet(at, change) if (begin..wire.passed).contains(&at) => {
            let mut changed = octets.to_vec();
            changed[at - begin] ^= change;
            wire.bring(&changed);
        }
        _ => wire.bring(octets),
    }
}

/// Without a lie everything arrives, the server knows its peer, and its answer arrives.
fn judge_whole(plan: &Plan<'_>, client: &mut ClientConnection, wire: &mut Wire<'_>) {
    let Far::Open(stream) = &wire.far else {
        panic!("a sound handshake does not end");
    };
    assert_eq!(wire.delivered, plan.data, "something is missing");
    let shown = stream.caller_name();
    let name = (plan.client % 3 == OWN).then_some("bridge.ship");
    assert_eq!(shown.as_deref(), name, "the peer's name");
    let mut rest = &plan.data[..];
    let mut answer = Vec::new();
    for _ in 0..ROUNDS_MAX {
        if !rest.is_empty() {
            let count = stream.write_now(rest).expect("it is open");
            rest = &rest[count..];
        }
        let mut octets = [0; 16_384];
        while let Ok(Some(more @ 1..)) = wire.near.read_now(&mut octets) {
            let mut some = &octets[..more];
            while !some.is_empty() {
                client.read_tls(&mut some).expect("it has room");
                client.process_new_packets().expect("sound records");
                // What is missing follows.
                let _ = client.reader().read_to_end(&mut answer);
            }
        }
        if rest.is_empty() && answer.len() == plan.data.len() {
            break;
        }
    }
    assert_eq!(answer, plan.data, "the answer");
    client.send_close_notify();
    let farewell = taken(client);
    wire.bring(&farewell);
    assert!(matches!(wire.far, Far::Ended(None)), "a farewell is an end");
}

/// What was delivered is what the client has written before the lie.
fn judge(plan: &Plan<'_>, sent: &Sent, whole: usize, wire: &Wire<'_>) {
    let delivered = &wire.delivered;
    assert!(
        plan.data.starts_with(delivered),
        "the client has not written this"
    );
    assert!(
        plan.is_let_in() || delivered.is_empty(),
        "a stranger is heard"
    );
    assert!(
        plan.is_let_in() || !wire.has_been_open,
        "a stranger is let in"
    );
    if sent.pieces.is_empty() && !matches!(plan.lie, Lie::No) {
        assert!(delivered.is_empty(), "no plaintext was sent");
    }
    // The plaintext of the pieces whose records end by this octet of the stream.
    let by = |at: usize| {
        let mut end = whole;
        let pieces = plan.data.chunks(plan.piece).zip(&sent.pieces);
        let before = pieces.take_while(|(_, records)| {
            end += records.len();
            end <= at
        });
        before.map(|(piece, _)| piece.len()).sum::<usize>()
    };
    match plan.lie {
        Lie::Cut(at) if at < whole => assert!(delivered.is_empty(), "it was cut before"),
        Lie::Cut(at) if plan.is_let_in() => assert_eq!(delivered.len(), by(at)),
        Lie::Octet(at, _) if is_ignored(sent, at) => {}
        Lie::Octet(at, _) if at < whole => {
            assert!(
                !wire.has_been_open,
                "a changed handshake is accepted, octet {at}"
            );
        }
        Lie::Octet(at, _) if plan.is_let_in() => assert_eq!(delivered.len(), by(at)),
        _ => {}
    }
}

/// Whether this octet means nothing: the version of a record, and the record that TLS 1.3 sends for old relays.
fn is_ignored(sent: &Sent, at: usize) -> bool {
    const CHANGE_CIPHER_SPEC: u8 = 20;
    let mut begin = 0;
    let all = [&sent.shaken[..], &sent.pieces.concat()].concat();
    while let Some(header) = all.get(begin..begin + HEADER) {
        let end = begin + HEADER + usize::from(u16::from_be_bytes([header[3], header[4]]));
        if (begin..end).contains(&at) {
            return matches!(at - begin, 1 | 2) || header[0] == CHANGE_CIPHER_SPEC;
        }
        begin = end;
    }
    true
}
