//! All limits of the event channel, with their reasons.

use std::time::Duration;

/// Consumers of one channel. An idle one takes less than 4 KiB and no thread.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code CONSUMER_SHARE_FULL | test:
/// crates/event/tests/shares.rs::stranger_that_takes_its_share_of_places_leaves_others_served,
/// crates/event/tests/realtime/shares.rs::stranger_that_takes_its_share_of_a_channel_leaves_others_served
pub const CONSUMERS_MAX: usize = 16_384;

/// Percent of the places of each kind that one peer may hold: an address, or a user of this host. A stranger that takes
/// its share leaves three quarters to the others. One host may still have 4,096 consumers and 1,024 suppliers.
pub const SHARE_PERCENT_DEFAULT: u8 = 25;

/// Suppliers of one channel; each is an active object of some hundred octets. At this limit, a new supplier replaces
/// one that is gone.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code SUPPLIER_SHARE_FULL | test:
/// crates/event/tests/shares.rs::stranger_that_takes_its_share_of_places_leaves_others_served,
/// crates/event/tests/realtime/shares.rs::suppliers_whose_connection_is_closed_give_way_at_the_share_of_their_peer
pub const SUPPLIERS_MAX: usize = 4_096;

/// Time without a push after which a supplier may be replaced by a new one. A supplier that pushes less often should
/// connect with a reference: the channel then calls it to find out whether it still exists.
pub const SUPPLIER_QUIET_MIN: Duration = Duration::from_secs(60);

/// Suppliers that are called to find out whether they still exist, before a new supplier is refused. Each that does not
/// answer blocks a serving thread for [`SUPPLIER_ASK_TIMEOUT`]: one second in all. At the bound of such calls
/// ([`OUTWARD_MAX`]) nobody is called.
///
/// Share: that of [`OUTWARD_MAX`] | seen: IMP_LIMIT or NO_RESOURCES at once | test:
/// crates/event/tests/typed/outward.rs::quiet_suppliers_are_called_only_with_a_place_of_the_calls_outwards
pub const SUPPLIERS_ASKED_MAX: usize = 4;

/// Time limit of the call that finds out whether a supplier still exists.
pub const SUPPLIER_ASK_TIMEOUT: Duration = Duration::from_millis(250);

/// Proxies of one channel without a connected client. Beyond it the oldest is retired, so that a client that obtains
/// proxies and forgets them does not exhaust the channel. No more clients than this are expected to connect at the same
/// moment.
///
/// Share: a quarter, or `--share-per-peer` | seen: its own oldest proxy is retired | test:
/// crates/event/tests/shares.rs::proxies_that_a_stranger_obtains_do_not_displace_those_of_others
pub const PROXIES_WAITING_MAX: usize = 1_024;

/// Octets of the events queued for one consumer, whatever their number: four of the largest messages that an ORB accepts
/// by default. A quarter of the channel's bound, if that is less.
pub const QUEUE_SIZE_MAX: usize = 64 << 20;

/// Default bound on the octets of all events of one channel that are alive: queued for any consumer, kept in a
/// conjunction, or being written to one. All consumers share an event's octets.
///
/// Share: a quarter for the queue of one consumer | seen: the oldest event goes first, from the queues of the slowest
/// consumers; `displaced` counts it | test:
/// crates/event/tests/slow.rs::events_of_hundreds_of_silent_consumers_stay_within_the_channels_bound,
/// crates/event/tests/slow.rs::events_that_are_written_in_part_are_given_up_at_the_bound
pub const CHANNEL_SIZE_DEFAULT: usize = 256 << 20;

/// The part of the memory that peers may take in this process which is that bound, where it is less than the default.
pub const CHANNEL_MEMORY_SHARE: u64 = 16;

/// The default bound of this process: [`CHANNEL_SIZE_DEFAULT`], or less by its control groups, RLIMIT_AS and the
/// machine.
#[must_use]
pub fn channel_size_default() -> usize {
    channel_size(deckwatch_orb::memory_for_peers())
}

/// The default bound with so many octets of memory; `None` is unlimited.
fn channel_size(memory: Option<u64>) -> usize {
    let part = memory.map_or(u64::MAX, |octets| octets / CHANNEL_MEMORY_SHARE);
    let part = usize::try_from(part).unwrap_or(usize::MAX);
    part.clamp(CHANNEL_SIZE_MIN, CHANNEL_SIZE_DEFAULT)
}

/// The part of that bound that all conjunctions of a channel may take together, and all consumers of one kind that
/// pull: a quarter. They cannot take the room of the consumers that take their events at once.
pub const KEPT_SHARE: usize = 4;

