//! Every bound of the ORB, with its reason.

use std::time::Duration;

/// Octets that a read requests at first, and the initial size of a buffer: a message of a mission system fits.
pub const BUFFER_SIZE: usize = 16 << 10;

/// When the slab takes back a larger buffer, it returns the memory beyond this size to the allocator. Buffers for
/// messages of 64 KiB with their headers stay as they are.
pub const BUFFER_RETAINED_MAX: usize = 128 << 10;

/// Read and write buffers, together, that a lane or the calling side of an ORB keeps. With [`BUFFER_RETAINED_MAX`]: at
/// most 16 MiB.
pub const BUFFERS_MAX: usize = 128;

/// Octets of one GIOP message, whole or reassembled from fragments, unless the builder sets another value.
///
/// Share: each message | seen: MessageError, and the end of the connection | test:
/// crates/orb/src/connection/inbound/tests.rs::a_header_that_claims_much_costs_nothing_and_one_that_claims_too_much_is_a_fault
pub const MESSAGE_SIZE_MAX: usize = 16 << 20;

/// Messages of the largest size that the memory of the process has room for: two for each thread of a lane. A process
/// that may have less than a gibibyte gets a lower [`MESSAGE_SIZE_MAX`].
pub const MEMORY_MESSAGES: usize = 64;

/// The part of that memory that unfinished messages may take, unread replies, and the first buffers of connections that
/// wait for the rest of a message: an eighth each.
pub const MEMORY_SHARES: usize = 8;

/// Octets of memory that a program takes itself, before a peer has sent anything: a quarter more than `deckwatch names
/// serve` was seen to take.
pub const PROGRAM_SIZE: u64 = 40 << 20;

/// Octets of addresses that a thread takes: its stack, the guard page, and the stack of its signal handlers.
pub const THREAD_SIZE: u64 = (2 << 20) + (64 << 10);

/// Smallest fragment size that the builder accepts. Smaller fragments would be mostly headers, and a packet carries
/// more.
pub const FRAGMENT_SIZE_MIN: usize = 1024;

/// Octets that the incomplete messages of all connections of a lane hold together beyond their first buffers: sixteen
/// of the largest, unless the builder sets another value. A connection that needs more is closed. So a flood of
/// half-sent messages cannot exhaust the memory of the host.
///
/// Share: as much as is free, so a half for one peer alone | seen: MessageError, and the end of the connection | test:
/// crates/orb/tests/hostile/shares.rs::half_sent_messages_of_one_peer_leave_room_for_those_of_others
pub const INBOUND_SIZE_MAX: usize = 16 * MESSAGE_SIZE_MAX;

/// Longest time between the first and the last octet of a message, unless the builder sets another value. It suffices
/// for the largest message over a link of some megabits. At the limit the connection is closed, because a peer that
/// stops within a message holds memory.
///
/// Share: each message | seen: the end of the connection | test:
/// crates/orb/tests/hostile/messages.rs::a_message_that_never_ends_is_given_up_and_one_that_is_slow_is_not
pub const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval at which a lane checks for messages that exceed this time, while any message is incomplete.
pub const ARRIVAL_SWEEP: Duration = Duration::from_secs(1);

/// Connections that a lane keeps open, unless the builder sets another value. At the limit the connection that has been
/// idle longest, of the peer with most connections, is closed for the next one. If none is idle, the listener pauses.
///
/// Share: as much as is free, so a half for one peer alone | seen: CloseConnection on its connection that has been idle
/// longest; on the new one, if all are busy | test:
/// crates/orb/tests/hostile/shares.rs::connections_of_one_peer_leave_room_for_those_of_others
pub const CONNECTIONS_MAX: usize = 16_384;

/// Connections that a lane may keep open however little memory the process has.
pub const CONNECTIONS_FEW: usize = 64;

/// How long a new connection may be silent before it counts as idle when connections run out. Its first request is on
/// its way, and a client that receives CloseConnection on a new connection gives up.
pub const NEWCOMER_GRACE: Duration = Duration::from_secs(1);

