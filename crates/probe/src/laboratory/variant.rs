//! Transport of our ends and how they wait.

/// A way of serving and calling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// TCP; a busy connection has a thread of its own.
    #[default]
    Plain,
    /// TCP; all connections share the poller of one thread.
    SharedPoller,
    /// Shared memory.
    SharedMemory,
    /// TCP; both ends spin.
    Spinning,
    /// Shared memory; both ends spin.
    SpinningSharedMemory,
    /// TLS, with a certificate at each end.
    Tls,
}

impl Variant {
    /// All variants.
    pub const ALL: [Self; 6] = [
        Self::Plain,
        Self::SharedPoller,
        Self::SharedMemory,
        Self::Spinning,
        Self::SpinningSharedMemory,
        Self::Tls,
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
            Self::Tls => "tls",
        }
    }

    /// The difference from the plain variant, to be appended to a name.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::SharedPoller => ", through a shared poller",
            Self::SharedMemory => ", through shared memory",
            Self::Spinning => ", on a spinning lane",
            Self::SpinningSharedMemory => ", through shared memory on a spinning lane",
            Self::Tls => ", over TLS",
        }
    }

    /// Both ends poll in a loop instead of sleeping.
    #[must_use]
    pub const fn spins(self) -> bool {
        matches!(self, Self::Spinning | Self::SpinningSharedMemory)
    }

    /// The ends share memory.
    #[must_use]
    pub const fn shares_memory(self) -> bool {
        matches!(self, Self::SharedMemory | Self::SpinningSharedMemory)
    }
}
