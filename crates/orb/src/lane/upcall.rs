//! From a request to the servant: what its key leads to, who serves that, and the operations every object has.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deckwatch_cdr::{Codec, Divided, Reader, Write};
use deckwatch_giop::{Ior, Message, ReplyStatus, Request, Response, ServiceContext};

use super::dispatch::Outcome;
use super::{Lane, ServerConnection};
use crate::adapter::{
    self, Elsewhere, Found, Holds, ManagerState, ObjectKey, Patience, Poa, PoaManager, PoaState,
    Refusal, RequestProcessing, ServantLocator, ServantManager, ServantRetention,
};
use crate::counters::Counter;
use crate::interceptor::{Said, ServerFlow};
use crate::raise::{self, own};
use crate::rt::current::priority as current_priority;
use crate::rt::scheduling::Visit;
use crate::servant::ServerRequest;
use crate::transport::Instant64;
use crate::wire::{self, Contexts};
use crate::{Completion, Servant, SystemException, current, minor};

/// One request on its way to a servant.
pub(super) struct Upcall<'u> {
    /// None on the main thread, which has the request from another.
    pub(super) connection: Option<&'u ServerConnection>,
    pub(super) caller: Caller<'u>,
    pub(super) message: &'u Divided<'u>,
    pub(super) request: &'u Request<'u>,
    pub(super) reply: &'u mut Vec<u8>,
    /// The service contexts of the reply.
    pub(super) contexts: &'u [ServiceContext<'u>],
    /// Its way through the interceptors, where there are any.
    pub(super) flow: Option<Box<ServerFlow>>,
}

/// Who has made a request: how it may wait.
#[derive(Clone, Copy)]
pub(super) enum Caller<'u> {
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
    pub(super) fn contexts_and<'s>(&self, said: &'s [Said]) -> Contexts<'s>
    where
        'u: 's,
    {
        let mut contexts = Contexts::new();
        for context in self.contexts {
            contexts.push(context.id, context.data);
        }
        for (id, data) in said {
            contexts.push(*id, data);
        }
        contexts
    }

    fn is_here(&self) -> bool {
        matches!(self.caller, Caller::Here { .. })
    }
}

impl Lane {
    fn patience<'u>(&'u self, upcall: &Upcall<'u>) -> Patience<'u> {
        match upcall.caller {
            Caller::Remote => Some(&self.holds),
            Caller::Here { patience, .. } => patience,
        }
    }

    /// How long a request may wait; none: as long as it takes.
    fn time_left(&self, upcall: &Upcall<'_>) -> Option<Duration> {
        match upcall.caller {
            Caller::Here {
                until: Some(until), ..
            } => Some(until.since(self.transport.now())),
            _ => None,
        }
    }

    pub(super) fn upcall(&self, upcall: &mut Upcall<'_>) -> Outcome {
        let key = match upcall.request.target.object_key() {
            Ok(key) => key,
            Err(error) => {
                std::hint::cold_path();
                return self.refuse(error.into());
            }
        };
        let found = self.adapter.find(key, self.patience(upcall));
        if upcall
            .connection
            .is_some_and(ServerConnection::is_opened_here)
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

    /// A plain key stands for a reference; one of our own is served here, another is told to the caller.
    #[inline(never)]
    fn upcall_elsewhere(&self, upcall: &mut Upcall<'_>, elsewhere: Elsewhere) -> Outcome {
        let own = elsewhere.target.object_key().filter(|key| {
            elsewhere.is_ours && !matches!(ObjectKey::parse(key), ObjectKey::Plain(_))
        });
        let outcome = own.map(|key| {
            let found = self.adapter.find(key, self.patience(upcall));
            self.upcall_with_detours(upcall, key, found)
        });
        outcome.unwrap_or(Outcome::Forward(elsewhere.target))
    }

    /// Managers may hold the request, servant managers may make its servant: after each wait the key is looked up anew.
    #[inline(never)]
    fn upcall_with_detours<'k>(
        &'k self,
        upcall: &mut Upcall<'_>,
        key: &'k [u8],
        mut found: Result<Found<'k>, SystemException>,
    ) -> Outcome {
        loop {
            let way = match found {
                Ok(way) => way,
                Err(exception) => return self.refuse(exception),
            };
            let manager = match way.adapter() {
                Some(adapter) => adapter.manager.clone(),
                None => return self.refuse(no_object()),
            };
            let is_elsewhere = way.adapter().is_some_and(|adapter| adapter.is_for_main())
                && !adapter::is_main_here()
                && !(upcall.is_here() && self.adapter.main.is_main())
                && self.shape.threads != 0;
            if manager.is_active() && is_elsewhere {
                drop(way);
                return self.upcall_on_main(upcall);
            }
            if manager.is_active() {
                let _at_priority = match self.take_ground(upcall, &way) {
                    Ok(at_priority) => at_priority,
                    Err(outcome) => return outcome,
                };
                let outcome = match way {
                    Found::Active(slot, object) => {
                        let _turn = object.adapter.serialise();
                        let _frame = adapter::enter(&object.adapter, slot);
                        Some(self.serve_by(upcall, &*object.servant, &object.id))
                    }
                    Found::Inactive { adapter, id } => self.upcall_inactive(upcall, &adapter, id),
                    Found::Elsewhere(_) => Some(self.refuse(no_object())),
                };
                if let Some(outcome) = outcome {
                    return outcome;
                }
            } else {
                // What has been found is let go: who waits for requests to end does not wait for those that are held.
                drop(way);
                if let Err(exception) = self.let_through(upcall, &manager) {
                    self.counters.count(Counter::RequestsDiscarded);
                    return Outcome::Raise(exception);
                }
                // It may have been held too long.
                if let Err(exception) = self.require_end(upcall.request) {
                    return Outcome::Raise(exception);
                }
            }
            found = self.adapter.find(key, self.patience(upcall));
        }
    }

