//! A mission file as it is written: the shape that the JSON Schema publishes and serde reads.
//!
//! Doc comments here are what the schema tells an editor, and what an error tells the user; values keep their place
//! in the file.

use std::collections::BTreeMap;

use deckwatch_carrier::carriers::CarrierRef;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::listed::{CarrierWord, NetworkWord};
use super::text::{BudgetText, DurationText};

/// A mission: hosts, a network between them, the load on them, and the flows of messages to be judged.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MissionFile {
    /// Name of the mission
    #[schemars(length(min = 1, max = 100), extend("examples" = ["NAV data distribution"]))]
    pub(super) name: String,
    /// What the mission is, for people
    #[serde(default)]
    pub(super) description: Option<String>,
    /// What a paper printed of the experiment that the mission repeats; reports show it beside the mission's numbers
    #[serde(default)]
    pub(super) published: Option<Published>,
    /// What all flows go over, instead of their own `carrier`
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["event"]))]
    pub(super) carrier: Option<Spanned<String>>,
    /// The network that joins the hosts
    #[serde(default)]
    pub(super) network: Network,
    /// The hosts: emulated ones, real ones, or both
    #[schemars(length(min = 1, max = 250), extend("examples" = [[{"name": "RTS"}, {"name": "SONAR"}]]))]
    pub(super) hosts: Vec<Host>,
    /// What keeps processors and links busy while the mission runs
    #[serde(default)]
    #[schemars(with = "Vec<Load>")]
    pub(super) loads: Vec<Spanned<Load>>,
    /// The flows of messages
    #[schemars(length(min = 1, max = 1000))]
    pub(super) flows: Vec<Flow>,
    /// Other forms of the mission, chosen by `--variant`; each key of a variant replaces the file's key of the same name
    #[serde(default)]
    #[expect(
        dead_code,
        reason = "read from the table, before serde; here for the schema"
    )]
    pub(super) variants: BTreeMap<String, Variant>,
}

/// A variant of the mission. What it sets replaces what the file sets, whole.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "laid over the table, before serde; here for the schema"
)]
pub(super) struct Variant {
    /// What the variant is, for people
    #[serde(default)]
    pub(super) description: Option<String>,
    /// What a paper printed of the experiment that the variant repeats
    #[serde(default)]
    pub(super) published: Option<Published>,
    /// What all flows go over, instead of their own `carrier`
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["event"]))]
    pub(super) carrier: Option<String>,
    /// The network that joins the hosts
    #[serde(default)]
    pub(super) network: Option<Network>,
    /// The hosts: emulated ones, real ones, or both
    #[serde(default)]
    #[schemars(length(min = 1, max = 250))]
    pub(super) hosts: Option<Vec<Host>>,
    /// What keeps processors and links busy while the mission runs
    #[serde(default)]
    pub(super) loads: Option<Vec<Load>>,
    /// The flows of messages
    #[serde(default)]
    #[schemars(length(min = 1, max = 1000))]
    pub(super) flows: Option<Vec<Flow>>,
}

/// What a paper printed of the experiment, in its own words.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    /// The paper and the place in it
    #[schemars(extend("examples" = ["Talbert and Weaver, section IV A"]))]
    pub(super) source: String,
    /// Number and caption of the figure
    #[schemars(extend("examples" = ["Fig. 18. Gigabit Ethernet, Real-Time, Loaded CPUs"]))]
    pub(super) figure: String,
    /// Its late messages
    #[schemars(extend("examples" = ["59 (0.06%)"]))]
    pub(super) late: String,
}

/// A host: emulated, unless it has an `address`; then it is this machine, or with `reach` another one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    /// Name of the host
    #[schemars(with = "String", length(min = 1, max = 32), extend("examples" = ["SONAR"]))]
    pub(super) name: Spanned<String>,
    /// Command that starts its last arguments as a program on a far host, without a shell, and joins its standard input and output
    #[serde(default)]
    #[schemars(with = "Option<Vec<String>>", length(min = 1, max = 64), extend("examples" = [["ssh", "rts.ship"]]))]
    pub(super) reach: Option<Spanned<Vec<Spanned<String>>>>,
    /// IP address of a real host, at which the other real hosts send to it
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["10.0.0.1"]))]
    pub(super) address: Option<Spanned<String>>,
    /// Where this program is on a far host; `deckwatch` in its PATH if not given
    #[serde(default)]
    #[schemars(with = "Option<String>", length(min = 1, max = 200), extend("examples" = ["/opt/deckwatch/bin/deckwatch"]))]
    pub(super) program: Option<Spanned<String>>,
    /// Processors of its machine that the host's processes run on; all if not given
    #[serde(default)]
    #[schemars(with = "Option<Vec<u32>>", inner(range(min = 0, max = 4095)), extend("examples" = [[0]]))]
    pub(super) processors: Option<Spanned<Vec<u32>>>,
    /// Scheduling of the processes on the roads of this host's flows
    #[serde(default)]
    #[schemars(with = "Option<Scheduling>")]
    pub(super) scheduling: Option<Spanned<Scheduling>>,
    /// Whether these processes lock their memory
    #[serde(default)]
    pub(super) lock_memory: Option<bool>,
}

