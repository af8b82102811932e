//! One-ways with SYNC_NONE: the caller queues them and returns; one thread for each endpoint sends them in their order.
//!
//! A thread that sends another one-way to that endpoint sends the queued ones first: the order of calls is kept
//! whatever their sync scope.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use deckwatch_cdr::{Codec, EncodeError, Version, Writer};
use deckwatch_giop::Response;
use deckwatch_giop::invocation::Times;
use deckwatch_sync::{BoundedQueue, PiMutex, Popped, PushError};

use super::attempt::Attempt;
use super::bidirectional::may_be_bidirectional;
use super::binding::Binding;
use super::call::{Call, CallKind};
use super::collocated::may_be_collocated;
use super::connection::ClientConnection;
use super::oneway::send_unwatched;
use super::redirect::{trace_raised, with_current_targets};
use super::retry::{Failure, may_reconnect};
use super::target::Target;
use super::{Client, Deadlines};
use crate::call_side::CallSide;
use crate::contexts::ExtraContext;
use crate::counters::Counter;
use crate::interceptor::intercept_oneway;
use crate::limits::{DRAIN_TIMEOUT, QUEUED_ONEWAYS_MAX, QUEUED_ONEWAYS_SIZE_MAX};
use crate::policy::Overrides;
use crate::reference::Inner;
use crate::rt::{Priority, current};
use crate::trace::CallNumber;
use crate::wire::By;
use crate::{Completion, SystemException, minor, raise};

/// The one-ways that are queued for one endpoint.
pub(super) struct Outbox {
    queued: PiMutex<VecDeque<QueuedOneway>>,
    /// Octets that are queued.
    size: AtomicUsize,
    /// Rings when something is queued.
    bell: Arc<BoundedQueue<()>>,
}

/// A marshalled one-way.
struct QueuedOneway {
    orb: Arc<CallSide>,
    object: Arc<Inner>,
    /// It is sent to the first of them.
    targets: Arc<[Target]>,
    policies: Overrides,
    times: Option<Times>,
    priority: Option<Priority>,
    number: CallNumber,
    codec: Codec,
    /// The arguments, then the operation's name.
    buffer: Vec<u8>,
    arguments_len: usize,
    /// Service contexts that interceptors have added.
    contexts: Vec<ExtraContext>,
}

/// Queues a one-way, past the interceptors if there are any (SYNC_NONE). Some are sent at once instead: before GIOP 1.2
/// arguments cannot be marshalled apart from their message, an ORB that is turned by hand has no threads, and a queued
/// one-way must not wait for its start.
///
/// # Errors
/// The caller's own faults; TRANSIENT if [`QUEUED_ONEWAYS_MAX`] or [`QUEUED_ONEWAYS_SIZE_MAX`] are queued.
pub(crate) fn post_oneway(
    orb: &Arc<CallSide>,
    origin: &Arc<Inner>,
    call: &Call<'_>,
) -> Result<(), SystemException> {
    let client = &orb.client;
    match client.interceptors.client() {
        None => post(orb, origin, call),
        Some(all) => intercept_oneway(client, all, origin, call, |call| post(orb, origin, call)),
    }
}

