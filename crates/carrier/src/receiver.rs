//! The consumer's side of a carrier as its part sees it: something that listens, and delivers until told to stop.

use std::sync::Arc;

use crate::arrival::{Handler, Shared};
use crate::body::Body;
use crate::carriers::corba::CorbaReceiver;
use crate::carriers::event::EventReceiver;
use crate::carriers::tcp::TcpReceiver;
use crate::carriers::udp::UdpReceiver;
use crate::part::PartError;
use crate::plan::{CarrierKind, ConsumerPlan};
use crate::stamp_clock::StampClock;
use crate::talk::Ready;

/// Receives one stream at one destination.
pub trait Receiver: Send {
    /// What others reach it by: endpoint and listening address.
    ///
    /// # Errors
    /// [`PartError`] when it cannot say.
    fn announce(&self, ready: &mut Ready) -> Result<(), PartError>;

    /// Delivers to `handler` until `shared` says stop. Called once, in a thread prepared for it.
    fn receive_all(&mut self, handler: Box<dyn Handler>, shared: &Arc<Shared>);
}

/// The receiver of a consumer's carrier, listening.
///
/// # Errors
/// [`PartError`] when the kernel or the middleware refuses.
pub fn listen(
    plan: &ConsumerPlan,
    body: &Body,
    clock: &Arc<StampClock>,
    shared: &Arc<Shared>,
) -> Result<Box<dyn Receiver>, PartError> {
    let (reader, clock) = (body.sequence_reader(), Arc::clone(clock));
    Ok(match plan.stream.carrier {
        CarrierKind::Udp => Box::new(UdpReceiver::bind(
            plan.address,
            plan.receive_buffer_bytes,
            reader,
            clock,
        )?),
        CarrierKind::Tcp => Box::new(TcpReceiver::bind(
            plan.address,
            plan.receive_buffer_bytes,
            reader,
            clock,
        )?),
        CarrierKind::Corba | CarrierKind::CorbaOneway => {
            Box::new(CorbaReceiver::serve(plan, body, shared)?)
        }
        CarrierKind::Event => Box::new(EventReceiver::serve(plan, body, shared)?),
    })
}