/// The smallest such bound.
pub const CHANNEL_SIZE_MIN: usize = 1 << 20;

/// Time limit of notifying one client that it has left, or that the channel ends. A separate thread notifies the clients
/// of a peer, one after the other.
pub const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);

/// Peers whose clients one channel calls back at the same time because they disconnect, each peer by one thread. Clients
/// of one peer more are not called back: they have left by themselves.
///
/// Share: one, and [`FAREWELLS_QUEUED_MAX`] clients that wait for it | seen: nothing, its clients are not called back |
/// test: crates/event/tests/realtime/shares.rs::suppliers_that_leave_slowly_hold_few_threads,
/// crates/event/tests/shares.rs::clients_that_leave_slowly_hold_no_serving_thread
pub const FAREWELLS_MAX: usize = 16;

/// Clients of one peer that wait to be called back: a program with some hundred consumers that ends.
pub const FAREWELLS_QUEUED_MAX: usize = 256;

/// Default number of events queued for one consumer: 12 s of a 20 Hz flow. Beyond it the oldest is dropped. All queues
/// share the octets of an event; [`QUEUE_SIZE_MAX`] also limits the octets of each queue.
pub const QUEUE_LEN_DEFAULT: usize = 256;

/// The longest queue that the options may request.
pub const QUEUE_LEN_MAX: usize = 65_536;

/// The most pushes to one consumer that the options may have under way: their octets stay alive until the replies, and
/// a round trip of 1 ms still has 256,000 events a second.
pub const WINDOW_MAX: u16 = 256;

/// Pushes in a row that may fail before a consumer is removed, and calls in a row that a supplier may leave unanswered
/// before it is replaced. A client survives one lost connection and the refusal that follows it. A dead consumer is
/// removed within a few periods.
pub const FAILURES_MAX: u32 = 3;

/// Time between two questions to a consumer of a real-time channel whether it still exists. Its pushes have no replies:
/// without a question, a consumer whose process lives is never missed, and an idle one that died keeps its place.
pub const CONSUMER_ASK_PERIOD: Duration = Duration::from_secs(30);

/// Default time limit of one push to a consumer. A consumer that was stopped for some seconds is still served; one that
/// never answers delays its own events only.
pub const PUSH_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Entries of one consumer's filter. The largest that an application is known to use has some hundred.
///
/// Share: each consumer | seen: BAD_PARAM | test:
/// crates/event/src/filter/tests.rs::hostile_lists_end_in_an_error_or_in_bounded_work
pub const FILTER_ENTRIES_MAX: usize = 1_024;

/// Entries of all filters of one real-time channel: sixteen for each consumer. An entry takes some 100 octets.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code CONSUMER_SHARE_FULL | test:
/// crates/event/tests/realtime/shares.rs::stranger_that_takes_its_share_of_filters_leaves_others_served
pub const CHANNEL_ENTRIES_MAX: usize = 16 * CONSUMERS_MAX;

/// Publications of one supplier: a gateway publishes what an observer is told.
///
/// Share: each supplier | seen: BAD_PARAM | test:
/// crates/event/tests/realtime/connections.rs::malformed_filter_nil_too_many_publications_and_the_channels_own_proxy_are_refused
pub const PUBLICATIONS_MAX: usize = OBSERVED_HEADERS_MAX;

/// Publications of all suppliers of one real-time channel: 64 for each. A publication takes some 100 octets.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code SUPPLIER_SHARE_FULL | test:
/// crates/event/tests/realtime/shares.rs::stranger_that_takes_its_share_of_filters_leaves_others_served
pub const CHANNEL_PUBLICATIONS_MAX: usize = 64 * SUPPLIERS_MAX;

/// Nesting of one filter. It bounds the recursion of a match.
///
/// Share: each consumer | seen: BAD_PARAM | test:
/// crates/event/src/filter/tests.rs::hostile_lists_end_in_an_error_or_in_bounded_work
pub const FILTER_NESTING_MAX: usize = 32;

/// Timeouts of one filter. Each may wake the channel every [`TIMEOUT_MIN`].
///
/// Share: each consumer | seen: BAD_PARAM | test:
/// crates/event/src/filter/tests.rs::hostile_lists_end_in_an_error_or_in_bounded_work
pub const FILTER_TIMERS_MAX: usize = 64;

/// Timeouts that repeat, of all filters of one real-time channel in a second: those of one filter with
/// [`FILTER_TIMERS_MAX`] of the shortest. A thread with the priority of the most urgent lane fires them.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code CONSUMER_SHARE_FULL | test:
/// crates/event/tests/realtime/shares.rs::stranger_that_takes_its_share_of_filters_leaves_others_served
pub const CHANNEL_TIMEOUT_RATE_MAX: usize = FILTER_TIMERS_MAX * 1_000;

