//! The carrier `iceoryx2`: publish and subscribe in shared memory. The messages cross no network: both hosts must be
//! on one machine, really or emulated. Each consumer has a service of its own, so that a full queue of one delays no
//! other, and is an error of its own messages.

use std::ffi::CStr;
use std::fmt::Display;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use deckwatch_adapter::{
    Arrivals, Carrier, Plan, STOP_LOOK, Sent, announce, honoured, ignored, linger, stopped,
};
use iceoryx2::config::Config;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::{BackpressureAction, SendError};
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::event::PortFactory as Events;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory as Messages;

type Service = ipc_threadsafe::Service;

/// How long a supplier waits for its consumers.
const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// Time between two tries to deliver to a consumer that has no room. Without it the supplier would spin.
const FULL_LOOK: Duration = Duration::from_micros(100);
/// Octets and messages that are kept for one consumer, unless the flow says how many messages.
const KEPT_OCTETS: usize = 8 << 20;
const KEPT_MIN: usize = 4;
const KEPT_MAX: usize = 4096;

/// The services of a stream: the messages, and the events that wake the consumers.
struct Stream {
    messages: Messages<Service, [u8], ()>,
    events: Events<Service>,
    answers: Events<Service>,
    _node: Node<Service>,
}

fn failed(what: &str, error: impl Display) -> String {
    format!(
        "iceoryx2 cannot {what}: {error}. Check the room in /dev/shm and the permissions of /tmp/iceoryx2."
    )
}

impl Stream {
    fn open(plan: Plan, name: &str) -> Result<Self, String> {
        set_log_level(LogLevel::Fatal);
        // Not the machine's configuration, which may differ. The node removes what killed nodes have left.
        let config = Config::default();
        let node = NodeBuilder::new()
            .config(&config)
            .signal_handling_mode(SignalHandlingMode::Disabled)
            .create::<Service>()
            .map_err(|error| failed("start", error))?;
        let name = ServiceName::new(name).map_err(|error| failed("name its service", error))?;
        let fit = (KEPT_OCTETS / plan.size_bytes().max(1)).clamp(KEPT_MIN, KEPT_MAX);
        let kept = plan.history_depth().unwrap_or(fit).min(KEPT_MAX);
        let messages = node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .max_publishers(1)
            .max_subscribers(1)
            .subscriber_max_buffer_size(kept)
            .enable_safe_overflow(!waits(plan))
            .open_or_create()
            .map_err(|error| failed("open its service", error))?;
        let events = |name: &ServiceName| {
            node.service_builder(name)
                .event()
                .max_listeners(1)
                .open_or_create()
                .map_err(|error| failed("open its events", error))
        };
        let answers = ServiceName::new(&format!("{}-answers", name.as_str()))
            .map_err(|error| failed("name its service", error))?;
        let (events, answers) = (events(&name)?, events(&answers)?);
        report(plan);
        Ok(Self {
            messages,
            events,
            answers,
            _node: node,
        })
    }
}

/// Returns whether a consumer that has no room delays the send up to its bound. Otherwise it loses its oldest message,
/// and nobody learns of it.
fn waits(plan: Plan) -> bool {
    plan.history_depth().is_none()
}

fn report(plan: Plan) {
    if plan.is_reliable() && waits(plan) {
        honoured(c"reliability");
    } else {
        ignored(c"reliability");
    }
    honoured(c"history");
    if plan.is_supplier() {
        honoured(c"deadline");
    }
    // Nothing crosses a network.
    for setting in [
        c"priority",
        c"dscp",
        c"socket-priority",
        c"receive-buffer",
        c"idl-type",
    ] {
        ignored(setting);
    }
}

/// The event after the last message; the consumer answers when it has taken all.
const END: EventId = EventId::new(1);

struct Sender {
    publisher: Publisher<Service, [u8], ()>,
    notifier: Notifier<Service>,
    /// The consumer's answer to [`END`].
    answers: Listener<Service>,
    _stream: Stream,
}

