//! Every bound of the ORB, with its reason.

use std::time::Duration;

/// Octets a read asks for at first, and the size a lent buffer starts with: a mission's message fits.
pub const BUFFER_SIZE: usize = 16 << 10;

/// What of a buffer is beyond this is given back to the allocator when the slab takes it back: 64 KiB messages and their headers stay.
pub const BUFFER_RETAINED_MAX: usize = 128 << 10;

/// Buffers to read into and to write into, together, that a lane, or the caller's side of an ORB, keeps. With [`BUFFER_RETAINED_MAX`]: at most 16 MiB.
pub const BUFFERS_MAX: usize = 128;

/// Octets of one GIOP message, whole or put together from fragments, unless the builder says otherwise.
pub const MESSAGE_SIZE_MAX: usize = 16 << 20;

/// Fewest octets of a fragment that the builder takes: less would be more headers than octets, and a packet carries more.
pub const FRAGMENT_SIZE_MIN: usize = 1024;

/// Octets that the unfinished messages of all connections of a lane hold together beyond their first buffers, unless the
/// builder says otherwise: sixteen of the largest. Who needs more then is closed, so that a flood of half-sent messages
/// cannot take the memory of the host.
pub const INBOUND_SIZE_MAX: usize = 16 * MESSAGE_SIZE_MAX;

/// How long a message may take from its first octets to its last, unless the builder says otherwise: the largest over a
/// link of some megabits. Then its connection is closed: a peer that has stopped within a message holds memory.
pub const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// How often a lane looks for messages that take longer, while any message is unfinished.
pub const ARRIVAL_SWEEP: Duration = Duration::from_secs(1);

/// Connections a lane keeps open unless the builder says otherwise; then the one that has been idle for the longest makes room for
/// the next, and where none is idle the listener rests.
pub const CONNECTIONS_MAX: usize = 16_384;

/// How long a new connection may bring nothing before it counts as idle where connections run out: a first request is on its way,
/// and a client that is told farewell on a new connection gives up.
pub const NEWCOMER_GRACE: Duration = Duration::from_secs(1);

/// For how long a connection must have brought nothing to go for one that waits where descriptors have run out, perhaps for quite other
/// reasons: its client connects again, and takes one anew. Longer than callers pause who count on their connections.
pub const EXHAUSTED_IDLE: Duration = Duration::from_secs(5);

/// Octets of memory that a connection holds while nothing happens on it, the table's growth by doubling included: ten thousand
/// hold less than 6 MiB besides what the kernel keeps for their sockets. A test counts it. Each begins a cache line of its own, or
/// threads that serve neighbours would take it from each other.
pub const IDLE_CONNECTION_SIZE_MAX: usize = 576;

/// Connections that may wait to be accepted: a whole ship connecting at once.
pub const LISTEN_BACKLOG: i32 = 1_024;

/// Connections through shared memory that may be open at one listener: each holds a ring a direction, 128 MiB together. Who comes
/// later takes another address of the reference.
pub const SHARED_MEMORY_CONNECTIONS_MAX: usize = 512;

/// Connections accepted before a thread looks at other events again.
pub const ACCEPTS_PER_TURN_MAX: usize = 16;

/// Reads of one connection before a thread looks at the others again.
pub const READS_PER_TURN_MAX: usize = 8;

/// Threads of a lane unless the builder says otherwise.
pub const LANE_THREADS: usize = 4;

/// Threads a lane may add to its static ones while all of them serve, unless the builder says otherwise.
pub const LANE_THREADS_DYNAMIC_MAX: usize = 28;

/// How long a dynamic thread waits for work before it ends.
pub const DYNAMIC_THREAD_IDLE: Duration = Duration::from_secs(10);

/// How long a thread waits in the read of the connection it has adopted before it gives it back to the poller, where it leaves
/// a single other thread in the poller.
pub const ADOPTION_WAIT: Duration = Duration::from_millis(2);

/// The same where it leaves [`ADOPTION_SPARE`] or more: a call every 10 or 20 ms finds its thread. Bounds how long such a thread
/// stays away, and its connection holds a buffer, where suddenly all others serve.
pub const ADOPTION_WAIT_SPARE: Duration = Duration::from_millis(24);

/// Threads in the poller of which one can be spared for longer.
pub const ADOPTION_SPARE: usize = 2;

/// How long a thread that spins does so before it looks whether it is needed elsewhere.
pub const SPIN_SLICE: Duration = Duration::from_millis(2);

