//! Asynchronous calls as the application sees them (CORBA 3.3 part 1, clauses 17.3 to 17.9): callbacks, and replies
//! that are taken later.
//!
//! Generated `sendc_` operations use [`crate::ObjectRef::send_callback`]. Deferred dynamic requests and pollers, which
//! are in the crate `deckwatch-dynamic`, use [`crate::ObjectRef::send_deferred`].

mod exception_holder;
mod pending_reply;

use std::sync::Arc;

use deckwatch_cdr::{DecodeError, Reader};
use deckwatch_giop::ReplyStatus;

use crate::SystemException;
use crate::call_side::CallSide;
use crate::client::{End, Handler, Reply};
use crate::counters::Counter;

pub use exception_holder::ExceptionHolder;
pub use pending_reply::PendingReply;

/// The reply of an asynchronous call, for its handler.
pub struct AsynchronousReply {
    orb: Arc<CallSide>,
    end: Result<Reply, SystemException>,
}

/// Passes a reply to the application's handler. An error of the handler is counted and not reported anywhere else.
pub type Deliver = Box<dyn FnOnce(AsynchronousReply) -> Result<(), SystemException> + Send>;

impl AsynchronousReply {
    /// Returns the results. An exception is returned in a holder.
    ///
    /// # Errors
    /// The exception that the call has raised.
    pub fn results<T>(
        self,
        results: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, ExceptionHolder> {
        let reply = self.end.map_err(ExceptionHolder::of_system)?;
        let message = reply.message();
        let mut body = reply.body(&message);
        let given = match reply.status() {
            ReplyStatus::NoException => results(&mut body).map_err(|error| {
                ExceptionHolder::of_system(SystemException::from(error).of_reply())
            }),
            _ => Err(ExceptionHolder::of_user(body)),
        };
        reply.give_back(&self.orb.client);
        given
    }
}

impl std::fmt::Debug for AsynchronousReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AsynchronousReply")
    }
}

/// Returns the handler that the ORB calls when a call has ended.
pub(crate) fn handler(deliver: Deliver) -> Handler {
    Box::new(move |orb, end| {
        let end = match end {
            End::Replied(reply) => Ok(reply),
            End::Raised(exception) => Err(exception),
        };
        let orb = Arc::clone(orb);
        let counters = Arc::clone(&orb.client.counters);
        if deliver(AsynchronousReply { orb, end }).is_err() {
            counters.count(Counter::CallbacksFailed);
        }
    })
}
