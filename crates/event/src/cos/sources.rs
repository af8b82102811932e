//! The suppliers that the channel pulls from. One thread asks them all by asynchronous `try_pull` calls; the ORB's
//! callback thread takes the replies.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_cdr::{Any, DecodeError, Parse as _, Reader, UserException as _};
use deckwatch_orb::transport::Instant64;
use deckwatch_orb::{AsynchronousReply, ObjectRef, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, PiMutex};

use crate::channel_group::ProxyKind;
use crate::cos_event_comm::{Disconnected, PullSupplierRef, PullSupplierTryPullError};
use crate::event::Event;
use crate::home::{Client, NoQos};
use crate::limits;
use crate::peers::{Peer, Place};
use crate::raise::raise;
use crate::shared::Shared;

/// The suppliers of one channel that it pulls from.
#[derive(Default)]
pub(crate) struct Sources {
    list: PiMutex<List>,
    /// Rings for a supplier that is due, and at the end.
    changed: Bell,
}

#[derive(Default)]
struct List {
    all: Vec<Source>,
    has_thread: bool,
    is_closed: bool,
}

struct Source {
    /// The number of its proxy.
    proxy: u64,
    /// The object that is asked, with the time limit of a call.
    supplier: ObjectRef,
    /// Notified of the end.
    reference: PullSupplierRef,
    place: Place,
    questions: Arc<dyn Questions>,
    /// The operation to call next.
    next: usize,
    /// Operations in a row that had no event.
    empty: usize,
    /// When to ask next; `None` while a call is under way.
    due: Option<Instant64>,
    /// When the current period has begun.
    begun: Instant64,
    /// Events that the supplier may still return in the current period.
    left: u32,
    /// Calls in a row that have failed.
    failures: u32,
}

/// The operations by which a supplier is asked for events.
pub(super) trait Questions: Send + Sync {
    /// The number of operations, at least one.
    fn count(&self) -> usize;

    /// The name of an operation.
    fn operation(&self, place: usize) -> &str;

    /// Reads the results of an operation. Returns the values of an event if there is one.
    fn read(&self, place: usize, r: &mut Reader<'_>) -> Result<Option<Vec<Any>>, DecodeError>;

    /// Passes an event on to the consumers of the channel.
    fn offer(&self, shared: &Shared, place: usize, values: Vec<Any>);
}

/// Asks by `try_pull`.
pub(super) struct TryPull;

impl Questions for TryPull {
    fn count(&self) -> usize {
        1
    }

    fn operation(&self, _place: usize) -> &'static str {
        "try_pull"
    }

    fn read(&self, _place: usize, r: &mut Reader<'_>) -> Result<Option<Vec<Any>>, DecodeError> {
        let (event, has_event) = (Any::parse(r)?, bool::parse(r)?);
        Ok(has_event.then(|| vec![event]))
    }

    fn offer(&self, shared: &Shared, _place: usize, values: Vec<Any>) {
        for event in values {
            // The channel may be destroyed meanwhile; the event is lost with it.
            let _ = shared.push(&mut Event::decoded(&shared.deliveries, event));
        }
    }
}

/// What a proxy pulls from.
pub(super) struct Asked {
    /// The object that has the operations.
    pub(super) object: ObjectRef,
    /// Notified of the end.
    pub(super) reference: PullSupplierRef,
    pub(super) questions: Arc<dyn Questions>,
}

/// The result of one call.
enum Outcome {
    Event(Vec<Any>),
    /// The supplier has no event.
    Nothing,
    /// The supplier will never return an event again.
    Gone,
    /// The call failed or timed out.
    Missed,
}