/// How often the thread in the poller looks whether a request of an adopted connection is taking long,
/// and if so watches that connection again. Bounds how long a second request of that connection stays unseen.
pub const ADOPTION_SWEEP: Duration = Duration::from_millis(10);

/// Requests that must follow each other through the poller within [`ADOPTION_WAIT`] before a thread adopts their connection.
pub const ADOPTION_STREAK: u32 = 4;

/// Octets of replies that wait for the peers of a lane together, unless the builder says otherwise: sixteen of the largest. One
/// peer may leave a quarter of it unread, so that one that does not read cannot take what others need; beyond it, it is given up.
pub const OUTBOUND_SIZE_MAX: usize = 16 * MESSAGE_SIZE_MAX;

/// Peers that can take all that [`OUTBOUND_SIZE_MAX`] allows.
pub const OUTBOUND_SHARES: usize = 4;

/// How long a peer may take nothing of the replies that wait for it, unless the builder says otherwise: a link that is down for
/// some seconds comes back. Then its connection is closed.
pub const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a caller without a timeout of its own waits to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a one-way without a timeout of its own waits for a peer that does not read.
pub const ONEWAY_WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long accepting rests when descriptors have run out.
pub const ACCEPT_REST: Duration = Duration::from_millis(50);

/// How long a shutdown lets requests in progress finish.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Records that the trace keeps until its thread has written them: a burst of some thousand messages, under a megabyte.
pub const TRACE_RECORDS_MAX: usize = 4_096;

/// Requests, calls and connections that the trace remembers to tell what belongs together; beyond it it forgets them all.
pub const TRACE_OPEN_MAX: usize = 16_384;

/// How long a shutdown waits for the trace to be written: a sink that nobody reads must not keep it.
pub const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Names that may be asked of the system's resolver at the same time: it knows no deadline, and each keeps a thread.
pub const RESOLUTIONS_MAX: usize = 16;

/// Idle connections kept towards one endpoint: callers that call it at the same time and keep their connection.
pub const IDLE_CONNECTIONS_MAX: usize = 64;

/// One-ways with SYNC_NONE that wait for one endpoint: what its thread sends in some milliseconds. Then TRANSIENT: the caller learns at once
/// that the endpoint does not keep up.
pub const QUEUED_ONEWAYS_MAX: usize = 1_024;

/// Octets that they hold together, unless a single one is larger.
pub const QUEUED_ONEWAYS_SIZE_MAX: usize = 4 << 20;

/// How long the end of a connection waits for the thread that is writing to it: that one never waits itself, but may have lost its processor.
pub(crate) const LAST_WORD_WAIT: Duration = Duration::from_millis(100);

/// Asynchronous calls and deferred requests of one ORB whose replies nobody has had: each keeps its arguments, to send them elsewhere. Then NO_RESOURCES.
pub const OUTSTANDING_MAX: u32 = 4_096;

/// Asynchronous calls that have ended and whose deadlines are still noted, beyond as many as twice those under way: looking for them
/// costs a call little then.
pub(crate) const ENDED_CALLS_FEW: usize = 64;

/// Connections towards one endpoint that wait for the late replies of calls given up: a server that is stuck must not gather more.
pub const LATE_CONNECTIONS_MAX: usize = 8;

/// Permanent forwards that a reference follows for good; later ones hold for the time being.
pub const PERMANENT_FORWARDS_MAX: u8 = 8;

/// How late the coarse clock may be: a tick of the usual kernels.
pub(crate) const COARSE_STEP: Duration = Duration::from_millis(4);

/// An idle connection is looked at before use after this long: the server may have closed it. Calls that follow each other every 10 or
/// 20 ms do without: a server that ends and comes back needs longer.
pub const STALE_CHECK_AFTER: Duration = Duration::from_millis(30);

/// A connection to a server that no call has taken for this long is closed, unless the builder says otherwise; the ORB looks for them now
/// and then while it makes calls, whichever.
pub const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Endpoints whose connections an ORB remembers; beyond it those that no reference uses are forgotten.
pub const ENDPOINTS_MAX: usize = 4_096;

/// Initial references whose text leads to another one: a chain longer than this is a circle.
pub const INITIAL_REFERENCES_DEEP_MAX: usize = 4;

/// Ways of naming the object that one request is tried in: there are three, and a server that wants a fourth wants none.
pub const ADDRESSINGS_MAX: usize = 3;

/// Service contexts of a message that are listed without taking memory: code sets, listen points, policies, priority, band, deadline and a thread's id.
/// Interceptors may add more.
pub const CONTEXTS_FEW: usize = 8;