/// Idle time after which a connection is closed for a waiting one when descriptors have run out, perhaps for unrelated
/// reasons. Its client connects again, which takes a descriptor anew. Longer than the usual pause of callers that rely
/// on their connection.
pub const EXHAUSTED_IDLE: Duration = Duration::from_secs(5);

/// How long a connection may bring no whole message, from its start, before it is closed for a new one that needs its
/// place. A client sends its first request at once.
///
/// Share: its own connections | seen: the end of the connection | test:
/// crates/orb/tests/hostile/shares.rs::connection_that_never_brings_a_whole_message_gives_way
pub const GREETING_TIMEOUT: Duration = Duration::from_secs(5);

/// Octets of memory that an idle connection holds, growth of the table by doubling included. Ten thousand hold less
/// than 6 MiB, besides the kernel's memory for their sockets. A test counts it. Each connection starts at a cache line
/// of its own, or threads that serve neighbouring ones would contend for the line. 32 octets are the peer's address.
pub const IDLE_CONNECTION_SIZE_MAX: usize = 608;

/// Connections that may wait to be accepted: all systems of a ship connecting at once.
pub const LISTEN_BACKLOG: i32 = 1_024;

/// Shared-memory connections that may be open in one lane. Each holds a ring per direction, 128 MiB together. A client
/// that is refused uses another address of the reference.
///
/// Share: as much as is free, so a half for one user alone | seen: the end of its connection that has been idle
/// longest; of the new one, if all are busy | test:
/// crates/orb/tests/hostile/shares.rs::silent_connections_through_shared_memory_give_way
pub const SHARED_MEMORY_CONNECTIONS_MAX: usize = 512;

/// Connections that a thread accepts before it handles other events again.
pub const ACCEPTS_PER_TURN_MAX: usize = 16;

/// Octets that one read of a connection takes at most. On kernels without preemption (the server kinds of most
/// distributions) a thread of a higher lane on the same processor waits until the kernel has copied them all: some tens
/// of microseconds. A message of 64 KiB with its header fits.
pub const READ_SIZE_MAX: usize = 128 << 10;

/// Reads of one connection before a thread handles the others again.
pub const READS_PER_TURN_MAX: usize = 8;

/// Threads of a lane, unless the builder sets another value.
pub const LANE_THREADS: usize = 4;

/// Threads that a lane may add to its static ones while all of them serve, unless the builder sets another value.
pub const LANE_THREADS_DYNAMIC_MAX: usize = 28;

/// How long a dynamic thread waits for work before it ends.
pub const DYNAMIC_THREAD_IDLE: Duration = Duration::from_secs(10);

/// How long a thread waits in the read of its adopted connection before it returns the connection to the poller.
/// Applies if only one other thread is in the poller.
pub const ADOPTION_WAIT: Duration = Duration::from_millis(2);

/// As [`ADOPTION_WAIT`], if [`ADOPTION_SPARE`] or more other threads are in the poller. A thread is then still waiting
/// for a call that comes every 10 or 20 ms. Bounds how long the thread is away, and its connection holds a buffer, if
/// suddenly all others serve.
pub const ADOPTION_WAIT_SPARE: Duration = Duration::from_millis(24);

/// Number of threads in the poller from which [`ADOPTION_WAIT_SPARE`] applies.
pub const ADOPTION_SPARE: usize = 2;

/// Events that a thread of a real-time class serves before it yields its processor to threads of its priority, while
/// another thread has adopted a connection. Bounds how many requests that connection waits for on a shared processor.
pub const TURNS_UNTIL_YIELD: u32 = 4;

/// How long a thread spins before it checks whether it is needed elsewhere.
pub const SPIN_SLICE: Duration = Duration::from_millis(2);

/// Interval at which the thread in the poller checks whether a request of an adopted connection takes long. If so, it
/// watches that connection again. Bounds how long a second request of that connection stays unread.
pub const ADOPTION_SWEEP: Duration = Duration::from_millis(10);

/// Requests that must follow each other through the poller, each within [`ADOPTION_WAIT`], before a thread adopts their
/// connection.
pub const ADOPTION_STREAK: u32 = 4;