impl Sources {
    /// Adds a supplier if `admit` returns `Ok`. The first one starts the thread.
    ///
    /// # Errors
    /// NO_RESOURCES at the maximum or without a thread; the errors of `admit`.
    fn connect(
        self: &Arc<Self>,
        shared: &Weak<Shared>,
        proxy: u64,
        asked: Asked,
        now: Instant64,
        admit: impl FnOnce() -> Result<Place, SystemException>,
    ) -> Result<(), SystemException> {
        let mut list = self.list.lock("event.sources");
        if list.all.len() >= limits::SOURCES_MAX {
            return Err(raise(Kind::NoResources));
        }
        if !list.has_thread {
            let (sources, shared) = (self.clone(), shared.clone());
            let thread = std::thread::Builder::new().name("channel-pull".to_owned());
            let started = thread.spawn(move || sources.run(&shared));
            started.map_err(|_| raise(Kind::NoResources))?;
            list.has_thread = true;
        }
        let place = admit()?;
        let limit = Some(limits::SOURCE_TIMEOUT);
        list.all.push(Source {
            proxy,
            supplier: asked.object.with_round_trip_timeout(limit),
            reference: asked.reference,
            place,
            questions: asked.questions,
            next: 0,
            empty: 0,
            due: Some(now),
            begun: now,
            left: limits::SOURCE_BURST_MAX,
            failures: 0,
        });
        drop(list);
        self.changed.ring();
        Ok(())
    }

    /// Number of connected suppliers.
    pub(crate) fn len(&self) -> usize {
        self.list.lock("event.sources").all.len()
    }

    /// Removes a supplier. An event that is on its way is dropped. Returns the supplier and its peer if it was
    /// connected.
    fn disconnect(&self, proxy: u64) -> Option<(PullSupplierRef, Peer)> {
        let mut list = self.list.lock("event.sources");
        let place = list.all.iter().position(|source| source.proxy == proxy)?;
        let gone = list.all.swap_remove(place);
        Some((gone.reference, gone.place.peer()))
    }

    /// Removes all suppliers and ends the thread. Returns the suppliers.
    pub(crate) fn close(&self) -> Vec<PullSupplierRef> {
        let mut list = self.list.lock("event.sources");
        list.is_closed = true;
        let all = std::mem::take(&mut list.all);
        drop(list);
        self.changed.ring();
        all.into_iter().map(|source| source.reference).collect()
    }

    /// The body of the thread: asks each supplier that is due.
    fn run(&self, shared: &Weak<Shared>) {
        loop {
            let turn = self.changed.turn();
            // Released before the wait: the thread does not keep the channel alive.
            let next = match shared.upgrade() {
                Some(shared) => self.ask_due(&shared),
                None => return,
            };
            let Some(next) = next else { return };
            self.changed.wait_until(turn, next.map(|due| due.0));
        }
    }

    /// Asks the suppliers that are due. Returns when the next one is due, or `None` once the list is closed.
    fn ask_due(&self, shared: &Arc<Shared>) -> Option<Option<Instant64>> {
        let now = shared.now();
        let mut asked = Vec::new();
        {
            let mut list = self.list.lock("event.sources");
            if list.is_closed {
                return None;
            }
            for source in &mut list.all {
                if source.due.is_some_and(|due| due <= now) {
                    source.due = None;
                    let questions = source.questions.clone();
                    asked.push((
                        source.proxy,
                        source.supplier.clone(),
                        questions,
                        source.next,
                    ));
                }
            }
        }
        for (proxy, supplier, questions, place) in asked {
            let (channel, asked) = (Arc::downgrade(shared), questions.clone());
            let deliver = move |reply: AsynchronousReply| {
                if let Some(shared) = channel.upgrade() {
                    let outcome = understand(reply, asked.as_ref(), place);
                    shared.take_pulled(proxy, asked.as_ref(), place, outcome);
                }
                Ok(())
            };
            let operation = questions.operation(place);
            let sent = supplier.send_callback(operation, |_| Ok(()), Some(Box::new(deliver)));
            if let Err(exception) = sent {
                shared.take_pulled(proxy, questions.as_ref(), place, failed(&exception.into()));
            }
        }
        let list = self.list.lock("event.sources");
        Some(list.all.iter().filter_map(|source| source.due).min())
    }

