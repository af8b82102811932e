//! Requests that do not reach an active object directly: held by a POA manager, passed to the main thread, forwarded,
//! or served by a servant that a servant manager provides.

use std::sync::{Arc, Mutex, PoisonError};

use deckwatch_cdr::{Codec, Divided};
use deckwatch_giop::{Message, Response, ServiceContext};

use super::Server;
use super::outcome::Outcome;
use super::upcall::{ServantCall, Upcall, Wait, no_object};
use crate::adapter::{
    self, Elsewhere, Found, ManagerState, ObjectKey, Poa, PoaManager, PoaState, Refusal,
    RequestProcessing, ServantLocator, ServantManager, ServantRetention, WaitPermits,
};
use crate::contexts::ContextList;
use crate::counters::Counter;
use crate::raise;
use crate::{Completion, SystemException, current, minor};

impl Server {
    /// Serves a request for a plain key if its reference leads to an object of this ORB. Forwards the caller to it
    /// otherwise.
    #[inline(never)]
    pub(super) fn upcall_elsewhere<C: ServantCall>(
        &self,
        upcall: &mut Upcall<'_>,
        elsewhere: Elsewhere,
        call: &mut C,
    ) -> Outcome {
        let own = elsewhere.target.object_key().filter(|key| {
            elsewhere.is_ours && !matches!(ObjectKey::parse(key), ObjectKey::Plain(_))
        });
        let outcome = own.map(|key| {
            let found = self.adapter.find(key, upcall.wait.patience);
            self.upcall_with_detours(upcall, key, found, call)
        });
        outcome.unwrap_or(Outcome::Forward(elsewhere.target))
    }

