//! The options of an ORB, set by the program. The module `arguments` parses those of a command line.

mod error;

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use crate::access::AccessLog;
use crate::allotment::beside_program;
use crate::arguments::TRACE_PLACE;
use crate::interceptor::{OrbInitializer, initialise};
use crate::lane::{LaneShape, ThreadStart};
use crate::limits::{
    ARRIVAL_TIMEOUT, BUFFER_RETAINED_MAX, BUFFER_SIZE, CLIENT_IDLE_TIMEOUT, CONNECTIONS_MAX,
    DYNAMIC_THREAD_IDLE, FRAGMENT_SIZE_MIN, INBOUND_SIZE_MAX, LANE_THREADS,
    LANE_THREADS_DYNAMIC_MAX, MESSAGE_SIZE_MAX, OUTBOUND_SIZE_MAX, REPLY_TIMEOUT,
};
use crate::orb::{Orb, OrbCore};
use crate::origin::Reach;
use crate::policy::{Overrides, Policy};
use crate::rt::{
    LinearNetwork, MappingChoice, NetworkPriorityMapping, PriorityMapping, Protocols, Scheduling,
};
use crate::rtorb::LanePlace;
use crate::trace::{Sink, Trace, open_sink};
use crate::transport::{ENDPOINT_FORM, Endpoint, SocketTransport, Transport};

use crate::wire::Sizes;
pub use error::BuildError;

/// Collects the options of an ORB, then makes it.
#[must_use]
pub struct OrbBuilder {
    /// The options of sockets, where `transport` is theirs.
    sockets: SocketTransport,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) published: Vec<Endpoint>,
    pub(crate) lane_places: Vec<LanePlace>,
    pub(crate) server_protocols: Option<Protocols>,
    pub(crate) network_mapping: Arc<dyn NetworkPriorityMapping>,
    pub(crate) id: String,
    pub(crate) initial: Vec<(String, String)>,
    pub(crate) default_initial: Option<String>,
    pub(crate) shape: LaneShape,
    pub(crate) dynamic_thread_idle: Duration,
    pub(crate) priority_fallback: bool,
    pub(crate) client_idle_timeout: Duration,
    pub(crate) policies: Overrides,
    pub(crate) scheduling: Scheduling,
    pub(crate) mapping: MappingChoice,
    pub(crate) thread_start: Option<ThreadStart>,
    pub(crate) access_log: Option<Arc<dyn AccessLog>>,
    pub(crate) trace: Option<Sink>,
    pub(crate) collocation: bool,
    pub(crate) server_id: String,
    pub(crate) initializers: Vec<Arc<dyn OrbInitializer>>,
    /// The arguments of the command line.
    pub(crate) given: Vec<String>,
    pub(crate) call_spin: Option<Duration>,
    pub(crate) reach: Option<Reach>,
}

impl Default for OrbBuilder {
    fn default() -> Self {
        Self {
            sockets: SocketTransport::default(),
            transport: Arc::new(SocketTransport::default()),
            endpoints: Vec::new(),
            published: Vec::new(),
            lane_places: Vec::new(),
            server_protocols: None,
            network_mapping: Arc::new(LinearNetwork),
            id: String::new(),
            initial: Vec::new(),
            default_initial: None,
            shape: LaneShape {
                threads: LANE_THREADS,
                threads_dynamic: LANE_THREADS_DYNAMIC_MAX,
                connections_max: CONNECTIONS_MAX,
                sizes: Sizes {
                    message_max: MESSAGE_SIZE_MAX,
                    fragment: None,
                },
                buffer_size: BUFFER_SIZE,
                inbound_size_max: INBOUND_SIZE_MAX,
                arrival_timeout: ARRIVAL_TIMEOUT,
                outbound_size_max: OUTBOUND_SIZE_MAX,
                reply_timeout: REPLY_TIMEOUT,
                idle_timeout: None,
                buffering: None,
                clock_bound: None,
                spin: None,
            }
            .within_process(),
            dynamic_thread_idle: DYNAMIC_THREAD_IDLE,
            priority_fallback: false,
            client_idle_timeout: CLIENT_IDLE_TIMEOUT,
            policies: Overrides::default(),
            scheduling: Scheduling::default(),
            mapping: MappingChoice::default(),
            thread_start: None,
            access_log: None,
            trace: None,
            collocation: true,
            server_id: String::new(),
            initializers: Vec::new(),
            given: Vec::new(),
            call_spin: None,
            reach: None,
        }
    }
}

