//! The I/O thread of one priority: it opens connections, reads replies, goes on with writes, and ends what is overdue.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_os::schedule::{self, Class};
use deckwatch_sync::{PiMutex, SlotTable};

use super::connection::{Connection, Peer};
use super::openers::Openers;
use super::outlet::{End, Outlet};
use super::{DeliveryOptions, Engine};
use crate::SystemException;
use crate::call_side::CallSide;
use crate::limits::{
    DELIVERY_CHECK_INTERVAL_MAX, DELIVERY_CHECK_INTERVAL_MIN, DELIVERY_EVENTS_MAX,
};
use crate::rt::Priority;
use crate::transport::{Event, Instant64, Poller};
use crate::{Completion, raise};

type Started = SyncSender<Result<(), SystemException>>;

/// The connections of one priority, and what their I/O thread has to do.
pub(super) struct Worker {
    pub(super) priority: Option<Priority>,
    pub(super) calls: Arc<CallSide>,
    pub(super) poller: Box<dyn Poller>,
    pub(super) reply_timeout: Duration,
    connections: SlotTable<Arc<Connection>>,
    /// The connections that outlets share.
    peers: PiMutex<HashMap<Peer, Arc<Connection>>>,
    notices: PiMutex<Notices>,
    pub(super) openers: Arc<Openers>,
    /// When overdue requests are looked for.
    check_due: AtomicU64,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Notices {
    /// Connections to open, or that have failed.
    connections: Vec<Arc<Connection>>,
    ended: Vec<(Arc<Outlet>, End)>,
    /// Connections that no outlet uses any more.
    released: Vec<Arc<Connection>>,
}

impl Worker {
    /// Returns once the thread has its priority.
    ///
    /// # Errors
    /// NO_RESOURCES without a poller or a thread; as [`CallSide::set_priority`] if the thread cannot have its priority.
    pub(super) fn start(
        engine: &Arc<Engine>,
        priority: Option<Priority>,
        options: &DeliveryOptions,
    ) -> Result<Arc<Self>, SystemException> {
        let none = raise::no_resources(0, Completion::No);
        let calls = &engine.calls;
        let worker = Arc::new(Self {
            priority,
            calls: Arc::clone(calls),
            poller: calls.client.transport.poller().map_err(|_| none)?,
            reply_timeout: options.reply_timeout,
            connections: SlotTable::without_memory(),
            peers: PiMutex::default(),
            notices: PiMutex::default(),
            openers: Arc::default(),
            check_due: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        });
        if !calls.is_turned_by_hand() {
            let (of, engine) = (Arc::clone(&worker), Arc::downgrade(engine));
            let name = match priority {
                None => "orb-delivery".to_owned(),
                Some(priority) => format!("delivery-{}", priority.value()),
            };
            // A thread that a real-time thread creates is not real-time by itself.
            let class = schedule::class().ok().filter(|_| priority.is_none());
            let thread = std::thread::Builder::new().name(name);
            let (started, is_started) = sync_channel(1);
            let run = move || of.run(&engine, class, &started);
            thread.spawn(run).map_err(|_| none)?;
            is_started.recv().map_err(|_| none)??;
        }
        Ok(worker)
    }

