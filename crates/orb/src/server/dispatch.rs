//! From a whole message to its reply: request and locate request.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use deckwatch_cdr::{CharSet, Divided};
use deckwatch_giop::{LocateStatus, Message, Request, Response, Version};

use super::upcall::{Caller, Upcall};
use crate::adapter::Whereabouts;
use crate::connection::Connection;
use crate::connection::bidirectional;
use crate::contexts::{self, written::echoed_priority};
use crate::counters::Counter;
use crate::interceptor::{ExtraContext, Served, ServerFlow};
use crate::lane::Lane;
use crate::raise;
use crate::servant::ServerRequest;
use crate::wire;
use crate::{Completion, SystemException, SystemExceptionKind, current, minor};

thread_local! {
    /// The lane whose request this thread serves, by its address; 0: none.
    static SERVED: Cell<usize> = const { Cell::new(0) };
}

/// What a request comes to.
pub(crate) enum Outcome {
    /// The reply, if one is expected, stands in the buffer.
    Replied,
    /// The caller knew that the request had come before it was served; it waits for nothing more.
    Receipted,
    /// The reply is this exception.
    Raise(SystemException),
    /// The caller shall ask elsewhere.
    Forward(crate::ObjectRef),
}

impl Outcome {
    /// What an interceptor has raised.
    pub(crate) fn of(served: Served) -> Self {
        match served {
            Served::System(exception) => Self::Raise(exception),
            Served::Forward(to) => Self::Forward(to),
            Served::Reply | Served::User => Self::Replied,
            Served::Receipted => Self::Receipted,
        }
    }

    /// What interceptors see of it.
    pub(super) fn served(&self, reply: &[u8]) -> Served {
        match self {
            Self::Replied => Served::of_reply(reply),
            Self::Receipted => Served::Receipted,
            Self::Raise(exception) => Served::System(*exception),
            Self::Forward(to) => Served::Forward(to.clone()),
        }
    }
}

/// Ends the note that a thread serves a request; holds the note before.
pub(crate) struct ServedHere(usize);

impl Drop for ServedHere {
    fn drop(&mut self) {
        SERVED.set(self.0);
    }
}

impl Lane {
    /// Serves one message. `Err`: the connection cannot go on.
    pub(crate) fn dispatch(
        &self,
        connection: &Connection,
        message: &Divided<'_>,
    ) -> Result<(), ()> {
        if message.ends().is_empty()
            && let Some(mut request) = Request::plain(message.octets())
        {
            self.serve_request(connection, message, &mut request);
            return Ok(());
        }
        std::hint::cold_path();
        if let Some(mut request) = self.request_of(connection, message)? {
            self.serve_request(connection, message, &mut request);
        }
        Ok(())
    }

