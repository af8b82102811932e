//! What has happened, counted: one number per fact, in an array that outside code may read at any time.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$about:meta])+ $name:ident => $text:literal,)+) => {
        /// A fact that the ORB counts.
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
    /// Accepted connections over which their openers may be asked too.
    ConnectionsBidirectional => "connections_bidirectional",
    /// Times accepting had to rest because descriptors or memory had run out.
    AcceptsExhausted => "accepts_exhausted",
    /// Times the listener had to rest because the lane had all the connections it may have.
    AcceptsRefused => "accepts_refused",
    /// Two-way requests dispatched.
    Requests => "requests",
    /// One-way requests dispatched.
    Oneways => "oneways",
    /// Locate requests answered.
    LocateRequests => "locate_requests",
    /// Cancel requests seen; the reply is sent all the same, as the standard allows.
    CancelRequests => "cancel_requests",
    /// Requests answered with a system exception.
    SystemExceptions => "system_exceptions",
    /// Requests answered so because their values could not be read.
    MalformedRequests => "malformed_requests",
    /// Requests for an object that is not there.
    ObjectsNotExist => "objects_not_exist",
    /// Requests that an adapter's manager turned away.
    RequestsDiscarded => "requests_discarded",
    /// Requests not given to a servant because their end time, or that of their reply, had passed when they came.
    RequestsDropped => "requests_dropped",
    /// Requests whose start and end times were not looked at because the bound of this host's clock is not known.
    TimesIgnored => "times_ignored",
    /// Servants that panicked.
    ServantPanics => "servant_panics",
    /// Messages that broke GIOP: bad magic, header, type or direction.
    ProtocolErrors => "protocol_errors",
    /// Fragments that belong to no message, or not to the one they name.
    BadFragments => "bad_fragments",
    /// Messages of a GIOP version that is not known here.
    UnknownVersions => "unknown_versions",
    /// Messages larger than the limit.
    MessagesTooLarge => "messages_too_large",
    /// Connections closed because unfinished messages held all the memory they may.
    InboundExhausted => "inbound_exhausted",
    /// Connections closed because a message took too long to arrive.
    ArrivalsTimedOut => "arrivals_timed_out",
    /// Connections that ended within a message.
    TruncatedMessages => "truncated_messages",
    /// Message errors received.
    MessageErrorsReceived => "message_errors_received",
    /// Replies that could not be written: the peer has gone.
    RepliesLost => "replies_lost",
    /// Times a peer did not read, so that a reply to it had to wait.
    RepliesQueued => "replies_queued",
    /// Connections closed because the peer took nothing of its replies for too long.
    RepliesTimedOut => "replies_timed_out",
    /// Connections closed because replies that wait held all the memory they may.
    OutboundExhausted => "outbound_exhausted",
    /// Connections closed because they brought nothing for too long.
    ConnectionsIdle => "connections_idle",
    /// Idle connections closed to make room for another.
    ConnectionsEvicted => "connections_evicted",
    /// Threads added to a lane.
    ThreadsAdded => "threads_added",
    /// Threads that could not be added.
    ThreadsRefused => "threads_refused",
    /// Requests that came before their start, and were put aside until then.
    RequestsEarly => "requests_early",
    /// Requests that were let wait for a thread.
    RequestsBuffered => "requests_buffered",
    /// Requests refused because all threads of their lane served and its buffers were full.
    RequestsRefused => "requests_refused",
    /// Times a thread served a request of a higher lane.
    ThreadsBorrowed => "threads_borrowed",
    /// Times a thread took another priority for a request, and its own again after it.
    PriorityChanges => "priority_changes",
    /// Times a thread kept the priority it had because the host did not permit the one it should have.
    PriorityFallbacks => "priority_fallbacks",
    /// Requests that came by another pool or lane than their object's, and were sent there.
    LanesMissed => "lanes_missed",
    /// Times a thread adopted a connection.
    Adoptions => "adoptions",
    /// Connections watched again because a request of theirs took long.
    AdoptionsRevoked => "adoptions_revoked",
    /// Connections made to servers.
    ConnectionsMade => "connections_made",
    /// Connections to servers that could not be made.
    ConnectFailures => "connect_failures",
    /// Requests sent.
    RequestsSent => "requests_sent",
    /// Calls of objects of this very ORB, served by the thread that made them.
    CollocatedCalls => "collocated_calls",
    /// One-ways sent.
    OnewaysSent => "oneways_sent",
    /// One-ways with SYNC_NONE that could not be sent, or had no room to wait in.
    OnewaysLost => "oneways_lost",
    /// Reply handlers of asynchronous calls that raised or panicked.
    CallbacksFailed => "callbacks_failed",
    /// Calls interrupted at their deadline.
    Timeouts => "timeouts",
    /// Requests not sent because their end time had passed.
    RequestsPastEnd => "requests_past_end",
    /// Cancel requests sent for calls that were given up.
    CancelsSent => "cancels_sent",
    /// Replies to calls that had been given up.
    LateReplies => "late_replies",
    /// Calls begun again on a fresh connection because the cached one had been closed.
    StaleConnections => "stale_connections",
    /// Requests made again because the server wants the object named by its profile or its reference.
    Readdressings => "readdressings",
    /// Connections to servers closed because they were unused for too long, or the server had closed them.
    ClientConnectionsIdle => "client_connections_idle",
    /// Location forwards followed.
    Forwards => "forwards",
    /// Calls that failed because the connection broke.
    CommFailures => "comm_failures",
    /// Replies that answered no request of ours.
    RepliesToNobody => "replies_to_nobody",
    /// Replies that could not be understood.
    MalformedReplies => "malformed_replies",
}

const COUNT: usize = Counter::ALL.len();

/// The counters of one ORB.
pub struct Counters([AtomicU64; COUNT]);

/// The values of all counters at about one time.
pub type Snapshot = [(Counter, u64); COUNT];

impl Counters {
    /// All at zero.
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

    /// The values of all.
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
