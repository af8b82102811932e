//! What a peer does to a server beside the measured calls: those of a high lane, or those of a naming service.

/// One kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Names whose context is at a server that never answers are resolved.
    OutwardCalls,
    /// Names whose context is at a host name without an address are resolved.
    HostNames,
    /// A consumer that never reads, and a supplier of events of 1 MiB.
    SilentConsumer,
    /// Consumers that never answer, suppliers that never push and contexts that nobody binds, as many as the services
    /// keep.
    Places,
    /// Connections, each with a part of a request, as many as a listener accepts.
    Connections,
    /// Large requests without their last octet, as many as the inbound bound permits.
    UnfinishedMessages,
    /// Shared-memory connections that never send a request, as many as a listener accepts.
    SharedMemory,
    /// CancelRequests behind the first fragment of a request.
    Cancels,
    /// Names that `deckwatch names serve` resolves through contexts of another service, which never answers.
    SilentContexts,
    /// Names of 64 components are resolved, each component a context that leads back to the service through a relay.
    CircularContexts,
}

impl Attack {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 10] = [
        Self::OutwardCalls,
        Self::HostNames,
        Self::SilentConsumer,
        Self::Places,
        Self::Connections,
        Self::UnfinishedMessages,
        Self::SharedMemory,
        Self::Cancels,
        Self::SilentContexts,
        Self::CircularContexts,
    ];

    /// Its name in commands and tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::OutwardCalls => "outward-calls",
            Self::HostNames => "host-names",
            Self::SilentConsumer => "silent-consumer",
            Self::Places => "places",
            Self::Connections => "connections",
            Self::UnfinishedMessages => "unfinished-messages",
            Self::SharedMemory => "shared-memory",
            Self::Cancels => "cancels",
            Self::SilentContexts => "silent-contexts",
            Self::CircularContexts => "circular-contexts",
        }
    }

    /// The measured calls are those of a good client of the attacked naming service; else those of a high lane.
    #[must_use]
    pub const fn is_on_names(self) -> bool {
        matches!(self, Self::SilentContexts | Self::CircularContexts)
    }

    /// The attack of that name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|attack| attack.word() == word)
    }
}
