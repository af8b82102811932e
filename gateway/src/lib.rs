//! Carries events between a real-time event channel (`RtecEventChannelAdmin`, ours or TAO's) and zenoh.
//!
//! ```text
//! channel --push--> Consumer -> queue -> Outward -> zenoh publisher       an event crosses by a mapping of its type
//! channel <--push-- Inward <- queue <- Taker <- zenoh subscriber          and source to a key expression
//! ```
//!
//! * Neither the channel nor zenoh ever waits for the other: between them is a bounded queue for each direction of each
//!   mapping, and every event that does not cross is counted by its reason ([`OutCounts`], [`InCounts`]).
//! * The payload is the sample's payload. Header and value are in the attachment (`attachment.rs`).
//! * An event never crosses back. What this gateway has published carries its identity in the attachment; what it has
//!   pushed into the channel carries it in the padding of the event (`pad1`, which channels pass on and nobody reads).
//!   The `ttl` ends all other circles.

#![forbid(unsafe_code)]

mod attachment;
mod channel;
mod config;
mod counts;
mod inward;
mod key;
pub mod limits;
mod outward;
mod queue;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;

use zenoh::Wait as _;
use zenoh::pubsub::Subscriber;

use channel::{End, Link};
pub use config::{Config, ConfigError, Congestion, Direction, MapPriority};
use config::{Mapping, ZenohTable};
pub use counts::{Counts, InCounts, MappingCounts, OutCounts};
use counts::{InCounters, OutCounters};
use inward::{Inward, Supplier, Taker};
use outward::Outward;

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Zenoh refuses its settings, or cannot listen.
    #[error("zenoh: {0}")]
    Zenoh(String),
    /// The host gives no thread.
    #[error("no thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The identity of a gateway: a part of its zenoh session's, drawn at random at each start.
#[derive(Clone, Copy, Debug)]
struct Identity(u64);

impl Identity {
    /// Stands in the padding of events that the gateway has pushed into the channel; never 0, which suppliers write.
    fn mark(self) -> i32 {
        ((self.0 >> 32) as i32) | 1
    }
}

/// What all parts of one direction of a mapping share.
struct Way<C> {
    mapping: Arc<Mapping>,
    identity: Identity,
    counts: Arc<C>,
}

impl<C> Clone for Way<C> {
    fn clone(&self) -> Self {
        Self {
            mapping: Arc::clone(&self.mapping),
            identity: self.identity,
            counts: Arc::clone(&self.counts),
        }
    }
}

/// A running gateway. It looks for its channel until it finds it, and again when the channel has gone.
pub struct Gateway {
    identity: Identity,
    session: zenoh::Session,
    subscribers: Vec<Subscriber<()>>,
    inward: Vec<JoinHandle<()>>,
    link: Option<JoinHandle<()>>,
    outward: Vec<JoinHandle<()>>,
    /// One flag for each of the three, in the order in which they end.
    ends: [Arc<AtomicBool>; 3],
    connects: Arc<AtomicU64>,
    mappings: Vec<Counted>,
}

/// The counters of one mapping.
struct Counted {
    mapping: Arc<Mapping>,
    out: Option<Arc<OutCounters>>,
    r#in: Option<Arc<InCounters>>,
}

impl Gateway {
    /// Starts a gateway. `log` takes what the user should know of the channel.
    ///
    /// # Errors
    /// [`StartError`] if zenoh does not start.
    pub fn start(config: Config, log: impl Fn(&str) + Send + 'static) -> Result<Self, StartError> {
        let session = open(&config.zenoh)?;
        // Its 128 bits are drawn at random; 64 are enough to be alone.
        let drawn = u128::from_le_bytes(session.zid().to_le_bytes());
        let identity = Identity(drawn as u64);
        let mut gateway = Self {
            identity,
            session,
            subscribers: Vec::new(),
            inward: Vec::new(),
            link: None,
            outward: Vec::new(),
            ends: Default::default(),
            connects: Arc::default(),
            mappings: Vec::new(),
        };
        let is_broken = Arc::new(AtomicBool::new(false));
        let mut ends = Vec::new();
        for mapping in config.mappings {
            gateway.add(Arc::new(mapping), &is_broken, &mut ends)?;
        }
        let link = Link {
            channel: config.channel,
            listen: config.listen,
            ends,
            is_broken,
            connects: Arc::clone(&gateway.connects),
            log: Box::new(log),
        };
        let end = Arc::clone(&gateway.ends[1]);
        gateway.link = Some(spawn("gateway-link", move || link.run(&end))?);
        Ok(gateway)
    }

