//! A simulated transport: two or more ORBs in one thread, in virtual time.
//!
//! The seed decides the latency of octets. A read that would block runs the simulation forward instead: first every ORB
//! that has work, then the clock, up to the next arrival or the deadline of the read.

mod poller;
mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Poller, Stream, StreamOptions, Transport, TransportError,
};
use deckwatch_orb::{Orb, OrbBuilder};

use poller::SimPoller;
use stream::{SimListener, SimStream};

/// A handle to the shared state. The number is how many nanoseconds the UTC clock of this handle is ahead.
#[derive(Clone)]
pub struct World(Arc<Mutex<State>>, i64);

/// Start time of the simulation by its UTC clocks: nanoseconds since 1970.
pub const BEGUN_UTC_NS: u64 = 1_800_000_000_000_000_000;

struct State {
    now: u64,
    latency_ns: (u64, u64),
    random: u64,
    /// Whether octets sent from now on are lost.
    is_cut: bool,
    /// How many octets may be in transit to one end or unread there.
    window: usize,
    next: u64,
    ends: BTreeMap<u64, End>,
    listeners: BTreeMap<u64, (Endpoint, VecDeque<u64>)>,
    /// Connections to it have room, but the first write finds that they are refused.
    refusing: Option<Endpoint>,
    /// The ORBs, by host.
    orbs: BTreeMap<String, Orb>,
    /// The time until which the ORB of a host does nothing.
    stalls: BTreeMap<String, u64>,
    /// The events so far, to compare runs.
    trace: Vec<(u64, u64, usize)>,
}

/// One end of a connection.
struct End {
    peer: u64,
    inbox: VecDeque<(u64, Vec<u8>)>,
    /// When the close of the peer's end arrives.
    ended_at: Option<u64>,
    /// The poller has reported all arrivals until this time. `None`: the poller reports any unread data.
    told: Option<u64>,
    /// Whether the poller has reported that there is room to write.
    is_room_told: bool,
    /// Whether the connection has been reset.
    is_broken: bool,
    /// Whether no process accepts it.
    is_refused: bool,
}

impl End {
    fn is_readable(&self, now: u64) -> bool {
        self.is_broken
            || self.inbox.front().is_some_and(|(at, _)| *at <= now)
            || self.has_ended(now)
    }

    /// Whether something has arrived that the poller has not reported.
    fn has_news(&self, now: u64) -> bool {
        let Some(told) = self.told else {
            return self.is_readable(now);
        };
        let mut arrivals = self.inbox.iter().map(|(at, _)| *at).chain(self.ended_at);
        arrivals.any(|at| told < at && at <= now)
    }

    fn has_ended(&self, now: u64) -> bool {
        self.inbox.is_empty() && self.ended_at.is_some_and(|at| at <= now)
    }

    fn len(&self) -> usize {
        self.inbox.iter().map(|(_, octets)| octets.len()).sum()
    }

    fn next_arrival(&self) -> Option<u64> {
        self.inbox.front().map(|(at, _)| *at).or(self.ended_at)
    }
}

impl State {
    /// How many octets this end can send now.
    fn room(&self, end: &End) -> usize {
        let waiting = self.ends.get(&end.peer).map_or(0, End::len);
        self.window.saturating_sub(waiting)
    }

    fn latency(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (least, most) = self.latency_ns;
        least + (self.random >> 33) % (most - least + 1)
    }
}

impl World {
    pub fn new(seed: u64, latency_ns: (u64, u64)) -> Self {
        Self(
            Arc::new(Mutex::new(State {
                now: 1,
                latency_ns,
                random: seed,
                is_cut: false,
                window: usize::MAX,
                next: 0,
                ends: BTreeMap::new(),
                listeners: BTreeMap::new(),
                refusing: None,
                orbs: BTreeMap::new(),
                stalls: BTreeMap::new(),
                trace: Vec::new(),
            })),
            0,
        )
    }

    /// The same world, for hosts whose UTC clock is ahead by `ahead_ns`; a negative value sets it behind.
    pub fn with_clock_ahead(&self, ahead_ns: i64) -> Self {
        Self(Arc::clone(&self.0), ahead_ns)
    }

    /// Creates an ORB at a host of its own.
    pub fn orb(&self, host: &str) -> Orb {
        self.orb_with(host, |builder| builder)
    }

    pub fn orb_with(&self, host: &str, set: impl FnOnce(OrbBuilder) -> OrbBuilder) -> Orb {
        let builder = Orb::builder()
            .transport(Arc::new(self.clone()))
            .turned_by_hand();
        let orb = set(builder)
            .listen(&format!("{host}:2809"))
            .unwrap()
            .build()
            .unwrap();
        self.state().orbs.insert(host.to_owned(), orb.clone());
        orb
    }

    pub fn cut(&self) {
        self.state().is_cut = true;
    }

    pub fn mend(&self) {
        self.state().is_cut = false;
    }

