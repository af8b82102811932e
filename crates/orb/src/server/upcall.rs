//! From a request to the servant: what its key leads to, and who serves that.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use deckwatch_cdr::Divided;
use deckwatch_giop::{Request, Response, ServiceContext};

use super::dispatch::Outcome;
use crate::adapter::{self, Found, Patience, PoaState};
use crate::connection::Connection;
use crate::contexts::ContextList;
use crate::counters::Counter;
use crate::interceptor::{ExtraContext, Served, ServerFlow};
use crate::lane::Lane;
use crate::raise::{self, own};
use crate::rt::current::priority as current_priority;
use crate::servant::ServerRequest;
use crate::transport::Instant64;
use crate::{Completion, Servant, SystemException, current, minor};

/// One request on its way to a servant.
pub(crate) struct Upcall<'u> {
    /// None on the main thread, which has the request from another.
    pub(crate) connection: Option<&'u Connection>,
    pub(crate) caller: Caller<'u>,
    pub(crate) message: &'u Divided<'u>,
    pub(crate) request: &'u Request<'u>,
    pub(crate) reply: &'u mut Vec<u8>,
    /// The service contexts of the reply.
    pub(crate) contexts: &'u [ServiceContext<'u>],
    /// Its way through the interceptors, where there are any.
    pub(crate) flow: Option<Box<ServerFlow>>,
}

/// Who has made a request: how it may wait.
#[derive(Clone, Copy)]
pub(crate) enum Caller<'u> {
    /// Somebody whose message a thread of the lane has read.
    Remote,
    /// The calling thread itself.
    Here {
        patience: Patience<'u>,
        /// When it gives up waiting.
        until: Option<Instant64>,
    },
}

impl<'u> Upcall<'u> {
    /// The service contexts of the reply, and those that interceptors have added.
    pub(crate) fn contexts_and<'s>(&self, said: &'s [ExtraContext]) -> ContextList<'s>
    where
        'u: 's,
    {
        let mut contexts = ContextList::new();
        for context in self.contexts {
            contexts.push(context.id, context.data);
        }
        for (id, data) in said {
            contexts.push(*id, data);
        }
        contexts
    }

    pub(crate) fn is_here(&self) -> bool {
        matches!(self.caller, Caller::Here { .. })
    }
}

impl Lane {
    pub(crate) fn patience<'u>(&'u self, upcall: &Upcall<'u>) -> Patience<'u> {
        match upcall.caller {
            Caller::Remote => Some(&self.wait_permits),
            Caller::Here { patience, .. } => patience,
        }
    }

    /// How long a request may wait; none: as long as it takes.
    pub(crate) fn time_left(&self, upcall: &Upcall<'_>) -> Option<Duration> {
        match upcall.caller {
            Caller::Here {
                until: Some(until), ..
            } => Some(until.since(self.transport.now())),
            _ => None,
        }
    }

    pub(crate) fn upcall(&self, upcall: &mut Upcall<'_>) -> Outcome {
        let key = match upcall.request.target.object_key() {
            Ok(key) => key,
            Err(error) => {
                std::hint::cold_path();
                return self.refuse(error.into());
            }
        };
        let found = self.adapter.find(key, self.patience(upcall));
        if upcall.connection.is_some_and(Connection::is_opened_here)
            && let Ok(found) = &found
            && !found.adapter().is_some_and(PoaState::is_bidirectional)
        {
            std::hint::cold_path();
            return self.refuse(raise::obj_adapter(own::NOT_BIDIRECTIONAL, Completion::No));
        }
        match found {
            Ok(Found::Elsewhere(elsewhere)) => {
                std::hint::cold_path();
                self.upcall_elsewhere(upcall, elsewhere)
            }
            Ok(Found::Active(slot, object))
                if object.adapter.manager.is_active()
                    && !object.adapter.is_for_main()
                    && object.adapter.realtime.is_plain_at(self.station.pool) =>
            {
                let _turn = object.adapter.serialise();
                let _frame = adapter::enter(&object.adapter, slot);
                self.serve_by(upcall, &*object.servant, &object.id)
            }
            Ok(found) => {
                std::hint::cold_path();
                self.upcall_with_detours(upcall, key, Ok(found))
            }
            Err(exception) => self.refuse(exception),
        }
    }

