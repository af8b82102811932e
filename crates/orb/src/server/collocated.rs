//! Requests of this process: the calling thread serves them through [`Server::answer`], as if they came over a
//! connection.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_cdr::{Codec, Divided};
use deckwatch_giop::Request;

use super::upcall::Wait;
use super::{Early, Peer, Server, Unanswered};
use crate::adapter::Found;
use crate::client::CollocatedServer;
use crate::connection::bidirectional::Bidirectional;
use crate::trace::NO_CONNECTION;
use crate::transport::Instant64;
use crate::{CallerConnection, Completion, SystemException, current, minor, raise};

thread_local! {
    /// The address of the server whose lane the thread belongs to; 0 if it belongs to none.
    static OF_SERVER: Cell<usize> = const { Cell::new(0) };
}

/// A caller in this process. Its own thread serves its request.
struct LocalCaller<'c> {
    server: &'c Server,
    /// How the request is encoded. Within a process no code sets are announced.
    codec: Codec,
    /// The deadline for waits.
    until: Option<Instant64>,
    reply: Cell<Vec<u8>>,
}

impl Peer for LocalCaller<'_> {
    fn number(&self) -> u32 {
        NO_CONNECTION
    }

    fn connection(&self) -> CallerConnection {
        CallerConnection::THIS_PROCESS
    }

    fn may_enter(&self, server: &Server) -> bool {
        // SYNC: pairs with the store in `close`: either the caller is counted, or it sees the closed server.
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
        // A lane keeps one thread free. A lane without threads of its own has only the calling thread.
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
        // The reply is in the buffer of the caller already.
    }

    fn write_receipt(&self, _receipt: &[u8]) {
        debug_assert!(false, "the reply of a local caller is its receipt");
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl Server {
    /// Marks the calling thread as one of the lane of this server.
    pub(crate) fn note_own_thread(&self) {
        OF_SERVER.set(std::ptr::from_ref(self).addr());
    }

    /// Returns whether the calling thread belongs to the lane of this server.
    pub(crate) fn is_own_thread(&self) -> bool {
        OF_SERVER.get() == std::ptr::from_ref(self).addr()
    }
}

impl CollocatedServer for Server {
    fn serves_at_once(&self, key: &[u8]) -> bool {
        match self.adapter.find_at_once(key) {
            Some(Found::Active(_, object)) => {
                let adapter = &object.adapter;
                adapter.manager.is_active() && !adapter.is_for_main() && !adapter.is_serial()
            }
            _ => false,
        }
    }

    fn serve_here(
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
        // The servant may have called through another ORB; references in the reply belong to this one.
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
