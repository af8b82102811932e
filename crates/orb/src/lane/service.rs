//! A thread of the lane at work on one connection: it reads what has arrived, and serves each message or queues it.

use std::ops::Range;
use std::sync::Arc;

use deckwatch_cdr::Divided;
use deckwatch_giop::{Message, Request, Version};

use super::Lane;
use super::accept::listener_of;
use crate::budget::OverBudget;
use crate::connection::bidirectional::Bidirectional;
use crate::connection::inbound::copied;
use crate::connection::{Arrived, Claiming, Connection, Left, Read, Reading, key_of, room_of};
use crate::counters::Counter;
use crate::limits::READS_PER_TURN_MAX;
use crate::server::{Early, Peer, Server, Unanswered, Wait};
use crate::transport::{Event, Instant64};
use crate::wire::{self, Kind};
use crate::{CallerConnection, SystemException};

/// A lane and one of its connections, for the calling thread.
#[derive(Clone, Copy)]
pub(super) struct Service<'l> {
    pub(super) lane: &'l Lane,
    pub(super) connection: &'l Connection,
}

impl Lane {
    /// Accepts, or serves what has arrived over a connection and adopts it where it keeps this thread busy.
    pub(super) fn handle_event(&self, event: Event, seat: Option<usize>) {
        if let Some(listener) = listener_of(event.token) {
            return self.accept(listener);
        }
        self.keep_watch();
        let room = room_of(event.token);
        let key = room.unwrap_or_else(|| key_of(event.token));
        let Some(connection) = self.connections.pin(key) else {
            return;
        };
        if room.is_some() && !connection.handle_room(&self.io) {
            return;
        }
        let service = Service::new(self, &connection);
        connection.handle_event(room.is_none() && event.ended);
        let mut is_held = false;
        // A thread that finds the connection claimed leaves the event; the reader checks for it after it has released
        // the claim.
        while !self.is_closing() {
            let reading = match connection.poll_claim() {
                Claiming::Read(reading) => reading,
                Claiming::Handled => break,
                Claiming::Busy => return,
            };
            match service.read_and_serve(reading) {
                Left::Open => is_held = false,
                Left::Held => is_held = true,
                Left::ToAnother => return,
                Left::Ended => return service.end(),
            }
        }
        if let Some(seat) = seat
            && !is_held
            && connection.is_busy()
        {
            service.adopt(seat);
        }
    }
}

impl<'l> Service<'l> {
    pub(super) const fn new(lane: &'l Lane, connection: &'l Connection) -> Self {
        Self { lane, connection }
    }

    fn read_and_serve(self, mut reading: Reading<'l>) -> Left {
        let (io, connection) = (&self.lane.io, self.connection);
        for _ in 0..READS_PER_TURN_MAX {
            // Messages in the buffer may be left from another thread; the octets of the event are still unread.
            reading = match self.serve_messages(reading, true) {
                Ok(reading) => reading,
                Err(left) => return left,
            };
            let read = connection.poll_read(io, &mut reading);
            let Read::Octets { is_full } = read else {
                return connection.end_reading(io, reading, read);
            };
            reading = match self.serve_messages(reading, is_full) {
                Ok(reading) => reading,
                Err(left) => return left,
            };
            if !is_full && connection.may_pause() {
                connection.pause(io, &mut reading);
                return Left::Open;
            }
        }
        // Other connections wait too: the poller reports the rest again.
        connection.watch_again(io);
        Left::Open
    }

