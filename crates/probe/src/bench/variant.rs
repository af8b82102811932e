//! How our ends wait, and over what they talk.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way of serving and calling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// TCP; a connection that is busy has a thread of its own.
    #[default]
    Plain,
    /// TCP; connections share the poller of one thread.
    SharedPoller,
    /// Through shared memory.
    SharedMemory,
    /// TCP; both ends look for messages instead of sleeping.
    Spinning,
    /// Through shared memory; both ends look for messages instead of sleeping.
    SpinningSharedMemory,
}

impl Variant {
    /// Every one.
    pub const ALL: [Self; 5] = [
        Self::Plain,
        Self::SharedPoller,
        Self::SharedMemory,
        Self::Spinning,
        Self::SpinningSharedMemory,
    ];

    /// Its name in commands.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::SharedPoller => "shared-poller",
            Self::SharedMemory => "shared-memory",
            Self::Spinning => "spinning",
            Self::SpinningSharedMemory => "spinning-shared-memory",
        }
    }

    /// What differs from the plain one, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::SharedPoller => ", through a shared poller",
            Self::SharedMemory => ", through shared memory",
            Self::Spinning => ", on a spinning lane",
            Self::SpinningSharedMemory => ", through shared memory on a spinning lane",
        }
    }

    /// Both ends look for messages instead of sleeping.
    #[must_use]
    pub const fn spins(self) -> bool {
        matches!(self, Self::Spinning | Self::SpinningSharedMemory)
    }

    /// They share memory.
    #[must_use]
    pub const fn shares_memory(self) -> bool {
        matches!(self, Self::SharedMemory | Self::SpinningSharedMemory)
    }
}
