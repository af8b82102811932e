//! The lookup of a request's object key, and the call of its servant.

use std::panic::{AssertUnwindSafe, catch_unwind};

use deckwatch_cdr::Divided;
use deckwatch_giop::{Request, Response, ServiceContext};

use super::outcome::Outcome;
use super::{Peer, Server, implicit_operations};
use crate::adapter::{self, Found, Patience, PoaState};
use crate::contexts::ContextList;
use crate::contexts::ExtraContext;
use crate::counters::Counter;
use crate::raise::{self, own};
use crate::rt::current::priority as current_priority;
use crate::servant::ServerRequest;
use crate::transport::Instant64;
use crate::wire::Sizes;
use crate::{Completion, Servant, SystemException, current, minor};

/// One request on its way to a servant.
pub(super) struct Upcall<'u> {
    /// `None` on the main thread, to which other threads pass requests.
    pub(super) peer: Option<&'u dyn Peer>,
    /// The request came over a connection that this ORB opened: the adapter must permit bidirectional requests.
    pub(super) needs_bidirectional: bool,
    pub(super) wait: Wait<'u>,
    pub(super) message: &'u Divided<'u>,
    pub(super) request: &'u Request<'u>,
    pub(super) reply: &'u mut Vec<u8>,
    /// The service contexts of the reply.
    pub(super) contexts: &'u [ServiceContext<'u>],
}

/// How a request may wait.
#[derive(Clone, Copy)]
pub(crate) struct Wait<'u> {
    pub(crate) patience: Patience<'u>,
    /// The deadline of the caller for waits, if it has one.
    pub(crate) until: Option<Instant64>,
}

/// The last step of a request: the call of its servant.
pub(super) trait ServantCall: Default + Send + 'static {
    fn call(
        &mut self,
        server: &Server,
        upcall: &mut Upcall<'_>,
        servant: &dyn Servant,
        id: &[u8],
    ) -> Outcome;

    /// Called when the calling thread continues with the request.
    fn enter_thread(&mut self);

    /// Called before another thread continues with the request.
    fn leave_thread(&mut self);
}

/// The plain call of a servant. Implicit operations are answered in its place.
#[derive(Default)]
pub(super) struct DirectCall;

impl ServantCall for DirectCall {
    #[inline]
    fn call(
        &mut self,
        server: &Server,
        upcall: &mut Upcall<'_>,
        servant: &dyn Servant,
        id: &[u8],
    ) -> Outcome {
        let request = upcall.request;
        if request.operation.first() == Some(&b'_')
            && let Some(outcome) = implicit_operations::answer(server, upcall, servant, id)
        {
            return outcome;
        }
        current::enter(&server.orb);
        let mut receipt = Receipt::None;
        if request.response == Response::Receipt {
            std::hint::cold_path();
            receipt = server.begin_receipt(upcall);
        }
        let (contexts, sizes) = (upcall.contexts, server.sizes);
        let mut serving = ServerRequest::new(request, id, upcall.reply, contexts, sizes);
        let priority = current_priority();
        let served = catch_unwind(AssertUnwindSafe(|| servant.dispatch(&mut serving)));
        server.priority.end(priority);
        match served {
            Ok(Ok(())) if request.response != Response::Receipt => finished(&mut serving),
            served => {
                std::hint::cold_path();
                if served.is_err() {
                    server.counters.count(Counter::ServantPanics);
                }
                match served {
                    _ if receipt == Receipt::Sent => Outcome::Receipted,
                    // The caller gets a receipt, whatever the servant returns.
                    _ if receipt == Receipt::InReply => {
                        let reply = &mut *upcall.reply;
                        finished(&mut ServerRequest::new(request, id, reply, contexts, sizes))
                    }
                    Ok(Ok(())) => finished(&mut serving),
                    Ok(Err(exception)) => Outcome::Raise(exception),
                    Err(_) => Outcome::Raise(raise::unknown(0, Completion::Maybe)),
                }
            }
        }
    }

    fn enter_thread(&mut self) {}

    fn leave_thread(&mut self) {}
}

