//! The options of a real-time channel.

use deckwatch_orb::Access;
use deckwatch_orb::delivery::WhenFull;

use super::scheduling::Scheduling;
use crate::dispatch::Dispatching;
use crate::limits;

/// Options of a real-time channel.
#[derive(Clone, Debug)]
pub struct RtChannelOptions {
    /// Event sets that wait for one consumer; 1 to [`limits::QUEUE_LEN_MAX`].
    pub queue_len: usize,
    /// What happens when a consumer's queue is full.
    pub when_full: WhenFull,
    /// Octets of all events that are alive; at least [`limits::CHANNEL_SIZE_MIN`].
    pub size_max: usize,
    /// Which thread sends an event, and which goes first.
    pub dispatching: Dispatching,
    /// A thread of a lane or of deliveries whose priority the host refuses works at the priority that it has, and is
    /// counted. Else the channel does not start, and a consumer that needs the thread is refused.
    pub allow_priority_fallback: bool,
    /// A connected client may connect again to change its QoS; else it gets AlreadyConnected, as TAO's default is.
    pub reconnect: bool,
    /// A client that disconnects is called back, as at the end of the channel.
    pub disconnect_callbacks: bool,
    /// Where the priorities of RT_Infos come from, and where connects are admitted. The dispatching has
    /// [its lanes](Scheduling::lanes).
    pub scheduling: Option<Scheduling>,
    /// Percent of the places for consumers, suppliers and waiting proxies that one peer may hold, 1 to 100. A peer is
    /// an address, or a user of this host over unix sockets and shared memory. Beyond its share it gets IMP_LIMIT.
    pub share_percent: u8,
    /// Who may use the channel; everybody without it. Each header that a consumer subscribes to must be permitted, each
    /// that a supplier publishes, and that of each event.
    pub access: Option<Access>,
}

impl Default for RtChannelOptions {
    fn default() -> Self {
        Self {
            queue_len: limits::QUEUE_LEN_DEFAULT,
            when_full: WhenFull::default(),
            size_max: limits::channel_size_default(),
            dispatching: Dispatching::default(),
            allow_priority_fallback: false,
            reconnect: false,
            disconnect_callbacks: false,
            scheduling: None,
            share_percent: limits::SHARE_PERCENT_DEFAULT,
            access: None,
        }
    }
}
