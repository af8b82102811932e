//! The events of a typed channel.

use std::sync::Arc;

use deckwatch_cdr::Any;

use crate::kept::Kept;

/// The arguments of one call. Cheap to clone: all queues share them.
#[derive(Clone, Debug)]
pub(super) struct Arguments(pub(super) Arc<[Any]>);

/// One call of a supplier, as all queues share it.
pub(super) type KeptEvent = Arc<Kept<TypedEvent>>;

/// One call of a supplier.
#[derive(Clone, Debug)]
pub(super) struct TypedEvent {
    /// The position of the interface in the channel.
    pub(super) interface: usize,
    /// The position of the operation in the interface.
    pub(super) operation: usize,
    pub(super) arguments: Arguments,
}

impl Arguments {
    /// Their octets.
    pub(super) fn size(&self) -> usize {
        self.0.iter().map(Any::size).sum()
    }
}
