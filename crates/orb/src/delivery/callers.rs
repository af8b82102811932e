//! Deliveries that a plain connection cannot make: by ordinary calls of the ORB, from one thread.
//!
//! These are requests to an object that has moved (a location forward) or that wants another addressing, over a
//! bidirectional connection, and of an ORB with interceptors or with fragments. One slow receiver among them delays the
//! others of this kind.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deckwatch_cdr::{EncodeError, Writer};
use deckwatch_sync::{Bell, PiMutex};

use super::outlet::{Next, Outcome, Outlet};
use super::replies::outcome_of;
use super::{Engine, Marshalled};
use crate::{ObjectRef, SystemException, SystemExceptionKind as Kind};

/// Outlets whose requests go by calls.
#[derive(Default)]
pub(super) struct Callers {
    ready: PiMutex<Ready>,
    bell: Arc<Bell>,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Ready {
    outlets: VecDeque<Arc<Outlet>>,
    has_thread: bool,
}

/// How a call has ended.
enum Raised {
    System(SystemException),
    /// A user exception; the flag: it is one of the final ones.
    User(bool),
}

impl From<SystemException> for Raised {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl Callers {
    /// The outlet has something to send. The first use starts the thread.
    pub(super) fn post(&self, engine: &Arc<Engine>, outlet: &Arc<Outlet>) {
        let mut ready = self.ready.lock("delivery.post");
        ready.outlets.push_back(Arc::clone(outlet));
        let is_first = !std::mem::replace(&mut ready.has_thread, true);
        drop(ready);
        self.bell.ring();
        if is_first && !engine.calls.is_turned_by_hand() {
            let (weak, bell) = (Arc::downgrade(engine), Arc::clone(&self.bell));
            let thread = std::thread::Builder::new().name("delivery-calls".to_owned());
            let started = thread.spawn(move || {
                loop {
                    let turn = bell.turn();
                    let Some(engine) = weak.upgrade() else { return };
                    if engine.callers.is_closed.load(Ordering::Acquire) {
                        return;
                    }
                    if !engine.callers.turn(&engine) {
                        drop(engine);
                        bell.wait(turn);
                    }
                }
            });
            self.ready.lock("delivery.post").has_thread = started.is_ok();
        }
    }

    /// Sends one request. Returns whether there was one.
    pub(super) fn turn(&self, engine: &Arc<Engine>) -> bool {
        let next = self.ready.lock("delivery.call").outlets.pop_front();
        let Some(outlet) = next else {
            return false;
        };
        let (next, is_ready) = outlet.take();
        let outcome = match next {
            Next::Event(event) => outlet.call(engine, Some(&event), outlet.operation(&event)),
            Next::Farewell(operation) => {
                outlet.call(engine, None, operation);
                Outcome::Parted
            }
            Next::Question => {
                let settled = outlet.settle_answer(outlet.ask(engine));
                if let Err(end) = settled {
                    outlet.connection.worker.tell(&outlet, end);
                } else if is_ready {
                    self.ready.lock("delivery.call").outlets.push_back(outlet);
                }
                return true;
            }
            Next::Nothing => return true,
            Next::Ended(end) => {
                outlet.connection.worker.tell(&outlet, end);
                return true;
            }
        };
        match outlet.settle(outcome, None) {
            Ok(is_new) if is_new || is_ready => {
                self.ready.lock("delivery.call").outlets.push_back(outlet);
            }
            Ok(_) => {}
            Err(end) => outlet.connection.worker.tell(&outlet, end),
        }
        true
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.ready.lock("delivery.close").outlets.clear();
        self.bell.ring();
    }
}

impl Outlet {
    /// Has the calling thread send its next request.
    pub(super) fn post_call(self: &Arc<Self>) {
        if let Some(engine) = self.engine.upgrade() {
            engine.callers.post(&engine, self);
        }
    }

    /// The object with the time limit of a call.
    fn called(&self, engine: &Engine) -> &ObjectRef {
        self.called.get_or_init(|| {
            let limit = engine.options.reply_timeout;
            self.object.with_round_trip_timeout(Some(limit))
        })
    }

    /// Asks the receiver whether it exists.
    fn ask(&self, engine: &Engine) -> Outcome {
        match self.called(engine).non_existent() {
            Ok(true) => Outcome::Final,
            Ok(false) => Outcome::Delivered,
            Err(exception) if exception.kind == Kind::Transient => Outcome::Failed,
            Err(_) => Outcome::Blameless,
        }
    }

    fn call(&self, engine: &Engine, event: Option<&Marshalled>, operation: &str) -> Outcome {
        let is_unwritten = std::cell::Cell::new(false);
        let write = |w: &mut Writer<'_>| {
            let Some(event) = event else { return Ok(()) };
            let form = event.form();
            // In another form the octets would be misread.
            if w.codec() != form.codec || w.order() != form.order || w.phase() != 0 {
                is_unwritten.set(true);
                return Err(EncodeError::TypeMismatch);
            }
            w.write_octets(event.octets())
        };
        let object = self.called(engine);
        let called = if self.options.window == 0 {
            object
                .invoke_oneway(operation, write)
                .map_err(Raised::System)
        } else {
            let finals = self.options.final_exceptions;
            object.invoke(
                operation,
                write,
                |_| Ok(()),
                |id, _| Ok(Some(Raised::User(finals.contains(&id)))),
            )
        };
        match called {
            Ok(()) => Outcome::Delivered,
            Err(_) if is_unwritten.get() => Outcome::Blameless,
            Err(Raised::User(true)) => Outcome::Final,
            Err(Raised::User(false)) => Outcome::Failed,
            Err(Raised::System(exception)) if exception.kind == Kind::Marshal => Outcome::Blameless,
            Err(Raised::System(exception)) => outcome_of(exception.kind),
        }
    }
}
