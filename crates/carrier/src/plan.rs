//! The plan of each part of a run: one line of JSON on its standard input.
//!
//! The coordinator starts the parts of a stream in this order, because each needs data from those before:
//!
//! 1. `names` (for `event`): its [`Ready`](crate::talk::Ready) contains its `corbaloc:`.
//! 2. `channel` (for `event`): it binds itself in that naming service. `broker` (for an external carrier that has one):
//!    its `ready` contains the endpoint for the other parts.
//! 3. `consumer`s: their `ready` contains the endpoint that the supplier sends to. For `event` they connect to the
//!    channel.
//! 4. `tap`s, one for each host, with the ports of these endpoints. So they capture the suppliers' TCP connections from
//!    the first packet.
//! 5. `supplier`s.
//! 6. `go START_NS` to each part, when every part has written `ready`.
//!
//! A supplier writes `done` after its last message. The other parts write it at `stop`, which follows the drain.
//!
//! Record files and captures should be on a memory file system if there is one: the write-back of a disk file can block
//! the thread that writes a record.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use deckwatch_meter::pacing::Schedule;
use serde::{Deserialize, Serialize};

use crate::body::BodyPlan;
use crate::carrier::{ChannelAt, NetworkPriority};
use crate::carriers::CarrierRef;
use crate::host_clock::FarHost;
use crate::scheduling::Scheduling;

/// The plan of one part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case")]
pub enum PartPlan {
    /// Sends a stream by its schedule.
    Supplier(SupplierPlan),
    /// Receives a stream at one destination.
    Consumer(ConsumerPlan),
    /// The event channel of one `event` stream.
    Channel(ChannelPlan),
    /// The broker of one stream over an external carrier.
    Broker(BrokerPlan),
    /// The naming service in which channels are found.
    Names(NamesPlan),
    /// Captures the run's packets on one host.
    Tap(TapPlan),
    /// Relates the clocks of real hosts.
    Clock(ClockPlan),
}

impl PartPlan {
    /// Returns the body of its messages, if it has any.
    pub fn body_mut(&mut self) -> Option<&mut BodyPlan> {
        match self {
            Self::Supplier(plan) => Some(&mut plan.stream.body),
            Self::Consumer(plan) => Some(&mut plan.stream.body),
            Self::Channel(plan) => Some(&mut plan.stream.body),
            Self::Broker(plan) => Some(&mut plan.stream.body),
            Self::Names(_) | Self::Tap(_) | Self::Clock(_) => None,
        }
    }

    /// Returns the path of the file that the part creates, if it creates one.
    pub fn created_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Supplier(plan) => Some(&mut plan.records),
            Self::Consumer(plan) => Some(&mut plan.records),
            Self::Names(plan) => Some(&mut plan.store),
            Self::Broker(plan) => Some(&mut plan.body),
            Self::Tap(plan) => Some(&mut plan.capture),
            Self::Channel(_) | Self::Clock(_) => None,
        }
    }
}

/// One flow over one carrier. It is identical in the plans of all its parts, and in the join.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// Index of the stream in the result document's `flows`, and in each sample.
    pub flow: u16,
    /// The flow's name in the mission file, for texts.
    pub name: String,
    /// The carrier of the messages.
    pub carrier: CarrierRef,
    /// The body of a message.
    pub body: BodyPlan,
    /// When each message is due. The part replaces `start_ns` by that of `go`.
    pub schedule: Schedule,
    /// Time after due at which a message counts as late in the live count.
    #[serde(rename = "deadline_ns", with = "nanoseconds")]
    pub deadline: Duration,
}

/// The supplier of one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SupplierPlan {
    /// The stream to send.
    pub stream: StreamPlan,
    /// The address of its host, from which the supplier sends.
    pub address: IpAddr,
    /// The destinations, in the order of the result document. They have no endpoints if the carrier has a channel.
    pub destinations: Vec<DestinationPlan>,
    /// `event` only: where to find the channel.
    #[serde(default)]
    pub channel: Option<ChannelAt>,
    /// External carriers only: the topic of the stream.
    #[serde(default)]
    pub topic: Option<TopicPlan>,
    /// The flow's CORBA priority, if it has one.
    #[serde(default)]
    pub priority: Option<u16>,
    /// Priority of the packets.
    #[serde(default)]
    pub network_priority: NetworkPriority,
    /// Scheduling of the sending threads.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Path of the record file to create.
    pub records: PathBuf,
}

