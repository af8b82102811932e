//! A transport in memory for one ORB that is turned by hand: one listener, one connection, a clock that the target sets.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use deckwatch_orb::transport::{
    Endpoint, Event, Instant64, Interest, Listener, Poller, Source, Stream, StreamOptions,
    Transport, TransportError,
};

/// The ends of the connection, by their numbers in the poller.
const LISTENER: u64 = 0;
const STREAM: u64 = 1;

/// Something that happened, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The servant was called by the request of this number.
    Served(u32),
    /// The ORB has written octets.
    Written(Vec<u8>),
    /// The ORB has ended the connection.
    Ended,
}

/// A handle to the shared state.
#[derive(Clone, Default)]
pub struct Pipe(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now_ns: u64,
    /// A connection waits to be accepted.
    is_calling: bool,
    inbox: VecDeque<u8>,
    has_ended: bool,
    /// Something has arrived that the poller has not reported.
    is_news: bool,
    watched: BTreeMap<u64, (u64, Interest)>,
    rooms: BTreeMap<u64, u64>,
    is_open: bool,
    done: Vec<Done>,
}

impl Pipe {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic under the lock")
    }

    /// Connects. What is left of an earlier connection is gone.
    pub fn connect(&self) {
        let mut state = self.state();
        state.now_ns += 1;
        state.is_calling = true;
        state.is_open = true;
        state.has_ended = false;
        state.inbox.clear();
        state.done.clear();
    }

    /// Brings octets of the peer.
    pub fn bring(&self, octets: &[u8]) {
        let mut state = self.state();
        state.inbox.extend(octets);
        state.is_news = true;
    }

    /// The peer ends its side.
    pub fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        state.is_news = true;
    }

    /// Sets the clock forward.
    pub fn pass(&self, time: Duration) {
        let mut state = self.state();
        state.now_ns = Instant64(state.now_ns).after(time).0;
    }

    /// Notes that something happened.
    pub fn note(&self, done: Done) {
        self.state().done.push(done);
    }

    /// Whether the ORB has not ended the connection.
    pub fn is_open(&self) -> bool {
        self.state().is_open
    }

    /// What happened so far.
    pub fn take_done(&self) -> Vec<Done> {
        std::mem::take(&mut self.state().done)
    }
}

impl Transport for Pipe {
    fn now(&self) -> Instant64 {
        Instant64(self.state().now_ns)
    }

    fn utc_ns(&self) -> u64 {
        1_800_000_000_000_000_000 + self.state().now_ns
    }

    fn sleep_until(&self, at: Instant64) {
        let mut state = self.state();
        state.now_ns = state.now_ns.max(at.0);
    }

    fn connect(
        &self,
        _: &Endpoint,
        _: &StreamOptions,
        _: Option<Instant64>,
    ) -> Result<Box<dyn Stream>, TransportError> {
        Err(TransportError::Refused)
    }

    fn listen(
        &self,
        endpoint: &Endpoint,
        _: &StreamOptions,
    ) -> Result<Box<dyn Listener>, TransportError> {
        Ok(Box::new(PipeListener(self.clone(), endpoint.clone())))
    }

    fn poller(&self) -> Result<Box<dyn Poller>, TransportError> {
        Ok(Box::new(PipePoller(self.clone())))
    }

    fn outward_hosts(&self, _: bool) -> Vec<String> {
        vec!["nowhere".to_owned()]
    }

    fn host_name(&self) -> String {
        "nowhere".to_owned()
    }
}

struct PipeListener(Pipe, Endpoint);

impl Listener for PipeListener {
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        let is_calling = std::mem::take(&mut self.0.state().is_calling);
        Ok(is_calling.then(|| Box::new(PipeStream(self.0.clone())) as Box<dyn Stream>))
    }

    fn is_pending(&self) -> bool {
        self.0.state().is_calling
    }

    fn endpoint(&self) -> Endpoint {
        self.1.clone()
    }

    fn source(&self) -> Source<'_> {
        Source::Simulated(LISTENER)
    }
}

struct PipeStream(Pipe);

