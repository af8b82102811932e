//! One asynchronous call, from its request until its reply is taken.

mod reply_source;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use deckwatch_cdr::{Codec, EncodeError, Writer};
use deckwatch_giop::invocation::Times;
use deckwatch_giop::{Ior, Response};
use deckwatch_sync::{PiMutex, PiMutexGuard};

use super::Replies;
use crate::call_side::CallSide;
use crate::client::redirect::trace_raised;
use crate::client::retry::{Failure, may_rebind, may_return_to_origin};
use crate::client::times::reply_start;
use crate::client::{Call, CallKind, Client, Deadlines, Outcome, Reply, with_current_targets};
use crate::counters::Counter;
use crate::interceptor::{Ending, LastAttempt, begin_asynchronous};
use crate::limits::FORWARDS_MAX;
use crate::policy::Overrides;
use crate::reference::{Inner, Routes};
use crate::rt::Priority;
use crate::trace::CallNumber;
use crate::transport::Instant64;
use crate::wire::By;
use crate::{Completion, SystemException, current, minor, raise, raise::own};
use reply_source::Place;
pub(crate) use reply_source::ReplySource;

/// An asynchronous call: sent, or ended.
pub(crate) struct Outstanding {
    orb: Arc<CallSide>,
    origin: Arc<Inner>,
    operation: Box<str>,
    marshalled: MarshalledArguments,
    policies: Overrides,
    times: Option<Times>,
    priority: Option<Priority>,
    number: CallNumber,
    deadlines: Deadlines,
    /// The reference had reached its server when the call was made.
    is_bound: bool,
    /// For interceptors.
    last_attempt: LastAttempt,
    state: PiMutex<State>,
}

/// The arguments, to send them again.
struct MarshalledArguments {
    octets: Vec<u8>,
    codec: Codec,
}

#[derive(Default)]
struct State {
    place: Option<Place>,
    end: Option<End>,
    /// A reply that arrived before its start, when it becomes the end.
    early: Option<End>,
    /// The reply has been taken.
    is_taken: bool,
    handler: Option<Handler>,
    /// Where a retry goes, if not to the reference's own addresses.
    forward: Option<(Ior, bool)>,
    moves: usize,
    /// It cannot be sent again: the new target needs another codec or alignment than the kept arguments have.
    is_unsendable: bool,
}

/// What a call ended in.
pub(crate) enum End {
    /// Results or a user exception.
    Replied(Reply),
    Raised(SystemException),
}

/// Is called with the end.
pub(crate) type Handler = Box<dyn FnOnce(&Arc<CallSide>, End) + Send>;

impl Outstanding {
    /// Sends the request of `call`. `handler`, if there is one, gets the end.
    ///
    /// # Errors
    /// NO_RESOURCES above [`crate::limits::OUTSTANDING_MAX`]; the exception that kept the request from being sent.
    pub(crate) fn send(
        orb: &Arc<CallSide>,
        origin: &Arc<Inner>,
        call: &Call<'_>,
        handler: Option<Handler>,
    ) -> Result<Arc<Self>, SystemException> {
        let client = &orb.client;
        let replies = client.replies(orb)?;
        replies.rise_to(call.priority);
        if !client.outstanding.take(1) {
            return Err(raise::no_resources(0, Completion::No));
        }
        let current = origin.current();
        let now = client.transport.now();
        let deadlines = Deadlines::of(client, call, now);
        let mut outstanding = Self {
            orb: Arc::clone(orb),
            origin: Arc::clone(origin),
            operation: call.operation.into(),
            marshalled: MarshalledArguments {
                octets: Vec::new(),
                codec: Codec::DEFAULT,
            },
            policies: *call.policies,
            times: call.times.copied(),
            priority: call.priority,
            number: call.number,
            deadlines,
            is_bound: current.is_bound(),
            last_attempt: LastAttempt::default(),
            state: PiMutex::new(State {
                handler,
                ..State::default()
            }),
        };
        deadlines.await_start(client, call, now)?;
        let codec =
            with_current_targets(client, origin, call, |targets| targets[0].profile.codec())?;
        outstanding.keep(codec, call)?;
        let outstanding = Arc::new(outstanding);
        outstanding
            .send_first(&replies, call)
            .inspect_err(|exception| trace_raised(client, origin, call, *exception))?;
        replies.note_deadline(&outstanding);
        Ok(outstanding)
    }