/// A destination in the supplier's plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationPlan {
    /// Index of the destination in the stream's `destinations`, and in each sample. The destinations of a stream are
    /// numbered from 0 without gaps.
    pub index: u16,
    /// The host's name.
    pub host: String,
    /// The endpoint in the consumer's `ready`: `address:port` or a stringified IOR; empty for `event`.
    #[serde(default)]
    pub endpoint: String,
}

/// The consumer of one stream at one destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsumerPlan {
    /// The stream to receive.
    pub stream: StreamPlan,
    /// Index of the destination within the stream.
    pub destination: u16,
    /// The host's name.
    pub host: String,
    /// The address of the consumer's host, which it listens on; it chooses the port.
    pub address: IpAddr,
    /// `event` only: where to find the channel.
    #[serde(default)]
    pub channel: Option<ChannelAt>,
    /// External carriers only: the topic of the stream.
    #[serde(default)]
    pub topic: Option<TopicPlan>,
    /// Processor time that the application uses for each message.
    #[serde(default, rename = "handle_for_ns", with = "nanoseconds")]
    pub handle_for: Duration,
    /// Whether the application's processor time is measured for each message.
    #[serde(default)]
    pub is_measured: bool,
    /// Octets requested for the socket's receive buffer; `None` selects the default of this program.
    #[serde(default)]
    pub receive_buffer_bytes: Option<u32>,
    /// Scheduling of the receiving thread.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// The flow's CORBA priority, which chooses the lane of a real-time ORB.
    #[serde(default)]
    pub priority: Option<u16>,
    /// Priority of the packets that the consumer sends.
    #[serde(default)]
    pub network_priority: NetworkPriority,
    /// Path of the record file to create.
    pub records: PathBuf,
}

/// The event channel of one stream, on the supplier's host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelPlan {
    /// The stream that the channel carries.
    pub stream: StreamPlan,
    /// The address of its host.
    pub address: IpAddr,
    /// The naming service and the name to which the channel binds itself.
    pub channel: ChannelAt,
    /// Events queued for one consumer before the oldest is dropped; `None` selects the channel's own default.
    #[serde(default)]
    pub queue_len: Option<u32>,
    /// Priority of the packets that it sends: events and replies.
    #[serde(default)]
    pub network_priority: NetworkPriority,
    /// Scheduling of its threads.
    #[serde(default)]
    pub scheduling: Scheduling,
}

/// The topic of a stream over an external carrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicPlan {
    /// A name that no other stream of this machine has.
    pub name: String,
    /// The endpoint in the broker's `ready`, if the carrier has a broker.
    #[serde(default)]
    pub broker: Option<String>,
    /// What the middleware shall do about lost messages, if the flow says it.
    #[serde(default)]
    pub reliability: Option<Reliability>,
    /// The messages that the middleware shall keep for a slow consumer, if the flow says it.
    #[serde(default)]
    pub history: Option<History>,
}

/// What a middleware does about lost messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// It sends them again.
    Reliable,
    /// Nothing.
    BestEffort,
}

/// The messages that a middleware keeps for a slow consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// All.
    KeepAll,
    /// The latest ones.
    KeepLast(u32),
}

/// The broker of one stream, on the supplier's host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BrokerPlan {
    /// The stream that the broker carries.
    pub stream: StreamPlan,
    /// The address of its host.
    pub address: IpAddr,
    /// The topic of the stream.
    pub topic: TopicPlan,
    /// Priority of the packets.
    #[serde(default)]
    pub network_priority: NetworkPriority,
    /// Scheduling of its threads.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// Path of the message's file to create. The program may create files beside it.
    pub body: PathBuf,
}

/// A naming service for the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamesPlan {
    /// The address of its host.
    pub address: IpAddr,
    /// Its port; 0 for any.
    #[serde(default)]
    pub port: u16,
    /// Path of the file that stores its bindings.
    pub store: PathBuf,
    /// Scheduling of its threads.
    #[serde(default)]
    pub scheduling: Scheduling,
}

