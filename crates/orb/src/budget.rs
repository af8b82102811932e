//! What is returned where a [`deckwatch_sync::Budget`] is exhausted.

/// The limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;
