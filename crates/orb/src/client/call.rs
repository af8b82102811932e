//! What is called, wherever its request goes.

use deckwatch_giop::Response;
use deckwatch_giop::invocation::Times;

use crate::contexts::ExtraContext;
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
