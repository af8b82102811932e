//! The suppliers that the channel pulls from. One thread asks them all by asynchronous `try_pull` calls; the ORB's
//! callback thread takes the replies.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_cdr::{Any, Parse as _, Reader, UserException as _};
use deckwatch_orb::transport::Instant64;
use deckwatch_orb::{AsynchronousReply, ObjectRef, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, PiMutex};

use super::notify;
use crate::cos_event_comm::{Disconnected, PullSupplierRef, PullSupplierTryPullError};
use crate::event::Event;
use crate::limits;
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
    /// The supplier, with the time limit of a call.
    supplier: ObjectRef,
    /// When to ask next; `None` while a call is under way.
    due: Option<Instant64>,
    /// When the current period has begun.
    begun: Instant64,
    /// Events that the supplier may return in the current period.
    left: u32,
    /// Calls in a row that have failed.
    failures: u32,
}

/// The result of one call.
enum Outcome {
    Event(Any),
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
        supplier: &PullSupplierRef,
        now: Instant64,
        admit: impl FnOnce() -> Result<(), SystemException>,
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
        admit()?;
        let limit = Some(limits::SOURCE_TIMEOUT);
        list.all.push(Source {
            proxy,
            supplier: supplier.object().with_round_trip_timeout(limit),
            due: Some(now),
            begun: now,
            left: limits::SOURCE_BURST_MAX,
            failures: 0,
        });
        drop(list);
        self.changed.ring();
        Ok(())
    }

    /// Removes a supplier. An event that is on its way is dropped. Returns the supplier if it was connected.
    fn disconnect(&self, proxy: u64) -> Option<ObjectRef> {
        let mut list = self.list.lock("event.sources");
        let place = list.all.iter().position(|source| source.proxy == proxy)?;
        Some(list.all.swap_remove(place).supplier)
    }

    /// Removes all suppliers and ends the thread. Returns the suppliers.
    pub(crate) fn close(&self) -> Vec<ObjectRef> {
        let mut list = self.list.lock("event.sources");
        list.is_closed = true;
        let all = std::mem::take(&mut list.all);
        drop(list);
        self.changed.ring();
        all.into_iter().map(|source| source.supplier).collect()
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
                    asked.push((source.proxy, source.supplier.clone()));
                }
            }
        }
        for (proxy, supplier) in asked {
            let channel = Arc::downgrade(shared);
            let deliver = move |reply: AsynchronousReply| {
                if let Some(shared) = channel.upgrade() {
                    shared.take_pulled(proxy, understand(reply));
                }
                Ok(())
            };
            let sent = supplier.send_callback("try_pull", |_| Ok(()), Some(Box::new(deliver)));
            if let Err(exception) = sent {
                shared.take_pulled(proxy, failed(&exception.into()));
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
        source.schedule(matches!(outcome, Outcome::Event(_)), period, now);
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
    /// Sets when to ask next: at once after an event, until the period's share is used up, else a period after this
    /// one has begun.
    fn schedule(&mut self, has_event: bool, period: Duration, now: Instant64) {
        self.left = self.left.saturating_sub(1);
        if has_event && self.left > 0 {
            self.due = Some(now);
            return;
        }
        self.begun = now.max(self.begun.after(period));
        self.due = Some(self.begun);
        self.left = limits::SOURCE_BURST_MAX;
    }
}

impl Shared {
    /// Begins to pull from a supplier.
    pub(crate) fn connect_source(
        &self,
        proxy: u64,
        supplier: &PullSupplierRef,
    ) -> Result<(), SystemException> {
        self.sources
            .connect(self.weak(), proxy, supplier, self.now(), || {
                self.check_alive()?;
                self.settle(proxy)
            })
    }

    /// Pulls no longer from a supplier, and notifies it.
    pub(crate) fn disconnect_source(&self, proxy: u64) {
        let supplier = self.sources.disconnect(proxy);
        self.retire(proxy);
        if let Some(supplier) = supplier {
            notify(&supplier, "disconnect_pull_supplier");
        }
    }

    /// Takes what a supplier has returned.
    fn take_pulled(&self, proxy: u64, outcome: Outcome) {
        let period = self.options().pull_period;
        let noted = self.sources.note(proxy, &outcome, period, self.now());
        match (noted, outcome) {
            (Noted::Removed, _) => {
                self.counters.suppliers_lost.fetch_add(1, Relaxed);
                self.retire(proxy);
            }
            (Noted::Kept, Outcome::Event(event)) => {
                // The channel may be destroyed meanwhile; the event is lost with it.
                let _ = self.push(&mut Event::decoded(&self.deliveries, event));
            }
            (Noted::Kept | Noted::Unknown, _) => {}
        }
    }
}

fn understand(reply: AsynchronousReply) -> Outcome {
    let results = |r: &mut Reader<'_>| Ok((Any::parse(r)?, bool::parse(r)?));
    match reply.results(results) {
        Ok((event, true)) => Outcome::Event(event),
        Ok((_, false)) => Outcome::Nothing,
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
