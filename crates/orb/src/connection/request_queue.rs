//! Requests over a connection that both sides ask over: they never keep it from being read, for replies to us come over it too.
//!
//! They are served in a line. Its first goes in at once and gives the right to read away while it is served, as every two-way request
//! does; what comes behind a one-way is moved into the line by whoever reads, and served in its order. Where the line is full, the
//! connection is held up as long as nobody here waits for a reply over it; while somebody does, it is read on, and what has no room is
//! refused.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use deckwatch_cdr::Divided;
use deckwatch_giop::{Message, Request};
use deckwatch_sync::{PiMutex, SlotKey, TurnQueue};

use crate::connection::Arrived;
use crate::connection::Connection;
use crate::connection::bidirectional::Bidirectional;
use crate::connection::reading::{Left, Reading};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::lane::waiting::{Behind, Waiting};
use crate::limits::{LINE_REQUESTS_MAX, LINE_SIZE_MAX, LINE_TURN};
use crate::server::Unanswered;
use crate::transport::Interest;
use crate::wire::{self, Kind};

/// Requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct RequestQueue {
    line: TurnQueue<Arrived>,
    /// Octets of those that wait.
    size: AtomicUsize,
}

impl RequestQueue {
    fn is_idle(&self) -> bool {
        self.line.count() == 0
    }

    fn is_full(&self) -> bool {
        self.line.count() > LINE_REQUESTS_MAX || self.size.load(Ordering::SeqCst) >= LINE_SIZE_MAX
    }

    /// Who has been held up is told then, and not with each place that comes free.
    fn has_much_room(&self) -> bool {
        self.line.count() <= LINE_REQUESTS_MAX / 2
            && self.size.load(Ordering::SeqCst) <= LINE_SIZE_MAX / 2
    }
}

/// QueueHeads of lines that wait for a thread, at most one of each connection.
pub(crate) struct QueueHeads {
    list: PiMutex<VecDeque<Waiting>>,
    /// Read without the lock.
    count: AtomicUsize,
    /// One of them goes next, before who waits in the room.
    is_next: AtomicBool,
}

