//! The plan of each part of a run: one line of JSON on its standard input.
//!
//! The order in which a coordinator starts the parts of a stream follows from what each needs to know of the others:
//!
//! 1. `names` (for `event`), whose [`Ready`](crate::talk::Ready) gives its `corbaloc:`;
//! 2. `channel` (for `event`), which binds itself there;
//! 3. `consumer`s, whose `ready` gives the endpoint that the supplier sends to (for `event` they have connected
//!    themselves to the channel);
//! 4. `tap`s, one a host, with the ports of these endpoints (so that TCP connections of suppliers are captured from
//!    their first packet);
//! 5. `supplier`s;
//! 6. `go START_NS` to each part, when every part has written `ready`.
//!
//! A supplier is `done` by itself after its last message; the others at `stop`, which comes after the drain.
//!
//! Record files and captures belong on a memory file system where there is one: the write-back of a disk file can hold
//! up the thread that writes a record.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use deckwatch_meter::pacing::Schedule;
use serde::{Deserialize, Serialize};

use crate::body::BodyPlan;
use crate::carrier::{ChannelAt, NetworkPriority};
use crate::carriers::CarrierRef;
use crate::scheduling::Scheduling;

/// What one part is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case")]
pub enum PartPlan {
    /// Sends a stream by its schedule.
    Supplier(SupplierPlan),
    /// Receives a stream at one destination.
    Consumer(ConsumerPlan),
    /// The event channel of one `event` stream.
    Channel(ChannelPlan),
    /// The naming service in which channels are found.
    Names(NamesPlan),
    /// Captures the run's packets on one host.
    Tap(TapPlan),
}

/// One flow over one carrier: the same in the plans of all its parts, and in the join.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// Index of the stream in the result document's `flows`, and in each sample.
    pub flow: u16,
    /// For people: the flow's name in the mission file.
    pub name: String,
    /// What it goes over.
    pub carrier: CarrierRef,
    /// What a message carries.
    pub body: BodyPlan,
    /// When each message is due; its `start_ns` is replaced by that of `go`.
    pub schedule: Schedule,
    /// Deadline after due, for the live count of late messages.
    #[serde(rename = "deadline_ns", with = "nanoseconds")]
    pub deadline: Duration,
}

/// The supplier of one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SupplierPlan {
    /// What it sends.
    pub stream: StreamPlan,
    /// The address of its host, from which it sends.
    pub address: IpAddr,
    /// The destinations, in the order of the result document. Without endpoints if the carrier has a channel.
    pub destinations: Vec<DestinationPlan>,
    /// `event` only: where its channel is found.
    #[serde(default)]
    pub channel: Option<ChannelAt>,
    /// Priority of its packets.
    #[serde(default)]
    pub network_priority: NetworkPriority,
    /// Scheduling of the sending threads.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// The record file to make.
    pub records: PathBuf,
}

/// One destination, as its supplier sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DestinationPlan {
    /// Index of the destination in the stream's `destinations`, and in each sample. Destinations of one stream are
    /// numbered from 0 without gaps.
    pub index: u16,
    /// The host's name.
    pub host: String,
    /// What the consumer's `ready` gave as endpoint: `address:port` or a stringified IOR; empty for `event`.
    #[serde(default)]
    pub endpoint: String,
}

/// The consumer of one stream at one destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsumerPlan {
    /// What it receives.
    pub stream: StreamPlan,
    /// Index of the destination within the stream.
    pub destination: u16,
    /// The host's name.
    pub host: String,
    /// The address of its host, at which it listens, at a port of its own choice.
    pub address: IpAddr,
    /// `event` only: where its channel is found.
    #[serde(default)]
    pub channel: Option<ChannelAt>,
    /// Processor time that the application takes for each message.
    #[serde(default, rename = "handle_for_ns", with = "nanoseconds")]
    pub handle_for: Duration,
    /// Octets asked for as the socket's receive buffer; none for the default of this program.
    #[serde(default)]
    pub receive_buffer_bytes: Option<u32>,
    /// Scheduling of the receiving thread.
    #[serde(default)]
    pub scheduling: Scheduling,
    /// The record file to make.
    pub records: PathBuf,
}

/// The event channel of one stream, on the supplier's host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChannelPlan {
    /// What it passes on.
    pub stream: StreamPlan,
    /// The address of its host.
    pub address: IpAddr,
    /// Where it makes itself known.
    pub channel: ChannelAt,
    /// Events that wait for one consumer before the oldest is dropped; none for the channel's own default.
    #[serde(default)]
    pub queue_len: Option<u32>,
    /// Scheduling of its threads.
    #[serde(default)]
    pub scheduling: Scheduling,
}

/// A naming service for the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NamesPlan {
    /// The address of its host.
    pub address: IpAddr,
    /// Its port; 0 for any.
    #[serde(default)]
    pub port: u16,
    /// The file in which it keeps its bindings.
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
    /// TCP and UDP ports of the run, of either end of a packet.
    pub ports: Vec<u16>,
    /// The pcapng file to make. Beside it, with the extension `json`, come the tap's own counters and clock readings.
    pub capture: PathBuf,
    /// Octets at which the capture stops growing and packets are counted as dropped.
    pub size_bytes_max: u64,
    /// Scheduling of the capturing thread.
    #[serde(default)]
    pub scheduling: Scheduling,
}

/// All that one stream left behind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinPlan {
    /// The stream, `schedule.start_ns` as it was in `go`.
    pub stream: StreamPlan,
    /// The supplier's host.
    pub from: String,
    /// The supplier's record file.
    pub supplier_records: PathBuf,
    /// `event` only: where the channel listened.
    #[serde(default)]
    pub channel_endpoint: Option<SocketAddr>,
    /// Each destination, in order of index.
    pub destinations: Vec<JoinDestination>,
    /// The captures, by host; none where taps were not permitted.
    #[serde(default)]
    pub captures: Vec<CaptureAt>,
}

/// What one destination left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinDestination {
    /// Index of the destination.
    pub index: u16,
    /// The host's name.
    pub host: String,
    /// Where the consumer listened: the `listening` of its `ready`. Without it no capture shows the destination's
    /// messages.
    #[serde(default)]
    pub listening: Option<SocketAddr>,
    /// The consumer's record file.
    pub records: PathBuf,
}

/// The capture of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureAt {
    /// Hosts whose packets it holds: one, or all on plain loopback.
    pub hosts: Vec<String>,
    /// The pcapng file.
    pub capture: PathBuf,
}

/// Durations as whole nanoseconds.
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
            handle_for: Duration::from_micros(7),
            receive_buffer_bytes: None,
            scheduling: Scheduling {
                class: SchedulingClass::Fifo { priority: 20 },
                cpus: vec![1],
                lock_memory: true,
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
