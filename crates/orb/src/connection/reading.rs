//! Reading a connection that the poller has told of, and serving what it brought.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use deckwatch_cdr::Divided;
use deckwatch_giop::{ProtocolError, Version};
use deckwatch_sync::{Claimed, SlotKey};

use crate::connection::Connection;
use crate::connection::{Arrived, Inbound};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::limits::{ADOPTION_STREAK, READS_PER_TURN_MAX};
use crate::trace::{CallNumber, Direction};
use crate::transport::Instant64;
use crate::wire::{self, Kind};

/// How a connection is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing more to serve now.
    Open,
    /// What it has brought is not to be looked at now; who ends that tells of it.
    Held,
    /// Another thread reads it now.
    ToAnother,
    /// It must be closed.
    Ended,
}

pub(crate) type Reading<'c> = Claimed<'c, Inbound>;

impl Connection {
    /// Tells the lane, which looks without a lock, since when a message has been unfinished.
    pub(crate) fn note_begun(&self, reading: &Inbound) {
        let begun = reading.begun().map_or(0, |at| at.0.max(1));
        if self.begun.load(Ordering::Relaxed) != begun {
            self.begun.store(begun, Ordering::Relaxed);
        }
    }

    /// Whether a thread stays with it: it counts as used until that thread leaves, who says so then.
    #[inline]
    pub(crate) fn is_adopted(&self) -> bool {
        self.adopted.load(Ordering::Relaxed)
    }

    /// Tells the lane that messages have come; those of one read have come together.
    pub(crate) fn note_brought(&self, now: Instant64) {
        self.used.store(now.0, Ordering::Relaxed);
        self.has_brought.store(true, Ordering::Relaxed);
    }
}

impl Lane {
    /// Serves what has arrived, and goes on with the connection where it keeps this thread busy.
    pub(crate) fn serve(self: &Arc<Self>, key: SlotKey, ended: bool, seat: Option<usize>) {
        let Some(connection) = self.connections.pin(key) else {
            return;
        };
        if ended {
            connection.ended.store(true, Ordering::Relaxed);
        }
        connection.signalled.store(true, Ordering::SeqCst);
        let mut is_held = false;
        // A thread that finds the connection being read leaves the signal; the reader looks at it after it has let go.
        while !self.closing.load(Ordering::Acquire) {
            fence(Ordering::SeqCst);
            if !connection.signalled.load(Ordering::SeqCst) {
                break;
            }
            let Some(reading) = connection.inbound.try_claim() else {
                return;
            };
            connection.signalled.store(false, Ordering::SeqCst);
            if connection.handed_over.load(Ordering::SeqCst) {
                connection.handed_over.store(false, Ordering::SeqCst);
            }
            match self.read_and_serve(key, &connection, reading) {
                Left::Open => is_held = false,
                Left::Held => is_held = true,
                Left::ToAnother => return,
                Left::Ended => return self.end(key, &connection),
            }
        }
        if let Some(seat) = seat
            && !is_held
            && !connection.read_out.load(Ordering::Relaxed)
            && !connection.owes()
            && connection.streak.fetch_add(1, Ordering::Relaxed) >= ADOPTION_STREAK as usize
        {
            self.follow(key, &connection, seat);
        }
    }

