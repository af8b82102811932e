//! Makes the plan of each process of a run.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deckwatch_carrier::carrier::ChannelAt;
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::plan::{
    BrokerPlan, ChannelPlan, ConsumerPlan, DestinationPlan, NamesPlan, SupplierPlan, TapPlan,
    TopicPlan,
};
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_load::limits::LIFETIME_S_MAX;
use deckwatch_load::{
    Buffer, CountPlan, CpuPlan, CpuWork, LoadPlan, NetPlan, Pace, SinkPlan, Work,
};
use deckwatch_testbed::Testbed;

use super::station::Station;
use crate::limits::{CAPTURE_SIZE_MAX, LOAD_GRACE, READY_PATIENCE};
use crate::mission::{Flow, LoadWork, Messages, Mission};
use crate::stream::Stream;

/// Makes plans for the processes of one run.
pub(super) struct Planner<'r> {
    pub(super) mission: &'r Mission,
    /// The testbed of the emulated hosts, if there are any.
    pub(super) testbed: Option<&'r Testbed>,
    /// All hosts, in the mission's order.
    pub(super) stations: Vec<Station>,
    pub(super) work: &'r Path,
    /// The endpoint of the naming service of each host that has one, by host.
    pub(super) names: Vec<Option<String>>,
    /// The endpoint of the broker of each stream that has one, by stream.
    pub(super) brokers: Vec<Option<String>>,
    /// The name of the run, which no other run of this machine has.
    pub(super) run: String,
}

