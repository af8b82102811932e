//! A connection that many requests share; replies come in any order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use deckwatch_sync::{PiMutex, PiMutexGuard};

use super::{Outstanding, Replies, ReplySource};
use crate::budget::OverBudget;
use crate::client::abandoned::Cancel;
use crate::client::attempt::Attempt;
use crate::client::connection::ClientConnection;
use crate::client::receive::{exhausted, misread, no_reply};
use crate::client::retry::Failure;
use crate::client::{Client, Reply, Target};
use crate::connection::inbound::{Arrived, Inbound};
use crate::counters::Counter;
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, Source, Stream, TransportError};
use crate::wire::{self, FromServer, Profile};
use crate::{Completion, raise, raise::own};

/// A connection to one endpoint with its requests.
pub(crate) struct SharedConnection {
    token: u64,
    number: u32,
    stream: Arc<dyn Stream>,
    /// That of one target: all targets here have the same endpoint and code sets.
    profile: Profile,
    /// Held by the writing thread.
    sending: PiMutex<ClientConnection>,
    /// Held by the reading thread.
    inbound: PiMutex<Inbound>,
    waiting: PiMutex<HashMap<u32, Arc<Outstanding>>>,
    /// The id of the last request.
    issued: AtomicU32,
    /// When it was last used.
    used: AtomicU64,
    has_ended: AtomicBool,
}

impl SharedConnection {
    pub(super) fn new(
        connection: ClientConnection,
        token: u64,
        target: &Target,
        size_max: usize,
    ) -> Self {
        Self {
            token,
            number: connection.life.number,
            stream: Arc::clone(&connection.stream),
            profile: target.profile.clone(),
            used: AtomicU64::new(connection.last_used.0),
            sending: PiMutex::new(connection),
            inbound: PiMutex::new(Inbound::new(size_max, None)),
            waiting: PiMutex::default(),
            issued: AtomicU32::new(0),
            has_ended: AtomicBool::new(false),
        }
    }

    pub(super) fn token(&self) -> u64 {
        self.token
    }

    pub(super) fn source(&self) -> Source<'_> {
        self.stream.source()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    /// When it will have been unused for `limit`, unless it is used before.
    pub(super) fn idle_due(&self, limit: Duration) -> Instant64 {
        Instant64(self.used.load(Ordering::Relaxed)).after(limit)
    }

    /// Ends the connection if it was unused for `limit` and no thread is sending. Returns whether it did.
    pub(super) fn end_idle(&self, now: Instant64, limit: Duration) -> bool {
        let is_unused = || {
            let used = Instant64(self.used.load(Ordering::Relaxed));
            now.since(used) >= limit && self.waiting.lock("client.waiting").is_empty()
        };
        if !is_unused() {
            return false;
        }
        let sending = self.sending.try_lock("client.shared");
        let is_idle = sending.is_some() && is_unused();
        if is_idle {
            self.cut();
        }
        is_idle
    }