    /// Calls the application's code; its panic is UNKNOWN.
    pub(crate) fn guard<T>(&self, call: impl FnOnce() -> T) -> Result<T, SystemException> {
        catch_unwind(AssertUnwindSafe(call)).map_err(|_| self.count_panic())
    }

    #[cold]
    pub(crate) fn count_panic(&self) -> SystemException {
        self.counters.count(Counter::ServantPanics);
        raise::unknown(0, Completion::Maybe)
    }

    #[cold]
    pub(crate) fn refuse(&self, exception: SystemException) -> Outcome {
        self.counters.count(Counter::ObjectsNotExist);
        Outcome::Raise(exception)
    }

    pub(crate) fn serve_by(
        &self,
        upcall: &mut Upcall<'_>,
        servant: &dyn Servant,
        id: &[u8],
    ) -> Outcome {
        if upcall.flow.is_some() {
            std::hint::cold_path();
            return self.serve_in_flow(upcall, servant, id);
        }
        self.call_servant(upcall, servant, id)
    }

    /// As [`Lane::call_servant`], with the interceptors' points before and behind it.
    #[inline(never)]
    fn serve_in_flow(&self, upcall: &mut Upcall<'_>, servant: &dyn Servant, id: &[u8]) -> Outcome {
        let request = upcall.request;
        current::enter(&self.orb);
        let adapter = self.adapter.current_poa();
        let early = (upcall.flow.as_mut())
            .and_then(|flow| flow.receive_request(request, servant, id, adapter));
        let outcome = match early {
            Some(served) => Outcome::of(served),
            None => self.call_servant(upcall, servant, id),
        };
        let Some(flow) = &mut upcall.flow else {
            return outcome;
        };
        let served = outcome.served(upcall.reply);
        match flow.servant_returned(request, &served) {
            Some(exception) if served != Served::Receipted => Outcome::Raise(exception),
            _ => outcome,
        }
    }

    #[inline]
    fn call_servant(&self, upcall: &mut Upcall<'_>, servant: &dyn Servant, id: &[u8]) -> Outcome {
        let request = upcall.request;
        if request.operation.first() == Some(&b'_')
            && let Some(outcome) = self.answer_for_every_object(upcall, servant, id)
        {
            return outcome;
        }
        current::enter(&self.orb);
        let receipt = upcall
            .connection
            .filter(|_| request.response == Response::Receipt);
        if let Some(connection) = receipt {
            std::hint::cold_path();
            self.say_receipt(connection, upcall);
        }
        let is_receipt_here = upcall.is_here() && request.response == Response::Receipt;
        let (contexts, sizes) = (upcall.contexts, self.shape.sizes);
        let mut serving = ServerRequest::new(request, id, upcall.reply, contexts, sizes);
        let priority = current_priority();
        let served = catch_unwind(AssertUnwindSafe(|| servant.dispatch(&mut serving)));
        self.end_priority(priority);
        match served {
            Ok(Ok(())) if request.response != Response::Receipt => finished(&mut serving),
            served => {
                std::hint::cold_path();
                if served.is_err() {
                    self.counters.count(Counter::ServantPanics);
                }
                match served {
                    _ if receipt.is_some() => Outcome::Receipted,
                    // Its caller is told what came of the request until here, whatever the servant has said.
                    _ if is_receipt_here => {
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
}

/// What a request comes to that its servant has served.
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

pub(crate) fn no_object() -> SystemException {
    raise::object_not_exist(minor::ADAPTER_UNKNOWN, Completion::No)
}
