//! Code that the carriers and services over our ORB share: it creates an ORB, activates servants, and blocks while the
//! ORB's threads receive.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_meter::pacing;
use deckwatch_orb::cos_naming::NamingContextExtRef;
use deckwatch_orb::{
    self as orb, FixedNetwork, NativePriority, ObjectRef, Orb, OrbBuilder, Policies, Policy,
    Priority, PriorityMapping, PriorityModel, Protocols, Servant, SystemException,
    SystemExceptionKind, ThreadpoolLane,
};
use deckwatch_os::clock;
use deckwatch_sync::PiMutex;

use crate::arrival::{Arrival, Handler, Shared};
use crate::body::Body;
use crate::carrier::NetworkPriority;
use crate::error::PartError;
use crate::limits::{BEGIN_LOOK, CONNECT_TIME_MAX, STOP_LOOK};
use crate::scheduling::{Scheduling, SchedulingClass, prepare_thread};
use crate::sender::SendError;

/// Creates an ORB for a client only. No call takes longer than `call_time_max`. Its packets get the priority `packets`.
///
/// # Errors
/// [`PartError`] if the ORB cannot be created.
pub(crate) fn calling_orb(
    call_time_max: Duration,
    packets: NetworkPriority,
) -> Result<Orb, PartError> {
    let builder = Orb::builder()
        .connect_timeout(CONNECT_TIME_MAX)
        .round_trip_timeout(call_time_max);
    Ok(marking(builder, packets)?.build()?)
}

/// Creates an ORB that serves at `address` (port 0 for any) with `threads` threads, scheduled as `scheduling` asks. Its
/// packets get the priority `packets`: requests, replies and deliveries. Returns the address with the port that it
/// listens on.
///
/// # Errors
/// [`PartError`] if the ORB cannot listen.
pub(crate) fn serving_orb(
    call_time_max: Duration,
    address: SocketAddr,
    threads: usize,
    scheduling: &Scheduling,
    packets: NetworkPriority,
) -> Result<(Orb, SocketAddr), PartError> {
    let (class, native) = class_of(scheduling);
    let scheduling = scheduling.clone();
    let builder = Orb::builder()
        .listen(&address.to_string())?
        .scheduling(class)
        .priority_mapping(OneNative(native))
        // What the kernel refuses is reported in `ready`, and the part runs without it.
        .allow_priority_fallback()
        .connect_timeout(CONNECT_TIME_MAX)
        .round_trip_timeout(call_time_max)
        .threads(threads)
        // The result is dropped: the kernel refuses the same for the part's own thread, and that thread reports it.
        .on_thread_start(move || drop(prepare_thread(&scheduling)));
    let orb = marking(builder, packets)?.build()?;
    let port = orb
        .endpoints()
        .first()
        .and_then(|endpoint| endpoint.port())
        .unwrap_or(0);
    Ok((orb, SocketAddr::new(address.ip(), port)))
}

/// The native priority of every CORBA priority: the one of the part's plan.
struct OneNative(NativePriority);

impl PriorityMapping for OneNative {
    fn to_native(&self, _: Priority) -> Option<NativePriority> {
        Some(self.0)
    }

    fn to_corba(&self, _: NativePriority) -> Option<Priority> {
        None
    }
}

fn class_of(scheduling: &Scheduling) -> (orb::Scheduling, NativePriority) {
    let native = |priority: u8| NativePriority(i16::from(priority));
    match scheduling.class {
        SchedulingClass::Other => (orb::Scheduling::Other, NativePriority(0)),
        SchedulingClass::Fifo { priority } => (orb::Scheduling::Fifo, native(priority)),
        SchedulingClass::RoundRobin { priority } => (orb::Scheduling::RoundRobin, native(priority)),
    }
}

/// Gives all packets of an ORB a priority, if one is asked for.
fn marking(builder: OrbBuilder, packets: NetworkPriority) -> Result<OrbBuilder, PartError> {
    if packets == NetworkPriority::default() {
        return Ok(builder);
    }
    let queue = packets.socket_priority.unwrap_or(0);
    let mapping = FixedNetwork(orb::NetworkPriority {
        dscp: packets.dscp.unwrap_or(0),
        queue: u8::try_from(queue).unwrap_or(u8::MAX),
    });
    let failed = |error: SystemException| PartError::Activation(error.to_string());
    let protocols = Protocols::with_network_priority().map_err(failed)?;
    Ok(builder
        .network_priority_mapping(mapping)
        .policy(Policy::ClientProtocol(protocols))
        .server_protocols(protocols))
}

/// Activates the servant of a flow. With a priority it is served by a lane of that priority (SERVER_DECLARED), whose
/// port the reference names. Without, by the root adapter.
///
/// # Errors
/// [`PartError`] if the ORB refuses the lane or the servant.
pub(crate) fn activate_in_lane(
    orb: &Orb,
    servant: Arc<dyn Servant>,
    priority: Option<u16>,
) -> Result<ObjectRef, PartError> {
    let Some(priority) = priority else {
        return activate(orb, servant);
    };
    let failed = |error: &dyn Display| PartError::Activation(error.to_string());
    // A mission has priorities up to 32767.
    let number = i16::try_from(priority).unwrap_or(i16::MAX);
    let lane_priority = Priority::try_from(number).map_err(|error| failed(&error))?;
    let lane = ThreadpoolLane {
        lane_priority,
        static_threads: 1,
        dynamic_threads: 0,
    };
    let rt_orb = orb.rt_orb();
    let pool = rt_orb
        .create_threadpool_with_lanes(0, &[lane], false, None)
        .map_err(|error| failed(&error))?;
    let model = PriorityModel::ServerDeclared;
    let policies = Policies {
        threadpool: Some(pool),
        priority_model: Some(rt_orb.create_priority_model_policy(model, lane_priority)),
        ..Policies::default()
    };
    let root = orb.root_poa().map_err(|error| failed(&error))?;
    let manager = root.the_poa_manager();
    manager.activate().map_err(|error| failed(&error))?;
    let poa = root
        .create_poa("flow", Some(manager), &policies)
        .map_err(|error| failed(&error))?;
    let id = poa
        .activate_object(servant)
        .map_err(|error| failed(&error))?;
    poa.id_to_reference(&id).map_err(|error| failed(&error))
}

/// Returns the port that a reference leads to first.
pub(crate) fn port_of(reference: &ObjectRef) -> Option<u16> {
    let profile = reference.ior().iiop_profiles().next()?.ok()?;
    Some(profile.port)
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
            kernel_receive_realtime_ns: None,
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

#[cfg(test)]
mod tests;