    /// Sends it to the reference's addresses, or to where an interceptor forwards it.
    fn send_first(
        self: &Arc<Self>,
        replies: &Replies,
        call: &Call<'_>,
    ) -> Result<(), SystemException> {
        for _ in 0..FORWARDS_MAX {
            let origin = self.origin.current();
            let forwarded = origin.forwarded();
            let routes = match &forwarded {
                Some(routes) => &**routes,
                None => origin.routes()?,
            };
            let Some((ior, _)) = self.intercept(replies, origin, routes, call)? else {
                return Ok(());
            };
            origin.remember(Some(Arc::new(origin.resolve(&ior)?)));
        }
        Err(raise::transient(own::FORWARD_CIRCLE, Completion::No))
    }

    /// Makes one attempt at the addresses of `routes`, past the interceptors. Returns where one of those forwards it,
    /// if one does.
    fn intercept(
        self: &Arc<Self>,
        replies: &Replies,
        origin: &Inner,
        routes: &Routes,
        call: &Call<'_>,
    ) -> Result<Option<(Ior, bool)>, SystemException> {
        let client = &self.orb.client;
        let targets = routes.choose(client, call)?;
        let Some(all) = client.interceptors.client() else {
            return self.dispatch(replies, targets, call).map(|()| None);
        };
        let call = Call {
            last_attempt: Some(&self.last_attempt),
            ..*call
        };
        begin_asynchronous(
            client,
            all,
            self.key(),
            (origin, &targets[0]),
            &call,
            |call| self.dispatch(replies, targets, call),
        )
    }

    /// Its key among the attempts that interceptors see.
    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// What its reply, or its failure, means once the interceptors have seen it.
    fn outcome(&self, replied: Result<Reply, SystemException>) -> Result<Outcome, SystemException> {
        let client = &self.orb.client;
        match client.interceptors.client() {
            None => replied?.into_outcome(client),
            Some(all) => all.asynchronous.end(client, self.key(), replied),
        }
    }

    /// Its reply has arrived.
    pub(super) fn take_reply(self: &Arc<Self>, replies: &Replies, reply: Reply) {
        let outcome = self.outcome(Ok(reply));
        self.conclude(replies, outcome);
    }

    /// It will have no reply.
    pub(super) fn fail(self: &Arc<Self>, replies: &Replies, exception: SystemException) {
        let outcome = self.outcome(Err(exception));
        self.conclude(replies, outcome);
    }

    /// Its attempt failed in a retriable way.
    pub(super) fn retry(self: &Arc<Self>, replies: &Replies) {
        match self.end_interception(&Ending::Retry) {
            None => self.move_to(replies, None),
            Some(changed) => self.conclude(replies, changed.into_outcome()),
        }
    }

    /// Passes interceptors that see the call their ending points, without a reply. Returns what they changed the end
    /// into.
    fn end_interception(&self, ending: &Ending) -> Option<Ending> {
        let all = self.orb.client.interceptors.client()?;
        all.asynchronous.end_without_reply(self.key(), ending)
    }

    fn conclude(self: &Arc<Self>, replies: &Replies, outcome: Result<Outcome, SystemException>) {
        match outcome {
            Ok(Outcome::Replied(reply)) => self.finish(replies, End::Replied(reply)),
            Ok(Outcome::Forwarded(ior, is_for_good)) => {
                self.move_to(replies, Some((ior, is_for_good)));
            }
            Err(exception) => self.finish(replies, End::Raised(exception)),
        }
    }

    fn keep(&mut self, codec: Codec, call: &Call<'_>) -> Result<(), SystemException> {
        let mut octets = Vec::new();
        let mut writer = Writer::new(&mut octets)
            .with_codec(codec)
            .with_limit(self.orb.client.sizes.message_max);
        call.arguments.write_whole(&mut writer)?;
        self.marshalled = MarshalledArguments { octets, codec };
        Ok(())
    }

    pub(super) const fn deadlines(&self) -> Deadlines {
        self.deadlines
    }

    pub(super) const fn number(&self) -> CallNumber {
        self.number
    }

