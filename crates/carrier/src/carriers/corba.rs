//! The carriers `corba` and `corba-oneway`: calls on a servant of the consumer, with the flow's type as their argument.
//!
//! ```idl
//! module Deckwatch { interface Sink { void deliver(in T data); oneway void deliver_oneway(in T data); }; };
//! ```
//!
//! T is the flow's IDL type, `sequence<octet>` for plain octets. It is marshalled at each call and demarshalled at each servant, as generated stubs
//! do: that is a part of what a middleware costs. The kernel's stamps come from the taps.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_meter::pacing;
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Servant, ServerRequest, SystemException, SystemExceptionKind, minor,
};
use deckwatch_os::clock;
use deckwatch_sync::PiMutex;

use crate::arrival::{Arrival, Handler, Shared};
use crate::body::Body;
use crate::limits::{CONNECT_TIME_MAX, STOP_LOOK};
use crate::part::PartError;
use crate::plan::{CarrierKind, ConsumerPlan, Scheduling, StreamPlan};
use crate::receiver::Receiver;
use crate::scheduling::prepare_thread;
use crate::sender::{SendError, Sender, Sent};
use crate::talk::Ready;

/// The repository id of the servant's interface.
pub const SINK_REPOSITORY_ID: &str = "IDL:Deckwatch/Sink:1.0";

/// The operation of `corba`.
pub const DELIVER: &str = "deliver";

/// The operation of `corba-oneway`.
pub const DELIVER_ONEWAY: &str = "deliver_oneway";

/// An ORB that only calls, no call longer than this.
///
/// # Errors
/// [`PartError`] when it cannot be made.
pub(crate) fn calling_orb(call_time_max: Duration) -> Result<Orb, PartError> {
    let made = Orb::builder()
        .connect_timeout(CONNECT_TIME_MAX)
        .round_trip_timeout(call_time_max)
        .build();
    made.map_err(|error| PartError::Plan(error.to_string()))
}

/// An ORB that serves at `address` (port 0 for any), its threads scheduled as asked for; where it listens.
///
/// # Errors
/// [`PartError`] when it cannot listen.
pub(crate) fn serving_orb(
    call_time_max: Duration,
    address: SocketAddr,
    threads: usize,
    scheduling: &Scheduling,
) -> Result<(Orb, SocketAddr), PartError> {
    let of = |error: deckwatch_orb::BuildError| PartError::Plan(error.to_string());
    let scheduling = scheduling.clone();
    let builder = Orb::builder()
        .listen(&address.to_string())
        .map_err(of)?
        .connect_timeout(CONNECT_TIME_MAX)
        .round_trip_timeout(call_time_max)
        .threads(threads)
        // What is refused is refused to the part's own thread too, which tells it.
        .on_thread_start(move || drop(prepare_thread(&scheduling)));
    let orb = builder.build().map_err(of)?;
    let port = orb
        .endpoints()
        .first()
        .and_then(|endpoint| endpoint.port())
        .unwrap_or(0);
    Ok((orb, SocketAddr::new(address.ip(), port)))
}

/// The longest that a call may hold its destination's schedule up: as long as messages are awaited at the end of a run.
pub(crate) fn call_time_max(stream: &StreamPlan) -> Duration {
    pacing::drain(stream.deadline)
}

/// What a system exception means to a part that cannot do without the object.
pub(crate) fn unusable(what: &str, exception: SystemException) -> PartError {
    PartError::Plan(format!("{what}: {exception}."))
}

/// Calls one destination's servant.
pub struct CorbaSender {
    /// Kept, because references do not keep their ORB.
    _orb: Orb,
    sink: ObjectRef,
    oneway: bool,
}

impl CorbaSender {
    /// Connects to the servant of a stringified reference.
    ///
    /// # Errors
    /// [`PartError`] where it is no reference, or leads to nobody.
    pub fn connect(stream: &StreamPlan, reference: &str) -> Result<Self, PartError> {
        let orb = calling_orb(call_time_max(stream))?;
        let of = |exception| unusable("The consumer's reference cannot be used", exception);
        let sink = orb.string_to_object(reference).map_err(of)?;
        let sink =
            sink.ok_or_else(|| PartError::Plan("The consumer's reference is nil.".to_owned()))?;
        if !sink.validate_connection().map_err(of)? {
            return Err(PartError::Plan(
                "The consumer's reference leads to no object.".to_owned(),
            ));
        }
        Ok(Self {
            _orb: orb,
            sink,
            oneway: stream.carrier == CarrierKind::CorbaOneway,
        })
    }
}

