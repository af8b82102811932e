//! Passes one request through the server interceptors.

use std::sync::Arc;

use deckwatch_giop::{Message, ReplyStatus as Status, Request};

use super::current::{self, Slots};
use super::server_info::Point;
use super::{InterceptorError, Registered, ReplyStatus, ServerRequestInfo, facts, guarded};
use super::{ServerRequestInterceptor as Interceptor, SystemException};
use crate::contexts::ExtraContext;
use crate::{ObjectRef, Poa, Servant};

/// One request, from its first starting point to its last ending point.
pub(crate) struct ServerFlow {
    pub(super) all: Arc<Registered>,
    pub(super) request_id: u32,
    pub(super) reply_contexts: Vec<ExtraContext>,
    /// The object that was found: its id and its adapter.
    pub(super) object: Option<(Vec<u8>, Poa)>,
    /// The number of interceptors whose starting point has succeeded and whose ending point has not been called.
    entered: usize,
    /// The slots of the request while no thread has entered it.
    slots: Slots,
}

/// How a request ended, as interceptors see it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Served {
    Reply,
    User,
    System(SystemException),
    Forward(ObjectRef),
    /// The caller was answered before the servant began.
    Receipted,
}

impl From<InterceptorError> for Served {
    fn from(error: InterceptorError) -> Self {
        match error {
            InterceptorError::System(exception) => Self::System(exception),
            InterceptorError::ForwardRequest(forward) => Self::Forward(forward.forward_reference),
        }
    }
}

impl Served {
    /// Returns the ending for the reply that a servant has written.
    pub(crate) fn of_reply(reply: &[u8]) -> Self {
        match Message::parse(reply) {
            Ok(Message::Reply(reply)) if reply.status == Status::UserException => Self::User,
            _ => Self::Reply,
        }
    }
}

impl ServerFlow {
    pub(crate) fn new(all: &Arc<Registered>) -> Self {
        Self {
            all: Arc::clone(all),
            request_id: all.next_request(),
            reply_contexts: Vec::new(),
            object: None,
            entered: 0,
            slots: Slots::default(),
        }
    }

    /// Makes the slots of the request the calling thread's slots.
    pub(crate) fn enter(&mut self) {
        current::enter(self.all.number, std::mem::take(&mut self.slots));
    }

    /// Takes the slots back from the calling thread.
    pub(crate) fn leave(&mut self) {
        self.slots = current::leave(self.all.number);
    }

    /// Calls the starting points. Returns the ending if one of them raises; the ending points must still be called.
    pub(crate) fn receive_contexts(&mut self, request: &Request<'_>) -> Option<Served> {
        for (index, interceptor) in Arc::clone(&self.all).server.iter().enumerate() {
            let call = |info: &mut ServerRequestInfo<'_>| {
                interceptor.receive_request_service_contexts(info)
            };
            let passed = self.at(Point::RequestServiceContexts, request, None, None, call);
            if let Err(error) = passed {
                return Some(error.into());
            }
            self.entered = index + 1;
        }
        None
    }

    /// Calls the points before the servant. Returns the ending if one of them raises.
    pub(crate) fn receive_request(
        &mut self,
        request: &Request<'_>,
        servant: &dyn Servant,
        id: &[u8],
        adapter: Option<Poa>,
    ) -> Option<Served> {
        self.object = adapter.map(|adapter| (id.to_vec(), adapter));
        for interceptor in Arc::clone(&self.all).server.iter().take(self.entered) {
            let call = |info: &mut ServerRequestInfo<'_>| interceptor.receive_request(info);
            if let Err(error) = self.at(Point::Request, request, Some(servant), None, call) {
                return Some(error.into());
            }
        }
        None
    }

    /// Calls the points after the servant. Returns the system exception that one of them has raised.
    pub(crate) fn servant_returned(
        &mut self,
        request: &Request<'_>,
        served: &Served,
    ) -> Option<SystemException> {
        let mut raised: Option<Served> = None;
        let all = Arc::clone(&self.all);
        for interceptor in all.server.iter().take(self.entered).rev() {
            let now = raised.as_ref().unwrap_or(served);
            let call = |info: &mut ServerRequestInfo<'_>| Ok(interceptor.servant_returned(info)?);
            if let Err(error) = self.at(Point::ServantReturned, request, None, Some(now), call) {
                raised = Some(error.into());
            }
        }
        match raised {
            Some(Served::System(exception)) => Some(exception),
            _ => None,
        }
    }

    /// Calls the ending points. Returns the new ending if an interceptor has changed it.
    pub(crate) fn end(&mut self, request: &Request<'_>, served: &Served) -> Option<Served> {
        let all = Arc::clone(&self.all);
        let mut changed: Option<Served> = None;
        while let Some(next) = self.entered.checked_sub(1) {
            self.entered = next;
            let now = changed.as_ref().unwrap_or(served);
            let interceptor = &*all.server[next];
            let (point, call): (Point, Call) = match now {
                Served::Reply => (Point::SendReply, |one, info| Ok(one.send_reply(info)?)),
                Served::User | Served::System(_) => {
                    (Point::SendException, |one, info| one.send_exception(info))
                }
                Served::Forward(_) | Served::Receipted => {
                    (Point::SendOther, |one, info| one.send_other(info))
                }
            };
            let call = |info: &mut ServerRequestInfo<'_>| call(interceptor, info);
            let passed = self.at(point, request, None, Some(now), call);
            if let Err(error) = passed {
                changed = Some(error.into());
            }
        }
        changed
    }

    /// Returns the service contexts that interceptors have added to the reply.
    pub(crate) fn into_reply_contexts(self) -> Vec<ExtraContext> {
        self.reply_contexts
    }

    /// Calls one interceptor at `point`.
    fn at(
        &mut self,
        point: Point,
        request: &Request<'_>,
        servant: Option<&dyn Servant>,
        served: Option<&Served>,
        call: impl FnOnce(&mut ServerRequestInfo<'_>) -> Result<(), InterceptorError>,
    ) -> Result<(), InterceptorError> {
        let (status, exception, forward) = match served {
            None => (ReplyStatus::Unknown, None, None),
            Some(Served::Reply | Served::Receipted) => (ReplyStatus::Successful, None, None),
            Some(Served::User) => (
                ReplyStatus::UserException,
                Some(facts::any_of_unknown()),
                None,
            ),
            Some(Served::System(exception)) => (
                ReplyStatus::SystemException,
                Some(facts::any_of(*exception)),
                None,
            ),
            Some(Served::Forward(to)) => (ReplyStatus::LocationForward, None, Some(to.clone())),
        };
        let raised = match served {
            Some(Served::System(exception)) => Some(*exception),
            _ => None,
        };
        let mut info = ServerRequestInfo {
            point,
            request,
            flow: self,
            servant,
            status,
            exception,
            raised,
            forward,
        };
        guarded(|| call(&mut info))
    }
}

/// Calls one of the ending points.
type Call = fn(&dyn Interceptor, &mut ServerRequestInfo<'_>) -> Result<(), InterceptorError>;
