//! One flow at one end: a sender to the other end and a receiver from it, over one carrier and of one message size.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_carrier::arrival::{Arrival, Handler, Shared};
use deckwatch_carrier::body::{Body, BodyPlan};
use deckwatch_carrier::carrier::{ChannelAt, ConnectTo, Delivery, ListenAt, ReceiverSettings};
use deckwatch_carrier::receiver::Receiver;
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_carrier::sender::SendError;
use deckwatch_carrier::talk::Ready;
use deckwatch_meter::blame::Road;
use deckwatch_os::clock;

use super::end::PATIENCE;
use super::outgoing::{Outgoing, PingPong, refused, unanswered};
use super::talk::{Arrived, Listen, Streamed, Ways};

/// A flow in progress.
pub(super) struct Flow {
    listen: Listen,
    shared: Arc<Shared>,
    incoming: Arc<Incoming>,
    outgoing: Arc<Mutex<Outgoing>>,
    /// The receiver's thread. One that receives over the sender's connection starts with it.
    thread: Option<JoinHandle<()>>,
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
    /// Counts a message. Returns false for a duplicate, and for one of an earlier iteration.
    fn note(&mut self, sequence: u64, received_ns: i64) -> bool {
        let place = sequence.checked_sub(self.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let Some(seen) = place.and_then(|place| self.seen.get_mut(place)) else {
            return false;
        };
        let arrived = &mut self.arrived;
        if std::mem::replace(seen, true) {
            arrived.duplicates += 1;
            return false;
        }
        if arrived.received == 0 {
            arrived.first_ns = received_ns;
        }
        arrived.received += 1;
        arrived.last_ns = arrived.last_ns.max(received_ns);
        self.latest = Some((sequence, received_ns));
        true
    }

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
    /// Opens a flow. Returns its endpoint too, which is empty if this end connects.
    pub(super) fn open(listen: &Listen) -> Result<(Self, String), String> {
        let body = Body::new(&BodyPlan::Octets {
            size_bytes: listen.size_octets,
        });
        let body = body.map_err(|error| error.to_string())?;
        let mut flow = Self {
            listen: listen.clone(),
            shared: Arc::default(),
            incoming: Arc::new(Incoming {
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
            outgoing: Arc::new(Mutex::new(Outgoing {
                sender: None,
                body: body.clone(),
            })),
            thread: None,
        };
        if listen.ways == Ways::Connecting {
            return Ok((flow, String::new()));
        }
        let mut receiver = listen
            .carrier
            .listen(&ListenAt {
                address: listen.address,
                channel: listen.channel.as_ref(),
                settings: flow.receiver_settings(),
                scheduling: &Scheduling::default(),
                priority: None,
                network_priority: listen.network_priority,
                deadline: PATIENCE,
                body: &body,
                shared: &flow.shared,
            })
            .map_err(|error| error.to_string())?;
        let mut ready = Ready::default();
        receiver.announce(&mut ready);
        if listen.ways == Ways::Accepting {
            let sender = receiver.answering(listen.socket, &body);
            lock(&flow.outgoing).sender = Some(sender.ok_or(NO_ANSWERS)?);
        }
        flow.receive_with(receiver)?;
        Ok((flow, ready.endpoint))
    }

    fn receiver_settings(&self) -> ReceiverSettings {
        ReceiverSettings {
            receive_buffer: self.listen.socket.send_buffer,
            servants: self.listen.servants,
            unstamped: self.listen.socket.unstamped,
        }
    }

    /// Starts the receiver's thread.
    fn receive_with(&mut self, mut receiver: Box<dyn Receiver>) -> Result<(), String> {
        let handler = Box::new(Taking {
            incoming: Arc::clone(&self.incoming),
            outgoing: Arc::clone(&self.outgoing),
        });
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name("sweep-receive".to_owned())
            .spawn(move || receiver.receive_all(handler, &shared))
            .map_err(|error| error.to_string())?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Connects the sender. One that sends over an accepted connection has it already.
    pub(super) fn connect(
        &mut self,
        endpoint: &str,
        channel: Option<&ChannelAt>,
        waits: bool,
    ) -> Result<(), String> {
        if self.listen.ways == Ways::Accepting {
            return Ok(());
        }
        let mut outgoing = lock(&self.outgoing);
        let sender = self.listen.carrier.connect(&ConnectTo {
            address: self.listen.address,
            host: "the other end",
            endpoint,
            channel,
            network_priority: self.listen.network_priority,
            socket: self.listen.socket,
            deadline: if waits { PATIENCE } else { Duration::ZERO },
            body: &outgoing.body,
        });
        let sender = sender.map_err(|error| error.to_string())?;
        let answers = match self.listen.ways {
            Ways::Connecting => {
                let answers = sender.answers(self.receiver_settings(), &outgoing.body);
                Some(answers.ok_or(NO_ANSWERS)?)
            }
            Ways::Apart | Ways::Accepting => None,
        };
        outgoing.sender = Some(sender);
        drop(outgoing);
        answers.map_or(Ok(()), |receiver| self.receive_with(receiver))
    }

    /// Forgets what has arrived, and expects these messages.
    pub(super) fn expect(&self, (first, messages): (u64, u64), passes_on: bool, in_bulk: bool) {
        self.shared.in_bulk.store(in_bulk, Ordering::Relaxed);
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
        self.expect((first, messages), false, false);
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
    pub(super) fn stream(
        &self,
        (first, messages): (u64, u64),
        in_bulk: bool,
    ) -> Result<Streamed, String> {
        let mut outgoing = lock(&self.outgoing);
        let mut streamed = Streamed {
            start_a_ns: clock::monotonic_ns(),
            ..Streamed::default()
        };
        let mut left = first..first + messages;
        while !left.is_empty() {
            let sent = if in_bulk {
                outgoing.send_many(left.clone())
            } else {
                outgoing.body.set_sequence(left.start);
                outgoing.send(left.start).map(|()| 1)
            };
            left.start += match sent {
                Ok(count) => count,
                Err(SendError::Refused(NO_BUFFERS)) => {
                    streamed.queue_drops += 1;
                    1
                }
                Err(error) => {
                    refused::<()>(error)?;
                    streamed.send_errors += 1;
                    1
                }
            };
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
    pub(super) fn close(self) -> Option<JoinHandle<()>> {
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
    fn handle_all(&mut self, sequences: &[u64], (returned_ns, found_ns): (i64, i64)) {
        let times = std::iter::once(returned_ns).chain(std::iter::repeat(found_ns));
        let messages = sequences.iter().copied().zip(times);
        let mut state = self.incoming.state();
        if state.passes_on || state.ping_pong.is_some() {
            drop(state);
            for (sequence, received_ns) in messages {
                self.handle_one(sequence, received_ns);
            }
            return;
        }
        for (sequence, received_ns) in messages {
            state.note(sequence, received_ns);
        }
        self.incoming.leave(state);
    }

    fn handle(&mut self, arrival: Arrival) {
        self.handle_one(arrival.sequence, arrival.received_ns);
    }
}

impl Taking {
    fn handle_one(&mut self, sequence: u64, received_ns: i64) {
        let mut state = self.incoming.state();
        if !state.note(sequence, received_ns) {
            return;
        }
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

/// A carrier with [`deckwatch_carrier::carrier::Carrier::carries_answers`] has them.
const NO_ANSWERS: &str = "the carrier has no answers over its connections";

/// ENOBUFS: the interface's queue dropped the datagram.
const NO_BUFFERS: u16 = 105;

/// How long the answer to a datagram is waited for. A later answer is a lost one.
const ANSWER_PATIENCE: Duration = Duration::from_millis(200);

/// Answers that may be lost in succession. Even where every second datagram is lost, so many are never missing.
const MISSING_MAX: u32 = 30;

/// How long after the last datagram no more are expected. The receiver reads the socket's counter of drops within this
/// time.
const QUIET: Duration = Duration::from_millis(250);
