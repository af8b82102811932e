//! Typed event channels (CosTypedEventComm, CosTypedEventChannelAdmin).

mod admin;
mod channel;
mod client_object;
mod consumers;
mod event;
mod interface;
mod pull_consumer;
mod pull_supplier;
mod push_consumer;
mod push_supplier;

pub use channel::TypedEventChannel;
pub use interface::{OperationFault, TypedInterface, TypedInterfaceError};
