//! The carrier `zenoh`: publish and subscribe over TCP. Each consumer has a session of its own, so that one that does
//! not read blocks no other. Nothing is discovered: a supplier connects to the consumers' endpoints.

use std::ffi::CStr;
use std::fmt::Display;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use deckwatch_adapter::{
    Arrivals, Carrier, Plan, STOP_LOOK, Sent, announce, honoured, ignored, stopped,
};
use zenoh::handlers::{FifoChannel, FifoChannelHandler};
use zenoh::matching::MatchingStatus;
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::{Locality, Sample};
use zenoh::{Config, Session, Wait};

/// How long a supplier waits for each consumer.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How many ports a consumer tries.
const LISTEN_TRIES: usize = 3;
/// Messages between zenoh's thread and the consumer's; zenoh stops reading when it is full.
const RECEIVED_MAX: usize = 1024;
/// The largest message that zenoh puts together.
const MESSAGE_SIZE_MAX: usize = 2 << 20;
/// Zenoh's priorities for data: 1 is the highest, 7 the lowest.
const LEVELS: u32 = 7;

fn failed(what: &str, error: impl Display) -> String {
    format!("zenoh cannot {what}: {error}.")
}

fn open(plan: Plan, listen: &[String], connect: &[String]) -> Result<Session, String> {
    let mut config = Config::default();
    let octets = plan.receive_buffer_bytes();
    let bound_us = plan.send_bound().as_micros().to_string();
    let endpoints = |all: &[String]| format!("{all:?}");
    let settings = [
        ("mode", "\"peer\"".to_owned()),
        ("listen/endpoints", endpoints(listen)),
        ("connect/endpoints", endpoints(connect)),
        ("listen/exit_on_failure", "true".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
        // Zenoh connects again within 0.5 s after a stopped consumer runs again.
        (
            "connect/retry",
            "{ period_init_ms: 50, period_max_ms: 500, period_increase_factor: 2 }".to_owned(),
        ),
        (
            "transport/link/tx/queue/congestion_control/drop/wait_before_drop",
            bound_us.clone(),
        ),
        (
            "transport/link/tx/queue/congestion_control/drop/max_wait_before_drop_fragments",
            bound_us,
        ),
        (
            "transport/link/tcp/so_rcvbuf",
            octets.map_or("null".to_owned(), |octets| octets.to_string()),
        ),
        (
            "transport/link/rx/max_message_size",
            MESSAGE_SIZE_MAX.to_string(),
        ),
    ];
    for (key, value) in settings {
        let set = config.insert_json5(key, &value);
        set.map_err(|error| failed(&format!("be configured with {key}"), error))?;
    }
    zenoh::open(config)
        .wait()
        .map_err(|error| failed(&format!("start on {}", plan.address()), error))
}

fn report(plan: Plan) {
    // Zenoh drops a message if its queue stays full. It has no setting for history: only TCP's buffers keep messages.
    if plan.is_reliable() {
        ignored(c"reliability");
    } else {
        honoured(c"reliability");
    }
    ignored(c"history");
    ignored(c"socket-priority");
    ignored(c"idl-type");
    if plan.is_supplier() {
        for setting in [c"deadline", c"priority", c"dscp"] {
            honoured(setting);
        }
    } else {
        honoured(c"receive-buffer");
    }
}

struct Sender {
    publisher: Publisher<'static>,
    matched: Arc<AtomicBool>,
    bound: Duration,
    _session: Session,
}

struct Receiver {
    subscriber: Subscriber<FifoChannelHandler<Sample>>,
    _session: Session,
}

/// Returns zenoh's priority for a CORBA priority of 0 to 32767.
fn priority(corba: u16) -> Priority {
    let level = LEVELS - u32::from(corba) * LEVELS / 32768;
    u8::try_from(level)
        .ok()
        .and_then(|level| Priority::try_from(level).ok())
        .unwrap_or_default()
}

fn publish(plan: Plan, session: &Session) -> zenoh::Result<(Publisher<'static>, Arc<AtomicBool>)> {
    let publisher = session
        .declare_publisher(plan.topic().to_owned())
        .priority(plan.priority().map_or(Priority::DEFAULT, priority))
        // A message waits for room up to the bound. With `Block`, zenoh would then close the connection, and drop all
        // later messages without an error.
        .congestion_control(CongestionControl::Drop)
        .express(true)
        .allowed_destination(Locality::Remote)
        .wait()?;
    let matched = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&matched);
    publisher
        .matching_listener()
        .callback(move |status: MatchingStatus| seen.store(status.matching(), Ordering::Release))
        .background()
        .wait()?;
    if publisher.matching_status().wait()?.matching() {
        matched.store(true, Ordering::Release);
    }
    Ok((publisher, matched))
}

