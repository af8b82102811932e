//! Requests over a bidirectional connection, which are served one after the other from its request queue.

use std::sync::atomic::Ordering;

use super::{Behind, WaitingRequest};
use crate::budget::OverBudget;
use crate::connection::{Arrived, Left, Reading, RequestQueue};
use crate::counters::Counter;
use crate::lane::service::Service;
use crate::limits::REQUEST_QUEUE_TURN;
use crate::wire::{self, Kind};

impl<'l> Service<'l> {
    /// Serves a request over a bidirectional connection, or queues it. `arrived` gives the message a buffer of its own:
    /// the connection's if its argument is true, else a copy.
    pub(crate) fn serve_bidirectional(
        self,
        requests: &RequestQueue,
        mut reading: Reading<'l>,
        kind: Kind,
        arrived: impl FnOnce(&mut Reading<'l>, bool) -> Result<Arrived, OverBudget>,
        unread: &mut bool,
    ) -> Result<Reading<'l>, Left> {
        let io = &self.lane.io;
        if kind == Kind::TwoWay && requests.is_idle() {
            let arrived = arrived(&mut reading, true);
            let arrived = arrived.map_err(|OverBudget| self.connection.refuse_memory(io))?;
            return self.serve_two_way(reading, arrived, unread);
        }
        let is_first = requests.enter();
        let arrived = arrived(&mut reading, is_first).map_err(|OverBudget| {
            if is_first {
                // The queue is empty: this thread holds the claim to read.
                let _ = self.connection.leave_queue(io);
            }
            self.connection.refuse_memory(io)
        })?;
        self.connection.begin_serving();
        let first = if is_first {
            arrived
        } else {
            match self.queue(requests, arrived)? {
                Some(first) => first,
                None => return Ok(reading),
            }
        };
        if let Some(room) = self.lane.room_kept_here() {
            self.admit(room, first, Behind::Queue);
            return Ok(reading);
        }
        self.connection.release_reading(io, reading, unread);
        let busy = self.lane.note_busy();
        let served = self.serve_queue(self.of_queue(first));
        drop(busy);
        served?;
        self.connection.reclaim()
    }

    fn of_queue(self, arrived: Arrived) -> WaitingRequest {
        WaitingRequest {
            key: self.connection.key(),
            arrived,
            behind: Behind::Queue,
        }
    }

    /// Queues a request behind the one that is served, or refuses it if there is no room. Returns it if there is none
    /// before it any more.
    fn queue(self, requests: &RequestQueue, mut arrived: Arrived) -> Result<Option<Arrived>, Left> {
        let (lane, connection) = (self.lane, self.connection);
        let octets = arrived.size();
        let is_full = requests.is_full();
        if is_full || !lane.take_queued(connection, &mut arrived) {
            if !is_full && lane.waiting.limits().is_none() {
                connection.end_serving(1);
                return Err(connection.refuse_memory(&lane.io));
            }
            self.refuse(&arrived);
            lane.io.slab.take_back(arrived.buffer);
            connection.end_serving(1);
            return Ok(None);
        }
        let first = requests.join(arrived);
        if first.is_some() {
            lane.give_queued(octets);
            return Ok(first);
        }
        lane.io.count(Counter::RequestsBuffered);
        // SYNC: by the lock of the queue: the thread that closed the connection has taken the request out, or we see
        // that the connection is closed.
        if lane.connections.pin(connection.key()).is_none() {
            self.forget_queue();
        }
        Ok(None)
    }

    /// Ends the request that is served. Returns the next of its queue, which counts in the limits until
    /// [`crate::lane::Lane::give_queued`].
    pub(super) fn leave_queue(self) -> Option<WaitingRequest> {
        let next = self.connection.leave_queue(&self.lane.io)?;
        Some(self.of_queue(next))
    }

    /// Serves a request that waited, and those behind it in its request queue as long as nothing else waits for the
    /// thread.
    ///
    /// # Errors
    /// [`Left::Ended`]: the connection cannot go on.
    pub(super) fn serve_queue(self, first: WaitingRequest) -> Result<(), Left> {
        let lane = self.lane;
        let mut next = Some(first);
        let mut turns = 0;
        while let Some(mut waiting) = next {
            let is_queued = waiting.behind == Behind::Queue;
            if is_queued && wire::kind_of_joined(&waiting.arrived.message()) == Kind::TwoWay {
                // Nothing waits behind a two-way request.
                waiting.behind = Behind::Nothing;
                if let Some(behind) = self.leave_queue() {
                    self.enlist(behind);
                }
            }
            let message = waiting.arrived.message();
            let served = lane.server.answer(&message, &self);
            let served = served.map_err(|why| self.give_up(why));
            next = self.finish(waiting);
            if served.is_err() || lane.closing.load(Ordering::Acquire) {
                self.discard_queue(next);
                return served;
            }
            turns += 1;
            let room = lane.waiting.room.as_ref();
            let is_wanted = room.is_some_and(|room| !room.is_empty());
            if let Some(behind) = next.take_if(|_| turns == REQUEST_QUEUE_TURN || is_wanted) {
                self.enlist(behind);
            }
            if let Some(next) = &next {
                lane.give_queued(next.arrived.size());
            }
        }
        Ok(())
    }

    /// Has the head of a queue wait for a thread. It counts in the limits as it did in the queue, except where only
    /// borrowed threads are waited for.
    fn enlist(self, mut head: WaitingRequest) {
        let lane = self.lane;
        if let Some(room) = &lane.waiting.room {
            let octets = head.arrived.size();
            let order = lane.order_of(&head.arrived);
            let pushed = if room.may_wait {
                room.push_counted(order, head)
            } else {
                let pushed = room.push(order, head, self.connection.account(), &lane.io.slab);
                pushed.inspect(|()| lane.give_queued(octets))
            };
            match pushed {
                Ok(()) => return lane.handle_queued(),
                Err(back) => head = back,
            }
        }
        debug_assert!(self.connection.is_serving());
        lane.waiting.heads.push(head);
        lane.handle_queued();
    }

    /// At the end of the lane or of a connection: discards `first`, which is the one that is served, and those behind
    /// it.
    pub(super) fn discard_queue(self, mut first: Option<WaitingRequest>) {
        while let Some(waiting) = first {
            self.lane.io.count(Counter::RequestsDiscarded);
            self.lane.give_queued(waiting.arrived.size());
            first = self.finish(waiting);
        }
    }

    /// The connection is closed: discards the requests that wait in its queue without a thread.
    pub(crate) fn forget_queue(self) {
        if let Some(requests) = self.connection.requests() {
            let forgotten = self.lane.discard_requests(requests);
            self.connection.end_serving(forgotten);
        }
    }
}