/// Octets of replies queued for all peers of a lane, unless the builder sets another value: sixteen of the largest. The
/// connection of a peer that exceeds its share is closed.
///
/// Share: as much as is free, so a half for one peer alone | seen: the end of the connection | test:
/// crates/orb/tests/hostile/shares.rs::replies_that_one_peer_does_not_read_leave_room_for_those_of_others
pub const OUTBOUND_SIZE_MAX: usize = 16 * MESSAGE_SIZE_MAX;

/// How long a peer may read none of the replies queued for it, unless the builder sets another value: a link that fails
/// for some seconds recovers within it. At the limit the peer's connection is closed.
///
/// Share: each connection | seen: the end of the connection | test:
/// crates/orb/tests/connections.rs::a_peer_that_takes_nothing_of_its_reply_is_closed
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a caller without a timeout of its own waits to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection to a unix socket or through shared memory may take where the caller must not wait for its peer:
/// a listener of this host accepts at once unless it is stopped or its backlog is full.
pub const LOCAL_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a one-way without a timeout of its own waits to be written to a peer that does not read.
pub const ONEWAY_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a listener pauses after descriptors have run out.
pub const ACCEPT_REST: Duration = Duration::from_millis(50);

/// How long a shutdown waits for requests in progress to finish.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Trace records kept until the trace thread has written them: a burst of some thousand messages, under a megabyte.
pub const TRACE_RECORDS_MAX: usize = 4_096;

/// Requests, calls and connections that the trace remembers, to show which records belong together. At the limit it
/// forgets them all.
pub const TRACE_OPEN_MAX: usize = 16_384;

/// How long a shutdown waits for the trace to be written. A sink that accepts no data must not block the shutdown.
pub const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Services that may pass on one request, each to the next one: a longer way leads in a circle. Each of them keeps a
/// thread of the service before it, so that no more than a peer's share of those may be on one way.
///
/// Share: each request | seen: IMP_LIMIT with the minor code TOO_MANY_HOPS | test:
/// crates/naming/tests/service/outward.rs::name_that_more_services_would_pass_on_than_may_ends_with_an_exception_that_says_so
pub const HOPS_MAX: u8 = 8;

/// How often one service passes on one request. A name may lead back to a service, which then answers for one of its
/// other contexts, or passes the rest on once more. A name that leads back to it again can be shortened by what lies
/// between; a circle ends here before it has cost [`HOPS_MAX`] calls.
///
/// Share: each request | seen: IMP_LIMIT with the minor code TOO_MANY_RETURNS | test:
/// crates/naming/tests/service/outward.rs::circle_through_a_relay_ends_when_the_service_has_passed_the_name_on_twice
pub const PASSES_MAX: usize = 2;

/// Time limit of the calls that a service makes to others for one request of its caller. The caller waits for it, and
/// so does a thread of the service.
pub const OUTWARD_TIMEOUT: Duration = Duration::from_secs(5);

/// When a call that a service makes for its caller fails, if a peer over the network gave the reference: however it
/// fails, it takes so long from its beginning. A little more than [`OUTWARD_TIMEOUT`], so that a silent server does not
/// differ from a closed port.
///
/// Share: each call | seen: CannotProceed, or TRANSIENT with the minor code OUTWARD_FAILED, after this time | test:
/// crates/naming/tests/service/outward.rs::failed_call_for_a_stranger_ends_at_the_same_time_however_it_fails,
/// crates/event/tests/typed/outward.rs::failed_connect_of_a_stranger_ends_at_the_same_time_however_it_fails
pub const OUTWARD_FAILED_AFTER: Duration = Duration::from_millis(5_200);

/// Host names that may be resolved at the same time. The system's resolver knows no deadline, and each resolution
/// occupies a thread. Addresses never wait for it. A name beyond it raises NO_RESOURCES.
pub const RESOLUTIONS_MAX: usize = 16;

/// Host names given by peers that may be resolved at the same time; the rest of [`RESOLUTIONS_MAX`] is for this program.
///
/// Share: a half ([`RESOLUTION_SHARE`]) | seen: NO_RESOURCES for its names, not for addresses | test:
/// crates/orb/src/transport/resolve.rs::names_of_a_peer_leave_room_for_those_of_others_and_of_this_program
pub const RESOLUTIONS_OF_PEERS_MAX: usize = 8;