    /// Waits for managers that hold the request and for servants that are being made. Looks the key up again after each
    /// wait.
    #[inline(never)]
    pub(super) fn upcall_with_detours<'k, C: ServantCall>(
        &'k self,
        upcall: &mut Upcall<'_>,
        key: &'k [u8],
        mut found: Result<Found<'k>, SystemException>,
        call: &mut C,
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
            let is_here = adapter::is_main_here()
                || self.is_turned_by_hand
                || upcall.is_local() && self.adapter.main.is_main();
            let is_elsewhere = !is_here && way.adapter().is_some_and(PoaState::is_for_main);
            if manager.is_active() && is_elsewhere {
                drop(way);
                return self.upcall_on_main(upcall, call);
            }
            if manager.is_active() {
                let _at_priority = match self.priority.enter(upcall.request, &way) {
                    Ok(at_priority) => at_priority,
                    Err(outcome) => return outcome,
                };
                let outcome = match way {
                    Found::Active(slot, object) => {
                        let servant = &*object.servant;
                        match object
                            .adapter
                            .admit(upcall.request, &object.id, Some(servant))
                        {
                            Ok(_turn) => {
                                let _frame = adapter::enter(&object.adapter, slot);
                                Some(call.call(self, upcall, servant, &object.id))
                            }
                            Err(denied) => Some(Outcome::Raise(denied)),
                        }
                    }
                    Found::Inactive { adapter, id } => {
                        self.upcall_inactive(upcall, &adapter, id, call)
                    }
                    Found::Elsewhere(_) => Some(self.refuse(no_object())),
                };
                if let Some(outcome) = outcome {
                    return outcome;
                }
            } else {
                // Drops the object first: a thread that waits for requests to end does not wait for held requests.
                drop(way);
                if let Err(exception) = self.let_through(upcall, &manager) {
                    self.counters.count(Counter::RequestsDiscarded);
                    return Outcome::Raise(exception);
                }
                // The end time may have passed meanwhile.
                if let Err(exception) = self.times.require_end(upcall.request) {
                    return Outcome::Raise(exception);
                }
            }
            found = self.adapter.find(key, upcall.wait.patience);
        }
    }

    /// Passes a copy of the request to the main thread, and waits for the reply.
    fn upcall_on_main<C: ServantCall>(&self, upcall: &mut Upcall<'_>, call: &mut C) -> Outcome {
        let Some(server) = self.this.upgrade() else {
            let ended = raise::transient(minor::REQUEST_DISCARDED, Completion::No);
            return Outcome::Raise(ended);
        };
        let message = upcall.message;
        let (octets, ends) = (message.octets().to_vec(), message.ends().to_vec());
        let codec = upcall.request.body.codec();
        let contexts = upcall.contexts.iter();
        let contexts: Vec<_> = contexts.map(|one| (one.id, one.data.to_vec())).collect();
        let mut reply = std::mem::take(upcall.reply);
        let (connection, hops) = (Self::connection_served_here(), Self::hops_served_here());
        let passed_by = Self::passed_by_served_here();
        call.leave_thread();
        let lent = Arc::new(Mutex::new(std::mem::take(call)));
        let on_main = Arc::clone(&lent);
        let job = move || {
            let mut call = taken(&on_main);
            call.enter_thread();
            let mut all = ContextList::new();
            contexts.iter().for_each(|(id, data)| all.push(*id, data));
            let message = Divided::new(&octets, &ends);
            let outcome = {
                let _served = server.note_served_here(connection, (hops, passed_by.as_octets()));
                server.upcall_here(&message, codec, &mut reply, all.as_slice(), &mut call)
            };
            call.leave_thread();
            *on_main.lock().unwrap_or_else(PoisonError::into_inner) = call;
            (outcome, reply)
        };
        let wait = upcall.wait;
        let left = self.times.left(wait.until);
        let asked = self.adapter.main.ask(wait.patience, left, job);
        *call = taken(&lent);
        call.enter_thread();
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
        match (outcome, upcall.peer) {
            (Outcome::Replied, Some(peer))
                if upcall.request.response == Response::Receipt && !peer.is_local() =>
            {
                upcall.write_receipt(peer, self.sizes);
                Outcome::Receipted
            }
            (outcome, _) => outcome,
        }
    }

    /// Serves a request on the main thread, as if the main thread had read the message.
    fn upcall_here<C: ServantCall>(
        &self,
        message: &Divided<'_>,
        codec: Codec,
        reply: &mut Vec<u8>,
        contexts: &[ServiceContext<'_>],
        call: &mut C,
    ) -> Outcome {
        let Ok(Message::Request(mut request)) = Message::parse_joined(message) else {
            return self.refuse(no_object());
        };
        request.body = request.body.with_codec(codec);
        if let Err(exception) = self.times.require_end(&request) {
            return Outcome::Raise(exception);
        }
        let mut upcall = Upcall {
            peer: None,
            needs_bidirectional: false,
            wait: Wait {
                patience: Some(&self.wait_permits),
                until: None,
            },
            message,
            request: &request,
            reply,
            contexts,
        };
        self.upcall(&mut upcall, call)
    }

    /// Serves a request for an object that is not active. Returns `None` if the object has become active.
    fn upcall_inactive<C: ServantCall>(
        &self,
        upcall: &mut Upcall<'_>,
        adapter: &Arc<PoaState>,
        id: &[u8],
        call: &mut C,
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
                let _turn = match adapter.admit(upcall.request, id, Some(&*servant)) {
                    Ok(turn) => turn,
                    Err(denied) => return Some(Outcome::Raise(denied)),
                };
                let _frame = adapter::enter_without_object(adapter, Some(&servant), id);
                Some(call.call(self, upcall, &*servant, id))
            }
            RequestProcessing::UseServantManager
                if adapter.policies.servant_retention == ServantRetention::Retain =>
            {
                if let Err(denied) = adapter.check_access(upcall.request, id, None) {
                    return Some(Outcome::Raise(denied));
                }
                match adapter.incarnate(id, upcall.wait.patience) {
                    Ok(()) => None,
                    Err(Refusal::Raise(exception)) => Some(Outcome::Raise(exception)),
                    Err(Refusal::Forward(target)) => Some(Outcome::Forward(target)),
                }
            }
            RequestProcessing::UseServantManager => Some(match adapter.servant_manager() {
                Some(ServantManager::Locator(locator)) => {
                    self.upcall_located(upcall, adapter, &*locator, id, call)
                }
                _ => Outcome::Raise(raise::obj_adapter(
                    minor::NO_SERVANT_MANAGER,
                    Completion::No,
                )),
            }),
        }
    }

    /// Serves a request by the servant that a locator provides for it alone. `postinvoke` follows every `preinvoke`
    /// that succeeds.
    fn upcall_located<C: ServantCall>(
        &self,
        upcall: &mut Upcall<'_>,
        adapter: &Arc<PoaState>,
        locator: &dyn ServantLocator,
        id: &[u8],
        call: &mut C,
    ) -> Outcome {
        let Ok(operation) = std::str::from_utf8(upcall.request.operation) else {
            let unknown = raise::bad_operation(minor::OPERATION_UNKNOWN, Completion::No);
            return Outcome::Raise(unknown);
        };
        let poa = Poa::of(adapter);
        let mut cookie = None;
        let _turn = match adapter.admit(upcall.request, id, None) {
            Ok(turn) => turn,
            Err(denied) => return Outcome::Raise(denied),
        };
        let located = {
            let _frame = adapter::enter_without_object(adapter, None, id);
            self.guard(|| locator.preinvoke(id, &poa, operation, &mut cookie))
        };
        let servant = match located.map(|located| located.map_err(Refusal::from)) {
            Ok(Ok(servant)) => servant,
            Ok(Err(Refusal::Forward(target))) => return Outcome::Forward(target),
            Ok(Err(Refusal::Raise(exception))) | Err(exception) => {
                return Outcome::Raise(exception);
            }
        };
        let _frame = adapter::enter_without_object(adapter, Some(&servant), id);
        let outcome = call.call(self, upcall, &*servant, id);
        let end = || locator.postinvoke(id, &poa, operation, cookie, servant);
        match self.guard(end) {
            Ok(Ok(())) => outcome,
            _ if matches!(outcome, Outcome::Receipted) => outcome,
            Ok(Err(exception)) | Err(exception) => Outcome::Raise(exception),
        }
    }

    /// Waits while the POA manager holds requests. Keeps one thread of the lane free.
    fn let_through(
        &self,
        upcall: &Upcall<'_>,
        manager: &PoaManager,
    ) -> Result<(), SystemException> {
        if manager.state() == ManagerState::Active {
            return Ok(());
        }
        let patience = upcall.wait.patience;
        let hold = patience.and_then(WaitPermits::take);
        let may_wait = patience.is_none() || hold.is_some();
        manager.admit(may_wait, self.times.left(upcall.wait.until))
    }
}

fn taken<C: Default>(lent: &Mutex<C>) -> C {
    std::mem::take(&mut *lent.lock().unwrap_or_else(PoisonError::into_inner))
}
