//! Typed push consumers: a bounded queue each, and one thread that calls them all by asynchronous calls, one call of a
//! consumer at a time.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use deckwatch_cdr::Writer;
use deckwatch_orb::delivery::WhenFull;
use deckwatch_orb::{AsynchronousReply, ObjectRef, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, PiMutex};

use super::channel::Typed;
use super::event::{KeptEvent, TypedEvent};
use crate::cos::notify;
use crate::cos_event_comm::PushConsumerRef;
use crate::counters::Counters;
use crate::limits;
use crate::peers::Place;
use crate::raise::raise;
use crate::shared::ChannelOptions;

/// The consumers of one typed channel that are pushed to.
#[derive(Default)]
pub(super) struct TypedConsumers {
    list: PiMutex<List>,
    /// Rings for a consumer that may be called, and at the end.
    changed: Bell,
}

#[derive(Default)]
struct List {
    all: Vec<Consumer>,
    has_thread: bool,
    /// No consumer connects any more; the queued events are still pushed.
    is_closed: bool,
}

struct Consumer {
    /// The number of its proxy.
    proxy: u64,
    interface: usize,
    /// The object that has the operations, with the time limit of a call.
    object: ObjectRef,
    /// Notified of the end.
    reference: PushConsumerRef,
    _place: Place,
    queue: VecDeque<KeptEvent>,
    /// Octets of the queued events.
    held: usize,
    /// The event of the call under way. Its octets count until the reply.
    called: Option<KeptEvent>,
    /// Calls in a row that have failed.
    failures: u32,
}

/// A typed consumer that connects.
pub(super) struct Newcomer {
    pub(super) proxy: u64,
    pub(super) interface: usize,
    pub(super) object: ObjectRef,
    pub(super) reference: PushConsumerRef,
}

/// The result of one call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Taken,
    /// The event cannot be written for this consumer, which is not held against it.
    Unwritten,
    /// The consumer will never take an event again.
    Gone,
    Failed,
}

impl TypedConsumers {
    /// Adds a consumer if `admit` returns `Ok`. The first one starts the thread.
    ///
    /// # Errors
    /// NO_RESOURCES at the maximum or without a thread; the errors of `admit`.
    pub(super) fn connect(
        self: &Arc<Self>,
        typed: &Arc<Typed>,
        newcomer: Newcomer,
        admit: impl FnOnce() -> Result<Place, SystemException>,
    ) -> Result<(), SystemException> {
        let mut list = self.list.lock("event.typed");
        if list.all.len() >= limits::TYPED_CONSUMERS_MAX {
            return Err(raise(Kind::NoResources));
        }
        if !list.has_thread {
            let (consumers, typed) = (self.clone(), Arc::downgrade(typed));
            let thread = std::thread::Builder::new().name("channel-typed".to_owned());
            let started = thread.spawn(move || consumers.run(&typed));
            started.map_err(|_| raise(Kind::NoResources))?;
            list.has_thread = true;
        }
        let place = admit()?;
        list.all.push(Consumer {
            proxy: newcomer.proxy,
            interface: newcomer.interface,
            object: newcomer.object,
            reference: newcomer.reference,
            _place: place,
            queue: VecDeque::new(),
            held: 0,
            called: None,
            failures: 0,
        });
        Ok(())
    }

    /// Removes a consumer; its queued events are not pushed any more. Returns its reference if it was connected.
    pub(super) fn disconnect(&self, proxy: u64) -> Option<PushConsumerRef> {
        let mut list = self.list.lock("event.typed");
        let place = list.place(proxy)?;
        Some(list.all.swap_remove(place).reference)
    }

    /// Queues an event for each consumer of its interface. A full queue drops its oldest events or this one, by the
    /// policy; no consumer is disconnected by it.
    pub(super) fn offer(&self, event: &KeptEvent, options: &ChannelOptions, counters: &Counters) {
        let mut list = self.list.lock("event.typed");
        let interested = list.all.iter_mut();
        for consumer in interested.filter(|it| it.interface == event.event.interface) {
            let dropped = consumer.offer(event, options);
            counters.displaced.fetch_add(dropped, Relaxed);
        }
        drop(list);
        self.changed.ring();
    }

    /// Octets that the consumer with most of them has queued.
    pub(super) fn largest(&self) -> usize {
        let list = self.list.lock("event.typed");
        list.all.iter().map(|it| it.held).max().unwrap_or(0)
    }

    /// Drops the oldest events of the consumers that have so many octets queued. Returns false if there is none.
    pub(super) fn drop_oldest_of(&self, size: usize, counters: &Counters) -> bool {
        let mut list = self.list.lock("event.typed");
        let mut has_dropped = false;
        for consumer in list.all.iter_mut().filter(|it| it.held >= size) {
            if consumer.drop_oldest() {
                counters.displaced.fetch_add(1, Relaxed);
                has_dropped = true;
            }
        }
        has_dropped
    }

    /// Ends the channel. Each consumer is notified after its queued events.
    pub(super) fn close(&self) {
        self.list.lock("event.typed").is_closed = true;
        self.changed.ring();
    }

    /// Ends the thread; no consumer is notified.
    pub(super) fn abandon(&self) {
        let mut list = self.list.lock("event.typed");
        list.is_closed = true;
        let all = std::mem::take(&mut list.all);
        drop(list);
        drop(all);
        self.changed.ring();
    }