/// As many of these may be names that one peer gave: its next ones raise NO_RESOURCES.
pub const RESOLUTION_SHARE: usize = 4;

/// How long a name without an address is not asked again.
pub const RESOLUTION_FAILED_FOR: Duration = Duration::from_secs(1);

/// Names in the resolver's table, those that had no address a moment ago included.
pub const RESOLUTIONS_KEPT_MAX: usize = 256;

/// Idle connections kept to one endpoint: as many callers can call it at the same time and each reuse a connection.
pub const IDLE_CONNECTIONS_MAX: usize = 64;

/// One-ways with SYNC_NONE queued for one endpoint: what its thread sends in some milliseconds. Beyond it TRANSIENT is
/// raised: the caller learns at once that the endpoint does not keep up.
pub const QUEUED_ONEWAYS_MAX: usize = 1_024;

/// Octets of the messages of these one-ways, unless a single one is larger.
pub const QUEUED_ONEWAYS_SIZE_MAX: usize = 4 << 20;

/// How long the close of a connection waits for the thread that is writing to it. That thread never blocks, but may
/// have been preempted.
pub(crate) const LAST_WORD_WAIT: Duration = Duration::from_millis(100);

/// Asynchronous calls and deferred requests of one ORB whose replies have not been delivered. Each keeps its arguments,
/// so that it can be sent elsewhere. Beyond it NO_RESOURCES is raised. Of the services, only an event channel makes such
/// calls: one at a time to each supplier that it pulls from.
///
/// Share: none directly, a sixteenth by its share of those suppliers | seen: IMP_LIMIT with the minor code
/// SUPPLIER_SHARE_FULL | test:
/// crates/event/tests/shares.rs::stranger_that_takes_its_share_of_places_leaves_others_served
pub const OUTSTANDING_MAX: u32 = 4_096;

/// Deadlines of ended asynchronous calls that may be noted, beyond twice the number of calls under way. With this
/// margin the search for them costs each call little.
pub(crate) const ENDED_CALLS_FEW: usize = 64;

/// Connections to one endpoint that wait for the late replies of abandoned calls. A server that hangs must not
/// accumulate more.
pub const LATE_CONNECTIONS_MAX: usize = 8;

/// Permanent forwards that replace a reference for good; it treats later ones as temporary.
pub const PERMANENT_FORWARDS_MAX: u8 = 8;

/// How far the coarse clock may lag: one tick of common kernels.
pub(crate) const COARSE_STEP: Duration = Duration::from_millis(4);

/// A connection idle for longer is checked before use, because the server may have closed it. A check is one system
/// call. Calls at 200 Hz or more need none: a server takes longer to end and restart. (A channel of ours with a store
/// is killed, and serves again, within 20 ms.)
pub const STALE_CHECK_AFTER: Duration = Duration::from_millis(10);

/// A connection to a server that no call has used for this long is closed, unless the builder sets another value. The
/// ORB checks for such connections at intervals, during calls to any server.
pub const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Endpoints whose connections an ORB remembers. Beyond it the ORB forgets endpoints that no reference uses. Services
/// bound how many references of one peer they keep.
///
/// Share: none directly, a service bounds the references that it keeps of one peer | seen: nothing, the next call opens
/// a forgotten connection again | test:
/// crates/orb/src/client/bindings.rs::endpoints_without_a_reference_are_forgotten_at_the_limit_and_others_are_not
pub const ENDPOINTS_MAX: usize = 4_096;

/// Initial references whose text names another one: a longer chain is treated as a cycle.
pub const INITIAL_REFERENCES_DEEP_MAX: usize = 4;

/// Addressing modes of the target that one request is tried with. GIOP has three; a server that requests a fourth
/// accepts none.
pub const ADDRESSINGS_MAX: usize = 3;

/// Service contexts of a message that are listed without allocation: code sets, listen points, policies, priority,
/// band, deadline and the id of a distributable thread. Interceptors may add more.
pub const CONTEXTS_FEW: usize = 8;

/// Calls that may wait for replies over one bidirectional connection. Beyond it NO_RESOURCES is raised.
///
/// Share: each connection | seen: nothing, further calls to it over the connection raise NO_RESOURCES | test:
/// crates/orb/src/connection/bidirectional.rs::calls_that_a_peer_does_not_answer_leave_room_for_those_to_others
pub const BIDIRECTIONAL_CALLS_MAX: usize = 1_024;

