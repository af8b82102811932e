//! Asynchronous calls and their handlers by clause (CORBA 3.3 part 1, clauses 17.6 to 17.8). The other side's octets
//! are made by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use crate::common;
use crate::common::asynchronous::{ask, heard, number_of, poll, poller, same, system};
use crate::common::message::{LOCATION_FORWARD, USER_EXCEPTION};
use crate::common::servant::REFUSED_ID;
use crate::common::{Lanes, OMG, Over, PATIENCE, Peer, World, over_each, wait_for};
use deckwatch_cdr::{Reader, Write, Writer};
use deckwatch_dynamic::Poller;
use deckwatch_orb::{
    Completion, Counter, Deliver, Orb, Policy, SetOverrideType, SystemException,
    SystemExceptionKind as Kind, UtcT,
};

over_each! {
    fn a_handler_is_called_with_the_results(over) {
        let peer = Peer::answering(over, |_, asked| same(asked));
        let client = common::client();
        for minor in peer.minors() {
            let told = ask(&peer.seen_by(&client, minor), 7);
            let mut asked = peer.heard().asked();
            assert_eq!((asked.operation.as_str(), asked.body.u64()), ("number", 7));
            assert!(asked.body.rest().is_empty());
            assert_eq!(heard(&told), Ok(7));
        }
    }

    fn a_handler_is_called_with_the_exception(over) {
        let peer = Peer::answering(over, |_, asked| {
            asked.answered(USER_EXCEPTION, |octets| {
                octets.string(REFUSED_ID).u32(9);
            })
        });
        let client = common::client();
        for minor in peer.minors() {
            let holder = heard(&ask(&peer.seen_by(&client, minor), 7)).expect_err("an exception");
            assert!(!holder.is_system_exception());
            let read = |id: &str, r: &mut Reader<'_>| {
                assert_eq!(id, REFUSED_ID);
                Ok(Some(Ok::<u32, SystemException>(r.read_u32()?)))
            };
            let raised = holder.raise_exception(|id, r| Ok(read(id, r)?.map(Raised::from)));
            assert_eq!(raised, Raised(Ok(9)));
            let unknown = holder.raise_exception(|_, _| Ok(None::<Raised>));
            let expected = SystemException::new(Kind::Unknown, OMG | 1, Completion::Yes);
            assert_eq!(unknown, Raised(Err(expected)));
        }
        let world = World::new(over, Lanes::Many);
        let (told, failed) = channel();
        let deliver: Deliver = Box::new(move |reply| {
            told.send(reply.results(|_| Ok(0))).map_err(|_| system_unknown())
        });
        let object = world.seen_by(&client);
        object.send_callback("fail", |_| Ok(()), Some(deliver)).unwrap();
        let raised = system(heard(&failed));
        assert_eq!(raised, SystemException::new(Kind::NoPermission, 7, Completion::Yes));
    }

    fn replies_come_in_any_order_over_one_connection(over) {
        const MANY: u64 = 100;
        let peer = Peer::start(over, |index, wire, tell| {
            assert_eq!(index, 0, "one connection carries all");
            let mut asked = Vec::new();
            while let Some(message) = wire.hear() {
                asked.push(same(&message));
                tell(message);
                if asked.len() as u64 == MANY {
                    asked.drain(..).rev().for_each(|reply| wire.say(&reply));
                }
            }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        for number in 0..MANY {
            let order = Arc::clone(&order);
            let deliver: Deliver = Box::new(move |reply| {
                let given = reply.results(number_of);
                assert_eq!(given, Ok(number));
                order.lock().unwrap().push(number);
                Ok(())
            });
            object.send_callback("number", |w| number.write(w), Some(deliver)).unwrap();
        }
        wait_for(|| order.lock().unwrap().len() as u64 == MANY);
        assert_eq!(*order.lock().unwrap(), (0..MANY).rev().collect::<Vec<_>>());
        assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
        assert_eq!(client.counters().read(Counter::CallbacksFailed), 0);
    }

    fn a_nil_handler_hears_nothing_and_a_failing_one_is_counted(over) {
        let peer = Peer::answering(over, |_, asked| same(asked));
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        object.send_callback("number", |w| 1_u64.write(w), None).unwrap();
        peer.heard();
        let raises: Deliver = Box::new(|_| Err(system_unknown()));
        let panics: Deliver = Box::new(|_| panic!("a handler panics, as the test asked it to"));
        for (count, deliver) in [(1, raises), (2, panics)] {
            object.send_callback("number", |w| 1_u64.write(w), Some(deliver)).unwrap();
            wait_for(|| client.counters().read(Counter::CallbacksFailed) == count);
        }
        assert_eq!(heard(&ask(&object, 5)), Ok(5));
    }

    fn a_handler_may_call_and_wait_for_other_calls(over) {
        let new_place = Peer::answering(over, |_, asked| same(asked));
        let ior = new_place.ior(2, b"Elsewhere");
        let old_place = Peer::answering(over, move |_, asked| {
            asked.answered(LOCATION_FORWARD, |octets| ior.write(octets))
        });
        // The peer serves its connections in turn. A waiting call has its own connection.
        let third_place = Peer::answering(over, |_, asked| same(asked));
        let client = common::client();
        let (object, moved) = (new_place.seen_by(&client, 2), old_place.seen_by(&client, 2));
        let (told, heard) = channel();
        let inner = third_place.seen_by(&client, 2);
        let deliver: Deliver = Box::new(move |reply| {
            assert_eq!(reply.results(number_of), Ok(1));
            let called: Result<u64, SystemException> =
                inner.invoke("number", |w| 2_u64.write(w), number_of, |_, _| Ok(None));
            // This call must be sent again while the thread of its handler waits for it.
            let polled = poll(&poller(&moved, 3), u32::MAX);
            told.send((called, polled)).map_err(|_| system_unknown())
        });
        object.send_callback("number", |w| 1_u64.write(w), Some(deliver)).unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE), Ok((Ok(2), Ok(3))));
    }

    fn what_cannot_be_sent_is_told_to_the_caller(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let wrong = object.send_callback("x", |_| Err(deckwatch_cdr::EncodeError::BoundExceeded), None);
        assert_eq!(wrong.unwrap_err().kind, Kind::Marshal);
        drop(peer);
    }
}