impl QueueHeads {
    pub(crate) const fn new() -> Self {
        Self {
            list: PiMutex::new(VecDeque::new()),
            count: AtomicUsize::new(0),
            is_next: AtomicBool::new(true),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // SYNC: pairs with the addition in `push`: who is about to wait has been counted before it looks here.
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Whether one of them goes now, where others wait too: every other time.
    pub(crate) fn take_turn(&self) -> bool {
        !self.is_empty() && self.is_next.fetch_xor(true, Ordering::Relaxed)
    }

    fn push(&self, first: Waiting) {
        let mut list = self.list.lock("lane.firsts");
        list.push_back(first);
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    fn pop(&self) -> Option<Waiting> {
        if self.is_empty() {
            return None;
        }
        let first = self.list.lock("lane.firsts").pop_front()?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(first)
    }
}

impl Connection {
    fn requests(&self) -> Option<&RequestQueue> {
        self.bidirectional
            .get()
            .map(|bidirectional| &bidirectional.requests)
    }

    /// Whether replies to us are awaited over it.
    fn is_awaited(&self) -> bool {
        self.bidirectional
            .get()
            .is_some_and(|bidirectional| bidirectional.is_awaited())
    }

    #[inline]
    pub(crate) fn has_full_line(&self) -> bool {
        self.requests().is_some_and(RequestQueue::is_full)
    }

    /// Whether it must not be read on now.
    pub(crate) fn is_held(&self) -> bool {
        self.parked.load(Ordering::SeqCst)
            || (self.owes() || self.has_full_line()) && !self.is_awaited()
    }
}

impl Lane {
    /// What a request says of its connection holds for those behind it, which others may read and serve before it: noted while nobody
    /// else may read.
    #[inline]
    pub(crate) fn note_what_is_said(&self, connection: &Connection, message: &Divided<'_>) {
        if connection.chars.load(Ordering::Relaxed) == 0 || self.server.adapter.is_bidirectional() {
            self.note_contexts(connection, message);
        }
    }

    #[cold]
    fn note_contexts(&self, connection: &Connection, message: &Divided<'_>) {
        if message.ends().is_empty() && Request::plain(message.octets()).is_some() {
            return;
        }
        let Ok(Message::Request(mut request)) = Message::parse_joined(message) else {
            return;
        };
        // What is wrong with code sets is said where it is served.
        let _again_there = connection.agree_on_code_sets(&mut request);
        if self.server.adapter.is_bidirectional() {
            self.note_listen_points(connection, &request);
        }
    }

    /// Peer and we may both owe each other so much that neither reads, or requests wait in a full line; nobody here waits for a reply.
    #[cold]
    pub(crate) fn hold_up<'c>(
        &self,
        connection: &'c Connection,
        mut reading: Reading<'c>,
    ) -> Result<Reading<'c>, Left> {
        if connection.is_awaited() {
            return Ok(reading);
        }
        reading.excuse();
        connection.note_begun(&reading);
        connection.held_up.store(true, Ordering::SeqCst);
        drop(reading);
        // SYNC: pairs with the fences in `handle_room` and `write_waiting`, and with the counts in `TurnQueue`; who waits for a reply from now
        // on has been seen, or sees that it is held up.
        fence(Ordering::SeqCst);
        if connection.is_held() {
            return Err(Left::Held);
        }
        let again = connection.inbound.try_claim();
        if again.is_none() {
            // Who has it may not look at what has been read already.
            self.tell_of_rest(connection);
        }
        again.ok_or(Left::ToAnother)
    }

    /// A connection is read on where nothing keeps it from that any more: its line has room, or somebody waits for a reply over it.
    pub(crate) fn let_read(&self, connection: &Connection) {
        if connection.held_up.load(Ordering::SeqCst)
            && !connection.is_held()
            && connection.held_up.swap(false, Ordering::SeqCst)
        {
            self.tell_of_rest(connection);
        }
    }

    /// Tells a thread of what has been read of a connection and not been looked at, and of what has come.
    pub(crate) fn tell_of_rest(&self, connection: &Connection) {
        let token = connection.token.load(Ordering::Relaxed);
        connection.handed_over.store(true, Ordering::SeqCst);
        connection.adopted.store(false, Ordering::Release);
        self.poller
            .rewatch(connection.stream.source(), token, Interest::Handover);
    }

    /// Watches a connection that nobody has adopted any more. What another has told of meanwhile stays told.
    pub(crate) fn watch_again(&self, connection: &Connection) {
        let token = connection.token.load(Ordering::Relaxed);
        let source = connection.stream.source();
        self.poller.rewatch(source, token, Interest::Arrival);
        // SYNC: pairs with the store in `tell_of_rest`: it watches after us, or we see that we have watched for less than it.
        fence(Ordering::SeqCst);
        if connection.handed_over.load(Ordering::SeqCst) {
            self.poller.rewatch(source, token, Interest::Handover);
        }
    }

    /// Serves a request over a connection of both sides, or lets it wait behind others. `arrived` gives the message a buffer of its own:
    /// of the connection's, or a copy.
    pub(crate) fn serve_both_ways<'c>(
        &self,
        connection: &'c Connection,
        bidirectional: &Bidirectional,
        mut reading: Reading<'c>,
        kind: Kind,
        arrived: impl FnOnce(&mut Reading<'c>, bool) -> Arrived,
        unread: &mut bool,
    ) -> Result<Reading<'c>, Left> {
        let key = connection.key();
        let requests = &bidirectional.requests;
        if kind == Kind::TwoWay && requests.is_idle() {
            let arrived = arrived(&mut reading, true);
            return self.serve_two_way(key, connection, reading, arrived, unread);
        }
        let is_first = requests.line.enter();
        let arrived = arrived(&mut reading, is_first);
        connection.serving.fetch_add(1, Ordering::SeqCst);
        let first = match is_first {
            true => arrived,
            false => match self.let_wait(connection, requests, arrived)? {
                Some(first) => first,
                None => return Ok(reading),
            },
        };
        let first = Waiting {
            key,
            arrived: first,
            behind: Behind::Line,
        };
        if let Some(room) = self.room_kept_here() {
            self.admit_request(room, connection, first);
            return Ok(reading);
        }
        self.leave_reading(connection, reading, unread);
        let busy = self.note_busy();
        let served = self.serve_line(connection, first);
        drop(busy);
        served.map_err(|_| Left::Ended)?;
        self.read_again(connection)
    }

