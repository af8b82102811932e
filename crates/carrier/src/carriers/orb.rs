//! Code that the carriers and services over our ORB share: it creates an ORB, activates servants, and blocks while the
//! ORB's threads receive.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_meter::pacing;
use deckwatch_orb::cos_naming::NamingContextExtRef;
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException, SystemExceptionKind};
use deckwatch_os::clock;
use deckwatch_sync::PiMutex;

use crate::arrival::{Arrival, Handler, Shared};
use crate::body::Body;
use crate::error::PartError;
use crate::limits::{BEGIN_LOOK, CONNECT_TIME_MAX, STOP_LOOK};
use crate::scheduling::{Scheduling, prepare_thread};
use crate::sender::SendError;

/// Creates an ORB for a client only. No call takes longer than `call_time_max`.
///
/// # Errors
/// [`PartError`] if the ORB cannot be created.
pub(crate) fn calling_orb(call_time_max: Duration) -> Result<Orb, PartError> {
    let orb = Orb::builder()
        .connect_timeout(CONNECT_TIME_MAX)
        .round_trip_timeout(call_time_max)
        .build()?;
    Ok(orb)
}

/// Creates an ORB that serves at `address` (port 0 for any) with `threads` threads, scheduled as `scheduling` asks.
/// Returns the address with the port that it listens on.
///
/// # Errors
/// [`PartError`] if the ORB cannot listen.
pub(crate) fn serving_orb(
    call_time_max: Duration,
    address: SocketAddr,
    threads: usize,
    scheduling: &Scheduling,
) -> Result<(Orb, SocketAddr), PartError> {
    let scheduling = scheduling.clone();
    let orb = Orb::builder()
        .listen(&address.to_string())?
        .connect_timeout(CONNECT_TIME_MAX)
        .round_trip_timeout(call_time_max)
        .threads(threads)
        // The result is dropped: the kernel refuses the same for the part's own thread, and that thread reports it.
        .on_thread_start(move || drop(prepare_thread(&scheduling)))
        .build()?;
    let port = orb
        .endpoints()
        .first()
        .and_then(|endpoint| endpoint.port())
        .unwrap_or(0);
    Ok((orb, SocketAddr::new(address.ip(), port)))
}

/// The longest that a call may block its thread: the drain, in which messages are still awaited at the end of a run.
pub(crate) fn call_time_max(deadline: Duration) -> Duration {
    pacing::drain(deadline)
}

/// Maps a system exception to the reason why a message was not sent.
pub(crate) fn send_error(exception: SystemException) -> SendError {
    match exception.kind {
        SystemExceptionKind::Timeout => SendError::TimedOut,
        SystemExceptionKind::CommFailure | SystemExceptionKind::Transient => {
            SendError::Disconnected
        }
        kind => SendError::Raised(kind as u16),
    }
}

/// Resolves a reference to a naming service.
///
/// # Errors
/// [`PartError`] if the reference is invalid or does not denote a naming service.
pub(crate) fn naming_service(orb: &Orb, reference: &str) -> Result<NamingContextExtRef, PartError> {
    let failed = |error: SystemException| PartError::Names {
        reference: reference.to_owned(),
        error,
    };
    let object = orb.string_to_object(reference).map_err(failed)?;
    let context = object
        .as_ref()
        .map(NamingContextExtRef::narrow)
        .transpose()
        .map_err(failed)?
        .flatten();
    context.ok_or_else(|| PartError::NotNames(reference.to_owned()))
}

/// Activates the servant in the root POA and activates the root POA's manager. Returns the servant's reference.
pub(crate) fn activate(orb: &Orb, servant: Arc<dyn Servant>) -> Result<ObjectRef, PartError> {
    let failed = |error: &dyn Display| PartError::Activation(error.to_string());
    let root = orb.root_poa().map_err(|error| failed(&error))?;
    let id = root
        .activate_object(servant)
        .map_err(|error| failed(&error))?;
    root.the_poa_manager()
        .activate()
        .map_err(|error| failed(&error))?;
    root.id_to_reference(&id).map_err(|error| failed(&error))
}

/// Passes the messages that a servant receives to the handler, one at a time.
pub(crate) struct Deliveries {
    shared: Arc<Shared>,
    state: PiMutex<State>,
}

struct State {
    body: Body,
    /// `None` until [`Deliveries::begin`].
    handler: Option<Box<dyn Handler>>,
}

impl Deliveries {
    pub(crate) fn new(body: &Body, shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            state: PiMutex::new(State {
                body: body.clone(),
                handler: None,
            }),
        }
    }

    /// Sets the handler; messages are passed to it from now on.
    pub(crate) fn begin(&self, handler: Box<dyn Handler>) {
        self.state.lock("carrier.delivery").handler = Some(handler);
    }

    /// Reads a message with `read`, which returns its sequence number, and passes it to the handler. A message without
    /// a sequence number is counted as malformed; returns false for it.
    pub(crate) fn deliver(&self, read: impl FnOnce(&mut Body) -> Option<u64>) -> bool {
        let mut state = self.state.lock("carrier.delivery");
        // A message may arrive before `begin`; wait for the handler.
        while state.handler.is_none() && !self.shared.stopped() {
            drop(state);
            std::thread::sleep(BEGIN_LOOK);
            state = self.state.lock("carrier.delivery");
        }
        let sequence = read(&mut state.body);
        let received_ns = clock::monotonic_ns();
        let (Some(handler), Some(sequence)) = (&mut state.handler, sequence) else {
            self.shared.malformed.fetch_add(1, Ordering::Relaxed);
            return sequence.is_some();
        };
        handler.handle(Arrival {
            sequence,
            kernel_receive_ns: None,
            shared_stamp: false,
            received_ns,
        });
        true
    }
}

/// Blocks until the part stops. The ORB's own threads receive meanwhile.
pub(crate) fn await_stop(shared: &Shared) {
    while !shared.stopped() {
        clock::sleep_until(
            clock::monotonic_ns() + i64::try_from(STOP_LOOK.as_nanos()).unwrap_or(0),
        );
    }
}
