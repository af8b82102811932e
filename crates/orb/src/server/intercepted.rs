//! The decorator for interceptors: a servant is called between their interception points (CORBA 3.3 part 1, clause
//! 16.3.6).
//!
//! [`Server::answer`] uses it only if the ORB has interceptors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Server;
use super::outcome::Outcome;
use super::upcall::{DirectCall, ServantCall, Upcall};
use crate::contexts::ExtraContext;
use crate::interceptor::{Registered, Served, ServerFlow};
use crate::{Servant, current};

/// The call of a servant between the points `receive_request` and the ending points.
#[derive(Default)]
pub(super) struct InterceptedCall {
    /// `None` while the main thread has it.
    flow: Option<Box<ServerFlow>>,
}

impl ServantCall for InterceptedCall {
    fn call(
        &mut self,
        server: &Server,
        upcall: &mut Upcall<'_>,
        servant: &dyn Servant,
        id: &[u8],
    ) -> Outcome {
        let request = upcall.request;
        current::enter(&server.orb);
        let adapter = server.adapter.current_poa();
        let flow = self.flow.as_mut();
        let early = flow.and_then(|flow| flow.receive_request(request, servant, id, adapter));
        let outcome = match early {
            Some(served) => Outcome::from(served),
            None => DirectCall.call(server, upcall, servant, id),
        };
        let Some(flow) = &mut self.flow else {
            return outcome;
        };
        let served = outcome.served(upcall.reply);
        match flow.servant_returned(request, &served) {
            Some(exception) if served != Served::Receipted => Outcome::Raise(exception),
            _ => outcome,
        }
    }

    fn enter_thread(&mut self) {
        if let Some(flow) = &mut self.flow {
            flow.enter();
        }
    }

    fn leave_thread(&mut self) {
        if let Some(flow) = &mut self.flow {
            flow.leave();
        }
    }
}

impl InterceptedCall {
    /// Serves a request. Returns its outcome, and the service contexts that interceptors have added to the reply.
    #[inline(never)]
    pub(super) fn serve(
        server: &Server,
        all: &Arc<Registered>,
        upcall: &mut Upcall<'_>,
    ) -> (Outcome, Vec<ExtraContext>) {
        current::enter(&server.orb);
        let mut flow = Box::new(ServerFlow::new(all));
        flow.enter();
        let early = flow.receive_contexts(upcall.request);
        let mut call = Self { flow: Some(flow) };
        let outcome = match early {
            Some(served) => Outcome::from(served),
            None => catch_unwind(AssertUnwindSafe(|| server.upcall(upcall, &mut call)))
                .unwrap_or_else(|_| Outcome::Raise(server.count_panic())),
        };
        match call.flow {
            Some(flow) => end(*flow, upcall, outcome),
            None => (outcome, Vec::new()),
        }
    }
}

/// Calls the ending points, which may change the outcome.
fn end(
    mut flow: ServerFlow,
    upcall: &Upcall<'_>,
    outcome: Outcome,
) -> (Outcome, Vec<ExtraContext>) {
    let served = outcome.served(upcall.reply);
    let changed = flow.end(upcall.request, &served);
    flow.leave();
    let outcome = match changed {
        Some(changed) if served != Served::Receipted => Outcome::from(changed),
        _ => outcome,
    };
    (outcome, flow.into_reply_contexts())
}

impl Outcome {
    /// Returns the outcome as interceptors see it.
    fn served(&self, reply: &[u8]) -> Served {
        match self {
            Self::Replied => Served::of_reply(reply),
            Self::Receipted => Served::Receipted,
            Self::Raise(exception) => Served::System(*exception),
            Self::Forward(to) => Served::Forward(to.clone()),
        }
    }
}

impl From<Served> for Outcome {
    fn from(served: Served) -> Self {
        match served {
            Served::System(exception) => Self::Raise(exception),
            Served::Forward(to) => Self::Forward(to),
            Served::Reply | Served::User => Self::Replied,
            Served::Receipted => Self::Receipted,
        }
    }
}
