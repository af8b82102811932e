//! Requests of this very process: served by the thread that makes them, by the same road as those that are read from a connection.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use deckwatch_cdr::{Codec, Divided};
use deckwatch_giop::Message;

use super::upcall::{Caller, Upcall};
use crate::adapter::{Found, Patience, WaitPermits};
use crate::contexts::written::echoed_priority;
use crate::lane::Lane;
use crate::transport::Instant64;
use crate::{Completion, SystemException, current, minor, raise};

thread_local! {
    /// The lane that the thread belongs to, which may need it for others, by its address; 0: none.
    static OF_LANE: Cell<usize> = const { Cell::new(0) };
}

impl Lane {
    /// The calling thread belongs to this lane from here on.
    pub(crate) fn note_own_thread(&self) {
        OF_LANE.set(std::ptr::from_ref(self).addr());
    }

    /// How the calling thread may wait for a reply that a thread of this lane has to read: not as the last of them.
    pub(crate) fn patience_for_replies(&self) -> Patience<'_> {
        static NONE: WaitPermits = WaitPermits::new(0);
        let is_reader = self.shape.threads == 0 || OF_LANE.get() == std::ptr::from_ref(self).addr();
        let more = self.seats.len() > 1;
        is_reader.then_some(if more { &self.wait_permits } else { &NONE })
    }

    /// Whether a request for the object of this key would wait for nobody: it is active, its manager lets requests through, and any
    /// thread may call it at any time.
    pub(crate) fn serves_at_once(&self, key: &[u8]) -> bool {
        match self.adapter.find_at_once(key) {
            Some(Found::Active(_, object)) => {
                let adapter = &object.adapter;
                adapter.manager.is_active() && !adapter.is_for_main() && !adapter.is_serial()
            }
            _ => false,
        }
    }

    /// Serves a request that the calling thread has written whole, and writes its whole reply. `until` is when the caller gives up
    /// waiting for its turn; what runs is not interrupted.
    ///
    /// # Errors
    /// TRANSIENT where the ORB takes no new requests.
    pub(crate) fn serve_here(
        &self,
        message: &[u8],
        codec: Codec,
        until: Option<Instant64>,
        reply: &mut Vec<u8>,
    ) -> Result<(), SystemException> {
        self.in_progress.fetch_add(1, Ordering::SeqCst);
        // SYNC: pairs with the swap in `close_entrance`: either we are counted, or we see that it is too late.
        let served = if self.closing.load(Ordering::SeqCst) {
            Err(raise::transient(minor::REQUEST_DISCARDED, Completion::No))
        } else {
            self.answer_here(message, codec, until, reply)
        };
        self.in_progress.fetch_sub(1, Ordering::SeqCst);
        // The servant may have called by another ORB: references in the reply are ours.
        current::enter(&self.orb);
        served
    }

    fn answer_here(
        &self,
        message: &[u8],
        codec: Codec,
        until: Option<Instant64>,
        reply: &mut Vec<u8>,
    ) -> Result<(), SystemException> {
        let message = Divided::new(message, &[]);
        let Ok(Message::Request(mut request)) = Message::parse_joined(&message) else {
            debug_assert!(false, "what we write is a request");
            return Err(raise::internal(0, Completion::No));
        };
        // Nothing is announced between us: what it was written in is known.
        request.body = request.body.with_codec(codec);
        // A lane leaves one of its threads to the others; one that is turned by hand has no other.
        let is_needed = OF_LANE.get() != 0 || self.shape.threads == 0;
        let patience = is_needed.then_some(&self.wait_permits);
        let echoed = echoed_priority(&request);
        let ready = self.await_start(&request);
        let is_answered = self.answer(
            &mut Upcall {
                connection: None,
                caller: Caller::Here { patience, until },
                message: &message,
                request: &request,
                reply,
                contexts: echoed.as_slice(),
                flow: None,
            },
            ready,
        );
        debug_assert!(!is_answered, "nobody else answers");
        Ok(())
    }
}