/// A scheduling class of the operating system.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Scheduling {
    /// The class
    #[schemars(extend("examples" = ["fifo"]))]
    pub(super) class: SchedulingClass,
    /// Priority in the class; the flow's `priority`, mapped linearly, if not given
    #[serde(default)]
    #[schemars(range(min = 1, max = 99), extend("examples" = [20]))]
    pub(super) native_priority: Option<u8>,
}

/// A scheduling class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SchedulingClass {
    /// Time-sharing
    Other,
    /// SCHED_FIFO
    Fifo,
    /// SCHED_RR
    RoundRobin,
}

/// A load of one kind: a share of processors, messages on a link, processes that count and sleep, memory, or a disk.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    /// Hosts that are loaded
    #[schemars(with = "Vec<String>", length(min = 1), extend("examples" = [["RTS", "SONAR"]]))]
    pub(super) hosts: Vec<Spanned<String>>,
    /// Share of each processor of the host that everything on it takes together: the load takes what is missing
    #[serde(default)]
    #[schemars(with = "Option<f64>", extend("examples" = [0.5]))]
    pub(super) share: Option<Spanned<f64>>,
    /// Priority in SCHED_FIFO of a load with a share of at most 0.8; time sharing if not given
    #[serde(default)]
    #[schemars(with = "Option<u8>", range(min = 1, max = 99), extend("examples" = [10]))]
    pub(super) native_priority: Option<Spanned<u8>>,
    /// Host to which messages are sent; as many as the socket takes without `rate_mbit_s` and `link_share`
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["SONAR"]))]
    pub(super) to: Option<Spanned<String>>,
    /// Protocol of these messages; udp if not given
    #[serde(default)]
    #[schemars(extend("examples" = ["tcp"]))]
    pub(super) over: Option<LoadProtocol>,
    /// Octets of a message; 1024 if not given
    #[serde(default)]
    #[schemars(with = "Option<u32>", range(min = 8, max = 65_507), extend("examples" = [1024]))]
    pub(super) octets: Option<Spanned<u32>>,
    /// Payload, in millions of bits a second
    #[serde(default)]
    #[schemars(with = "Option<f64>", extend("examples" = [10]))]
    pub(super) rate_mbit_s: Option<Spanned<f64>>,
    /// Share of the link of the host that sends, with all that frames add
    #[serde(default)]
    #[schemars(with = "Option<f64>", extend("examples" = [0.5]))]
    pub(super) link_share: Option<Spanned<f64>>,
    /// When messages are due; periodic if not given
    #[serde(default)]
    #[schemars(extend("examples" = ["poisson"]))]
    pub(super) arrivals: Option<Arrivals>,
    /// Seed of Poisson arrivals; 1 if not given
    #[serde(default)]
    #[schemars(extend("examples" = [1]))]
    pub(super) seed: Option<u64>,
    /// Messages of a burst; 8 if not given
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000), extend("examples" = [8]))]
    pub(super) burst_size: Option<u32>,
    /// Processes on each host that count and sleep in turns
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000), extend("examples" = [20]))]
    pub(super) processes: Option<u32>,
    /// How far each counts before it sleeps
    #[serde(default)]
    #[schemars(range(min = 1), extend("examples" = [500_000]))]
    pub(super) count: Option<u64>,
    /// How long each sleeps
    #[serde(default)]
    #[schemars(extend("examples" = ["1us"]))]
    pub(super) sleep: Option<DurationText>,
    /// Memory of the host that is taken, written and read without pause, by the program stress-ng, in units of 2^20 octets
    #[serde(default)]
    #[schemars(with = "Option<u64>", range(min = 64), extend("examples" = [512]))]
    pub(super) memory_mib: Option<Spanned<u64>>,
    /// Folder of the host, as an absolute path, in which a file is written and read without pause, by the program stress-ng
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["/var/tmp"]))]
    pub(super) disk: Option<Spanned<String>>,
    /// Length of this file, in units of 2^20 octets; 256 if not given
    #[serde(default)]
    #[schemars(with = "Option<u64>", range(min = 1), extend("examples" = [256]))]
    pub(super) disk_mib: Option<Spanned<u64>>,
    /// A run in which the load misses its target is INVALID; otherwise it has a warning
    #[serde(default)]
    pub(super) must_hold: Option<bool>,
}

/// The protocol of a load on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LoadProtocol {
    /// Datagrams
    Udp,
    /// A stream
    Tcp,
}

