//! One stream of a carrier, with its parts.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
use deckwatch_os::clock;
use deckwatch_os::namespace::GroupSignal;

use super::process::{Launcher, Part, Spot};
use super::{DEADLINE, LOOK, LOSS_PATIENCE, PATIENCE, may_lose};
use crate::body::BodyPlan;
use crate::carrier::{ChannelAt, NetworkPriority};
use crate::carriers::CarrierRef;
use crate::plan::{
    BrokerPlan, ChannelPlan, ConsumerPlan, DestinationPlan, NamesPlan, PartPlan, StreamPlan,
    SupplierPlan, TopicPlan,
};
use crate::record::{ConsumerRecord, ReadRecords, SupplierRecord};
use crate::scheduling::Scheduling;
use crate::talk::PartCommand;

/// The messages of a trial.
#[derive(Clone, Copy)]
pub(super) struct Traffic {
    pub(super) size_bytes: u32,
    pub(super) messages: u64,
    /// Messages in front of these, which connections and caches warm up with.
    pub(super) warm_up: u64,
    pub(super) period: Duration,
}

impl Traffic {
    pub(super) const fn of(size_bytes: u32, messages: u64, period_ms: u64) -> Self {
        Self {
            size_bytes,
            messages,
            warm_up: 0,
            period: Duration::from_millis(period_ms),
        }
    }
}

/// A stream with its parts. Dropping it kills them and removes its files.
pub(super) struct Trial<'l> {
    launcher: &'l Launcher,
    /// The supplier with its channel or broker, and the consumers.
    spots: [Spot; 2],
    stream: StreamPlan,
    messages: u64,
    /// Of the packets of all parts.
    network_priority: NetworkPriority,
    /// The channel and its naming service, or the broker.
    services: Vec<Part>,
    channel: Option<ChannelAt>,
    topic: Option<TopicPlan>,
    consumers: Vec<Consumer>,
    supplier: Option<Part>,
    /// Dropped last.
    folder: Folder,
}

struct Consumer {
    part: Part,
    endpoint: String,
    records: PathBuf,
    /// Whether the supplier sends to it.
    is_destination: bool,
    is_dead: bool,
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("deckwatch-check-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => Ok(Self(folder)),
            Err(error) => Err(format!(
                "The folder {} cannot be made ({error}).",
                folder.display()
            )),
        }
    }

    fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

impl<'l> Trial<'l> {
    /// A stream on loopback.
    pub(super) fn new(
        launcher: &'l Launcher,
        carrier: CarrierRef,
        traffic: Traffic,
    ) -> Result<Self, String> {
        let unmarked = NetworkPriority::default();
        Self::between(launcher, carrier, (traffic, unmarked), Default::default())
    }

    /// A stream between two hosts. Starts the channel or the broker, if the carrier needs one.
    pub(super) fn between(
        launcher: &'l Launcher,
        carrier: CarrierRef,
        (traffic, network_priority): (Traffic, NetworkPriority),
        spots: [Spot; 2],
    ) -> Result<Self, String> {
        let folder = Folder::new()?;
        let schedule = Schedule {
            start_ns: 0,
            offset: Duration::ZERO,
            arrivals: Arrivals::Periodic {
                period: traffic.period,
            },
            extent: Extent::Count {
                messages: traffic.messages,
            },
            warm_up: traffic.warm_up,
        };
        let mut trial = Self {
            launcher,
            spots,
            stream: StreamPlan {
                flow: 0,
                name: "CHECK".to_owned(),
                carrier,
                body: BodyPlan::Octets {
                    size_bytes: traffic.size_bytes,
                },
                schedule,
                deadline: DEADLINE,
            },
            messages: traffic.warm_up + traffic.messages,
            network_priority,
            services: Vec::new(),
            channel: None,
            topic: None,
            consumers: Vec::new(),
            supplier: None,
            folder,
        };
        if carrier.needs().channel.is_some() {
            trial.start_channel()?;
        }
        if carrier.external().is_some() {
            trial.start_topic()?;
        }
        Ok(trial)
    }

    /// Starts a part on the supplier's host or, for a consumer, on the consumers'.
    fn start(&self, label: &str, plan: &PartPlan) -> Result<Part, String> {
        let spot = &self.spots[usize::from(matches!(plan, PartPlan::Consumer(_)))];
        Part::start(self.launcher, &spot.placement, label, plan)
    }

    fn start_channel(&mut self) -> Result<(), String> {
        let names = PartPlan::Names(NamesPlan {
            address: self.spots[0].address,
            port: 0,
            store: self.folder.0.join("names"),
            scheduling: Scheduling::default(),
        });
        let mut names = self.start("naming service", &names)?;
        let at = ChannelAt {
            names: names.ready()?.endpoint,
            name: "deckwatch/CHECK".to_owned(),
        };
        let channel = PartPlan::Channel(ChannelPlan {
            stream: self.stream.clone(),
            address: self.spots[0].address,
            channel: at.clone(),
            queue_len: None,
            network_priority: self.network_priority,
            scheduling: Scheduling::default(),
        });
        let mut channel = self.start("event channel", &channel)?;
        channel.ready()?;
        self.channel = Some(at);
        self.services = vec![channel, names];
        Ok(())
    }

