//! Parts that run in threads of a test, with the plans of a small stream.

use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
use deckwatch_os::clock;

use super::run;
use crate::body::BodyPlan;
use crate::carrier::{ChannelAt, NetworkPriority};
use crate::carriers::{CarrierRef, corba, event, tcp, udp};
use crate::plan::*;
use crate::scheduling::Scheduling;
use crate::scratch::Scratch;
use crate::talk::{Done, PartCommand, PartEvent, Ready};

pub(crate) const UDP: CarrierRef = CarrierRef::new(&udp::Udp);
pub(crate) const TCP: CarrierRef = CarrierRef::new(&tcp::Tcp);
pub(crate) const CORBA: CarrierRef = CarrierRef::new(&corba::TWO_WAY);
pub(crate) const ONEWAY: CarrierRef = CarrierRef::new(&corba::ONEWAY);
pub(crate) const EVENT: CarrierRef = CarrierRef::new(&event::COS);
pub(crate) const RT_EVENT: CarrierRef = CarrierRef::new(&event::REAL_TIME);

/// A part that runs in a thread.
pub(crate) struct Playing {
    pub(crate) commands: PipeWriter,
    pub(crate) events: BufReader<PipeReader>,
    pub(crate) thread: JoinHandle<bool>,
}

impl Playing {
    pub(crate) fn start(plan: PartPlan) -> Self {
        let (input, commands) = pipe().expect("a pipe");
        let (events, output) = pipe().expect("a pipe");
        let thread = std::thread::spawn(move || run(&plan, BufReader::new(input), output).is_ok());
        Self {
            commands,
            events: BufReader::new(events),
            thread,
        }
    }

    pub(crate) fn hear(&mut self) -> PartEvent {
        let mut line = String::new();
        self.events.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("an event")
    }

    pub(crate) fn ready(&mut self) -> Ready {
        match self.hear() {
            PartEvent::Ready(ready) => ready,
            event => panic!("{event:?}"),
        }
    }

    pub(crate) fn tell(&mut self, command: PartCommand) {
        writeln!(self.commands, "{command}").expect("told");
    }

    /// Reads the remaining events up to `done`.
    pub(crate) fn done(mut self) -> Done {
        loop {
            match self.hear() {
                PartEvent::Progress(_) => {}
                PartEvent::Done(done) => {
                    assert!(self.thread.join().expect("no panic"));
                    return done;
                }
                event => panic!("{event:?}"),
            }
        }
    }
}

pub(crate) const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(crate) fn stream(carrier: CarrierRef, size_bytes: u32, messages: u64) -> StreamPlan {
    StreamPlan {
        flow: 2,
        name: "NAV".to_owned(),
        carrier,
        body: BodyPlan::Octets { size_bytes },
        schedule: Schedule {
            start_ns: 0,
            offset: Duration::ZERO,
            arrivals: Arrivals::Periodic {
                period: Duration::from_millis(1),
            },
            extent: Extent::Count { messages },
            warm_up: 5,
        },
        deadline: Duration::from_secs(1),
    }
}

pub(crate) fn consumer(stream: &StreamPlan, destination: u16, scratch: &Scratch) -> PartPlan {
    PartPlan::Consumer(ConsumerPlan {
        stream: stream.clone(),
        destination,
        host: format!("H{destination}"),
        address: HOME,
        channel: None,
        topic: None,
        handle_for: Duration::ZERO,
        is_measured: false,
        receive_buffer_bytes: None,
        scheduling: Scheduling::default(),
        priority: None,
        network_priority: NetworkPriority::default(),
        records: scratch.path(&format!("consumer-{destination}")),
    })
}

pub(crate) fn supplier(stream: &StreamPlan, endpoints: &[String], scratch: &Scratch) -> PartPlan {
    let destinations = endpoints
        .iter()
        .zip(0..)
        .map(|(endpoint, index)| DestinationPlan {
            index,
            host: format!("H{index}"),
            endpoint: endpoint.clone(),
        });
    PartPlan::Supplier(SupplierPlan {
        stream: stream.clone(),
        address: HOME,
        destinations: destinations.collect(),
        channel: None,
        topic: None,
        priority: None,
        network_priority: NetworkPriority::default(),
        scheduling: Scheduling::default(),
        records: scratch.path("supplier"),
    })
}

pub(crate) fn soon() -> PartCommand {
    PartCommand::Go {
        start_ns: clock::monotonic_ns() + 5_000_000,
    }
}

/// Gives the stream the navigation data type of the papers.
pub(crate) fn of_nav(stream: StreamPlan) -> StreamPlan {
    let body = BodyPlan::Typed {
        idl_file: std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../idl/deckwatch/nav.idl"),
        include_paths: Vec::new(),
        type_name: "Nav::NavData".to_owned(),
        sequence_member: "sequence_number".to_owned(),
    };
    StreamPlan { body, ..stream }
}

/// Starts the naming service and the event channel of a stream over `event`, both ready. Returns them, where to find
/// the channel, and the address that it listens on.
pub(crate) fn channel(
    stream: &StreamPlan,
    queue_len: Option<u32>,
    scratch: &Scratch,
) -> ([Playing; 2], ChannelAt, SocketAddr) {
    let mut names = Playing::start(PartPlan::Names(NamesPlan {
        address: HOME,
        port: 0,
        store: scratch.path("names"),
        scheduling: Scheduling::default(),
    }));
    let at = ChannelAt {
        names: names.ready().endpoint,
        name: "deckwatch/fleet/NAV".to_owned(),
    };
    let mut channel = Playing::start(PartPlan::Channel(ChannelPlan {
        stream: stream.clone(),
        address: HOME,
        channel: at.clone(),
        queue_len,
        network_priority: NetworkPriority::default(),
        scheduling: Scheduling::default(),
    }));
    let listening = channel.ready().listening.expect("it listens");
    ([names, channel], at, listening)
}

/// Sets in a part's plan where its event channel is found.
pub(crate) fn finding(mut plan: PartPlan, at: Option<&ChannelAt>) -> PartPlan {
    match &mut plan {
        PartPlan::Consumer(plan) => plan.channel = at.cloned(),
        PartPlan::Supplier(plan) => plan.channel = at.cloned(),
        _ => {}
    }
    plan
}
