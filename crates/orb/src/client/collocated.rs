//! Calls of objects that this very ORB serves: marshalled once, dispatched by the calling thread through the adapter, read from
//! where the skeleton has written. No socket, no system call.

use std::sync::{Arc, Weak};

use deckwatch_cdr::Divided;

use super::call::{Attempt, Call, CallKind, Failure, Outcome, Reply};
use super::request::RequestExtras;
use super::{Client, Deadlines};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::reference::Target;
use crate::trace::{Direction, NO_CONNECTION};
use crate::transport::Instant64;
use crate::wire::{self, FromServer};
use crate::{Completion, SystemException, raise, raise::own};

/// The lane in which the calling thread may serve a call itself; none where the call goes over the network as any other.
///
/// The one place that decides it. Questions where an object is are asked of the network, since they are about it. One-ways that
/// must not wait are served here only where an active object can be called at once, and no earlier one is still under way.
#[inline]
pub(super) fn may_be_collocated(target: &Target, call: &Call<'_>) -> Option<Arc<Lane>> {
    let lane = target.here.as_ref()?;
    lane_here(lane, target, call)
}

fn lane_here(lane: &Weak<Lane>, target: &Target, call: &Call<'_>) -> Option<Arc<Lane>> {
    let lane = lane.upgrade()?;
    let may_be = match call.kind {
        CallKind::TwoWay => true,
        CallKind::Locate | CallKind::BindBand => false,
        CallKind::Oneway if target.binding.has_oneways() => false,
        CallKind::Oneway => {
            call.response.is_expected() || lane.serves_at_once(target.profile.object_key())
        }
    };
    may_be.then_some(lane)
}

impl Client {
    /// Has `lane` serve a call in this thread. Its deadline bounds what the call waits for; a servant is not interrupted, but
    /// results that come too late are not given.
    pub(super) fn serve_here(
        &self,
        lane: &Lane,
        attempt: &Attempt<'_>,
    ) -> Result<Outcome, Failure> {
        let (target, call, deadlines) = (attempt.target, attempt.call, &attempt.deadlines);
        self.require_time(deadlines.request, own::TIMED_OUT_SENDING, Completion::No)?;
        let request = self.marshal_for_here(target, call)?;
        let mut answer = self.slab.lend_empty();
        let codec = target.profile.codec();
        let served = lane.serve_here(&request, codec, deadlines.reply, &mut answer);
        self.slab.take_back_written(request);
        if let Err(exception) = served {
            self.slab.take_back_written(answer);
            return Err(Failure::last(exception));
        }
        self.trace
            .message(NO_CONNECTION, call.number, Direction::In, &answer);
        let reply = match wire::parse_reply(&Divided::new(&answer, &[]), &target.profile) {
            Ok(FromServer::Reply(head)) => Reply::written_here(answer, head),
            _ => {
                debug_assert!(false, "what a lane writes is a reply");
                let exception = raise::internal(0, Completion::Maybe);
                return Err(Failure::last(exception));
            }
        };
        match self.interpret(reply, call.flow).map_err(Failure::last)? {
            Outcome::Replied(reply) => {
                let is_late =
                    self.require_time(deadlines.reply, own::TIMED_OUT_WAITING, Completion::Yes);
                if let Err(failure) = is_late {
                    reply.give_back(self);
                    return Err(failure);
                }
                Ok(Outcome::Replied(reply))
            }
            forwarded @ Outcome::Forwarded(..) => Ok(forwarded),
        }
    }

    /// Has `lane` serve a one-way in this thread, whose caller does not hear what comes of it.
    pub(super) fn serve_oneway_here(
        &self,
        lane: &Lane,
        target: &Target,
        call: &Call<'_>,
    ) -> Result<(), Failure> {
        if call.is_timed() {
            let now = self.transport.now();
            self.start(call, now, Deadlines::of(self, call, now))
                .map_err(Failure::last)?;
        }
        let request = self.marshal_for_here(target, call)?;
        let mut answer = self.slab.lend_empty();
        let _for_nobody = lane.serve_here(&request, target.profile.codec(), None, &mut answer);
        self.slab.take_back_written(request);
        self.slab.take_back_written(answer);
        Ok(())
    }

    fn marshal_for_here(&self, target: &Target, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        self.counters.count(Counter::CollocatedCalls);
        let mut buffer = self.slab.lend_empty();
        let extras = RequestExtras {
            id: self.next_collocated(),
            sends_code_sets: false,
            listen_points: None,
        };
        if let Err(error) = self.write_request(&mut buffer, target, call, &extras) {
            self.slab.take_back_written(buffer);
            return Err(Failure::last(SystemException::from(error)));
        }
        self.trace
            .message(NO_CONNECTION, call.number, Direction::Out, &buffer);
        Ok(buffer)
    }

    fn require_time(
        &self,
        deadline: Option<Instant64>,
        minor: u32,
        completed: Completion,
    ) -> Result<(), Failure> {
        match deadline {
            Some(deadline) if self.transport.now() >= deadline => {
                Err(Failure::last(self.timed_out(minor, completed)))
            }
            _ => Ok(()),
        }
    }
}
