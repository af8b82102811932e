//! The ways to a servant that few requests take: held by a manager, over to the main thread, by a servant that is found or made for them.

use std::sync::{Arc, Mutex, PoisonError};

use deckwatch_cdr::{Codec, Divided};
use deckwatch_giop::{Message, Response, ServiceContext};

use super::dispatch::Outcome;
use super::upcall::{Caller, Upcall, no_object};
use crate::adapter::{
    self, Elsewhere, Found, ManagerState, ObjectKey, Poa, PoaManager, PoaState, Refusal,
    RequestProcessing, ServantLocator, ServantManager, ServantRetention, WaitPermits,
};
use crate::contexts::ContextList;
use crate::counters::Counter;
use crate::interceptor::ServerFlow;
use crate::lane::Lane;
use crate::raise;
use crate::{Completion, SystemException, current, minor};

impl Lane {
    /// A plain key stands for a reference; one of our own is served here, another is told to the caller.
    #[inline(never)]
    pub(crate) fn upcall_elsewhere(
        &self,
        upcall: &mut Upcall<'_>,
        elsewhere: Elsewhere,
    ) -> Outcome {
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
    pub(crate) fn upcall_with_detours<'k>(
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
            let mut contexts = ContextList::new();
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
        let hold = patience.and_then(WaitPermits::take);
        let may_wait = patience.is_none() || hold.is_some();
        manager.admit(may_wait, self.time_left(upcall))
    }
}

fn taken(flow: &Mutex<Option<Box<ServerFlow>>>) -> Option<Box<ServerFlow>> {
    let mut flow = flow.lock().unwrap_or_else(PoisonError::into_inner);
    flow.take()
}