    /// Records the outcome of a call.
    fn note(&self, proxy: u64, outcome: &Outcome, period: Duration, now: Instant64) -> Noted {
        let mut list = self.list.lock("event.sources");
        let place = list.all.iter().position(|source| source.proxy == proxy);
        let Some(place) = place else {
            return Noted::Unknown;
        };
        let source = &mut list.all[place];
        source.failures = match outcome {
            Outcome::Event(_) | Outcome::Nothing => 0,
            Outcome::Gone => limits::FAILURES_MAX,
            Outcome::Missed => source.failures + 1,
        };
        if source.failures >= limits::FAILURES_MAX {
            list.all.swap_remove(place);
            return Noted::Removed;
        }
        match outcome {
            Outcome::Event(_) => source.schedule(true, period, now),
            Outcome::Nothing => source.schedule(false, period, now),
            Outcome::Gone | Outcome::Missed => source.rest(period, now),
        }
        drop(list);
        self.changed.ring();
        Noted::Kept
    }
}

/// The effect of an outcome on the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Noted {
    Kept,
    /// The supplier has been removed because of the outcome.
    Removed,
    /// The supplier had disconnected before.
    Unknown,
}

impl Source {
    /// Sets what to ask next, and when: at once while there are events, until the period's share is used up; else a
    /// period after this one has begun.
    fn schedule(&mut self, has_event: bool, period: Duration, now: Instant64) {
        let count = self.questions.count();
        self.next = (self.next + 1) % count;
        self.left -= u32::from(has_event);
        self.empty = if has_event { 0 } else { self.empty + 1 };
        if self.left > 0 && self.empty < count {
            self.due = Some(now);
            return;
        }
        self.rest(period, now);
    }

    /// Begins the next period.
    fn rest(&mut self, period: Duration, now: Instant64) {
        self.begun = now.max(self.begun.after(period));
        self.due = Some(self.begun);
        self.left = limits::SOURCE_BURST_MAX;
        self.empty = 0;
    }
}

impl Shared {
    /// Begins to pull from a supplier.
    pub(super) fn connect_source(&self, proxy: u64, asked: Asked) -> Result<(), SystemException> {
        let caller = self.shares.caller();
        let reference = asked.reference.clone();
        let client = Client::<NoQos> {
            number: proxy,
            kind: ProxyKind::PullConsumer,
            reference: Some(reference.object()),
            qos: None,
            is_suspended: false,
        };
        self.objects.home.record(&client, || {
            self.sources
                .connect(self.weak(), proxy, asked, self.now(), || {
                    self.check_alive()?;
                    let place = self.shares.sources.take(caller)?;
                    self.objects.settle(proxy)?;
                    Ok(place)
                })
        })
    }

    /// Pulls no longer from a supplier, and notifies it.
    pub(crate) fn disconnect_source(&self, proxy: u64) {
        let supplier = self.sources.disconnect(proxy);
        self.objects.retire(proxy);
        if let Some((supplier, peer)) = supplier {
            let farewells = &self.shares.farewells;
            farewells.say(peer, supplier.object(), "disconnect_pull_supplier");
        }
    }

    /// Takes what a supplier has returned.
    fn take_pulled(&self, proxy: u64, asked: &dyn Questions, place: usize, outcome: Outcome) {
        let period = self.options().pull_period;
        let noted = self.sources.note(proxy, &outcome, period, self.now());
        match (noted, outcome) {
            (Noted::Removed, _) => {
                self.counters.suppliers_lost.fetch_add(1, Relaxed);
                self.objects.retire(proxy);
            }
            (Noted::Kept, Outcome::Event(values)) => asked.offer(self, place, values),
            (Noted::Kept | Noted::Unknown, _) => {}
        }
    }
}

fn understand(reply: AsynchronousReply, asked: &dyn Questions, place: usize) -> Outcome {
    match reply.results(|r| asked.read(place, r)) {
        Ok(Some(values)) => Outcome::Event(values),
        Ok(None) => Outcome::Nothing,
        Err(holder) => failed(&holder.raise_exception(|id, r| match id {
            Disconnected::REPOSITORY_ID => Ok(Some(Disconnected::parse(r)?.into())),
            _ => Ok(None),
        })),
    }
}

fn failed(error: &PullSupplierTryPullError) -> Outcome {
    let is_final = match error {
        PullSupplierTryPullError::Disconnected(_) => true,
        PullSupplierTryPullError::System(exception) => matches!(
            exception.kind,
            Kind::ObjectNotExist | Kind::InvObjref | Kind::BadOperation
        ),
    };
    if is_final {
        Outcome::Gone
    } else {
        Outcome::Missed
    }
}
