//! The test setup of one carrier: its channel if it needs one, receivers in threads, and senders to them.

use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use deckwatch_carrier::arrival::{Arrival, Handler, Shared};
use deckwatch_carrier::body::{Body, BodyPlan};
use deckwatch_carrier::carrier::{
    ChannelAt, ConnectTo, ListenAt, NetworkPriority, ReceiverSettings, SocketSettings,
};
use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_carrier::part;
use deckwatch_carrier::plan::{ChannelPlan, NamesPlan, PartPlan, StreamPlan};
use deckwatch_carrier::receiver::Receiver;
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_carrier::sender::Sender;
use deckwatch_carrier::talk::{PartCommand, PartEvent, Ready};
use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};

pub(crate) const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A call may block for at most ten deadlines.
const DEADLINE: Duration = Duration::from_millis(300);

/// A part that runs in a thread.
pub(crate) struct Playing {
    commands: PipeWriter,
    events: BufReader<PipeReader>,
    thread: JoinHandle<()>,
}

impl Playing {
    pub(crate) fn start(plan: PartPlan) -> Self {
        let (input, commands) = pipe().expect("a pipe");
        let (events, output) = pipe().expect("a pipe");
        let thread = std::thread::spawn(move || {
            part::run(&plan, BufReader::new(input), output).expect("played to its end");
        });
        Self {
            commands,
            events: BufReader::new(events),
            thread,
        }
    }

    pub(crate) fn next(&mut self) -> PartEvent {
        let mut line = String::new();
        self.events.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("an event")
    }

    pub(crate) fn ready(&mut self) -> Ready {
        match self.next() {
            PartEvent::Ready(ready) => ready,
            event => panic!("{event:?}"),
        }
    }

    pub(crate) fn command(&mut self, command: PartCommand) {
        writeln!(self.commands, "{command}").expect("the part reads");
    }

    /// Waits until the part is done, and joins its thread.
    pub(crate) fn finish(mut self) {
        while !matches!(self.next(), PartEvent::Done(_)) {}
        self.thread.join().expect("no panic");
    }
}

/// One stream of a carrier, and the directory of its files.
pub(crate) struct Stand {
    pub(crate) stream: StreamPlan,
    pub(crate) folder: PathBuf,
    channel: Option<ChannelAt>,
    services: Vec<Playing>,
    body: Body,
}

impl Stand {
    pub(crate) fn new(carrier: CarrierRef, size_bytes: u32) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("deckwatch-conformance-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
        let plan = BodyPlan::Octets { size_bytes };
        let stream = StreamPlan {
            flow: 0,
            name: "NAV".to_owned(),
            carrier,
            body: plan.clone(),
            schedule: Schedule {
                start_ns: 0,
                offset: Duration::ZERO,
                arrivals: Arrivals::Periodic {
                    period: Duration::from_millis(1),
                },
                extent: Extent::Count { messages: 50 },
                warm_up: 0,
            },
            deadline: DEADLINE,
        };
        let mut stand = Self {
            stream,
            folder,
            channel: None,
            services: Vec::new(),
            body: Body::new(&plan).expect("of a usual size"),
        };
        if carrier.needs().channel.is_some() {
            stand.start_channel();
        }
        stand
    }

    fn start_channel(&mut self) {
        let mut names = Playing::start(PartPlan::Names(NamesPlan {
            address: HOME,
            port: 0,
            store: self.folder.join("names"),
            scheduling: Scheduling::default(),
        }));
        let at = ChannelAt {
            names: names.ready().endpoint,
            name: "deckwatch/NAV".to_owned(),
        };
        let mut channel = Playing::start(PartPlan::Channel(ChannelPlan {
            stream: self.stream.clone(),
            address: HOME,
            channel: at.clone(),
            queue_len: None,
            network_priority: NetworkPriority::default(),
            scheduling: Scheduling::default(),
        }));
        channel.ready();
        self.channel = Some(at);
        self.services = vec![channel, names];
    }

    pub(crate) fn body(&self) -> Body {
        self.body.clone()
    }

    /// Starts a receiver in a thread of its own.
    pub(crate) fn listen(&self) -> End {
        self.listen_with(false)
    }

    /// As [`Self::listen`]. Without stamps, messages are taken in bulk.
    pub(crate) fn listen_with(&self, unstamped: bool) -> End {
        let serving = self.receiver(unstamped);
        serving.shared.in_bulk.store(unstamped, Ordering::Relaxed);
        let taken = Arc::clone(&serving.taken);
        serving.run(Box::new(Taking(taken)))
    }

    /// Creates a receiver.
    pub(crate) fn receiver(&self, unstamped: bool) -> Serving {
        let shared = Arc::new(Shared::default());
        let carrier = self.stream.carrier;
        let receiver = carrier
            .listen(&ListenAt {
                address: HOME,
                channel: self.channel.as_ref(),
                settings: ReceiverSettings {
                    unstamped,
                    ..ReceiverSettings::default()
                },
                scheduling: &Scheduling::default(),
                priority: None,
                network_priority: Default::default(),
                deadline: DEADLINE,
                body: &self.body,
                shared: &shared,
            })
            .unwrap_or_else(|error| panic!("{carrier}: {error}"));
        Serving {
            receiver,
            taken: Arc::default(),
            shared,
        }
    }

