//! One message at one destination: its stamps, and the result of judging it.

/// No stamp was taken.
pub const NO_STAMP: i64 = i64::MIN;

/// One message at one destination. Stamps are nanoseconds of CLOCK_MONOTONIC, [`NO_STAMP`] if none was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index of the flow (over one carrier) in the result document.
    pub flow: u16,
    /// Index of the destination within the flow.
    pub destination: u16,
    /// Sequence number, from 0.
    pub sequence: u64,
    /// The due time by the schedule.
    pub due_ns: i64,
    /// When the supplier began to send the message.
    pub sent_ns: i64,
    /// When the send call returned (for a two-way call: with the reply).
    pub returned_ns: i64,
    /// Two-way calls only: the stamp of the reply as it leaves the consumer's host (for `event`: of the reply to the
    /// channel).
    pub reply_transmit_ns: i64,
    /// Two-way calls only: the kernel's receive stamp of the reply at the supplier's host (for `event`: at the
    /// channel's host).
    pub reply_receive_ns: i64,
    /// `event` only: the kernel's receive stamp of the channel's reply to the supplier.
    pub channel_reply_ns: i64,
    /// `event` only: the kernel's receive stamp at the channel's host.
    pub channel_receive_ns: i64,
    /// `event` only: the kernel's transmit stamp of the channel's own message to this consumer.
    pub channel_transmit_ns: i64,
    /// The kernel's transmit stamp at the supplier, in front of the interface's queue (for `event`: of the hop to the
    /// channel).
    pub kernel_transmit_ns: i64,
    /// The kernel's receive stamp at the consumer's host.
    pub kernel_receive_ns: i64,
    /// When the consumer's code received the message.
    pub received_ns: i64,
    /// When the consumer finished handling the message.
    pub handled_ns: i64,
    /// Processor time of handling it, nanoseconds; [`NO_STAMP`] if it was not measured.
    pub execution_ns: i64,
    /// The marks from judging.
    pub flags: SampleFlags,
    /// The blamed layer, if the message is late.
    pub blame: Option<Layer>,
}

impl Sample {
    /// A message of which nothing is known.
    pub const NONE: Self = Self {
        flow: 0,
        destination: 0,
        sequence: 0,
        due_ns: NO_STAMP,
        sent_ns: NO_STAMP,
        returned_ns: NO_STAMP,
        reply_transmit_ns: NO_STAMP,
        reply_receive_ns: NO_STAMP,
        channel_reply_ns: NO_STAMP,
        channel_receive_ns: NO_STAMP,
        channel_transmit_ns: NO_STAMP,
        kernel_transmit_ns: NO_STAMP,
        kernel_receive_ns: NO_STAMP,
        received_ns: NO_STAMP,
        handled_ns: NO_STAMP,
        execution_ns: NO_STAMP,
        flags: SampleFlags {
            warm_up: false,
            clock_step: false,
            waited_for_room: false,
            late: false,
            lost: false,
            late_by_inter_arrival: false,
            out_of_order: false,
            duplicates: 0,
        },
        blame: None,
    };
}

/// The marks of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleFlags {
    /// Part of the warm-up, so not judged.
    pub warm_up: bool,
    /// The system's clock was set while the message was under way, so that it has no stamps of the kernel.
    pub clock_step: bool,
    /// The send call waited for room in the send buffer.
    pub waited_for_room: bool,
    /// Received more than the deadline after due, or lost.
    pub late: bool,
    /// Not received within the drain.
    pub lost: bool,
    /// The gap to the arrival before was greater than period plus deadline.
    pub late_by_inter_arrival: bool,
    /// Arrived after a message with a higher sequence number.
    pub out_of_order: bool,
    /// Number of copies after the first.
    pub duplicates: u8,
}

/// The layers in which a late message can lose time, in order of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Layer {
    /// Between due and the send call, by the supplier's own fault (not awake, or stopped).
    Sender = 0,
    /// Between the send call and the kernel's transmit stamp in a carrier that has a middleware.
    Middleware = 1,
    /// Between the send call and the kernel's transmit stamp in a raw carrier.
    Stack = 2,
    /// Between the kernel stamps of the two ends; the supplier's is in front of its interface's queue.
    Network = 3,
    /// In the event channel: from the receive stamp at its host to the transmit stamp of its own message.
    Channel = 4,
    /// Between the kernel's receive stamp and the consumer's code, while the consumer handles no message.
    WakeUp = 5,
    /// The part of that time in which the consumer was still handling an earlier message.
    Application = 6,
    /// Time that the stamps do not divide between layers.
    Unknown = 7,
}

impl Layer {
    /// All layers, in order of the path.
    pub const ALL: [Self; 8] = [
        Self::Sender,
        Self::Middleware,
        Self::Stack,
        Self::Network,
        Self::Channel,
        Self::WakeUp,
        Self::Application,
        Self::Unknown,
    ];

    /// Returns the layer's name in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Middleware => "middleware",
            Self::Stack => "stack",
            Self::Network => "network",
            Self::Channel => "channel",
            Self::WakeUp => "wake-up",
            Self::Application => "application",
            Self::Unknown => "unknown",
        }
    }
}