    fn add(
        &mut self,
        mapping: Arc<Mapping>,
        is_broken: &Arc<AtomicBool>,
        ends: &mut Vec<End>,
    ) -> Result<(), StartError> {
        let mut counted = Counted {
            mapping: Arc::clone(&mapping),
            out: None,
            r#in: None,
        };
        if mapping.direction.is_out() {
            let way = self.way::<OutCounters>(&mapping);
            counted.out = Some(Arc::clone(&way.counts));
            let (end, queue) = queue::queue(mapping.queue_len);
            ends.push(End::Out(way.clone(), end));
            let outward = Outward::new(way, self.session.clone());
            let over = Arc::clone(&self.ends[2]);
            let thread = spawn("gateway-out", move || outward.run(queue, &over))?;
            self.outward.push(thread);
        }
        if mapping.direction.is_in() {
            let way = self.way::<InCounters>(&mapping);
            counted.r#in = Some(Arc::clone(&way.counts));
            let (end, queue) = queue::queue(mapping.queue_len);
            let supplier = Supplier::default();
            ends.push(End::In(Arc::clone(&mapping), supplier.clone()));
            let inward = Inward {
                way: way.clone(),
                supplier,
                is_broken: Arc::clone(is_broken),
            };
            let over = Arc::clone(&self.ends[0]);
            self.inward
                .push(spawn("gateway-in", move || inward.run(queue, &over))?);
            let taker = Taker::new(way, end);
            let subscriber = self.session.declare_subscriber(mapping.key.expression());
            let subscriber = subscriber.callback(move |sample| taker.take(&sample));
            self.subscribers
                .push(subscriber.wait().map_err(zenoh_error)?);
        }
        self.mappings.push(counted);
        Ok(())
    }

    fn way<C: Default>(&self, mapping: &Arc<Mapping>) -> Way<C> {
        Way {
            mapping: Arc::clone(mapping),
            identity: self.identity,
            counts: Arc::default(),
        }
    }

    /// The counts at this moment.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |counted: &Counted| MappingCounts {
            key: counted.mapping.key.text().to_owned(),
            out: counted.out.as_ref().map(|counts| counts.read()),
            r#in: counted.r#in.as_ref().map(|counts| counts.read()),
        };
        Counts {
            gateway: format!("{:016x}", self.identity.0),
            connects: self.connects.load(Relaxed),
            mappings: self.mappings.iter().map(of).collect(),
        }
    }

    /// Ends the gateway: queued events still cross, the channel is disconnected, and zenoh's session is closed. Returns
    /// the last counts.
    #[must_use]
    pub fn stop(mut self) -> Counts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        for subscriber in self.subscribers.drain(..) {
            // Fails if the session is closed: then there is nothing to undeclare.
            let _ = subscriber.undeclare().wait();
        }
        let inward = self.inward.drain(..).collect();
        let link = self.link.take().into_iter().collect();
        let outward = self.outward.drain(..).collect();
        let threads: [Vec<JoinHandle<()>>; 3] = [inward, link, outward];
        for (end, threads) in self.ends.iter().zip(threads) {
            end.store(true, Release);
            for thread in threads {
                // A thread that has panicked has printed why.
                let _ = thread.join();
            }
        }
        // As above.
        let _ = self.session.close().wait();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if !self.ends[2].load(Acquire) {
            self.end();
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run)
}

/// Opens zenoh's session. Zenoh tries endpoints again that do not answer; to a client, one must answer at the start.
fn open(table: &ZenohTable) -> Result<zenoh::Session, StartError> {
    let mut config = match &table.config {
        Some(path) => zenoh::Config::from_file(path).map_err(zenoh_error)?,
        None => zenoh::Config::default(),
    };
    let mut set = |key: &str, value: serde_json::Value| {
        let set = config.insert_json5(key, &value.to_string());
        set.map_err(zenoh_error)
    };
    if let Some(mode) = table.mode {
        set("mode", mode.name().into())?;
    }
    if !table.connect.is_empty() {
        set("connect/endpoints", table.connect.clone().into())?;
    }
    if !table.listen.is_empty() || table.config.is_none() {
        set("listen/endpoints", table.listen.clone().into())?;
    }
    if table.scouting || table.config.is_none() {
        set("scouting/multicast/enabled", table.scouting.into())?;
    }
    set(
        "transport/link/rx/max_message_size",
        MESSAGE_SIZE_MAX.into(),
    )?;
    zenoh::open(config).wait().map_err(zenoh_error)
}

/// The largest message that zenoh puts together: payload, attachment and headers.
const MESSAGE_SIZE_MAX: usize = 2 * limits::EVENT_SIZE_MAX + (64 << 10);

fn zenoh_error(error: impl std::fmt::Display) -> StartError {
    StartError::Zenoh(error.to_string())
}
