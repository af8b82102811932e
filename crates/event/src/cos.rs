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