impl From<LoadProtocol> for deckwatch_load::Protocol {
    fn from(protocol: LoadProtocol) -> Self {
        match protocol {
            LoadProtocol::Udp => Self::Udp,
            LoadProtocol::Tcp => Self::Tcp,
        }
    }
}

/// A flow of messages from one host to one or more others.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Flow {
    /// Name of the flow
    #[schemars(with = "String", length(min = 1, max = 60), extend("examples" = ["NAV"]))]
    pub(super) name: Spanned<String>,
    /// Scoped name of the IDL type of its messages
    #[serde(default, rename = "type")]
    #[schemars(with = "Option<String>", extend("examples" = ["Nav::NavData"]))]
    pub(super) type_name: Option<Spanned<String>>,
    /// The IDL file that defines the type, relative to the mission file
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["../idl/deckwatch/nav.idl"]))]
    pub(super) idl: Option<Spanned<String>>,
    /// The integer member of the type that carries the sequence number
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["sequence_number"]))]
    pub(super) sequence: Option<Spanned<String>>,
    /// Octets of a message, for plain octets instead of an IDL type
    #[serde(default)]
    #[schemars(with = "Option<u32>", range(min = 8, max = 1_048_576), extend("examples" = [384]))]
    pub(super) octets: Option<Spanned<u32>>,
    /// The host that supplies the messages
    #[schemars(with = "String", extend("examples" = ["RTS"]))]
    pub(super) from: Spanned<String>,
    /// The hosts that consume the messages
    #[schemars(with = "Vec<String>", length(min = 1, max = 250), extend("examples" = [["SONAR"]]))]
    pub(super) to: Vec<Spanned<String>>,
    /// What the messages go over, unless `--carriers` says otherwise
    #[schemars(with = "CarrierWord", extend("examples" = ["event"]))]
    pub(super) carrier: CarrierRef,
    /// Mean messages a second
    #[serde(default)]
    #[schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0), extend("maximum" = 1_000_000), extend("examples" = [20]))]
    pub(super) rate_hz: Option<Spanned<f64>>,
    /// Time between messages, or between the beginnings of bursts; the mean for a Poisson process
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["50ms"]))]
    pub(super) period: Option<Spanned<DurationText>>,
    /// The arrival process; periodic if not given
    #[serde(default)]
    #[schemars(with = "Option<Arrivals>", extend("examples" = ["periodic"]))]
    pub(super) arrivals: Option<Spanned<Arrivals>>,
    /// Seed of a Poisson process; the flow's place in the file, from 1, if not given
    #[serde(default)]
    #[schemars(with = "Option<u64>", extend("examples" = [1]))]
    pub(super) seed: Option<Spanned<u64>>,
    /// Messages in a burst
    #[serde(default)]
    #[schemars(with = "Option<u32>", range(min = 1), extend("examples" = [8]))]
    pub(super) burst_size: Option<Spanned<u32>>,
    /// Time between the messages of a burst; back to back if not given
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["0s"]))]
    pub(super) burst_gap: Option<Spanned<DurationText>>,
    /// CORBA priority: the lane that serves the flow's calls, and its native priority in a real-time scheduling class
    #[serde(default)]
    #[schemars(range(min = 0, max = 32_767), extend("examples" = [10_000]))]
    pub(super) priority: Option<u16>,
    /// Scheduling of the processes on this flow's road; the host's if not given
    #[serde(default)]
    #[schemars(with = "Option<Scheduling>")]
    pub(super) scheduling: Option<Spanned<Scheduling>>,
    /// Processors of this machine that this flow's processes run on; the host's if not given
    #[serde(default)]
    #[schemars(with = "Option<Vec<u32>>", inner(range(min = 0, max = 4095)), extend("examples" = [[0]]))]
    pub(super) processors: Option<Spanned<Vec<u32>>>,
    /// Whether this flow's processes lock their memory; the host's if not given
    #[serde(default)]
    pub(super) lock_memory: Option<bool>,
    /// Differentiated services code point of its packets; 46 is expedited forwarding
    #[serde(default)]
    #[schemars(range(min = 0, max = 63), extend("examples" = [46]))]
    pub(super) dscp: Option<u8>,
    /// What the middleware of an adapter does about lost messages; its own default if not given
    #[serde(default)]
    #[schemars(with = "Option<Reliability>", extend("examples" = ["reliable"]))]
    pub(super) reliability: Option<Reliability>,
    /// The latest messages that the middleware of an adapter keeps for a slow consumer, 0 for all; its own default if not given
    #[serde(default)]
    #[schemars(extend("examples" = [8]))]
    pub(super) history: Option<u32>,
    /// The queueing discipline's band selector of its packets, SO_PRIORITY
    #[serde(default)]
    #[schemars(extend("examples" = [6]))]
    pub(super) socket_priority: Option<u32>,
    /// Octets of the receive buffer asked for at each destination
    #[serde(default)]
    #[schemars(range(min = 1024, max = 1_073_741_824), extend("examples" = [262_144]))]
    pub(super) receive_buffer_bytes: Option<u32>,
    /// Events that wait for one consumer in an event channel before the oldest is dropped
    #[serde(default)]
    #[schemars(range(min = 1), extend("examples" = [1000]))]
    pub(super) channel_queue_len: Option<u32>,
    /// A message received later than this after it was due is late
    #[schemars(with = "DurationText", extend("examples" = ["50ms"]))]
    pub(super) deadline: Spanned<DurationText>,
    /// Late messages that the mission allows
    #[schemars(with = "BudgetText", extend("examples" = ["3 in 10_000"]))]
    pub(super) late: Spanned<BudgetText>,
    /// Late messages in the largest burst for which the verdict must hold
    #[serde(default)]
    #[schemars(with = "Option<u64>", range(min = 1, max = 1_000_000), extend("examples" = [10]))]
    pub(super) clusters: Option<Spanned<u64>>,
    /// The longest stall for which the verdict must hold, instead of `clusters`: it holds up the messages due meanwhile
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["500ms"]))]
    pub(super) stall: Option<Spanned<DurationText>>,
    /// Messages that are judged
    #[serde(default)]
    #[schemars(with = "Option<u64>", range(min = 1), extend("examples" = [100_000]))]
    pub(super) count: Option<Spanned<u64>>,
    /// Time that is judged, instead of a count
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["20s"]))]
    pub(super) duration: Option<Spanned<DurationText>>,
    /// Time before the judged part in which messages are sent and marked, but not judged; 1s if not given
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["1s"]))]
    pub(super) warm_up: Option<Spanned<DurationText>>,
    /// Processor time that the consumer takes for each message
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["100us"]))]
    pub(super) handle_for: Option<Spanned<DurationText>>,
    /// Declared worst case of the consumer's processor time for a message; what takes longer is counted and named
    #[serde(default)]
    #[schemars(with = "Option<DurationText>", extend("examples" = ["2ms"]))]
    pub(super) worst_case: Option<DurationText>,
}

