//! The counters of an ORB: one number for each kind of event, readable at any time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$about:meta])+ $name:ident => $text:literal,)+) => {
        /// An event that the ORB counts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(usize)]
        #[non_exhaustive]
        pub enum Counter { $($(#[$about])+ $name,)+ }

        impl Counter {
            /// Every counter, in the order of [`Snapshot`].
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Its name in results and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

counters! {
    /// Connections accepted.
    ConnectionsAccepted => "connections_accepted",
    /// Accepted connections that have closed, for whatever reason.
    ConnectionsClosed => "connections_closed",
    /// Accepted connections that have become bidirectional.
    ConnectionsBidirectional => "connections_bidirectional",
    /// Times accepting was suspended for want of descriptors or memory.
    AcceptsExhausted => "accepts_exhausted",
    /// Times accepting was suspended because the lane had its limit of connections.
    AcceptsRefused => "accepts_refused",
    /// Connections closed at once because their peer had its share of the connections.
    ConnectionsRefused => "connections_refused",
    /// Two-way requests dispatched.
    Requests => "requests",
    /// One-way requests dispatched.
    Oneways => "oneways",
    /// Locate requests answered.
    LocateRequests => "locate_requests",
    /// Cancel requests received. The reply is sent nevertheless, as the standard permits.
    CancelRequests => "cancel_requests",
    /// Requests answered with a system exception.
    SystemExceptions => "system_exceptions",
    /// Requests answered with a system exception because their values could not be read.
    MalformedRequests => "malformed_requests",
    /// Requests for an object that does not exist.
    ObjectsNotExist => "objects_not_exist",
    /// Requests that a POA manager refused.
    RequestsDiscarded => "requests_discarded",
    /// Requests dropped because their end time, or that of their reply, had passed.
    RequestsDropped => "requests_dropped",
    /// Requests whose start and end times were ignored because the error bound of the local clock is not known.
    TimesIgnored => "times_ignored",
    /// Servants that panicked.
    ServantPanics => "servant_panics",
    /// Messages that broke GIOP: bad magic, header, type or direction.
    ProtocolErrors => "protocol_errors",
    /// Fragments that belong to no message, or not to the one they name.
    BadFragments => "bad_fragments",
    /// Messages of an unknown GIOP version.
    UnknownVersions => "unknown_versions",
    /// Messages larger than the limit.
    MessagesTooLarge => "messages_too_large",
    /// Connections closed because unfinished messages had reached their memory limit.
    InboundExhausted => "inbound_exhausted",
    /// Connections closed because a message took too long to arrive.
    ArrivalsTimedOut => "arrivals_timed_out",
    /// Connections that ended within a message.
    TruncatedMessages => "truncated_messages",
    /// Message errors received.
    MessageErrorsReceived => "message_errors_received",
    /// Replies that could not be written because the connection was lost.
    RepliesLost => "replies_lost",
    /// Times a reply was queued because the peer did not read.
    RepliesQueued => "replies_queued",
    /// Connections closed because the peer did not read its replies for too long.
    RepliesTimedOut => "replies_timed_out",
    /// Connections closed because queued replies had reached their memory limit.
    OutboundExhausted => "outbound_exhausted",
    /// Connections closed because they were idle for too long.
    ConnectionsIdle => "connections_idle",
    /// Connections closed to accept another one: idle ones, and such that brought no whole message in time.
    ConnectionsEvicted => "connections_evicted",
    /// Threads added to a lane.
    ThreadsAdded => "threads_added",
    /// Threads that could not be added.
    ThreadsRefused => "threads_refused",
    /// Requests that arrived before their start time and were queued until then.
    RequestsEarly => "requests_early",
    /// Requests that were queued for a thread.
    RequestsBuffered => "requests_buffered",
    /// Requests refused because all threads of their lane were busy and its queue was full.
    RequestsRefused => "requests_refused",
    /// Times a thread served a request of a higher lane.
    ThreadsBorrowed => "threads_borrowed",
    /// Times a thread changed its priority for one request.
    PriorityChanges => "priority_changes",
    /// Times a thread kept its priority because the host did not permit another one.
    PriorityFallbacks => "priority_fallbacks",
    /// Requests that arrived at another pool or lane than that of their object, and were forwarded.
    LanesMissed => "lanes_missed",
    /// Times a thread adopted a connection.
    Adoptions => "adoptions",
    /// Adopted connections returned to the poller because a request took long.
    AdoptionsRevoked => "adoptions_revoked",
    /// Connections made to servers.
    ConnectionsMade => "connections_made",
    /// Connections to servers that could not be made.
    ConnectFailures => "connect_failures",
    /// Requests sent.
    RequestsSent => "requests_sent",
    /// Collocated calls: served by the calling thread.
    CollocatedCalls => "collocated_calls",
    /// One-ways sent.
    OnewaysSent => "oneways_sent",
    /// One-ways with SYNC_NONE that could not be sent or queued.
    OnewaysLost => "oneways_lost",
    /// Reply handlers of asynchronous calls that raised or panicked.
    CallbacksFailed => "callbacks_failed",
    /// Calls interrupted at their deadline.
    Timeouts => "timeouts",
    /// Requests not sent because their end time had passed.
    RequestsPastEnd => "requests_past_end",
    /// Cancel requests sent for abandoned calls.
    CancelsSent => "cancels_sent",
    /// Replies to abandoned calls.
    LateReplies => "late_replies",
    /// Calls repeated over a new connection because the cached one had been closed.
    StaleConnections => "stale_connections",
    /// Requests repeated because the server asked for another form of the object's address.
    Readdressings => "readdressings",
    /// Connections to servers closed because they were idle for too long, or because the server had closed them.
    ClientConnectionsIdle => "client_connections_idle",
    /// Location forwards followed.
    Forwards => "forwards",
    /// Calls that failed because the connection broke.
    CommFailures => "comm_failures",
    /// Replies without a request of this ORB.
    RepliesToNobody => "replies_to_nobody",
    /// Replies that could not be understood.
    MalformedReplies => "malformed_replies",
}

const COUNT: usize = Counter::ALL.len();

/// The counters of one ORB.
pub struct Counters([AtomicU64; COUNT]);

/// The values of all counters, read one after the other.
pub type Snapshot = [(Counter, u64); COUNT];

impl Counters {
    /// New counters at zero.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; COUNT])
    }

    /// Counts one `counter`.
    pub fn count(&self, counter: Counter) {
        self.0[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The value of one counter.
    #[must_use]
    pub fn read(&self, counter: Counter) -> u64 {
        self.0[counter as usize].load(Ordering::Relaxed)
    }

    /// The values of all counters.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        std::array::from_fn(|index| (Counter::ALL[index], self.read(Counter::ALL[index])))
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.snapshot().into_iter().filter(|(_, value)| *value != 0);
        f.debug_map()
            .entries(counted.map(|(counter, value)| (counter.name(), value)))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_own_place_and_name() {
        let counters = Counters::new();
        for counter in Counter::ALL {
            counters.count(*counter);
        }
        assert!(counters.snapshot().iter().all(|(_, value)| *value == 1));
        let names: std::collections::HashSet<_> =
            Counter::ALL.iter().map(|counter| counter.name()).collect();
        assert_eq!(names.len(), Counter::ALL.len());
    }
}
