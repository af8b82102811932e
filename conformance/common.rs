//! Shared code of the conformance suite: a server over any transport and lane shape, raw connections to it, and
//! hand-written servers that send given octets to our client.
//!
//! The octets on one side are always made by hand ([`octets`], [`message`], [`ior`]). So our client and our server
//! cannot pass a test by sharing a mistake.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(
    unused_imports,
    unused_macros,
    reason = "each test file uses its own part"
)]

pub(crate) mod anys;
#[path = "../crates/orb/tests/support/around.rs"]
pub(crate) mod around;
pub(crate) mod asynchronous;
pub(crate) mod both;
pub(crate) mod interceptor;
pub(crate) mod ior;
pub(crate) mod lanes;
pub(crate) mod message;
pub(crate) mod noting;
pub(crate) mod octets;
pub(crate) mod poa;
pub(crate) mod rt;
pub(crate) mod servant;
pub(crate) mod values;
pub(crate) mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use deckwatch_orb::{Counter, ObjectRef, Orb, OrbBuilder, Poa, Servant};

pub(crate) use message::{Address, FORMS, Received, Request, message};
pub(crate) use octets::{Cursor, ORDERS, Octets, Order};
pub(crate) use servant::Probe;
pub(crate) use wire::{Peer, Wire};

/// The transport of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// TCP on loopback.
    Tcp,
    /// A unix socket.
    Unix,
    /// Shared memory.
    Shared,
}

/// The threads of the server's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// One thread, which accepts, reads and serves.
    OneThread,
    /// The default of an ORB: more threads are started as needed.
    Many,
    /// As `Many`; a thread has adopted the connection before the test sends its messages.
    Adopted,
    /// As `Adopted`; the thread polls for requests for a while before it sleeps.
    Spinning,
}