fn post(orb: &Arc<CallSide>, origin: &Arc<Inner>, call: &Call<'_>) -> Result<(), SystemException> {
    let client = &orb.client;
    let targets = with_current_targets(client, origin, call, Arc::clone)?;
    let target = &targets[0];
    if may_be_collocated(target, call).is_some() {
        return send_unwatched(client, origin, call);
    }
    let (binding, codec) = (&target.binding, target.profile.codec());
    let is_due = call.times.is_none_or(|times| times.request_start.is_none());
    let may_wait = is_due && !orb.is_turned_by_hand() && !may_be_bidirectional(target, call);
    let outbox = (codec.version == Version::V1_2 && may_wait)
        .then(|| binding.outbox())
        .flatten();
    let Some(outbox) = outbox else {
        return send_unwatched(client, origin, call);
    };
    let mut buffer = client.slab.lend_empty();
    let mut writer = Writer::new(&mut buffer)
        .with_codec(codec)
        .with_limit(client.sizes.message_max);
    if let Err(error) = call.arguments.write_whole(&mut writer) {
        client.slab.take_back_written(buffer);
        return Err(error.into());
    }
    let arguments_len = buffer.len();
    buffer.extend_from_slice(call.operation.as_bytes());
    let oneway = QueuedOneway {
        orb: Arc::clone(orb),
        object: Arc::clone(origin),
        targets: Arc::clone(&targets),
        policies: *call.policies,
        times: call.times.copied(),
        priority: call.priority,
        number: call.number,
        codec,
        buffer,
        arguments_len,
        contexts: call.contexts.to_vec(),
    };
    let has_sender = outbox.post(oneway).map_err(|buffer| {
        client.slab.take_back_written(buffer);
        client.counters.count(Counter::OnewaysLost);
        raise::transient(minor::REQUEST_DISCARDED, Completion::No)
    })?;
    if !has_sender {
        binding.send_queued(|| true);
    }
    Ok(())
}

impl Outbox {
    /// An empty queue and the thread that sends from it.
    fn start(binding: &Arc<Binding>) -> Option<Self> {
        let bell = Arc::new(BoundedQueue::with_capacity(1));
        let (binding, rings) = (Arc::downgrade(binding), Arc::clone(&bell));
        let thread = std::thread::Builder::new().name("orb-sender".to_owned());
        thread.spawn(move || send_posted(&binding, &rings)).ok()?;
        Some(Self {
            queued: PiMutex::new(VecDeque::with_capacity(QUEUED_ONEWAYS_MAX)),
            size: AtomicUsize::new(0),
            bell,
        })
    }

    /// Queues a one-way. Returns whether the thread will send it: after the ORB's end it will not, and a one-way that
    /// stayed queued would keep the ORB alive. If the queue is full, returns the buffer.
    fn post(&self, oneway: QueuedOneway) -> Result<bool, Vec<u8>> {
        let size = oneway.buffer.len();
        let mut queued = self.queued.lock("outbox.post");
        let held = self.size.load(Ordering::Relaxed);
        if queued.len() >= QUEUED_ONEWAYS_MAX
            || (held != 0 && held + size > QUEUED_ONEWAYS_SIZE_MAX)
        {
            drop(queued);
            return Err(oneway.buffer);
        }
        self.size.store(held + size, Ordering::Relaxed);
        queued.push_back(oneway);
        drop(queued);
        Ok(!matches!(self.bell.push(()), Err(PushError::Closed(()))))
    }

    fn take(&self) -> Option<QueuedOneway> {
        let mut queued = self.queued.lock("outbox.take");
        let oneway = queued.pop_front()?;
        self.size.fetch_sub(oneway.buffer.len(), Ordering::Relaxed);
        Some(oneway)
    }

    fn len(&self) -> usize {
        self.queued.lock("outbox.len").len()
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.bell.close();
    }
}

fn send_posted(binding: &Weak<Binding>, bell: &BoundedQueue<()>) {
    while let Popped::Value(()) = bell.pop(None) {
        let Some(binding) = binding.upgrade() else {
            return;
        };
        binding.send_queued(|| true);
    }
}

impl Binding {
    /// The queue; the first use starts its thread. `None` if the thread could not be started.
    fn outbox(self: &Arc<Self>) -> Option<&Outbox> {
        let made = self.outbox.get_or_init(|| Outbox::start(self));
        made.as_ref()
    }