impl Stream for PipeStream {
    fn read(&self, into: &mut [u8], _: Option<Instant64>) -> Result<usize, TransportError> {
        self.read_now(into)?.ok_or(TransportError::TimedOut)
    }

    fn read_within(&self, into: &mut [u8], _: Duration) -> Result<Option<usize>, TransportError> {
        self.read_now(into)
    }

    fn read_spinning(&self, into: &mut [u8], _: Duration) -> Result<Option<usize>, TransportError> {
        self.read_now(into)
    }

    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
        let mut state = self.0.state();
        if !state.is_open {
            return Err(TransportError::Broken);
        }
        if state.inbox.is_empty() {
            return Ok(state.has_ended.then_some(0));
        }
        let count = state.inbox.len().min(into.len());
        for (place, octet) in into.iter_mut().zip(state.inbox.drain(..count)) {
            *place = octet;
        }
        Ok(Some(count))
    }

    fn is_readable(&self) -> bool {
        let state = self.0.state();
        !state.inbox.is_empty() || state.has_ended
    }

    fn write_all(&self, octets: &[u8], _: Option<Instant64>) -> Result<(), TransportError> {
        self.write_now(octets).map(drop)
    }

    fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError> {
        let mut state = self.0.state();
        if !state.is_open {
            return Err(TransportError::Broken);
        }
        state.done.push(Done::Written(octets.to_vec()));
        Ok(octets.len())
    }

    fn shutdown(&self) {
        let mut state = self.0.state();
        if std::mem::take(&mut state.is_open) {
            state.done.push(Done::Ended);
        }
    }

    fn source(&self) -> Source<'_> {
        Source::Simulated(STREAM)
    }
}

impl Drop for PipeStream {
    fn drop(&mut self) {
        self.shutdown();
    }
}

struct PipePoller(Pipe);

impl PipePoller {
    fn set(&self, source: Source<'_>, token: u64, interest: Interest) {
        if let Source::Simulated(number) = source {
            let mut state = self.0.state();
            state.watched.insert(number, (token, interest));
            state.is_news |= number == STREAM;
        }
    }
}

impl State {
    /// The next event, and whether it is one of the stream.
    fn event(&self) -> Option<(Event, bool)> {
        for (number, (token, interest)) in &self.watched {
            if *interest == Interest::Nothing {
                continue;
            }
            let (is_stream, ended) = (*number == STREAM, self.has_ended);
            let has_arrived = !self.inbox.is_empty() || ended;
            let is_due = if is_stream {
                self.is_news && (has_arrived || *interest == Interest::Handover)
            } else {
                self.is_calling
            };
            if is_due {
                let ended = ended && is_stream;
                let token = *token;
                return Some((Event { token, ended }, is_stream));
            }
        }
        None
    }
}

impl Poller for PipePoller {
    fn watch(
        &self,
        source: Source<'_>,
        token: u64,
        interest: Interest,
    ) -> Result<(), TransportError> {
        self.set(source, token, interest);
        Ok(())
    }

    fn rewatch(&self, source: Source<'_>, token: u64, interest: Interest) {
        self.set(source, token, interest);
    }

    fn watch_room(&self, source: Source<'_>, token: u64) -> Result<(), TransportError> {
        if let Source::Simulated(number) = source {
            self.0.state().rooms.insert(number, token);
        }
        Ok(())
    }

    fn forget_room(&self, source: Source<'_>) {
        if let Source::Simulated(number) = source {
            self.0.state().rooms.remove(&number);
        }
    }

    fn forget(&self, source: Source<'_>) {
        if let Source::Simulated(number) = source {
            self.0.state().watched.remove(&number);
        }
    }

    fn wait(&self, _: Option<Duration>) -> Option<Event> {
        let mut state = self.0.state();
        if let Some((_, token)) = state.rooms.pop_first() {
            let ended = false;
            return Some(Event { token, ended });
        }
        let (event, is_stream) = state.event()?;
        if is_stream {
            state.is_news = false;
        }
        Some(event)
    }

    fn is_pending(&self) -> bool {
        let state = self.0.state();
        !state.rooms.is_empty() || state.event().is_some()
    }

    fn wake(&self) {}

    fn close(&self) {}
}