    fn start_topic(&mut self) -> Result<(), String> {
        let mut topic = TopicPlan {
            name: self.folder.name(),
            broker: None,
            reliability: None,
            history: None,
        };
        if self.stream.carrier.needs().broker {
            let broker = PartPlan::Broker(BrokerPlan {
                stream: self.stream.clone(),
                address: self.spots[0].address,
                topic: topic.clone(),
                network_priority: self.network_priority,
                scheduling: Scheduling::default(),
                body: self.folder.0.join("broker.body"),
            });
            let mut broker = self.start("broker", &broker)?;
            topic.broker = Some(broker.ready()?.endpoint);
            self.services.push(broker);
        }
        self.topic = Some(topic);
        Ok(())
    }

    /// Starts further consumers, and waits until they are ready.
    pub(super) fn listen(&mut self, count: usize) -> Result<(), String> {
        let first = self.consumers.len();
        for index in first..first + count {
            let records = self.folder.0.join(format!("consumer-{index}.records"));
            let plan = PartPlan::Consumer(ConsumerPlan {
                stream: self.stream.clone(),
                destination: index as u16,
                host: format!("H{index}"),
                address: self.spots[1].address,
                channel: self.channel.clone(),
                topic: self.topic.clone(),
                handle_for: Duration::ZERO,
                is_measured: false,
                receive_buffer_bytes: None,
                scheduling: Scheduling::default(),
                priority: None,
                network_priority: self.network_priority,
                records: records.clone(),
            });
            self.consumers.push(Consumer {
                part: self.start(&format!("consumer {index}"), &plan)?,
                endpoint: String::new(),
                records,
                is_destination: self.supplier.is_none(),
                is_dead: false,
            });
        }
        for consumer in &mut self.consumers[first..] {
            consumer.endpoint = consumer.part.ready()?.endpoint;
            // It missed the start.
            if !consumer.is_destination {
                let start_ns = clock::monotonic_ns();
                consumer.part.tell(PartCommand::Go { start_ns });
            }
        }
        Ok(())
    }

    /// Starts the supplier to all consumers, and waits until it is ready.
    pub(super) fn connect(&mut self) -> Result<(), String> {
        let destinations = (0..)
            .zip(&self.consumers)
            .map(|(index, consumer)| DestinationPlan {
                index,
                host: format!("H{index}"),
                endpoint: consumer.endpoint.clone(),
            });
        let plan = PartPlan::Supplier(SupplierPlan {
            stream: self.stream.clone(),
            address: self.spots[0].address,
            destinations: destinations.collect(),
            channel: self.channel.clone(),
            topic: self.topic.clone(),
            priority: None,
            network_priority: self.network_priority,
            scheduling: Scheduling::default(),
            records: self.folder.0.join("supplier.records"),
        });
        let mut supplier = self.start("supplier", &plan)?;
        supplier.ready()?;
        self.supplier = Some(supplier);
        Ok(())
    }

    fn supplier(&mut self) -> Result<&mut Part, String> {
        self.supplier
            .as_mut()
            .ok_or_else(|| "There is no supplier.".to_owned())
    }

    pub(super) fn go(&mut self) -> Result<(), String> {
        let start_ns = clock::monotonic_ns() + START_LEAD_NS;
        let go = PartCommand::Go { start_ns };
        for consumer in &mut self.consumers {
            consumer.part.tell(go);
        }
        self.services.iter_mut().for_each(|part| part.tell(go));
        self.supplier()?.tell(go);
        Ok(())
    }

    pub(super) fn supplier_done(&mut self) -> Result<(), String> {
        self.supplier()?.done()
    }

    /// Stops a consumer's process, or lets it go on.
    pub(super) fn pause(&self, index: usize, is_paused: bool) -> Result<(), String> {
        let signal = if is_paused {
            GroupSignal::Stop
        } else {
            GroupSignal::Continue
        };
        self.consumers[index].part.signal(signal)
    }

    pub(super) fn kill(&mut self, index: usize) -> Result<(), String> {
        self.consumers[index].is_dead = true;
        self.consumers[index].part.signal(GroupSignal::Kill)
    }

