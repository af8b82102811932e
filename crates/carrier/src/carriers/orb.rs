//! What carriers and services over our ORB share: making an ORB, reaching its servants, and waiting while its threads
//! receive.

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

/// An ORB that only calls. No call takes longer than `call_time_max`.
///
/// # Errors
/// [`PartError`] when it cannot be made.
pub(crate) fn calling_orb(call_time_max: Duration) -> Result<Orb, PartError> {
    let orb = Orb::builder()
        .connect_timeout(CONNECT_TIME_MAX)
        .round_trip_timeout(call_time_max)
        .build()?;
    Ok(orb)
}

/// An ORB that serves at `address` (port 0 for any), its threads scheduled as asked for. Returns the address with its
/// port.
///
/// # Errors
/// [`PartError`] when it cannot listen.
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
        // The part's own thread is refused the same, and reports it.
        .on_thread_start(move || drop(prepare_thread(&scheduling)))
        .build()?;
    let port = orb
        .endpoints()
        .first()
        .and_then(|endpoint| endpoint.port())
        .unwrap_or(0);
    Ok((orb, SocketAddr::new(address.ip(), port)))
}

/// The longest that a call may block its thread: as long as messages are awaited at the end of a run.
pub(crate) fn call_time_max(deadline: Duration) -> Duration {
    pacing::drain(deadline)
}

/// The fact behind a system exception.
pub(crate) fn send_error(exception: SystemException) -> SendError {
    match exception.kind {
        SystemExceptionKind::Timeout => SendError::TimedOut,
        SystemExceptionKind::CommFailure | SystemExceptionKind::Transient => {
            SendError::Disconnected
        }
        kind => SendError::Raised(kind as u16),
    }
}

/// The naming service behind a reference.
///
/// # Errors
/// [`PartError`] where the reference leads to something else.
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

/// Activates a servant in the root adapter, and the adapter.
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

/// Hands over what a servant receives, one message at a time.
pub(crate) struct Deliveries {
    shared: Arc<Shared>,
    state: PiMutex<State>,
}

struct State {
    body: Body,
    /// None until [`Deliveries::begin`].
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

    /// Delivers to `handler` from now on.
    pub(crate) fn begin(&self, handler: Box<dyn Handler>) {
        self.state.lock("carrier.delivery").handler = Some(handler);
    }

    /// Reads a message by `read`, which returns its sequence number, and hands it over. A message without number is
    /// counted as malformed. Returns false for it.
    pub(crate) fn deliver(&self, read: impl FnOnce(&mut Body) -> Option<u64>) -> bool {
        let mut state = self.state.lock("carrier.delivery");
        // A message may arrive before the part's thread has begun.
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

/// Blocks until the part stops: the ORB's own threads receive.
pub(crate) fn await_stop(shared: &Shared) {
    while !shared.stopped() {
        clock::sleep_until(
            clock::monotonic_ns() + i64::try_from(STOP_LOOK.as_nanos()).unwrap_or(0),
        );
    }
}
