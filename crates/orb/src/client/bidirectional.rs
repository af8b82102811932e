//! Calls over a connection that both sides ask over: whichever thread of its lane reads the reply gives it to the caller.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_giop::{ReplyStatus, Version};

use super::call::{Attempt, Call, CallKind, Failure, Outcome, Reply};
use super::request::RequestExtras;
use super::{Client, Deadlines};
use crate::adapter::permit;
use crate::connection::Arrived;
use crate::connection::bidirectional::Bidirectional;
use crate::counters::Counter;
use crate::limits::ADDRESSINGS_MAX;
use crate::reference::Target;
use crate::transport::Instant64;
use crate::wire::{self, FromServer};
use crate::{Completion, SystemException, raise, raise::own};

impl Client {
    /// The connection that a call goes over where that is one of both sides: the one that its reference came over, or, by the
    /// policy in force, one that is opened for it.
    #[inline]
    pub(super) fn two_way(
        &self,
        target: &Target,
        call: &Call<'_>,
    ) -> Option<Result<Arc<Bidirectional>, Failure>> {
        match may_be_two_way(target, call) {
            true => self.find_two_way(target, call),
            false => None,
        }
    }

    #[cold]
    fn find_two_way(
        &self,
        target: &Target,
        call: &Call<'_>,
    ) -> Option<Result<Arc<Bidirectional>, Failure>> {
        let back = target.way_back.as_ref().and_then(|back| back.upgrade());
        if let Some(back) = back.filter(|back| back.is_open()) {
            return Some(Ok(back));
        }
        let offer = self
            .offer
            .get()
            .filter(|_| call.policies.is_bidirectional())?;
        if target.profile.codec().version < Version::V1_2 {
            return None;
        }
        let lane = offer.lane.upgrade()?;
        let now = self.transport.now();
        let deadlines = Deadlines::of(self, call, now);
        // Another caller may be connecting.
        let kept = self.lock_until(
            &target.binding.bidirectional,
            "client.two_way",
            deadlines.request,
        );
        let Some(mut kept) = kept else {
            let exception = self.timed_out(own::TIMED_OUT_CONNECTING, Completion::No);
            return Some(Err(Failure::last(exception)));
        };
        if let Some(open) = kept.as_ref().filter(|open| open.is_open()) {
            return Some(Ok(Arc::clone(open)));
        }
        let attempt = Attempt {
            target,
            call,
            may_reconnect: true,
            deadlines,
        };
        let connection = match self.connect_for(&attempt) {
            Ok(connection) => connection,
            Err(failure) => return Some(Err(failure)),
        };
        let two_way = Arc::new(Bidirectional::new(Arc::downgrade(&lane), true));
        if !lane.take_in(connection.into_stream(), &two_way) {
            let exception = raise::no_resources(0, Completion::No);
            return Some(Err(Failure::last(exception)));
        }
        *kept = Some(Arc::clone(&two_way));
        Some(Ok(two_way))
    }

    /// One request and its reply. TRANSIENT where the calling thread is the last that could read it.
    pub(super) fn exchange_two_way(
        &self,
        two_way: &Bidirectional,
        attempt: &Attempt<'_>,
    ) -> Result<Outcome, Failure> {
        let (target, call, deadlines) = (attempt.target, attempt.call, &attempt.deadlines);
        let (lane, _) = two_way.lane().ok_or_else(|| of_the_way(closed()))?;
        let _hold = permit(lane.patience_for_replies()).map_err(Failure::of_the_way)?;
        self.counters.count(Counter::RequestsSent);
        for _ in 0..ADDRESSINGS_MAX {
            self.require_end(call, deadlines.request)?;
            let id = two_way.next_id();
            let asked_in = target.profile.disposition();
            two_way.expect(id).map_err(of_the_way)?;
            if let Err(failure) = self.send_two_way(two_way, target, call, id) {
                self.forget_two_way(two_way, id);
                return Err(failure);
            }
            let reply = self.await_two_way(two_way, target, id, deadlines.reply)?;
            if reply.status() != ReplyStatus::NeedsAddressingMode {
                return self.interpret(reply, call.flow).map_err(Failure::last);
            }
            self.counters.count(Counter::Readdressings);
            let wanted = wire::read_disposition(reply.body(&reply.message()));
            reply.give_back(self);
            if !wanted.is_some_and(|wanted| target.profile.address_by(wanted, asked_in)) {
                break;
            }
        }
        let exception = raise::comm_failure(own::ADDRESSING_REFUSED, Completion::No);
        Err(Failure::last(exception))
    }

