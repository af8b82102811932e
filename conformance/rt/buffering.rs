//! Requests while all threads of their lane are busy (RTCORBA 1.x, clause 5.10: request buffering and borrowing). TCP
//! only: bidirectional connections, which no other transport has.

use crate::common;
use crate::common::lanes::{
    DecodedReference, LaneWorld, RT_CORBA_PRIORITY, heard_priority, lane, priority,
    priority_context, propagated,
};
use crate::common::message::{NO_EXCEPTION, SYNC_NONE};
use crate::common::{Octets, Order, Over, Wire, over_each, wait_for};
use deckwatch_orb::{BidirectionalPolicyValue, Counter, Policies, RequestBuffering, ThreadpoolId};

const TRANSIENT: &str = "IDL:omg.org/CORBA/TRANSIENT:1.0";

fn limits(max_buffered_requests: u32, max_request_buffer_size: u32) -> Option<RequestBuffering> {
    Some(RequestBuffering {
        max_buffered_requests,
        max_request_buffer_size,
    })
}

fn count(world: &LaneWorld, counter: Counter) -> u64 {
    world.orb.counters().read(counter)
}

/// An object of a pool; its callers send their priority (CLIENT_PROPAGATED).
fn served_by(world: &LaneWorld, pool: ThreadpoolId) -> DecodedReference {
    let policies = Policies {
        threadpool: Some(pool),
        priority_model: propagated(5),
        ..Policies::default()
    };
    world.object(&world.adapter("served", &policies))
}

/// A pool of one thread, which is busy until the gate opens.
fn busy(over: Over, buffering: Option<RequestBuffering>) -> (LaneWorld, DecodedReference, Wire) {
    let world = LaneWorld::new(over);
    let rt = world.orb.rt_orb();
    let pool = rt.create_threadpool(0, 1, 0, priority(5), buffering);
    let told = served_by(&world, pool.expect("one thread"));
    let busy = keep_busy(&world, &told, told.dial(), 1);
    (world, told, busy)
}

/// Keeps the thread of this connection busy until the gate opens. Returns once `arrivals` threads wait at the gate.
fn keep_busy(world: &LaneWorld, told: &DecodedReference, mut wire: Wire, arrivals: u64) -> Wire {
    wire.say(&told.request("meet").bare());
    world.witness.probe.gate.wait_for_arrivals(arrivals);
    wire
}

/// Sends a request on a connection of its own.
fn say(told: &DecodedReference, octets: &[u8]) -> Wire {
    let mut wire = told.dial();
    wire.say(octets);
    wire
}

/// A two-way request that records a number.
fn note(told: &DecodedReference, number: u32) -> Vec<u8> {
    told.request("note").with(|body| {
        body.u32(number);
    })
}

#[track_caller]
fn expect_served(wire: &mut Wire) {
    let reply = wire.hear().expect("a reply").reply();
    assert_eq!(reply.status, NO_EXCEPTION, "{reply:?}");
}

#[track_caller]
fn expect_refused(wire: &mut Wire) {
    let raised = wire.hear().expect("a reply").reply().exception();
    assert_eq!(raised.0, TRANSIENT);
    assert_eq!(raised.2, 1, "COMPLETED_NO");
}

over_each! {
    fn requests_wait_up_to_their_number_and_the_next_is_refused_while_all_threads_serve(over) {
        let (world, told, mut first) = busy(over, limits(2, 0));
        let ping = told.request("ping").bare();
        let mut waiting: Vec<_> = (0..2).map(|_| say(&told, &ping)).collect();
        wait_for(|| count(&world, Counter::RequestsBuffered) == 2);
        for refused in 1..=3 {
            // The refusal arrives while the gate is still closed.
            expect_refused(&mut say(&told, &ping));
            assert_eq!(count(&world, Counter::RequestsRefused), refused);
        }
        world.witness.probe.gate.open();
        expect_served(&mut first);
        waiting.iter_mut().for_each(expect_served);
        expect_served(&mut say(&told, &ping));
    }
}

#[test]
fn what_a_refused_request_says_of_its_connection_counts() {
    const BI_DIR_IIOP: u32 = 5;
    let (world, told, _first) = busy(Over::Tcp, limits(1, 0));
    let policies = Policies {
        bidirectional: BidirectionalPolicyValue::Both,
        ..Policies::root()
    };
    world.adapter("both", &policies);
    let _waiting = say(&told, &told.request("ping").bare());
    wait_for(|| count(&world, Counter::RequestsBuffered) == 1);
    let mut points = Octets::encapsulation(Order::Big);
    points.u32(1).string("127.0.0.1").u16(1);
    // Listen points are announced with the first request of a connection only.
    let offers = told.request("ping").context(BI_DIR_IIOP, &points.octets);
    expect_refused(&mut say(&told, &offers.bare()));
    assert_eq!(count(&world, Counter::ConnectionsBidirectional), 1);
}

