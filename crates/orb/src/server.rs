//! Answers requests: from a whole message to its reply.
//!
//! [`Server::answer`] is the only entry point. It gets requests from the connections of a lane, from the request queue
//! of a bidirectional connection, from a lane's waiting room, at their start time, and from callers of this process.
//! The [`Peer`] of a request provides what differs between them.

mod collocated;
mod detours;
mod implicit_operations;
mod intercepted;
mod outcome;
mod peer;
pub(crate) mod priority;
mod times;
mod upcall;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_cdr::Divided;
use deckwatch_giop::{LocateStatus, Message, Request, Response};

use crate::access::AccessEvent;
use crate::adapter::{Adapter, Found, Poa, WaitPermits, Whereabouts};
use crate::call_side::CallSide;
use crate::connection::bidirectional;
use crate::contexts::hops::PassedBy;
use crate::contexts::read::carried;
use crate::counters::{Counter, Counters};
use crate::rt::current::ThreadPriorities;
use crate::trace::Trace;
use crate::transport::{Stream, Transport};
use crate::wire::{self, Sizes};
use crate::{CallerConnection, SystemException, current};
use intercepted::InterceptedCall;
use outcome::Outcome;
pub(crate) use peer::{Early, Peer, Unanswered};
pub(crate) use priority::PoolPlace;
use priority::ServerPriority;
use times::RequestTimes;
pub(crate) use upcall::Wait;
use upcall::{DirectCall, Upcall};

thread_local! {
    static SERVED: Cell<Served> = const { Cell::new(Served::NOTHING) };
    /// The numbers in the request that is served; valid only if [`Served::has_numbers`]. Few requests have numbers, and
    /// copying them for each request would cost 64 octets.
    static PASSED_BY: Cell<PassedBy> = const { Cell::new(PassedBy::NOBODY) };
}

/// The request that a thread serves. Some numbers, so that a request needs no reference count for them.
#[derive(Clone, Copy)]
struct Served {
    /// The address of its server; 0 if the thread serves none.
    server: usize,
    /// The connection that brought it.
    connection: CallerConnection,
    /// How many services have passed it on.
    hops: u8,
    /// Some of these gave their numbers.
    has_numbers: bool,
}

impl Served {
    const NOTHING: Self = Self {
        server: 0,
        connection: CallerConnection::THIS_PROCESS,
        hops: 0,
        has_numbers: false,
    };
}

/// Answers the requests of one lane.
pub(crate) struct Server {
    orb: Weak<CallSide>,
    /// A handle on itself, for requests that the main thread serves.
    this: Weak<Self>,
    pub(crate) adapter: Arc<Adapter>,
    counters: Arc<Counters>,
    trace: Arc<Trace>,
    sizes: Sizes,
    times: RequestTimes,
    priority: ServerPriority,
    /// For threads that wait for a manager or a servant manager.
    pub(crate) wait_permits: WaitPermits,
    /// Whether the lane has no threads of its own: the application calls `perform_work`.
    is_turned_by_hand: bool,
    /// Requests that are being served.
    in_progress: AtomicUsize,
    is_closed: AtomicBool,
}

/// What a server needs of its ORB.
pub(crate) struct ServerOrb {
    pub(crate) calls: Weak<CallSide>,
    pub(crate) adapter: Arc<Adapter>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) priorities: Arc<ThreadPriorities>,
}

/// The settings of a server.
pub(crate) struct ServerShape {
    pub(crate) sizes: Sizes,
    /// The largest error of the local clock against UTC, if it is known.
    pub(crate) clock_bound: Option<Duration>,
    pub(crate) place: PoolPlace,
    /// The number of threads that may wait at the same time for something other than events.
    pub(crate) wait_permits: usize,
    pub(crate) is_turned_by_hand: bool,
}

/// Restores the previous value of [`SERVED`] on drop.
struct ServedHere {
    served: Served,
    passed_by: Option<PassedBy>,
}

impl Drop for ServedHere {
    fn drop(&mut self) {
        SERVED.set(self.served);
        if let Some(passed_by) = self.passed_by {
            PASSED_BY.set(passed_by);
        }
    }
}