impl Drop for Sender {
    /// Shared memory goes with the publisher: waits until the consumer has taken the messages.
    fn drop(&mut self) {
        if self.notifier.notify_with_custom_event_id(END).is_ok() {
            let _ = self.answers.timed_wait(|_| {}, linger());
        }
    }
}

struct Receiver {
    subscriber: Subscriber<Service, [u8], ()>,
    listener: Listener<Service>,
    answer: Notifier<Service>,
    _stream: Stream,
}

struct Iceoryx2;

impl Carrier for Iceoryx2 {
    const NAME: &'static CStr = c"iceoryx2";
    type Sender = Sender;
    type Receiver = Receiver;

    fn connect(plan: Plan, slot: usize) -> Result<Sender, String> {
        let (host, endpoint) = plan.destination(slot);
        let stream = Stream::open(plan, endpoint)?;
        let until = Instant::now() + CONNECT_WAIT;
        while stream.messages.dynamic_config().number_of_subscribers() == 0 {
            if stopped() || Instant::now() > until {
                return Err(format!(
                    "iceoryx2 has not found the consumer on {host} in 10 s. It works within one machine: check that all \
                     hosts of flow {} are on this one.",
                    plan.flow()
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let bound = plan.send_bound();
        let publisher = stream
            .messages
            .publisher_builder()
            .initial_max_slice_len(plan.size_bytes())
            .set_backpressure_handler(move |full| {
                if full.elapsed_time < bound {
                    std::thread::sleep(FULL_LOOK);
                    BackpressureAction::Retry
                } else {
                    BackpressureAction::DiscardDataAndFail
                }
            })
            .create()
            .map_err(|error| failed("publish", error))?;
        let notifier = stream
            .events
            .notifier_builder()
            .create()
            .map_err(|error| failed("notify", error))?;
        let answers = stream
            .answers
            .listener_builder()
            .create()
            .map_err(|error| failed("listen", error))?;
        Ok(Sender {
            publisher,
            notifier,
            answers,
            _stream: stream,
        })
    }

    fn send(sender: &mut Sender, octets: &[u8]) -> Sent {
        let Ok(sample) = sender.publisher.loan_slice_uninit(octets.len()) else {
            return Sent::BacklogFull;
        };
        let sent = match sample.write_from_slice(octets).send() {
            Ok(_) => Sent::Sent,
            Err(SendError::UnableToDeliver) => Sent::TimedOut,
            Err(_) => Sent::Refused,
        };
        // Also after a failure: an earlier event may have been lost with it.
        match sender.notifier.notify() {
            Ok(_) => sent,
            Err(_) => Sent::Refused,
        }
    }

    fn listen(plan: Plan) -> Result<Receiver, String> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH);
        let name = format!(
            "{}-{}-{}",
            plan.topic(),
            std::process::id(),
            clock.map_or(0, |since| since.as_nanos())
        );
        let stream = Stream::open(plan, &name)?;
        let listener = stream
            .events
            .listener_builder()
            .create()
            .map_err(|error| failed("listen", error))?;
        let subscriber = stream
            .messages
            .subscriber_builder()
            .create()
            .map_err(|error| failed("subscribe", error))?;
        announce(&name, None);
        let answer = stream
            .answers
            .notifier_builder()
            .create()
            .map_err(|error| failed("notify", error))?;
        Ok(Receiver {
            subscriber,
            listener,
            answer,
            _stream: stream,
        })
    }

    fn receive(receiver: &mut Receiver, arrivals: &Arrivals) {
        while !stopped() {
            let mut ended = false;
            // An error leaves the messages for the next look.
            let _ = receiver
                .listener
                .timed_wait(|event| ended |= event.id == END, STOP_LOOK);
            while let Ok(Some(sample)) = receiver.subscriber.receive() {
                arrivals.arrived(sample.payload());
                if stopped() {
                    return;
                }
            }
            if ended {
                // A supplier that gets no answer waits for its bound.
                let _ = receiver.answer.notify();
            }
        }
    }
}

fn main() -> ExitCode {
    deckwatch_adapter::run::<Iceoryx2>()
}
