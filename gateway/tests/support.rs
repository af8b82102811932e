//! A channel with a consumer, a gateway beside it, and zenoh sessions.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deckwatch_cdr::Any;
use deckwatch_event::RtecEventData;
use deckwatch_event::rt::{RtChannelOptions, RtEventChannel};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, ProxyPushConsumerRef, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_gateway::{Config, Counts, Gateway};
use deckwatch_orb::{Orb, SystemException};
use zenoh::Wait as _;

/// Time limit of every step of a test, on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The designator of an event of any kind.
const NULL: i32 = 14;

/// A channel, a supplier, and a consumer of all events. The reference is in a file.
pub(crate) struct Channel {
    orb: Orb,
    pub(crate) served: RtEventChannel,
    supplier: ProxyPushConsumerRef,
    events: Receiver<Event>,
    pub(crate) ior_file: PathBuf,
}

impl Channel {
    pub(crate) fn start(folder: &Path, name: &str) -> Self {
        let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
        let orb = orb.build().expect("an ORB");
        orb.root_poa()
            .unwrap()
            .the_poa_manager()
            .activate()
            .unwrap();
        let served = RtEventChannel::start(&orb, RtChannelOptions::default()).expect("a channel");
        let (told, events) = channel();
        let poa = orb.root_poa().unwrap();
        let taker = PushConsumerSkeleton::new(Taker(Mutex::new(told)));
        let taker = poa.activate_object(Arc::new(taker)).unwrap();
        let taker = PushConsumerRef::unchecked_narrow(poa.id_to_reference(&taker).unwrap());
        let reference = served.reference();
        let consumers = reference.for_consumers().unwrap().expect("an admin");
        let proxy = consumers.obtain_push_supplier().unwrap().expect("a proxy");
        let all = ConsumerQOS {
            dependencies: vec![Dependency {
                event: event(NULL, 0, 0, b""),
                rt_info: 0,
            }],
            is_gateway: false,
        };
        proxy
            .connect_push_consumer(Some(&taker), &all)
            .expect("connected");
        let suppliers = reference.for_suppliers().unwrap().expect("an admin");
        let supplier = suppliers.obtain_push_consumer().unwrap().expect("a proxy");
        let qos = SupplierQOS::default();
        supplier
            .connect_push_supplier(None, &qos)
            .expect("connected");
        let ior_file = folder.join(format!("{name}.ior"));
        let text = orb.object_to_string(reference.object());
        // A reader never sees a part of it.
        std::fs::write(ior_file.with_extension("new"), text).expect("written");
        std::fs::rename(ior_file.with_extension("new"), &ior_file).expect("renamed");
        Self {
            orb,
            served,
            supplier,
            events,
            ior_file,
        }
    }

    pub(crate) fn push(&self, event: Event) {
        self.supplier.push(&[event]).expect("sent");
    }

    /// The next event that the consumer gets.
    pub(crate) fn next(&self) -> Event {
        self.events.recv_timeout(PATIENCE).expect("an event")
    }

    /// The number of consumers in the channel, ours among them.
    pub(crate) fn consumers(&self) -> usize {
        self.served.consumers().len()
    }

    /// Ends the channel as a process that dies does: nobody is notified.
    pub(crate) fn die(self) {
        self.orb.shutdown(true).expect("it ends");
    }
}

struct Taker(Mutex<Sender<Event>>);

impl PushConsumer for Taker {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        let told = self.0.lock().expect("whole");
        for event in data {
            // The test may have all that it waits for.
            let _ = told.send(event.clone());
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

pub(crate) fn event(event_type: i32, source: i32, ttl: i32, payload: &[u8]) -> Event {
    Event {
        header: EventHeader {
            r#type: event_type,
            source,
            ttl,
            creation_time: 99,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: RtecEventData {
            pad1: 0,
            payload: payload.to_vec(),
            any_value: Any::empty(),
        },
    }
}

/// Starts a gateway at a channel, whose mappings are in TOML, and waits until it is connected.
pub(crate) fn gateway(channel: &Channel, zenoh: &str, maps: &str) -> Gateway {
    let gateway = Gateway::start(config(channel, zenoh, maps), |_| {}).expect("a gateway");
    until("the gateway is connected", || {
        gateway.counts().connects == 1
    });
    gateway
}

/// Starts two channels, `near` and `far`.
pub(crate) fn pair(folder: &Path) -> (Channel, Channel) {
    let start = |name| Channel::start(folder, name);
    (start("near"), start("far"))
}

/// Starts a gateway at each of two channels, with a link between both.
pub(crate) fn linked(
    (near, far): (&Channel, &Channel),
    near_maps: &str,
    far_maps: &str,
) -> (Gateway, Gateway) {
    let endpoint = free_endpoint();
    (
        gateway(near, &format!("listen = [{endpoint:?}]"), near_maps),
        gateway(far, &format!("connect = [{endpoint:?}]"), far_maps),
    )
}

pub(crate) fn config(channel: &Channel, zenoh: &str, maps: &str) -> Config {
    Config::read(&config_file(channel, zenoh, maps)).expect("a config")
}

/// Writes a file beside the channel's reference.
pub(crate) fn config_file(channel: &Channel, zenoh: &str, maps: &str) -> PathBuf {
    let name = channel.ior_file.file_name().expect("a name");
    let text = format!("channel = {name:?}\nlisten = \"127.0.0.1:0\"\n[zenoh]\n{zenoh}\n{maps}",);
    let file = channel.ior_file.with_extension("toml");
    std::fs::write(&file, text).expect("written");
    file
}

/// A free port: nobody else asks for it between here and the use, in tests on one host with ports drawn at random.
pub(crate) fn free_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("tcp/{}", listener.local_addr().expect("bound"))
}

/// A zenoh session of a program that is no gateway.
pub(crate) fn session(mode: &str, listen: &[&str], connect: &[&str]) -> zenoh::Session {
    let mut config = zenoh::Config::default();
    let mut set = |key: &str, value: String| config.insert_json5(key, &value).expect("valid");
    set("mode", format!("{mode:?}"));
    set("listen/endpoints", format!("{listen:?}"));
    set("connect/endpoints", format!("{connect:?}"));
    set("scouting/multicast/enabled", "false".to_owned());
    zenoh::open(config).wait().expect("a session")
}

/// Waits until another thread has made the condition true.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < limit, "{what}: not within {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// Pushes events with growing payloads until one has crossed, so that both sides of zenoh know of each other.
pub(crate) fn acquaint(from: &Channel, to: &Channel, event_type: i32) {
    until("the first event crosses", || {
        from.push(event(event_type, 1, 1, b"hello"));
        to.events.recv_timeout(Duration::from_millis(50)).is_ok()
    });
    // Those behind it, up to a last one.
    from.push(event(event_type, 1, 1, b"last"));
    while to.next().data.payload != b"last" {}
    for own in from.events.try_iter() {
        assert_eq!(own.header.r#type, event_type);
    }
}

#[track_caller]
pub(crate) fn only(counts: &Counts) -> &deckwatch_gateway::MappingCounts {
    assert_eq!(counts.mappings.len(), 1);
    &counts.mappings[0]
}