    /// Queues a retry: at the forwarded-to addresses, or at the reference's own.
    pub(super) fn move_to(self: &Arc<Self>, replies: &Replies, forward: Option<(Ior, bool)>) {
        if forward.is_some() && !may_rebind(&self.policies, self.is_bound) {
            let rebind = raise::rebind(minor::NONE, Completion::No);
            return self.finish(replies, End::Raised(rebind));
        }
        let mut state = self.state.lock("call.state");
        state.moves += 1;
        if state.moves > FORWARDS_MAX {
            drop(state);
            let circle = raise::transient(own::FORWARD_CIRCLE, Completion::No);
            return self.finish(replies, End::Raised(circle));
        }
        state.forward = forward;
        drop(state);
        replies.queue(|jobs| jobs.moves.push_back(Arc::clone(self)));
    }

    /// Makes a queued retry.
    pub(super) fn go_elsewhere(self: &Arc<Self>, orb: &Arc<CallSide>, replies: &Replies) {
        if self.has_ended() {
            return;
        }
        current::enter_strong(orb);
        let is_misplaced = Cell::new(false);
        let write = By::new(|w: &mut Writer<'_>| {
            // Before GIOP 1.2 the arguments' alignment differs from message to message.
            if w.codec() != self.marshalled.codec || w.phase() != 0 {
                is_misplaced.set(true);
                return Err(EncodeError::TypeMismatch);
            }
            w.write_last_octets(&self.marshalled.octets)
        });
        let call = Call {
            operation: &self.operation,
            arguments: &write,
            response: Response::Outcome,
            kind: CallKind::TwoWay,
            policies: &self.policies,
            times: self.times.as_ref(),
            priority: self.priority,
            number: self.number,
            contexts: &[],
            last_attempt: None,
        };
        if let Err(exception) = self.send_again(replies, &call) {
            self.state.lock("call.state").is_unsendable = is_misplaced.get();
            self.finish(replies, End::Raised(exception));
        }
    }

    fn send_again(
        self: &Arc<Self>,
        replies: &Replies,
        call: &Call<'_>,
    ) -> Result<(), SystemException> {
        let forward = self.state.lock("call.state").forward.take();
        let mut origin = self.origin.current();
        let mut routes = origin.forwarded();
        if let Some((ior, is_for_good)) = forward {
            let named = Arc::new(origin.resolve(&ior)?);
            if is_for_good && let Some(successor) = origin.give_way(&ior, &named) {
                (origin, routes) = (successor, None);
            } else {
                origin.remember(Some(Arc::clone(&named)));
                routes = Some(named);
            }
        }
        let mut sent = routes.map(|routes| self.intercept(replies, origin, &routes, call));
        if let Some(Err(exception)) = sent
            && may_return_to_origin(exception)
        {
            origin.remember(None);
            sent = None;
        }
        let sent = match sent {
            Some(sent) => sent,
            None => self.intercept(replies, origin, origin.routes()?, call),
        };
        if let Some(elsewhere) = sent? {
            self.move_to(replies, Some(elsewhere));
        }
        Ok(())
    }

    /// Ends it, unless it has ended before.
    pub(super) fn finish(self: &Arc<Self>, replies: &Replies, end: End) {
        let client = &self.orb.client;
        match &end {
            End::Replied(_) => self.origin.current().bind(),
            End::Raised(exception) if client.trace.is_on() => {
                let key = self.origin.current().key().unwrap_or_default();
                client
                    .trace
                    .raised(self.number, &self.operation, key, *exception);
            }
            End::Raised(_) => {}
        }
        let mut state = self.state.lock("call.state");
        state.place = None;
        if state.end.is_some() || state.is_taken {
            drop(state);
            return end.give_back(&self.orb);
        }
        if let End::Replied(_) = end
            && let Some(start) = reply_start(client, self.times.as_ref())
        {
            state.early = Some(end);
            drop(state);
            return replies.note_start(self, start);
        }
        let never_given = state.early.take();
        self.show(state, replies, end);
        if let Some(early) = never_given {
            early.give_back(&self.orb);
        }
    }

    /// The start of its early reply has come.
    pub(super) fn begin_reply(self: &Arc<Self>, replies: &Replies) {
        let mut state = self.state.lock("call.state");
        if let Some(end) = state.early.take() {
            self.show(state, replies, end);
        }
    }

    /// Makes its end visible to waiting threads and its handler.
    fn show(self: &Arc<Self>, mut state: PiMutexGuard<'_, State>, replies: &Replies, end: End) {
        state.end = Some(end);
        let has_handler = state.handler.is_some();
        drop(state);
        replies.queue(|jobs| {
            jobs.ended += 1;
            if has_handler {
                jobs.add_call(Arc::clone(self));
            }
        });
    }

    /// Its deadline has passed.
    pub(super) fn expire(self: &Arc<Self>, client: &Client, replies: &Replies) {
        if self.has_ended() {
            return;
        }
        self.give_up();
        self.fail(replies, Failure::reply_timed_out(client).exception);
    }

    /// No caller waits for it any more.
    pub(crate) fn abandon(&self) {
        let mut state = self.state.lock("call.state");
        state.is_taken = true;
        state.handler = None;
        let ends = [state.end.take(), state.early.take()];
        drop(state);
        let _ = self.end_interception(&Ending::Abandoned); // Nobody waits for it.
        self.give_up();
        for end in ends.into_iter().flatten() {
            end.give_back(&self.orb);
        }
    }

    /// Whether its end can be taken, or has been.
    pub(crate) fn has_ended(&self) -> bool {
        let state = self.state.lock("call.state");
        state.end.is_some() || state.is_taken
    }

    pub(crate) fn is_taken(&self) -> bool {
        self.state.lock("call.state").is_taken
    }

    /// Whether the caller must make the call anew, with the arguments it still has.
    pub(crate) fn is_unsendable(&self) -> bool {
        self.state.lock("call.state").is_unsendable
    }

    /// How long until its deadline.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let now = self.orb.client.transport.now();
        self.deadlines.reply.map(|reply| reply.since(now))
    }

    pub(crate) fn has_handler(&self) -> bool {
        self.state.lock("call.state").handler.is_some()
    }

    /// Takes its end, for good.
    pub(crate) fn take(&self) -> Option<End> {
        let mut state = self.state.lock("call.state");
        let end = state.end.take();
        state.is_taken |= end.is_some();
        end
    }

    /// Waits until it has ended. Returns false if it has not by `until`.
    ///
    /// # Errors
    /// As [`Replies::wait`].
    pub(crate) fn wait(&self, until: Option<Instant64>) -> Result<bool, SystemException> {
        let Some(replies) = self.orb.client.replies_made() else {
            return Ok(self.has_ended());
        };
        replies.wait(
            &self.orb,
            until,
            || self.has_ended(),
            || self.reply_source(),
        )
    }

    /// Sets the handler that gets its end; without one, a caller takes it.
    pub(crate) fn set_handler(self: &Arc<Self>, handler: Option<Handler>) {
        let mut state = self.state.lock("call.state");
        let is_due = handler.is_some() && state.end.is_some();
        state.handler = handler;
        drop(state);
        if is_due && let Some(replies) = self.orb.client.replies_made() {
            replies.queue(|jobs| jobs.add_call(Arc::clone(self)));
        }
    }

    /// Calls the handler, if there still is one.
    pub(super) fn call_handler(&self, orb: &CallSide) {
        let mut state = self.state.lock("call.state");
        if state.handler.is_none() || state.end.is_none() {
            return;
        }
        let (handler, end) = (state.handler.take(), state.end.take());
        state.is_taken = true;
        drop(state);
        current::enter_strong(&self.orb);
        let _at_its_priority = self.orb.lend_priority(self.priority);
        if let (Some(handler), Some(end)) = (handler, end)
            && catch_unwind(AssertUnwindSafe(|| handler(&self.orb, end))).is_err()
        {
            orb.client.counters.count(Counter::CallbacksFailed);
        }
    }

    pub(crate) const fn orb(&self) -> &Arc<CallSide> {
        &self.orb
    }

    pub(crate) fn operation(&self) -> &str {
        &self.operation
    }

    /// Its caller's priority, if that had one.
    pub(super) const fn priority(&self) -> Option<Priority> {
        self.priority
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        let mut state = self.state.lock("call.state");
        let ends = [state.end.take(), state.early.take()];
        drop(state);
        for end in ends.into_iter().flatten() {
            end.give_back(&self.orb);
        }
        if let Some(all) = self.orb.client.interceptors.client() {
            all.asynchronous.forget(self.key());
        }
        self.orb.client.outstanding.give(1);
    }
}

impl End {
    fn give_back(self, orb: &CallSide) {
        if let Self::Replied(reply) = self {
            reply.give_back(&orb.client);
        }
    }
}
