//! What is called, wherever its request goes.

use deckwatch_giop::Response;
use deckwatch_giop::invocation::Times;

use crate::contexts::ExtraContext;
use crate::interceptor::LastAttempt;
use crate::policy::Overrides;
use crate::rt::Priority;
use crate::trace::CallNumber;
use crate::wire::Arguments;

/// A call, wherever its request goes.
#[derive(Clone, Copy)]
pub(crate) struct Call<'c> {
    pub(crate) operation: &'c str,
    pub(crate) arguments: &'c dyn Arguments,
    /// What the caller waits for.
    pub(crate) response: Response,
    pub(crate) kind: CallKind,
    /// The policies in force.
    pub(crate) policies: &'c Overrides,
    /// The start and end times that its request carries.
    pub(crate) times: Option<&'c Times>,
    /// The CORBA priority of the calling thread, if it has one.
    pub(crate) priority: Option<Priority>,
    /// Its number in the trace.
    pub(crate) number: CallNumber,
    /// Service contexts beside the ORB's own.
    pub(crate) contexts: &'c [ExtraContext],
    /// What interceptors did at its last attempt, kept for the next one; `None` where the calling thread waits for the
    /// reply: that thread still has its slots and its distributable thread.
    pub(crate) last_attempt: Option<&'c LastAttempt>,
}

/// How a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// A request with a reply.
    TwoWay,
    /// It is ordered among the one-ways to its server.
    Oneway,
    /// A LocateRequest.
    Locate,
    /// `_bind_priority_band`: which priorities the connection carries.
    BindBand,
}