/// The packet tap of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TapPlan {
    /// The host's name.
    pub host: String,
    /// Interfaces to capture on; empty for all that are up, `lo` included. On plain loopback: `lo`, and one tap for all
    /// hosts.
    #[serde(default)]
    pub interfaces: Vec<String>,
    /// TCP and UDP ports of the run. A packet is captured if either end has one of them.
    pub ports: Vec<u16>,
    /// Path of the pcapng file to create. Beside it, with the extension `json`, are the tap's counters and clock
    /// readings.
    pub capture: PathBuf,
    /// Maximum size of the capture in octets. Further packets are counted as dropped.
    pub size_bytes_max: u64,
    /// Scheduling of the capturing thread.
    #[serde(default)]
    pub scheduling: Scheduling,
}

/// One end of the exchanges that relate two clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockPlan {
    /// The address of its host, which it asks from or answers at.
    pub address: IpAddr,
    /// The endpoints of the parts that it asks. Without any it answers.
    #[serde(default)]
    pub peers: Vec<SocketAddr>,
}

/// The plan of a join: the files of one stream after its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinPlan {
    /// The stream, with the `schedule.start_ns` of `go`.
    pub stream: StreamPlan,
    /// The supplier's host.
    pub from: String,
    /// The supplier's record file.
    pub supplier_records: PathBuf,
    /// `event` only: the address that the channel listened on.
    #[serde(default)]
    pub channel_endpoint: Option<SocketAddr>,
    /// The destinations, in order of index.
    pub destinations: Vec<JoinDestination>,
    /// The captures, by host; empty if taps were not permitted.
    #[serde(default)]
    pub captures: Vec<CaptureAt>,
    /// The hosts that are other machines, by name.
    #[serde(default)]
    pub far: BTreeMap<String, FarHost>,
}

/// The files of one destination after the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinDestination {
    /// Index of the destination.
    pub index: u16,
    /// The host's name.
    pub host: String,
    /// The address that the consumer listened on: the `listening` of its `ready`. Without it no capture can be matched
    /// to the destination's messages.
    #[serde(default)]
    pub listening: Option<SocketAddr>,
    /// The consumer's record file.
    pub records: PathBuf,
}

/// The capture of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureAt {
    /// Hosts whose packets the capture contains: one, or all on plain loopback.
    pub hosts: Vec<String>,
    /// The pcapng file.
    pub capture: PathBuf,
}

/// Serializes durations as whole nanoseconds.
pub(crate) mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_meter::pacing::{Arrivals, Extent};

    use super::*;
    use crate::scheduling::SchedulingClass;

    #[test]
    fn a_plan_is_one_line_and_comes_back_equal() {
        let plan = PartPlan::Consumer(ConsumerPlan {
            stream: StreamPlan {
                flow: 3,
                name: "NAV".to_owned(),
                carrier: CarrierRef::new(&crate::carriers::corba::ONEWAY),
                body: BodyPlan::Typed {
                    idl_file: "/m/nav.idl".into(),
                    include_paths: vec![],
                    type_name: "Nav::NavData".to_owned(),
                    sequence_member: "sequence_number".to_owned(),
                },
                schedule: Schedule {
                    start_ns: 0,
                    offset: Duration::ZERO,
                    arrivals: Arrivals::Periodic {
                        period: Duration::from_millis(50),
                    },
                    extent: Extent::Count { messages: 400 },
                    warm_up: 20,
                },
                deadline: Duration::from_millis(10),
            },
            destination: 1,
            host: "SONAR".to_owned(),
            address: [10, 0, 0, 2].into(),
            channel: None,
            topic: None,
            handle_for: Duration::from_micros(7),
            is_measured: true,
            receive_buffer_bytes: None,
            scheduling: Scheduling {
                class: SchedulingClass::Fifo { priority: 20 },
                cpus: vec![1],
                lock_memory: true,
            },
            priority: Some(30_000),
            network_priority: NetworkPriority {
                dscp: Some(46),
                socket_priority: None,
            },
            records: "/r/0-1.records".into(),
        });
        let line = serde_json::to_string(&plan).expect("plans are plain data");
        assert!(!line.contains('\n'));
        assert!(line.starts_with(r#"{"role":"consumer""#));
        assert!(line.contains(r#""carrier":"corba-oneway""#));
        assert_eq!(
            serde_json::from_str::<PartPlan>(&line).expect("parses"),
            plan
        );
    }
}
