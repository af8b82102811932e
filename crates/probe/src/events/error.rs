//! Why a channel cannot be looked into.

use deckwatch_orb::{BuildError, PoaError, SystemException};

/// Why a channel cannot be looked into.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventsError {
    /// The reference leads to an object of another interface.
    #[error("the object is no event channel; its reference says {0}")]
    NotAChannel(String),
    /// The channel does not answer.
    #[error("the event channel does not answer")]
    Unreachable(#[source] SystemException),
    /// The channel refused to connect us.
    #[error("the event channel refused {what}: {reason}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// Its exception, in words.
        reason: String,
    },
    /// The channel, or our proxy in it, is gone.
    #[error("the event channel is gone: {0}")]
    Gone(String),
    /// The address at which the channel would reach this consumer cannot be used.
    #[error(
        "cannot listen at {at} for the channel's events: {reason}; `--listen HOST:PORT` names another address"
    )]
    CannotListen {
        /// The address.
        at: String,
        /// The reason.
        reason: String,
    },
    /// Events are chosen by their header, and events of a COS channel have none.
    #[error(
        "events of a COS event channel have no header: `--source` and a number as `--type` are for the real-time channel"
    )]
    NoHeader,
    /// Our own ORB refuses.
    #[error("{0}")]
    Orb(String),
}

impl From<BuildError> for EventsError {
    fn from(error: BuildError) -> Self {
        Self::Orb(error.to_string())
    }
}

impl From<PoaError> for EventsError {
    fn from(error: PoaError) -> Self {
        Self::Orb(error.to_string())
    }
}