    pub(crate) fn connect(&self, end: &End) -> Sending {
        self.connect_with(end, SocketSettings::default())
    }

    pub(crate) fn connect_with(&self, end: &End, socket: SocketSettings) -> Sending {
        let carrier = self.stream.carrier;
        let sender = carrier
            .connect(&ConnectTo {
                address: HOME,
                host: "H",
                endpoint: &end.endpoint,
                channel: self.channel.as_ref(),
                network_priority: NetworkPriority::default(),
                socket,
                deadline: DEADLINE,
                body: &self.body,
            })
            .unwrap_or_else(|error| panic!("{carrier}: {error}"));
        Sending {
            sender,
            body: self.body.clone(),
        }
    }
}

/// A receiver that does not run yet.
pub(crate) struct Serving {
    pub(crate) receiver: Box<dyn Receiver>,
    taken: Arc<Taken>,
    shared: Arc<Shared>,
}

impl Serving {
    /// Runs it in a thread of its own.
    pub(crate) fn run(mut self, handler: Box<dyn Handler>) -> End {
        let mut ready = Ready::default();
        self.receiver.announce(&mut ready);
        let shared = Arc::clone(&self.shared);
        let taken = Arc::clone(&self.taken);
        let thread = std::thread::spawn(move || self.receiver.receive_all(handler, &self.shared));
        End {
            endpoint: ready.endpoint,
            taken,
            shared,
            thread,
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        for mut service in self.services.drain(..) {
            service.command(PartCommand::Stop);
            service.finish();
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// A sender with its message.
pub(crate) struct Sending {
    sender: Box<dyn Sender>,
    body: Body,
}

impl Sending {
    /// Returns true if the message was accepted.
    pub(crate) fn send(&mut self, sequence: u64) -> bool {
        self.body.set_sequence(sequence);
        let accepted = self.sender.send(sequence, &self.body).is_ok();
        self.sender.flush();
        while self.sender.collect(&mut |_| {}) {}
        accepted
    }

    pub(crate) fn flush(&mut self) {
        self.sender.flush();
    }

    /// Sends the first of these messages whole. Returns how many.
    pub(crate) fn send_many(&mut self, sequences: Range<u64>) -> u64 {
        let sent = self.sender.send_many(sequences, &mut self.body);
        while self.sender.backlog().is_some() {
            self.sender.flush();
            std::thread::yield_now();
        }
        while self.sender.collect(&mut |_| {}) {}
        sent.expect("accepted")
    }

    pub(crate) fn answers(
        &self,
        settings: ReceiverSettings,
        body: &Body,
    ) -> Option<Box<dyn Receiver>> {
        self.sender.answers(settings, body)
    }
}

/// A receiver in a thread.
pub(crate) struct End {
    endpoint: String,
    pub(crate) taken: Arc<Taken>,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl End {
    /// Stops the receiver. Returns the sequence numbers that it received.
    pub(crate) fn stop(self) -> Vec<u64> {
        self.taken.hold(false);
        self.shared.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic");
        assert_eq!(self.shared.malformed.load(Ordering::Relaxed), 0);
        self.taken.sequences()
    }
}

/// The messages that a receiver has received.
#[derive(Default)]
pub(crate) struct Taken {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    sequences: Vec<u64>,
    /// While true, the handler blocks the receiver's thread.
    is_held: bool,
}

impl Taken {
    pub(crate) fn sequences(&self) -> Vec<u64> {
        self.state.lock().expect("no panic").sequences.clone()
    }

    /// Blocks the receiver's thread at its next message, or no more.
    pub(crate) fn hold(&self, is_held: bool) {
        self.state.lock().expect("no panic").is_held = is_held;
        self.changed.notify_all();
    }

    /// Waits until `count` messages have arrived; for a carrier that may lose messages, for at most a second.
    pub(crate) fn wait(&self, count: usize, may_lose: bool) {
        let limit = Duration::from_secs(if may_lose { 1 } else { 60 });
        let state = self.state.lock().expect("no panic");
        let is_short = |state: &mut State| state.sequences.len() < count;
        let waited = self.changed.wait_timeout_while(state, limit, is_short);
        let (state, result) = waited.expect("no panic");
        let came = state.sequences.len();
        assert!(may_lose || !result.timed_out(), "{came} of {count} came");
    }
}

pub(crate) struct Taking(pub(crate) Arc<Taken>);

impl Handler for Taking {
    fn handle(&mut self, arrival: Arrival) {
        let state = self.0.state.lock().expect("no panic");
        let released = self.0.changed.wait_while(state, |state| state.is_held);
        let mut state = released.expect("no panic");
        state.sequences.push(arrival.sequence);
        self.0.changed.notify_all();
    }
}