    /// Waits until a consumer has as many messages as were accepted for it. It returns earlier if some may be lost.
    pub(super) fn arrived(&self, index: usize, may_lose: bool) -> Result<(), String> {
        let patience = if may_lose { LOSS_PATIENCE } else { PATIENCE };
        let until = Instant::now() + patience;
        let wanted = self.accepted(index)?.len();
        while self.taken(index)?.len() < wanted && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Reads the supplier's records.
    pub(super) fn sent(&self) -> Result<ReadRecords<SupplierRecord>, String> {
        let records = ReadRecords::supplier(&self.folder.0.join("supplier.records"));
        records.map_err(|error| error.to_string())
    }

    /// Reads the records of a consumer.
    pub(super) fn received(&self, index: usize) -> Result<ReadRecords<ConsumerRecord>, String> {
        let records = ReadRecords::consumer(&self.consumers[index].records);
        records.map_err(|error| error.to_string())
    }

    /// Returns the messages whose send was accepted for a consumer.
    fn accepted(&self, index: usize) -> Result<Vec<u64>, String> {
        let records = self.sent()?;
        let of_consumer = (0..).zip(records.of_destination(index as u16));
        let sent = of_consumer.filter(|(_, record)| record.sent_ns != 0 && record.error == 0);
        Ok(sent.map(|(sequence, _)| sequence).collect())
    }

    fn taken(&self, index: usize) -> Result<Vec<u64>, String> {
        let records = self.received(index)?.records;
        Ok(records.iter().map(|record| record.sequence).collect())
    }

    /// Stops all parts that live.
    pub(super) fn stop_parts(&mut self) -> Result<(), String> {
        for consumer in self
            .consumers
            .iter_mut()
            .filter(|consumer| !consumer.is_dead)
        {
            consumer.part.tell(PartCommand::Stop);
            consumer.part.done()?;
        }
        for service in &mut self.services {
            service.tell(PartCommand::Stop);
            service.done()?;
        }
        Ok(())
    }

    /// Stops all parts that live. Returns what they recorded.
    pub(super) fn stop(mut self) -> Result<Ends, String> {
        self.stop_parts()?;
        let ends = (0..self.consumers.len()).map(|index| {
            let accepted = if self.consumers[index].is_destination {
                self.accepted(index)?
            } else {
                Vec::new()
            };
            Ok((accepted, self.taken(index)?))
        });
        Ok(Ends {
            ends: ends.collect::<Result<_, String>>()?,
            messages: self.messages,
            may_lose: may_lose(self.stream.carrier),
        })
    }

    /// Runs the whole stream to `count` consumers that all live, and checks each.
    pub(super) fn whole(mut self, count: usize) -> Result<(), String> {
        self.listen(count)?;
        self.connect()?;
        self.go()?;
        self.supplier_done()?;
        let loses = may_lose(self.stream.carrier);
        for index in 0..count {
            self.arrived(index, loses)?;
        }
        let ends = self.stop()?;
        for index in 0..count {
            let accepted = ends.ends[index].0.len() as u64;
            if accepted != ends.messages {
                let messages = ends.messages;
                return Err(format!(
                    "Of {messages} messages to consumer {index}, {accepted} were accepted."
                ));
            }
            ends.delivered(index)?;
        }
        Ok(())
    }
}

/// What the parts recorded: for each consumer the messages that were accepted for it, and those that it received.
pub(super) struct Ends {
    ends: Vec<(Vec<u64>, Vec<u64>)>,
    messages: u64,
    may_lose: bool,
}

impl Ends {
    /// Checks that each accepted message arrived once and in order; for a carrier that may lose messages, that each
    /// arrival was sent.
    pub(super) fn delivered(&self, index: usize) -> Result<(), String> {
        let (accepted, taken) = &self.ends[index];
        if accepted.is_empty() {
            return Err(format!("No message to consumer {index} was accepted."));
        }
        if self.may_lose {
            if taken.is_empty() {
                return Err(format!("Nothing arrived at consumer {index}."));
            }
            return self.sent(index);
        }
        if accepted == taken {
            return Ok(());
        }
        let lost: Vec<&u64> = accepted.iter().filter(|one| !taken.contains(one)).collect();
        Err(match lost.first() {
            Some(first) => format!(
                "Of {} messages accepted for consumer {index}, {} did not arrive; the first is {first}.",
                accepted.len(),
                lost.len()
            ),
            None => format!(
                "Consumer {index} got messages twice, or in another order: {}.",
                beginning(taken)
            ),
        })
    }

    /// As [`Ends::in_order`], of the messages whose send was accepted.
    pub(super) fn accepted_in_order(&self, index: usize) -> Result<(), String> {
        let (accepted, taken) = &self.ends[index];
        let is_accepted = |sequence: &u64| accepted.contains(sequence);
        self.ordered(index, taken.iter().copied().filter(is_accepted).collect())
    }

    /// Checks that what arrived was sent, in order if the carrier promises it.
    pub(super) fn in_order(&self, index: usize) -> Result<(), String> {
        self.ordered(index, self.ends[index].1.clone())
    }

    fn ordered(&self, index: usize, taken: Vec<u64>) -> Result<(), String> {
        if !self.may_lose && !taken.is_sorted() {
            let taken = beginning(&taken);
            return Err(format!(
                "Messages overtook others at consumer {index}: {taken}."
            ));
        }
        self.sent(index)
    }

    fn sent(&self, index: usize) -> Result<(), String> {
        let (_, taken) = &self.ends[index];
        match taken.iter().find(|&&sequence| sequence >= self.messages) {
            Some(sequence) => Err(format!(
                "Message {sequence} arrived at consumer {index}, and was never sent."
            )),
            None => Ok(()),
        }
    }
}

fn beginning(taken: &[u64]) -> String {
    let words: Vec<String> = taken.iter().take(32).map(u64::to_string).collect();
    words.join(" ")
}

/// Time from `go` to the start: each part reads it before.
const START_LEAD_NS: i64 = 100_000_000;
