//! How threads wait for asynchronous calls. In an ORB that is turned by hand the waiting thread reads the replies.

use std::sync::Arc;
use std::time::Duration;

use super::super::Client;
use super::{Replies, ReplySource};
use crate::SystemException;
use crate::adapter::wait_permits::{Patience, permit};
use crate::call_side::CallSide;
use crate::connection::bidirectional::Owner;
use crate::transport::{Instant64, monotonic_after};

impl Replies {
    /// Does the work of both threads in an ORB that is turned by hand. Returns whether there was any.
    pub(crate) fn turn(&self, orb: &Arc<CallSide>) -> bool {
        let before = self.jobs.lock("replies.jobs").ended;
        let event = self
            .poller
            .is_pending()
            .then(|| self.poller.wait(Some(Duration::ZERO)));
        let event = event.flatten();
        if let Some(event) = event {
            self.handle(&orb.client, event.token);
        }
        let has_arrived = self.take_arrived();
        self.expire(&orb.client);
        let job = self.jobs.lock("replies.jobs").take();
        let has_job = job.is_some();
        if let Some(job) = job {
            job(orb, self);
        }
        has_job || has_arrived || event.is_some() || self.jobs.lock("replies.jobs").ended != before
    }

    /// Whether [`Replies::turn`] would find work, in an ORB that is turned by hand.
    pub(crate) fn is_pending(&self, client: &Client) -> bool {
        let has_jobs = || !self.jobs.lock("replies.jobs").is_empty();
        self.is_by_hand && (self.poller.is_pending() || has_jobs() || self.has_due(client))
    }

    /// Waits until `is_over`. Returns false if that is not so by `until`. `reads`: what one of the calls waits on;
    /// the calling thread reads it if no other one does.
    ///
    /// # Errors
    /// TRANSIENT if the calling thread is the last one that could read the reply.
    pub(crate) fn wait(
        &self,
        orb: &Arc<CallSide>,
        until: Option<Instant64>,
        is_over: impl Fn() -> bool,
        reads: impl Fn() -> Option<ReplySource>,
    ) -> Result<bool, SystemException> {
        let client = &orb.client;
        // Without a reading thread, what has arrived is read even if the caller does not wait.
        while self.is_by_hand && !is_over() && self.turn(orb) {}
        let is_late = || until.is_some_and(|until| until <= client.transport.now());
        let waits = !is_over() && !self.is_closed() && !is_late();
        let lane = waits
            .then(&reads)
            .flatten()
            .and_then(|source| source.lane());
        let patience = lane.as_ref().map(|lane| self.patience_at(&**lane));
        let _hold = permit(patience.flatten())?;
        loop {
            // A thread that ends a call rings after that.
            let turn = self.changed.turn();
            if is_over() {
                return Ok(true);
            }
            let now = client.transport.now();
            if self.is_closed() || until.is_some_and(|until| until <= now) {
                return Ok(false);
            }
            if self.is_by_hand {
                self.wait_by_hand(orb, until, &reads);
            } else {
                self.wait_for_change(orb, turn, until.map(|until| until.since(now)));
            }
        }
    }

    /// How the calling thread may wait for what a lane reads. In an ORB that is turned by hand the waiting thread
    /// turns the lane, except within one of its servants.
    fn patience_at<'l>(&self, lane: &'l dyn Owner) -> Patience<'l> {
        if self.is_by_hand && !lane.is_served_here() {
            None
        } else {
            lane.patience_for_replies()
        }
    }

    fn wait_for_change(&self, orb: &Arc<CallSide>, turn: u32, left: Option<Duration>) {
        // Retries are made by waiting threads: this may be the callback thread itself.
        let moved = self.jobs.lock("replies.moves").moves.pop_front();
        match moved {
            Some(call) => call.go_elsewhere(orb, self),
            None => drop(
                self.changed
                    .wait_until(turn, left.and_then(monotonic_after)),
            ),
        }
    }

    fn wait_by_hand(
        &self,
        orb: &Arc<CallSide>,
        until: Option<Instant64>,
        reads: &impl Fn() -> Option<ReplySource>,
    ) {
        if self.turn(orb) {
            return;
        }
        let due = self
            .deadlines
            .lock("replies.deadlines")
            .peek()
            .map(|due| due.0.at);
        let until = [until, due].into_iter().flatten().min();
        match (reads(), until) {
            (Some(source), until) => {
                source.read_until(orb, self, until);
                if let ReplySource::Shared(connection) = source
                    && connection.has_ended()
                {
                    self.forget(&connection);
                }
            }
            // An early reply waits for its start.
            (None, Some(until)) => orb.client.transport.sleep_until(until),
            (None, None) => {}
        }
    }
}
