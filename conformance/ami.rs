//! Asynchronous calls by clause (CORBA 3.3 part 1, clause 17.3 and following, and 7.4), octets made by hand on the other side.

#[path = "common/mod.rs"]
mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use common::message::{
    CANCEL_REQUEST, CLOSE_CONNECTION, LOCATION_FORWARD, NEEDS_ADDRESSING_MODE, NO_EXCEPTION,
    USER_EXCEPTION,
};
use common::servant::REFUSED_ID;
use common::{Lanes, OMG, Over, PATIENCE, Peer, Received, World, message, over_each, wait_for};
use deckwatch_cdr::{Any, DecodeError, Parse, Reader, TypeCode, Write, Writer};
use deckwatch_orb::{
    AsynchronousReply, Completion, Counter, Deliver, ExceptionHolder, NamedValue, ObjectRef, Orb,
    Policy, PollableSet, PollableSetError, Poller, SetOverrideType, SystemException,
    SystemExceptionKind as Kind, UtcT,
};
use deckwatch_os::shared::RING_SIZE;

/// What a handler has been told.
type Told = Result<u64, ExceptionHolder>;

/// Asks for a number and has the handler pass on what it gets.
fn ask(object: &ObjectRef, number: u64) -> Receiver<Told> {
    let (told, heard) = channel();
    let deliver: Deliver = Box::new(move |reply| {
        let _test_is_over = told.send(reply.results(number_of));
        Ok(())
    });
    let sent = object.send_callback("number", |w| number.write(w), Some(deliver));
    assert_eq!(sent, Ok(()));
    heard
}

#[track_caller]
fn heard(from: &Receiver<Told>) -> Told {
    from.recv_timeout(PATIENCE).expect("the handler is called")
}

fn poller(object: &ObjectRef, number: u64) -> Poller {
    object
        .send_poller("number", |w| number.write(w))
        .expect("it is sent")
}

fn poll(poller: &Poller, timeout_ms: u32) -> Result<u64, SystemException> {
    poller.poll("number", timeout_ms, number_of, |_, _| Ok(None))
}

/// What a holder of a system exception holds.
#[track_caller]
fn system(told: Told) -> SystemException {
    let holder = told.expect_err("an exception");
    assert!(holder.is_system_exception());
    holder.raise_exception(|_, _| Ok(None))
}

