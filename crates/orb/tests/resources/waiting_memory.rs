//! Memory of requests that wait for a thread: no more than they count against the limits of their pool, and a buffer of
//! the slab. A small request that was read into the buffer of a large message does not keep that buffer.
//!
//! The test has a process of its own, because the allocator counts the whole process.

use crate::common::lanes::{LaneWorld, priority, propagated};
use crate::common::message::{NO_EXCEPTION, SYNC_NONE};
use crate::common::{Over, Wire, wait_for};
use crate::counting;
use deckwatch_giop::HEADER_SIZE;
use deckwatch_orb::{Counter, Policies, RequestBuffering};
use deckwatch_testkit::alone;

const CONNECTIONS: u64 = 8;
const LARGE: usize = 4 << 20;

#[test]
fn a_small_request_that_waits_does_not_hold_the_buffer_of_a_large_one() {
    alone(|| {
        counting::start();
        let world = LaneWorld::new(Over::Tcp);
        let buffering = Some(RequestBuffering::default());
        let rt = world.orb.rt_orb();
        let pool = rt.create_threadpool(0, 1, 0, priority(5), buffering);
        let policies = Policies {
            threadpool: Some(pool.expect("one thread")),
            priority_model: propagated(5),
            ..Policies::default()
        };
        let told = world.object(&world.adapter("served", &policies));
        let count = |counter| world.orb.counters().read(counter);
        let before = counting::held();
        let ping = told.request("ping").bare();
        let (begin, rest) = ping.split_at(HEADER_SIZE);
        let mut wires: Vec<_> = {
            let large = told.request("octets").flags(SYNC_NONE).with(|body| {
                body.sequence(&vec![7; LARGE]);
            });
            let both = [&large, begin].concat();
            let say = |number| {
                let mut wire = Wire::at(&told.address());
                wire.say(&both);
                wait_for(|| count(Counter::Oneways) == number);
                wire
            };
            (1..=CONNECTIONS).map(say).collect()
        };
        let mut busy = Wire::at(&told.address());
        busy.say(&told.request("meet").bare());
        world.witness.probe.gate.wait_for_arrivals(1);
        let waited = count(Counter::RequestsBuffered);
        for wire in &mut wires {
            wire.say(rest);
        }
        wait_for(|| count(Counter::RequestsBuffered) == waited + CONNECTIONS);
        // The slab may keep free buffers, but the waiting requests do not own them.
        let held = counting::held() - before;
        assert!(held < LARGE as i64, "{held} octets");
        world.witness.probe.gate.open();
        for wire in wires.iter_mut().chain([&mut busy]) {
            assert_eq!(wire.hear().expect("a reply").reply().status, NO_EXCEPTION);
        }
    });
}
