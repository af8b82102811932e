//! TAO's suppliers and consumers at our real-time channel, and ours at TAO's.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::RtecEventData;
use deckwatch_event::client::Connected;
use deckwatch_event::rt::{RtChannelOptions, RtEventChannel};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannelRef, Publication, SupplierAdminRef, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_orb::{Orb, SystemException};

use crate::common::{Running, run, scratch};
use crate::tao::Tao;

const COUNT: i32 = 5;
const PATIENCE: Duration = Duration::from_secs(60);

/// An event as TAO's program makes it: the payload has `number` octets, the value is `number`.
fn event(number: i32) -> Event {
    Event {
        header: EventHeader {
            r#type: 17,
            source: 3,
            ttl: 1,
            creation_time: 1_000 + u64::try_from(number).expect("not negative"),
            ..EventHeader::default()
        },
        data: RtecEventData {
            pad1: 0,
            payload: (0..number).map(|at| at as u8).collect(),
            any_value: Any::from_value(&(number as u32)).expect("a value"),
        },
    }
}

/// An ORB of ours that serves.
fn orb() -> Orb {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = builder.build().expect("an ORB");
    let poa = orb.root_poa().expect("an adapter");
    poa.the_poa_manager().activate().expect("active");
    orb
}

fn channel_of(orb: &Orb, reference: &str) -> EventChannelRef {
    let object = orb.string_to_object(reference).expect("an IOR");
    let channel = EventChannelRef::narrow(&object.expect("not nil")).expect("an answer");
    channel.expect("a real-time channel")
}

struct Taker(Mutex<Sender<Event>>);

