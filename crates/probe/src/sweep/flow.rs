//! One flow at one end: a sender to the other end and a receiver from it, over one carrier and of one message size.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_carrier::arrival::{Arrival, Handler, Shared};
use deckwatch_carrier::body::{Body, BodyPlan};
use deckwatch_carrier::carrier::{
    ChannelAt, ConnectTo, Delivery, ListenAt, NetworkPriority, ReceiverSettings,
};
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_carrier::sender::SendError;
use deckwatch_carrier::talk::Ready;
use deckwatch_meter::blame::Road;
use deckwatch_os::clock;

use super::end::PATIENCE;
use super::outgoing::{Outgoing, PingPong, refused, unanswered};
use super::talk::{Arrived, Listen, Streamed};

/// A flow in progress.
pub(super) struct Flow {
    listen: Listen,
    shared: Arc<Shared>,
    incoming: Arc<Incoming>,
    outgoing: Arc<Mutex<Outgoing>>,
    thread: JoinHandle<()>,
}

/// What has arrived, and the signal of it.
struct Incoming {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    first: u64,
    /// By sequence number, from `first`: whether it is there.
    seen: Vec<bool>,
    passes_on: bool,
    /// The last answer and its time.
    latest: Option<(u64, i64)>,
    arrived: Arrived,
    dropped_before: u64,
    awaited: Awaited,
    ping_pong: Option<PingPong>,
}

/// What another thread waits for. A signal for each message would cost a system call each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Awaited {
    #[default]
    Nothing,
    /// The answer to this message.
    Answer(u64),
    /// So many messages, and all of them passed on.
    Count(u64),
}

impl State {
    /// Counts of arrivals, and of messages that were passed on or refused.
    fn counts(&self) -> (u64, u64) {
        let Arrived {
            received, refused, ..
        } = self.arrived;
        (received, self.arrived.answered.len() as u64 + refused)
    }

    /// Whether so many messages are there, and none is being passed on.
    fn has(&self, count: u64) -> bool {
        let (received, done) = self.counts();
        received >= count && (!self.passes_on || done >= received)
    }

    /// Whether another thread waits for what is there now.
    fn is_awaited(&self) -> bool {
        match self.awaited {
            Awaited::Nothing => false,
            Awaited::Answer(sequence) => self.latest.is_some_and(|(of, _)| of == sequence),
            Awaited::Count(count) => self.has(count),
        }
    }
}

impl Incoming {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the state back, and wakes the thread that waits for it.
    fn leave(&self, state: MutexGuard<'_, State>) {
        let is_awaited = state.is_awaited();
        drop(state);
        if is_awaited {
            self.changed.notify_one();
        }
    }
}