/// Calls that may wait for replies over one connection that both sides ask over: then NO_RESOURCES.
pub const BIDIRECTIONAL_CALLS_MAX: usize = 1_024;

/// Location forwards followed by one invocation: a chain longer than this is a circle.
pub const FORWARDS_MAX: usize = 8;

/// Addresses of a reference that are looked at: a hostile one can carry thousands.
pub const TARGETS_MAX: usize = 16;

/// Longest name of an adapter path: it travels in every persistent object key.
pub const ADAPTER_PATH_SIZE_MAX: usize = 1_024;

/// Longest object id.
pub const OBJECT_ID_SIZE_MAX: usize = 4_096;

/// Objects that may be reached by a plain key (a `corbaloc:` key such as `NameService`).
pub const PLAIN_KEYS_MAX: usize = 1_024;

/// Requests held by an adapter manager in its holding state: each of them holds a thread. The requests held by all managers
/// leave one thread of a lane free besides, where it has more than one.
pub const HELD_REQUESTS_MAX: usize = 64;

/// Buffers of each kind that a seal takes for callers: as many threads as may call at the same time without allocating.
pub const SEALED_BUFFERS: usize = 16;

/// Buffers of each kind that a lane takes for each of its threads, before the first request that it serves: one for the message that is
/// served, and one for what another thread reads of the same connection meanwhile.
pub const BUFFERS_PER_THREAD: usize = 2;

/// Different lists of bands, and of protocols, that the policies of a process may have: each stays, so that a call reads its own without
/// a lock. A program writes some of them; a thousand would be made of what peers send.
pub const POLICY_LISTS_MAX: usize = 256;

/// How far ahead the start time of a request or reply may lie: a caller waits for it, and a lane keeps the message.
pub const START_AHEAD_MAX: Duration = Duration::from_secs(60);

/// Requests of a lane that wait for their start: callers whose clocks are ahead, by as much as they say they may be, and no store of
/// requests. Then TRANSIENT. A sealed lane that knows the bound of its clock has a buffer for each.
pub const EARLY_REQUESTS_MAX: usize = 256;

/// Octets of the messages that wait so: one of the largest.
pub const EARLY_REQUESTS_SIZE_MAX: usize = MESSAGE_SIZE_MAX;

/// Threadpools of one ORB beside the one that it begins with.
pub const THREADPOOLS_MAX: usize = 64;

/// Lanes of one threadpool: the scheduler has 99 priorities.
pub const LANES_MAX: usize = 99;

/// Threads that one lane of a threadpool may have, static and dynamic: each takes a stack.
pub const POOL_THREADS_MAX: usize = 1_024;

/// Objects of one adapter that references were made for at priorities of their own, under ids of the application's, before they were
/// activated: a megabyte or two. Ids that the adapter makes tell their priority.
pub const OBJECT_PRIORITIES_MAX: usize = 16_384;

/// Addresses of a reference with lanes that are looked at: its lanes, each at some addresses.
pub const LANE_TARGETS_MAX: usize = 256;

/// Ways that the calls through one reference take, by lane, band, protocols and network priority: a lane and a codepoint for each native
/// priority. Who makes policies without end is told so.
pub const ROUTES_MAX: usize = 256;

/// Mutexes with names that an ORB has at once: as many as a program gives names to.
pub const NAMED_MUTEXES_MAX: usize = 1_024;

/// Requests that wait for threads of one threadpool where it states no limit, and at most: as many as may wait to connect.
pub const REQUESTS_BUFFERED_MAX: usize = 1_024;

/// Octets of the messages that wait so, where the threadpool states no limit, and at most: four of the largest.
pub const REQUEST_BUFFER_SIZE_MAX: usize = 4 * MESSAGE_SIZE_MAX;

/// Requests that wait behind one another over one bidirectional connection, if the threadpool states no limit: as many as
/// may wait for its threads. Then the connection is not read on, or, while a reply is awaited over it, they are refused.
pub const REQUEST_QUEUE_MAX: usize = 1_024;

/// Octets that these requests hold together, unless a single one is larger: a part of [`INBOUND_SIZE_MAX`], which all
/// connections share.
pub const REQUEST_QUEUE_SIZE_MAX: usize = 1 << 20;

/// Requests of one queue that a thread serves before it looks at other connections.
pub const REQUEST_QUEUE_TURN: u32 = 16;

/// How long the keeper of a lane waits between two looks whether a thread that has just served is back.
pub const KEEPER_PAUSE: Duration = Duration::from_micros(20);
