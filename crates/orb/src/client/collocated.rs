//! Calls of objects that this ORB serves itself: marshalled once, served by the calling thread through the adapter, and
//! read where the skeleton has written. No socket, no system call.

use std::sync::{Arc, Weak};

use deckwatch_cdr::{Codec, Divided};

use super::Deadlines;
use super::attempt::Attempt;
use super::call::{Call, CallKind};
use super::reply::Reply;
use super::request::{RequestExtras, write_request};
use super::retry::Failure;
use super::target::Target;
use crate::counters::Counter;
use crate::trace::{Direction, NO_CONNECTION};
use crate::transport::Instant64;
use crate::wire::{self, FromServer};
use crate::{Completion, SystemException, raise, raise::own};

/// What a collocated call needs of its ORB's server.
pub(crate) trait CollocatedServer: Send + Sync {
    /// Whether a request for the object of this key can be served without waiting: it is active, its manager is active,
    /// and any thread may call it at any time.
    fn serves_at_once(&self, key: &[u8]) -> bool;

    /// Serves a whole request in the calling thread, and writes its whole reply. `until` is when the caller gives up
    /// waiting for its turn; a servant is not interrupted.
    ///
    /// # Errors
    /// TRANSIENT if the ORB accepts no new requests.
    fn serve_here(
        &self,
        message: &[u8],
        codec: Codec,
        until: Option<Instant64>,
        reply: &mut Vec<u8>,
    ) -> Result<(), SystemException>;
}

/// The server in which the calling thread may serve a call itself; `None`: the call is sent over a connection.
///
/// The one place that decides it. A LocateRequest asks about the network, and is sent there. A one-way whose caller
/// must not wait is served here only if an active object can be called at once and no earlier one-way is under way.
#[inline]
pub(super) fn may_be_collocated(
    target: &Target,
    call: &Call<'_>,
) -> Option<Arc<dyn CollocatedServer>> {
    let server = target.here.as_ref()?;
    server_here(server, target, call)
}

fn server_here(
    server: &Weak<dyn CollocatedServer>,
    target: &Target,
    call: &Call<'_>,
) -> Option<Arc<dyn CollocatedServer>> {
    let server = server.upgrade()?;
    let may_be = match call.kind {
        CallKind::TwoWay => true,
        CallKind::Locate | CallKind::BindBand => false,
        CallKind::Oneway if target.binding.has_oneways() => false,
        CallKind::Oneway => {
            call.response.is_expected() || server.serves_at_once(target.profile.object_key())
        }
    };
    may_be.then_some(server)
}

impl Attempt<'_> {
    /// Has `server` serve the call in this thread. The deadline bounds what the call waits for; a servant is not
    /// interrupted, but results that are late are dropped.
    pub(super) fn serve_here(&self, server: &dyn CollocatedServer) -> Result<Reply, Failure> {
        let (client, deadlines) = (self.client, &self.deadlines);
        self.require_time(deadlines.request, own::TIMED_OUT_SENDING, Completion::No)?;
        let request = self.marshal_for_here()?;
        let mut answer = client.slab.lend_empty();
        let profile = &self.target.profile;
        let served = server.serve_here(&request, profile.codec(), deadlines.reply, &mut answer);
        client.slab.take_back_written(request);
        if let Err(exception) = served {
            client.slab.take_back_written(answer);
            return Err(Failure::last(exception));
        }
        client
            .trace
            .message(NO_CONNECTION, self.call.number, Direction::In, &answer);
        let reply = match wire::parse_reply(&Divided::new(&answer, &[]), profile) {
            Ok(FromServer::Reply(head)) => Reply::written_here(answer, head),
            _ => {
                debug_assert!(false, "a server writes replies");
                let exception = raise::internal(0, Completion::Maybe);
                return Err(Failure::last(exception));
            }
        };
        if reply.is_for_caller()
            && let Err(failure) =
                self.require_time(deadlines.reply, own::TIMED_OUT_WAITING, Completion::Yes)
        {
            reply.give_back(client);
            return Err(failure);
        }
        Ok(reply)
    }

    /// Has `server` serve a one-way in this thread. Its outcome is dropped.
    pub(super) fn serve_oneway_here(&self, server: &dyn CollocatedServer) -> Result<(), Failure> {
        let (client, call) = (self.client, self.call);
        if call.is_timed() {
            let now = client.transport.now();
            Deadlines::of(client, call, now)
                .await_start(client, call, now)
                .map_err(Failure::last)?;
        }
        let request = self.marshal_for_here()?;
        let mut answer = client.slab.lend_empty();
        let codec = self.target.profile.codec();
        let _ = server.serve_here(&request, codec, None, &mut answer); // Nobody waits for it.
        client.slab.take_back_written(request);
        client.slab.take_back_written(answer);
        Ok(())
    }

    fn marshal_for_here(&self) -> Result<Vec<u8>, Failure> {
        let client = self.client;
        client.counters.count(Counter::CollocatedCalls);
        let mut buffer = client.slab.lend_empty();
        let extras = RequestExtras {
            id: client.next_collocated(),
            sends_code_sets: false,
            listen_points: None,
        };
        let written = write_request(&mut buffer, self.target, self.call, &extras, client.sizes);
        if let Err(error) = written {
            client.slab.take_back_written(buffer);
            return Err(Failure::last(SystemException::from(error)));
        }
        client
            .trace
            .message(NO_CONNECTION, self.call.number, Direction::Out, &buffer);
        Ok(buffer)
    }

    fn require_time(
        &self,
        deadline: Option<Instant64>,
        minor: u32,
        completed: Completion,
    ) -> Result<(), Failure> {
        match deadline {
            Some(deadline) if self.client.transport.now() >= deadline => {
                Err(Failure::timed_out(self.client, minor, completed))
            }
            _ => Ok(()),
        }
    }
}