impl Flow {
    /// Opens a flow. Returns its endpoint too.
    pub(super) fn open(listen: &Listen) -> Result<(Self, String), String> {
        let body = Body::new(&BodyPlan::Octets {
            size_bytes: listen.size_octets,
        });
        let body = body.map_err(|error| error.to_string())?;
        let shared = Arc::new(Shared::default());
        let mut receiver = listen
            .carrier
            .listen(&ListenAt {
                address: listen.address,
                channel: listen.channel.as_ref(),
                settings: ReceiverSettings {
                    receive_buffer: listen.socket.send_buffer,
                    servants: listen.servants,
                    unstamped: listen.socket.unstamped,
                },
                scheduling: &Scheduling::default(),
                priority: None,
                network_priority: NetworkPriority::default(),
                deadline: PATIENCE,
                body: &body,
                shared: &shared,
            })
            .map_err(|error| error.to_string())?;
        let mut ready = Ready::default();
        receiver.announce(&mut ready);
        let incoming = Arc::new(Incoming {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let outgoing = Arc::new(Mutex::new(Outgoing { sender: None, body }));
        let handler = Box::new(Taking {
            incoming: Arc::clone(&incoming),
            outgoing: Arc::clone(&outgoing),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("sweep-receive".to_owned())
            .spawn(move || receiver.receive_all(handler, &of_thread))
            .map_err(|error| error.to_string())?;
        let flow = Self {
            listen: listen.clone(),
            shared,
            incoming,
            outgoing,
            thread,
        };
        Ok((flow, ready.endpoint))
    }

    /// Connects the sender.
    pub(super) fn connect(
        &self,
        endpoint: &str,
        channel: Option<&ChannelAt>,
        waits: bool,
    ) -> Result<(), String> {
        let mut outgoing = lock(&self.outgoing);
        let sender = self.listen.carrier.connect(&ConnectTo {
            address: self.listen.address,
            host: "the other end",
            endpoint,
            channel,
            network_priority: NetworkPriority::default(),
            socket: self.listen.socket,
            deadline: if waits { PATIENCE } else { Duration::ZERO },
            body: &outgoing.body,
        });
        outgoing.sender = Some(sender.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Forgets what has arrived, and expects these messages.
    pub(super) fn expect(&self, first: u64, messages: u64, passes_on: bool) {
        lock(&self.outgoing).collect();
        let count = usize::try_from(messages).unwrap_or(usize::MAX);
        let mut state = self.incoming.state();
        *state = State {
            first,
            seen: vec![false; count],
            passes_on,
            dropped_before: self.shared.dropped.load(Ordering::Relaxed),
            ..State::default()
        };
        if passes_on {
            state.arrived.answered.reserve(count);
        }
    }

    /// Sends each message when the answer to the one before has arrived.
    pub(super) fn transact(
        &self,
        first: u64,
        messages: u64,
        every: Duration,
    ) -> Result<Vec<(i64, i64)>, String> {
        self.expect(first, messages, false);
        if every.is_zero() && self.listen.carrier.road() == Road::RAW {
            return self.ping_pong(first, messages);
        }
        let every_ns = i64::try_from(every.as_nanos()).unwrap_or(i64::MAX);
        let mut due_ns = clock::monotonic_ns();
        let mut times = Vec::with_capacity(usize::try_from(messages).unwrap_or_default());
        let patience = self.patience();
        let mut missing = 0;
        for sequence in first..first + messages {
            if every_ns > 0 {
                clock::sleep_until(due_ns);
                // Not from the due time: a late message would be followed by the next without a pause.
                due_ns = clock::monotonic_ns().saturating_add(every_ns);
            }
            let mut outgoing = lock(&self.outgoing);
            outgoing.body.set_sequence(sequence);
            let start_ns = clock::monotonic_ns();
            let sent = outgoing.send(sequence);
            drop(outgoing);
            let stop_ns = match sent {
                Ok(()) => self.incoming.await_answer(sequence, patience),
                Err(error) => refused(error)?,
            };
            missing = if stop_ns.is_none() { missing + 1 } else { 0 };
            if missing == self.missing_max() {
                return Err(unanswered(missing, patience));
            }
            times.push((start_ns, stop_ns.unwrap_or(0)));
            lock(&self.outgoing).collect();
        }
        Ok(times)
    }

    /// As [`Self::transact`], for a carrier whose sends do not wait for the other end: the thread that receives an answer
    /// sends the next message, and no thread wakes another.
    fn ping_pong(&self, first: u64, messages: u64) -> Result<Vec<(i64, i64)>, String> {
        let patience = self.patience();
        let patience_ns = i64::try_from(patience.as_nanos()).unwrap_or(i64::MAX);
        let mut begun = PingPong::begin(first, messages, self.missing_max());
        let mut state = self.incoming.state();
        // The answer waits for the lock.
        begun.send_next(&mut lock(&self.outgoing));
        state.ping_pong = Some(begun);
        loop {
            let Some(playing) = &mut state.ping_pong else {
                return Err("another order has ended the transactions".to_owned());
            };
            if playing.is_over() {
                break;
            }
            let late_ns = playing.sent_ns + patience_ns - clock::monotonic_ns();
            if late_ns <= 0 {
                playing.miss();
                playing.send_next(&mut lock(&self.outgoing));
                continue;
            }
            let left = Duration::from_nanos(late_ns.unsigned_abs());
            let is_playing =
                |state: &mut State| state.ping_pong.as_ref().is_some_and(|it| !it.is_over());
            let waited = (self.incoming.changed).wait_timeout_while(state, left, is_playing);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let played = state.ping_pong.take().unwrap_or_default();
        drop(state);
        lock(&self.outgoing).collect();
        played.result(patience)
    }

    /// How long the answer to a message is waited for.
    fn patience(&self) -> Duration {
        match self.listen.carrier.delivery() {
            Delivery::InOrder => PATIENCE,
            Delivery::BestEffort => ANSWER_PATIENCE,
        }
    }

    /// Messages without an answer, in succession, after which the other end counts as gone.
    fn missing_max(&self) -> u32 {
        match self.listen.carrier.delivery() {
            Delivery::InOrder => 1,
            Delivery::BestEffort => MISSING_MAX,
        }
    }

    /// Sends all messages without pause.
    pub(super) fn stream(&self, first: u64, messages: u64) -> Result<Streamed, String> {
        let mut outgoing = lock(&self.outgoing);
        let mut streamed = Streamed {
            start_a_ns: clock::monotonic_ns(),
            ..Streamed::default()
        };
        for sequence in first..first + messages {
            outgoing.body.set_sequence(sequence);
            match outgoing.send(sequence) {
                Ok(()) => {}
                Err(SendError::Refused(NO_BUFFERS)) => streamed.queue_drops += 1,
                Err(error) => {
                    refused::<()>(error)?;
                    streamed.send_errors += 1;
                }
            }
        }
        streamed.stop_a_ns = clock::monotonic_ns();
        outgoing.collect();
        Ok(streamed)
    }

    /// Waits until `accepted` messages are there or no more come. Returns what has arrived.
    pub(super) fn report(&self, accepted: u64) -> Arrived {
        let carrier = self.listen.carrier;
        // A channel drops what its queue has no room for.
        let loses = carrier.delivery() == Delivery::BestEffort || carrier.needs().channel.is_some();
        let patience = if loses { QUIET } else { PATIENCE };
        let mut state = self.incoming.state();
        state.awaited = Awaited::Count(accepted);
        while !state.has(accepted) {
            let before = state.counts();
            let lacks = |state: &mut State| !state.has(accepted);
            let waited = (self.incoming.changed).wait_timeout_while(state, patience, lacks);
            let (after, result) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            if result.timed_out() && state.counts() == before {
                break;
            }
        }
        state.awaited = Awaited::Nothing;
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        let before = state.dropped_before;
        let mut arrived = std::mem::take(&mut state.arrived);
        arrived.overflows = dropped.saturating_sub(before);
        arrived
    }

    /// Stops the receiver. Returns its thread, which ends by itself soon.
    pub(super) fn close(self) -> JoinHandle<()> {
        lock(&self.outgoing).sender = None;
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread
    }
}

impl Incoming {
    /// Waits for the answer to a message. Returns when it was received.
    fn await_answer(&self, sequence: u64, patience: Duration) -> Option<i64> {
        let is_missing = |state: &mut State| state.latest.is_none_or(|(of, _)| of != sequence);
        let mut state = self.state();
        state.awaited = Awaited::Answer(sequence);
        let waited = self.changed.wait_timeout_while(state, patience, is_missing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.awaited = Awaited::Nothing;
        state
            .latest
            .filter(|(of, _)| *of == sequence)
            .map(|(_, received_ns)| received_ns)
    }
}

/// The receiver's handler.
struct Taking {
    incoming: Arc<Incoming>,
    outgoing: Arc<Mutex<Outgoing>>,
}

impl Handler for Taking {
    fn handle(&mut self, arrival: Arrival) {
        let Arrival {
            sequence,
            received_ns,
            ..
        } = arrival;
        let mut state = self.incoming.state();
        let place = sequence.checked_sub(state.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let Some(seen) = place.and_then(|place| state.seen.get_mut(place)) else {
            return; // of an earlier iteration
        };
        if std::mem::replace(seen, true) {
            state.arrived.duplicates += 1;
            return;
        }
        let arrived = &mut state.arrived;
        if arrived.received == 0 {
            arrived.first_ns = received_ns;
        }
        arrived.received += 1;
        arrived.last_ns = arrived.last_ns.max(received_ns);
        state.latest = Some((sequence, received_ns));
        if let Some(playing) = &mut state.ping_pong {
            if playing.take(sequence, received_ns) {
                playing.send_next(&mut lock(&self.outgoing));
            }
            if playing.is_over() {
                self.incoming.changed.notify_one();
            }
            return;
        }
        if !state.passes_on {
            return self.incoming.leave(state);
        }
        drop(state);
        let mut outgoing = lock(&self.outgoing);
        outgoing.body.set_sequence(sequence);
        let start_ns = clock::monotonic_ns();
        let sent = outgoing.send(sequence);
        drop(outgoing);
        let mut state = self.incoming.state();
        match sent {
            Ok(()) => state
                .arrived
                .answered
                .push((sequence, received_ns, start_ns)),
            Err(_) => state.arrived.refused += 1,
        }
        self.incoming.leave(state);
    }
}

fn lock(outgoing: &Mutex<Outgoing>) -> MutexGuard<'_, Outgoing> {
    outgoing.lock().unwrap_or_else(PoisonError::into_inner)
}

/// ENOBUFS: the interface's queue dropped the datagram.
const NO_BUFFERS: u16 = 105;

/// How long the answer to a datagram is waited for. A later answer is a lost one.
const ANSWER_PATIENCE: Duration = Duration::from_millis(200);

/// Answers that may be lost in succession. Even where every second datagram is lost, so many are never missing.
const MISSING_MAX: u32 = 30;

/// How long after the last datagram no more are expected. The receiver reads the socket's counter of drops within this
/// time.
const QUIET: Duration = Duration::from_millis(250);