    /// Hands a request to the lane of the connection.
    pub(super) fn send_two_way(
        &self,
        two_way: &Bidirectional,
        target: &Target,
        call: &Call<'_>,
        id: u32,
    ) -> Result<(), Failure> {
        let Some((lane, key)) = two_way.lane() else {
            return Err(of_the_way(closed()));
        };
        let says = !two_way.has_said.load(Ordering::Acquire);
        let offer = self.offer.get().filter(|_| two_way.is_opened_here && says);
        let extras = RequestExtras {
            id,
            sends_code_sets: says,
            listen_points: offer.map(|offer| &*offer.points),
        };
        let mut buffer = self.slab.lend_empty();
        let written = self.write_request(&mut buffer, target, call, &extras);
        let sent = match written {
            Ok(()) if lane.write_bidirectional(key, &buffer) => {
                // A question where the object is has no service contexts.
                if call.kind != CallKind::Locate {
                    two_way.has_said.store(true, Ordering::Release);
                }
                Ok(())
            }
            Ok(()) => Err(of_the_way(closed())),
            Err(error) => Err(Failure::last(SystemException::from(error))),
        };
        self.slab.take_back_written(buffer);
        sent
    }

    fn await_two_way(
        &self,
        two_way: &Bidirectional,
        target: &Target,
        id: u32,
        deadline: Option<Instant64>,
    ) -> Result<Reply, Failure> {
        let limit = deadline.map(|deadline| deadline.since(self.transport.now()));
        match two_way.wait(id, limit) {
            Ok(Some(arrived)) => self.read_two_way(target, arrived),
            Ok(None) => {
                self.forget_two_way(two_way, id);
                self.cancel_two_way(two_way, target, id);
                Err(self.waited_in_vain())
            }
            Err(exception) => {
                self.counters.count(Counter::CommFailures);
                Err(of_the_way(exception))
            }
        }
    }

    pub(super) fn read_two_way(&self, target: &Target, arrived: Arrived) -> Result<Reply, Failure> {
        let head = match wire::parse_reply(&arrived.message(), &target.profile) {
            Ok(FromServer::Reply(head)) => head,
            _ => {
                self.slab.take_back(arrived.buffer);
                self.counters.count(Counter::MalformedReplies);
                let malformed = raise::comm_failure(own::REPLY_MALFORMED, Completion::Maybe);
                return Err(Failure::last(malformed));
            }
        };
        Ok(Reply::read(arrived, head))
    }

    fn forget_two_way(&self, two_way: &Bidirectional, id: u32) {
        if let Some(late) = two_way.forget(id) {
            self.slab.take_back(late.buffer);
        }
    }

    pub(super) fn cancel_two_way(&self, two_way: &Bidirectional, target: &Target, id: u32) {
        let Some((lane, key)) = two_way.lane() else {
            return;
        };
        let mut buffer = self.slab.lend_empty();
        let written = wire::write_cancel(&mut buffer, &target.profile, id, self.sizes);
        if written.is_ok() && lane.write_bidirectional(key, &buffer) {
            self.counters.count(Counter::CancelsSent);
        }
        self.slab.take_back_written(buffer);
    }
}

/// Whether a call may go over a connection of both sides.
#[inline]
pub(super) fn may_be_two_way(target: &Target, call: &Call<'_>) -> bool {
    target.way_back.is_some() || call.policies.is_bidirectional()
}

fn closed() -> SystemException {
    raise::comm_failure(own::CONNECTION_CLOSED, Completion::No)
}

/// What was certainly not served may be asked over another connection.
fn of_the_way(exception: SystemException) -> Failure {
    match exception.completed {
        Completion::No => Failure::of_the_way(exception),
        _ => Failure::last(exception),
    }
}