    /// Has a request wait behind those before it, or refuses it where there is no room. It comes back where none is before it any more.
    fn let_wait(
        &self,
        connection: &Connection,
        requests: &RequestQueue,
        arrived: Arrived,
    ) -> Result<Option<Arrived>, Left> {
        let octets = arrived.size();
        let is_full = requests.is_full();
        if is_full || !self.take_for_line(octets) {
            if !is_full && self.waiting_room().is_none() {
                connection.serving.fetch_sub(1, Ordering::SeqCst);
                return Err(self.refuse_memory(connection));
            }
            self.refuse_waiting(connection, &arrived);
            self.slab.take_back(arrived.buffer);
            connection.serving.fetch_sub(1, Ordering::SeqCst);
            return Ok(None);
        }
        requests.size.fetch_add(octets, Ordering::SeqCst);
        let first = requests.line.join(arrived);
        match first {
            Some(_) => {
                requests.size.fetch_sub(octets, Ordering::SeqCst);
                self.give_for_line(octets);
            }
            None => {
                self.counters.count(Counter::RequestsBuffered);
                let key = connection.key();
                // SYNC: by the lock of the line: who closed the connection has taken it out again, or we see that it is closed.
                if self.connections.pin(key).is_none() {
                    self.forget_line(connection);
                }
            }
        }
        Ok(first)
    }

    fn take_for_line(&self, octets: usize) -> bool {
        match self.waiting_room() {
            Some(room) => room.take(octets),
            None => self.inbound_budget.take(octets),
        }
    }

    /// What has been in a line, or was the first of one that waited for a thread, waits no more.
    pub(crate) fn give_for_line(&self, octets: usize) {
        match self.waiting_room() {
            Some(room) => room.give(octets),
            None => self.inbound_budget.give(octets),
        }
    }

    /// Who is in the line of a connection leaves it; the next, which is in from here on. What it holds counts until it waits no more:
    /// [`Lane::give_for_line`].
    pub(crate) fn leave_line(&self, connection: &Connection) -> Option<Waiting> {
        let requests = connection.requests()?;
        let arrived = requests.line.leave()?;
        requests.size.fetch_sub(arrived.size(), Ordering::SeqCst);
        if connection.held_up.load(Ordering::SeqCst) && requests.has_much_room() {
            self.let_read(connection);
        }
        Some(Waiting {
            key: connection.key(),
            arrived,
            behind: Behind::Line,
        })
    }

    /// Serves a request, and those that wait behind it as long as nothing else waits for the thread. `Err`: the connection cannot go on.
    pub(crate) fn serve_line(
        &self,
        connection: &Connection,
        first: Waiting,
    ) -> Result<(), Unanswered> {
        let mut next = Some(first);
        let mut turns = 0;
        while let Some(mut waiting) = next {
            let is_in = waiting.behind == Behind::Line;
            if is_in && wire::kind_of_joined(&waiting.arrived.message()) == Kind::TwoWay {
                // Two-ways keep nobody waiting.
                waiting.behind = Behind::Nothing;
                if let Some(behind) = self.leave_line(connection) {
                    self.enlist(connection, behind);
                }
            }
            let served = self.answer(connection, &waiting.arrived.message());
            next = self.finish(connection, waiting);
            if served.is_err() || self.closing.load(Ordering::Acquire) {
                self.discard_line(connection, next);
                return served;
            }
            turns += 1;
            let is_wanted = self
                .room
                .as_ref()
                .is_some_and(|room| !room.queue.is_empty());
            if let Some(behind) = next.take_if(|_| turns == LINE_TURN || is_wanted) {
                self.enlist(connection, behind);
            }
            if let Some(next) = &next {
                self.give_for_line(next.arrived.size());
            }
        }
        Ok(())
    }