    /// The body of the thread. `class`: what a thread without a priority runs in. `started` is told whether it works.
    fn run(&self, engine: &Weak<Engine>, class: Option<Class>, started: &Started) {
        // The creating thread was allowed to enter its class, and this thread is, too.
        if let Some(class) = class.filter(|class| *class != Class::Other) {
            let _ = schedule::set_class(class);
        }
        let at_priority = self.calls.set_priority(self.priority);
        // Its creator waits for this.
        let _ = started.send(at_priority.as_ref().map(|_| ()).map_err(|denied| *denied));
        let Ok(_at_priority) = at_priority else {
            return;
        };
        let interval = self.check_interval();
        let none = Event {
            token: 0,
            ended: false,
        };
        let mut events = [none; DELIVERY_EVENTS_MAX];
        while !self.is_closed() {
            let count = self.poller.wait_many(&mut events, Some(interval));
            let Some(engine) = engine.upgrade() else {
                return;
            };
            self.turn(&engine, &events[..count]);
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    fn check_interval(&self) -> Duration {
        let eighth = self.reply_timeout / 8;
        eighth.clamp(DELIVERY_CHECK_INTERVAL_MIN, DELIVERY_CHECK_INTERVAL_MAX)
    }

    /// Handles events, and what has been noticed. Returns whether there was anything.
    fn turn(&self, engine: &Engine, events: &[Event]) -> bool {
        for event in events {
            self.handle(*event);
        }
        let now = self.calls.client.transport.now_coarse();
        if now.0 >= self.check_due.load(Ordering::Relaxed) {
            self.check_due
                .store(now.after(self.check_interval()).0, Ordering::Relaxed);
            self.handle_arrived();
            self.check(now);
            engine.ask(self, now);
        }
        self.take_notices(engine) || !events.is_empty()
    }

    fn handle(&self, event: Event) {
        let (key, is_room) = Connection::parse_token(event.token);
        let connection = self
            .connections
            .pin(key)
            .map(|connection| Arc::clone(&connection));
        if let Some(connection) = connection {
            if is_room {
                connection.handle_room();
            } else {
                connection.read(event.ended);
            }
        }
    }

    /// Handles what each connection has to report now. A reply is not overdue that has arrived while the thread was
    /// held up.
    fn handle_arrived(&self) {
        for _ in 0..2 * self.count() {
            if !self.poller.is_pending() {
                return;
            }
            if let Some(event) = self.poller.wait(Some(Duration::ZERO)) {
                self.handle(event);
            }
        }
    }

    /// For an ORB without threads.
    pub(super) fn turn_by_hand(&self, engine: &Engine) -> bool {
        let event = self.poller.wait(Some(Duration::ZERO));
        self.turn(engine, event.as_slice())
    }

    fn check(&self, now: Instant64) {
        self.connections
            .for_each(|_, connection| connection.check(now));
    }

    fn take_notices(&self, engine: &Engine) -> bool {
        let mut any = false;
        loop {
            let mut notices = self.notices.lock("delivery.notices");
            let Notices {
                connections,
                ended,
                released,
            } = &*notices;
            if connections.is_empty() && ended.is_empty() && released.is_empty() {
                return any;
            }
            any = true;
            let taken = std::mem::take(&mut *notices);
            drop(notices);
            for connection in taken.connections {
                connection.attend();
            }
            for (outlet, why) in taken.ended {
                engine.end(&outlet, why);
            }
            for connection in taken.released {
                connection.cut(&mut connection.sending.lock("delivery.released"));
            }
        }
    }

    /// Leaves something for the thread, unless the worker is closed.
    fn put(&self, put: impl FnOnce(&mut Notices)) {
        let mut notices = self.notices.lock("delivery.notice");
        // Under the lock: `close` drops what it finds after it has closed the worker.
        if !self.is_closed() {
            put(&mut notices);
        }
        drop(notices);
        self.poller.wake();
    }

    /// Has the thread attend to a connection.
    pub(super) fn notice(&self, connection: &Arc<Connection>) {
        self.put(|notices| notices.connections.push(Arc::clone(connection)));
    }

    /// Has the thread end an outlet.
    pub(super) fn tell(&self, outlet: &Arc<Outlet>, why: End) {
        self.put(|notices| notices.ended.push((Arc::clone(outlet), why)));
    }

    /// The connection to a peer: a shared one, or a new one.
    pub(super) fn connection(
        self: &Arc<Self>,
        peer: Peer,
        is_private: bool,
    ) -> Result<Arc<Connection>, SystemException> {
        let mut peers = self.peers.lock("delivery.peers");
        if let Some(shared) = peers.get(&peer).filter(|_| !is_private) {
            shared.users.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::clone(shared));
        }
        let connection = Arc::new(Connection::new(self, peer));
        let full = raise::no_resources(0, Completion::No);
        let key = self
            .connections
            .insert(Arc::clone(&connection))
            .map_err(|_| full)?;
        let _ = connection.key.set(key); // It is new.
        connection.users.fetch_add(1, Ordering::Relaxed);
        if !is_private {
            peers.insert(connection.peer.clone(), Arc::clone(&connection));
        }
        Ok(connection)
    }

    /// An outlet uses the connection no more; with the last one the thread closes it. The caller may hold its lock.
    pub(super) fn release(&self, connection: &Arc<Connection>) {
        let mut peers = self.peers.lock("delivery.release");
        if connection.users.fetch_sub(1, Ordering::Relaxed) != 1 {
            return;
        }
        let is_it = |shared: &Arc<Connection>| Arc::ptr_eq(shared, connection);
        if peers.get(&connection.peer).is_some_and(is_it) {
            peers.remove(&connection.peer);
        }
        drop(peers);
        if let Some(key) = connection.key.get() {
            self.connections.remove(*key);
        }
        self.put(|notices| notices.released.push(Arc::clone(connection)));
    }

    /// The count of connections.
    pub(super) fn count(&self) -> usize {
        let mut count = 0;
        self.connections.for_each(|_, _| count += 1);
        count
    }

    /// The number of the oldest event that a connection holds.
    pub(super) fn oldest(&self) -> Option<u64> {
        let mut oldest = None;
        self.connections.for_each(|_, connection| {
            oldest = oldest.into_iter().chain(connection.oldest()).min();
        });
        oldest
    }

    /// Has the connections drop the event with this number.
    pub(super) fn give_up(&self, number: u64) {
        self.connections
            .for_each(|_, connection| connection.give_up(number));
    }

    /// Closes all connections and ends the thread.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.openers.close();
        self.peers.lock("delivery.close").clear();
        let mut keys = Vec::new();
        self.connections.for_each(|key, connection| {
            keys.push(key);
            connection.close();
        });
        for key in keys {
            self.connections.remove(key);
        }
        let dropped = std::mem::take(&mut *self.notices.lock("delivery.close"));
        drop(dropped);
        self.poller.close();
    }
}
