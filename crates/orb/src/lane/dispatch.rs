//! From a whole message to its reply: request, locate request, and the operations every object has.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use deckwatch_cdr::{CharSet, Divided, Reader};
use deckwatch_giop::{LocateStatus, Message, ReplyStatus, Request, Response, Version};

use super::{Lane, ServerConnection};
use crate::adapter::{Elsewhere, Found, ManagerState, ObjectKey, PoaManager};
use crate::counters::Counter;
use crate::raise;
use crate::servant::ServerRequest;
use crate::wire;
use crate::{Completion, SystemException, current, minor};

thread_local! {
    /// The lane whose request this thread serves, by its address; 0: none.
    static SERVED: Cell<usize> = const { Cell::new(0) };
}

/// What a request comes to.
enum Outcome {
    /// The reply, if one is expected, stands in the buffer.
    Replied,
    /// The caller knew that the request had come before it was served; it waits for nothing more.
    Receipted,
    /// The reply is this exception.
    Raise(SystemException),
    /// The caller shall ask elsewhere.
    Forward(crate::ObjectRef),
}

impl Lane {
    /// Serves one message. `Err`: the connection cannot go on.
    pub(super) fn dispatch(
        &self,
        connection: &ServerConnection,
        message: &Divided<'_>,
    ) -> Result<(), ()> {
        match Message::parse_joined(message) {
            Ok(Message::Request(request)) => {
                self.serve_request(connection, request);
                Ok(())
            }
            Ok(Message::LocateRequest(request)) => {
                self.counters.count(Counter::LocateRequests);
                let found = request
                    .target
                    .object_key()
                    .is_ok_and(|key| self.find(key).is_ok());
                let status = if found {
                    LocateStatus::ObjectHere
                } else {
                    LocateStatus::UnknownObject
                };
                self.write_with(connection, |buffer| {
                    wire::locate_reply(buffer, request.version, request.id, status)
                });
                Ok(())
            }
            _ => {
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

    /// From the first request that announces code sets on, all of its connection are read and answered in them.
    fn agree_on_code_sets(
        &self,
        connection: &ServerConnection,
        request: &mut Request<'_>,
    ) -> Result<(), SystemException> {
        if let Some(chars) = wire::announced_chars(request)? {
            connection
                .says_utf8
                .store(chars == CharSet::Utf8, Ordering::Release);
        }
        if connection.says_utf8.load(Ordering::Acquire) {
            request.body = request
                .body
                .with_codec(request.body.codec().with_chars(CharSet::Utf8));
        }
        Ok(())
    }

    fn serve_request(&self, connection: &ServerConnection, mut request: Request<'_>) {
        let agreed = self.agree_on_code_sets(connection, &mut request);
        let request = &request;
        self.in_progress.fetch_add(1, Ordering::AcqRel);
        // A simulated world turns lanes within a call.
        let outer = SERVED.replace(std::ptr::from_ref(self).addr());
        let mut reply = self.slab.lend_empty();
        let outcome = agreed.map_or_else(Outcome::Raise, |()| {
            self.upcall(connection, request, &mut reply)
        });
        let is_answered = matches!(outcome, Outcome::Receipted);
        match outcome {
            Outcome::Replied | Outcome::Receipted => {}
            Outcome::Raise(exception) => {
                self.counters.count(Counter::SystemExceptions);
                wire::exception_reply(&mut reply, request, exception, self.shape.sizes);
            }
            Outcome::Forward(target) => {
                if let Err(error) =
                    wire::forward_reply(&mut reply, request, target.ior(), self.shape.sizes)
                {
                    wire::exception_reply(&mut reply, request, error.into(), self.shape.sizes);
                }
            }
        }
        self.counters.count(match request.response {
            Response::Outcome => Counter::Requests,
            _ => Counter::Oneways,
        });
        if request.response.is_expected() && !is_answered {
            self.write(connection, &reply);
        }
        self.slab.take_back(reply);
        SERVED.set(outer);
        self.in_progress.fetch_sub(1, Ordering::AcqRel);
    }

    fn upcall(
        &self,
        connection: &ServerConnection,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
    ) -> Outcome {
        let key = request.target.object_key().map_err(SystemException::from);
        match key.and_then(|key| self.find(key)) {
            Ok(Found::Elsewhere(elsewhere)) => {
                self.upcall_elsewhere(connection, request, reply, elsewhere)
            }
            Ok(found) => self.upcall_at(connection, request, reply, &found),
            Err(exception) => self.refuse(exception),
        }
    }

    /// A plain key stands for a reference; one of our own is served here, another is told to the caller.
    fn upcall_elsewhere(
        &self,
        connection: &ServerConnection,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
        elsewhere: Elsewhere,
    ) -> Outcome {
        let own = elsewhere.target.object_key().filter(|key| {
            elsewhere.is_ours && !matches!(ObjectKey::parse(key), ObjectKey::Plain(_))
        });
        let outcome = own.map(|key| match self.find(key) {
            Ok(found) => self.upcall_at(connection, request, reply, &found),
            Err(exception) => self.refuse(exception),
        });
        outcome.unwrap_or(Outcome::Forward(elsewhere.target))
    }

    fn find<'a>(&'a self, key: &'a [u8]) -> Result<Found<'a>, SystemException> {
        self.adapter.find(key)
    }

    fn refuse(&self, exception: SystemException) -> Outcome {
        self.counters.count(Counter::ObjectsNotExist);
        Outcome::Raise(exception)
    }

    fn upcall_at(
        &self,
        connection: &ServerConnection,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
        found: &Found<'_>,
    ) -> Outcome {
        let (Some(servant), Some(adapter)) = (found.servant(), found.adapter()) else {
            return self.refuse(raise::object_not_exist(raise::NO_OBJECT, Completion::No));
        };
        if let Err(exception) = self.let_through(&adapter.manager) {
            self.counters.count(Counter::RequestsDiscarded);
            return Outcome::Raise(exception);
        }
        if let Some(outcome) = self.answer_for_every_object(request, reply, servant) {
            return outcome;
        }
        current::enter(&self.orb);
        if request.response == Response::Receipt {
            self.say_receipt(connection, request, reply);
        }
        let mut upcall = ServerRequest::new(request, found.object_id(), reply, self.shape.sizes);
        let _turn = adapter
            .is_single_threaded()
            .then(|| adapter.serial.lock("adapter.single_thread"));
        let served = catch_unwind(AssertUnwindSafe(|| servant.dispatch(&mut upcall)));
        if served.is_err() {
            self.counters.count(Counter::ServantPanics);
        }
        match served {
            _ if request.response == Response::Receipt => Outcome::Receipted,
            Ok(Ok(())) => upcall
                .finish()
                .map_or_else(|error| Outcome::Raise(error.into()), |()| Outcome::Replied),
            Ok(Err(exception)) => Outcome::Raise(exception),
            Err(_) => Outcome::Raise(raise::unknown(0, Completion::Maybe)),
        }
    }

    /// SYNC_WITH_SERVER: the caller is told that the request has come and will be served, not what comes of it.
    fn say_receipt(
        &self,
        connection: &ServerConnection,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
    ) {
        let receipt = ServerRequest::new(request, &[], reply, self.shape.sizes).finish();
        debug_assert!(
            receipt.is_ok(),
            "a reply without results can always be written"
        );
        self.write(connection, reply);
    }

    /// Lets a request through, after waiting where its adapter's manager holds requests: one thread is left for the others.
    fn let_through(&self, manager: &PoaManager) -> Result<(), SystemException> {
        if manager.state() == ManagerState::Active {
            return Ok(());
        }
        let held_max = self
            .seats
            .len()
            .saturating_sub(1)
            .max(self.shape.threads.min(1));
        let may_wait = self.holding.fetch_add(1, Ordering::AcqRel) < held_max;
        let admitted = manager.admit(may_wait);
        self.holding.fetch_sub(1, Ordering::AcqRel);
        admitted
    }

    /// `_is_a`, `_non_existent` and the others that no servant implements.
    fn answer_for_every_object(
        &self,
        request: &Request<'_>,
        reply: &mut Vec<u8>,
        servant: &dyn crate::Servant,
    ) -> Option<Outcome> {
        let answer = match request.operation {
            b"_is_a" => is_a(request.body, servant),
            b"_non_existent" | b"_not_existent" => Ok(false),
            b"_interface" => Err(raise::intf_repos(
                minor::INTERFACE_REPOSITORY_ABSENT,
                Completion::No,
            )),
            b"_component" | b"_domain_managers" => Err(raise::no_implement(0, Completion::No)),
            _ => return None,
        };
        let written = answer.and_then(|answer| {
            let open =
                wire::begin_reply(reply, request, ReplyStatus::NoException, self.shape.sizes)?;
            open.writer(reply).write_u8(u8::from(answer))?;
            Ok(open.finish(reply).map(drop)?)
        });
        Some(written.map_or_else(Outcome::Raise, |()| Outcome::Replied))
    }
}

fn is_a(mut arguments: Reader<'_>, servant: &dyn crate::Servant) -> Result<bool, SystemException> {
    let asked = arguments.read_string_octets()?;
    let has = servant
        .repository_ids()
        .iter()
        .any(|id| id.as_bytes() == asked);
    Ok(has || asked == wire::OBJECT_REPOSITORY_ID.as_bytes())
}
