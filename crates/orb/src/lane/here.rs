//! Requests of this very process: served by the thread that makes them, by the same road as those that are read from a connection.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use deckwatch_cdr::{Codec, Divided};
use deckwatch_giop::Message;

use super::Lane;
use super::upcall::{Caller, Upcall};
use crate::adapter::Found;
use crate::transport::Instant64;
use crate::wire::Contexts;
use crate::{Completion, SystemException, current, minor, raise};

thread_local! {
    /// The thread belongs to a lane, which may need it for others.
    static IS_OF_A_LANE: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread belongs to a lane from here on.
pub(super) fn note_lane_thread() {
    IS_OF_A_LANE.set(true);
}

impl Lane {
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
        // SYNC: pairs with the swap in `shutdown`: either we are counted, or we see that it is too late.
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
        let is_needed = IS_OF_A_LANE.get() || self.shape.threads == 0;
        let patience = is_needed.then_some(&self.holds);
        let contexts = Contexts::new();
        let is_answered = self.answer(
            &mut Upcall {
                connection: None,
                caller: Caller::Here { patience, until },
                message: &message,
                request: &request,
                reply,
                contexts: contexts.as_slice(),
                flow: None,
            },
            Ok(()),
        );
        debug_assert!(!is_answered, "nobody else answers");
        Ok(())
    }
}