impl OrbBuilder {
    /// Adds an endpoint to listen at:
    /// - `host:port`: TCP. Port 0 is any free port, an empty host every address.
    /// - `unix:/path`: a unix socket. Clients on this host, omniORB's too, find it in references. The ORB removes its
    ///   file at shutdown, and replaces one that a dead process left behind.
    /// - `shm:/path`: shared memory, set up through a unix socket of that path. Clients on this host prefer it.
    ///
    /// Without an endpoint the ORB listens at a free port of 127.0.0.1, where this host alone reaches it.
    ///
    /// # Errors
    /// [`BuildError::ValueMalformed`].
    pub fn listen(mut self, endpoint: &str) -> Result<Self, BuildError> {
        self.endpoints
            .push(endpoint.parse().map_err(|_| BuildError::ValueMalformed {
                option: "The listen endpoint".to_owned(),
                value: endpoint.to_owned(),
                expected: ENDPOINT_FORM,
            })?);
        Ok(self)
    }

    /// Sets what references contain in place of the TCP endpoints that the ORB listens at. Use it if clients reach this
    /// ORB at another address: behind an address translation, in a container, by several names. Either `host:port`, or
    /// a host alone for each port that the ORB listens at.
    ///
    /// # Errors
    /// [`BuildError::ValueMalformed`].
    pub fn publish(mut self, endpoint: &str) -> Result<Self, BuildError> {
        let alone = |_| match endpoint.parse::<Ipv6Addr>() {
            Ok(address) => Ok(Endpoint::tcp(&address.to_string(), 0)),
            Err(_) => format!("{endpoint}:").parse(),
        };
        let parsed = endpoint.parse().or_else(alone);
        let malformed = |_| BuildError::ValueMalformed {
            option: "The published endpoint".to_owned(),
            value: endpoint.to_owned(),
            expected: "a host, or host:port",
        };
        self.published.push(parsed.map_err(malformed)?);
        Ok(self)
    }