impl PushConsumer for Taker {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        let told = self.0.lock().expect("whole");
        for event in data {
            let _ = told.send(event.clone()); // The test may have all that it waits for.
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Connects a consumer of ours.
fn consume(orb: &Orb, channel_reference: &str) -> Receiver<Event> {
    let (told, events) = channel();
    let poa = orb.root_poa().expect("an adapter");
    let servant = PushConsumerSkeleton::new(Taker(Mutex::new(told)));
    let id = poa.activate_object(Arc::new(servant)).expect("active");
    let own = poa.id_to_reference(&id).expect("a reference");
    let admin = channel_of(orb, channel_reference).for_consumers();
    let proxy = admin
        .expect("an answer")
        .expect("not nil")
        .obtain_push_supplier();
    let proxy = proxy.expect("an answer").expect("not nil");
    let qos = ConsumerQOS {
        dependencies: vec![Dependency {
            event: event(0),
            rt_info: 0,
        }],
        is_gateway: false,
    };
    let own = PushConsumerRef::unchecked_narrow(own);
    proxy
        .connect_push_consumer(Some(&own), &qos)
        .expect("connected");
    events
}

/// Pushes the events by a supplier of ours.
fn supply(orb: &Orb, channel_reference: &str) {
    let admin = channel_of(orb, channel_reference).for_suppliers();
    // Dropped, it waits until the channel has taken the one-ways, and disconnects.
    let proxy = Connected::obtain(admin, SupplierAdminRef::obtain_push_consumer, PATIENCE);
    let proxy = proxy.expect("a proxy");
    let qos = SupplierQOS {
        publications: vec![Publication {
            event: event(0),
            ..Publication::default()
        }],
        is_gateway: false,
    };
    proxy.connect_push_supplier(None, &qos).expect("connected");
    for number in 0..COUNT {
        proxy.push(&[event(number)]).expect("sent");
    }
}

#[track_caller]
fn assert_all_come(events: &Receiver<Event>) {
    let came = (0..COUNT).map(|_| events.recv_timeout(PATIENCE).expect("an event"));
    assert_are_those_sent(&came.collect::<Vec<_>>());
}

/// TAO's channel connects to a consumer at its first push to it, and serves the pushes of suppliers meanwhile: those
/// overtake the first.
#[track_caller]
fn assert_all_come_by_taos_channel(events: &Receiver<Event>) {
    let came = (0..COUNT).map(|_| events.recv_timeout(PATIENCE).expect("an event"));
    let mut came: Vec<_> = came.collect();
    came.sort_by_key(|event| event.header.creation_time);
    assert_are_those_sent(&came);
}

#[track_caller]
fn assert_are_those_sent(all: &[Event]) {
    for (number, came) in (0..COUNT).zip(all) {
        let sent = event(number);
        assert_eq!(came.header, sent.header);
        assert_eq!(came.data.payload, sent.data.payload);
        assert_eq!(came.data.any_value, sent.data.any_value);
    }
}

/// What TAO's consumer prints of the events.
#[track_caller]
fn assert_all_are_printed(consumer: &mut Running) {
    for number in 0..COUNT {
        let line = consumer.line_with("event ");
        let time = 1_000 + number;
        assert_eq!(line, format!("event 17 3 1 {time} {number} {number}"));
    }
}

fn tao_consumer(program: &Path, reference: &str) -> Running {
    let count = COUNT.to_string();
    let mut consumer = Running::start(Command::new(program).args(["consume", reference, &count]));
    consumer.line_with("connected");
    consumer
}

fn tao_supplies(program: &Path, reference: &str) {
    run(Command::new(program).args(["supply", reference, &COUNT.to_string()]));
}

/// Starts TAO's channel; returns its reference.
fn tao_channel(tao: &Tao, test: &str) -> (Running, String) {
    let file: PathBuf = scratch(test).join("channel.ior");
    let mut command = tao.event_service();
    command.args(["-x", "-s", "none", "-o"]).arg(&file);
    let process = Running::start(command.args(["-ORBListenEndpoints", "iiop://127.0.0.1:0"]));
    let limit = std::time::Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.starts_with("IOR:") {
            return (process, text.trim().to_owned());
        }
        assert!(
            std::time::Instant::now() < limit,
            "no reference in {}",
            file.display()
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_tao_supplier_and_a_tao_consumer_use_our_channel() {
    let Some(tao) = Tao::find() else { return };
    let program = tao.event_program("tao/events/client.cc");
    let (server, user) = (orb(), orb());
    let served = RtEventChannel::start(&server, RtChannelOptions::default()).expect("a channel");
    let reference = server.object_to_string(served.reference().object());
    let ours = consume(&user, &reference);
    let mut theirs = tao_consumer(&program, &reference);
    tao_supplies(&program, &reference);
    assert_all_come(&ours);
    assert_all_are_printed(&mut theirs);
}

#[test]
fn a_tao_consumer_gets_our_events_by_our_channel() {
    let Some(tao) = Tao::find() else { return };
    let program = tao.event_program("tao/events/client.cc");
    let (server, user) = (orb(), orb());
    let served = RtEventChannel::start(&server, RtChannelOptions::default()).expect("a channel");
    let reference = server.object_to_string(served.reference().object());
    let mut theirs = tao_consumer(&program, &reference);
    supply(&user, &reference);
    assert_all_are_printed(&mut theirs);
}

#[test]
fn our_supplier_and_our_consumer_use_taos_channel() {
    let Some(tao) = Tao::find() else { return };
    let (_process, reference) = tao_channel(&tao, "tao-event-channel");
    let user = orb();
    let ours = consume(&user, &reference);
    supply(&user, &reference);
    assert_all_come_by_taos_channel(&ours);
}

#[test]
fn our_consumer_gets_a_tao_suppliers_events_by_taos_channel() {
    let Some(tao) = Tao::find() else { return };
    let program = tao.event_program("tao/events/client.cc");
    let (_process, reference) = tao_channel(&tao, "tao-event-supplier");
    let user = orb();
    let ours = consume(&user, &reference);
    tao_supplies(&program, &reference);
    assert_all_come_by_taos_channel(&ours);
}