impl Server {
    pub(crate) fn new(orb: &ServerOrb, shape: ServerShape) -> Arc<Self> {
        let counters = &orb.counters;
        Arc::new_cyclic(|this| Self {
            orb: orb.calls.clone(),
            this: this.clone(),
            adapter: Arc::clone(&orb.adapter),
            counters: Arc::clone(counters),
            trace: Arc::clone(&orb.trace),
            sizes: shape.sizes,
            times: RequestTimes::new(
                Arc::clone(&orb.transport),
                Arc::clone(counters),
                shape.clock_bound,
            ),
            priority: ServerPriority::new(
                Arc::clone(&orb.priorities),
                Arc::clone(counters),
                shape.place,
            ),
            wait_permits: WaitPermits::new(shape.wait_permits),
            is_turned_by_hand: shape.is_turned_by_hand,
            in_progress: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        })
    }

    /// Refuses requests of this process from now on.
    pub(crate) fn close(&self) {
        // SYNC: pairs with the load in `LocalCaller::may_enter`: a caller that still enters has been counted before.
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Tells the access log, if there is one, that a peer has connected.
    pub(crate) fn log_connected(&self, stream: &dyn Stream) {
        if let Some(log) = &self.adapter.log {
            log.note(&AccessEvent::Connected {
                caller: stream.caller(),
                name: stream.caller_name().as_deref(),
            });
        }
    }

    /// Tells the access log, if there is one, that a peer was not let in.
    pub(crate) fn log_refused(&self, stream: &dyn Stream, reason: &str) {
        if let Some(log) = &self.adapter.log {
            log.note(&AccessEvent::ConnectionRefused {
                peer: &stream.peer(),
                reason,
            });
        }
    }

    /// Returns whether no request is being served.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_progress.load(Ordering::SeqCst) == 0
    }

    /// Returns whether the calling thread serves a request of this server, which cannot end before this call returns.
    pub(crate) fn is_served_here(&self) -> bool {
        SERVED.get().server == std::ptr::from_ref(self).addr()
    }

    /// Returns the connection that brought the request that the calling thread serves.
    pub(crate) fn connection_served_here() -> CallerConnection {
        SERVED.get().connection
    }

    /// Returns how many services have passed on the request that the calling thread serves.
    pub(crate) fn hops_served_here() -> u8 {
        SERVED.get().hops
    }

    /// Returns which of these services gave their numbers.
    pub(crate) fn passed_by_served_here() -> PassedBy {
        if SERVED.get().has_numbers {
            PASSED_BY.get()
        } else {
            PassedBy::NOBODY
        }
    }

    fn note_served_here(
        &self,
        connection: CallerConnection,
        (hops, numbers): (u8, &[u8]),
    ) -> ServedHere {
        let has_numbers = !numbers.is_empty();
        let passed_by = has_numbers.then(|| PASSED_BY.replace(PassedBy::read(numbers)));
        let served = SERVED.replace(Served {
            server: std::ptr::from_ref(self).addr(),
            connection,
            hops,
            has_numbers,
        });
        ServedHere { served, passed_by }
    }

