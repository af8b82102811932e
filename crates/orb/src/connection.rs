//! A connection of a lane: accepted, or opened by this ORB for bidirectional GIOP.
//!
//! Its methods are of four kinds:
//! * getters say what is known of the connection: [`Connection::answers`], [`Connection::looks_quiet`];
//! * `handle_*` take what has arrived: [`Connection::handle_event`], [`Connection::handle_bytes`],
//!   [`Connection::handle_room`], [`Connection::handle_reply`];
//! * commands change it or act on its stream: [`Connection::write`], [`Connection::hand_over`], [`Connection::shut`];
//! * `poll_*` say what to do next: [`Connection::poll_claim`], [`Connection::poll_read`], [`Connection::poll_message`].
//!
//! A connection calls neither lane nor server. They call it, and lend it the lane's [`Io`].
//!
//! Reading and writing are claims: one thread at a time has the right, and no thread waits for it. The state is one
//! word of bits ([`state`]).

pub(crate) mod bidirectional;
pub(crate) mod inbound;
mod io;
mod reading;
mod request_queue;
mod state;
mod writing;

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deckwatch_cdr::CharSet;
use deckwatch_giop::Request;
use deckwatch_sync::SlotKey;

use crate::accounts::{Account, Bound};
use crate::contexts;
use crate::trace::Side;
use crate::transport::{Interest, Source, Stream, TransportError};
use crate::{Caller, CallerConnection, Completion, SystemException, minor, raise};
use bidirectional::Bidirectional;
pub(crate) use inbound::{Arrived, Inbound};
pub(crate) use io::Io;
use reading::ReadHalf;
pub(crate) use reading::{Claiming, Left, Read, Reading};
pub(crate) use request_queue::RequestQueue;
use state::{ADOPTED, BROUGHT, HANDED_OVER, HELD_UP, PARKED, READ_OUT, State};
use writing::WriteHalf;
pub(crate) use writing::room_of;

/// One connection.
pub(crate) struct Connection {
    stream: Arc<dyn Stream>,
    /// Its token in the poller: its key in the lane's table.
    token: AtomicU64,
    /// Its number in the trace.
    number: u32,
    state: State,
    reader: ReadHalf,
    writer: WriteHalf,
    account: Arc<Account>,
    /// Requests that are being served or wait for that: two-way ones, and those in its request queue, parked, or
    /// waiting for their start time.
    serving: AtomicUsize,
    /// The code set that the client has announced for `string`, numbered from 1; 0: none yet.
    chars: AtomicU8,
    /// Set once it is bidirectional.
    bidirectional: OnceLock<Arc<Bidirectional>>,
}

impl Connection {
    /// Messages above `message_max` octets are a fault.
    pub(crate) fn new(
        stream: Arc<dyn Stream>,
        bidirectional: Option<&Arc<Bidirectional>>,
        account: Arc<Account>,
        io: &Io,
    ) -> Self {
        Self {
            stream,
            token: AtomicU64::new(0),
            number: io.trace.next_connection(),
            state: State::default(),
            reader: ReadHalf::new(&account, io),
            writer: WriteHalf::new(&account),
            account,
            serving: AtomicUsize::new(0),
            chars: AtomicU8::new(0),
            bidirectional: bidirectional
                .cloned()
                .map_or_else(OnceLock::new, OnceLock::from),
        }
    }

    /// Sets its key in the lane's table, once.
    pub(crate) fn set_key(&self, key: SlotKey) {
        self.token.store(token_of(key), Ordering::Relaxed);
        if let Some(bidirectional) = self.bidirectional.get() {
            bidirectional.set_key(key);
        }
    }

    /// Its key in the lane's table.
    pub(crate) fn key(&self) -> SlotKey {
        key_of(self.token())
    }

    pub(crate) fn token(&self) -> u64 {
        self.token.load(Ordering::Relaxed)
    }

    /// Its number in the trace.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// Itself as the connection of a caller.
    #[inline]
    pub(crate) fn as_caller(&self) -> CallerConnection {
        CallerConnection {
            token: self.token(),
            number: self.number,
        }
    }

    /// The account of its peer.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Whether it holds a place of this kind.
    pub(crate) fn holds(&self, place: Bound) -> bool {
        places_of(&*self.stream).contains(&place)
    }