over_each! {
    fn requests_wait_up_to_their_octets(over) {
        let (world, told, mut first) = busy(over, limits(0, 400));
        let ping = told.request("ping").bare();
        let large = told.request("octets").with(|body| {
            body.sequence(&[7; 400]);
        });
        expect_refused(&mut say(&told, &large));
        let mut waiting = say(&told, &ping);
        wait_for(|| count(&world, Counter::RequestsBuffered) == 1);
        world.witness.probe.gate.open();
        expect_served(&mut first);
        expect_served(&mut waiting);
        // With an idle thread no request waits. The thread is idle a little after its last reply.
        wait_for(|| say(&told, &large).hear().expect("a reply").reply().status == NO_EXCEPTION);
    }

    fn without_buffering_requests_wait_in_the_system_and_none_is_refused(over) {
        let (world, told, mut first) = busy(over, None);
        let ping = told.request("ping").bare();
        let mut waiting: Vec<_> = (0..20).map(|_| say(&told, &ping)).collect();
        world.witness.probe.gate.open();
        expect_served(&mut first);
        waiting.iter_mut().for_each(expect_served);
        assert_eq!(count(&world, Counter::RequestsBuffered), 0);
        assert_eq!(count(&world, Counter::RequestsRefused), 0);
    }

    fn many_requests_of_one_connection_wait_and_each_is_answered(over) {
        let (world, told, mut first) = busy(over, limits(0, 0));
        let mut wire = told.dial();
        for id in 0..50 {
            wire.say(&told.request("ping").id(id).bare());
        }
        wait_for(|| count(&world, Counter::RequestsBuffered) == 50);
        world.witness.probe.gate.open();
        expect_served(&mut first);
        let mut answered: Vec<_> = (0..50)
            .map(|_| wire.hear().expect("a reply").reply().id)
            .collect();
        answered.sort_unstable();
        assert_eq!(answered, (0..50).collect::<Vec<_>>());
    }

    fn one_ways_that_wait_keep_their_order_and_the_requests_behind_them(over) {
        let (world, told, mut first) = busy(over, limits(0, 0));
        let mut wire = told.dial();
        for number in 0..30_u32 {
            let note = told.request("note").flags(SYNC_NONE).with(|body| {
                body.u32(number);
            });
            wire.say(&note);
        }
        wire.say(&told.request("ping").bare());
        wait_for(|| count(&world, Counter::RequestsBuffered) == 1);
        world.witness.probe.gate.open();
        expect_served(&mut first);
        expect_served(&mut wire);
        assert_eq!(world.witness.probe.notes(), (0..30).collect::<Vec<_>>());
    }

    fn requests_that_wait_in_a_pool_without_lanes_leave_by_their_priority(over) {
        let (world, told, mut first) = busy(over, limits(0, 0));
        let numbers = [20_i16, 90, 5, 50, 90];
        let mut waiting: Vec<_> = (0_u32..)
            .zip(numbers)
            .map(|(at, number)| {
                let data = priority_context(number);
                let request = told.request("note").context(RT_CORBA_PRIORITY, &data);
                let wire = say(
                    &told,
                    &request.with(|body| {
                        body.u32(at);
                    }),
                );
                wait_for(|| count(&world, Counter::RequestsBuffered) == u64::from(at) + 1);
                wire
            })
            .collect();
        world.witness.probe.gate.open();
        expect_served(&mut first);
        waiting.iter_mut().for_each(expect_served);
        assert_eq!(world.witness.probe.notes(), [1, 4, 3, 0, 2]);
    }

    fn a_caller_that_ends_while_its_request_waits_is_no_harm(over) {
        let (world, told, mut first) = busy(over, limits(0, 0));
        let note = note(&told, 7);
        let mut ended = say(&told, &note);
        ended.end();
        drop(say(&told, &note));
        wait_for(|| count(&world, Counter::RequestsBuffered) == 2);
        world.witness.probe.gate.open();
        expect_served(&mut first);
        expect_served(&mut ended);
        ended.expect_end();
        expect_served(&mut say(&told, &told.request("ping").bare()));
    }

    fn a_shutdown_does_not_serve_what_waits_and_says_farewell(over) {
        let (world, told, mut first) = busy(over, limits(0, 0));
        let mut waiting = say(&told, &note(&told, 7));
        wait_for(|| count(&world, Counter::RequestsBuffered) == 1);
        world.orb.shutdown(false).expect("once");
        wait_for(|| Wire::reach(&told.place()).is_err());
        world.witness.probe.gate.open();
        expect_served(&mut first);
        let farewell = waiting.hear().expect("a message");
        assert_eq!(farewell.kind(), common::message::CLOSE_CONNECTION);
        assert!(world.witness.probe.notes().is_empty());
    }
}

/// Two lanes of one thread each, with borrowing as given. The thread of the high lane is busy until the gate opens.
fn lending(
    over: Over,
    allow_borrowing: bool,
    buffering: Option<RequestBuffering>,
) -> (LaneWorld, DecodedReference, Wire) {
    let world = LaneWorld::new(over);
    let rt = world.orb.rt_orb();
    let lanes = [lane(5), lane(90)];
    let pool = rt.create_threadpool_with_lanes(0, &lanes, allow_borrowing, buffering);
    let told = served_by(&world, pool.expect("two threads"));
    let busy = keep_busy(&world, &told, told.dial_lane(90), 1);
    (world, told, busy)
}