impl<'u> Upcall<'u> {
    /// Returns the service contexts of the reply and those that interceptors have added.
    pub(super) fn contexts_and<'s>(&self, said: &'s [ExtraContext]) -> ContextList<'s>
    where
        'u: 's,
    {
        let mut contexts = ContextList::of(self.contexts);
        for (id, data) in said {
            contexts.push(*id, data);
        }
        contexts
    }

    /// Returns whether the request is a call by this thread.
    pub(super) fn is_local(&self) -> bool {
        self.peer.is_some_and(|peer| peer.is_local())
    }

    /// Writes the receipt for SYNC_WITH_SERVER: the request has arrived and will be served. The outcome is not sent.
    pub(super) fn write_receipt(&mut self, peer: &dyn Peer, sizes: Sizes) {
        let reply = &mut *self.reply;
        let receipt = ServerRequest::new(self.request, &[], reply, self.contexts, sizes).finish();
        debug_assert!(
            receipt.is_ok(),
            "a reply without results can always be written"
        );
        peer.write_receipt(self.reply);
    }
}

impl Server {
    /// Looks up the object of a request and calls its servant through `call`.
    pub(super) fn upcall<C: ServantCall>(&self, upcall: &mut Upcall<'_>, call: &mut C) -> Outcome {
        let key = match upcall.request.target.object_key() {
            Ok(key) => key,
            Err(error) => {
                std::hint::cold_path();
                return self.refuse(error.into());
            }
        };
        let found = self.adapter.find(key, upcall.wait.patience);
        if upcall.needs_bidirectional
            && let Ok(found) = &found
            && !found.adapter().is_some_and(PoaState::is_bidirectional)
        {
            std::hint::cold_path();
            return self.refuse(raise::obj_adapter(own::NOT_BIDIRECTIONAL, Completion::No));
        }
        match found {
            Ok(Found::Elsewhere(elsewhere)) => {
                std::hint::cold_path();
                self.upcall_elsewhere(upcall, elsewhere, call)
            }
            Ok(Found::Active(slot, object))
                if object.adapter.manager.is_active()
                    && !object.adapter.is_for_main()
                    && self.priority.is_plain(&object.adapter.realtime) =>
            {
                let _turn =
                    match object
                        .adapter
                        .admit(upcall.request, &object.id, Some(&*object.servant))
                    {
                        Ok(turn) => turn,
                        Err(denied) => return Outcome::Raise(denied),
                    };
                let _frame = adapter::enter(&object.adapter, slot);
                call.call(self, upcall, &*object.servant, &object.id)
            }
            Ok(found) => {
                std::hint::cold_path();
                self.upcall_with_detours(upcall, key, Ok(found), call)
            }
            Err(exception) => self.refuse(exception),
        }
    }

    /// Calls code of the application. A panic becomes UNKNOWN.
    pub(super) fn guard<T>(&self, call: impl FnOnce() -> T) -> Result<T, SystemException> {
        catch_unwind(AssertUnwindSafe(call)).map_err(|_| self.count_panic())
    }

    #[cold]
    pub(super) fn count_panic(&self) -> SystemException {
        self.counters.count(Counter::ServantPanics);
        raise::unknown(0, Completion::Maybe)
    }

    #[cold]
    pub(super) fn refuse(&self, exception: SystemException) -> Outcome {
        self.counters.count(Counter::ObjectsNotExist);
        Outcome::Raise(exception)
    }

    #[inline(never)]
    fn begin_receipt(&self, upcall: &mut Upcall<'_>) -> Receipt {
        match upcall.peer {
            None => Receipt::None,
            Some(peer) if peer.is_local() => Receipt::InReply,
            Some(peer) => {
                upcall.write_receipt(peer, self.sizes);
                Receipt::Sent
            }
        }
    }
}

/// How the caller of a request with SYNC_WITH_SERVER gets its receipt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receipt {
    /// The caller expects none, or the thread that has read the request sends it.
    None,
    /// It has been sent.
    Sent,
    /// The reply is the receipt.
    InReply,
}

/// The outcome of a request after its servant has returned.
#[inline]
fn finished(serving: &mut ServerRequest<'_>) -> Outcome {
    match serving.finish() {
        Ok(()) => Outcome::Replied,
        Err(error) => {
            std::hint::cold_path();
            Outcome::Raise(error.into())
        }
    }
}

pub(super) fn no_object() -> SystemException {
    raise::object_not_exist(minor::ADAPTER_UNKNOWN, Completion::No)
}
