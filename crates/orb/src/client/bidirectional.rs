//! Calls over a bidirectional connection: a thread of its lane reads the reply and hands it to the caller.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_giop::{ReplyStatus, Version};

use super::attempt::Attempt;
use super::call::{Call, CallKind};
use super::reply::Reply;
use super::request::{RequestExtras, write_request};
use super::retry::Failure;
use super::target::Target;
use super::times::require_end;
use super::{Client, Deadlines};
use crate::adapter::wait_permits::permit;
use crate::connection::bidirectional::Bidirectional;
use crate::connection::inbound::Arrived;
use crate::counters::Counter;
use crate::limits::ADDRESSINGS_MAX;
use crate::wire::{self, FromServer};
use crate::{Completion, SystemException, raise, raise::own};

/// Whether a call may be sent over a bidirectional connection.
#[inline]
pub(super) fn may_be_bidirectional(target: &Target, call: &Call<'_>) -> bool {
    target.way_back.is_some() || call.policies.is_bidirectional()
}

impl Attempt<'_> {
    /// The bidirectional connection of a call that may use one: the one that its reference arrived over or, if the
    /// policies in force ask for one, a connection opened for it.
    #[inline]
    pub(super) fn bidirectional(&self) -> Option<Result<Arc<Bidirectional>, Failure>> {
        if may_be_bidirectional(self.target, self.call) {
            self.find_bidirectional()
        } else {
            None
        }
    }

    #[cold]
    fn find_bidirectional(&self) -> Option<Result<Arc<Bidirectional>, Failure>> {
        let (client, target, call) = (self.client, self.target, self.call);
        let back = target.way_back.as_ref().and_then(|back| back.upgrade());
        if let Some(back) = back.filter(|back| back.is_open()) {
            return Some(Ok(back));
        }
        let offer = client
            .offer
            .get()
            .filter(|_| call.policies.is_bidirectional())?;
        if target.profile.codec().version < Version::V1_2 {
            return None;
        }
        let lane = offer.lane.upgrade()?;
        let now = client.transport.now();
        let deadlines = Deadlines::of(client, call, now);
        // Another thread may be connecting.
        let kept = client.lock_until(
            &target.binding.bidirectional,
            "client.bidirectional",
            deadlines.request,
        );
        let Some(mut kept) = kept else {
            let late = Failure::timed_out(client, own::TIMED_OUT_CONNECTING, Completion::No);
            return Some(Err(late));
        };
        if let Some(open) = kept.as_ref().filter(|open| open.is_open()) {
            return Some(Ok(Arc::clone(open)));
        }
        let opening = Attempt {
            may_reconnect: true,
            deadlines,
            ..*self
        };
        let connection = match opening.connect() {
            Ok(connection) => connection,
            Err(failure) => return Some(Err(failure)),
        };
        let opened = Arc::new(Bidirectional::new(Some(Arc::downgrade(&lane)), true));
        if !lane.take_in(connection.into_stream(), &opened) {
            let exception = raise::no_resources(0, Completion::No);
            return Some(Err(Failure::last(exception)));
        }
        *kept = Some(Arc::clone(&opened));
        Some(Ok(opened))
    }

    /// One request and its reply. TRANSIENT if the calling thread is the last one that could read it.
    pub(super) fn over_bidirectional(&self, over: &Bidirectional) -> Result<Reply, Failure> {
        let (client, target, call) = (self.client, self.target, self.call);
        let (lane, _) = over.owner().ok_or_else(Failure::closed)?;
        let _hold = permit(lane.patience_for_replies()).map_err(Failure::retriable)?;
        client.counters.count(Counter::RequestsSent);
        for _ in 0..ADDRESSINGS_MAX {
            require_end(client, call, self.deadlines.request)?;
            let id = over.next_id();
            let asked_in = target.profile.disposition();
            over.expect(id).map_err(Failure::bidirectional)?;
            if let Err(failure) = self.send_bidirectional(over, id) {
                forget(client, over, id);
                return Err(failure);
            }
            let reply = self.await_bidirectional(over, id)?;
            if reply.status() != ReplyStatus::NeedsAddressingMode {
                return Ok(reply);
            }
            let wanted = reply.into_wanted_addressing(client);
            if !wanted.is_some_and(|wanted| target.profile.address_by(wanted, asked_in)) {
                break;
            }
        }
        Err(Failure::addressing_refused())
    }

    /// Gives a request to the lane of the connection.
    pub(super) fn send_bidirectional(&self, over: &Bidirectional, id: u32) -> Result<(), Failure> {
        let (client, target, call) = (self.client, self.target, self.call);
        let Some((lane, key)) = over.owner() else {
            return Err(Failure::closed());
        };
        let is_first = !over.has_said.load(Ordering::Acquire);
        let offer = client
            .offer
            .get()
            .filter(|_| over.is_opened_here && is_first);
        let extras = RequestExtras {
            id,
            sends_code_sets: is_first,
            listen_points: offer.map(|offer| &*offer.points),
        };
        let mut buffer = client.slab.lend_empty();
        let written = write_request(&mut buffer, target, call, &extras, client.sizes);
        let sent = match written {
            Ok(()) if lane.write_over(key, &buffer) => {
                // A LocateRequest has no service contexts.
                if call.kind != CallKind::Locate {
                    over.has_said.store(true, Ordering::Release);
                }
                Ok(())
            }
            Ok(()) => Err(Failure::closed()),
            Err(error) => Err(Failure::last(SystemException::from(error))),
        };
        client.slab.take_back_written(buffer);
        sent
    }

    fn await_bidirectional(&self, over: &Bidirectional, id: u32) -> Result<Reply, Failure> {
        let (client, target) = (self.client, self.target);
        let deadline = self.deadlines.reply;
        let limit = deadline.map(|deadline| deadline.since(client.transport.now()));
        match over.wait(id, limit) {
            Ok(Some(arrived)) => read_reply(client, target, arrived),
            Ok(None) => {
                forget(client, over, id);
                cancel(client, over, target, id);
                Err(Failure::reply_timed_out(client))
            }
            Err(exception) => {
                client.counters.count(Counter::CommFailures);
                Err(Failure::bidirectional(exception))
            }
        }
    }
}

/// The reply in a message that the lane has read.
pub(super) fn read_reply(
    client: &Client,
    target: &Target,
    arrived: Arrived,
) -> Result<Reply, Failure> {
    match wire::parse_reply(&arrived.message(), &target.profile) {
        Ok(FromServer::Reply(head)) => Ok(Reply::read(arrived, head)),
        _ => {
            client.slab.take_back(arrived.buffer);
            Err(Failure::malformed(client, Counter::MalformedReplies))
        }
    }
}

/// The calling thread no longer waits for a reply.
fn forget(client: &Client, over: &Bidirectional, id: u32) {
    if let Some(late) = over.forget(id) {
        client.slab.take_back(late.buffer);
    }
}

/// Sends a CancelRequest.
pub(super) fn cancel(client: &Client, over: &Bidirectional, target: &Target, id: u32) {
    let Some((lane, key)) = over.owner() else {
        return;
    };
    let mut buffer = client.slab.lend_empty();
    let written = wire::write_cancel(&mut buffer, &target.profile, id, client.sizes);
    if written.is_ok() && lane.write_over(key, &buffer) {
        client.counters.count(Counter::CancelsSent);
    }
    client.slab.take_back_written(buffer);
}
