//! The decorator of an attempt. An ORB with client interceptors makes each attempt through this file; without
//! interceptors no code of it runs, and no type of a call refers to it.

use std::collections::HashMap;
use std::sync::Arc;

use deckwatch_giop::{Ior, ReplyStatus as Status};
use deckwatch_sync::PiMutex;

use super::client_info::Point;
use super::current::{Apart, Slots};
use super::{ClientRequestInfo, InterceptorError, Registered, ReplyStatus, facts, guarded};
use crate::client::{Call, CallKind, Client, Outcome, Reply, Target, with_current_targets};
use crate::contexts::ExtraContext;
use crate::limits::FORWARDS_MAX;
use crate::reference::Inner;
use crate::{Completion, ObjectRef, SystemException, raise, raise::own};

/// Makes one attempt by `attempt`, from the interceptors' starting points to their ending points.
pub(crate) fn intercept(
    client: &Client,
    all: &Arc<Registered>,
    (origin, target): (&Inner, &Target),
    call: &Call<'_>,
    attempt: impl FnOnce(&Call<'_>) -> Result<Reply, SystemException>,
) -> Result<Outcome, SystemException> {
    let is_synchronous = call.kind == CallKind::TwoWay;
    let flow = match ClientFlow::begin(all, origin, target, call, is_synchronous) {
        Ok(flow) => flow,
        Err(ending) => return ending.into_outcome(),
    };
    let contexts = flow.request_contexts();
    let replied = attempt(&Call {
        contexts: &contexts,
        ..*call
    });
    flow.end_with(client, replied)
}

/// Sends a one-way without a reply by `send`. If an interceptor forwards it, it is sent again.
pub(crate) fn intercept_oneway(
    client: &Client,
    all: &Arc<Registered>,
    origin: &Inner,
    call: &Call<'_>,
    mut send: impl FnMut(&Call<'_>) -> Result<(), SystemException>,
) -> Result<(), SystemException> {
    let last_attempt = LastAttempt::default();
    let call = &Call {
        last_attempt: Some(&last_attempt),
        ..*call
    };
    for _ in 0..FORWARDS_MAX {
        let target = with_current_targets(client, origin, call, |targets| targets[0].clone())?;
        let outcome = match ClientFlow::begin(all, origin, &target, call, false) {
            Ok(mut flow) => {
                let contexts = flow.request_contexts();
                let sent = send(&Call {
                    contexts: &contexts,
                    ..*call
                });
                let ending = sent.map_or_else(Ending::System, |()| Ending::Sent);
                match flow.end(&ending) {
                    None => return sent,
                    Some(changed) => changed.into_outcome(),
                }
            }
            Err(ending) => ending.into_outcome(),
        };
        match outcome? {
            Outcome::Forwarded(ior, _) => {
                let routes = origin.current().resolve(&ior)?;
                origin.current().remember(Some(Arc::new(routes)));
            }
            Outcome::Replied(reply) => reply.give_back(client),
        }
    }
    Err(raise::transient(own::FORWARD_CIRCLE, Completion::No))
}

/// Sends the request of the asynchronous call `key` by `send`. Its attempt ends later, by [`AsynchronousFlows`].
/// Returns where an interceptor forwards it, if one does.
pub(crate) fn begin_asynchronous(
    client: &Client,
    all: &Arc<Registered>,
    key: usize,
    (origin, target): (&Inner, &Target),
    call: &Call<'_>,
    send: impl FnOnce(&Call<'_>) -> Result<(), SystemException>,
) -> Result<Option<(Ior, bool)>, SystemException> {
    let outcome = match ClientFlow::begin(all, origin, target, call, false) {
        Ok(flow) => {
            let contexts = flow.request_contexts();
            all.asynchronous.insert(key, flow);
            let sent = send(&Call {
                contexts: &contexts,
                ..*call
            });
            match sent {
                Ok(()) => return Ok(None),
                Err(exception) => all.asynchronous.end(client, key, Err(exception)),
            }
        }
        Err(ending) => ending.into_outcome(),
    };
    match outcome? {
        Outcome::Forwarded(ior, is_for_good) => Ok(Some((ior, is_for_good))),
        Outcome::Replied(reply) => {
            debug_assert!(false, "nothing was sent");
            reply.give_back(client);
            Ok(None)
        }
    }
}

/// What interceptors did at the last attempt of a request. A thread of the ORB may make the next attempt of a request
/// that no caller waits for, and must not use its own slots and service contexts.
#[derive(Default)]
pub(crate) struct LastAttempt(PiMutex<Option<Kept>>);

#[derive(Clone)]
struct Kept {
    slots: Slots,
    contexts: Vec<ExtraContext>,
    /// How many interceptors were called.
    called: usize,
}

impl LastAttempt {
    /// Keeps the slots and the service contexts of an attempt that has called `called` interceptors.
    fn keep(&self, info: &ClientRequestInfo, called: usize) {
        let mut kept = self.0.lock("interceptor.attempt");
        let kept = kept.get_or_insert_with(|| Kept {
            slots: info.slots.clone(),
            contexts: Vec::new(),
            called: 0,
        });
        kept.called = kept.called.max(called);
        for (id, data) in &info.request_contexts {
            let _ = facts::add(&mut kept.contexts, *id, data, true); // It replaces: there is no error.
        }
    }

    fn read(&self) -> Option<Kept> {
        self.0.lock("interceptor.attempt").clone()
    }
}

/// The attempts of asynchronous calls that have not ended, each by its call's address.
#[derive(Default)]
pub(crate) struct AsynchronousFlows(PiMutex<HashMap<usize, ClientFlow>>);

impl AsynchronousFlows {
    fn insert(&self, key: usize, flow: ClientFlow) {
        let _ = self.0.lock("interceptor.flows").insert(key, flow); // The earlier attempt has ended.
    }

    fn take(&self, key: usize) -> Option<ClientFlow> {
        self.0.lock("interceptor.flows").remove(&key)
    }

    /// The attempt has a reply, or failed.
    pub(crate) fn end(
        &self,
        client: &Client,
        key: usize,
        replied: Result<Reply, SystemException>,
    ) -> Result<Outcome, SystemException> {
        match self.take(key) {
            Some(flow) => flow.end_with(client, replied),
            None => replied?.into_outcome(client),
        }
    }

    /// The attempt ended without a reply. Returns what the interceptors changed that into.
    pub(crate) fn end_without_reply(&self, key: usize, ending: &Ending) -> Option<Ending> {
        self.take(key)?.end(ending)
    }

    /// The call is dropped.
    pub(crate) fn forget(&self, key: usize) {
        drop(self.take(key));
    }
}

/// One request, from its first starting point to its last ending point.
struct ClientFlow {
    all: Arc<Registered>,
    info: ClientRequestInfo,
    /// The number of interceptors whose starting point has succeeded and whose ending point has not been called.
    entered: usize,
    /// The number of interceptors that an earlier attempt of the request has called.
    called: usize,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ending {
    Reply,
    /// A user exception of this id.
    User(String),
    System(SystemException),
    Forward(ObjectRef),
    /// Sent; no caller waits for a reply.
    Sent,
    /// It failed and is retried.
    Retry,
    /// Its call was abandoned.
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
    /// The outcome of an attempt that an interceptor ended so.
    pub(crate) fn into_outcome(self) -> Result<Outcome, SystemException> {
        match self {
            Self::System(exception) => Err(exception),
            Self::Forward(to) => Ok(Outcome::Forwarded(to.ior().clone(), false)),
            // An interceptor raises one of these two.
            _ => Err(facts::out_of_place()),
        }
    }
}

impl ClientFlow {
    /// Begins a request, and passes its starting points. `is_synchronous`: the calling thread waits for the reply.
    ///
    /// # Errors
    /// How it ended before it was sent; all ending points have been passed.
    fn begin(
        all: &Arc<Registered>,
        origin: &Inner,
        target: &Target,
        call: &Call<'_>,
        is_synchronous: bool,
    ) -> Result<Self, Ending> {
        let last = call.last_attempt.and_then(LastAttempt::read);
        let (slots, called) = match &last {
            Some(last) => (last.slots.clone(), last.called),
            None => (Slots::of_thread(all), 0),
        };
        let mut flow = Self {
            all: Arc::clone(all),
            entered: 0,
            called,
            info: ClientRequestInfo {
                point: Point::SendRequest,
                request_id: all.next_request(),
                operation: call.operation.to_owned(),
                target: origin.to_object(),
                profile: target.profile.clone(),
                response: call.response,
                is_synchronous,
                policies: *call.policies,
                request_contexts: call.contexts.to_vec(),
                earlier_contexts: last.map(|last| last.contexts).unwrap_or_default(),
                is_repeated: false,
                reply_contexts: Vec::new(),
                slots,
                slot_count: all.slots,
                status: ReplyStatus::Unknown,
                exception: None,
                forward: None,
            },
        };
        let sent = flow.send_request();
        if let Some(last_attempt) = call.last_attempt {
            last_attempt.keep(&flow.info, flow.entered);
        }
        match sent {
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
            self.info.is_repeated = self.entered < self.called;
            guarded(|| interceptor.send_request(&mut self.info))?;
            self.entered += 1;
        }
        Ok(())
    }

    /// The service contexts that interceptors have added.
    fn request_contexts(&self) -> Vec<ExtraContext> {
        self.info.request_contexts.clone()
    }

    /// Keeps the service contexts of a reply for the ending points.
    fn note_reply(&mut self, reply: &Reply) {
        let message = reply.message();
        if let Ok(deckwatch_giop::Message::Reply(reply)) =
            deckwatch_giop::Message::parse_joined(&message)
        {
            let contexts = reply.contexts.iter();
            let owned = contexts.map(|context| (context.id, context.data.to_vec()));
            self.info.reply_contexts = owned.collect();
        }
    }

    /// Passes the ending points. Returns what the interceptors changed the ending into, if they did.
    fn end(&mut self, ending: &Ending) -> Option<Ending> {
        let _apart = Apart::enter(&self.all);
        let mut changed: Option<Ending> = None;
        while let Some(next) = self.entered.checked_sub(1) {
            self.entered = next;
            self.info.is_repeated = next < self.called;
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

    /// Passes the ending points of an attempt that has a reply, or failed. Returns what the attempt means after that.
    fn end_with(
        mut self,
        client: &Client,
        replied: Result<Reply, SystemException>,
    ) -> Result<Outcome, SystemException> {
        let outcome = replied.and_then(|reply| {
            self.note_reply(&reply);
            reply.into_outcome(client)
        });
        let ending = match &outcome {
            Ok(Outcome::Replied(reply)) if reply.status() == Status::UserException => {
                let message = reply.message();
                let id = reply.body(&message).read_string_octets();
                Ending::User(String::from_utf8_lossy(id.unwrap_or_default()).into_owned())
            }
            Ok(Outcome::Replied(_)) => Ending::Reply,
            Ok(Outcome::Forwarded(ior, _)) => Ending::Forward(self.info.target.like(ior.clone())),
            Err(exception) => Ending::System(*exception),
        };
        let Some(changed) = self.end(&ending) else {
            return outcome;
        };
        if let Ok(Outcome::Replied(reply)) = outcome {
            reply.give_back(client);
        }
        changed.into_outcome()
    }
}
