//! Flows with priorities: the lanes that serve them, and the packets that carry them.

use std::sync::{Mutex, OnceLock};

use deckwatch_os::schedule::{self, Class};

use super::*;
use crate::part::playing::*;
use crate::plan::*;
use crate::scratch::Scratch;
use crate::talk::{PartCommand, PartEvent};
use crate::{capture, packet};

const LIMIT: Duration = Duration::from_secs(10);

/// Notes the CORBA priority and the class of the thread that serves it.
#[derive(Default)]
struct Witness {
    orb: OnceLock<Orb>,
    seen: Mutex<Vec<(i16, Class)>>,
}

impl Servant for Witness {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:Deckwatch/Sink:1.0"]
    }

    fn dispatch(&self, request: &mut orb::ServerRequest<'_>) -> Result<(), SystemException> {
        let orb = self.orb.get().expect("it is set before the first call");
        let priority = orb.rt_current().the_priority()?.value();
        let class = schedule::class().expect("the kernel tells");
        let mut seen = self.seen.lock().expect("no panic");
        seen.push((priority, class));
        request.reply().map(drop)
    }
}

/// Serves a flow and calls its servant once. Returns what the servant saw, and the ports of the reference and the ORB.
fn served(priority: u16, scheduling: &Scheduling) -> ((i16, Class), [u16; 2]) {
    let (at, packets) = ("127.0.0.1:0".parse(), NetworkPriority::default());
    let (server, at) =
        serving_orb(LIMIT, at.expect("one"), 1, scheduling, packets).expect("a free port");
    let witness = Arc::new(Witness::default());
    witness.orb.set(server.clone()).map_err(drop).expect("once");
    let servant = Arc::clone(&witness) as Arc<dyn Servant>;
    let object = activate_in_lane(&server, servant, Some(priority)).expect("a lane");
    let client = calling_orb(LIMIT, packets).expect("a client");
    let text = server.object_to_string(&object);
    let called = client
        .string_to_object(&text)
        .expect("ours")
        .expect("not nil");
    let done: Result<(), SystemException> =
        called.invoke("deliver", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
    done.expect("it is served");
    server.shutdown(true).expect("once");
    let seen = witness.seen.lock().expect("no panic")[0];
    (seen, [port_of(&object).expect("IIOP"), at.port()])
}

#[test]
fn flows_of_different_priorities_are_served_by_lanes_of_their_own_priorities() {
    for priority in [5, 30_000] {
        let ((seen, class), [lane, default]) = served(priority, &Scheduling::default());
        assert_eq!((seen, class), (priority as i16, Class::Other));
        assert_ne!(lane, default);
    }
}

#[test]
fn the_thread_of_a_lane_has_the_native_priority_of_the_plan() {
    let permitted = std::thread::spawn(|| schedule::set_class(Class::Fifo(20)).is_ok());
    if !permitted.join().expect("no panic") {
        return deckwatch_testkit::skip("real-time-class", "SCHED_FIFO is not permitted");
    }
    let scheduling = Scheduling {
        class: SchedulingClass::Fifo { priority: 20 },
        ..Scheduling::default()
    };
    let (seen, _) = served(30_000, &scheduling);
    assert_eq!(seen, (30_000, Class::Fifo(20)));
}

/// Runs a stream with a DSCP under a tap on `lo`. Returns the type-of-service octets of the packets with content: to
/// the consumer, and from it.
fn marks(stream: &StreamPlan, priority: Option<u16>) -> Option<[Vec<u8>; 2]> {
    let scratch = Scratch::new();
    let network_priority = NetworkPriority {
        dscp: Some(46),
        socket_priority: None,
    };
    let mut plan = consumer(stream, 0, &scratch);
    if let PartPlan::Consumer(plan) = &mut plan {
        (plan.priority, plan.network_priority) = (priority, network_priority);
    }
    let mut receiving = Playing::start(plan);
    let ready = receiving.ready();
    let listening = ready.listening.expect("it listens");
    let mut tap = Playing::start(PartPlan::Tap(TapPlan {
        host: "loopback".to_owned(),
        interfaces: vec!["lo".to_owned()],
        ports: vec![listening.port()],
        capture: scratch.path("lo.pcapng"),
        size_bytes_max: 64 << 20,
        scheduling: Scheduling::default(),
    }));
    match tap.hear() {
        PartEvent::Ready(_) => {}
        PartEvent::Error { text } if text.contains("CAP_NET_RAW") => {
            deckwatch_testkit::skip("packet-tap", &text);
            return None;
        }
        event => panic!("{event:?}"),
    }
    let mut plan = supplier(stream, &[ready.endpoint], &scratch);
    if let PartPlan::Supplier(plan) = &mut plan {
        plan.network_priority = network_priority;
    }
    let mut sending = Playing::start(plan);
    assert_eq!(sending.ready().warnings, []);
    let go = soon();
    for playing in [&mut receiving, &mut sending, &mut tap] {
        playing.tell(go);
    }
    sending.done();
    for mut playing in [receiving, tap] {
        playing.tell(PartCommand::Stop);
        playing.done();
    }
    let mut marks = [Vec::new(), Vec::new()];
    capture::read(&scratch.path("lo.pcapng"), |captured| {
        let Some(carried) = packet::Carried::parse(&captured.octets) else {
            return;
        };
        // The second octet of the IPv4 header, behind that of Ethernet.
        let mark = captured.octets[15];
        if matches!(carried.load, packet::Load::Segment { octets, .. } if !octets.is_empty()) {
            marks[usize::from(carried.from == listening)].push(mark);
        }
    })
    .expect("a whole capture");
    Some(marks)
}

#[test]
fn packets_of_calls_have_the_dscp_of_their_flow() {
    for (carrier, priority) in [(CORBA, Some(30_000)), (CORBA, None), (ONEWAY, Some(5))] {
        let stream = stream(carrier, 64, 20);
        let Some([to, from]) = marks(&stream, priority) else {
            return;
        };
        assert!(to.len() >= 20 && !from.is_empty(), "{to:?} {from:?}");
        for mark in to.iter().chain(&from) {
            assert_eq!(*mark, 46 << 2, "{priority:?}: {to:?} {from:?}");
        }
    }
}