#[test]
fn calls_under_way_are_bounded() {
    let peer = Peer::silent(Over::Tcp);
    let client = common::client();
    let object = peer.seen_by(&client, 2);
    let max = deckwatch_orb::limits::OUTSTANDING_MAX as usize;
    let mut pollers: Vec<_> = (0..max).map(|_| poller(&object, 1)).collect();
    let one_more = Poller::send(&object, "number", |w| 1_u64.write(w));
    assert_eq!(one_more.unwrap_err().kind, Kind::NoResources);
    pollers.pop();
    let calls = AtomicU64::new(0);
    let counted = |w: &mut Writer<'_>| {
        calls.fetch_add(1, Ordering::Relaxed);
        1_u64.write(w)
    };
    assert!(Poller::send(&object, "number", counted).is_ok());
    assert_ne!(calls.load(Ordering::Relaxed), 0);
}

#[test]
fn without_threads_replies_come_where_the_application_works_or_waits() {
    let peer = Peer::answering(Over::Tcp, |_, asked| same(asked));
    let client = Orb::builder().turned_by_hand().build().unwrap();
    let object = peer.seen_by(&client, 2);
    let here = std::thread::current().id();
    let (told, heard) = channel();
    let deliver: Deliver = Box::new(move |reply| {
        let given = reply.results(number_of);
        told.send((given, std::thread::current().id()))
            .map_err(|_| system_unknown())
    });
    object
        .send_callback("number", |w| 1_u64.write(w), Some(deliver))
        .unwrap();
    wait_for(|| {
        client.perform_work().unwrap();
        heard.try_recv() == Ok((Ok(1), here))
    });
    assert_eq!(poll(&poller(&object, 2), u32::MAX), Ok(2));
    let short = object.with_round_trip_timeout(Some(Duration::from_millis(20)));
    let nobody = Peer::silent(Over::Tcp);
    let never = nobody
        .seen_by(&client, 2)
        .with_round_trip_timeout(Some(Duration::from_millis(20)));
    let late = poll(&poller(&never, 3), u32::MAX).unwrap_err();
    assert_eq!(late.kind, Kind::Timeout);
    assert_eq!(poll(&poller(&short, 4), u32::MAX), Ok(4));
}

#[test]
fn without_threads_what_is_due_is_work_for_the_application() {
    let peer = Peer::answering(Over::Tcp, |_, asked| same(asked));
    let client = Orb::builder().turned_by_hand().build().unwrap();
    let start = SystemTime::now() + Duration::from_millis(100);
    let since_1970 = start.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let start_ns = u64::try_from(since_1970.as_nanos()).unwrap();
    let policies = [Policy::ReplyStartTime(UtcT::from_unix_ns(
        start_ns,
        Duration::ZERO,
    ))];
    let object = peer.seen_by(&client, 2);
    let late = object.set_policy_overrides(&policies, SetOverrideType::AddOverride);
    let told = ask(&late.unwrap(), 1);
    wait_for(|| {
        client.perform_work().unwrap();
        told.try_recv().is_ok_and(|told| told == Ok(1))
    });
    assert!(SystemTime::now() >= start, "it was given before its start");
    let nobody = Peer::silent(Over::Tcp);
    let never = nobody
        .seen_by(&client, 2)
        .with_round_trip_timeout(Some(Duration::from_millis(20)));
    let told = ask(&never, 2);
    wait_for(|| {
        client.perform_work().unwrap();
        told.try_recv()
            .is_ok_and(|told| system(told).kind == Kind::Timeout)
    });
    assert_eq!(client.work_pending(), Ok(false));
}

fn system_unknown() -> SystemException {
    SystemException::new(Kind::Unknown, 0, Completion::Maybe)
}

/// The exception from a holder: the member of the user exception, or a system exception.
#[derive(Debug, PartialEq)]
struct Raised(Result<u32, SystemException>);

impl From<SystemException> for Raised {
    fn from(exception: SystemException) -> Self {
        Self(Err(exception))
    }
}

impl From<Result<u32, SystemException>> for Raised {
    fn from(raised: Result<u32, SystemException>) -> Self {
        Self(raised)
    }
}