/// The shortest timeout that repeats: a consumer cannot make the channel push more than 1,000 timeouts a second with
/// each.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// Consumers of one channel that pull; each has a queue. At this limit a new one replaces the one that has been quiet
/// longest.
///
/// Share: a quarter, or `--share-per-peer` | seen: its own quiet consumer gives way, or IMP_LIMIT | test:
/// crates/event/tests/shares.rs::quiet_clients_of_a_peer_at_its_share_give_way_to_others_of_that_peer
pub const PULLERS_MAX: usize = 512;

/// Time without a call after which a consumer that pulls may be replaced by a new one: the reason of
/// [`SUPPLIER_QUIET_MIN`].
pub const PULLER_QUIET_MIN: Duration = Duration::from_secs(60);

/// `pull` calls that may wait for an event at the same time, in all channels that share an ORB. Each occupies a serving
/// thread: this is half of the threads that a lane has by default. Beyond it `pull` raises TRANSIENT; `try_pull` is
/// always served.
///
/// Share: a half ([`PULLS_WAITING_SHARE`]) | seen: TRANSIENT for `pull`, not for `try_pull` | test:
/// crates/event/src/cos/pullers.rs::waiting_pulls_of_one_peer_leave_room_for_those_of_others
pub const PULLS_WAITING_MAX: usize = 16;

/// As many of them may be of one peer.
pub const PULLS_WAITING_SHARE: usize = 8;

/// Calls of clients that serving threads make and wait for, in all channels that share an ORB: those that ask a typed
/// client for its object, and those that find out whether a supplier still exists. A quarter of the threads that a lane
/// has by default: with [`PULLS_WAITING_MAX`] pulls, another quarter remains. A connect beyond it raises TRANSIENT at
/// once.
///
/// Share: a half ([`OUTWARD_SHARE`]) | seen: TRANSIENT with the minor code OUTWARD_SHARE_FULL | test:
/// crates/event/tests/typed/outward.rs::peers_hold_their_share_of_calls_to_silent_clients_and_all_others_are_served
pub const OUTWARD_MAX: usize = 8;

/// As many of them may be for one peer.
pub const OUTWARD_SHARE: usize = 4;

/// Longest time that `pull` waits for an event; TRANSIENT after it. Bounds how long a consumer that has died keeps a
/// serving thread.
pub const PULL_WAIT: Duration = Duration::from_secs(30);

/// Interval at which a waiting `pull` checks whether the ORB shuts down: far below the time that a shutdown waits.
pub const PULL_SLICE: Duration = Duration::from_millis(250);

/// Suppliers of one channel that it pulls from: a quarter of the asynchronous calls that an ORB may have under way.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code SUPPLIER_SHARE_FULL | test:
/// crates/event/tests/shares.rs::stranger_that_takes_its_share_of_places_leaves_others_served
pub const SOURCES_MAX: usize = 1_024;

/// Default time between two `try_pull` calls to a supplier that had no event. It bounds the age of an event that the
/// channel pulls, and costs ten small calls per second and supplier.
pub const PULL_PERIOD_DEFAULT: Duration = Duration::from_millis(100);

/// The longest period that the options may request.
pub const PULL_PERIOD_MAX: Duration = Duration::from_secs(3_600);

/// Events that one supplier may return in one period. A supplier that always has an event does not take all of the
/// channel: 160 events per second with the default period.
pub const SOURCE_BURST_MAX: u32 = 16;

/// Time limit of one `try_pull` call to a supplier. One thread connects to all suppliers. A host that does not answer
/// delays the others by this time, at most [`FAILURES_MAX`] times before the supplier is removed.
pub const SOURCE_TIMEOUT: Duration = Duration::from_secs(1);

/// Interfaces of one typed channel, and operations of one of them. A consumer that pulls has a queue for each operation.
pub const INTERFACES_MAX: usize = 64;

/// See [`INTERFACES_MAX`].
pub const OPERATIONS_MAX: usize = 64;

/// The part of a typed channel's bound on octets that the queue of one push consumer may take: with the call under way
/// and a new event it stays below a quarter.
pub const TYPED_QUEUE_SHARE: usize = 8;

/// Push consumers of one typed channel. Each has a queue and two outlets.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code CONSUMER_SHARE_FULL | test:
/// crates/event/tests/typed/refusals.rs::stranger_that_takes_its_share_of_typed_consumers_leaves_others_served
pub const TYPED_CONSUMERS_MAX: usize = 512;