    /// A request that is not as most are. None: it was another message, and is answered.
    #[inline(never)]
    fn request_of<'m>(
        &self,
        connection: &Connection,
        message: &'m Divided<'_>,
    ) -> Result<Option<Request<'m>>, ()> {
        match Message::parse_joined(message) {
            Ok(Message::Request(request)) => Ok(Some(request)),
            Ok(Message::LocateRequest(request)) => {
                self.counters.count(Counter::LocateRequests);
                current::enter(&self.orb);
                let key = request.target.object_key();
                let found = key.map(|key| self.locate(key));
                let (status, elsewhere) = match &found {
                    Ok(Whereabouts::Here) => (LocateStatus::ObjectHere, None),
                    Ok(Whereabouts::Elsewhere(target)) => {
                        (LocateStatus::ObjectForward, Some(target.ior()))
                    }
                    Ok(Whereabouts::Nowhere) | Err(_) => (LocateStatus::UnknownObject, None),
                };
                self.write_with(connection, |buffer| {
                    wire::locate_reply(buffer, request.version, request.id, status, elsewhere);
                });
                Ok(None)
            }
            other => {
                if let Err(fault) = other {
                    self.trace.misread(connection.number, fault);
                }
                self.counters.count(Counter::ProtocolErrors);
                self.say_message_error(connection, Version::V1_0);
                Err(())
            }
        }
    }

    /// Whether the calling thread serves a request of this lane, which cannot end before it returns.
    pub(crate) fn is_served_here(&self) -> bool {
        SERVED.get() == std::ptr::from_ref(self).addr()
    }

    /// From the first request that announces code sets on, all of its connection are read and answered in them; another choice later is MARSHAL.
    pub(crate) fn agree_on_code_sets(
        &self,
        connection: &Connection,
        request: &mut Request<'_>,
    ) -> Result<(), SystemException> {
        let mut agreed = connection.chars.load(Ordering::Acquire);
        if let Some(chars) = contexts::read::code_sets(request)? {
            let before = connection.chars.compare_exchange(
                0,
                said(chars),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            agreed = before.map_or_else(|before| before, |_unsaid| said(chars));
            if agreed != said(chars) {
                let exception = raise::marshal(minor::CODE_SETS_CHANGED, Completion::No);
                return Err(exception);
            }
        }
        if agreed == said(CharSet::Utf8) {
            request.body = request
                .body
                .with_codec(request.body.codec().with_chars(CharSet::Utf8));
        }
        Ok(())
    }

    fn serve_request(
        &self,
        connection: &Connection,
        message: &Divided<'_>,
        request: &mut Request<'_>,
    ) {
        let agreed = self.agree_on_code_sets(connection, request);
        let request = &*request;
        let is_awaited = request.response.is_expected();
        let ready = match agreed.and_then(|()| self.start_of(request)) {
            Ok(None) => Ok(()),
            Ok(Some(start)) => match self.put_aside(connection, message, request, start) {
                Ok(()) => return,
                full => full,
            },
            Err(exception) => Err(exception),
        };
        let over = connection.bidirectional.get();
        let _over = over.map(|over| bidirectional::enter(over, message.octets()));
        self.in_progress.fetch_add(1, Ordering::AcqRel);
        let echoed = echoed_priority(request);
        let serve = |reply: &mut Vec<u8>| {
            let mut upcall = Upcall {
                connection: Some(connection),
                caller: Caller::Remote,
                message,
                request,
                reply,
                contexts: echoed.as_slice(),
                flow: None,
            };
            let is_answered = self.answer(&mut upcall, ready);
            if is_awaited && !is_answered {
                self.write(connection, reply);
            }
        };
        match is_awaited {
            true => self.slab.with_empty(serve),
            false => serve(&mut Vec::new()),
        }
        self.in_progress.fetch_sub(1, Ordering::AcqRel);
    }

    /// Serves a request, whoever has made it, unless it is not `ready`; its whole reply stands in the buffer. True: the caller has been
    /// answered already.
    pub(crate) fn answer(
        &self,
        upcall: &mut Upcall<'_>,
        ready: Result<(), SystemException>,
    ) -> bool {
        // A simulated world turns lanes within a call.
        let served = self.note_served_here();
        let is_answered = if ready.is_ok() && self.adapter.interceptors.server().is_none() {
            // What the application has given ends here too, and its end can panic.
            match catch_unwind(AssertUnwindSafe(|| self.upcall(upcall))) {
                Ok(Outcome::Replied) => false,
                Ok(other) => self.conclude(upcall, other, &[]),
                Err(_) => self.conclude(upcall, Outcome::Raise(self.count_panic()), &[]),
            }
        } else {
            std::hint::cold_path();
            self.answer_in_flow(upcall, ready)
        };
        self.counters.count(match upcall.request.response {
            Response::Outcome => Counter::Requests,
            _ => Counter::Oneways,
        });
        drop(served);
        is_answered
    }

    /// As [`Lane::answer`], where interceptors see the request, or it is not ready.
    #[inline(never)]
    fn answer_in_flow(&self, upcall: &mut Upcall<'_>, ready: Result<(), SystemException>) -> bool {
        upcall.flow = self.begin_flow();
        let request = upcall.request;
        let early = match ready {
            Ok(()) => upcall
                .flow
                .as_mut()
                .and_then(|flow| flow.receive_contexts(request)),
            Err(exception) => Some(Served::System(exception)),
        };
        let outcome = match early {
            Some(served) => Outcome::of(served),
            None => catch_unwind(AssertUnwindSafe(|| self.upcall(upcall)))
                .unwrap_or_else(|_| Outcome::Raise(self.count_panic())),
        };
        let (outcome, said) = match upcall.flow.take() {
            Some(flow) => Self::end_flow(*flow, request, outcome, upcall.reply),
            None => (outcome, Vec::new()),
        };
        self.conclude(upcall, outcome, &said)
    }

    /// Makes the reply what a request has come to, and what interceptors have said with it. True: the caller has been answered already.
    #[inline(never)]
    fn conclude(&self, upcall: &mut Upcall<'_>, outcome: Outcome, said: &[ExtraContext]) -> bool {
        let request = upcall.request;
        let mut with_said = None;
        let contexts = match said.is_empty() {
            true => upcall.contexts,
            false => with_said.insert(upcall.contexts_and(said)).as_slice(),
        };
        let is_answered = matches!(outcome, Outcome::Receipted);
        let (reply, sizes) = (&mut *upcall.reply, self.shape.sizes);
        let is_awaited = request.response.is_expected();
        match outcome {
            Outcome::Replied if !said.is_empty() && is_awaited => {
                if let Err(error) = wire::say_with_reply(reply, contexts, sizes) {
                    let exception = SystemException::from(error).of_reply();
                    wire::exception_reply(reply, request, exception, &[], sizes);
                }
            }
            Outcome::Replied | Outcome::Receipted => {}
            Outcome::Raise(exception) => {
                self.counters.count(Counter::SystemExceptions);
                if is_of_octets(exception) {
                    self.counters.count(Counter::MalformedRequests);
                }
                if is_awaited {
                    wire::exception_reply(reply, request, exception, contexts, sizes);
                }
            }
            Outcome::Forward(_) if !is_awaited => {}
            Outcome::Forward(target) => {
                let ior = target.ior();
                if let Err(error) = wire::forward_reply(reply, request, ior, contexts, sizes) {
                    wire::exception_reply(reply, request, error.into(), contexts, sizes);
                }
            }
        }
        is_answered
    }

    fn begin_flow(&self) -> Option<Box<ServerFlow>> {
        let all = self.adapter.interceptors.server()?;
        current::enter(&self.orb);
        let mut flow = Box::new(ServerFlow::new(all));
        flow.enter();
        Some(flow)
    }

    /// Has the interceptors see what a request has come to, and change it. What they have added to the reply.
    fn end_flow(
        mut flow: ServerFlow,
        request: &Request<'_>,
        outcome: Outcome,
        reply: &[u8],
    ) -> (Outcome, Vec<ExtraContext>) {
        let served = outcome.served(reply);
        let changed = flow.end(request, &served);
        flow.leave();
        let outcome = match changed {
            Some(changed) if served != Served::Receipted => Outcome::of(changed),
            _ => outcome,
        };
        (outcome, flow.into_reply_contexts())
    }

    /// The calling thread serves a request of this lane.
    pub(crate) fn note_served_here(&self) -> ServedHere {
        ServedHere(SERVED.replace(std::ptr::from_ref(self).addr()))
    }

    /// SYNC_WITH_SERVER: the caller is told that the request has come and will be served, not what comes of it.
    pub(crate) fn say_receipt(&self, connection: &Connection, upcall: &mut Upcall<'_>) {
        let (contexts, sizes) = (upcall.contexts, self.shape.sizes);
        let reply = &mut *upcall.reply;
        let receipt = ServerRequest::new(upcall.request, &[], reply, contexts, sizes).finish();
        debug_assert!(
            receipt.is_ok(),
            "a reply without results can always be written"
        );
        self.write_from_outside(connection, upcall.reply);
    }
}

/// Whether an exception tells that octets could not be read as values.
fn is_of_octets(exception: SystemException) -> bool {
    use SystemExceptionKind as Kind;
    let is_of_values = matches!(
        exception.kind,
        Kind::Marshal | Kind::DataConversion | Kind::BadTypecode
    );
    // Results that cannot be written are raised as completed.
    exception.completed == Completion::No && (exception.decode_fact().is_some() || is_of_values)
}

/// A code set as a number, of which 0 is none.
const fn said(chars: CharSet) -> u8 {
    match chars {
        CharSet::Latin1 => 1,
        CharSet::Utf8 => 2,
    }
}