    /// Sets the value of [`Orb::id`]; empty by default.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// Sets the server id that interceptors read; empty by default.
    pub fn server_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.server_id);
        self
    }

    /// Adds an initializer, which registers portable interceptors, slots and policy factories while the ORB is made.
    /// Initializers are called in the order of these calls.
    pub fn initializer(mut self, initializer: impl OrbInitializer) -> Self {
        self.initializers.push(Arc::new(initializer));
        self
    }

    /// Sets the reference that `resolve_initial_references` returns for `name`: any form that `string_to_object`
    /// parses.
    pub fn initial_reference(mut self, name: &str, reference: &str) -> Self {
        self.initial.push((name.to_owned(), reference.to_owned()));
        self
    }

    /// Sets the URL for initial references of other names: the ORB appends `/` and the name to it.
    pub fn default_initial_reference(mut self, url: &str) -> Self {
        self.default_initial = Some(url.to_owned());
        self
    }

    /// Sets the number of static threads of the lane; at least one.
    pub fn threads(mut self, count: usize) -> Self {
        self.shape.threads = count.max(1);
        self
    }

    /// Sets how many threads the lane may add while all others serve.
    pub fn dynamic_threads(mut self, count: usize) -> Self {
        self.shape.threads_dynamic = count;
        self
    }

    /// Sets how long a dynamic thread waits for work before it ends.
    pub fn dynamic_thread_idle(mut self, limit: Duration) -> Self {
        self.dynamic_thread_idle = limit;
        self
    }

    /// Sets where a lane of a threadpool listens. `which` is `pool:lane`, or `*` for all in place of either number.
    /// Both are counted as TAO counts them: pools from 1, lanes from 0. Commas separate several endpoints. Without this
    /// option a lane listens at the hosts of [`OrbBuilder::listen`], at ports of its own.
    ///
    /// # Errors
    /// [`BuildError::ValueMalformed`].
    pub fn lane_listen(mut self, which: &str, endpoints: &str) -> Result<Self, BuildError> {
        let place =
            LanePlace::parse(which, endpoints).ok_or_else(|| BuildError::ValueMalformed {
                option: "The place of a lane".to_owned(),
                value: format!("{which} {endpoints}"),
                expected: LANE_PLACE_FORM,
            })?;
        self.lane_places.push(place);
        Ok(self)
    }

    /// Sets the RTCORBA::ServerProtocolPolicy of the ORB: the properties of the connections accepted at its endpoints,
    /// those of its lanes included. With the network priority of TCP enabled, packets have that of the lane's priority,
    /// or of 0 without a lane. A pool whose lanes may not use it is not made.
    pub fn server_protocols(mut self, protocols: Protocols) -> Self {
        self.server_protocols = Some(protocols);
        self
    }

    /// Sets the mapping from CORBA priorities to those of packets; [`crate::LinearNetwork`] by default. It applies
    /// where protocols enable network priorities: [`Protocols::with_network_priority`].
    pub fn network_priority_mapping(mut self, mapping: impl NetworkPriorityMapping) -> Self {
        self.network_mapping = Arc::new(mapping);
        self
    }

    /// Allows a thread to keep the priority that it started with, if the host refuses the priority of its lane or
    /// request. A priority that a scheduler requests is refused all the same. Each such case is counted, and
    /// [`Orb::has_priority_fallback`] returns true from then on. Without this option a threadpool whose priority the
    /// host refuses is not made.
    pub fn allow_priority_fallback(mut self) -> Self {
        self.priority_fallback = true;
        self
    }

    /// Starts no threads: the owner of the ORB calls [`Orb::turn`] instead, as in a simulation.
    pub fn turned_by_hand(mut self) -> Self {
        self.shape.threads = 0;
        self.shape.threads_dynamic = 0;
        self
    }

    /// Sets how many connections may be open at once. One peer may have half of them.
    pub fn connections_max(mut self, count: usize) -> Self {
        self.shape.connections_max = count.max(1);
        self
    }

    #[cfg(test)]
    pub(crate) fn into_shape(self) -> LaneShape {
        self.shape
    }

    /// Sets the limits of messages, unfinished messages, unread replies and connections to what a process with so many
    /// octets of memory can hold, the program included. Without this option, the memory counts that the process may
    /// have: by its control groups, RLIMIT_AS and the machine. Options for single limits come after this one.
    pub fn memory_max(mut self, octets: u64) -> Self {
        self.shape.limit_memory(beside_program(octets));
        self
    }

    /// Sets the limit in octets of a message received or sent.
    pub fn message_size_max(mut self, octets: usize) -> Self {
        self.shape.sizes.message_max = octets;
        self
    }

    /// Sends larger messages of GIOP 1.1 and 1.2 as fragments of at most this many octets. The size is at least 1,024,
    /// and is rounded down to a multiple of 8. Without this option every message is sent whole. Received fragments are
    /// read in any case.
    pub fn fragment_size(mut self, octets: usize) -> Self {
        self.shape.sizes.fragment = Some(octets.max(FRAGMENT_SIZE_MIN) & !7);
        self
    }

    /// Sets how many octets all incomplete messages of the server side may hold together beyond their first buffers. One
    /// peer may hold half of this.
    pub fn inbound_size_max(mut self, octets: usize) -> Self {
        self.shape.inbound_size_max = octets;
        self
    }

    /// Sets the longest time between the first and the last octet of a message on the server side.
    pub fn arrival_timeout(mut self, limit: Duration) -> Self {
        self.shape.arrival_timeout = limit;
        self
    }

    /// Sets how many octets of replies may be queued on the server side for peers that do not read them. One peer may
    /// hold half of this.
    pub fn outbound_size_max(mut self, octets: usize) -> Self {
        self.shape.outbound_size_max = octets;
        self
    }

    /// Sets how long a peer may read none of the replies queued for it.
    pub fn reply_timeout(mut self, limit: Duration) -> Self {
        self.shape.reply_timeout = limit;
        self
    }

    /// Sets how long a thread that has adopted a connection polls for the next request before it sleeps. With
    /// [`crate::transport::SPIN_FOREVER`] it polls as long as no other connection needs the thread. This gives the
    /// lowest latency, and uses one processor per thread. Lanes whose threads have a real-time class are refused when
    /// they are made.
    pub fn spinning_lanes(mut self, limit: Duration) -> Self {
        self.shape.spin = Some(limit);
        self
    }

    /// Sets how long a caller polls for its reply before it sleeps; each polling caller uses one processor. Threads of
    /// a real-time class sleep at once all the same.
    pub fn spinning_calls(mut self, limit: Duration) -> Self {
        self.call_spin = Some(limit);
        self
    }

    /// Closes connections on which no request arrives for this long. A CloseConnection message makes the client connect
    /// again at its next call. Without this option connections stay open, so that infrequent calls need no new
    /// connection.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.shape.idle_timeout = Some(limit);
        self
    }

    /// Sets the largest difference between the clock of this host (CLOCK_REALTIME) and UTC; unknown by default. If it
    /// is known:
    /// - a request that arrives after its own end time is dropped;
    /// - a request that arrives before its start time waits for it;
    /// - the relative timeouts of calls are sent as end times.
    pub fn clock_bound(mut self, bound: Duration) -> Self {
        self.shape.clock_bound = Some(bound);
        self
    }

    /// Closes connections to servers that no call has used for this long. The ORB checks for them while it makes calls.
    pub fn client_idle_timeout(mut self, limit: Duration) -> Self {
        self.client_idle_timeout = limit;
        self
    }

    /// Sets the initial size of buffers, [`crate::limits::BUFFER_SIZE`] by default and at most
    /// [`crate::limits::BUFFER_RETAINED_MAX`]. If it is the size of the largest message expected, [`Orb::seal`]
    /// allocates all memory that messages need.
    pub fn buffer_size(mut self, octets: usize) -> Self {
        self.shape.buffer_size = octets.clamp(BUFFER_SIZE, BUFFER_RETAINED_MAX);
        self
    }

    /// Sets the longest duration of a call, unless its reference has its own; no limit by default.
    pub fn round_trip_timeout(self, limit: Duration) -> Self {
        self.policy(Policy::RelativeRoundtripTimeout(limit))
    }

    /// Sets the longest time to establish a connection, unless the reference has its own.
    pub fn connect_timeout(self, limit: Duration) -> Self {
        self.policy(Policy::ConnectionTimeout(limit))
    }

    /// Sets a policy for all calls of the ORB; [`Orb::policy_manager`] changes it later.
    pub fn policy(mut self, policy: Policy) -> Self {
        let one = Overrides::one(policy);
        self.policies = one.over(self.policies);
        self
    }

    /// Sets the scheduling class of the native priorities that CORBA priorities are mapped to; SCHED_FIFO by default.
    /// An ORB used without real-time CORBA does not change the class of any thread.
    pub fn scheduling(mut self, scheduling: Scheduling) -> Self {
        self.scheduling = scheduling;
        self
    }

    /// Sets the mapping from CORBA priorities to native ones; [`crate::Linear`] by default.
    pub fn priority_mapping(mut self, mapping: impl PriorityMapping) -> Self {
        self.mapping = MappingChoice::Own(Arc::new(mapping));
        self
    }

    pub(crate) fn mapping_choice(mut self, choice: MappingChoice) -> Self {
        self.mapping = choice;
        self
    }

    /// Writes the message trace to `sink`: one line per message sent or received, and a paragraph per system exception
    /// that the ORB raises itself. The paragraph names the attempted action, the result and the remedy. A thread of its
    /// own writes the trace shortly after each event; [`Orb::shutdown`] waits for the rest.
    pub fn trace(mut self, sink: impl std::io::Write + Send + 'static) -> Self {
        self.trace = Some(Sink::new(sink));
        self
    }

    pub(crate) fn trace_into(mut self, sink: Sink) -> Self {
        self.trace = Some(sink);
        self
    }

    /// Sets whether the calling thread itself dispatches calls of objects that this ORB serves, without the network;
    /// true by default.
    pub fn collocation(mut self, is_on: bool) -> Self {
        self.collocation = is_on;
        self
    }

    /// Sets a log of who connects, of what access tables refuse, and of who binds and administers. It is told on the
    /// threads that serve.
    pub fn access_log(mut self, log: Arc<dyn AccessLog>) -> Self {
        self.access_log = Some(log);
        self
    }

    /// Sets a function that each serving thread runs first, for example to set its scheduling and affinity.
    pub fn on_thread_start(mut self, start: impl Fn() + Send + Sync + 'static) -> Self {
        self.thread_start = Some(Arc::new(start));
        self
    }

    /// Restricts where references lead that peers give in requests: a server that calls objects of strangers must not
    /// let them choose any address. Peers over the network have the addresses of [`Reach`], other processes of this
    /// host all addresses but no unix sockets; a process of the same user may have anything called. Calls elsewhere
    /// raise NO_PERMISSION. Without this option references of peers lead everywhere.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }

    /// Sets the permissions of the files of unix sockets, those of shared memory included, such as `0o660`. They
    /// determine which users can connect. By default they follow from the process's umask.
    pub fn unix_permissions(self, permissions: u32) -> Self {
        let sockets = self.sockets.clone().with_unix_permissions(permissions);
        self.over_sockets(sockets)
    }

    /// Sets the certificates and authorities for TLS. The handle reloads them while the ORB runs.
    #[cfg(feature = "tls")]
    pub fn tls(self, tls: &crate::tls::Tls) -> Self {
        let sockets = self.sockets.clone().with_tls(tls.clone());
        self.over_sockets(sockets)
    }

    fn over_sockets(mut self, sockets: SocketTransport) -> Self {
        self.transport = Arc::new(sockets.clone());
        self.sockets = sockets;
        self
    }

    /// Replaces the operating system's sockets with another transport.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = transport;
        self
    }

    /// Makes the ORB. With endpoints, it listens and starts its threads at once; otherwise at the first call of
    /// [`Orb::root_poa`].
    ///
    /// # Errors
    /// [`BuildError::CannotListen`], [`BuildError::CannotStartThread`], [`BuildError::SpinsInRealTime`],
    /// [`BuildError::Initializer`]; [`BuildError::ValueMalformed`] for the trace variable.
    pub fn build(mut self) -> Result<Orb, BuildError> {
        let serves = !self.endpoints.is_empty();
        if self.trace.is_none()
            && let Some(place) = std::env::var_os(TRACE_VARIABLE).filter(|place| !place.is_empty())
        {
            let place = place.to_string_lossy();
            let sink = open_sink(&place).map_err(|_| BuildError::ValueMalformed {
                option: TRACE_VARIABLE.to_owned(),
                value: place.into_owned(),
                expected: TRACE_PLACE,
            })?;
            self.trace = Some(sink);
        }
        let trace = Trace::new(Arc::clone(&self.transport), self.trace.take())
            .map_err(|_| BuildError::CannotStartThread)?;
        let initializers = std::mem::take(&mut self.initializers);
        let given = std::mem::take(&mut self.given);
        let server_id = std::mem::take(&mut self.server_id);
        let core = OrbCore::new(self, Arc::new(trace));
        let orb = Orb::of(Arc::clone(&core));
        initialise(&orb, &initializers, given, server_id).map_err(BuildError::Initializer)?;
        if serves {
            core.pools.default_pool()?;
        }
        Ok(orb)
    }
}

impl fmt::Debug for OrbBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrbBuilder")
            .field("endpoints", &self.endpoints)
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

/// The form of the value of [`OrbBuilder::lane_listen`].
pub(crate) const LANE_PLACE_FORM: &str = "pool:lane and the endpoints, such as 1:0 :2810";

/// The environment variable that sets the trace output of an ORB whose builder sets none.
const TRACE_VARIABLE: &str = "DECKWATCH_TRACE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_as_long_as_messages_are_aligned_for() {
        let size = |octets| {
            let builder = OrbBuilder::default().fragment_size(octets);
            builder.shape.sizes.fragment
        };
        assert_eq!(
            [0, 1_024, 2_047, 2_050].map(size),
            [1_024, 1_024, 2_040, 2_048].map(Some)
        );
    }
}