    fn sending(&self, client: &Client, until: Option<Instant64>) -> Result<Sending<'_>, Failure> {
        let taken = client.lock_until(&self.sending, "client.shared", until);
        taken.ok_or_else(|| Failure::timed_out(client, own::TIMED_OUT_SENDING, Completion::No))
    }

    /// Sends the request of a call, which is notified of the reply or of the connection's end.
    pub(super) fn send(
        self: &Arc<Self>,
        waiting: &Arc<Outstanding>,
        attempt: &Attempt<'_>,
    ) -> Result<(), Failure> {
        let (client, target) = (attempt.client, attempt.target);
        let until = attempt.deadlines.request;
        let mut sending = self.sending(client, until)?;
        let id = sending.request_id.wrapping_add(1);
        waiting.set_place(ReplySource::Shared(Arc::clone(self)), target, id);
        // Registered before it is sent: the reply may arrive before `send` returns.
        self.waiting
            .lock("client.waiting")
            .insert(id, Arc::clone(waiting));
        self.issued.store(id, Ordering::Relaxed);
        let now = client.transport.now();
        self.used.store(now.0, Ordering::Relaxed);
        let sent = if self.has_ended() {
            let closed = raise::comm_failure(own::SEND_FAILED, Completion::No);
            Err(Failure::retriable(closed))
        } else {
            client.counters.count(Counter::RequestsSent);
            sending.send(client, target, attempt.call, until).map(drop)
        };
        let Err(failure) = sent else { return Ok(()) };
        if !failure.keeps_connection {
            self.cut();
        }
        match self.waiting.lock("client.waiting").remove(&id) {
            Some(_) => Err(failure),
            // The reading thread has found the connection's end first, and has notified the call.
            None => Ok(()),
        }
    }

    /// Abandons a request; sends a CancelRequest if that needs no waiting.
    pub(super) fn give_up(&self, client: &Client, target: &Target, id: u32) {
        if self.waiting.lock("client.waiting").remove(&id).is_some()
            && let Some(sending) = self.sending.try_lock("client.shared")
            && sending.cancel(client, &target.profile, id) == Cancel::Cut
        {
            self.cut();
        }
    }

    /// Nothing can follow what was written.
    fn cut(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.stream.shutdown();
    }

    /// Reads until nothing more has arrived.
    pub(super) fn read_what_came(&self, client: &Client, replies: &Replies) {
        let Some(mut inbound) = self.inbound.try_lock("client.shared") else {
            return;
        };
        loop {
            let Ok(space) = inbound.space(&client.slab) else {
                return self.end(client, replies, &Failure::lost(client));
            };
            match self.stream.read_now(space) {
                Ok(None) => return inbound.rest(&client.slab),
                Ok(Some(0)) | Err(_) => {
                    inbound.discard(&client.slab);
                    return self.end(client, replies, &Failure::lost(client));
                }
                Ok(Some(count)) => inbound.handle_bytes(count),
            }
            if let Err(failure) = self.take_messages(client, replies, &mut inbound) {
                inbound.discard(&client.slab);
                return self.end(client, replies, &failure);
            }
        }
    }

    /// Reads once, waiting at most `until`: for a waiting thread of an ORB without a reading thread.
    pub(super) fn read_until(&self, client: &Client, replies: &Replies, until: Option<Instant64>) {
        let Some(mut inbound) = self.inbound.try_lock("client.shared") else {
            return;
        };
        let Ok(space) = inbound.space(&client.slab) else {
            return self.end(client, replies, &Failure::lost(client));
        };
        let read = match self.stream.read(space, until) {
            Err(TransportError::TimedOut) => return inbound.rest(&client.slab),
            Ok(count) if count != 0 => {
                inbound.handle_bytes(count);
                self.take_messages(client, replies, &mut inbound)
            }
            Ok(_) | Err(_) => Err(Failure::lost(client)),
        };
        match read {
            Ok(()) => inbound.rest(&client.slab),
            Err(failure) => {
                inbound.discard(&client.slab);
                self.end(client, replies, &failure);
            }
        }
    }

    fn take_messages(
        &self,
        client: &Client,
        replies: &Replies,
        inbound: &mut Inbound,
    ) -> Result<(), Failure> {
        let misread = |fault| misread(client, self.number, fault);
        while let Some(place) = inbound.poll_message().map_err(misread)? {
            let octets = inbound.message(place.clone());
            client
                .trace
                .message(self.number, CallNumber::default(), Direction::In, octets);
            let arrived = if wire::is_fragmented(octets) {
                match inbound.join(place, &client.slab).map_err(misread)? {
                    Some(joined) => joined,
                    None => continue,
                }
            } else {
                let arrived = inbound.detach(place, &client.slab);
                arrived.map_err(|OverBudget| exhausted(client))?
            };
            self.take_message(client, replies, arrived)?;
        }
        Ok(())
    }

    fn take_message(
        &self,
        client: &Client,
        replies: &Replies,
        arrived: Arrived,
    ) -> Result<(), Failure> {
        let head = match wire::parse_reply(&arrived.message(), &self.profile) {
            Ok(FromServer::Reply(head)) => head,
            other => {
                client.slab.take_back(arrived.buffer);
                return Err(no_reply(client, self.number, other));
            }
        };
        // Before the call is removed: `end_idle` checks both.
        let now = client.transport.now();
        self.used.store(now.0, Ordering::Relaxed);
        let waiting = self.waiting.lock("client.waiting").remove(&head.id);
        let Some(waiting) = waiting else {
            let is_late = self.issued.load(Ordering::Relaxed).wrapping_sub(head.id) < u32::MAX / 2;
            client.counters.count(if is_late {
                Counter::LateReplies
            } else {
                Counter::RepliesToNobody
            });
            client.slab.take_back(arrived.buffer);
            return Ok(());
        };
        let place = waiting.leave_place();
        let reply = Reply::read(arrived, head);
        waiting.take_answer(replies, place, reply);
        Ok(())
    }

    /// Ends the connection. The calls that wait on it are retried if `failure` allows it, else they fail.
    pub(super) fn end(&self, client: &Client, replies: &Replies, failure: &Failure) {
        self.cut();
        let waiting = std::mem::take(&mut *self.waiting.lock("client.waiting"));
        for call in waiting.into_values() {
            call.leave_place();
            client
                .trace
                .attempt_failed(self.number, call.number(), failure.exception, false);
            if failure.may_retry {
                call.retry(replies);
            } else {
                call.fail(replies, failure.exception);
            }
        }
    }
}

type Sending<'c> = PiMutexGuard<'c, ClientConnection>;
