//! Raw suppliers and consumers do not allocate between `go` and the end of a schedule. The test counts allocations, and
//! checks that the count detects a handler that allocates.
//!
//! This test has a file of its own: the counting allocator serves the whole process, so only one test may run in it.

#[path = "../../orb/tests/support/counting.rs"]
mod counting;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_carrier::arrival::{Arrival, Handler, HandlerPlan, Recorder, Shared};
use deckwatch_carrier::body::{Body, BodyPlan};
use deckwatch_carrier::carrier::{
    Carrier, ConnectTo, ListenAt, NetworkPriority, ReceiverSettings, SocketSettings,
};
use deckwatch_carrier::carriers::CARRIERS;
use deckwatch_carrier::record::RecordFile;
use deckwatch_carrier::scheduling::Scheduling;
use deckwatch_carrier::send_loop::SendLoop;
use deckwatch_carrier::talk::Ready;
use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
use deckwatch_os::clock;

/// A handler that allocates, to prove that the count detects it.
struct Wasteful(Recorder);

impl Handler for Wasteful {
    fn handle(&mut self, arrival: Arrival) {
        drop(std::hint::black_box(Box::new(arrival)));
        self.0.handle(arrival);
    }
}

const FIRST: u64 = 10;
const MESSAGES: u64 = 200;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn schedule() -> Schedule {
    Schedule {
        start_ns: 0,
        offset: Duration::ZERO,
        arrivals: Arrivals::Periodic {
            period: Duration::from_micros(500),
        },
        extent: Extent::Count { messages: MESSAGES },
        warm_up: 0,
    }
}

fn body() -> Body {
    let idl_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../idl/deckwatch/nav.idl");
    let plan = BodyPlan::Typed {
        idl_file,
        include_paths: Vec::new(),
        type_name: "Nav::NavData".to_owned(),
        sequence_member: "sequence_number".to_owned(),
    };
    Body::new(&plan).expect("a type")
}

/// Returns the number of allocations in the whole process, both ends, while a schedule is sent and received.
fn allocations_of(carrier: &dyn Carrier, wasteful: bool) -> usize {
    let folder = std::env::temp_dir().join(format!("deckwatch-allocations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let file = RecordFile::supplier(&folder.join("supplier"), 0, 1, MESSAGES, 384).expect("made");
    let (_page, sent) = file.into_parts();
    let file =
        RecordFile::consumer(&folder.join("consumer"), 0, 0, FIRST + MESSAGES, 384).expect("made");
    let (_page, received) = file.into_parts();
    let (shared, body) = (Arc::new(Shared::default()), body());
    let mut receiver = carrier
        .listen(&ListenAt {
            address: HOME,
            channel: None,
            settings: ReceiverSettings::default(),
            scheduling: &Scheduling::default(),
            priority: None,
            network_priority: Default::default(),
            deadline: Duration::from_secs(1),
            body: &body,
            shared: &shared,
        })
        .expect("listens");
    let mut ready = Ready::default();
    receiver.announce(&mut ready);
    let sender = carrier
        .connect(&ConnectTo {
            address: HOME,
            host: "H0",
            endpoint: &ready.endpoint,
            channel: None,
            network_priority: NetworkPriority::default(),
            socket: SocketSettings::default(),
            deadline: Duration::from_secs(1),
            body: &body,
        })
        .expect("connects");
    let recorder = Recorder::new(
        received,
        &schedule(),
        Duration::from_secs(1),
        HandlerPlan {
            is_measured: true,
            ..HandlerPlan::default()
        },
        Arc::clone(&shared),
    );
    let handler: Box<dyn Handler> = if wasteful {
        Box::new(Wasteful(recorder))
    } else {
        Box::new(recorder)
    };
    let mut send_loop = SendLoop::new(body, Arc::clone(&shared));
    send_loop.push(sender, sent);
    let counted = std::thread::scope(|scope| {
        let (receiver, worker) = (&mut receiver, &shared);
        let receiving = scope.spawn(move || receiver.receive_all(handler, worker));
        let mut run = |messages, received| {
            let extent = Extent::Count { messages };
            send_loop.run(&Schedule {
                start_ns: clock::monotonic_ns(),
                extent,
                ..schedule()
            });
            while shared.received.load(Ordering::Relaxed) < received {
                std::thread::yield_now();
            }
        };
        // When the first few messages have arrived, the threads are running and the connections are open.
        run(FIRST, FIRST);
        let before = counting::allocations();
        run(MESSAGES, FIRST + MESSAGES);
        let counted = counting::allocations() - before;
        shared.stop.store(true, Ordering::Relaxed);
        receiving.join().expect("no panic");
        counted
    });
    std::fs::remove_dir_all(&folder).expect("removed");
    counted
}

#[test]
fn raw_suppliers_and_consumers_take_no_memory_while_a_schedule_runs() {
    counting::start();
    let raw = CARRIERS
        .into_iter()
        .filter(|carrier| !carrier.road().middleware);
    for carrier in raw {
        let name = carrier.name();
        assert_eq!(allocations_of(carrier, false), 0, "{name}");
        let caught = allocations_of(carrier, true);
        assert!(caught as u64 >= MESSAGES, "{name}: only {caught} caught");
    }
}
