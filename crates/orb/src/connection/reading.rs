//! The reading half of a connection: the claim to read, the octets that have arrived, and who reads on.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::time::Duration;

use deckwatch_giop::{ProtocolError, Version};
use deckwatch_sync::{Claim, Claimed};

use super::state::{ADOPTED, BROUGHT, ENDED, HANDED_OVER, HELD_UP, PARTED, SIGNALLED};
use super::{Arrived, Connection, Inbound, Io};
use crate::accounts::Account;
use crate::counters::Counter;
use crate::limits::{ADOPTION_STREAK, SPIN_SLICE};
use crate::trace::{CallNumber, Direction};
use crate::transport::{Instant64, SPIN_FOREVER, TransportError};
use crate::wire::{self, Kind};

/// How a thread leaves a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing more to serve now.
    Open,
    /// Parsing is paused; the thread that lifts the pause re-arms the poller.
    Held,
    /// Another thread reads it now.
    ToAnother,
    /// It must be closed.
    Ended,
}

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Octets. `is_full`: they filled the buffer, so there may be more.
    Octets { is_full: bool },
    /// Nothing now, or not in time.
    Nothing,
    /// The end of the stream.
    End,
    /// The connection is lost.
    Lost,
    /// The unfinished messages of all connections hold as much memory as they may.
    OverBudget,
}

/// What a thread does that got an event of the poller.
pub(crate) enum Claiming<'c> {
    /// It reads.
    Read(Reading<'c>),
    /// The event has been handled.
    Handled,
    /// Another thread reads, and sees the event when it has finished.
    Busy,
}

/// The claim to read.
pub(crate) type Reading<'c> = Claimed<'c, Inbound>;

pub(super) struct ReadHalf {
    inbound: Claim<Inbound>,
    /// Since when a message has been unfinished, as [`Inbound::begun`] returns; 0: none is.
    begun: AtomicU64,
    /// When it was opened, last brought a message, or its adoption ended, by the coarse clock.
    used: AtomicU64,
    /// Events of the poller in a row without a pause in which the connection could have been adopted.
    streak: AtomicUsize,
}

impl ReadHalf {
    pub(super) fn new(account: &Arc<Account>, io: &Io) -> Self {
        let account = Some(Arc::clone(account));
        Self {
            inbound: Claim::new(Inbound::new(io.sizes.message_max, account)),
            begun: AtomicU64::new(0),
            used: AtomicU64::new(io.transport.now_coarse().0),
            streak: AtomicUsize::new(0),
        }
    }
}

impl Connection {
    /// Since when a message has been unfinished.
    pub(crate) fn begun(&self) -> Option<Instant64> {
        let begun = self.reader.begun.load(Ordering::SeqCst);
        (begun != 0).then_some(Instant64(begun))
    }

    /// When it last brought a message: `now` while it is adopted.
    pub(crate) fn last_used(&self, now: Instant64) -> Instant64 {
        if self.is_adopted() {
            now
        } else {
            Instant64(self.reader.used.load(Ordering::Relaxed))
        }
    }

    /// Whether octets have arrived that no thread has read.
    pub(crate) fn is_readable(&self) -> bool {
        self.stream.is_readable()
    }

    /// Makes it known to the lane, which looks without the claim, since when a message has been unfinished.
    #[inline]
    fn note_begun(&self, reading: &Inbound) {
        let begun = reading.begun().map_or(0, |at| at.0.max(1));
        if self.reader.begun.load(Ordering::Relaxed) != begun {
            self.reader.begun.store(begun, Ordering::Relaxed);
        }
    }

    /// Notes that a message has arrived. Messages of one read have arrived together.
    fn note_brought(&self, now: Instant64) {
        self.reader.used.store(now.0, Ordering::Relaxed);
        if !self.has_brought() {
            self.state.set(BROUGHT);
        }
    }