    /// Serves the whole messages in the buffer. Returns the claim to read if this thread still has it. `unread`: the
    /// poller has reported more octets than have been read, and reports them once.
    pub(super) fn serve_messages(
        self,
        mut reading: Reading<'l>,
        mut unread: bool,
    ) -> Result<Reading<'l>, Left> {
        let (io, connection) = (&self.lane.io, self.connection);
        let mut is_noted = false;
        loop {
            reading = self.may_serve_on(reading)?;
            let polled = connection.poll_message(io, &mut reading, &mut is_noted)?;
            let Some((place, kind)) = polled else {
                return Ok(reading);
            };
            if kind == Kind::Misplaced && connection.bidirectional().is_some() {
                let arrived = reading.detach(place, &io.slab);
                let arrived = arrived.map_err(|OverBudget| connection.refuse_memory(io))?;
                connection.handle_reply(io, arrived);
                continue;
            }
            if let Kind::TwoWay | Kind::InOrder = kind {
                let octets = reading.message(place.clone());
                self.note_contexts(&Divided::new(octets, &[]));
                if let Some(requests) = connection.requests() {
                    std::hint::cold_path();
                    let arrived = |reading: &mut Reading<'_>, is_first| {
                        if is_first {
                            reading.detach(place, &io.slab)
                        } else {
                            let copy = copied(reading.message(place));
                            copy.map(Arrived::whole).map_err(|_| OverBudget)
                        }
                    };
                    let unread = &mut unread;
                    reading = self.serve_bidirectional(requests, reading, kind, arrived, unread)?;
                    continue;
                }
            }
            match kind {
                Kind::TwoWay => {
                    let arrived = reading.detach(place, &io.slab);
                    let arrived = arrived.map_err(|OverBudget| connection.refuse_memory(io))?;
                    reading = self.serve_two_way(reading, arrived, &mut unread)?;
                }
                Kind::InOrder => self.serve_in_order(&mut reading, place)?,
                Kind::Fragmented => {
                    std::hint::cold_path();
                    let joined = reading.join(place, &io.slab);
                    if let Some(whole) = joined.map_err(|fault| connection.refuse(io, fault))? {
                        connection.handle_joined(&reading);
                        reading = self.serve_joined(reading, whole, &mut unread)?;
                    }
                }
                kind => self.handle_other(&mut reading, place, kind)?,
            }
        }
    }

    /// Returns the claim to read if the next message may be parsed, or why it may not.
    #[inline]
    fn may_serve_on(self, mut reading: Reading<'l>) -> Result<Reading<'l>, Left> {
        let connection = self.connection;
        if connection.is_parted() {
            std::hint::cold_path();
            return Err(Left::Ended);
        }
        if let Some(room) = &self.lane.waiting.room
            && self.must_leave(room, &mut reading)
        {
            return Err(Left::Held);
        }
        // The peer reads its replies first; the thread that writes them serves on.
        if connection.owes() || connection.has_full_queue() {
            std::hint::cold_path();
            return connection.hold_up(&self.lane.io, reading);
        }
        Ok(reading)
    }

    /// Notes what a request says of its connection (code sets, listen points) while no other thread may read: it holds
    /// for requests behind it, which others may read and serve first.
    #[inline]
    fn note_contexts(self, message: &Divided<'_>) {
        if !self.connection.has_code_sets() || self.lane.server.adapter.is_bidirectional() {
            self.note_contexts_of(message);
        }
    }

    #[cold]
    fn note_contexts_of(self, message: &Divided<'_>) {
        if message.ends().is_empty() && Request::plain(message.octets()).is_some() {
            return;
        }
        let Ok(Message::Request(mut request)) = Message::parse_joined(message) else {
            return;
        };
        // A fault of the code sets is raised where the request is served.
        let _ = self.connection.agree_on_code_sets(&mut request);
        if self.lane.server.adapter.is_bidirectional() {
            let owner = || self.lane.as_owner();
            self.connection
                .note_listen_points(&self.lane.io, &request, owner);
        }
    }

    #[cold]
    fn serve_joined(
        self,
        reading: Reading<'l>,
        whole: Arrived,
        unread: &mut bool,
    ) -> Result<Reading<'l>, Left> {
        let (io, connection) = (&self.lane.io, self.connection);
        if connection.bidirectional().is_some() && wire::is_answer(&whole.message()) {
            connection.handle_reply(io, whole);
            return Ok(reading);
        }
        let kind = wire::kind_of_joined(&whole.message());
        self.note_contexts(&whole.message());
        if let Some(requests) = connection.requests() {
            let arrived = |_: &mut Reading<'_>, is_first| {
                Ok(if is_first {
                    whole
                } else {
                    whole.into_exact(&io.slab)
                })
            };
            return self.serve_bidirectional(requests, reading, kind, arrived, unread);
        }
        if kind == Kind::TwoWay {
            return self.serve_two_way(reading, whole, unread);
        }
        if let Some(room) = self.lane.room_kept_here() {
            self.admit_in_order(room, whole);
            return Err(Left::Open);
        }
        let _busy = self.lane.note_busy();
        let served = self.lane.server.answer(&whole.message(), &self);
        io.slab.take_back(whole.buffer);
        served.map(|()| reading).map_err(|why| self.give_up(why))
    }

    /// Serves a two-way request. Other threads may read the connection meanwhile, so that a servant that calls back
    /// does not lock out the reply.
    #[inline]
    pub(super) fn serve_two_way(
        self,
        reading: Reading<'l>,
        arrived: Arrived,
        unread: &mut bool,
    ) -> Result<Reading<'l>, Left> {
        let (io, connection) = (&self.lane.io, self.connection);
        // Counted before others may read: a thread that finds no request in progress may write a farewell.
        connection.begin_serving();
        connection.release_reading(io, reading, unread);
        if let Some(room) = self.lane.room_kept_here() {
            self.admit_two_way(room, arrived);
            return connection.try_claim().ok_or(Left::ToAnother);
        }
        let busy = self.lane.note_busy();
        let served = self.lane.server.answer(&arrived.message(), &self);
        let served = served.map_err(|why| self.give_up(why));
        drop(busy);
        connection.end_serving(1);
        match served.and_then(|()| connection.reclaim()) {
            Ok(mut reading) => {
                reading.reattach(arrived.buffer, &io.slab);
                Ok(reading)
            }
            Err(left) => {
                std::hint::cold_path();
                io.slab.take_back(arrived.buffer);
                Err(left)
            }
        }
    }

    /// Serves a message that is not a two-way request: the next one is not parsed before it is done.
    fn serve_in_order(self, reading: &mut Reading<'l>, place: Range<usize>) -> Result<(), Left> {
        if let Some(room) = self.lane.room_kept_here() {
            let io = &self.lane.io;
            let arrived = reading.detach(place, &io.slab);
            let arrived = arrived.map_err(|OverBudget| self.connection.refuse_memory(io))?;
            self.admit_in_order(room, arrived);
            return Err(Left::Open);
        }
        let _busy = self.lane.note_busy();
        let message = Divided::new(reading.message(place), &[]);
        let served = self.lane.server.answer(&message, &self);
        served.map_err(|why| self.give_up(why))
    }

    /// Handles a message that is no request.
    fn handle_other(
        self,
        reading: &mut Reading<'l>,
        place: Range<usize>,
        kind: Kind,
    ) -> Result<(), Left> {
        let (io, connection) = (&self.lane.io, self.connection);
        match kind {
            Kind::Cancel => {
                io.count(Counter::CancelRequests);
                if let Some(id) = wire::cancelled(reading.message(place)) {
                    reading.cancel(id);
                    self.cancel_early(id);
                }
                Ok(())
            }
            Kind::Close => {
                connection.end_bidirectional(true);
                Err(Left::Ended)
            }
            Kind::MessageError => {
                io.count(Counter::MessageErrorsReceived);
                Err(Left::Ended)
            }
            Kind::TwoWay | Kind::InOrder | Kind::Fragmented | Kind::Misplaced => {
                io.count(Counter::ProtocolErrors);
                connection.write_message_error(io, Version::V1_0);
                Err(Left::Ended)
            }
        }
    }

    /// Writes a MessageError to a peer whose message is not answered: the connection cannot go on.
    #[cold]
    pub(super) fn give_up(self, _: Unanswered) -> Left {
        self.connection
            .write_message_error(&self.lane.io, Version::V1_0);
        Left::Ended
    }

    /// Ends the connection once the requests in its queue have been served. No further reply to us can arrive.
    pub(super) fn end(self) {
        let connection = self.connection;
        if connection
            .requests()
            .is_some_and(|requests| !requests.is_idle())
        {
            connection.end_bidirectional(false);
            connection.set_read_out();
            // SYNC: the thread that serves the last of them sees READ_OUT, or we see that nothing is served.
            if connection.is_serving() {
                return;
            }
        }
        self.lane.close(connection.key(), connection);
    }
}