    fn read_and_serve<'c>(
        &self,
        key: SlotKey,
        connection: &'c Connection,
        mut reading: Reading<'c>,
    ) -> Left {
        for _ in 0..READS_PER_TURN_MAX {
            // What is in memory already may be another thread's left-over; what we have been told of is still unread.
            reading = match self.serve_messages(key, connection, reading, true) {
                Ok(reading) => reading,
                Err(left) => return left,
            };
            let Ok(space) = reading.space(&self.slab) else {
                return self.refuse_memory(connection);
            };
            let room = space.len();
            let count = match connection.stream.read_now(space) {
                Ok(Some(0)) => return self.read_out(connection, reading),
                Err(_) => return self.end_of(&reading),
                Ok(Some(count)) => count,
                Ok(None) => {
                    self.pause(connection, &mut reading);
                    return Left::Open;
                }
            };
            reading.handle_bytes(count);
            reading = match self.serve_messages(key, connection, reading, count == room) {
                Ok(reading) => reading,
                Err(left) => return left,
            };
            if count < room && !connection.ended.load(Ordering::Relaxed) {
                self.pause(connection, &mut reading);
                return Left::Open;
            }
        }
        // Others wait too: be told again of what is left.
        self.watch_again(connection);
        Left::Open
    }

    /// Nothing more can be read now: an idle connection holds no buffer, and an unfinished message has its time.
    pub(crate) fn pause(&self, connection: &Connection, reading: &mut Inbound) {
        let is_unfinished = reading.pause(&self.slab, || self.transport.now());
        connection.note_begun(reading);
        if is_unfinished {
            self.unfinished.store(true, Ordering::SeqCst);
        }
    }

    /// The unfinished messages of all connections hold as much as they may.
    pub(crate) fn refuse_memory(&self, connection: &Connection) -> Left {
        self.counters.count(Counter::InboundExhausted);
        self.say_message_error(connection, Version::V1_0);
        Left::Ended
    }

    /// The peer has ended its side, and replies to us come no more. It may wait for ours still: who answers the last of its requests
    /// closes.
    pub(crate) fn read_out(&self, connection: &Connection, reading: Reading<'_>) -> Left {
        let ended = self.end_of(&reading);
        self.end_bidirectional(connection, false);
        drop(reading);
        connection.read_out.store(true, Ordering::SeqCst);
        if connection.answers() {
            Left::Open
        } else {
            ended
        }
    }

    /// What is left of a connection that has broken or ended.
    pub(crate) fn end_of(&self, reading: &Inbound) -> Left {
        if reading.is_within_message() {
            self.counters.count(Counter::TruncatedMessages);
        }
        Left::Ended
    }

    /// Serves the whole messages in the buffer. Gives the right to read back where it still has it. `unread`: the poller has told
    /// of more than has been read, and tells of it once.
    pub(crate) fn serve_messages<'c>(
        &self,
        key: SlotKey,
        connection: &'c Connection,
        mut reading: Reading<'c>,
        mut unread: bool,
    ) -> Result<Reading<'c>, Left> {
        let mut is_noted = false;
        loop {
            reading = self.may_serve_on(connection, reading)?;
            let place = match reading.poll_message() {
                Ok(Some(place)) => place,
                Ok(None) => return Ok(reading),
                Err(fault) => return Err(self.refuse_connection(connection, fault)),
            };
            connection.note_begun(&reading);
            if !std::mem::replace(&mut is_noted, true) && !connection.is_adopted() {
                connection.note_brought(self.transport.now_coarse());
            }
            let octets = reading.message(place.clone());
            let call = CallNumber::default();
            self.trace
                .message(connection.number, call, Direction::In, octets);
            let kind = wire::kind(octets);
            if kind == Kind::Misplaced
                && let Some(bidirectional) = connection.bidirectional.get()
            {
                self.take_answer(bidirectional, reading.detach(place, &self.slab));
                continue;
            }
            if let Kind::TwoWay | Kind::InOrder = kind {
                self.note_what_is_said(connection, &Divided::new(octets, &[]));
                if let Some(bidirectional) = connection.bidirectional.get() {
                    std::hint::cold_path();
                    let arrived = |reading: &mut Reading<'_>, is_first| match is_first {
                        true => reading.detach(place, &self.slab),
                        false => Arrived::whole(reading.message(place).to_vec()),
                    };
                    let unread = &mut unread;
                    reading = self.serve_both_ways(
                        connection,
                        bidirectional,
                        reading,
                        kind,
                        arrived,
                        unread,
                    )?;
                    continue;
                }
            }
            match kind {
                Kind::TwoWay => {
                    let arrived = reading.detach(place, &self.slab);
                    reading = self.serve_two_way(key, connection, reading, arrived, &mut unread)?;
                }
                Kind::Fragmented => {
                    std::hint::cold_path();
                    let joined = reading.join(place, &self.slab);
                    if let Some(whole) =
                        joined.map_err(|fault| self.refuse_connection(connection, fault))?
                    {
                        connection.note_begun(&reading);
                        reading =
                            self.serve_joined(key, connection, reading, whole, &mut unread)?;
                    }
                }
                kind => self.serve_in_order(connection, &mut reading, place, kind)?,
            }
        }
    }

    /// Whether the next message may be taken: the right to read, or why it is not to be read now.
    #[inline]
    fn may_serve_on<'c>(
        &self,
        connection: &'c Connection,
        mut reading: Reading<'c>,
    ) -> Result<Reading<'c>, Left> {
        if connection.parted.load(Ordering::Relaxed) {
            std::hint::cold_path();
            // It came behind the farewell: the client asks again elsewhere.
            return Err(Left::Ended);
        }
        if let Some(room) = &self.room
            && self.must_leave(room, connection, &mut reading)
        {
            connection.note_begun(&reading);
            return Err(Left::Held);
        }
        // What is owed is taken first; who writes it serves on.
        if connection.owes() || connection.has_full_line() {
            std::hint::cold_path();
            return self.hold_up(connection, reading);
        }
        Ok(reading)
    }

    #[cold]
    fn serve_joined<'c>(
        &self,
        key: SlotKey,
        connection: &'c Connection,
        reading: Reading<'c>,
        whole: Arrived,
        unread: &mut bool,
    ) -> Result<Reading<'c>, Left> {
        if let Some(bidirectional) = connection.bidirectional.get()
            && wire::is_answer(&whole.message())
        {
            self.take_answer(bidirectional, whole);
            return Ok(reading);
        }
        let kind = wire::kind_of_joined(&whole.message());
        self.note_what_is_said(connection, &whole.message());
        if let Some(bidirectional) = connection.bidirectional.get() {
            let arrived = |_: &mut Reading<'_>, is_first| match is_first {
                true => whole,
                false => whole.into_exact(&self.slab),
            };
            return self.serve_both_ways(connection, bidirectional, reading, kind, arrived, unread);
        }
        if kind == Kind::TwoWay {
            return self.serve_two_way(key, connection, reading, whole, unread);
        }
        if let Some(room) = self.room_kept_here() {
            self.admit_in_order(room, connection, whole);
            return Err(Left::Open);
        }
        let _busy = self.note_busy();
        let served = self.answer(connection, &whole.message());
        self.slab.take_back(whole.buffer);
        served.map(|()| reading).map_err(|_| Left::Ended)
    }

    /// Counts what was wrong and says so to the client; nothing after it can be read.
    #[cold]
    fn refuse_connection(&self, connection: &Connection, fault: ProtocolError) -> Left {
        self.counters.count(wire::counter_of(fault));
        self.trace.misread(connection.number, fault);
        self.say_message_error(connection, wire::version_of_complaint(fault));
        Left::Ended
    }

    /// While a two-way request is served others may read the connection, so that a servant that calls back does not
    /// lock out the reply; what has been read behind it, and what this thread has been told of and has not read, is told to
    /// another thread.
    pub(crate) fn serve_two_way<'c>(
        &self,
        key: SlotKey,
        connection: &'c Connection,
        reading: Reading<'c>,
        arrived: Arrived,
        unread: &mut bool,
    ) -> Result<Reading<'c>, Left> {
        // Counted before others may read: who finds nothing to be served may say farewell.
        connection.serving.fetch_add(1, Ordering::SeqCst);
        self.leave_reading(connection, reading, unread);
        if let Some(room) = self.room_kept_here() {
            self.admit_two_way(room, key, connection, arrived);
            let again = connection.inbound.try_claim();
            return again.ok_or(Left::ToAnother);
        }
        let busy = self.note_busy();
        let served = self.answer(connection, &arrived.message());
        drop(busy);
        connection.serving.fetch_sub(1, Ordering::SeqCst);
        let again = served
            .map_err(|_| Left::Ended)
            .and_then(|()| self.read_again(connection));
        match again {
            Ok(mut reading) => {
                reading.reattach(arrived.buffer, &self.slab);
                Ok(reading)
            }
            Err(left) => {
                std::hint::cold_path();
                self.slab.take_back(arrived.buffer);
                Err(left)
            }
        }
    }

    /// Lets others read while the calling thread serves, and tells them of what it has read or been told of.
    #[inline]
    pub(crate) fn leave_reading(
        &self,
        connection: &Connection,
        reading: Reading<'_>,
        unread: &mut bool,
    ) {
        let has_more = reading.has_more();
        let is_unread = std::mem::take(unread);
        // Nobody leaves word with a reader, but the signal.
        let _never_told = reading.let_go();
        // SYNC: `let_go` and this load pair with the fence in `serve`: who found us reading has left the signal, and we see it.
        if has_more {
            std::hint::cold_path();
            self.tell_of_rest(connection);
        } else if is_unread || connection.signalled.load(Ordering::SeqCst) {
            std::hint::cold_path();
            connection.adopted.store(false, Ordering::Release);
            self.watch_again(connection);
        }
    }

    pub(crate) fn read_again<'c>(&self, connection: &'c Connection) -> Result<Reading<'c>, Left> {
        if connection.read_out.load(Ordering::SeqCst) && !connection.answers() {
            std::hint::cold_path();
            return Err(Left::Ended);
        }
        let again = connection.inbound.try_claim();
        again.ok_or(Left::ToAnother)
    }

    /// All but two-way requests keep their order: the next message is not looked at before this one is done.
    fn serve_in_order(
        &self,
        connection: &Connection,
        reading: &mut Inbound,
        place: Range<usize>,
        kind: Kind,
    ) -> Result<(), Left> {
        match kind {
            Kind::InOrder => {
                if let Some(room) = self.room_kept_here() {
                    let arrived = reading.detach(place, &self.slab);
                    self.admit_in_order(room, connection, arrived);
                    return Err(Left::Open);
                }
                let _busy = self.note_busy();
                self.answer(connection, &Divided::new(reading.message(place), &[]))
                    .map_err(|_| Left::Ended)
            }
            Kind::Cancel => {
                self.counters.count(Counter::CancelRequests);
                if let Some(id) = wire::cancelled(reading.message(place)) {
                    reading.cancel(id);
                    self.cancel_early(connection, id);
                }
                Ok(())
            }
            Kind::Close => {
                self.end_bidirectional(connection, true);
                Err(Left::Ended)
            }
            Kind::MessageError => {
                self.counters.count(Counter::MessageErrorsReceived);
                Err(Left::Ended)
            }
            Kind::TwoWay | Kind::Fragmented | Kind::Misplaced => {
                self.counters.count(Counter::ProtocolErrors);
                self.say_message_error(connection, Version::V1_0);
                Err(Left::Ended)
            }
        }
    }
}