/// Location forwards followed by one invocation: a longer chain is treated as a cycle.
///
/// Share: each call | seen: TRANSIENT with the minor code FORWARD_CIRCLE, at the caller | test:
/// crates/orb/tests/forwards.rs::forwards_for_good_in_a_circle_end_and_leave_no_endless_chain
pub const FORWARDS_MAX: usize = 8;

/// Addresses of a reference that are used: a hostile reference can contain thousands.
///
/// Share: each reference | seen: nothing, further addresses are not used | test:
/// crates/orb/src/reference/routes.rs::only_the_first_of_many_addresses_are_used
pub const TARGETS_MAX: usize = 16;

/// Longest name of an adapter path: every persistent object key contains it.
pub const ADAPTER_PATH_SIZE_MAX: usize = 1_024;

/// Longest object id.
pub const OBJECT_ID_SIZE_MAX: usize = 4_096;

/// Objects that may be registered under a plain key (a `corbaloc:` key such as `NameService`).
pub const PLAIN_KEYS_MAX: usize = 1_024;

/// Requests that one POA manager holds in its holding state; each of them occupies a thread. In addition, the requests
/// held by all managers leave one thread of a lane free, if the lane has more than one.
///
/// Share: all of them, while the program holds requests | seen: TRANSIENT | test:
/// crates/orb/tests/hostile/messages.rs::requests_that_are_held_leave_a_thread_to_the_others_and_end_with_the_orb
pub const HELD_REQUESTS_MAX: usize = 64;

/// Buffers of each kind that a seal allocates for callers: as many threads can call at the same time without
/// allocation.
pub const SEALED_BUFFERS: usize = 16;

/// Buffers of each kind that a lane allocates for each of its threads before the first request. One holds the message
/// being served, the other holds data that another thread reads meanwhile from the same connection.
pub const BUFFERS_PER_THREAD: usize = 2;

/// Different lists of bands, and of protocols, that the policies of a process may have. Each list is kept for the life
/// of the process, so that a call reads it without a lock. A program defines only some; a thousand would originate from
/// data that peers send. No service makes one of such data: a program does that asks for the policies of a reference.
///
/// Share: none, no request makes a list | seen: nothing | test:
/// crates/orb/src/rt/policy/lists.rs::a_full_table_keeps_what_it_has_and_takes_nothing_more
pub const POLICY_LISTS_MAX: usize = 256;

/// How far in the future the start time of a request or reply may be. A caller waits for it, and a lane keeps the
/// message.
///
/// Share: each request | seen: TRANSIENT with the standard's minor code for a request that is discarded | test:
/// crates/orb/tests/hostile/messages.rs::request_that_may_start_too_late_is_refused_at_once_and_others_are_served
pub const START_AHEAD_MAX: Duration = Duration::from_secs(60);

/// Requests of a lane that wait for their start time. This suffices for callers whose clocks are ahead within their
/// stated error; the lane is not a store of requests. Beyond it TRANSIENT is raised. A sealed lane that knows the bound
/// of its clock has a buffer for each.
///
/// Share: as much as is free, so a half for one peer alone | seen: TRANSIENT with the standard's minor code for a
/// request that is discarded | test:
/// crates/orb/src/lane/waiting/start_time.rs::early_requests_of_one_peer_leave_room_for_those_of_others
pub const EARLY_REQUESTS_MAX: usize = 256;

/// Octets of the messages of requests that wait for their start time: two of the largest.
///
/// Share: as much as is free, so a half for one peer alone | seen: TRANSIENT with the standard's minor code for a
/// request that is discarded | test:
/// crates/orb/src/lane/waiting/start_time.rs::early_requests_of_one_peer_leave_room_for_those_of_others
pub const EARLY_REQUESTS_SIZE_MAX: usize = 2 * MESSAGE_SIZE_MAX;

/// Threadpools of one ORB besides the default pool.
pub const THREADPOOLS_MAX: usize = 64;