/// Channels of one factory that clients have not destroyed. Each has some objects, and threads once consumers connect.
///
/// Share: all, but without an access table only this host and the own user may create one | seen: NO_RESOURCES, or
/// NO_PERMISSION | test: crates/event/tests/factory.rs::channels_of_a_factory_are_bounded
pub const CHANNELS_MAX: usize = 64;

/// Lanes of one channel: more priorities than that are not told apart on a ship.
pub const DISPATCH_LANES_MAX: usize = 64;

/// Dispatching threads of one channel.
pub const DISPATCH_THREADS_MAX: usize = 256;

/// Places of one dispatching queue; all are allocated when the channel starts.
pub const DISPATCH_QUEUE_MAX: usize = 65_536;

/// Observers of one real-time channel. One thread calls them in turn.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code CONSUMER_SHARE_FULL | test:
/// crates/event/tests/realtime/shares.rs::stranger_that_takes_its_share_of_observers_leaves_others_served
pub const OBSERVERS_MAX: usize = 64;

/// Time limit of one call to an observer. An observer that does not answer delays the others by that.
pub const OBSERVER_TIMEOUT: Duration = Duration::from_secs(1);

/// Headers that an observer is told. Beyond it observers are told that anything is wanted or published: a gateway then
/// forwards more than is needed, never less.
pub const OBSERVED_HEADERS_MAX: usize = 4_096;

/// The highest `ttl` with which an event leaves for another channel: longer than any chain of channels, and the bound on
/// the rounds of an event in a circle.
pub const TTL_MAX: i32 = 64;

/// Members of a group of channels: a primary and backups. A push waits for the slowest backup.
pub const GROUP_MEMBERS_MAX: usize = 8;

/// Time limit of a call between members. A backup that does not answer two calls is left out: it delays one push by
/// twice this.
pub const BACKUP_TIMEOUT: Duration = Duration::from_millis(500);

/// How long the primary lets a backup wait before it answers that it still lives.
pub const WATCH_PERIOD: Duration = Duration::from_millis(50);

/// Time without an answer of the primary after which a backup takes over: two calls. A primary whose connection is
/// closed is replaced at once.
pub const TAKE_OVER_AFTER: Duration = Duration::from_secs(1);

/// Time after which a primary with missing backups asks for a rival again, before it acknowledges a push. Below
/// [`TAKE_OVER_AFTER`] minus [`WATCH_PERIOD`]: a primary that did not run for so long asks first.
pub const LEASE: Duration = Duration::from_millis(800);

/// How long a former primary still delivers what its consumers have not taken.
pub const LAST_DELIVERIES: Duration = Duration::from_secs(2);

/// Interval at which a member asks the others while it waits for one of them to become the primary.
pub const STANDING_PERIOD: Duration = Duration::from_millis(10);

/// Interval at which a new primary looks whether the other backups have joined it.
pub const JOIN_PERIOD: Duration = Duration::from_millis(1);

/// Octets of the pushes that are kept until they are delivered.
pub const KEPT_SIZE_MAX: usize = 64 << 20;

/// Consumers in one report of a channel's state, those with the longest queues: more say nothing new about what is slow.
pub const CONSUMERS_REPORTED_MAX: usize = 64;

/// Channels whose events one channel tells apart, by the identity that they gave them. At the limit the one that was
/// quiet longest is forgotten: 132 KiB in all.
///
/// Share: all, but a peer has to be allowed to supply events | seen: nothing, an event that comes by two ways may be
/// delivered twice | test:
/// crates/event/src/rt/hop.rs::origins_are_bounded_and_the_one_that_was_quiet_longest_is_forgotten
pub const ORIGINS_MAX: usize = 256;

/// Events of one channel that are told apart, back from the latest: more than are under way at once by ways of
/// different length. An older one counts as doubled.
pub const ORIGIN_WINDOW: u64 = 4_096;

/// Time limit of each call that a gateway makes, and of each connect. No event waits for it.
pub const GATEWAY_TIMEOUT: Duration = Duration::from_secs(5);

/// Default interval at which a gateway asks its remote channel whether it still has the connection.
pub const GATEWAY_PERIOD_DEFAULT: Duration = Duration::from_secs(1);

/// A gateway that cannot connect tries again after this time, then after twice as long each time.
pub const GATEWAY_RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest time between two attempts: what a remote channel that is back waits at most.
pub const GATEWAY_RETRY_MAX: Duration = Duration::from_secs(5);

/// Octets of one datagram to a multicast group: what fits into an Ethernet frame behind the headers of IP and UDP.
pub const MULTICAST_DATAGRAM_SIZE: usize = 1_472;

