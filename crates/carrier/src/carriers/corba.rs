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
    Deliveries, activate, activate_in_lane, await_stop, call_time_max, calling_orb, port_of,
    send_error, serving_orb,
};
use crate::arrival::{Handler, Shared};
use crate::body::Body;
use crate::carrier::{Argument, Carrier, ConnectTo, Delivery, Framing, ListenAt, Needs};
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
/// Stands between the references of several servants.
const REFERENCE_SEPARATOR: char = ' ';
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

    fn needs(&self) -> Needs {
        Needs {
            has_servants: true,
            ..Needs::default()
        }
    }

    fn connect(&self, to: &ConnectTo<'_>) -> Result<Box<dyn Sender>, PartError> {
        Ok(Box::new(self.sender(to)?))
    }

    fn listen(&self, at: &ListenAt<'_>) -> Result<Box<dyn Receiver>, PartError> {
        let (orb, mut listening) = serving_orb(
            call_time_max(at.deadline),
            SocketAddr::new(at.address, 0),
            1,
            at.scheduling,
            at.network_priority,
        )?;
        let deliveries = Arc::new(Deliveries::new(at.body, at.shared));
        let sink = || Arc::new(Sink(Arc::clone(&deliveries))) as Arc<dyn Servant>;
        let first = activate_in_lane(&orb, sink(), at.priority)?;
        // A lane has a port of its own.
        listening.set_port(port_of(&first).unwrap_or(listening.port()));
        let mut references = orb.object_to_string(&first);
        for _ in 1..at.settings.servants {
            references.push(REFERENCE_SEPARATOR);
            references += &orb.object_to_string(&activate(&orb, sink())?);
        }
        Ok(Box::new(CorbaReceiver {
            orb,
            listening,
            references,
            deliveries,
        }))
    }
}

impl Corba {
    fn sender(&self, to: &ConnectTo<'_>) -> Result<CorbaSender, PartError> {
        let orb = calling_orb(call_time_max(to.deadline), to.network_priority)?;
        let sink = |reference| {
            orb.string_to_object(reference)
                .map_err(PartError::Reference)?
                .ok_or(PartError::NilReference)
        };
        let references = to.endpoint.split(REFERENCE_SEPARATOR);
        let sinks: Vec<ObjectRef> = references.map(sink).collect::<Result<_, _>>()?;
        for sink in &sinks {
            if !sink.validate_connection().map_err(PartError::Reference)? {
                return Err(PartError::NoConsumer);
            }
        }
        Ok(CorbaSender {
            _orb: orb,
            sinks,
            turn: 0,
            oneway: self.oneway,
        })
    }
}

/// Calls one destination's servant.
struct CorbaSender {
    /// Keeps the ORB alive: a reference does not own its ORB.
    _orb: Orb,
    /// The servants, which take turns.
    sinks: Vec<ObjectRef>,
    turn: usize,
    oneway: bool,
}

impl Sender for CorbaSender {
    fn send(&mut self, _sequence: u64, body: &Body) -> Result<Sent, SendError> {
        let sink = &self.sinks[self.turn];
        self.turn = if self.turn + 1 == self.sinks.len() {
            0
        } else {
            self.turn + 1
        };
        let sent = if self.oneway {
            sink.invoke_oneway(DELIVER_ONEWAY, |writer| body.write_last(writer))
        } else {
            sink.invoke(
                DELIVER,
                |writer| body.write_last(writer),
                |_| Ok(()),
                |_, _| Ok(None),
            )
        };
        sent.map(|()| Sent::Whole).map_err(send_error)
    }
}

/// A servant of the consumer.
struct Sink(Arc<Deliveries>);

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
    references: String,
    deliveries: Arc<Deliveries>,
}

impl Receiver for CorbaReceiver {
    fn announce(&self, ready: &mut Ready) {
        ready.endpoint = self.references.clone();
        ready.listening = Some(self.listening);
    }

    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>) {
        self.deliveries.begin(handler);
        await_stop(shared);
        // Fails only if the ORB was shut down before, and no other code shuts it down.
        let _ = self.orb.shutdown(true);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::arrival::Arrival;
    use crate::body::BodyPlan;
    use crate::carrier::{NetworkPriority, ReceiverSettings, SocketSettings};
    use crate::scheduling::Scheduling;

    struct Nothing;

    impl Handler for Nothing {
        fn handle(&mut self, _: Arrival) {}
    }

    #[test]
    fn several_servants_have_references_of_their_own_and_take_turns() {
        let shared = Arc::new(Shared::default());
        let body = Body::new(&BodyPlan::Octets { size_bytes: 64 }).expect("a body");
        let at = ListenAt {
            address: [127, 0, 0, 1].into(),
            channel: None,
            settings: ReceiverSettings {
                servants: 3,
                ..ReceiverSettings::default()
            },
            scheduling: &Scheduling::default(),
            priority: None,
            network_priority: NetworkPriority::default(),
            deadline: Duration::from_secs(5),
            body: &body,
            shared: &shared,
        };
        let mut receiver = TWO_WAY.listen(&at).expect("a free port");
        let mut ready = Ready::default();
        receiver.announce(&mut ready);
        let mut references: Vec<&str> = ready.endpoint.split(REFERENCE_SEPARATOR).collect();
        references.sort_unstable();
        references.dedup();
        assert_eq!(references.len(), 3);
        let of_thread = Arc::clone(&shared);
        let serving =
            std::thread::spawn(move || receiver.receive_all(Box::new(Nothing), &of_thread));
        let to = ConnectTo {
            address: at.address,
            host: "H",
            endpoint: &ready.endpoint,
            channel: None,
            network_priority: NetworkPriority::default(),
            socket: SocketSettings::default(),
            deadline: at.deadline,
            body: &body,
        };
        let mut sender = TWO_WAY.sender(&to).expect("it listens");
        let mut turns = Vec::new();
        for sequence in 0..4 {
            turns.push(sender.turn);
            sender.send(sequence, &body).expect("it is delivered");
        }
        assert_eq!(turns, [0, 1, 2, 0]);
        shared
            .stop
            .store(true, std::sync::atomic::Ordering::Relaxed);
        serving.join().expect("no panic");
    }
}
