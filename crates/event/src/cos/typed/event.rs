//! The events of a typed channel.

use std::sync::Arc;

use deckwatch_cdr::Any;

use crate::cos::pull_queue::Queued;

/// The arguments of one call. Cheap to clone: all queues share them.
#[derive(Clone, Debug)]
pub(super) struct Arguments(pub(super) Arc<[Any]>);

/// One call of a supplier.
#[derive(Clone, Debug)]
pub(super) struct TypedEvent {
    /// The position of the interface in the channel.
    pub(super) interface: usize,
    /// The position of the operation in the interface.
    pub(super) operation: usize,
    pub(super) arguments: Arguments,
}

impl Queued for Arguments {
    fn size(&self) -> usize {
        self.0.iter().map(Any::size).sum()
    }
}