/// Octets of one request to or from a multicast group: the largest message that an ORB accepts by default.
pub const MULTICAST_REQUEST_SIZE_MAX: u32 = 16 << 20;

/// Fragments of one request: of the largest in fragments of 256 octets.
pub const MULTICAST_FRAGMENTS_MAX: u32 = 65_536;

/// Senders to a multicast group that are told apart, by address and port. Each takes some 600 octets.
///
/// Share: a quarter ([`MULTICAST_SENDERS_SHARE`]), by the address that its datagrams name | seen: its own sender that
/// was quiet longest is forgotten | test:
/// crates/event/src/federation/reassembly/tests.rs::senders_of_one_address_leave_room_for_those_of_others
pub const MULTICAST_SENDERS_MAX: usize = 256;

/// As many of them may have one address.
pub const MULTICAST_SENDERS_SHARE: usize = MULTICAST_SENDERS_MAX / 4;

/// Requests of one sender of which fragments are missing. A sender sends one after the other.
///
/// Share: each sender | seen: its own oldest request is given up | test:
/// crates/event/src/federation/reassembly/tests.rs::requests_senders_and_octets_are_bounded
pub const MULTICAST_PENDING_MAX: usize = 16;

/// Octets of all requests of which fragments are missing: four of the largest.
///
/// Share: as much as is free; at the bound the address with the most octets loses its oldest request | seen: its own
/// oldest request is given up | test:
/// crates/event/src/federation/reassembly/tests.rs::senders_of_one_address_leave_room_for_those_of_others
pub const MULTICAST_PENDING_SIZE_MAX: usize = 64 << 20;

/// Time after which a request is given up whose fragments have not all come.
pub const MULTICAST_TIMEOUT: Duration = Duration::from_secs(1);

/// Time after which a sender that sent nothing is forgotten: a new one with its address may count from 0.
pub const MULTICAST_QUIET: Duration = Duration::from_secs(10);

/// Datagrams of one request that are sent without a pause: a third of the smallest receive buffer that is common.
pub const MULTICAST_BURST: u32 = 32;

/// The pause behind each [`MULTICAST_BURST`]: a request leaves with 90 MB/s at most.
pub const MULTICAST_PAUSE: Duration = Duration::from_micros(500);

/// Requested size of the receive buffer; the host may allow less.
pub const MULTICAST_BUFFER_SIZE: u32 = 8 << 20;

/// How long a datagram may wait for room in the send buffer. The rest of its request is then not sent.
pub const MULTICAST_SEND_TIMEOUT: Duration = Duration::from_millis(100);

/// How often the receiving thread looks for requests to give up, and for its end.
pub const MULTICAST_TURN: Duration = Duration::from_millis(100);

/// Pairs of a consumer and a supplier whose RT_Infos depend on each other, in one channel: 256 of each. Beyond it a
/// client that names RT_Infos is refused. A pair counts for the client that connects later.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code CONSUMER_SHARE_FULL | test:
/// crates/event/tests/realtime/scheduled.rs::stranger_that_takes_its_share_of_dependencies_leaves_others_served
pub const ADMITTED_PAIRS_MAX: usize = 65_536;

/// Refused connects that are kept in words for the operator. All are counted.
pub const UNADMITTED_KEPT_MAX: usize = 64;

/// Analyses of one scheduling service that are under way or wait for their turn, each in a serving thread. One is made
/// at a time: it takes a processor for up to a second. A request beyond it raises TRANSIENT at once.
///
/// Share: a quarter ([`SCHEDULER_ANALYSES_SHARE`]) | seen: TRANSIENT with the minor code ANALYSES_FULL | test:
/// crates/event/src/scheduler/shares.rs::analyses_of_one_peer_leave_room_for_those_of_others
pub const SCHEDULER_ANALYSES_MAX: usize = 8;

/// As many of them may be for one peer.
pub const SCHEDULER_ANALYSES_SHARE: usize = 2;

/// Times that a change of a scheduling service is examined anew because another client has changed the operations
/// meanwhile. Each examination may take a second.
pub const SCHEDULER_ATTEMPTS_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_bound_of_a_channel_is_its_share_of_the_memory() {
        let share = CHANNEL_SIZE_DEFAULT / 2;
        let memory = share as u64 * CHANNEL_MEMORY_SHARE;
        assert_eq!(channel_size(Some(memory)), share);
        assert_eq!(channel_size(Some(0)), CHANNEL_SIZE_MIN);
        assert_eq!(channel_size(Some(u64::MAX)), CHANNEL_SIZE_DEFAULT);
        assert_eq!(channel_size(None), CHANNEL_SIZE_DEFAULT);
    }
}