/// Lanes of one threadpool: the scheduler has 99 priorities.
pub const LANES_MAX: usize = 99;

/// Threads that one lane of a threadpool may have, static and dynamic; each takes a stack.
pub const POOL_THREADS_MAX: usize = 1_024;

/// Objects of one adapter with a priority and an application-chosen id for which a reference was made before
/// activation: a megabyte or two. Ids that the adapter makes contain the priority.
pub const OBJECT_PRIORITIES_MAX: usize = 16_384;

/// Addresses of a reference with lanes that are used: its lanes, each at some addresses.
///
/// Share: each reference | seen: nothing, further addresses are not used | test:
/// crates/orb/src/reference/routes.rs::only_the_first_of_many_lanes_are_used
pub const LANE_TARGETS_MAX: usize = 256;

/// Routes of the calls through one reference, by lane, band, protocols and network priority: a lane and a codepoint for
/// each native priority. Beyond it NO_RESOURCES is raised: the program sets ever new policies.
pub const ROUTES_MAX: usize = 256;

/// Named mutexes that an ORB has at once: as many as a program defines names for.
pub const NAMED_MUTEXES_MAX: usize = 1_024;

/// Requests that wait for threads of one threadpool. This is the default and the largest limit of a pool: as many as
/// connections that may wait to be accepted.
///
/// Share: as much as is free, so a half for one peer alone; a limit that the program sets is not shared | seen:
/// TRANSIENT with the minor code LANE_FULL | test:
/// crates/orb/src/lane/waiting/room.rs::requests_of_one_peer_leave_room_for_those_of_others
pub const REQUESTS_BUFFERED_MAX: usize = 1_024;

/// Octets of the messages of requests that wait for threads of one threadpool. This is the default and the largest limit
/// of a pool: four of the largest messages.
///
/// Share: as much as is free, so a half for one peer alone; a limit that the program sets is not shared | seen:
/// TRANSIENT with the minor code LANE_FULL | test:
/// crates/orb/src/lane/waiting/room.rs::requests_of_one_peer_leave_room_for_those_of_others
pub const REQUEST_BUFFER_SIZE_MAX: usize = 4 * MESSAGE_SIZE_MAX;

/// Requests queued behind one another on one bidirectional connection, if the threadpool sets no limit: as many as may
/// wait for its threads. Beyond it the ORB stops reading the connection; if it awaits a reply over the connection, it
/// refuses further requests.
///
/// Share: each connection | seen: its connection is not read; TRANSIENT while this ORB awaits a reply over it | test:
/// crates/orb/tests/hostile/shares.rs::requests_that_fill_the_queue_of_a_bidirectional_connection_leave_others_served
pub const REQUEST_QUEUE_MAX: usize = 1_024;

/// Octets of the requests queued on one bidirectional connection, unless a single one is larger: a part of
/// [`INBOUND_SIZE_MAX`], which all connections share.
///
/// Share: each connection; all of one peer as much of the inbound octets as is free | seen: its connection is not read;
/// beyond the share MessageError, and the end of the connection | test:
/// crates/orb/src/accounts.rs::requests_that_wait_leave_as_much_of_the_room_for_unfinished_messages_as_they_take
pub const REQUEST_QUEUE_SIZE_MAX: usize = 1 << 20;

/// Requests of one queue that a thread serves before it handles other connections.
pub const REQUEST_QUEUE_TURN: u32 = 16;

/// How long the keeper of a lane waits between two checks whether a thread that has just served a request is back.
pub const KEEPER_PAUSE: Duration = Duration::from_micros(20);

/// Messages that one vectored write of a delivery takes; each has two parts, its header and the shared body. The kernel
/// accepts 1,024 parts. A fan-out to 35 consumers of one process is one call.
pub const DELIVERY_MESSAGES_MAX: usize = 64;

/// Octets that a delivery connection takes out of its outlets' queues for one write. They can no longer be dropped, so
/// that it is little; an event is taken whole, whatever its size.
pub const DELIVERY_WRITE_SIZE: usize = 64 << 10;

/// Events that a delivery thread takes from the kernel with one call: the replies of a fan-out to 35 consumers with a
/// connection each come in two.
pub const DELIVERY_EVENTS_MAX: usize = deckwatch_os::poller::EVENTS_MAX;