    /// The poller has reported an event. Follow with [`Connection::poll_claim`].
    pub(crate) fn handle_event(&self, has_ended: bool) {
        let ended = if has_ended { ENDED } else { 0 };
        self.state.set(SIGNALLED | ended);
    }

    /// Claims the connection for a thread that got an event, if it has not been handled yet.
    pub(crate) fn poll_claim(&self) -> Claiming<'_> {
        // SYNC: pairs with the release of the claim and the load behind it in `release_reading`, `park_adoption` and
        // `settle_claim`: a thread that finds the connection claimed has set SIGNALLED before, and the owner sees it.
        fence(Ordering::SeqCst);
        if !self.state.has(SIGNALLED) {
            return Claiming::Handled;
        }
        let Some(reading) = self.reader.inbound.try_claim() else {
            return Claiming::Busy;
        };
        self.state.clear(SIGNALLED | HANDED_OVER);
        Claiming::Read(reading)
    }

    /// The claim to read, if no thread has it.
    pub(crate) fn try_claim(&self) -> Option<Reading<'_>> {
        self.reader.inbound.try_claim()
    }

    /// The claim to read, for the thread that has just adopted the connection. A hand-over requested meanwhile comes
    /// first: our narrower poller interest must not replace its.
    pub(crate) fn claim_adopted(&self) -> Option<Reading<'_>> {
        let reading = self.try_claim()?;
        (!self.state.has(HANDED_OVER)).then_some(reading)
    }

    /// The claim to read, for a thread that has served a request of it.
    #[inline]
    pub(crate) fn reclaim(&self) -> Result<Reading<'_>, Left> {
        if self.is_done() {
            std::hint::cold_path();
            return Err(Left::Ended);
        }
        self.try_claim().ok_or(Left::ToAnother)
    }

    /// Reads what has arrived.
    pub(crate) fn poll_read(&self, io: &Io, reading: &mut Inbound) -> Read {
        let Ok(space) = reading.space(&io.slab) else {
            return Read::OverBudget;
        };
        let room = space.len();
        let read = self.stream.read_now(space);
        Self::handle_bytes(reading, read, room)
    }

    /// Waits up to `wait` for what arrives next. With `spin` it first polls the stream for so long, while `may_stay`
    /// holds.
    pub(crate) fn poll_read_within(
        &self,
        io: &Io,
        reading: &mut Inbound,
        wait: Duration,
        spin: Option<Duration>,
        may_stay: impl Fn() -> bool,
    ) -> Read {
        let Ok(space) = reading.space(&io.slab) else {
            return Read::OverBudget;
        };
        let room = space.len();
        let read = match spin {
            None => self.stream.read_within(space, wait),
            Some(spin) => self.read_spinning(space, wait, spin, may_stay),
        };
        Self::handle_bytes(reading, read, room)
    }

    fn read_spinning(
        &self,
        space: &mut [u8],
        wait: Duration,
        mut spin: Duration,
        may_stay: impl Fn() -> bool,
    ) -> Result<Option<usize>, TransportError> {
        while spin != Duration::ZERO {
            let slice = spin.min(SPIN_SLICE);
            let arrived = self.stream.read_spinning(space, slice)?;
            if arrived.is_some() || !self.is_adopted() || !may_stay() {
                return Ok(arrived);
            }
            if spin != SPIN_FOREVER {
                spin -= slice;
            }
        }
        self.stream.read_within(space, wait)
    }

    /// `room`: the length of the buffer that was read into.
    #[inline]
    fn handle_bytes(
        reading: &mut Inbound,
        read: Result<Option<usize>, TransportError>,
        room: usize,
    ) -> Read {
        match read {
            Ok(None) => Read::Nothing,
            Ok(Some(0)) => Read::End,
            Ok(Some(count)) => {
                reading.handle_bytes(count);
                let is_full = count == room;
                Read::Octets { is_full }
            }
            Err(_) => Read::Lost,
        }
    }

    /// Whether reading may stop at a read that did not fill the buffer: the poller has not reported the end.
    pub(crate) fn may_pause(&self) -> bool {
        !self.state.has(ENDED)
    }

    /// What becomes of the connection after a read that brought no octets.
    pub(crate) fn end_reading(&self, io: &Io, mut reading: Reading<'_>, read: Read) -> Left {
        match read {
            Read::Octets { .. } | Read::Nothing => {
                self.pause(io, &mut reading);
                Left::Open
            }
            Read::End => self.end_input(io, reading),
            Read::Lost => end_of(io, &reading),
            Read::OverBudget => self.refuse_memory(io),
        }
    }

    /// Nothing more can be read now: returns the buffer of an idle connection, and starts the time limit of an
    /// unfinished message.
    pub(crate) fn pause(&self, io: &Io, reading: &mut Inbound) {
        let is_unfinished = reading.pause(&io.slab, || io.now());
        self.note_begun(reading);
        if is_unfinished {
            io.set_unfinished(true);
        }
    }

    /// Ends it because unfinished messages hold as much memory as they may.
    pub(crate) fn refuse_memory(&self, io: &Io) -> Left {
        io.count(Counter::InboundExhausted);
        self.write_message_error(io, Version::V1_0);
        Left::Ended
    }

    /// The peer has ended its side: no further reply to us can arrive. The peer may still wait for ours; the thread
    /// that writes the last one closes the connection.
    fn end_input(&self, io: &Io, reading: Reading<'_>) -> Left {
        let ended = end_of(io, &reading);
        self.end_bidirectional(false);
        drop(reading);
        self.set_read_out();
        if self.answers() { Left::Open } else { ended }
    }

    /// The next whole message, if there is one and it may be parsed now. `is_noted`: an earlier message of the same
    /// read has been noted.
    ///
    /// # Errors
    /// [`Left::Ended`] if the octets are no message: MessageError has been written, and nothing
    /// behind them can be read.
    #[inline]
    pub(crate) fn poll_message(
        &self,
        io: &Io,
        reading: &mut Inbound,
        is_noted: &mut bool,
    ) -> Result<Option<(Range<usize>, Kind)>, Left> {
        let place = match reading.poll_message() {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(None),
            Err(fault) => return Err(self.refuse(io, fault)),
        };
        self.note_begun(reading);
        if !std::mem::replace(is_noted, true) && !self.is_adopted() {
            self.note_brought(io.transport.now_coarse());
        }
        let octets = reading.message(place.clone());
        let call = CallNumber::default();
        io.trace.message(self.number, call, Direction::In, octets);
        let kind = wire::kind(octets);
        Ok(Some((place, kind)))
    }

    /// Whether no message is served any more. Messages behind a farewell are dropped: the client sends them again
    /// elsewhere.
    #[inline]
    pub(crate) fn is_parted(&self) -> bool {
        self.state.has(PARTED)
    }

    /// Writes MessageError because the octets are no message, and ends the connection.
    #[cold]
    pub(crate) fn refuse(&self, io: &Io, fault: ProtocolError) -> Left {
        io.count(wire::counter_of(fault));
        io.trace.misread(self.number, fault);
        self.write_message_error(io, wire::version_of_complaint(fault));
        Left::Ended
    }

    /// Pauses the time limit of an unfinished message, because parsing pauses.
    pub(crate) fn excuse(&self, reading: &mut Inbound) {
        reading.excuse();
        self.note_begun(reading);
    }

    /// A message has been joined from fragments: the time limit of an unfinished one may have ended.
    pub(crate) fn handle_joined(&self, reading: &Inbound) {
        self.note_begun(reading);
    }

    /// Stops reading because the peer has not read its replies, or because the request queue is full: without this,
    /// both sides could owe each other so much that neither reads. Goes on while this ORB awaits a reply over the
    /// connection.
    #[cold]
    pub(crate) fn hold_up<'c>(
        &'c self,
        io: &Io,
        mut reading: Reading<'c>,
    ) -> Result<Reading<'c>, Left> {
        if self.is_awaited() {
            return Ok(reading);
        }
        self.excuse(&mut reading);
        self.state.set(HELD_UP);
        drop(reading);
        // SYNC: pairs with the fences in `handle_room` and `write_waiting`, and with the counts in `TurnQueue`. A
        // thread that begins to await a reply later finds HELD_UP; one that began before is seen here.
        fence(Ordering::SeqCst);
        if self.must_be_held() {
            return Err(Left::Held);
        }
        let again = self.try_claim();
        if again.is_none() {
            // The thread with the claim may not parse what is buffered already.
            self.hand_over(io);
        }
        again.ok_or(Left::ToAnother)
    }

    /// Reads on if the connection is held up for no cause any more: its queue has room, or a reply is awaited over it.
    pub(crate) fn let_read(&self, io: &Io) {
        if self.is_held_up() && !self.must_be_held() && self.state.clear(HELD_UP) {
            self.hand_over(io);
        }
    }

    /// Ends the request that is served. Returns the next, which is served from here on. A connection that was held up
    /// for a full queue is read on.
    pub(crate) fn leave_queue(&self, io: &Io) -> Option<Arrived> {
        let requests = self.requests()?;
        let arrived = requests.leave()?;
        if self.is_held_up() && requests.has_much_room() {
            self.let_read(io);
        }
        Some(arrived)
    }

    /// Releases the claim, so that other threads read while the calling thread serves. Wakes one for octets that are
    /// buffered, or reported and unread (`is_unread`, which is cleared).
    #[inline]
    pub(crate) fn release_reading(&self, io: &Io, reading: Reading<'_>, is_unread: &mut bool) {
        let has_more = reading.has_more();
        let is_unread = std::mem::take(is_unread);
        // Readers are notified through SIGNALLED, never through `claim_or_tell`: the result is always false.
        let _ = reading.let_go();
        // SYNC: `let_go` and this load pair with the fence in `poll_claim`.
        if has_more {
            std::hint::cold_path();
            self.hand_over(io);
        } else if is_unread || self.state.has(SIGNALLED) {
            std::hint::cold_path();
            self.end_adoption();
            self.watch_again(io);
        }
    }

    /// Releases a claim that was taken without an event. An event that came meanwhile is handed to another thread.
    pub(crate) fn settle_claim(&self, io: &Io, reading: Reading<'_>) {
        drop(reading);
        // SYNC: pairs with the fence in `poll_claim`.
        fence(Ordering::SeqCst);
        if self.state.has(SIGNALLED) {
            self.hand_over(io);
        }
    }

    /// Whether the poller has reported so many events in a row that a thread should adopt the connection.
    pub(crate) fn is_busy(&self) -> bool {
        let next = || self.reader.streak.fetch_add(1, Ordering::Relaxed);
        !self.is_read_out() && !self.owes() && next() >= ADOPTION_STREAK as usize
    }

    /// Begins a new streak of events.
    pub(crate) fn end_streak(&self) {
        self.reader.streak.store(0, Ordering::Relaxed);
    }

    /// Notes the time at the end of an adoption, during which it was not noted.
    pub(crate) fn note_adoption_left(&self, io: &Io) {
        self.note_brought(io.transport.now_coarse());
    }

    /// The calling thread has left its adoption: has the poller watch the connection, also if another thread did so
    /// already. Its event may have found us still reading.
    pub(crate) fn park_adoption(&self, io: &Io) {
        self.state.clear(ADOPTED);
        if self.is_read_out() {
            return;
        }
        self.watch_again(io);
        // SYNC: pairs with the fence in `poll_claim`.
        if self.state.has(SIGNALLED) {
            self.hand_over(io);
        }
    }
}

/// Counts a message that a lost or ended connection cut off.
fn end_of(io: &Io, reading: &Inbound) -> Left {
    if reading.is_within_message() {
        io.count(Counter::TruncatedMessages);
    }
    Left::Ended
}
