//! Clients of plain objects, and the control.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::Scope;
use std::time::Duration;

use deckwatch_meter::statistics::simulated::Random;
use deckwatch_orb::{ObjectRef, Orb};
use deckwatch_os::clock::{monotonic_ns, sleep_until};

use super::plan::below;
use super::server::{Kind, Server};
use super::{Scene, nanoseconds};
use crate::laboratory::idl::deckwatch_bench::BenchRef;

/// Starts a client of each object, and the control.
pub(super) fn start<'s>(scope: &'s Scope<'s, '_>, scene: &'s Scene) {
    for kind in [
        Kind::TcpObject,
        Kind::UnixObject,
        Kind::SharedObject,
        Kind::TlsObject,
    ] {
        scope.spawn(move || call_object(scene, scene.server(kind)));
    }
    scope.spawn(move || {
        if let Err(error) = control(scene) {
            scene.machine.note_failure(error.to_string());
        }
    });
}

/// Calls an object, with octets of several sizes, and compares what comes back. The client lives for some seconds.
fn call_object(scene: &Scene, server: &Server) {
    let mut random = Random::new(scene.seed ^ server.kind as u64);
    let mut beat = Beat::new(PERIOD);
    while !scene.is_over() {
        let client = server.call("connect", || Client::new(server));
        let Some(client) = client else {
            rest();
            continue;
        };
        let object = BenchRef::unchecked_narrow(client.object.clone());
        let until_ns = life(&mut random);
        while monotonic_ns() < until_ns && !scene.is_over() {
            beat.wait();
            let size = match below(&mut random, 100) {
                0 => 40_000,
                1..10 => 2_000,
                _ => 64,
            };
            let sent = vec![below(&mut random, 256) as u8; size];
            match server.call("echo_octets", || object.echo_octets(&sent)) {
                Some(back) if back == sent => {}
                Some(_) => server.note_failure("an answer differs from its request".to_owned()),
                None => break,
            }
        }
    }
}

/// Round trips over plain TCP within this process: what the machine does alone.
fn control(scene: &Scene) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut octets = [0; 64];
            while far.read_exact(&mut octets).is_ok() && far.write_all(&octets).is_ok() {}
        });
        let mut beat = Beat::new(PERIOD);
        let mut octets = [0; 64];
        while !scene.is_over() {
            beat.wait();
            let from_ns = monotonic_ns();
            near.write_all(&octets)?;
            near.read_exact(&mut octets)?;
            scene.machine.note_time(from_ns, monotonic_ns());
        }
        // The other end reads the end of the connection.
        near.shutdown(std::net::Shutdown::Both)
    })
}

/// A client with an ORB of its own, which is shut down when this is dropped.
pub(super) struct Client {
    orb: Orb,
    pub(super) object: ObjectRef,
}

impl Client {
    /// A client of the object whose reference a server printed last.
    pub(super) fn new(server: &Server) -> Result<Self, String> {
        let mut builder = Orb::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .round_trip_timeout(CALL_TIMEOUT);
        if let Some(tls) = &server.tls {
            builder = builder.tls(tls);
        }
        let orb = builder.build().map_err(|error| error.to_string())?;
        let object = orb.string_to_object(&server.reference());
        let object = object.map_err(|error| error.to_string())?;
        let object = object.ok_or_else(|| "the reference is nil".to_owned())?;
        Ok(Self { orb, object })
    }

    /// An object that a reference leads to.
    pub(super) fn object_of(&self, reference: &str) -> Result<Option<ObjectRef>, String> {
        let object = self.orb.string_to_object(reference);
        object.map_err(|error| error.to_string())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Fails only for an ORB that was shut down before.
        let _ = self.orb.shutdown(true);
    }
}

/// A schedule: one turn each period, and none is made up for after more than a second.
pub(super) struct Beat {
    period_ns: i64,
    next_ns: i64,
}

impl Beat {
    pub(super) fn new(period: Duration) -> Self {
        Self {
            period_ns: nanoseconds(period),
            next_ns: monotonic_ns(),
        }
    }

    pub(super) fn wait(&mut self) {
        let now_ns = monotonic_ns();
        self.next_ns = (self.next_ns + self.period_ns).max(now_ns - BEHIND_MAX_NS);
        if self.next_ns > now_ns {
            sleep_until(self.next_ns);
        }
    }
}

/// When a client that begins now ends: after two to ten seconds.
pub(super) fn life(random: &mut Random) -> i64 {
    monotonic_ns() + (2_000 + random.below(8_000) as i64) * 1_000_000
}

/// A pause after a failure.
pub(super) fn rest() {
    sleep_until(monotonic_ns() + REST_NS);
}

/// One call each so long.
pub(super) const PERIOD: Duration = Duration::from_millis(4);

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A good call of a server that is not at fault never takes so long.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

const BEHIND_MAX_NS: i64 = 1_000_000_000;
const REST_NS: i64 = 100_000_000;
