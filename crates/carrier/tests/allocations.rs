//! Between `go` and the end of a schedule raw suppliers and consumers take no memory: counted, and the count shown to catch one that does.
//!
//! A file of its own: the allocator that counts is the whole process's, so there is one test only.

#[path = "../../orb/tests/support/counting.rs"]
mod counting;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use deckwatch_carrier::arrival::{Arrival, Handler, Recorder, Shared};
use deckwatch_carrier::body::Body;
use deckwatch_carrier::carriers::tcp::{TcpReceiver, TcpSender};
use deckwatch_carrier::carriers::udp::{UdpReceiver, UdpSender};
use deckwatch_carrier::plan::{BodyPlan, NetworkPriority};
use deckwatch_carrier::receiver::Receiver;
use deckwatch_carrier::record::RecordFile;
use deckwatch_carrier::send_loop::SendLoop;
use deckwatch_carrier::sender::Sender;
use deckwatch_carrier::stamp_clock::StampClock;
use deckwatch_carrier::talk::Ready;
use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
use deckwatch_os::clock;

/// A handler that takes memory, for the proof that it would be seen.
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

/// Allocations of the whole process, both ends, while a schedule is sent and received.
fn allocations_of(tcp: bool, wasteful: bool) -> usize {
    let folder = std::env::temp_dir().join(format!("deckwatch-allocations-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let file = RecordFile::supplier(&folder.join("supplier"), 0, 1, MESSAGES, 384).expect("made");
    let (_page, sent) = file.into_parts();
    let file =
        RecordFile::consumer(&folder.join("consumer"), 0, 0, FIRST + MESSAGES, 384).expect("made");
    let (_page, received) = file.into_parts();
    let (clock, shared, body) = (
        Arc::new(StampClock::new()),
        Arc::new(Shared::default()),
        body(),
    );
    let reader = body.sequence_reader();
    let mut receiver: Box<dyn Receiver> = if tcp {
        Box::new(TcpReceiver::bind(HOME, None, reader, Arc::clone(&clock)).expect("listens"))
    } else {
        Box::new(UdpReceiver::bind(HOME, None, reader, Arc::clone(&clock)).expect("listens"))
    };
    let mut ready = Ready::default();
    receiver.announce(&mut ready).expect("announced");
    let to = ready.listening.expect("it listens");
    let priority = NetworkPriority::default();
    let sender: Box<dyn Sender> = if tcp {
        Box::new(TcpSender::connect(HOME, to, 384, priority, clock).expect("connects"))
    } else {
        Box::new(UdpSender::connect(HOME, to, priority, clock).expect("connects"))
    };
    let recorder = Recorder::new(
        received,
        &schedule(),
        Duration::from_secs(1),
        Duration::ZERO,
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
        // Threads have begun and connections stand when a first few have arrived.
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
    for tcp in [false, true] {
        assert_eq!(allocations_of(tcp, false), 0, "tcp: {tcp}");
        let caught = allocations_of(tcp, true);
        assert!(caught as u64 >= MESSAGES, "only {caught} caught");
    }
}
