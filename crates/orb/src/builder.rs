//! What an ORB is made with, in words of the program; `arguments` reads those of a command line.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use crate::arguments::{KnownOptions, TRACE_PLACE};
use crate::interceptor::{OrbInitError, OrbInitializer, initialise};
use crate::lane::{LaneShape, ThreadStart};
use crate::limits::{
    ARRIVAL_TIMEOUT, BUFFER_RETAINED_MAX, BUFFER_SIZE, CLIENT_IDLE_TIMEOUT, CONNECTIONS_MAX,
    DYNAMIC_THREAD_IDLE, FRAGMENT_SIZE_MIN, INBOUND_SIZE_MAX, LANE_THREADS,
    LANE_THREADS_DYNAMIC_MAX, MESSAGE_SIZE_MAX, OUTBOUND_SIZE_MAX, REPLY_TIMEOUT,
};
use crate::orb::{Orb, OrbCore};
use crate::policy::{Overrides, Policy};
use crate::rt::{MappingChoice, PriorityMapping, Protocols, Scheduling};
use crate::rtorb::{CannotMakePool, LanePlace};
use crate::trace::{Sink, Trace, open_sink};
use crate::transport::{ENDPOINT_FORM, Endpoint, SocketTransport, Transport, TransportError};
use crate::wire::Sizes;

/// Collects what an ORB is to be, then makes it.
#[must_use]
pub struct OrbBuilder {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) published: Vec<Endpoint>,
    pub(crate) lane_places: Vec<LanePlace>,
    pub(crate) server_protocols: Option<Protocols>,
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
    pub(crate) trace: Option<Sink>,
    pub(crate) collocation: bool,
    pub(crate) server_id: String,
    pub(crate) initializers: Vec<Arc<dyn OrbInitializer>>,
    /// What a command line has given.
    pub(crate) given: Vec<String>,
    pub(crate) call_spin: Option<Duration>,
}

/// Why an ORB could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// An argument that begins with `-ORB` is not known.
    UnknownOption(String),
    /// An option stands last, without its value.
    ValueMissing(String),
    /// A value cannot be read as what the option needs.
    ValueMalformed {
        /// The option.
        option: String,
        /// What was given.
        value: String,
        /// What to write instead.
        expected: &'static str,
    },
    /// It cannot listen there.
    CannotListen {
        /// Where.
        endpoint: Endpoint,
        /// Why.
        error: TransportError,
    },
    /// A thread could not be started.
    CannotStartThread,
    /// An initializer has raised.
    Initializer(OrbInitError),
    /// Lanes are to spin, and their threads have a real-time class.
    SpinsInRealTime,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption(option) => {
                write!(
                    f,
                    "The option {option} is not known; known are {KnownOptions}."
                )
            }
            Self::ValueMissing(option) => write!(f, "The option {option} needs a value after it."),
            Self::ValueMalformed {
                option,
                value,
                expected,
            } => {
                write!(f, "{option} cannot be '{value}': write {expected}.")
            }
            Self::CannotListen { endpoint, error } => {
                write!(f, "Cannot listen at {endpoint}. {error}")
            }
            Self::CannotStartThread => f.write_str("A thread of the ORB could not be started."),
            Self::Initializer(error) => write!(f, "An initializer of the ORB refuses. {error}"),
            Self::SpinsInRealTime => f.write_str(
                "The threads of a lane that spins must not have a real-time class: nothing else would run on their processors.",
            ),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<CannotMakePool> for BuildError {
    fn from(why: CannotMakePool) -> Self {
        match why {
            CannotMakePool::Listen(endpoint, error) => Self::CannotListen { endpoint, error },
            CannotMakePool::StartThread => Self::CannotStartThread,
            CannotMakePool::SpinInRealTime => Self::SpinsInRealTime,
        }
    }
}

impl Default for OrbBuilder {
    fn default() -> Self {
        Self {
            transport: Arc::new(SocketTransport::default()),
            endpoints: Vec::new(),
            published: Vec::new(),
            lane_places: Vec::new(),
            server_protocols: None,
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
            },
            dynamic_thread_idle: DYNAMIC_THREAD_IDLE,
            priority_fallback: false,
            client_idle_timeout: CLIENT_IDLE_TIMEOUT,
            policies: Overrides::default(),
            scheduling: Scheduling::default(),
            mapping: MappingChoice::default(),
            thread_start: None,
            trace: None,
            collocation: true,
            server_id: String::new(),
            initializers: Vec::new(),
            given: Vec::new(),
            call_spin: None,
        }
    }
}

impl OrbBuilder {
    /// Listens at `host:port` too; port 0 is any free one, and an empty host every address. `unix:/path` is a unix socket,
    /// which processes of this host find in references, omniORB's too; its file goes when the ORB shuts down, and one
    /// that a dead process left behind is replaced. `shm:/path` is shared memory, which begins at a unix socket of that path and is
    /// what processes of this host prefer.
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

