//! One accepted connection: what it has brought, what it owes, and the requests that wait in it.

pub(crate) mod bidirectional;
mod bidirectional_replies;
mod inbound;
mod peer;
pub(crate) mod reading;
pub(crate) mod request_queue;
pub(crate) mod writing;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use deckwatch_sync::{Claim, PiMutex, SlotKey};

use crate::transport::Stream;
use bidirectional::Bidirectional;
pub(crate) use inbound::{Arrived, Inbound};
use writing::Outbound;

/// One accepted connection.
pub(crate) struct Connection {
    pub(crate) stream: Arc<dyn Stream>,
    /// Who has this reads the connection.
    pub(crate) inbound: Claim<Inbound>,
    /// Since when a message has been unfinished, as [`Inbound::begun`] says; 0: none is.
    pub(crate) begun: AtomicU64,
    /// Something has happened since the connection was last read.
    pub(crate) signalled: AtomicBool,
    /// The peer has ended: read to the end, not to a wait.
    pub(crate) ended: AtomicBool,
    /// All that the peer sends has been read; what is being served is still answered.
    pub(crate) read_out: AtomicBool,
    /// A thread waits in its read, and the poller does not watch it.
    pub(crate) adopted: AtomicBool,
    /// Requests in a row that the poller had to tell.
    pub(crate) streak: AtomicUsize,
    /// What the client has announced for `string`: nothing, or a code set numbered from 1.
    pub(crate) chars: AtomicU8,
    /// Whoever has this writes; messages go whole.
    pub(crate) writing: Claim<()>,
    /// What could not be written at once.
    pub(crate) outbound: PiMutex<Outbound>,
    /// Its requests are not read because something is owed, or its line is full.
    pub(crate) held_up: AtomicBool,
    /// A thread has been told of what has been read of it and not looked at, and none has come to read it since.
    pub(crate) handed_over: AtomicBool,
    /// Since when the peer has taken none of what waits for it; 0: nothing waits.
    pub(crate) owed_since: AtomicU64,
    /// Requests of it that are being served or wait for that: two-way ones, and what is in its line, parked, or put aside until its start.
    pub(crate) serving: AtomicUsize,
    /// The client has been told that nothing more is served; set by who may read.
    pub(crate) parted: AtomicBool,
    /// When it came, last brought a message, or was left by the thread that had adopted it: [`Transport::now_coarse`].
    pub(crate) used: AtomicU64,
    /// It has brought a message.
    pub(crate) has_brought: AtomicBool,
    /// A message of it waits for a thread, before which none behind it is looked at.
    pub(crate) parked: AtomicBool,
    /// What the poller tells it by.
    pub(crate) token: AtomicU64,
    /// Its number in the trace.
    pub(crate) number: u32,
    /// Where both sides ask over it.
    pub(crate) bidirectional: OnceLock<Arc<Bidirectional>>,
}

impl Connection {
    /// Where the lane has it.
    pub(crate) fn key(&self) -> SlotKey {
        key_of(self.token.load(Ordering::Relaxed))
    }
}

pub(crate) fn token_of(key: SlotKey) -> u64 {
    u64::from(key.slot) << 32 | u64::from(key.generation)
}

pub(crate) fn key_of(token: u64) -> SlotKey {
    SlotKey {
        slot: (token >> 32) as u32,
        generation: token as u32,
    }
}