    /// Gives its places back. Returns whether no place for a connection was free before.
    pub(crate) fn leave(&self) -> bool {
        let places = places_of(&*self.stream).iter();
        let gave = |was_full, place: &Bound| self.account.give(*place, 1) || was_full;
        places.fold(false, gave)
    }

    /// The process at its other end.
    pub(crate) fn caller(&self) -> Caller {
        self.stream.caller()
    }

    /// The name in the certificate of the process at its other end.
    pub(crate) fn caller_name(&self) -> Option<Arc<str>> {
        self.stream.caller_name()
    }

    /// Whether the process at its other end connected from the address that it connected to.
    pub(crate) fn is_from_own_address(&self) -> bool {
        self.stream.is_from_own_address()
    }

    /// What makes it bidirectional, if it is.
    #[inline]
    pub(crate) fn bidirectional(&self) -> Option<&Arc<Bidirectional>> {
        self.bidirectional.get()
    }

    /// Whether this ORB has opened it.
    pub(crate) fn is_opened_here(&self) -> bool {
        self.bidirectional()
            .is_some_and(|bidirectional| bidirectional.is_opened_here)
    }

    /// Whether a reply is awaited over it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.bidirectional()
            .is_some_and(|bidirectional| bidirectional.is_awaited())
    }

    /// Its request queue, if it is bidirectional.
    pub(crate) fn requests(&self) -> Option<&RequestQueue> {
        self.bidirectional()
            .map(|bidirectional| &bidirectional.requests)
    }

    #[inline]
    pub(crate) fn has_full_queue(&self) -> bool {
        self.requests().is_some_and(RequestQueue::is_full)
    }

    /// Whether a thread blocks in its read.
    #[inline]
    pub(crate) fn is_adopted(&self) -> bool {
        self.state.has(ADOPTED)
    }

    #[inline]
    pub(crate) fn is_parked(&self) -> bool {
        self.state.has(PARKED)
    }

    pub(crate) fn is_held_up(&self) -> bool {
        self.state.has(HELD_UP)
    }

    pub(crate) fn is_read_out(&self) -> bool {
        self.state.has(READ_OUT)
    }

    /// Whether at least one message has arrived.
    pub(crate) fn has_brought(&self) -> bool {
        self.state.has(BROUGHT)
    }

    /// Whether it must not be read on now.
    pub(crate) fn must_be_held(&self) -> bool {
        self.is_parked() || (self.owes() || self.has_full_queue()) && !self.is_awaited()
    }

    /// Whether a request is in progress, or a reply has not been written in full.
    pub(crate) fn answers(&self) -> bool {
        self.is_serving() || self.owes()
    }

    /// Whether a request is in progress.
    pub(crate) fn is_serving(&self) -> bool {
        self.serving.load(Ordering::SeqCst) != 0
    }

    /// Whether nothing seems to happen on it. Another thread may have the claim to read it.
    pub(crate) fn looks_quiet(&self) -> bool {
        let is_needed = self.bidirectional().is_some_and(|bidirectional| {
            bidirectional.is_opened_here || bidirectional.is_awaited()
        });
        !is_needed && !self.answers() && self.begun().is_none()
    }

    /// Counts a request in progress.
    pub(crate) fn begin_serving(&self) {
        self.serving.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends `count` requests in progress.
    pub(crate) fn end_serving(&self, count: usize) {
        self.serving.fetch_sub(count, Ordering::SeqCst);
    }

    /// Whether the last of its requests has been answered and no other will come: it is to be closed.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.is_read_out() && !self.answers()
    }

    /// No message behind the current one is parsed until [`Connection::unpark`].
    pub(crate) fn park(&self) {
        self.state.set(PARKED);
    }

    pub(crate) fn unpark(&self) {
        self.state.clear(PARKED);
    }

    /// No further octets are read; requests in progress are still answered.
    pub(crate) fn set_read_out(&self) {
        self.state.set(READ_OUT);
    }

    /// Writes to the trace that it is open.
    pub(crate) fn trace_opened(&self, io: &Io, side: Side) {
        let peer = self.stream.peer();
        io.trace.opened(self.number, side, &peer, Duration::ZERO);
    }

    /// Has the poller watch it.
    pub(crate) fn watch(&self, io: &Io) -> Result<(), TransportError> {
        let source = self.stream.source();
        io.poller.watch(source, self.token(), Interest::Arrival)
    }

    /// Takes the calling thread as the one that blocks in its read. Returns false if another thread does already.
    pub(crate) fn adopt(&self, io: &Io) -> bool {
        if !self.state.set(ADOPTED) {
            return false;
        }
        let source = self.stream.source();
        io.poller.rewatch(source, self.token(), Interest::Nothing);
        true
    }

    /// Ends an adoption, of whichever thread, and has the poller watch the connection again. Returns false if there was
    /// no adoption.
    pub(crate) fn revoke_adoption(&self, io: &Io) -> bool {
        let was_adopted = self.state.clear(ADOPTED);
        if was_adopted {
            self.watch_again(io);
        }
        was_adopted
    }

    /// Wakes a thread for octets that are buffered but not parsed, and for those that have arrived.
    pub(crate) fn hand_over(&self, io: &Io) {
        self.state.set(HANDED_OVER);
        self.end_adoption();
        let source = self.stream.source();
        io.poller.rewatch(source, self.token(), Interest::Handover);
    }

    fn end_adoption(&self) {
        if self.is_adopted() {
            self.state.clear(ADOPTED);
        }
    }

    /// Re-arms the poller for a connection that is no longer adopted; keeps a hand-over requested meanwhile.
    pub(crate) fn watch_again(&self, io: &Io) {
        let source = self.stream.source();
        io.poller.rewatch(source, self.token(), Interest::Arrival);
        // SYNC: pairs with the write in `hand_over`: its rewatch follows ours, or we see that ours was narrower.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.state.has(HANDED_OVER) {
            io.poller.rewatch(source, self.token(), Interest::Handover);
        }
    }

    /// Ends its stream and its bidirectional calls, and takes it from the poller.
    pub(crate) fn shut(&self, io: &Io) {
        self.end_bidirectional(false);
        io.poller.forget(self.stream.source());
        if self.owes() {
            io.poller.forget_room(self.stream.source());
        }
        self.stream.shutdown();
    }

    /// Whether the client has announced its code sets.
    #[inline]
    pub(crate) fn has_code_sets(&self) -> bool {
        self.chars.load(Ordering::Relaxed) != 0
    }

    /// Applies the code sets of the connection to a request. The first request that announces code sets sets them for
    /// all later ones.
    ///
    /// # Errors
    /// MARSHAL if a later request announces another choice.
    pub(crate) fn agree_on_code_sets(
        &self,
        request: &mut Request<'_>,
    ) -> Result<(), SystemException> {
        let mut agreed = self.chars.load(Ordering::Acquire);
        if let Some(chars) = contexts::read::code_sets(request)? {
            let announced = number_of(chars);
            let before =
                self.chars
                    .compare_exchange(0, announced, Ordering::AcqRel, Ordering::Acquire);
            agreed = before.map_or_else(|before| before, |_| announced);
            if agreed != announced {
                let exception = raise::marshal(minor::CODE_SETS_CHANGED, Completion::No);
                return Err(exception);
            }
        }
        if agreed == number_of(CharSet::Utf8) {
            let codec = request.body.codec().with_chars(CharSet::Utf8);
            request.body = request.body.with_codec(codec);
        }
        Ok(())
    }
}

/// The places that a connection over `stream` takes.
pub(crate) fn places_of(stream: &dyn Stream) -> &'static [Bound] {
    match stream.source() {
        Source::SharedMemory(_) => &[Bound::SharedMemory, Bound::Connections],
        _ => &[Bound::Connections],
    }
}

/// A code set as a number, of which 0 is none.
const fn number_of(chars: CharSet) -> u8 {
    match chars {
        CharSet::Latin1 => 1,
        CharSet::Utf8 => 2,
    }
}

const fn token_of(key: SlotKey) -> u64 {
    (key.slot as u64) << 32 | key.generation as u64
}

pub(crate) const fn key_of(token: u64) -> SlotKey {
    SlotKey {
        slot: (token >> 32) as u32,
        generation: token as u32,
    }
}