    /// What references carry in place of the TCP endpoints listened at, where others reach this ORB by another address: behind an
    /// address translation, in a container, by several names. `host:port`, or a host alone for each port listened at.
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

    /// What [`Orb::id`] gives; empty otherwise.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// What interceptors are told of the server; empty otherwise.
    pub fn server_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.server_id);
        self
    }

    /// Registers portable interceptors, slots and policy factories while the ORB is made; initializers are called in the order they
    /// are given here.
    pub fn initializer(mut self, initializer: impl OrbInitializer) -> Self {
        self.initializers.push(Arc::new(initializer));
        self
    }

    /// What `resolve_initial_references` finds under `name`: any form that `string_to_object` reads.
    pub fn initial_reference(mut self, name: &str, reference: &str) -> Self {
        self.initial.push((name.to_owned(), reference.to_owned()));
        self
    }

    /// Where initial references of other names are found: `/` and the name are put behind this URL.
    pub fn default_initial_reference(mut self, url: &str) -> Self {
        self.default_initial = Some(url.to_owned());
        self
    }

    /// Static threads of the lane; at least one.
    pub fn threads(mut self, count: usize) -> Self {
        self.shape.threads = count.max(1);
        self
    }

    /// Threads that the lane may add while all others serve.
    pub fn dynamic_threads(mut self, count: usize) -> Self {
        self.shape.threads_dynamic = count;
        self
    }

    /// How long a thread that was added waits for work before it ends.
    pub fn dynamic_thread_idle(mut self, limit: Duration) -> Self {
        self.dynamic_thread_idle = limit;
        self
    }

    /// Where a lane of a threadpool listens, as `which` says: `pool:lane`, both counted as TAO counts them, pools from 1 and lanes from
    /// 0, or `*` for all; several endpoints have commas between them. Otherwise lanes listen at the hosts that [`OrbBuilder::listen`] says, at
    /// ports of their own.
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

    /// RTCORBA::ServerProtocolPolicy of the ORB: how connections are taken at its endpoints, those of its lanes too. Where the network
    /// priority of TCP is enabled the packets of a lane have that of its priority, and a pool whose lanes may not have it is not made.
    pub fn server_protocols(mut self, protocols: Protocols) -> Self {
        self.server_protocols = Some(protocols);
        self
    }

    /// Lets threads work at the priority they begin with where the host does not permit that of their lane or their request; what a
    /// scheduler asks for is refused all the same. Each such time is counted, and [`Orb::has_priority_fallback`] tells of it from then on. Without this word a threadpool
    /// that cannot have its priority is not made.
    pub fn allow_priority_fallback(mut self) -> Self {
        self.priority_fallback = true;
        self
    }

    /// No threads at all: whoever owns the ORB calls [`Orb::turn`]. What a simulation needs.
    pub fn turned_by_hand(mut self) -> Self {
        self.shape.threads = 0;
        self.shape.threads_dynamic = 0;
        self
    }

    /// Connections that may be open at once.
    pub fn connections_max(mut self, count: usize) -> Self {
        self.shape.connections_max = count.max(1);
        self
    }

    /// Octets of the largest message taken or sent.
    pub fn message_size_max(mut self, octets: usize) -> Self {
        self.shape.sizes.message_max = octets;
        self
    }

    /// Sends larger messages of GIOP 1.1 and 1.2 as fragments of at most so many octets (at least 1,024, rounded down to a multiple of 8); without this
    /// word every message is sent whole. Fragments are read in any case.
    pub fn fragment_size(mut self, octets: usize) -> Self {
        self.shape.sizes.fragment = Some(octets.max(FRAGMENT_SIZE_MIN) & !7);
        self
    }

    /// Octets that all unfinished messages of the server's side may hold together beyond their first buffers.
    pub fn inbound_size_max(mut self, octets: usize) -> Self {
        self.shape.inbound_size_max = octets;
        self
    }

    /// The longest a message may take from its first octets to its last on the server's side.
    pub fn arrival_timeout(mut self, limit: Duration) -> Self {
        self.shape.arrival_timeout = limit;
        self
    }

    /// Octets of replies that may wait for peers that do not read them, on the server's side together; one peer may leave a
    /// quarter of them.
    pub fn outbound_size_max(mut self, octets: usize) -> Self {
        self.shape.outbound_size_max = octets;
        self
    }

    /// The longest a peer may take nothing of the replies that wait for it.
    pub fn reply_timeout(mut self, limit: Duration) -> Self {
        self.shape.reply_timeout = limit;
        self
    }

    /// Threads that have adopted a connection look for its next request for `limit` before they sleep
    /// ([`crate::transport::SPIN_FOREVER`]: as long as no other connection needs them): fewest microseconds, at the price of a
    /// processor each. Not for threads of a real-time class: such lanes are refused when they are made.
    pub fn spinning_lanes(mut self, limit: Duration) -> Self {
        self.shape.spin = Some(limit);
        self
    }

    /// Callers look for their reply for `limit` before they sleep, each at the price of a processor. Threads of a real-time class
    /// sleep at once all the same.
    pub fn spinning_calls(mut self, limit: Duration) -> Self {
        self.call_spin = Some(limit);
        self
    }

    /// Closes connections that bring no request for this long, with a CloseConnection that tells the client to connect again
    /// at its next call; without it they stay, so that no rare call pays for a connect.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.shape.idle_timeout = Some(limit);
        self
    }

    /// How far the clock of this host (CLOCK_REALTIME) may be off UTC at most; not known without this word. Where it is known, requests that
    /// come after the end time that travelled with them are dropped, those that come before their start time wait for it, and the
    /// relative timeouts of calls travel as end times.
    pub fn clock_bound(mut self, bound: Duration) -> Self {
        self.shape.clock_bound = Some(bound);
        self
    }

    /// Closes connections to servers that no call has used for this long; the ORB looks for them while it makes calls.
    pub fn client_idle_timeout(mut self, limit: Duration) -> Self {
        self.client_idle_timeout = limit;
        self
    }

    /// Octets that buffers begin with, [`crate::limits::BUFFER_SIZE`] unless said otherwise: with those of the largest
    /// message expected, [`Orb::seal`] takes all the memory that messages need. At most
    /// [`crate::limits::BUFFER_RETAINED_MAX`].
    pub fn buffer_size(mut self, octets: usize) -> Self {
        self.shape.buffer_size = octets.clamp(BUFFER_SIZE, BUFFER_RETAINED_MAX);
        self
    }

    /// The longest a call may take unless its reference says otherwise; none by default.
    pub fn round_trip_timeout(self, limit: Duration) -> Self {
        self.policy(Policy::RelativeRoundtripTimeout(limit))
    }

    /// The longest a connection may take to make unless its reference says otherwise.
    pub fn connect_timeout(self, limit: Duration) -> Self {
        self.policy(Policy::ConnectionTimeout(limit))
    }

    /// A policy of all calls of the ORB; [`Orb::policy_manager`] changes it later.
    pub fn policy(mut self, policy: Policy) -> Self {
        let one = Overrides::one(policy);
        self.policies = one.over(self.policies);
        self
    }

    /// The class in which threads get the native priorities that their CORBA priorities are mapped to: SCHED_FIFO unless said otherwise.
    /// An ORB that is used without real-time CORBA leaves the classes of threads alone.
    pub fn scheduling(mut self, scheduling: Scheduling) -> Self {
        self.scheduling = scheduling;
        self
    }

    /// The mapping from CORBA priorities to native ones: [`crate::Linear`] unless said otherwise.
    pub fn priority_mapping(mut self, mapping: impl PriorityMapping) -> Self {
        self.mapping = MappingChoice::Own(Arc::new(mapping));
        self
    }

    pub(crate) fn mapping_choice(mut self, choice: MappingChoice) -> Self {
        self.mapping = choice;
        self
    }

    /// Writes the message trace to `sink`: a line a message in or out, and a paragraph in words for each system exception that
    /// the ORB raises itself: what was tried, what came of it, what to do. A thread of its own writes it, soon after the fact;
    /// [`Orb::shutdown`] waits for the rest.
    pub fn trace(mut self, sink: impl std::io::Write + Send + 'static) -> Self {
        self.trace = Some(Sink::new(sink));
        self
    }

    pub(crate) fn trace_into(mut self, sink: Sink) -> Self {
        self.trace = Some(sink);
        self
    }

    /// Whether calls of objects that this ORB serves itself are dispatched by the calling thread, without the network; they are
    /// unless this says otherwise.
    pub fn collocation(mut self, is_on: bool) -> Self {
        self.collocation = is_on;
        self
    }

    /// Runs on each thread that serves, before it does: the place for its scheduling and affinity.
    pub fn on_thread_start(mut self, start: impl Fn() + Send + Sync + 'static) -> Self {
        self.thread_start = Some(Arc::new(start));
        self
    }

    /// The permissions of the files of its unix sockets, those of shared memory too, such as `0o660` for who may connect; those of the process's mask
    /// otherwise.
    pub fn unix_permissions(self, permissions: u32) -> Self {
        self.transport(Arc::new(SocketTransport::with_unix_permissions(
            permissions,
        )))
    }

    /// Another transport than the operating system's sockets.
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = transport;
        self
    }

    /// Makes the ORB. It listens and has its threads at once where endpoints were given, else when the root adapter
    /// is first asked for.
    ///
    /// # Errors
    /// [`BuildError::CannotListen`], [`BuildError::CannotStartThread`], [`BuildError::SpinsInRealTime`], [`BuildError::Initializer`].
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

/// How the place of a lane is written.
pub(crate) const LANE_PLACE_FORM: &str = "pool:lane and the endpoints, such as 1:0 :2810";

/// Where an ORB writes its trace that has not been told.
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
