//! The way of one request through the interceptors of the client's side.

use std::cell::RefCell;
use std::sync::Arc;

use deckwatch_giop::ReplyStatus as Status;

use super::client_info::Point;
use super::current::{Apart, Slots};
use super::{ClientRequestInfo, InterceptorError, Registered, ReplyStatus, facts, guarded};
use crate::client::{Call, Client, Outcome, Reply};
use crate::reference::{Inner, Target};
use crate::{ObjectRef, SystemException};

/// One request, from its first starting point to its last ending point.
pub(crate) struct ClientFlow {
    all: Arc<Registered>,
    info: ClientRequestInfo,
    /// Interceptors whose starting point has succeeded and that have not seen the end.
    entered: usize,
}

/// What a request ends in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Reply,
    /// A user exception of this id.
    User(String),
    System(SystemException),
    Forward(ObjectRef),
    /// Nobody waits for the rest.
    Sent,
    /// It is sent again elsewhere.
    Retry,
    /// It was given up.
    Abandoned,
}

impl From<InterceptorError> for Ending {
    fn from(error: InterceptorError) -> Self {
        match error {
            InterceptorError::System(exception) => Self::System(exception),
            InterceptorError::ForwardRequest(forward) => Self::Forward(forward.forward_reference),
        }
    }
}

impl Ending {
    /// What an interceptor has made of it, for the caller.
    pub(crate) fn into_outcome(self) -> Result<Outcome, SystemException> {
        match self {
            Self::System(exception) => Err(exception),
            Self::Forward(to) => Ok(Outcome::Forwarded(to.ior().clone(), false)),
            // An interceptor raises one of the two.
            _ => Err(facts::out_of_place()),
        }
    }
}

impl ClientFlow {
    /// Begins a request, and passes its starting points. `is_synchronous`: the calling thread waits for the reply.
    ///
    /// # Errors
    /// What it has ended in before it was sent; all ending points have been passed.
    pub(crate) fn begin(
        all: &Arc<Registered>,
        origin: &Inner,
        target: &Target,
        call: &Call<'_>,
        is_synchronous: bool,
    ) -> Result<Self, Ending> {
        let mut flow = Self {
            all: Arc::clone(all),
            entered: 0,
            info: ClientRequestInfo {
                point: Point::SendRequest,
                request_id: all.next_request(),
                operation: call.operation.to_owned(),
                target: origin.to_object(),
                profile: target.profile.clone(),
                response: call.response,
                is_synchronous,
                policies: *call.policies,
                request_contexts: Vec::new(),
                reply_contexts: Vec::new(),
                slots: Slots::of_thread(all),
                slot_count: all.slots,
                status: ReplyStatus::Unknown,
                exception: None,
                forward: None,
            },
        };
        match flow.send_request() {
            Ok(()) => Ok(flow),
            Err(error) => {
                let ending = Ending::from(error);
                Err(flow.end(&ending).unwrap_or(ending))
            }
        }
    }

    fn send_request(&mut self) -> Result<(), InterceptorError> {
        let _apart = Apart::enter(&self.all);
        for interceptor in &self.all.client {
            guarded(|| interceptor.send_request(&mut self.info))?;
            self.entered += 1;
        }
        Ok(())
    }

    /// The service contexts that interceptors have added.
    pub(crate) fn request_contexts(&self) -> Vec<super::ExtraContext> {
        self.info.request_contexts.clone()
    }

    /// Keeps what interceptors may ask of a reply.
    pub(crate) fn note_reply(&mut self, reply: &Reply) {
        let message = reply.message();
        if let Ok(deckwatch_giop::Message::Reply(reply)) =
            deckwatch_giop::Message::parse_joined(&message)
        {
            let contexts = reply.contexts.iter();
            let owned = contexts.map(|context| (context.id, context.data.to_vec()));
            self.info.reply_contexts = owned.collect();
        }
    }

    /// Passes the ending points. What the interceptors have made of the end, where they have made something else of it.
    pub(crate) fn end(&mut self, ending: &Ending) -> Option<Ending> {
        let _apart = Apart::enter(&self.all);
        let mut changed: Option<Ending> = None;
        while let Some(next) = self.entered.checked_sub(1) {
            self.entered = next;
            self.trace_raised(changed.as_ref().unwrap_or(ending));
            let (interceptor, info) = (&self.all.client[next], &mut self.info);
            let passed = guarded(|| match info.point {
                Point::ReceiveReply => Ok(interceptor.receive_reply(info)?),
                Point::ReceiveException => interceptor.receive_exception(info),
                Point::ReceiveOther | Point::SendRequest => interceptor.receive_other(info),
            });
            if let Err(error) = passed {
                changed = Some(Ending::from(error));
            }
        }
        changed
    }

    fn trace_raised(&mut self, ending: &Ending) {
        let info = &mut self.info;
        (info.exception, info.forward) = (None, None);
        (info.point, info.status) = match ending {
            Ending::Reply => (Point::ReceiveReply, ReplyStatus::Successful),
            Ending::User(id) => {
                info.exception = Some((facts::any_of_unknown(), id.clone()));
                (Point::ReceiveException, ReplyStatus::UserException)
            }
            Ending::System(exception) => {
                let id = exception.kind.repository_id().to_owned();
                info.exception = Some((facts::any_of(*exception), id));
                (Point::ReceiveException, ReplyStatus::SystemException)
            }
            Ending::Forward(to) => {
                info.forward = Some(to.clone());
                (Point::ReceiveOther, ReplyStatus::LocationForward)
            }
            Ending::Sent => (Point::ReceiveOther, ReplyStatus::Successful),
            Ending::Retry => (Point::ReceiveOther, ReplyStatus::TransportRetry),
            Ending::Abandoned => (Point::ReceiveOther, ReplyStatus::Unknown),
        };
    }
}

/// What a request has come to, once the interceptors have seen it.
pub(crate) fn completed(
    client: &Client,
    flow: RefCell<ClientFlow>,
    outcome: Result<Outcome, SystemException>,
) -> Result<Outcome, SystemException> {
    let mut flow = flow.into_inner();
    let ending = match &outcome {
        Ok(Outcome::Replied(reply)) if reply.status() == Status::UserException => {
            let message = reply.message();
            let id = reply.body(&message).read_string_octets();
            Ending::User(String::from_utf8_lossy(id.unwrap_or_default()).into_owned())
        }
        Ok(Outcome::Replied(_)) => Ending::Reply,
        Ok(Outcome::Forwarded(ior, _)) => Ending::Forward(flow.info.target.like(ior.clone())),
        Err(exception) => Ending::System(*exception),
    };
    let Some(changed) = flow.end(&ending) else {
        return outcome;
    };
    if let Ok(Outcome::Replied(reply)) = outcome {
        reply.give_back(client);
    }
    changed.into_outcome()
}

impl std::fmt::Debug for ClientFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientFlow")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}