/// Opens a session that listens on a free port. Zenoh does not say which port it has chosen itself.
fn listening(plan: Plan) -> Result<(Session, SocketAddr), String> {
    let mut reason = String::new();
    for _ in 0..LISTEN_TRIES {
        let free = TcpListener::bind((plan.address(), 0)).and_then(|probe| probe.local_addr());
        let place = free.map_err(|error| {
            format!(
                "zenoh cannot listen on {}: {error}. Check that this host has the address.",
                plan.address()
            )
        })?;
        match open(plan, &[format!("tcp/{place}")], &[]) {
            Ok(session) => return Ok((session, place)),
            // Another program has taken the port.
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

struct Zenoh;

impl Carrier for Zenoh {
    const NAME: &'static CStr = c"zenoh";
    type Sender = Sender;
    type Receiver = Receiver;

    fn connect(plan: Plan, slot: usize) -> Result<Sender, String> {
        let (host, endpoint) = plan.destination(slot);
        let mut to = format!("tcp/{endpoint}#bind={}:0", plan.address());
        if let Some(dscp) = plan.dscp() {
            // Zenoh means the whole octet of the IP header.
            to += &format!(";dscp={}", u32::from(dscp) << 2);
        }
        let session = open(plan, &[], &[to])?;
        let (publisher, matched) =
            publish(plan, &session).map_err(|error| failed("publish", error))?;
        let until = Instant::now() + CONNECT_WAIT;
        while !matched.load(Ordering::Acquire) {
            if stopped() || Instant::now() > until {
                return Err(format!(
                    "zenoh has not found the consumer on {host} ({endpoint}) in 10 s. Check that it runs, and the route \
                     to it."
                ));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        report(plan);
        Ok(Sender {
            publisher,
            matched,
            bound: plan.send_bound(),
            _session: session,
        })
    }

    fn send(sender: &mut Sender, octets: &[u8]) -> Sent {
        if !sender.matched.load(Ordering::Acquire) {
            return Sent::Disconnected;
        }
        let begin = Instant::now();
        let put = sender.publisher.put(octets).wait();
        // Zenoh reports no error for a message that has found no room in time. While the queue stays full, it drops
        // further ones at once, and nobody learns of them.
        if begin.elapsed() >= sender.bound {
            return Sent::TimedOut;
        }
        match put {
            Ok(()) => Sent::Sent,
            Err(_) => Sent::Refused,
        }
    }

    fn listen(plan: Plan) -> Result<Receiver, String> {
        let (session, place) = listening(plan)?;
        let subscriber = session
            .declare_subscriber(plan.topic())
            .with(FifoChannel::new(RECEIVED_MAX))
            .wait()
            .map_err(|error| failed("subscribe", error))?;
        report(plan);
        announce(&place.to_string(), Some(place));
        Ok(Receiver {
            subscriber,
            _session: session,
        })
    }

    fn receive(receiver: &mut Receiver, arrivals: &Arrivals) {
        while !stopped() {
            if let Ok(Some(sample)) = receiver.subscriber.recv_timeout(STOP_LOOK) {
                arrivals.arrived(&sample.payload().to_bytes());
            }
        }
    }
}

fn main() -> ExitCode {
    deckwatch_adapter::run::<Zenoh>()
}
