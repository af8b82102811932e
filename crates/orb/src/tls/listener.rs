//! A listener whose connections have made their handshake before a lane accepts them.
//!
//! A thread of its own accepts, and takes each handshake as far as it goes whenever octets or room are there. It never
//! waits for one peer, and it is in the time-sharing class, so that the arithmetic of strangers' handshakes takes no time
//! of a lane. Finished connections wait in a queue, which the lane's poller watches.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_os::poller::{self, EVENTS_MAX, Interest};
use deckwatch_os::schedule::{self, Class};
use deckwatch_os::stream::{self, TcpListener};
use deckwatch_os::wake::Wake;
use deckwatch_sync::PiMutex;
use rustls::ServerConnection;

use super::Tls;
use super::handshakes::{Handshakes, Step};
use super::open::Begin;
use super::refused::Refused;
use super::session::Session;
use super::stream::TlsStream;
use crate::access::AccessLog;
use crate::limits::{ACCEPT_REST, HANDSHAKE_YOUNG, HANDSHAKES_MAX};
use crate::transport::{
    Endpoint, Event, Instant64, Listener, Source, Stream, StreamOptions, TransportError, fact,
};

/// Accepts connections over TLS.
pub(crate) struct TlsListener {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    listener: TcpListener,
    tls: Tls,
    /// Is told of handshakes that fail.
    log: OnceLock<Arc<dyn AccessLog>>,
    /// Connections whose handshake has ended.
    finished: PiMutex<VecDeque<TlsStream>>,
    /// Readable while there are any, or the thread has run out of descriptors.
    arrived: Wake,
    /// The thread ran out of descriptors since the lane last accepted.
    exhausted: AtomicBool,
    poller: poller::Poller,
    /// Wakes the thread.
    stop: Wake,
    stopping: AtomicBool,
}

/// Tokens in the poller of the thread, which no handshake has.
const LISTENER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

impl TlsListener {
    /// Starts the thread.
    pub(crate) fn start(listener: TcpListener, tls: Tls) -> Result<Self, TransportError> {
        let made = || {
            let shared = Shared {
                listener,
                tls,
                log: OnceLock::new(),
                finished: PiMutex::default(),
                arrived: Wake::new()?,
                exhausted: AtomicBool::new(false),
                poller: poller::Poller::new()?,
                stop: Wake::new()?,
                stopping: AtomicBool::new(false),
            };
            shared
                .poller
                .watch(&shared.listener, LISTENER, Interest::Pending)?;
            shared.poller.watch(&shared.stop, STOP, Interest::Pending)?;
            let shared = Arc::new(shared);
            let own = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("orb-handshakes".to_owned());
            let thread = thread.spawn(move || Hands::new(&own).run())?;
            Ok(Self {
                shared,
                thread: Some(thread),
            })
        };
        made().map_err(|error: std::io::Error| fact(&error))
    }
}

impl Drop for TlsListener {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.stop.notify();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

/// The thread at work.
struct Hands<'s> {
    shared: &'s Shared,
    under_way: Handshakes,
    refused: Refused,
    /// The poller watches the listener.
    accepts: bool,
    /// No descriptor was free: until when the listener rests.
    rests_until: Option<Instant64>,
}

impl<'s> Hands<'s> {
    fn new(shared: &'s Shared) -> Self {
        Self {
            shared,
            under_way: Handshakes::default(),
            refused: Refused::default(),
            accepts: true,
            rests_until: None,
        }
    }

    fn run(mut self) {
        // Its creator may have a real-time class. To leave it is always permitted.
        let _ = schedule::set_class(Class::Other);
        while !self.shared.stopping.load(Ordering::SeqCst) {
            let now = Instant64(stream::monotonic_ns());
            let wait = self.prepare(now);
            let mut events = [Event {
                token: STOP,
                ended: false,
            }; EVENTS_MAX];
            let told = self.shared.poller.wait_many(&mut events, wait).unwrap_or(0);
            // Handshakes first: those that end make room for the next.
            for event in &events[..told] {
                if event.token < STOP {
                    self.step(event.token);
                }
            }
            if events[..told].iter().any(|event| event.token == LISTENER) {
                self.accept();
            }
        }
    }