    /// Has the first of a line wait for a thread. It counts as it did in the line, but where only borrowed threads are waited for.
    fn enlist(&self, connection: &Connection, mut first: Waiting) {
        if let Some(room) = &self.room {
            let octets = first.arrived.size();
            let order = self.order_of(&first.arrived);
            let pushed = match self.waiting_room() {
                Some(_) => room.queue.push(order, first),
                None => room
                    .push(order, first, &self.slab)
                    .inspect(|()| self.give_for_line(octets)),
            };
            match pushed {
                Ok(()) => return self.note_enlisted(),
                Err(back) => first = back,
            }
        }
        debug_assert!(connection.serving.load(Ordering::SeqCst) != 0);
        self.queue_heads.push(first);
        self.note_enlisted();
    }

    fn note_enlisted(&self) {
        // SYNC: pairs with the swap in `close_entrance`: what is let in behind the last look is given up here.
        if self.closing.load(Ordering::SeqCst) {
            return self.discard_waiting();
        }
        self.tell_of_waiting();
    }

    /// The first of a line that waits for a thread, and does no more.
    pub(crate) fn take_first(&self) -> Option<Waiting> {
        let first = self.queue_heads.pop()?;
        self.give_for_line(first.arrived.size());
        Some(first)
    }

    /// Serves the first of a line that waits for a thread. False: none does.
    #[inline]
    pub(crate) fn serve_first(self: &Arc<Self>) -> bool {
        let Some(first) = self.take_first() else {
            return false;
        };
        self.keep_watch();
        let _busy = self.note_busy();
        self.serve_waited(first);
        true
    }

    /// At the end of the lane or of a connection: `first`, which is in the line, and those behind it are not served.
    pub(crate) fn discard_line(&self, connection: &Connection, mut first: Option<Waiting>) {
        while let Some(waiting) = first {
            self.counters.count(Counter::RequestsDiscarded);
            self.give_for_line(waiting.arrived.size());
            first = self.finish(connection, waiting);
        }
    }

    /// Ends a connection once what waits in its line has been served; replies come no more.
    pub(crate) fn end(&self, key: SlotKey, connection: &Connection) {
        if connection
            .requests()
            .is_some_and(|requests| !requests.is_idle())
        {
            self.end_bidirectional(connection, false);
            connection.read_out.store(true, Ordering::SeqCst);
            // SYNC: who serves the last of them sees that all is read, or we see that nothing is served.
            if connection.serving.load(Ordering::SeqCst) != 0 {
                return;
            }
        }
        self.close(key, connection);
    }

    /// The connection is closed: what waits in its line and has no thread is not served.
    pub(crate) fn forget_line(&self, connection: &Connection) {
        if let Some(requests) = connection.requests() {
            let forgotten = self.forget_requests(requests);
            connection.serving.fetch_sub(forgotten, Ordering::SeqCst);
        }
    }

    /// Forgets what waits in a line, and says how much that was.
    pub(crate) fn forget_requests(&self, requests: &RequestQueue) -> usize {
        let mut count = 0;
        while let Some(arrived) = requests.line.take_first() {
            self.counters.count(Counter::RequestsDiscarded);
            requests.size.fetch_sub(arrived.size(), Ordering::SeqCst);
            self.give_for_line(arrived.size());
            self.slab.take_back(arrived.buffer);
            count += 1;
        }
        count
    }
}