/// The peer of the requests that the connection brings.
impl Peer for Service<'_> {
    fn number(&self) -> u32 {
        self.connection.number()
    }

    #[inline]
    fn connection(&self) -> CallerConnection {
        self.connection.as_caller()
    }

    fn may_enter(&self, _: &Server) -> bool {
        // What was read before the end is answered.
        true
    }

    fn agree_on_code_sets(&self, request: &mut Request<'_>) -> Result<(), SystemException> {
        self.connection.agree_on_code_sets(request)
    }

    fn bidirectional(&self) -> Option<&Arc<Bidirectional>> {
        self.connection.bidirectional()
    }

    fn wait<'w>(&'w self, server: &'w Server) -> Wait<'w> {
        Wait {
            patience: Some(&server.wait_permits),
            until: None,
        }
    }

    fn put_aside(
        &self,
        message: &Divided<'_>,
        request: &Request<'_>,
        start: Instant64,
    ) -> Result<Early, SystemException> {
        self.lane
            .set_aside(self.connection, message, request, start)
            .map(|()| Early::PutAside)
    }

    #[inline]
    fn with_reply(&self, is_awaited: bool, write: impl FnOnce(&mut Vec<u8>)) {
        if is_awaited {
            self.lane.io.slab.with_empty(write);
        } else {
            write(&mut Vec::new());
        }
    }

    #[inline]
    fn write(&self, reply: &[u8]) {
        self.connection.write(&self.lane.io, reply);
    }

    fn write_receipt(&self, receipt: &[u8]) {
        self.connection.write_from_outside(&self.lane.io, receipt);
    }

    fn is_local(&self) -> bool {
        false
    }
}