impl Sender for CorbaSender {
    fn send(&mut self, _sequence: u64, body: &Body) -> Result<Sent, SendError> {
        let sent = if self.oneway {
            self.sink
                .invoke_oneway(DELIVER_ONEWAY, |writer| body.write_last(writer))
        } else {
            self.sink.invoke(
                DELIVER,
                |writer| body.write_last(writer),
                |_| Ok(()),
                |_, _| Ok(None),
            )
        };
        sent.map(|()| Sent::Whole).map_err(send_error)
    }
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

/// The consumer's servant.
struct Sink {
    shared: Arc<Shared>,
    inside: PiMutex<Inside>,
}

/// What one delivery at a time works with.
pub(crate) struct Inside {
    pub(crate) body: Body,
    /// None until the part is ready.
    pub(crate) handler: Option<Box<dyn Handler>>,
}

impl Inside {
    /// Hands over a message whose sequence number has just been read.
    pub(crate) fn handle(&mut self, sequence: Option<u64>, shared: &Shared) {
        let received_ns = clock::monotonic_ns();
        match (&mut self.handler, sequence) {
            (Some(handler), Some(sequence)) => {
                handler.handle(Arrival {
                    sequence,
                    kernel_receive_ns: None,
                    shared_stamp: false,
                    received_ns,
                });
            }
            _ => {
                shared.malformed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Servant for Sink {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[SINK_REPOSITORY_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let operation = request.operation();
        if operation != DELIVER.as_bytes() && operation != DELIVER_ONEWAY.as_bytes() {
            return Err(SystemException::new(
                SystemExceptionKind::BadOperation,
                minor::OPERATION_UNKNOWN,
                Completion::No,
            ));
        }
        let mut inside = self.inside.lock("carrier.sink");
        let sequence = inside.body.read(&mut request.arguments());
        inside.handle(sequence, &self.shared);
        drop(inside);
        if sequence.is_none() {
            return Err(SystemException::new(
                SystemExceptionKind::Marshal,
                minor::NONE,
                Completion::No,
            ));
        }
        if operation == DELIVER.as_bytes() {
            request.reply()?;
        }
        Ok(())
    }
}

/// Serves one destination.
pub struct CorbaReceiver {
    orb: Orb,
    listening: SocketAddr,
    reference: String,
    sink: Arc<Sink>,
}

impl CorbaReceiver {
    /// Activates the servant at the consumer's address, at a port of the kernel's choice.
    ///
    /// # Errors
    /// [`PartError`] when the ORB cannot listen.
    pub fn serve(
        plan: &ConsumerPlan,
        body: &Body,
        shared: &Arc<Shared>,
    ) -> Result<Self, PartError> {
        let (orb, listening) = serving_orb(
            call_time_max(&plan.stream),
            SocketAddr::new(plan.address, 0),
            1,
            &plan.scheduling,
        )?;
        let inside = Inside {
            body: body.clone(),
            handler: None,
        };
        let sink = Arc::new(Sink {
            shared: Arc::clone(shared),
            inside: PiMutex::new(inside),
        });
        let reference = activate(&orb, Arc::clone(&sink) as Arc<dyn Servant>)?;
        let reference = orb.object_to_string(&reference);
        Ok(Self {
            orb,
            listening,
            reference,
            sink,
        })
    }
}

/// Activates a servant in the root adapter, and the adapter.
pub(crate) fn activate(orb: &Orb, servant: Arc<dyn Servant>) -> Result<ObjectRef, PartError> {
    let of = |exception| unusable("The object adapter cannot be used", exception);
    let refused = |error: &dyn std::fmt::Display| {
        PartError::Plan(format!("The servant cannot be activated: {error}."))
    };
    let root = orb.root_poa().map_err(of)?;
    let id = root
        .activate_object(servant)
        .map_err(|error| refused(&error))?;
    root.the_poa_manager()
        .activate()
        .map_err(|error| refused(&error))?;
    root.id_to_reference(&id).map_err(|error| refused(&error))
}

impl Receiver for CorbaReceiver {
    fn announce(&self, ready: &mut Ready) -> Result<(), PartError> {
        ready.endpoint = self.reference.clone();
        ready.listening = Some(self.listening);
        Ok(())
    }

    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        self.sink.inside.lock("carrier.sink").handler = Some(handler);
        await_stop(shared);
        // Nobody else ends it, so that there is no end before this one.
        let _ended = self.orb.shutdown(true);
    }
}

/// The ORB's own threads receive; this one waits.
pub(crate) fn await_stop(shared: &Shared) {
    while !shared.stopped() {
        clock::sleep_until(
            clock::monotonic_ns() + i64::try_from(STOP_LOOK.as_nanos()).unwrap_or(0),
        );
    }
}
