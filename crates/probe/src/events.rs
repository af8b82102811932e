//! Looking into an event channel: receiving, sending, recording and replaying events of any type.
//!
//! Everything here is a client of the channel, so the channel may be ours or that of another ORB. A kind of channel is
//! one implementation of [`Channel`], with a [`Source`] for its consumers and a [`Sink`] for its suppliers; all else
//! does not know the kind.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`channel`] | the traits, and which kind a reference leads to |
//! | [`inbox`] | the bounded queue between the servant that receives and the thread that reads |
//! | [`subscription`] | a consumer: connected, read, disconnected |
//! | [`selection`] | which events are wanted |
//! | [`shown`] | an event as text and as JSON |
//! | [`age`] | age by the stamps in the events |
//! | [`rate`] | rate, inter-arrival times and gaps |
//! | [`recording`] | events in a file that survives a crash of the recorder |
//! | [`replay`] | the due times of recorded events |
//! | [`status`] | the state of a channel |
//! | [`sending`] | sending by an absolute schedule |

pub mod age;
pub mod channel;
mod cos;
pub mod error;
pub mod inbox;
pub mod rate;
mod realtime;
pub mod recording;
pub mod replay;
pub mod selection;
pub mod sending;
pub mod shown;
pub mod status;
pub mod subscription;

use std::time::SystemTime;

use deckwatch_cdr::Any;
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_os::clock::monotonic_ns;

pub use channel::{Channel, Sink, Source};
pub use error::EventsError;

/// The header of an event that is sent to a real-time channel without one. Its type is the first that the real-time event
/// service leaves to applications: type 0 would reach every consumer.
pub const HEADER_DEFAULT: EventHeader = EventHeader {
    r#type: 16,
    source: 1,
    ttl: 1,
    creation_time: 0,
    ec_recv_time: 0,
    ec_send_time: 0,
};

/// One event, received or to be sent.
#[derive(Clone, Debug)]
pub struct Event {
    /// The header; `None` for an event of a COS channel.
    pub header: Option<EventHeader>,
    /// The octets beside the value; empty for an event of a COS channel.
    pub payload: Vec<u8>,
    /// The value.
    pub data: Any,
}

impl Event {
    /// Returns an event of a COS channel.
    #[must_use]
    pub const fn of(data: Any) -> Self {
        Self {
            header: None,
            payload: Vec::new(),
            data,
        }
    }

    /// Octets of memory that it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.size().saturating_add(self.payload.len())
    }
}

/// An event and when it was received.
#[derive(Clone, Debug)]
pub struct Received {
    /// The event.
    pub event: Event,
    /// When our servant had decoded it.
    pub at: Moment,
}

/// One moment on both clocks of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub monotonic_ns: i64,
    /// The same moment in UTC.
    pub utc: SystemTime,
}

impl Moment {
    /// Reads both clocks.
    #[must_use]
    pub fn now() -> Self {
        Self {
            monotonic_ns: monotonic_ns(),
            utc: SystemTime::now(),
        }
    }
}
