//! The carriers `corba` and `corba-oneway`: calls on a servant of the consumer, with a value of the flow's type as
//! argument.
//!
//! ```idl
//! module Deckwatch { interface Sink { void deliver(in T data); oneway void deliver_oneway(in T data); }; };
//! ```
//!
//! T is the flow's IDL type, or `sequence<octet>` for plain octets. Each call marshals it and each servant demarshals
//! it, as generated stubs do. This is part of the cost of a middleware. The kernel's stamps come from the taps.
//!
//! The servant of a flow with a priority is served by a lane of that priority, and the packets of both ends have the
//! flow's DSCP.

use std::net::SocketAddr;
use std::sync::Arc;

use deckwatch_meter::blame::Road;
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Servant, ServerRequest, SystemException, SystemExceptionKind, minor,
};

use super::orb::{
    Deliveries, activate_in_lane, await_stop, call_time_max, calling_orb, port_of, send_error,
    serving_orb,
};
use crate::arrival::{Handler, Shared};
use crate::body::Body;
use crate::carrier::{Argument, Carrier, ConnectTo, Delivery, Framing, ListenAt};
use crate::error::PartError;
use crate::receiver::Receiver;
use crate::sender::{SendError, Sender, Sent};
use crate::talk::Ready;

/// Calls on a servant. Each destination has a thread and a connection of its own.
#[derive(Debug)]
pub struct Corba {
    name: &'static str,
    summary: &'static str,
    operation: &'static str,
    oneway: bool,
}

/// The carrier `corba`.
pub static TWO_WAY: Corba = Corba {
    name: "corba",
    summary: "A two-way call on a servant",
    operation: DELIVER,
    oneway: false,
};

/// The carrier `corba-oneway`.
pub static ONEWAY: Corba = Corba {
    name: "corba-oneway",
    summary: "A one-way call on a servant",
    operation: DELIVER_ONEWAY,
    oneway: true,
};

const SINK_REPOSITORY_ID: &str = "IDL:Deckwatch/Sink:1.0";
const DELIVER: &str = "deliver";
const DELIVER_ONEWAY: &str = "deliver_oneway";

impl Carrier for Corba {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn road(&self) -> Road {
        Road::MIDDLEWARE
    }

    fn framing(&self) -> Framing {
        Framing::Giop {
            operation: self.operation,
            argument: Argument::Value,
        }
    }

    fn delivery(&self) -> Delivery {
        Delivery::InOrder
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        let orb = calling_orb(call_time_max(to.deadline), to.network_priority)?;
        let sink = orb
            .string_to_object(to.endpoint)
            .map_err(PartError::Reference)?
            .ok_or(PartError::NilReference)?;
        if !sink.validate_connection().map_err(PartError::Reference)? {
            return Err(PartError::NoConsumer);
        }
        Ok(Box::new(CorbaSender {
            _orb: orb,
            sink,
            oneway: self.oneway,
        }))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let (orb, mut listening) = serving_orb(
            call_time_max(at.deadline),
            SocketAddr::new(at.address, 0),
            1,
            at.scheduling,
        )?;
        let sink = Arc::new(Sink(Deliveries::new(at.body, at.shared)));
        let servant = Arc::clone(&sink) as Arc<dyn Servant>;
        let reference = activate_in_lane(&orb, servant, at.priority, at.network_priority)?;
        // A lane has a port of its own.
        listening.set_port(port_of(&reference).unwrap_or(listening.port()));
        let reference = orb.object_to_string(&reference);
        Ok(Box::new(CorbaReceiver {
            orb,
            listening,
            reference,
            sink,
        }))
    }
}

/// Calls one destination's servant.
struct CorbaSender {
    /// Keeps the ORB alive: a reference does not own its ORB.
    _orb: Orb,
    sink: ObjectRef,
    oneway: bool,
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

/// The consumer's servant.
struct Sink(Deliveries);

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
        if !self.0.deliver(|body| body.read(&mut request.arguments())) {
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
struct CorbaReceiver {
    orb: Orb,
    listening: SocketAddr,
    reference: String,
    sink: Arc<Sink>,
}

impl Receiver for CorbaReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.endpoint = self.reference.clone();
        ready.listening = Some(self.listening);
    }

    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        self.sink.0.begin(handler);
        await_stop(shared);
        // Fails only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }
}
