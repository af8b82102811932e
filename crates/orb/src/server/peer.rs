//! The sender of a request, as far as answering needs it.

use std::sync::Arc;

use deckwatch_cdr::Divided;
use deckwatch_giop::Request;

use super::Server;
use super::upcall::Wait;
use crate::connection::bidirectional::Bidirectional;
use crate::transport::Instant64;
use crate::{CallerConnection, SystemException};

/// The sender of a request. Answering is generic over it; only cold paths use it as a `dyn Peer`.
pub(crate) trait Peer {
    /// Returns the number of its connection in the trace.
    fn number(&self) -> u32;

    /// Returns the connection that brings its requests.
    fn connection(&self) -> CallerConnection;

    /// Returns whether the server still accepts its requests. Called after the request has been counted as in progress.
    fn may_enter(&self, server: &Server) -> bool;

    /// Notes the code sets that a request announces, and decodes the request by those of the connection.
    ///
    /// # Errors
    /// MARSHAL if the request announces other code sets than an earlier one.
    fn agree_on_code_sets(&self, request: &mut Request<'_>) -> Result<(), SystemException>;

    /// Returns the state of its connection, if that is bidirectional.
    fn bidirectional(&self) -> Option<&Arc<Bidirectional>>;

    /// Returns how a request of it may wait.
    fn wait<'w>(&'w self, server: &'w Server) -> Wait<'w>;

    /// Queues a request that has arrived before its start time, or waits for that time.
    ///
    /// # Errors
    /// TRANSIENT at the limit of waiting requests.
    fn put_aside(
        &self,
        message: &Divided<'_>,
        request: &Request<'_>,
        start: Instant64,
    ) -> Result<Early, SystemException>;

    /// Calls `write` with an empty buffer for a reply.
    fn with_reply(&self, is_awaited: bool, write: impl FnOnce(&mut Vec<u8>))
    where
        Self: Sized;

    /// Sends a reply. The calling thread must have the priority of the lane.
    fn write(&self, reply: &[u8]);

    /// Sends a receipt from a thread of any priority.
    fn write_receipt(&self, receipt: &[u8]);

    /// Returns whether the request is a call by this thread.
    fn is_local(&self) -> bool;
}

/// How a request waits for its start time.
pub(crate) enum Early {
    /// It is queued, and answered later.
    PutAside,
    /// The calling thread has waited for the start.
    Waited,
}

/// Why a message is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It cannot be read: the connection must be closed.
    Unreadable,
    /// The server accepts no requests any more.
    Closed,
}