    /// Resets one of the open connections. Its data in transit is lost, and neither end can use it any more.
    pub fn reset(&self, pick: usize) {
        let mut state = self.state();
        let count = state.ends.len().max(1);
        let Some((&near, end)) = state.ends.iter().nth(pick % count) else {
            return;
        };
        let far = end.peer;
        for end in [near, far] {
            if let Some(end) = state.ends.get_mut(&end) {
                end.inbox.clear();
                end.is_broken = true;
                end.told = None;
            }
        }
    }

    /// Stops the ORB of this host for `time`.
    pub fn stall(&self, host: &str, time: Duration) {
        let mut state = self.state();
        let until = Instant64(state.now).after(time);
        state.stalls.insert(host.to_owned(), until.0);
    }

    /// Shuts down the ORB of this host; a new one may be created there.
    pub fn end_one(&self, host: &str) {
        let orb = self.state().orbs.remove(host);
        orb.unwrap().shutdown(true).unwrap();
    }

    /// The number of connections with an end that is not dropped yet.
    pub fn connections(&self) -> usize {
        self.state().ends.len().div_ceil(2)
    }

    /// Octets that have been written and not read.
    pub fn unread(&self) -> usize {
        self.state().ends.values().map(End::len).sum()
    }

    /// Refuses connections to this host as a kernel does that reports room first.
    pub fn refuse_later(&self, host: &str) {
        self.state().refusing = Some(Endpoint::tcp(host, 2809));
    }

    /// Limits the octets between a writer and its reader.
    pub fn narrow(&self, window: usize) {
        self.state().window = window;
    }

    /// Runs the simulation for `time`.
    pub fn pass(&self, time: Duration) {
        let until = Instant64(self.state().now).after(time);
        while self.now() < until {
            // Timers of an ORB run only when the ORB is turned.
            let next = self.now().after(Duration::from_secs(1)).min(until);
            self.step(Some(next.0));
        }
        while self.turn() {}
    }

    fn turn(&self) -> bool {
        let (orbs, stalls) = {
            let mut state = self.state();
            let now = state.now;
            state.stalls.retain(|_, until| *until > now);
            (state.orbs.clone(), state.stalls.clone())
        };
        let mut awake = orbs.iter().filter(|(host, _)| !stalls.contains_key(*host));
        awake.any(|(_, orb)| orb.turn(Some(Duration::ZERO)))
    }

    pub fn trace(&self) -> Vec<(u64, u64, usize)> {
        self.state().trace.clone()
    }

    /// Shuts down and drops the ORBs, which hold references to this world.
    pub fn end(&self) {
        let orbs = std::mem::take(&mut self.state().orbs);
        orbs.values().for_each(|orb| orb.shutdown(true).unwrap());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Lets an ORB work, else advances the clock. Returns false if nothing will ever happen before `until`.
    fn step(&self, until: Option<u64>) -> bool {
        if self.turn() {
            return true;
        }
        let mut state = self.state();
        let now = state.now;
        let arrivals = state
            .ends
            .values()
            .filter_map(End::next_arrival)
            .filter(|at| *at > now);
        let wakings = state.stalls.values().copied();
        let Some(next) = arrivals.chain(wakings).chain(until).min() else {
            return false;
        };
        state.now = next.max(now);
        true
    }

    /// Runs the simulation until nothing is in progress.
    pub fn settle(&self) {
        while self.step(None) {}
    }
}

impl Transport for World {
    fn now(&self) -> Instant64 {
        Instant64(self.state().now)
    }

    fn utc_ns(&self) -> u64 {
        let utc_ns = BEGUN_UTC_NS + self.state().now;
        utc_ns.saturating_add_signed(self.1)
    }

    fn sleep_until(&self, at: Instant64) {
        while self.now() < at {
            self.step(Some(at.0));
        }
    }

    fn connect(
        &self,
        endpoint: &Endpoint,
        _: &StreamOptions,
        _: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        let mut state = self.state();
        let (near, far) = (state.next, state.next + 1);
        state.next += 2;
        let is_refused = state.refusing.as_ref() == Some(endpoint);
        let found = state.listeners.values_mut().find(|(at, _)| at == endpoint);
        match found {
            Some((_, waiting)) => waiting.push_back(far),
            None if is_refused => {}
            None => return Err(TransportError::Refused),
        }
        for (end, peer) in [(near, far), (far, near)] {
            state.ends.insert(
                end,
                End {
                    peer,
                    inbox: VecDeque::new(),
                    ended_at: None,
                    told: Some(0),
                    is_room_told: true,
                    is_broken: false,
                    is_refused,
                },
            );
        }
        Ok(Box::new(SimStream {
            world: self.clone(),
            end: near,
        }))
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        _: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        let mut state = self.state();
        let id = state.next;
        state.next += 1;
        state
            .listeners
            .insert(id, (endpoint.clone(), VecDeque::new()));
        Ok(Box::new(SimListener {
            world: self.clone(),
            id,
            endpoint: endpoint.clone(),
        }))
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        Ok(Box::new(SimPoller {
            world: self.clone(),
            watched: Mutex::default(),
            rooms: Mutex::default(),
        }))
    }

    fn outward_hosts(&self, _: bool) -> Vec<String> {
        vec!["nowhere".to_owned()]
    }

    fn host_name(&self) -> String {
        "nowhere".to_owned()
    }
}