impl<'r> Planner<'r> {
    pub(super) fn flow(&self, stream: &Stream) -> &'r Flow {
        &self.mission.flows[stream.flow]
    }

    pub(super) fn host(&self, index: usize) -> &Station {
        &self.stations[index]
    }

    fn address(&self, host: usize) -> IpAddr {
        self.host(host).address
    }

    /// A second channel of the same flow has its carrier as the kind of its name.
    pub(super) fn channel_at(&self, stream: &Stream) -> Option<ChannelAt> {
        let has_channel = |carrier: &&CarrierRef| carrier.needs().channel.is_some();
        has_channel(&&stream.plan.carrier).then_some(())?;
        let flow = self.flow(stream);
        let names = self.names[flow.from].clone()?;
        let mut name = format!("deckwatch/{}", stream.plan.name);
        if flow.carriers.iter().find(has_channel) != Some(&stream.plan.carrier) {
            name = format!("{name}.{}", stream.plan.carrier.name());
        }
        Some(ChannelAt { names, name })
    }

    /// Returns the topic of a stream over an external carrier.
    fn topic(&self, stream: &Stream) -> Option<TopicPlan> {
        stream.plan.carrier.external()?;
        let flow = self.flow(stream);
        let index = stream.plan.flow;
        Some(TopicPlan {
            name: format!("deckwatch-{}-{index}", self.run),
            broker: self.brokers[usize::from(index)].clone(),
            reliability: flow.reliability,
            history: flow.history,
        })
    }

    /// Returns the processes of a load, with their names and hosts: sinks first.
    pub(super) fn load(&self, index: usize, run_s: u64) -> Vec<(String, usize, LoadPlan)> {
        let load = &self.mission.loads[index];
        let lifetime =
            (Duration::from_secs(run_s) + LOAD_GRACE).min(Duration::from_secs(LIFETIME_S_MAX));
        let name = |host: usize| &self.host(host).name;
        let here = name(load.host);
        let one = |work| {
            let plan = LoadPlan { work, lifetime };
            vec![(format!("load on {here}"), load.host, plan)]
        };
        match load.work {
            LoadWork::Loops {
                processes,
                count,
                sleep,
            } => {
                let work = Work::Count(CountPlan {
                    iterations: count,
                    sleep,
                });
                let one = |number| {
                    let plan = LoadPlan {
                        work: work.clone(),
                        lifetime,
                    };
                    (format!("load {number} on {here}"), load.host, plan)
                };
                (1..=processes).map(one).collect()
            }
            LoadWork::Share {
                share,
                fifo_priority,
            } => {
                let work = Work::Cpu(CpuPlan {
                    work: CpuWork::Share { share },
                    // Its process is bound to those of the host.
                    processors: Vec::new(),
                    fifo_priority,
                });
                one(work)
            }
            LoadWork::Stress(ref plan) => one(Work::Stress(plan.clone())),
            LoadWork::Net { to, ref messages } => {
                let port = SINK_PORT + u16::try_from(index).unwrap_or(0);
                let at = SocketAddr::new(self.address(to), port);
                let plan = |work| LoadPlan { work, lifetime };
                let label = format!("sink at {} of the load of {here}", name(to));
                let sink = (label, to, plan(Work::Sink(SinkPlan { at })));
                let label = format!("load of {here} to {}", name(to));
                let source = Work::Net(self.source(at, messages));
                vec![sink, (label, load.host, plan(source))]
            }
        }
    }

    /// Returns the plan of a load that sends messages.
    fn source(&self, to: SocketAddr, messages: &Messages) -> NetPlan {
        NetPlan {
            to,
            protocol: messages.protocol,
            size_octets: messages.size_octets,
            pace: messages.pace,
            pattern: messages.pattern,
            link: self.mission.network.link(),
            buffer: if messages.pace == Pace::Flood {
                Buffer::Max
            } else {
                Buffer::Default
            },
            interface: None,
            patience: READY_PATIENCE,
        }
    }

    pub(super) fn names(&self, host: usize) -> NamesPlan {
        NamesPlan {
            address: self.address(host),
            port: 0,
            store: self.work.join(format!("names-{host}.store")),
            scheduling: self.service_scheduling(host),
        }
    }

    /// Returns the scheduling of the naming service. It is called only before the schedule starts, so that it needs the
    /// host's processors but no scheduling class.
    fn service_scheduling(&self, host: usize) -> Scheduling {
        Scheduling {
            cpus: self.mission.hosts[host].processors.clone(),
            ..Scheduling::default()
        }
    }

    /// Returns `None` if the naming service's endpoint is not known yet.
    pub(super) fn channel(&self, stream: &Stream) -> Option<ChannelPlan> {
        let flow = self.flow(stream);
        Some(ChannelPlan {
            stream: stream.plan.clone(),
            address: self.address(flow.from),
            channel: self.channel_at(stream)?,
            queue_len: flow.channel_queue_len,
            network_priority: flow.network_priority,
            scheduling: flow.supplier_scheduling.clone(),
        })
    }

    /// Returns `None` if the stream's carrier has no broker.
    pub(super) fn broker(&self, stream: &Stream) -> Option<BrokerPlan> {
        let flow = self.flow(stream);
        let topic = self.topic(stream)?;
        stream.plan.carrier.needs().broker.then(|| BrokerPlan {
            stream: stream.plan.clone(),
            address: self.address(flow.from),
            topic,
            network_priority: flow.network_priority,
            scheduling: flow.supplier_scheduling.clone(),
            body: self.work.join(format!("{}-broker.body", stream.plan.flow)),
        })
    }

    pub(super) fn consumer(&self, stream: &Stream, destination: usize) -> ConsumerPlan {
        let flow = self.flow(stream);
        let host = flow.to[destination];
        ConsumerPlan {
            stream: stream.plan.clone(),
            destination: destination as u16,
            host: self.mission.hosts[host].name.clone(),
            address: self.address(host),
            channel: self.channel_at(stream),
            topic: self.topic(stream),
            handle_for: flow.handle_for,
            is_measured: flow.worst_case.is_some(),
            receive_buffer_bytes: flow.receive_buffer_bytes,
            scheduling: flow.consumer_scheduling[destination].clone(),
            priority: flow.priority,
            network_priority: flow.network_priority,
            records: self.consumer_records(stream, destination),
        }
    }

    /// Returns the supplier's plan. `endpoints` are those in the consumers' `ready`, in order.
    pub(super) fn supplier(&self, stream: &Stream, endpoints: &[String]) -> SupplierPlan {
        let flow = self.flow(stream);
        let destination = |(index, endpoint): (u16, &String)| DestinationPlan {
            index,
            host: self.mission.hosts[flow.to[usize::from(index)]].name.clone(),
            endpoint: endpoint.clone(),
        };
        SupplierPlan {
            stream: stream.plan.clone(),
            address: self.address(flow.from),
            destinations: (0..).zip(endpoints).map(destination).collect(),
            channel: self.channel_at(stream),
            topic: self.topic(stream),
            priority: flow.priority,
            network_priority: flow.network_priority,
            scheduling: flow.supplier_scheduling.clone(),
            records: self.supplier_records(stream),
        }
    }

    pub(super) fn tap(&self, host: usize, ports: Vec<u16>) -> TapPlan {
        let host = self.host(host);
        TapPlan {
            host: host.name.clone(),
            interfaces: host.interfaces(),
            ports,
            capture: self.capture(&host.name),
            size_bytes_max: CAPTURE_SIZE_MAX,
            scheduling: Scheduling::default(),
        }
    }

    pub(super) fn supplier_records(&self, stream: &Stream) -> PathBuf {
        self.work
            .join(format!("{}-supplier.records", stream.plan.flow))
    }

    pub(super) fn consumer_records(&self, stream: &Stream, destination: usize) -> PathBuf {
        self.work
            .join(format!("{}-{destination}.records", stream.plan.flow))
    }

    pub(super) fn capture(&self, host: &str) -> PathBuf {
        self.work.join(format!("{host}.pcapng"))
    }

    /// Returns the name of a stream, for example `NAV over udp`.
    pub(super) fn title(stream: &Stream) -> String {
        format!("{} over {}", stream.plan.name, stream.plan.carrier)
    }
}

/// The port of the first load's sink; those of others follow.
const SINK_PORT: u16 = 7007;