/// Reads of one connection before the other connections of a delivery thread have their turn.
pub const DELIVERY_READS_MAX: usize = 16;

/// Threads that open connections for one delivery thread, where it may take time.
pub const DELIVERY_OPENERS_MAX: usize = 8;

/// As many of them may resolve host names: the others are for local processes.
pub const DELIVERY_RESOLVING_MAX: usize = 4;

/// Requests under way to the consumers of one delivery connection: the lower half of a request id counts them.
pub const DELIVERIES_UNDER_WAY_MAX: usize = 1 << 16;

/// Buffers of marshalled events that are kept for later events.
pub const DELIVERY_BODIES_KEPT: usize = 64;

/// Outlets of one delivery engine, counted over all its connections: 16,384 consumers of one channel, and as many that
/// are about to end.
///
/// Share: none directly, about an eighth by its share of the consumers of a channel | seen: IMP_LIMIT with the minor code
/// CONSUMER_SHARE_FULL | test:
/// crates/event/tests/realtime/shares.rs::consumers_that_leave_slowly_hold_their_places_until_their_farewell
pub const OUTLETS_MAX: usize = 32_768;

/// The longest time between two checks of a delivery engine for requests without a reply and connections that are not
/// made. A check is due every eighth of the reply timeout.
pub const DELIVERY_CHECK_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The shortest such time.
pub const DELIVERY_CHECK_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Default bound on the octets of all bodies of a delivery engine: sixteen of the largest messages that an ORB accepts
/// by default.
pub const DELIVERY_SIZE_MAX: usize = 256 << 20;

/// Handshakes of TLS that a listener has under way at once, with the connections that no lane has accepted yet. Each
/// holds a descriptor and some kilobytes, 64 KiB at most.
///
/// Share: [`HANDSHAKES_PER_PEER_MAX`] of one address | seen: a further connection is closed at once; at the total the
/// oldest handshake is dropped for the next | test:
/// crates/orb/tests/tls/hostile.rs::silent_peers_are_closed_in_time_and_one_address_holds_its_share_and_no_more
pub const HANDSHAKES_MAX: usize = 512;

/// Of these, those of one address.
pub const HANDSHAKES_PER_PEER_MAX: usize = 128;

/// Handshakes that are younger than [`HANDSHAKE_YOUNG`] before a listener accepts no further connection: those of many
/// honest clients at once take their turns in the backlog, and none of them is refused.
pub const HANDSHAKES_YOUNG_MAX: usize = 32;

/// How long a handshake is young: several times what one takes between two hosts that answer.
pub const HANDSHAKE_YOUNG: Duration = Duration::from_millis(200);

/// How long a handshake may take, on either side, where the caller gives no earlier deadline.
///
/// Share: each handshake has it | seen: the connection is closed | test:
/// crates/orb/tests/tls/hostile.rs::silent_peers_are_closed_in_time_and_one_address_holds_its_share_and_no_more
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Lines of an access log in a second about handshakes of TLS that failed; further ones are counted, and their count is
/// a line. Each costs the stranger a connection alone, and would push older lines out of the log.
///
/// Share: all, the count of the others is told | seen: nothing | test:
/// crates/orb/src/tls/refused.rs::so_many_handshakes_are_told_in_a_second_and_the_others_are_counted
pub const HANDSHAKES_TOLD_MAX: u32 = 16;

/// Octets of ciphertext that a thread reads at once: one record. The buffer is the thread's, not the connection's.
pub const TLS_READ_SIZE: usize = 16 << 10;

/// Octets of a file of certificates, keys or revocation lists.
pub const TLS_FILE_SIZE_MAX: u64 = 4 << 20;

/// Files of a directory of authorities.
pub const TLS_FILES_MAX: usize = 1_024;

/// Permitted requests that a guard remembers, so that the next one like it needs no look-up: connections times what each
/// of them does. One that is forgotten is looked up again. 8 octets each.
pub const ACCESS_VERIFIED_MAX: usize = 256;

/// Refusals that a guard keeps until they are taken for a log: the first of a burst. All are counted.
pub const REFUSALS_KEPT_MAX: usize = 16;