/// The reply of a server that gives the number it was sent.
fn same(asked: &Received) -> Vec<u8> {
    let number = asked.asked().body.u64();
    asked.answered(NO_EXCEPTION, |octets| {
        octets.u64(number);
    })
}

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
        // A peer serves one connection after the other, and a call that waits has one of its own.
        let third_place = Peer::answering(over, |_, asked| same(asked));
        let client = common::client();
        let (object, moved) = (new_place.seen_by(&client, 2), old_place.seen_by(&client, 2));
        let (told, heard) = channel();
        let inner = third_place.seen_by(&client, 2);
        let deliver: Deliver = Box::new(move |reply| {
            assert_eq!(reply.results(number_of), Ok(1));
            let called: Result<u64, SystemException> =
                inner.invoke("number", |w| 2_u64.write(w), number_of, |_, _| Ok(None));
            // This one must be sent again while its handler's thread waits for it.
            let polled = poll(&poller(&moved, 3), u32::MAX);
            told.send((called, polled)).map_err(|_| system_unknown())
        });
        object.send_callback("number", |w| 1_u64.write(w), Some(deliver)).unwrap();
        assert_eq!(heard.recv_timeout(PATIENCE), Ok((Ok(2), Ok(3))));
    }

    fn a_forward_is_followed_and_remembered(over) {
        let new_place = Peer::answering(over, |_, asked| same(asked));
        let ior = new_place.ior(2, b"Elsewhere");
        let old_place = Peer::answering(over, move |_, asked| {
            asked.answered(LOCATION_FORWARD, |octets| ior.write(octets))
        });
        let client = common::client();
        let object = old_place.seen_by(&client, 2);
        assert_eq!(heard(&ask(&object, 3)), Ok(3));
        let mut asked = new_place.heard().asked();
        assert_eq!((asked.key.as_slice(), asked.body.u64()), (b"Elsewhere".as_slice(), 3));
        assert_eq!(poll(&poller(&object, 4), u32::MAX), Ok(4));
        assert_eq!(old_place.heard_so_far(), 1);
    }

    fn forwards_that_lead_in_a_circle_end(over) {
        let (place, placed) = channel::<common::ior::Ior>();
        let mut circle = None;
        let peer = Peer::answering(over, move |_, asked| {
            let ior = circle.get_or_insert_with(|| placed.recv().expect("the test sends it"));
            asked.answered(LOCATION_FORWARD, |octets| ior.write(octets))
        });
        place.send(peer.ior(2, b"Fake")).expect("the peer waits for it");
        let client = common::client();
        let ended = system(heard(&ask(&peer.seen_by(&client, 2), 3)));
        assert_eq!((ended.kind, ended.completed), (Kind::Transient, Completion::No));
    }

    fn what_was_not_served_is_sent_again_and_what_may_have_been_is_not(over) {
        for says_farewell in [true, false] {
            let peer = Peer::start(over, move |index, wire, tell| {
                while let Some(asked) = wire.hear() {
                    if index == 0 {
                        if says_farewell {
                            wire.say(&message(asked.form(), CLOSE_CONNECTION, |_| ()));
                        }
                        wire.end();
                        return;
                    }
                    wire.say(&same(&asked));
                    tell(asked);
                }
            });
            let client = common::client();
            let told = heard(&ask(&peer.seen_by(&client, 2), 3));
            if says_farewell {
                assert_eq!(told, Ok(3));
            } else {
                let lost = system(told);
                assert_eq!((lost.kind, lost.completed), (Kind::CommFailure, Completion::Maybe));
            }
        }
    }

    fn all_calls_under_way_name_their_object_as_the_server_wants_it(over) {
        const BY_PROFILE: u16 = 1;
        let peer = Peer::start(over, |_, wire, tell| {
            let early: Vec<_> = (0..3).map_while(|_| wire.hear()).collect();
            for asked in &early {
                wire.say(&asked.answered(NEEDS_ADDRESSING_MODE, |octets| {
                    octets.u16(BY_PROFILE);
                }));
            }
            while let Some(asked) = wire.hear() {
                wire.say(&same(&asked));
                tell(asked);
            }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let pollers: Vec<_> = (0..3).map(|number| poller(&object, number)).collect();
        for (number, one) in (0..).zip(&pollers) {
            assert_eq!(poll(one, u32::MAX), Ok(number));
        }
        assert_eq!(client.counters().read(Counter::Readdressings), 3);
    }

    fn a_timeout_is_told_to_the_handler_and_the_server(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        let object = peer.seen_by(&client, 2).with_round_trip_timeout(Some(Duration::from_millis(20)));
        let told = ask(&object, 3);
        let asked = peer.heard().asked();
        let late = system(heard(&told));
        assert_eq!((late.kind, late.completed), (Kind::Timeout, Completion::Maybe));
        let cancel = peer.heard();
        assert_eq!((cancel.kind(), cancel.body().u32()), (CANCEL_REQUEST, asked.id));
        let polled = poll(&poller(&object, 4), u32::MAX).expect_err("nothing comes");
        assert_eq!(polled, late);
    }

    fn a_call_that_ends_before_it_is_sent_leaves_the_others_on_their_connection(over) {
        let (open, opened) = channel();
        let peer = Peer::start(over, move |_, wire, tell| {
            while let Some(asked) = wire.hear() {
                let _the_test_lets = opened.recv();
                let answer = same(&asked);
                // Told before the test can go on.
                tell(asked);
                wire.say(&answer);
            }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let first = poller(&object, 1);
        let limit = Policy::RelativeRequestTimeout(Duration::from_millis(20));
        let hurried = object.set_policy_overrides(&[limit], SetOverrideType::AddOverride).unwrap();
        let slow = |w: &mut Writer<'_>| {
            let begun = Instant::now();
            wait_for(|| begun.elapsed() > Duration::from_millis(21));
            2_u64.write(w)
        };
        let ended = hurried.send_poller("number", slow).unwrap_err();
        assert_eq!((ended.kind, ended.completed), (Kind::Timeout, Completion::No));
        open.send(()).unwrap();
        assert_eq!(poll(&first, u32::MAX), Ok(1));
        assert_eq!(peer.heard_so_far(), 1);
    }

    fn a_late_reply_hurts_nobody(over) {
        let mut late = None;
        let peer = Peer::answering(over, move |count, asked| {
            // The first call is answered behind the second, with it.
            match count {
                0 => {
                    late = Some(same(asked));
                    Vec::new()
                }
                1 => Vec::new(),
                _ => [late.take().unwrap_or_default(), same(asked)].concat(),
            }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let short = object.with_round_trip_timeout(Some(Duration::from_millis(20)));
        assert_eq!(system(heard(&ask(&short, 1))).kind, Kind::Timeout);
        assert_eq!(heard(&ask(&object, 2)), Ok(2));
        assert_eq!(client.counters().read(Counter::LateReplies), 1);
        assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
    }

    fn a_poller_gives_its_reply_once_and_says_where_an_exception_is_from(over) {
        let (open, opened) = channel();
        let peer = Peer::start(over, move |_, wire, _| {
            while let Some(asked) = wire.hear() {
                let _the_test_lets = opened.recv();
                wire.say(&same(&asked));
            }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let poller = poller(&object, 7);
        assert_eq!(poller.operation_target(), &object);
        assert_eq!(poller.operation_name(), "number");
        let unasked = poller.is_from_poller().unwrap_err();
        assert_eq!((unasked.kind, unasked.minor), (Kind::BadInvOrder, OMG | 22));
        assert_eq!(poller.is_ready(0), Ok(false));
        let none = poll(&poller, 0).unwrap_err();
        assert_eq!((none.kind, none.minor), (Kind::NoResponse, OMG | 1));
        assert_eq!(poller.is_from_poller(), Ok(true));
        let none = poll(&poller, 5).unwrap_err();
        assert_eq!((none.kind, none.minor), (Kind::Timeout, OMG | 1));
        let other: Result<(), SystemException> = poller.poll("other", 0, |_| Ok(()), |_, _| Ok(None));
        assert_eq!(other.unwrap_err().kind, Kind::BadOperation);
        open.send(()).unwrap();
        assert_eq!(poller.is_ready(u32::MAX), Ok(true));
        assert_eq!(poll(&poller, 0), Ok(7));
        assert_eq!(poller.is_from_poller(), Ok(false));
        let again = poll(&poller, 0).unwrap_err();
        assert_eq!((again.kind, again.minor), (Kind::ObjectNotExist, OMG | 5));
        let again = poller.is_ready(0).unwrap_err();
        assert_eq!((again.kind, again.minor), (Kind::ObjectNotExist, OMG | 5));
    }

    fn a_poller_may_be_given_a_handler_and_lose_it_again(over) {
        let (open, opened) = channel();
        let peer = Peer::start(over, move |_, wire, _| {
            while let Some(asked) = wire.hear() {
                let _the_test_lets = opened.recv();
                wire.say(&same(&asked));
            }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let (told, heard_by) = channel();
        let pass_on = |told: std::sync::mpsc::Sender<Told>| -> Deliver {
            Box::new(move |reply: AsynchronousReply| {
                let _test_is_over = told.send(reply.results(number_of));
                Ok(())
            })
        };
        // Before the reply comes; the poller may go then.
        let first = poller(&object, 1);
        first.set_handler(Some(pass_on(told.clone())));
        let kept = poll(&first, 0).unwrap_err();
        assert_eq!(kept.kind, Kind::BadInvOrder);
        drop(first);
        open.send(()).unwrap();
        assert_eq!(heard(&heard_by), Ok(1));
        // After it has come.
        let second = poller(&object, 2);
        open.send(()).unwrap();
        assert_eq!(second.is_ready(u32::MAX), Ok(true));
        second.set_handler(Some(pass_on(told.clone())));
        assert_eq!(heard(&heard_by), Ok(2));
        // And taken away again.
        let third = poller(&object, 3);
        third.set_handler(Some(pass_on(told)));
        third.set_handler(None);
        open.send(()).unwrap();
        assert_eq!(poll(&third, u32::MAX), Ok(3));
    }

    fn a_poller_that_is_dropped_has_its_request_cancelled(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        let poller = poller(&peer.seen_by(&client, 2), 1);
        let asked = peer.heard().asked();
        drop(poller);
        let cancel = peer.heard();
        assert_eq!((cancel.kind(), cancel.body().u32()), (CANCEL_REQUEST, asked.id));
    }

    fn a_set_gives_the_poller_that_is_ready(over) {
        let peer = Peer::answering(over, |_, asked| {
            // The first is never answered.
            let number = asked.asked().body.u64();
            if number == 0 { Vec::new() } else { same(asked) }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let pollers: Vec<_> = (0..3).map(|number| poller(&object, number)).collect();
        let set = pollers[0].create_pollable_set();
        set.add_pollable(&pollers[1]).unwrap();
        let twice = set.add_pollable(&pollers[1]).unwrap_err();
        assert_eq!((twice.kind, twice.minor), (Kind::BadParam, OMG | 43));
        let other = common::client();
        let alien = poller(&peer.seen_by(&other, 2), 5);
        assert_eq!(set.add_pollable(&alien).unwrap_err().kind, Kind::BadParam);
        assert_eq!(set.number_left(), 2);
        assert_eq!(set.ready_pollable(u32::MAX), Ok((&pollers[1]).into()));
        assert_eq!(set.number_left(), 1);
        let none = |timeout| match set.ready_pollable(timeout) {
            Err(PollableSetError::System(exception)) => (exception.kind, exception.minor),
            other => panic!("nothing is ready, and not {other:?}"),
        };
        assert_eq!(none(0), (Kind::NoResponse, OMG | 1));
        assert_eq!(none(5), (Kind::Timeout, OMG | 1));
        assert_eq!(set.remove(&pollers[2]), Err(PollableSetError::UnknownPollable));
        assert_eq!(set.remove(&pollers[0]), Ok(()));
        assert_eq!(set.ready_pollable(0), Err(PollableSetError::NoPossiblePollable));
        assert_eq!(PollableSet::default().number_left(), 0);
        assert_eq!(poll(&pollers[1], 0), Ok(1));
    }

    fn a_set_waits_for_dynamic_requests_and_pollers_at_once(over) {
        let (answers, may_answer) = channel();
        let may_answer = Mutex::new(may_answer);
        let peer = Peer::answering(over, move |_, asked| {
            // Only dynamic requests are answered, each when the test lets it.
            let number = asked.asked().body.u64();
            if number == 0 { return Vec::new(); }
            may_answer.lock().unwrap().recv().unwrap();
            same(asked)
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let poller = poller(&object, 0);
        let set = poller.create_pollable_set();
        let dii = set.create_dii_pollable().unwrap();
        set.add_pollable(&dii).unwrap();
        assert_eq!(set.add_pollable(&dii).unwrap_err().minor, OMG | 43);
        assert_eq!((set.number_left(), dii.is_ready(0)), (2, Ok(false)));
        let request = |number: u64| {
            let mut request = object.create_request("number");
            let number = Any::from_value(&number).unwrap();
            request.add_arg(NamedValue::of_in("n", number));
            request.set_return_type(TypeCode::ulonglong());
            request
        };
        client.send_multiple_requests_deferred([request(7), request(8)]).unwrap();
        assert_eq!((dii.is_ready(0), set.ready_pollable(0).is_err()), (Ok(false), true));
        for number in [7_u64, 8] {
            answers.send(()).unwrap();
            assert_eq!(set.ready_pollable(u32::MAX), Ok((&dii).into()));
            assert_eq!((set.number_left(), dii.is_ready(u32::MAX)), (1, Ok(true)));
            let (request, outcome) = client.next_response().unwrap();
            let number = Any::from_value(&number).unwrap();
            assert_eq!((request.return_value(), outcome), (Some(&number), Ok(())));
            assert_eq!(dii.is_ready(0), Ok(false));
            set.add_pollable(&dii).unwrap();
        }
        assert_eq!(set.remove(&poller), Ok(()));
        let waiter = std::thread::spawn(move || set.ready_pollable(u32::MAX));
        client.shutdown(true).unwrap();
        let ended = match waiter.join().unwrap() {
            Err(PollableSetError::System(exception)) => exception,
            other => panic!("nothing was sent, and not {other:?}"),
        };
        assert_eq!((ended.kind, ended.minor), (Kind::BadInvOrder, OMG | 4));
        assert_eq!(dii.is_ready(u32::MAX), Err(ended));
        let nowhere = PollableSet::default().create_dii_pollable().unwrap_err();
        assert_eq!(nowhere.kind, Kind::BadInvOrder);
    }

    fn the_end_of_the_orb_ends_every_call(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let told = ask(&object, 1);
        let poller = poller(&object, 2);
        peer.heard();
        client.shutdown(true).unwrap();
        let ended = system(heard(&told));
        assert_eq!((ended.kind, ended.minor), (Kind::BadInvOrder, OMG | 4));
        assert_eq!(poll(&poller, 0).unwrap_err(), ended);
        let refused = object.send_callback("number", |w| 1_u64.write(w), None).unwrap_err();
        assert_eq!((refused.kind, refused.minor), (Kind::BadInvOrder, OMG | 4));
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
fn nothing_follows_a_cancellation_that_had_room_for_a_part_of_itself() {
    let (open, opened) = channel();
    let peer = Peer::start(Over::Shared, move |index, wire, tell| {
        if index == 0 {
            let _the_test_lets = opened.recv();
        }
        while let Some(asked) = wire.hear() {
            if index != 0 {
                wire.say(&same(&asked));
            }
            tell(asked);
        }
    });
    let client = common::client();
    let begun = |peer: &Peer, len: usize| {
        let object = peer.seen_by(&client, 2);
        let octets = vec![0; len];
        object
            .send_poller("number", |w| w.write_octets(&octets))
            .expect("it is sent")
    };
    let measure = Peer::silent(Over::Shared);
    let _measured = begun(&measure, 8);
    let head = measure.heard().octets.len() - 8;
    // All of the ring but room for half of a cancellation.
    let first = begun(&peer, RING_SIZE - 8 - head);
    drop(first);
    let second = poller(&peer.seen_by(&client, 2), 2);
    open.send(()).unwrap();
    assert_eq!(peer.heard().octets.len(), RING_SIZE - 8);
    assert_eq!(poll(&second, u32::MAX), Ok(2));
}

#[test]
fn calls_under_way_are_bounded() {
    let peer = Peer::silent(Over::Tcp);
    let client = common::client();
    let object = peer.seen_by(&client, 2);
    let max = deckwatch_orb::limits::OUTSTANDING_MAX as usize;
    let mut pollers: Vec<_> = (0..max).map(|_| poller(&object, 1)).collect();
    let one_more = object.send_poller("number", |w| 1_u64.write(w));
    assert_eq!(one_more.unwrap_err().kind, Kind::NoResources);
    pollers.pop();
    let calls = AtomicU64::new(0);
    let counted = |w: &mut Writer<'_>| {
        calls.fetch_add(1, Ordering::Relaxed);
        1_u64.write(w)
    };
    assert!(object.send_poller("number", counted).is_ok());
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

/// What a holder has raised: the member of the user exception, or a system exception.
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

fn number_of(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
    u64::parse(r)
}