    /// Sends queued one-ways while `in_time`, and drops the rest. What cannot be sent to its first address is sent to
    /// the others of its reference.
    fn send_queued(&self, in_time: impl Fn() -> bool) {
        let Some(Some(outbox)) = self.outbox.get() else {
            return;
        };
        let mut at_priority = None;
        loop {
            let mut kept = self.oneway.lock("outbox.send");
            let Some(oneway) = outbox.take() else {
                return;
            };
            if oneway.priority != current::priority() {
                drop(at_priority.take());
                at_priority = oneway.orb.lend_priority(oneway.priority);
            }
            let sent = if in_time() {
                oneway.send(&mut kept)
            } else {
                let discarded = raise::transient(minor::REQUEST_DISCARDED, Completion::No);
                Err(Failure::last(discarded))
            };
            drop(kept);
            oneway.settle(sent, true);
        }
    }

    /// Sends what was queued when the calling thread, which sends a one-way behind that, got the turn.
    pub(super) fn send_queued_before(&self, kept: &mut Option<ClientConnection>) {
        let Some(Some(outbox)) = self.outbox.get() else {
            return;
        };
        for _ in 0..outbox.len() {
            let Some(oneway) = outbox.take() else {
                return;
            };
            let sent = oneway.send(kept);
            oneway.settle(sent, false);
        }
    }

    /// Whether anything is queued.
    pub(super) fn has_queued(&self) -> bool {
        matches!(self.outbox.get(), Some(Some(outbox)) if outbox.len() != 0)
    }

    /// Ends the thread.
    pub(super) fn close_outbox(&self) {
        if let Some(Some(outbox)) = self.outbox.get() {
            outbox.bell.close();
        }
    }
}

impl QueuedOneway {
    /// Calls `then` with the call as its caller made it.
    fn with_call<T>(&self, then: impl FnOnce(&Call<'_>) -> T) -> T {
        let (arguments, operation) = self.buffer.split_at(self.arguments_len);
        let write = By::new(|w: &mut Writer<'_>| {
            // Under another codec the arguments would be misread.
            if w.codec() != self.codec || w.phase() != 0 {
                return Err(EncodeError::TypeMismatch);
            }
            w.write_last_octets(arguments)
        });
        then(&Call {
            operation: std::str::from_utf8(operation).unwrap_or_default(),
            arguments: &write,
            response: Response::Nothing,
            kind: CallKind::Oneway,
            policies: &self.policies,
            times: self.times.as_ref(),
            priority: self.priority,
            number: self.number,
            contexts: &self.contexts,
            last_attempt: None,
        })
    }

    fn send(&self, kept: &mut Option<ClientConnection>) -> Result<(), Failure> {
        let client = &self.orb.client;
        let is_bound = self.object.current().is_bound();
        self.with_call(|call| {
            let deadlines = if call.needs_time() {
                Deadlines::of(client, call, client.transport.now())
            } else {
                Deadlines::NONE
            };
            Attempt {
                client,
                target: &self.targets[0],
                call,
                may_reconnect: may_reconnect(call.policies, is_bound),
                deadlines,
            }
            .send_over(kept)
        })
    }

    fn settle(self, sent: Result<(), Failure>, may_go_elsewhere: bool) {
        let client = &self.orb.client;
        match sent {
            Ok(()) => self.object.current().bind(),
            Err(failure) if failure.may_retry && may_go_elsewhere && self.targets.len() > 1 => {
                // Nobody waits for it; losses are counted and traced.
                let _ = self.with_call(|call| send_unwatched(client, &self.object, call));
            }
            Err(failure) => {
                client.counters.count(Counter::OnewaysLost);
                self.with_call(|call| trace_raised(client, &self.object, call, failure.exception));
            }
        }
        client.slab.take_back_written(self.buffer);
    }
}

/// Sends all that is queued, and ends the threads. What is not sent within [`DRAIN_TIMEOUT`] is dropped.
pub(super) fn close_outboxes(client: &Client, bindings: &[Arc<Binding>]) {
    let until = client.transport.now().after(DRAIN_TIMEOUT);
    for binding in bindings {
        binding.send_queued(|| client.transport.now() < until);
        binding.close_outbox();
    }
}