    /// Answers one message of `peer`.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub(crate) fn answer<P: Peer>(
        &self,
        message: &Divided<'_>,
        peer: &P,
    ) -> Result<(), Unanswered> {
        let is_whole = message.ends().is_empty();
        let plain = is_whole.then(|| Request::plain(message.octets()));
        let mut request = match plain.flatten() {
            Some(request) => request,
            None => {
                std::hint::cold_path();
                let Some(request) = self.request_of(message, peer)? else {
                    return Ok(());
                };
                request
            }
        };
        self.in_progress.fetch_add(1, Ordering::SeqCst);
        let answered = if peer.may_enter(self) {
            self.answer_in_time(message, &mut request, peer);
            Ok(())
        } else {
            Err(Unanswered::Closed)
        };
        self.in_progress.fetch_sub(1, Ordering::SeqCst);
        answered
    }

    /// Parses a message that [`Request::plain`] does not accept. Answers a LocateRequest and returns `None` for it.
    #[inline(never)]
    fn request_of<'m, P: Peer>(
        &self,
        message: &'m Divided<'_>,
        peer: &P,
    ) -> Result<Option<Request<'m>>, Unanswered> {
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
                peer.with_reply(true, |buffer| {
                    wire::locate_reply(buffer, request.version, request.id, status, elsewhere);
                    peer.write(buffer);
                });
                Ok(None)
            }
            other => {
                if let Err(fault) = other {
                    self.trace.misread(peer.number(), fault);
                }
                self.counters.count(Counter::ProtocolErrors);
                Err(Unanswered::Unreadable)
            }
        }
    }

    /// Returns where the object of a key is. If another lane serves the object, returns a reference to it there.
    fn locate(&self, key: &[u8]) -> Whereabouts {
        let whereabouts = self.adapter.locate(key, Some(&self.wait_permits));
        let is_here = matches!(whereabouts, Whereabouts::Here);
        let Some(found) = self.adapter.find_at_once(key).filter(|_| is_here) else {
            return whereabouts;
        };
        let (adapter, id, own) = match &found {
            Found::Active(_, object) => (&object.adapter, &*object.id, object.priority),
            Found::Inactive { adapter, id } => (adapter, *id, adapter.realtime.reserved(id)),
            Found::Elsewhere(_) => return whereabouts,
        };
        if self.priority.serves(&adapter.realtime, own) {
            return whereabouts;
        }
        let target = Poa::of(adapter).own_reference(id);
        target.map_or(whereabouts, Whereabouts::Elsewhere)
    }

    /// Answers a request, or puts it aside until its start time.
    fn answer_in_time<P: Peer>(&self, message: &Divided<'_>, request: &mut Request<'_>, peer: &P) {
        let agreed = peer.agree_on_code_sets(request);
        let request = &*request;
        let ready = match agreed.and_then(|()| self.times.start_of(request)) {
            Ok(None) => Ok(()),
            Ok(Some(start)) => match peer.put_aside(message, request, start) {
                Ok(Early::PutAside) => return,
                Ok(Early::Waited) => self.times.require_end(request),
                Err(full) => Err(full),
            },
            Err(exception) => Err(exception),
        };
        let over = peer.bidirectional();
        let _over = over.map(|over| bidirectional::enter(over, message.octets()));
        let (echoed, hops) = carried(request);
        let wait = peer.wait(self);
        let connection = peer.connection();
        let is_awaited = request.response.is_expected();
        peer.with_reply(is_awaited, |reply| {
            let mut upcall = Upcall {
                peer: Some(peer),
                needs_bidirectional: over.is_some_and(|over| over.is_opened_here),
                wait,
                message,
                request,
                reply,
                contexts: echoed.as_slice(),
            };
            let is_answered = self.serve(&mut upcall, ready, connection, hops);
            if is_awaited && !is_answered {
                peer.write(reply);
            }
        });
    }

    /// Serves a request, or raises the exception of `ready`, and leaves the whole reply in the buffer. Returns whether
    /// the caller has its answer already.
    fn serve(
        &self,
        upcall: &mut Upcall<'_>,
        ready: Result<(), SystemException>,
        connection: CallerConnection,
        hops: (u8, &[u8]),
    ) -> bool {
        // Requests can be nested: in simulation, a call runs other lanes until it returns.
        let served = self.note_served_here(connection, hops);
        let is_answered = match (ready, self.adapter.interceptors.server()) {
            (Ok(()), None) => {
                // Values of the application are dropped here too, and their drop can panic.
                match catch_unwind(AssertUnwindSafe(|| self.upcall(upcall, &mut DirectCall))) {
                    Ok(Outcome::Replied) => false,
                    Ok(other) => outcome::conclude(self, upcall, other, &[]),
                    Err(_) => {
                        outcome::conclude(self, upcall, Outcome::Raise(self.count_panic()), &[])
                    }
                }
            }
            (Ok(()), Some(all)) => {
                std::hint::cold_path();
                let (outcome, added) = InterceptedCall::serve(self, all, upcall);
                outcome::conclude(self, upcall, outcome, &added)
            }
            (Err(exception), _) => {
                std::hint::cold_path();
                outcome::conclude(self, upcall, Outcome::Raise(exception), &[])
            }
        };
        self.counters.count(match upcall.request.response {
            Response::Outcome => Counter::Requests,
            _ => Counter::Oneways,
        });
        drop(served);
        is_answered
    }
}