    /// Has the main thread serve a request, and waits for that: what the lane has is not the main thread's.
    fn upcall_on_main(&self, upcall: &mut Upcall<'_>) -> Outcome {
        let is_this = |lane: &Arc<Self>| std::ptr::eq(&raw const **lane, self);
        let lane = self
            .orb
            .upgrade()
            .and_then(|orb| orb.pools.find_lane(is_this));
        let Some(lane) = lane else {
            let ended = raise::transient(minor::REQUEST_DISCARDED, Completion::No);
            return Outcome::Raise(ended);
        };
        let message = upcall.message;
        let (octets, ends) = (message.octets().to_vec(), message.ends().to_vec());
        let codec = upcall.request.body.codec();
        let said = upcall.contexts.iter();
        let said: Vec<_> = said.map(|one| (one.id, one.data.to_vec())).collect();
        let mut reply = std::mem::take(upcall.reply);
        if let Some(flow) = &mut upcall.flow {
            flow.leave();
        }
        let flow = Arc::new(Mutex::new(upcall.flow.take()));
        let lent = Arc::clone(&flow);
        let job = move || {
            let mut flow = taken(&lent);
            if let Some(flow) = &mut flow {
                flow.enter();
            }
            let mut contexts = Contexts::new();
            said.iter().for_each(|(id, data)| contexts.push(*id, data));
            let message = Divided::new(&octets, &ends);
            let outcome =
                lane.upcall_here(&message, codec, &mut reply, contexts.as_slice(), &mut flow);
            if let Some(flow) = &mut flow {
                flow.leave();
            }
            *lent.lock().unwrap_or_else(PoisonError::into_inner) = flow;
            (outcome, reply)
        };
        let (patience, left) = (self.patience(upcall), self.time_left(upcall));
        let asked = self.adapter.main.ask(patience, left, job);
        upcall.flow = taken(&flow);
        if let Some(flow) = &mut upcall.flow {
            flow.enter();
        }
        let outcome = match asked {
            Ok((outcome, reply)) => {
                *upcall.reply = reply;
                outcome
            }
            Err(exception) => {
                self.counters.count(Counter::RequestsDiscarded);
                return Outcome::Raise(exception);
            }
        };
        match (outcome, upcall.connection) {
            (Outcome::Replied, Some(connection))
                if upcall.request.response == Response::Receipt =>
            {
                self.say_receipt(connection, upcall);
                Outcome::Receipted
            }
            (outcome, _) => outcome,
        }
    }