/// What a middleware does about lost messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reliability {
    /// It sends them again
    Reliable,
    /// Nothing
    BestEffort,
}

/// An arrival process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Arrivals {
    /// One message each period
    Periodic,
    /// Independent, exponentially distributed gaps
    Poisson,
    /// Several messages each period
    Bursts,
}

/// The network that joins the hosts: one switch, each host on a port of its own.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    /// A network file instead of a network by name, relative to the mission file
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("examples" = ["two-decks.toml"]))]
    pub(super) file: Option<Spanned<String>>,
    /// A network by name; gigabit-ethernet if not given
    #[serde(default)]
    #[schemars(with = "Option<NetworkWord>", extend("examples" = ["gigabit-ethernet"]))]
    pub(super) preset: Option<String>,
    /// Rate of a port, megabits a second, instead of the preset's
    #[serde(default)]
    #[schemars(with = "Option<f64>", range(min = 0.1, max = 100_000), extend("examples" = [100]))]
    pub(super) rate_mbit_s: Option<Spanned<f64>>,
    /// Largest IP packet, octets, instead of the preset's
    #[serde(default)]
    #[schemars(with = "Option<u32>", range(min = 576, max = 65_000), extend("examples" = [1500]))]
    pub(super) mtu_bytes: Option<Spanned<u32>>,
    /// Octets that a port may send at once, instead of the preset's
    #[serde(default)]
    #[schemars(with = "Option<u32>", range(min = 1600, max = 100_000_000), extend("examples" = [32_000]))]
    pub(super) burst_bytes: Option<Spanned<u32>>,
    /// Frames that wait at a port, in each of three priorities, before more are dropped, instead of the preset's
    #[serde(default)]
    #[schemars(with = "Option<u32>", range(min = 1, max = 1_000_000), extend("examples" = [1000]))]
    pub(super) queue_frames: Option<Spanned<u32>>,
    /// What carries the frames; shaper if not given
    #[serde(default)]
    #[schemars(with = "Option<Emulation>", extend("examples" = ["relay"]))]
    pub(super) emulation: Option<Spanned<Emulation>>,
}

/// What carries the frames of an emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Emulation {
    /// Shapers of the kernel: as fast as the kernel, without the transmission time of a frame at low load
    Shaper,
    /// A relay: each frame takes its time on each line, and waits for the one before it
    Relay,
    /// A relay that never sleeps, so that times below 100 us come true too; it keeps one processor busy
    SpinningRelay,
    /// A relay where a deadline is below ten transmission times or flows differ in priority, up to 20,000 frames a
    /// second; shapers else
    Auto,
}