    /// Ends what is overdue, and watches the listener if more may be accepted. Returns how long to wait.
    fn prepare(&mut self, now: Instant64) -> Option<Duration> {
        let (refused, log) = (&mut self.refused, self.shared.log.get());
        let next = self.under_way.end_late(now, |stream| {
            refused.tell(log, now, &stream.peer(), "its handshake took too long");
        });
        let untold = refused.tell_rest(log, now);
        self.rests_until = self.rests_until.filter(|until| now < *until);
        let rest = self.rests_until.map(|until| until.since(now));
        // Connections that no lane accepts count too.
        let is_full = self.shared.finished.lock("tls.full").len() >= HANDSHAKES_MAX / 2;
        let full = is_full.then_some(HANDSHAKE_YOUNG);
        let young = self.under_way.pause(now);
        let pause = rest.into_iter().chain(full).chain(young).max();
        if self.accepts != pause.is_none() {
            self.accepts = pause.is_none();
            let interest = if self.accepts {
                Interest::Pending
            } else {
                Interest::Nothing
            };
            // It is watched from the beginning.
            let _ = self
                .shared
                .poller
                .rewatch(&self.shared.listener, LISTENER, interest);
        }
        let next = [next, untold].into_iter().flatten();
        next.map(|next| next.since(now)).chain(pause).min()
    }

    /// Accepts one connection: events of others come between.
    fn accept(&mut self) {
        let shared = self.shared;
        let socket = match shared.listener.accept() {
            Ok(Some(socket)) => socket,
            Ok(None) => return,
            Err(_) => {
                let now = Instant64(stream::monotonic_ns());
                self.rests_until = Some(now.after(ACCEPT_REST));
                shared.exhausted.store(true, Ordering::SeqCst);
                return shared.arrived.notify();
            }
        };
        let current = shared.tls.current();
        let Some(config) = current.server() else {
            return;
        };
        let Ok(connection) = ServerConnection::new(Arc::clone(config)) else {
            return;
        };
        let begin = Begin::new(&shared.tls, Arc::clone(&current), None);
        let stream = TlsStream::new(socket, Session::new(connection.into()), begin);
        let waiting = shared.finished.lock("tls.finished").len();
        let now = Instant64(stream::monotonic_ns());
        let number = match self.under_way.begin(stream, waiting, now) {
            Ok(number) => number,
            Err(stream) => {
                let why = "its address has too many handshakes under way";
                let log = shared.log.get();
                return self.refused.tell(log, now, &stream.peer(), why);
            }
        };
        let Some(stream) = self.under_way.stream(number) else {
            return;
        };
        // Both directions, each change once: whatever the handshake waits for. It reports at once what is there already.
        let watched = match stream.source() {
            Source::Descriptor(socket) | Source::Holding(socket) => {
                shared.poller.watch(socket, number, Interest::Handover)
            }
            _ => return,
        };
        if watched.is_err() {
            self.under_way.drop_one(number);
        }
    }

    fn step(&mut self, number: u64) {
        let stream = match self.under_way.step(number) {
            Step::GoesOn => return,
            Step::Failed(peer, why) => {
                let now = Instant64(stream::monotonic_ns());
                let log = self.shared.log.get();
                return self.refused.tell(log, now, &peer, &why.to_string());
            }
            Step::Ended(stream) => stream,
        };
        if let Source::Descriptor(socket) | Source::Holding(socket) = stream.source() {
            // The lane's poller watches it from now on.
            let _ = self.shared.poller.forget(socket);
        }
        let mut finished = self.shared.finished.lock("tls.finished");
        finished.push_back(*stream);
        drop(finished);
        self.shared.arrived.notify();
    }
}

impl Listener for TlsListener {
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        let shared = &self.shared;
        if shared.exhausted.swap(false, Ordering::SeqCst) {
            return Err(TransportError::Exhausted);
        }
        let mut finished = shared.finished.lock("tls.accept");
        let stream = finished.pop_front();
        if finished.is_empty() && shared.arrived.clear() && shared.exhausted.load(Ordering::SeqCst)
        {
            // The thread has set it before it notified.
            shared.arrived.notify();
        }
        Ok(stream.map(|stream| Box::new(stream) as Box<dyn Stream>))
    }

    fn set_options(&self, options: StreamOptions) -> Result<(), TransportError> {
        let set = self.shared.listener.set_options(options);
        set.map_err(|error| fact(&error))
    }

    fn set_access_log(&self, log: &Arc<dyn AccessLog>) {
        let _ = self.shared.log.set(Arc::clone(log)); // A listener belongs to one lane.
    }

    fn is_pending(&self) -> bool {
        stream::is_readable_now(&self.shared.arrived)
            || stream::is_readable_now(&self.shared.listener)
    }

    fn endpoint(&self) -> Endpoint {
        match self.shared.listener.local_address() {
            Ok(address) => Endpoint::tls(&address.ip().to_string(), address.port()),
            Err(_) => Endpoint::tls("", 0),
        }
    }

    fn source(&self) -> Source<'_> {
        Source::Descriptor(self.shared.arrived.as_fd())
    }
}