    /// Returns true once every consumer has been notified of the end.
    pub(super) fn have_ended(&self) -> bool {
        let list = self.list.lock("event.typed");
        list.is_closed && list.all.is_empty()
    }

    /// The body of the thread.
    fn run(&self, typed: &Weak<Typed>) {
        loop {
            let turn = self.changed.turn();
            // Released before the wait: the thread does not keep the channel alive.
            let goes_on = typed.upgrade().is_some_and(|typed| self.call_all(&typed));
            if !goes_on {
                return;
            }
            self.changed.wait(turn);
        }
    }

    /// Calls every consumer that has events and no call under way. Returns false once the channel has ended.
    fn call_all(&self, typed: &Arc<Typed>) -> bool {
        let (mut due, mut ended) = (Vec::new(), Vec::new());
        let goes_on = {
            let mut list = self.list.lock("event.typed");
            for consumer in list.all.iter_mut().filter(|it| it.called.is_none()) {
                if let Some(event) = consumer.take() {
                    due.push((consumer.proxy, consumer.object.clone(), event));
                }
            }
            if list.is_closed {
                let is_done = |it: &mut Consumer| it.called.is_none() && it.queue.is_empty();
                ended.extend(list.all.extract_if(.., is_done));
            }
            !(list.is_closed && list.all.is_empty())
        };
        for consumer in ended {
            notify(consumer.reference.object(), "disconnect_push_consumer");
        }
        for (proxy, object, event) in due {
            call(typed, proxy, &object, &event.event);
        }
        goes_on
    }

    /// Records the outcome of a call. Returns true if the consumer has been removed because of it.
    fn note(&self, proxy: u64, outcome: Outcome) -> bool {
        let mut list = self.list.lock("event.typed");
        let Some(place) = list.place(proxy) else {
            return false;
        };
        let consumer = &mut list.all[place];
        consumer.called = None;
        match outcome {
            Outcome::Taken => consumer.failures = 0,
            Outcome::Unwritten => {}
            Outcome::Gone => consumer.failures = limits::FAILURES_MAX,
            Outcome::Failed => consumer.failures += 1,
        }
        let is_removed = consumer.failures >= limits::FAILURES_MAX;
        if is_removed {
            list.all.swap_remove(place);
        }
        drop(list);
        self.changed.ring();
        is_removed
    }
}

impl List {
    fn place(&self, proxy: u64) -> Option<usize> {
        self.all.iter().position(|consumer| consumer.proxy == proxy)
    }
}

impl Consumer {
    /// Queues an event. Returns the number of events that it has dropped.
    fn offer(&mut self, event: &KeptEvent, options: &ChannelOptions) -> u64 {
        let mut dropped = 0;
        if self.queue.len() >= options.queue_len {
            if options.when_full == WhenFull::DropNewest {
                return 1;
            }
            dropped = u64::from(self.drop_oldest());
        }
        self.held += event.size();
        self.queue.push_back(Arc::clone(event));
        dropped
    }

    /// Returns false if no event is queued.
    fn drop_oldest(&mut self) -> bool {
        let Some(oldest) = self.queue.pop_front() else {
            return false;
        };
        self.held -= oldest.size();
        true
    }

    /// Takes the oldest event for a call.
    fn take(&mut self) -> Option<KeptEvent> {
        let event = self.queue.pop_front()?;
        self.held -= event.size();
        self.called = Some(Arc::clone(&event));
        Some(event)
    }
}

/// Calls an operation of a consumer, and returns without its reply.
fn call(typed: &Arc<Typed>, proxy: u64, object: &ObjectRef, event: &TypedEvent) {
    let operation = &typed.interfaces[event.interface].operations[event.operation];
    let is_unwritten = Cell::new(false);
    let write = |w: &mut Writer<'_>| {
        let mut values = event.arguments.0.iter();
        let written = values.try_for_each(|value| value.write_value(w));
        is_unwritten.set(written.is_err());
        written
    };
    let channel = Arc::downgrade(typed);
    let deliver = move |reply: AsynchronousReply| {
        if let Some(typed) = channel.upgrade() {
            typed.take_outcome(proxy, understand(reply));
        }
        Ok(())
    };
    let sent = object.send_callback(&operation.name, write, Some(Box::new(deliver)));
    match sent {
        Ok(()) => {}
        Err(_) if is_unwritten.get() => typed.take_outcome(proxy, Outcome::Unwritten),
        Err(exception) => typed.take_outcome(proxy, failed(exception)),
    }
}

impl Typed {
    fn take_outcome(&self, proxy: u64, outcome: Outcome) {
        let counters = &self.shared.counters;
        let counted = match outcome {
            Outcome::Taken => &counters.delivered,
            Outcome::Unwritten | Outcome::Gone | Outcome::Failed => &counters.failed,
        };
        counted.fetch_add(1, Relaxed);
        if self.consumers.note(proxy, outcome) {
            counters.consumers_lost.fetch_add(1, Relaxed);
            self.shared.objects.retire(proxy);
        }
    }
}

fn understand(reply: AsynchronousReply) -> Outcome {
    match reply.results(|_| Ok(())) {
        Ok(()) => Outcome::Taken,
        Err(holder) => failed(holder.raise_exception(|_, _| Ok(None))),
    }
}

fn failed(exception: SystemException) -> Outcome {
    match exception.kind {
        Kind::ObjectNotExist | Kind::InvObjref | Kind::BadOperation => Outcome::Gone,
        _ => Outcome::Failed,
    }
}
