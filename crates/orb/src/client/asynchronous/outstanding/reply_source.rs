//! Where an asynchronous call waits for its reply: on the shared connection of such calls, or on a bidirectional one.

use std::sync::Arc;

use deckwatch_giop::ReplyStatus;

use super::Outstanding;
use crate::call_side::CallSide;
use crate::client::asynchronous::{Replies, SharedConnection};
use crate::client::attempt::Attempt;
use crate::client::bidirectional::{cancel, read_reply};
use crate::client::retry::{Failure, first_of, may_reconnect};
use crate::client::times::require_end;
use crate::client::{Call, Reply, Target};
use crate::connection::bidirectional::{Bidirectional, Owner, ReplySink};
use crate::connection::inbound::Arrived;
use crate::counters::Counter;
use crate::life_state::Life;
use crate::transport::Instant64;
use crate::{SystemException, minor, raise};

/// The connection that carries a request and its reply.
#[derive(Clone)]
pub(crate) enum ReplySource {
    Shared(Arc<SharedConnection>),
    /// A thread of its lane reads it.
    Bidirectional(Arc<Bidirectional>),
}

/// Where it waits.
pub(in crate::client::asynchronous) struct Place {
    source: ReplySource,
    target: Target,
    id: u32,
    /// How the object was addressed.
    asked_in: u16,
}

impl ReplySource {
    /// The lane that reads it, if a lane does.
    pub(in crate::client::asynchronous) fn lane(&self) -> Option<Arc<dyn Owner>> {
        match self {
            Self::Shared(_) => None,
            Self::Bidirectional(over) => over.owner().map(|(lane, _)| lane),
        }
    }

    /// Reads what arrives on it, waiting at most `until`: for an ORB without a reading thread.
    pub(in crate::client::asynchronous) fn read_until(
        &self,
        orb: &CallSide,
        replies: &Replies,
        until: Option<Instant64>,
    ) {
        match self {
            Self::Shared(connection) => connection.read_until(&orb.client, replies, until),
            Self::Bidirectional(over) => {
                let patience = until.map(|until| until.since(orb.client.transport.now()));
                if let Some((lane, _)) = over.owner() {
                    lane.turn_by_hand(patience);
                }
            }
        }
    }
}

impl ReplySink for Outstanding {
    /// Leaves the reply to the reading thread: a lane's thread has no time for it.
    fn bring(self: Arc<Self>, got: Result<Arrived, SystemException>) {
        let orb = Arc::clone(&self.orb);
        if let Some(replies) = orb.client.replies_made() {
            replies.bring(self, got);
        }
    }
}

impl Outstanding {
    /// Sends it to the first of `targets` that can be reached.
    pub(super) fn dispatch(
        self: &Arc<Self>,
        replies: &Replies,
        targets: &[Target],
        call: &Call<'_>,
    ) -> Result<(), SystemException> {
        let client = &self.orb.client;
        let may_reconnect = may_reconnect(call.policies, self.is_bound);
        first_of(targets, |target| {
            let attempt = Attempt {
                client,
                target,
                call,
                may_reconnect,
                deadlines: self.deadlines,
            };
            match attempt.bidirectional() {
                Some(found) => found.and_then(|over| self.send_over(&over, &attempt)),
                None => self.send_shared(replies, &attempt),
            }
        })
    }

    /// Over the shared connection. If that turns out to be closed, once over a new one.
    fn send_shared(
        self: &Arc<Self>,
        replies: &Replies,
        attempt: &Attempt<'_>,
    ) -> Result<(), Failure> {
        let mut is_second = false;
        loop {
            let connection = replies.connection(attempt)?;
            let Err(failure) = connection.send(self, attempt) else {
                return Ok(());
            };
            self.leave_place();
            if !failure.may_retry || is_second {
                return Err(failure);
            }
            attempt.client.counters.count(Counter::StaleConnections);
            is_second = true;
        }
    }

