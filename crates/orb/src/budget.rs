//! The error of a [`deckwatch_sync::Budget`] that is exhausted.

/// The limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;
