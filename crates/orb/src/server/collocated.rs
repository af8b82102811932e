//! Requests of this very process: served by the thread that makes them, by the same road as those that are read from a connection.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_cdr::{Codec, Divided};
use deckwatch_giop::Request;

use super::upcall::Wait;
use super::{Early, Peer, Server, Unanswered};
use crate::adapter::Found;
use crate::connection::bidirectional::Bidirectional;
use crate::trace::NO_CONNECTION;
use crate::transport::Instant64;
use crate::{Completion, SystemException, current, minor, raise};

thread_local! {
    /// The server whose lane the thread belongs to, which may need it for others, by its address; 0: none.
    static OF_SERVER: Cell<usize> = const { Cell::new(0) };
}

/// A caller of this process, which waits for its request in its own thread.
struct LocalCaller<'c> {
    server: &'c Server,
    /// What the request is written in: nothing is announced within a process.
    codec: Codec,
    /// When it gives up waiting.
    until: Option<Instant64>,
    reply: Cell<Vec<u8>>,
}

impl Peer for LocalCaller<'_> {
    fn number(&self) -> u32 {
        NO_CONNECTION
    }

    fn may_enter(&self, server: &Server) -> bool {
        // SYNC: pairs with the store in `close`: either the caller is counted, or it sees that it is too late.
        !server.is_closed.load(Ordering::SeqCst)
    }

    fn agree_on_code_sets(&self, request: &mut Request<'_>) -> Result<(), SystemException> {
        request.body = request.body.with_codec(self.codec);
        Ok(())
    }

    fn bidirectional(&self) -> Option<&Arc<Bidirectional>> {
        None
    }

    fn wait<'w>(&'w self, server: &'w Server) -> Wait<'w> {
        // A lane leaves one of its threads to the others; one that is turned by hand has no other.
        let is_needed = OF_SERVER.get() != 0 || server.is_turned_by_hand;
        Wait {
            patience: is_needed.then_some(&server.wait_permits),
            until: self.until,
        }
    }

    fn put_aside(
        &self,
        _message: &Divided<'_>,
        _request: &Request<'_>,
        start: Instant64,
    ) -> Result<Early, SystemException> {
        self.server.times.await_start(start);
        Ok(Early::Waited)
    }

    fn with_reply(&self, _is_awaited: bool, write: impl FnOnce(&mut Vec<u8>)) {
        let mut reply = self.reply.take();
        write(&mut reply);
        self.reply.set(reply);
    }

    fn write(&self, _reply: &[u8]) {
        // It stands in the caller's buffer.
    }

    fn write_receipt(&self, _receipt: &[u8]) {
        debug_assert!(false, "the reply of a local caller is its receipt");
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl Server {
    /// The calling thread belongs to the lane of this server from here on.
    pub(crate) fn note_own_thread(&self) {
        OF_SERVER.set(std::ptr::from_ref(self).addr());
    }

    /// Whether the calling thread belongs to the lane of this server.
    pub(crate) fn is_own_thread(&self) -> bool {
        OF_SERVER.get() == std::ptr::from_ref(self).addr()
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
        let caller = LocalCaller {
            server: self,
            codec,
            until,
            reply: Cell::new(std::mem::take(reply)),
        };
        let answered = self.answer(&Divided::new(message, &[]), &caller);
        *reply = caller.reply.into_inner();
        // The servant may have called by another ORB: references in the reply are ours.
        current::enter(&self.orb);
        answered.map_err(|unanswered| match unanswered {
            Unanswered::Closed => raise::transient(minor::REQUEST_DISCARDED, Completion::No),
            Unanswered::Unreadable => {
                debug_assert!(false, "what we write is a request");
                raise::internal(0, Completion::No)
            }
        })
    }
}