/// Makes one test per transport from each function that takes an [`Over`].
macro_rules! over_each {
    ($($(#[$meta:meta])* fn $name:ident($over:ident) $body:block)*) => { $(
        $(#[$meta])*
        fn $name($over: $crate::common::Over) $body

        mod $name {
            #[test]
            fn tcp() {
                super::$name($crate::common::Over::Tcp);
            }

            #[test]
            fn unix() {
                super::$name($crate::common::Over::Unix);
            }

            #[test]
            fn shared_memory() {
                super::$name($crate::common::Over::Shared);
            }
        }
    )* };
}
pub(crate) use over_each;

/// Makes one test per transport and lane shape from each function that takes a [`World`].
macro_rules! in_each_world {
    ($($(#[$meta:meta])* fn $name:ident($world:ident) $body:block)*) => { $(
        $(#[$meta])*
        fn $name($world: &$crate::common::World) $body

        mod $name {
            use $crate::common::{Lanes, Over, World};

            #[test]
            fn tcp_one_thread() {
                super::$name(&World::new(Over::Tcp, Lanes::OneThread));
            }

            #[test]
            fn tcp_many_threads() {
                super::$name(&World::new(Over::Tcp, Lanes::Many));
            }

            #[test]
            fn tcp_adopted() {
                super::$name(&World::new(Over::Tcp, Lanes::Adopted));
            }

            #[test]
            fn unix_adopted() {
                super::$name(&World::new(Over::Unix, Lanes::Adopted));
            }

            #[test]
            fn unix_one_thread() {
                super::$name(&World::new(Over::Unix, Lanes::OneThread));
            }

            #[test]
            fn unix_many_threads() {
                super::$name(&World::new(Over::Unix, Lanes::Many));
            }

            #[test]
            fn shared_memory_one_thread() {
                super::$name(&World::new(Over::Shared, Lanes::OneThread));
            }

            #[test]
            fn shared_memory_many_threads() {
                super::$name(&World::new(Over::Shared, Lanes::Many));
            }

            #[test]
            fn shared_memory_adopted() {
                super::$name(&World::new(Over::Shared, Lanes::Adopted));
            }

            #[test]
            fn tcp_spinning() {
                super::$name(&World::new(Over::Tcp, Lanes::Spinning));
            }

            #[test]
            fn shared_memory_spinning() {
                super::$name(&World::new(Over::Shared, Lanes::Spinning));
            }
        }
    )* };
}
pub(crate) use in_each_world;

/// The vendor minor codeset id of the OMG, in the upper half of standard minor codes.
pub(crate) const OMG: u32 = 0x4f4d_0000;

/// Time limit for each wait of a test, long enough for a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server with one [`Probe`].
pub(crate) struct World {
    pub(crate) over: Over,
    lanes: Lanes,
    pub(crate) orb: Orb,
    pub(crate) root: Poa,
    pub(crate) probe: Arc<Probe>,
    pub(crate) object: ObjectRef,
    /// The object's key.
    pub(crate) key: Vec<u8>,
}

impl World {
    pub(crate) fn new(over: Over, lanes: Lanes) -> Self {
        let builder = match lanes {
            Lanes::OneThread => Orb::builder().threads(1).dynamic_threads(0),
            Lanes::Many | Lanes::Adopted => Orb::builder(),
            Lanes::Spinning => Orb::builder().spinning_lanes(Duration::from_micros(300)),
        };
        let mut world = Self::with(over, builder);
        world.lanes = lanes;
        world
    }

    pub(crate) fn with(over: Over, builder: OrbBuilder) -> Self {
        let orb = listening(over, builder);
        let root = orb.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        let probe = Arc::new(Probe::default());
        let servant: Arc<dyn Servant> = probe.clone();
        let object = root
            .servant_to_reference(&servant)
            .expect("implicit activation");
        let key = object.object_key().expect("an IIOP profile").to_vec();
        Self {
            over,
            lanes: Lanes::Many,
            orb,
            root,
            probe,
            object,
            key,
        }
    }

    /// Opens a raw connection to the server.
    pub(crate) fn dial(&self) -> Wire {
        let mut wire = Wire::to(&self.orb);
        if matches!(self.lanes, Lanes::Adopted | Lanes::Spinning) {
            self.have_adopted(&mut wire);
        }
        wire
    }

    /// Sends requests that no servant serves, until a thread has adopted the connection. On a busy machine the thread
    /// may release the connection at once; the result of the test must be the same.
    fn have_adopted(&self, wire: &mut Wire) {
        let adoptions = || self.orb.counters().read(Counter::Adoptions);
        let before = adoptions();
        let question = self.request((2, Order::Little), "_non_existent").bare();
        for _ in 0..200 {
            assert_eq!(wire.ask(&question).reply().status, message::NO_EXCEPTION);
            if adoptions() > before {
                return;
            }
        }
    }

    /// Checks that the server still serves: calls the object on a new connection.
    #[track_caller]
    pub(crate) fn expect_served(&self) {
        let ping = self.request((2, Order::Big), "ping").bare();
        assert_eq!(self.dial().ask(&ping).reply().status, message::NO_EXCEPTION);
    }

    /// The reference to the object in a client of ours.
    pub(crate) fn seen_by(&self, client: &Orb) -> ObjectRef {
        let text = self.orb.object_to_string(&self.object);
        client
            .string_to_object(&text)
            .expect("a reference")
            .expect("not nil")
    }

    /// A request for the probe.
    pub(crate) fn request(&self, form: (u8, Order), operation: &str) -> Request {
        Request::new(form, &self.key, operation)
    }

    /// The IIOP profile of the object's reference.
    pub(crate) fn profile(&self) -> (u32, Vec<u8>) {
        let ior = ior::Ior::of_text(&self.orb.object_to_string(&self.object));
        let found = ior
            .profiles
            .into_iter()
            .find(|(tag, _)| *tag == ior::TAG_INTERNET_IOP);
        found.expect("an IIOP profile")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.probe.gate.open();
        let _ = self.orb.shutdown(true); // The test may have shut it down.
    }
}

/// An ORB that listens at an unused address.
pub(crate) fn listening(over: Over, builder: OrbBuilder) -> Orb {
    let endpoint = match over {
        Over::Tcp => "127.0.0.1:0".to_owned(),
        Over::Unix => format!("unix:{}", fresh_path()),
        Over::Shared => format!("shm:{}", fresh_path()),
    };
    builder
        .listen(&endpoint)
        .and_then(OrbBuilder::build)
        .expect("a free endpoint")
}

/// A path for a unix socket that no other test uses.
pub(crate) fn fresh_path() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("deckwatch-conformance-{}-{count}", std::process::id());
    let path = std::env::temp_dir().join(name);
    path.to_str()
        .expect("a folder with a plain name")
        .to_owned()
}

/// A client whose calls always end: they have a timeout.
pub(crate) fn client() -> Orb {
    Orb::builder()
        .round_trip_timeout(PATIENCE)
        .build()
        .expect("a client needs nothing")
}

/// Waits until another thread makes the condition true.
#[track_caller]
pub(crate) fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}
