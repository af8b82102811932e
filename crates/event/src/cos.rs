//! The servants of `CosEventChannelAdmin` in the pull model and the state behind them, the factory of channels, and
//! typed channels.

mod criteria;
mod factory;
mod pull_consumer;
mod pull_queue;
mod pull_supplier;
mod pullers;
mod sources;
mod typed;

pub use factory::EventChannelFactory;
pub(crate) use pull_consumer::PullConsumerProxy;
pub(crate) use pull_queue::PullQueue;
pub(crate) use pull_supplier::PullSupplierProxy;
pub(crate) use pullers::{PullPermits, Pullers};
pub(crate) use sources::Sources;
pub use typed::{OperationFault, TypedEventChannel, TypedInterface, TypedInterfaceError};

use deckwatch_orb::ObjectRef;

use crate::cos_event_comm::{PullConsumerRef, PullSupplierRef};
use crate::limits;

/// Notifies a client that its communication has ended, and does not wait for the reply (clause 2.3.3). Connecting to
/// the client may take [`limits::FAREWELL_TIMEOUT`].
pub(crate) fn notify(client: &ObjectRef, operation: &str) {
    let hurried = client.with_round_trip_timeout(Some(limits::FAREWELL_TIMEOUT));
    let _ = hurried.send_callback(operation, |_| Ok(()), None); // A client that is gone needs no notice.
}

/// Notifies clients in the pull model that the channel has ended, one after the other.
pub(crate) fn farewell_pulls(pullers: Vec<PullConsumerRef>, sources: Vec<PullSupplierRef>) {
    let hurried =
        |object: &ObjectRef| object.with_round_trip_timeout(Some(limits::FAREWELL_TIMEOUT));
    for puller in pullers {
        let _ =
            PullConsumerRef::unchecked_narrow(hurried(puller.object())).disconnect_pull_consumer();
    }
    for source in sources {
        let _ =
            PullSupplierRef::unchecked_narrow(hurried(source.object())).disconnect_pull_supplier();
    }
}