    /// On the main thread: as if it had read the message itself.
    fn upcall_here(
        &self,
        message: &Divided<'_>,
        codec: Codec,
        reply: &mut Vec<u8>,
        contexts: &[ServiceContext<'_>],
        flow: &mut Option<Box<ServerFlow>>,
    ) -> Outcome {
        let Ok(Message::Request(mut request)) = Message::parse_joined(message) else {
            return self.refuse(no_object());
        };
        request.body = request.body.with_codec(codec);
        if let Err(exception) = self.require_end(&request) {
            return Outcome::Raise(exception);
        }
        let _served = self.note_served_here();
        let mut upcall = Upcall {
            connection: None,
            caller: Caller::Remote,
            message,
            request: &request,
            reply,
            contexts,
            flow: flow.take(),
        };
        let outcome = self.upcall(&mut upcall);
        *flow = upcall.flow;
        outcome
    }

    /// A request for an object that is not active. None: it is now.
    fn upcall_inactive(
        &self,
        upcall: &mut Upcall<'_>,
        adapter: &Arc<PoaState>,
        id: &[u8],
    ) -> Option<Outcome> {
        let _executing = match adapter.execute() {
            Ok(executing) => executing,
            Err(exception) => return Some(Outcome::Raise(exception)),
        };
        current::enter(&self.orb);
        match adapter.policies.request_processing {
            RequestProcessing::UseActiveObjectMapOnly => Some(self.refuse(no_object())),
            RequestProcessing::UseDefaultServant => {
                let Some(servant) = adapter.default_servant() else {
                    let none = raise::obj_adapter(minor::NO_SERVANT, Completion::No);
                    return Some(Outcome::Raise(none));
                };
                let _turn = adapter.serialise();
                let _frame = adapter::enter_without_object(adapter, Some(&servant), id);
                Some(self.serve_by(upcall, &*servant, id))
            }
            RequestProcessing::UseServantManager
                if adapter.policies.servant_retention == ServantRetention::Retain =>
            {
                match adapter.incarnate(id, self.patience(upcall)) {
                    Ok(()) => None,
                    Err(Refusal::Raise(exception)) => Some(Outcome::Raise(exception)),
                    Err(Refusal::Forward(target)) => Some(Outcome::Forward(target)),
                }
            }
            RequestProcessing::UseServantManager => Some(match adapter.servant_manager() {
                Some(ServantManager::Locator(locator)) => {
                    self.upcall_located(upcall, adapter, &*locator, id)
                }
                _ => Outcome::Raise(raise::obj_adapter(
                    minor::NO_SERVANT_MANAGER,
                    Completion::No,
                )),
            }),
        }
    }

    /// A request whose servant is found for it alone. Whatever comes of it, the locator hears of its end.
    fn upcall_located(
        &self,
        upcall: &mut Upcall<'_>,
        adapter: &Arc<PoaState>,
        locator: &dyn ServantLocator,
        id: &[u8],
    ) -> Outcome {
        let Ok(operation) = std::str::from_utf8(upcall.request.operation) else {
            let unknown = raise::bad_operation(minor::OPERATION_UNKNOWN, Completion::No);
            return Outcome::Raise(unknown);
        };
        let poa = Poa::of(adapter);
        let mut cookie = None;
        let _turn = adapter.serialise();
        let located = {
            let _frame = adapter::enter_without_object(adapter, None, id);
            let call = || locator.preinvoke(id, &poa, operation, &mut cookie);
            self.guard(call)
        };
        let servant = match located.map(|located| located.map_err(Refusal::from)) {
            Ok(Ok(servant)) => servant,
            Ok(Err(Refusal::Forward(target))) => return Outcome::Forward(target),
            Ok(Err(Refusal::Raise(exception))) | Err(exception) => {
                return Outcome::Raise(exception);
            }
        };
        let _frame = adapter::enter_without_object(adapter, Some(&servant), id);
        let outcome = self.serve_by(upcall, &*servant, id);
        let call = || locator.postinvoke(id, &poa, operation, cookie, servant);
        match self.guard(call) {
            Ok(Ok(())) => outcome,
            _ if matches!(outcome, Outcome::Receipted) => outcome,
            Ok(Err(exception)) | Err(exception) => Outcome::Raise(exception),
        }
    }

    /// Calls the application's code; its panic is UNKNOWN.
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

    fn serve_by(&self, upcall: &mut Upcall<'_>, servant: &dyn Servant, id: &[u8]) -> Outcome {
        let request = upcall.request;
        if let Some(flow) = &mut upcall.flow {
            std::hint::cold_path();
            let adapter = self.adapter.current_poa();
            current::enter(&self.orb);
            if let Some(served) = flow.receive_request(request, servant, id, adapter) {
                return Outcome::of(served);
            }
        }
        if request.operation.first() == Some(&b'_')
            && let Some(outcome) = self.answer_for_every_object(upcall, servant, id)
        {
            return outcome;
        }
        current::enter(&self.orb);
        let mut visit = None;
        if !request.contexts.is_empty() {
            visit = match Visit::of(&self.orb, request) {
                Ok(visit) => visit,
                Err(exception) => return Outcome::Raise(exception),
            };
        }
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
        let outcome = match served {
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
        };
        match visit {
            None => outcome,
            Some(visit) => end_visit(visit, outcome, receipt.is_some()),
        }
    }

    /// Lets a request through, after waiting where its adapter's manager holds requests: one thread is left for the others.
    fn let_through(
        &self,
        upcall: &Upcall<'_>,
        manager: &PoaManager,
    ) -> Result<(), SystemException> {
        if manager.state() == ManagerState::Active {
            return Ok(());
        }
        let patience = self.patience(upcall);
        let hold = patience.and_then(Holds::take);
        let may_wait = patience.is_none() || hold.is_some();
        manager.admit(may_wait, self.time_left(upcall))
    }

    /// `_is_a`, `_non_existent` and the others that no servant implements.
    #[inline(never)]
    fn answer_for_every_object(
        &self,
        upcall: &mut Upcall<'_>,
        servant: &dyn Servant,
        id: &[u8],
    ) -> Option<Outcome> {
        let (request, contexts) = (upcall.request, upcall.contexts);
        let reply = &mut *upcall.reply;
        let answer = match request.operation {
            b"_is_a" => self.is_a(request.body, servant, id).map(Answer::Boolean),
            b"_non_existent" | b"_not_existent" => self
                .guard(|| servant.non_existent(id))
                .and_then(|answer| answer.map(Answer::Boolean)),
            b"_repository_id" => self.repository_id(servant, id).map(Answer::Text),
            b"_component" => Ok(Answer::Nil),
            b"_interface" => Err(raise::intf_repos(
                minor::INTERFACE_REPOSITORY_ABSENT,
                Completion::No,
            )),
            b"_bind_priority_band" => self.bind_band(request).map(|()| Answer::Nothing),
            b"_domain_managers" => Err(raise::no_implement(0, Completion::No)),
            _ => return None,
        };
        let written = answer.and_then(|answer| {
            let (status, sizes) = (ReplyStatus::NoException, self.shape.sizes);
            let open = wire::begin_reply(reply, request, status, contexts, sizes)?;
            let mut writer = open.writer(reply);
            match answer {
                Answer::Boolean(answer) => writer.write_u8(u8::from(answer))?,
                Answer::Text(text) => writer.write_string_octets(text.as_bytes())?,
                Answer::Nothing => {}
                Answer::Nil => Ior::nil().write(&mut writer)?,
            }
            Ok(open.finish(reply).map(drop)?)
        });
        Some(written.map_or_else(Outcome::Raise, |()| Outcome::Replied))
    }

    fn is_a(
        &self,
        mut arguments: Reader<'_>,
        servant: &dyn Servant,
        id: &[u8],
    ) -> Result<bool, SystemException> {
        let asked = arguments.read_string_octets()?;
        let poa = self.adapter.current_poa().ok_or_else(no_object)?;
        let has = self.guard(|| servant.is_a(id, &poa, asked))?;
        Ok(has || asked == wire::OBJECT_REPOSITORY_ID.as_bytes())
    }

    fn repository_id(
        &self,
        servant: &dyn Servant,
        id: &[u8],
    ) -> Result<Cow<'static, str>, SystemException> {
        let poa = self.adapter.current_poa().ok_or_else(no_object)?;
        let interface = self.guard(|| servant.primary_interface(id, &poa))?;
        Ok(match &*interface {
            "" => Cow::Borrowed(wire::OBJECT_REPOSITORY_ID),
            _ => interface,
        })
    }
}

/// What every object answers without its servant.
enum Answer {
    Boolean(bool),
    Text(Cow<'static, str>),
    /// No result.
    Nothing,
    /// No object.
    Nil,
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

/// The end of what a distributable thread has done here, which may have been cancelled.
#[inline(never)]
fn end_visit(visit: Visit, outcome: Outcome, is_receipted: bool) -> Outcome {
    let has_raised = matches!(outcome, Outcome::Raise(_));
    match (visit.end(has_raised).err(), &outcome) {
        // The servant has heard of it itself, and knows best how far it had come.
        (Some(cancelled), Outcome::Raise(own)) if own.kind == cancelled.kind => outcome,
        (Some(cancelled), _) if !is_receipted => Outcome::Raise(cancelled),
        _ => outcome,
    }
}

fn taken(flow: &Mutex<Option<Box<ServerFlow>>>) -> Option<Box<ServerFlow>> {
    let mut flow = flow.lock().unwrap_or_else(PoisonError::into_inner);
    flow.take()
}

fn no_object() -> SystemException {
    raise::object_not_exist(minor::ADAPTER_UNKNOWN, Completion::No)
}
