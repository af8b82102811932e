//! What the keeper of a lane does with a request: the request waits for a thread, or is refused at once.

use deckwatch_giop::{LocateStatus, Message};

use super::{Behind, WaitingRequest, WaitingRoom};
use crate::connection::{Arrived, Reading};
use crate::contexts::written::echoed_priority;
use crate::counters::Counter;
use crate::lane::service::Service;
use crate::wire;
use crate::{Completion, raise, raise::own};

impl<'l> Service<'l> {
    /// Whether parsing must stop: a one-way of the connection waits for a thread, or the calling keeper has no thread
    /// in sight for what it would parse. The thread that ends that hands the connection over.
    #[inline]
    pub(crate) fn must_leave(self, room: &WaitingRoom, reading: &mut Reading<'l>) -> bool {
        let is_parked = self.connection.is_parked();
        let is_hopeless = self.lane.room_kept_here().is_some() && !self.lane.may_keeper_read(room);
        if !is_parked && !is_hopeless {
            return false;
        }
        self.connection.excuse(reading);
        if !is_parked {
            self.connection.hand_over(&self.lane.io);
        }
        true
    }

    /// Queues a two-way request, which its connection counts as in progress.
    pub(crate) fn admit_two_way(self, room: &WaitingRoom, arrived: Arrived) {
        self.admit(room, arrived, Behind::Nothing);
    }

    /// Queues a message, behind which its connection is not parsed.
    pub(crate) fn admit_in_order(self, room: &WaitingRoom, arrived: Arrived) {
        self.connection.park();
        self.connection.begin_serving();
        self.admit(room, arrived, Behind::Connection);
    }

    /// Queues a request, or refuses it and the requests behind it in its request queue.
    pub(super) fn admit(self, room: &WaitingRoom, arrived: Arrived, behind: Behind) {
        let order = self.lane.order_of(&arrived);
        let waiting = WaitingRequest {
            key: self.connection.key(),
            arrived,
            behind,
        };
        let refused = room.push(
            order,
            waiting,
            self.connection.account(),
            &self.lane.io.slab,
        );
        let mut refused = refused.err();
        while let Some(waiting) = refused {
            self.refuse(&waiting.arrived);
            refused = self.finish(waiting);
            match &refused {
                Some(next) => self.lane.give_queued(next.arrived.size()),
                None => return,
            }
        }
        self.lane.io.count(Counter::RequestsBuffered);
        self.lane.handle_queued();
    }

    /// Refuses a request because no thread can serve it soon: its caller gets TRANSIENT at once. A one-way is lost, and
    /// counted.
    pub(super) fn refuse(self, arrived: &Arrived) {
        let (io, connection) = (&self.lane.io, self.connection);
        io.count(Counter::RequestsRefused);
        match Message::parse_joined(&arrived.message()) {
            Ok(Message::Request(mut request)) => {
                // The first request of a connection sets its code sets, refused or not.
                let full = raise::transient(own::LANE_FULL, Completion::No);
                let agreed = connection.agree_on_code_sets(&mut request);
                let exception = agreed.err().unwrap_or(full);
                if !request.response.is_expected() {
                    return;
                }
                let echoed = echoed_priority(&request);
                let contexts = echoed.as_slice();
                connection.write_with(io, |reply| {
                    wire::exception_reply(reply, &request, exception, contexts, io.sizes);
                });
            }
            Ok(Message::LocateRequest(request)) => {
                // A request would be refused here and nowhere else.
                let here = LocateStatus::ObjectHere;
                connection.write_with(io, |reply| {
                    wire::locate_reply(reply, request.version, request.id, here, None);
                });
            }
            _ => {}
        }
    }

    /// A request that waited is done. Returns the next of its request queue, if it was in one: that one is served from
    /// here on, and counts in the limits until [`crate::lane::Lane::give_queued`].
    pub(super) fn finish(self, waiting: WaitingRequest) -> Option<WaitingRequest> {
        let (io, connection) = (&self.lane.io, self.connection);
        io.slab.take_back(waiting.arrived.buffer);
        let mut next = None;
        match waiting.behind {
            Behind::Nothing => {}
            Behind::Connection => connection.unpark(),
            Behind::Queue => next = self.leave_queue(),
        }
        connection.end_serving(1);
        if connection.is_done() {
            self.lane.close(waiting.key, connection);
        } else if waiting.behind == Behind::Connection {
            connection.hand_over(io);
        }
        next
    }

    /// The client has cancelled a request: discards it if it waits for its start time. It gets no reply.
    pub(crate) fn cancel_early(self, id: u32) {
        let early = &self.lane.waiting.early;
        if let Some(waiting) = early.take_cancelled(self.connection.key(), id) {
            self.lane.io.count(Counter::RequestsDiscarded);
            // Nothing is queued behind it.
            let _ = self.finish(waiting);
        }
    }
}