    fn send_over(
        self: &Arc<Self>,
        over: &Arc<Bidirectional>,
        attempt: &Attempt<'_>,
    ) -> Result<(), Failure> {
        let client = attempt.client;
        require_end(client, attempt.call, self.deadlines.request)?;
        let id = over.next_id();
        self.set_place(
            ReplySource::Bidirectional(Arc::clone(over)),
            attempt.target,
            id,
        );
        // Registered before it is sent: the reply may arrive before `send_bidirectional` returns.
        let expected = over.expect_for(id, Arc::clone(self) as Arc<dyn ReplySink>);
        client.counters.count(Counter::RequestsSent);
        let sent = expected
            .map_err(Failure::retriable)
            .and_then(|()| attempt.send_bidirectional(over, id));
        let Err(failure) = sent else { return Ok(()) };
        let is_notified = expected.is_ok() && !over.forget_call(id);
        if is_notified {
            // The call has been notified of the connection's end already.
            return Ok(());
        }
        self.leave_place();
        Err(failure)
    }

    pub(in crate::client::asynchronous) fn set_place(
        &self,
        source: ReplySource,
        target: &Target,
        id: u32,
    ) {
        self.state.lock("call.state").place = Some(Place {
            source,
            target: target.clone(),
            id,
            asked_in: target.profile.disposition(),
        });
    }

    /// It no longer waits. Returns where it did.
    pub(in crate::client::asynchronous) fn leave_place(&self) -> Option<Place> {
        self.state.lock("call.state").place.take()
    }

    /// The connection it waits on.
    pub(crate) fn reply_source(&self) -> Option<ReplySource> {
        let state = self.state.lock("call.state");
        state.place.as_ref().map(|place| place.source.clone())
    }

    /// Abandons the request, with a CancelRequest.
    pub(super) fn give_up(&self) {
        let client = &self.orb.client;
        let Some(Place {
            source, target, id, ..
        }) = self.leave_place()
        else {
            return;
        };
        match source {
            ReplySource::Shared(connection) => connection.give_up(client, &target, id),
            ReplySource::Bidirectional(over) => {
                if over.forget_call(id) {
                    cancel(client, &over, &target, id);
                }
            }
        }
    }

    /// Takes a reply that a lane has read, or the end of its connection.
    pub(in crate::client::asynchronous) fn take_arrived(
        self: &Arc<Self>,
        replies: &Replies,
        got: Result<Arrived, SystemException>,
    ) {
        let client = &self.orb.client;
        let place = self.leave_place();
        match (got, place) {
            (Ok(arrived), None) => {
                client.counters.count(Counter::LateReplies);
                client.slab.take_back(arrived.buffer);
            }
            (Ok(arrived), Some(place)) => match read_reply(client, &place.target, arrived) {
                Ok(reply) => self.take_answer(replies, Some(place), reply),
                Err(failure) => self.fail(replies, failure.exception),
            },
            (Err(exception), _) if self.orb.life.get() != Life::Lives => {
                let ended = raise::bad_inv_order(minor::ORB_SHUT_DOWN, exception.completed);
                self.fail(replies, ended);
            }
            (Err(exception), _) => {
                client.counters.count(Counter::CommFailures);
                if Failure::bidirectional(exception).may_retry {
                    self.retry(replies);
                } else {
                    self.fail(replies, exception);
                }
            }
        }
    }

    /// Its reply has arrived. NEEDS_ADDRESSING_MODE is retried.
    pub(in crate::client::asynchronous) fn take_answer(
        self: &Arc<Self>,
        replies: &Replies,
        place: Option<Place>,
        reply: Reply,
    ) {
        if reply.status() != ReplyStatus::NeedsAddressingMode {
            return self.take_reply(replies, reply);
        }
        let client = &self.orb.client;
        let wanted = reply.into_wanted_addressing(client);
        let obeys = place.zip(wanted).is_some_and(|(place, wanted)| {
            let profile = &place.target.profile;
            profile.address_by(wanted, place.asked_in)
        });
        if obeys {
            self.retry(replies);
        } else {
            self.fail(replies, Failure::addressing_refused().exception);
        }
    }
}