over_each! {
    fn the_limits_hold_for_all_lanes_of_the_pool_together(over) {
        let size = {
            let (_world, told, _busy) = lending(over, false, None);
            let request = told.request("the_priority").bare();
            u32::try_from(request.len()).expect("small")
        };
        for (limits, is_full) in [
            (limits(2, 0), true),
            (limits(3, 0), false),
            (limits(0, 2 * size), true),
            (limits(0, 3 * size), false),
        ] {
            let (world, told, mut high) = lending(over, false, limits);
            let mut low = keep_busy(&world, &told, told.dial_lane(5), 2);
            let ask = |lane, buffered| {
                let mut wire = told.dial_lane(lane);
                wire.say(&told.request("the_priority").bare());
                wait_for(|| count(&world, Counter::RequestsBuffered) == buffered);
                wire
            };
            let mut waiting = vec![(5, ask(5, 1)), (90, ask(90, 2))];
            for lane in [5, 90] {
                match is_full {
                    true => expect_refused(&mut ask(lane, 2)),
                    false if lane == 5 => waiting.push((5, ask(lane, 3))),
                    false => expect_refused(&mut ask(lane, 3)),
                }
            }
            world.witness.probe.gate.open();
            expect_served(&mut high);
            expect_served(&mut low);
            for (lane, wire) in &mut waiting {
                let served = heard_priority(wire.hear().expect("a reply").reply());
                assert_eq!(served.0, *lane);
            }
            // The queue has room again.
            assert_eq!(told.ask_lane(90).0, 90);
        }
    }

    fn a_lane_whose_threads_all_serve_borrows_one_of_a_lower_lane_at_its_own_priority(over) {
        for buffering in [None, limits(0, 0)] {
            let (world, told, mut first) = lending(over, true, buffering);
            for _ in 0..20 {
                let (served, thread) = told.ask_lane(90);
                assert_eq!((served, thread.as_str()), (90, "orb-1.0-0"));
                let (served, thread) = told.ask_lane(5);
                assert_eq!((served, thread.as_str()), (5, "orb-1.0-0"));
            }
            assert_eq!(count(&world, Counter::ThreadsBorrowed), 20);
            world.witness.probe.gate.open();
            expect_served(&mut first);
            wait_for(|| told.ask_lane(90).1 == "orb-1.1-0");
        }
    }

    fn a_thread_that_comes_free_later_is_borrowed_then(over) {
        for buffering in [None, limits(0, 0)] {
            let (world, told, _busy) = lending(over, true, buffering);
            let mut low = told.dial_lane(5);
            // The only thread of the low lane is busy for a moment in each round.
            for number in 0..50_u32 {
                low.say(&note(&told, number));
                let (served, _) = told.ask_lane(90);
                assert_eq!(served, 90);
                expect_served(&mut low);
            }
            assert_eq!(count(&world, Counter::ThreadsBorrowed), 50);
        }
    }

    fn where_all_lower_threads_serve_too_requests_wait_for_whichever_is_done_first(over) {
        for buffering in [None, limits(0, 0)] {
            let (world, told, mut high) = lending(over, true, buffering);
            let mut low = keep_busy(&world, &told, told.dial_lane(5), 2);
            let mut waiting = told.dial_lane(90);
            waiting.say(&told.request("the_priority").bare());
            if buffering.is_some() {
                wait_for(|| count(&world, Counter::RequestsBuffered) == 1);
            }
            world.witness.probe.gate.open();
            assert_eq!(
                heard_priority(waiting.hear().expect("a reply").reply()).0,
                90
            );
            expect_served(&mut high);
            expect_served(&mut low);
        }
    }

    fn a_lane_does_not_borrow_upwards_nor_where_the_pool_does_not_allow_it(over) {
        let (world, told, mut high) = lending(over, false, None);
        let mut waiting = told.dial_lane(90);
        waiting.say(&told.request("ping").bare());
        // The low lane has served other requests meanwhile.
        for _ in 0..20 {
            assert_eq!(told.ask_lane(5).0, 5);
        }
        world.witness.probe.gate.open();
        expect_served(&mut high);
        expect_served(&mut waiting);
        assert_eq!(count(&world, Counter::ThreadsBorrowed), 0);

        let world = LaneWorld::new(over);
        let rt = world.orb.rt_orb();
        let pool = rt.create_threadpool_with_lanes(0, &[lane(5), lane(90)], true, None);
        let told = served_by(&world, pool.expect("two threads"));
        let mut low = keep_busy(&world, &told, told.dial_lane(5), 1);
        let mut waiting = told.dial_lane(5);
        waiting.say(&told.request("the_priority").bare());
        for _ in 0..20 {
            assert_eq!(told.ask_lane(90).0, 90);
        }
        world.witness.probe.gate.open();
        expect_served(&mut low);
        let (served, thread) = heard_priority(waiting.hear().expect("a reply").reply());
        assert_eq!((served, thread.as_str()), (5, "orb-1.0-0"));
        assert_eq!(count(&world, Counter::ThreadsBorrowed), 0);
    }
}
