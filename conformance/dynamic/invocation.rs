//! Dynamic invocation by clause (CORBA 3.3 part 1, clause 11). The other side's octets are made by hand.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::common;
use crate::common::message::{
    CANCEL_REQUEST, CLOSE_CONNECTION, LOCATION_FORWARD, NO_EXCEPTION, SYNC_NONE, USER_EXCEPTION,
};
use crate::common::servant::{PROBE_ID, REFUSED_ID};
use crate::common::{Lanes, OMG, Peer, Received, World, message, over_each, wait_for};
use crate::valuetypes;
use deckwatch_cdr::typecode::{Member, ValueModifier};
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, TypeCode, Typed, Write};
use deckwatch_dynamic::{CreateRequest, MultipleRequests, NamedValue, Request, RequestError};
use deckwatch_orb::{Completion, ObjectRef, Orb, SystemException, SystemExceptionKind as Kind};

fn refused_code() -> TypeCode {
    let members = [Member {
        name: "code",
        type_code: &TypeCode::ulong(),
    }];
    TypeCode::exception(REFUSED_ID, "Refused", &members)
}

fn any<T: Typed + Write + ?Sized>(value: &T) -> Any {
    Any::from_value(value).expect("a value that can be written")
}

/// A request that returns its argument.
fn number(object: &ObjectRef, number: u64) -> Request {
    let mut request = object.create_request("number");
    request.add_arg(NamedValue::of_in("number", any(&number)));
    request.set_return_type(TypeCode::ulonglong());
    request
}

/// A reply with the number 7.
fn seven(asked: &Received) -> Vec<u8> {
    asked.answered(NO_EXCEPTION, |octets| {
        octets.u64(7);
    })
}

#[track_caller]
fn system<T: std::fmt::Debug>(outcome: Result<T, RequestError>) -> SystemException {
    match outcome {
        Err(RequestError::System(exception)) => exception,
        other => panic!("a system exception, not {other:?}"),
    }
}

over_each! {
    fn a_dynamic_request_sends_its_arguments_in_order_and_takes_what_comes_back(over) {
        let peer = Peer::answering(over, |_, asked| {
            asked.answered(NO_EXCEPTION, |octets| {
                octets.u16(5).u32(6).string("seven");
            })
        });
        let client = common::client();
        for minor in peer.minors() {
            let mut request = peer.seen_by(&client, minor).create_request("everything");
            request.add_arg(NamedValue::of_in("a", any(&1_u8)));
            request.add_arg(NamedValue::of_out("b", TypeCode::ulong()));
            request.add_arg(NamedValue::of_inout("c", any("three")));
            request.add_arg(NamedValue::of_in("d", any(&4_u16)));
            request.set_return_type(TypeCode::ushort());
            assert_eq!(request.invoke(), Ok(()));
            let mut asked = peer.heard().asked();
            assert_eq!(asked.operation, "everything");
            let sent = (asked.body.u8(), asked.body.string(), asked.body.u16());
            assert_eq!(sent, (1, "three".to_owned(), 4));
            assert!(asked.body.rest().is_empty());
            assert_eq!(request.return_value(), Some(&any(&5_u16)));
            let values: Vec<_> = request.arguments().iter().map(|argument| &argument.value).collect();
            assert_eq!(values, [&any(&1_u8), &any(&6_u32), &any("seven"), &any(&4_u16)]);
        }
    }

    fn a_result_and_arguments_may_share_a_value(over) {
        let peer = Peer::answering(over, |_, asked| {
            asked.answered(NO_EXCEPTION, |octets| {
                octets.u32(0x7fff_ff02);
                let first = octets.octets.len() as u32 - 4;
                octets.string("IDL:Point:1.0").u32(7).u32(u32::MAX);
                let from = octets.octets.len() as u32;
                octets.u32(first.wrapping_sub(from));
            })
        });
        let client = common::client();
        let x = [("x", &TypeCode::long())];
        let point = valuetypes::valuetype("IDL:Point:1.0", ValueModifier::None, None, &x);
        for minor in peer.minors() {
            let mut request = peer.seen_by(&client, minor).create_request("points");
            request.add_arg(NamedValue::of_out("b", point.clone()));
            request.set_return_type(point.clone());
            assert_eq!(request.invoke(), Ok(()));
            let expected = valuetypes::instance("IDL:Point:1.0", vec![Value::Long(7)]);
            assert_eq!(request.return_value().map(Any::to_dynamic), Some(Ok(expected.clone())));
            assert_eq!(request.arguments()[0].value.to_dynamic(), Ok(expected));
        }
    }

    fn arguments_are_written_as_they_are_declared_wherever_they_lie(over) {
        let peer = Peer::answering(over, |_, asked| seven(asked));
        let client = common::client();
        let pairs = vec![(1_u16, 0.5_f64), (2, 0.25)];
        let pair = TypeCode::structure("IDL:Pair:1.0", "Pair", &[
            Member { name: "a", type_code: &TypeCode::ushort() },
            Member { name: "b", type_code: &TypeCode::double() },
        ]);
        let pairs_code = TypeCode::sequence(&pair, 0);
        let value = |&(a, b): &(u16, f64)| Value::Struct(vec![Value::UShort(a), Value::Double(b)]);
        let value = Value::Elements(pairs.iter().map(value).collect());
        let pairs_any = Any::from_dynamic(&pairs_code, &value).expect("a value of its type");
        for minor in peer.minors() {
            for before in 0..4_usize {
                let mut request = peer.seen_by(&client, minor).create_request("pairs");
                for _ in 0..before {
                    request.add_arg(NamedValue::of_in("before", any(&9_u8)));
                }
                request.add_arg(NamedValue::of_in("pairs", pairs_any.clone()));
                request.add_arg(NamedValue::of_in("behind", any(&8_u8)));
                request.set_return_type(TypeCode::ulonglong());
                assert_eq!(request.invoke(), Ok(()));
                let mut body = peer.heard().asked().body;
                assert!((0..before).all(|_| body.u8() == 9));
                assert_eq!(body.u32(), 2);
                let read: Vec<_> = (0..2).map(|_| (body.u16(), f64::from_bits(body.u64()))).collect();
                assert_eq!((read, body.u8()), (pairs.clone(), 8));
                assert!(body.rest().is_empty());
            }
        }
    }

    fn an_argument_of_another_type_than_declared_is_not_sent(over) {
        let peer = Peer::answering(over, |_, asked| seven(asked));
        let client = common::client();
        for value in [any(&1_u32), Any::empty()] {
            let mut argument = NamedValue::of_in("number", any(&1_u64));
            argument.value = value;
            let mut request = peer.seen_by(&client, 2).create_request("number");
            request.add_arg(argument);
            let raised = system(request.invoke());
            assert_eq!((raised.kind, raised.completed), (Kind::BadParam, Completion::No));
        }
        assert_eq!(peer.heard_so_far(), 0);
    }

    fn the_properties_of_a_context_follow_the_arguments(over) {
        let peer = Peer::answering(over, |_, asked| seven(asked));
        let client = common::client();
        let mut request = number(&peer.seen_by(&client, 2), 3);
        request.set_context(&[("USER", "nav")]);
        assert_eq!(request.invoke(), Ok(()));
        let mut asked = peer.heard().asked();
        assert_eq!((asked.body.u64(), asked.body.u32()), (3, 2));
        assert_eq!((asked.body.string(), asked.body.string()), ("USER".to_owned(), "nav".to_owned()));
    }

    fn a_declared_exception_comes_as_an_any_and_another_as_unknown(over) {
        let client = common::client();
        // Deferred requests use another connection, and a peer serves one connection after the other.
        for is_deferred in [false, true] {
            let peer = Peer::answering(over, |_, asked| {
                asked.answered(USER_EXCEPTION, |octets| {
                    octets.string(REFUSED_ID).u32(9);
                })
            });
            for minor in peer.minors() {
                let call = |declared: bool| {
                    let mut request = peer.seen_by(&client, minor).create_request("refuse");
                    if declared {
                        request.add_exception(refused_code());
                    }
                    if is_deferred {
                        request.send_deferred()?;
                        request.response()
                    } else {
                        request.invoke()
                    }
                };
                let Err(RequestError::User(raised)) = call(true) else {
                    panic!("a user exception");
                };
                assert_eq!(raised.exception.type_code(), &refused_code());
                assert_eq!(raised.exception.to_dynamic(), Ok(Value::Struct(vec![Value::ULong(9)])));
                let unknown = system(call(false));
                assert_eq!((unknown.kind, unknown.minor), (Kind::Unknown, OMG | 1));
            }
        }
    }

    fn a_dynamic_one_way_asks_for_no_response(over) {
        let peer = Peer::start(over, |_, wire, tell| {
            while let Some(asked) = wire.hear() {
                tell(asked);
            }
        });
        let client = common::client();
        for minor in peer.minors() {
            let mut request = number(&peer.seen_by(&client, minor), 3);
            assert_eq!(request.send_oneway(), Ok(()));
            let mut asked = peer.heard().asked();
            assert_eq!((asked.response_flags, asked.body.u64()), (SYNC_NONE, 3));
        }
    }

    fn a_dynamic_request_calls_a_static_servant(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let object = world.seen_by(&client);
        let mut request = number(&object, 1 << 40);
        assert_eq!(request.invoke(), Ok(()));
        assert_eq!(request.return_value(), Some(&any(&(1_u64 << 40))));
        let mut is_a = object.create_request("_is_a");
        is_a.add_arg(NamedValue::of_in("logical_type_id", any(PROBE_ID)));
        is_a.set_return_type(TypeCode::boolean());
        assert_eq!(is_a.invoke(), Ok(()));
        assert_eq!(is_a.return_value(), Some(&any(&true)));
        let failed = system(object.create_request("fail").invoke());
        assert_eq!((failed.kind, failed.minor), (Kind::NoPermission, 7));
    }

    fn a_request_is_good_for_one_call_and_its_response_for_one_fetch(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let object = world.seen_by(&client);
        let wrong = |exception: SystemException, minor| {
            assert_eq!((exception.kind, exception.minor), (Kind::BadInvOrder, OMG | minor));
        };
        let mut request = number(&object, 1);
        wrong(request.poll_response().unwrap_err(), 11);
        wrong(system(request.response()), 11);
        assert_eq!(request.invoke(), Ok(()));
        wrong(system(request.invoke()), 5);
        wrong(request.send_oneway().unwrap_err(), 10);
        wrong(request.send_deferred().unwrap_err(), 10);
        wrong(request.poll_response().unwrap_err(), 13);
        wrong(system(request.response()), 13);
        let mut request = number(&object, 1);
        assert_eq!(request.send_deferred(), Ok(()));
        wrong(system(request.invoke()), 5);
        wrong(request.send_deferred().unwrap_err(), 10);
        assert_eq!(request.response(), Ok(()));
        wrong(request.poll_response().unwrap_err(), 12);
        wrong(system(request.response()), 12);
        let mut request = number(&object, 1);
        assert_eq!(request.send_oneway(), Ok(()));
        wrong(request.poll_response().unwrap_err(), 13);
    }

    fn deferred_requests_are_under_way_side_by_side(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let object = world.seen_by(&client);
        let mut waiting = object.create_request("meet");
        assert_eq!(waiting.send_deferred(), Ok(()));
        world.probe.gate.wait_for_arrivals(1);
        let mut requests: Vec<_> = (0..3).map(|value| number(&object, value)).collect();
        for request in &mut requests {
            assert_eq!(request.send_deferred(), Ok(()));
        }
        for (value, request) in (0..3_u32).map(u64::from).zip(&mut requests).rev() {
            wait_for_reply(request);
            assert_eq!(request.response(), Ok(()));
            assert_eq!(request.return_value(), Some(&any(&value)));
        }
        assert_eq!(waiting.poll_response(), Ok(false));
        world.probe.gate.open();
        assert_eq!(waiting.response(), Ok(()));
        assert_eq!(waiting.return_value(), None);
    }

    fn a_reply_that_has_come_in_part_has_not_come(over) {
        let (open, opened) = channel();
        let peer = Peer::start(over, move |_, wire, tell| {
            while let Some(asked) = wire.hear() {
                let whole = seven(&asked);
                let (first, rest) = whole.split_at(17);
                wire.say(first);
                tell(asked);
                let _ = opened.recv(); // Sent, or the test is over.
                wire.say(rest);
            }
        });
        let client = common::client();
        let mut request = number(&peer.seen_by(&client, 2), 1);
        assert_eq!(request.send_deferred(), Ok(()));
        peer.heard();
        for _ in 0..100 {
            assert_eq!(request.poll_response(), Ok(false));
        }
        open.send(()).expect("the peer waits for it");
        wait_for_reply(&mut request);
        assert_eq!(request.response(), Ok(()));
        assert_eq!(request.return_value(), Some(&any(&7_u64)));
    }

    fn a_deferred_request_follows_a_forward(over) {
        let new_place = Peer::answering(over, |_, asked| seven(asked));
        let ior = new_place.ior(2, b"Elsewhere");
        let old_place = Peer::answering(over, move |_, asked| {
            asked.answered(LOCATION_FORWARD, |octets| ior.write(octets))
        });
        let client = common::client();
        let mut request = number(&old_place.seen_by(&client, 2), 3);
        assert_eq!(request.send_deferred(), Ok(()));
        assert_eq!(request.response(), Ok(()));
        assert_eq!(request.return_value(), Some(&any(&7_u64)));
        let mut asked = new_place.heard().asked();
        assert_eq!((asked.key, asked.body.u64()), (b"Elsewhere".to_vec(), 3));
    }

    fn a_deferred_request_that_was_not_served_is_sent_again(over) {
        let peer = Peer::start(over, |index, wire, tell| {
            while let Some(asked) = wire.hear() {
                if index == 0 {
                    wire.say(&message(asked.form(), CLOSE_CONNECTION, |_| ()));
                    wire.end();
                    return;
                }
                wire.say(&seven(&asked));
                tell(asked);
            }
        });
        let client = common::client();
        let mut request = number(&peer.seen_by(&client, 2), 3);
        assert_eq!(request.send_deferred(), Ok(()));
        assert_eq!(request.response(), Ok(()));
        assert_eq!(peer.heard().asked().body.u64(), 3);
    }

    fn a_deferred_request_ends_by_its_timeout(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        let object = peer.seen_by(&client, 2).with_round_trip_timeout(Some(Duration::from_millis(30)));
        for is_polled in [true, false] {
            let mut request = number(&object, 1);
            assert_eq!(request.send_deferred(), Ok(()));
            if is_polled {
                wait_for_reply(&mut request);
            }
            assert_eq!(system(request.response()).kind, Kind::Timeout);
        }
    }

    fn several_requests_are_given_back_as_their_replies_come(over) {
        // The first request gets its reply after all others have arrived.
        let mut first = None;
        let peer = Peer::answering(over, move |count, asked| {
            let value = asked.asked().body.u64();
            let answer = asked.answered(NO_EXCEPTION, |octets| {
                octets.u64(value);
            });
            match count {
                0 => {
                    first = Some(answer);
                    Vec::new()
                }
                1 => answer,
                _ => [answer, first.take().unwrap_or_default()].concat(),
            }
        });
        let client = common::client();
        let requests = MultipleRequests::new(&client);
        let none = |exception: SystemException| (exception.kind, exception.minor);
        assert_eq!(none(requests.poll_next_response().unwrap_err()), (Kind::BadInvOrder, OMG | 11));
        assert_eq!(none(requests.next_response().unwrap_err()), (Kind::BadInvOrder, OMG | 11));
        let object = peer.seen_by(&client, 2);
        requests.send_multiple_requests_deferred((0..2).map(|value| number(&object, value))).unwrap();
        let (mut second, outcome) = requests.next_response().unwrap();
        assert_eq!((outcome, second.return_value()), (Ok(()), Some(&any(&1_u64))));
        assert_eq!(none(second.poll_response().unwrap_err()), (Kind::BadInvOrder, OMG | 12));
        assert_eq!(requests.poll_next_response(), Ok(false));
        requests.send_multiple_requests_deferred([number(&object, 2)]).unwrap();
        let mut rest: Vec<_> = (0..2).map(|_| {
            let (request, outcome) = requests.next_response().unwrap();
            assert_eq!(outcome, Ok(()));
            request.return_value().cloned()
        }).collect();
        rest.sort_by_key(|value| *value == Some(any(&2_u64)));
        assert_eq!(rest, [Some(any(&0_u64)), Some(any(&2_u64))]);
        assert_eq!(none(requests.next_response().unwrap_err()), (Kind::BadInvOrder, OMG | 11));
    }

    fn one_thread_may_poll_while_another_waits_for_the_same_requests(over) {
        let peer = Peer::answering(over, |_, asked| {
            // The request that is waited for gets no reply.
            let number = asked.asked().body.u64();
            if number == 0 { Vec::new() } else { seven(asked) }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let requests = Arc::new(MultipleRequests::new(&client));
        requests.send_multiple_requests_deferred([number(&object, 0)]).unwrap();
        let waits = Arc::clone(&requests);
        let waiter = std::thread::spawn(move || drop(waits.next_response()));
        let (ended, has_ended) = channel();
        let polls = Arc::clone(&requests);
        std::thread::spawn(move || {
            while polls.poll_next_response() == Ok(false) {}
            drop(ended);
        });
        let (told, done) = channel();
        std::thread::spawn(move || {
            // The completion of each of these requests wakes the waiting thread.
            for _ in 0..300 {
                let mut other = number(&object, 1);
                other.send_deferred().unwrap();
                other.response().unwrap();
            }
            told.send(()).unwrap();
        });
        assert_eq!(done.recv_timeout(common::PATIENCE), Ok(()));
        client.shutdown(true).unwrap();
        assert_eq!(has_ended.recv_timeout(common::PATIENCE), Err::<(), _>(RecvTimeoutError::Disconnected));
        waiter.join().unwrap();
    }

    fn several_one_ways_are_sent_in_their_order(over) {
        let world = World::new(over, Lanes::OneThread);
        let client = common::client();
        let object = world.seen_by(&client);
        let note = |value: u32| {
            let mut request = object.create_request("note");
            request.add_arg(NamedValue::of_in("value", any(&value)));
            request
        };
        let several = MultipleRequests::new(&client);
        let mut requests: Vec<_> = (0..3).map(note).collect();
        assert_eq!(several.send_multiple_requests_oneway(&mut requests), Ok(()));
        wait_for(|| world.probe.notes() == [0, 1, 2]);
        let again = several.send_multiple_requests_oneway(&mut requests).unwrap_err();
        assert_eq!((again.kind, again.minor), (Kind::BadInvOrder, OMG | 10));
    }

    fn a_deferred_request_of_any_version_follows_a_forward_to_any_other(over) {
        let world = World::new(over, Lanes::Many);
        let text = world.orb.object_to_string(&world.object);
        for minor in Peer::answering(over, |_, asked| seven(asked)).minors() {
            let ior = common::ior::Ior::of_text(&text);
            let old_place = Peer::answering(over, move |_, asked| {
                asked.answered(LOCATION_FORWARD, |octets| ior.write(octets))
            });
            let client = common::client();
            let mut request = number(&old_place.seen_by(&client, minor), 3);
            assert_eq!(request.send_deferred(), Ok(()));
            assert_eq!(request.response(), Ok(()));
            assert_eq!(request.return_value(), Some(&any(&3_u64)));
        }
    }

    fn a_deferred_request_that_is_dropped_is_cancelled(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        let mut request = number(&peer.seen_by(&client, 2), 1);
        assert_eq!(request.send_deferred(), Ok(()));
        let asked = peer.heard().asked();
        drop(request);
        let cancel = peer.heard();
        assert_eq!((cancel.kind(), cancel.body().u32()), (CANCEL_REQUEST, asked.id));
    }
}

#[track_caller]
fn wait_for_reply(request: &mut Request) {
    let request = std::cell::RefCell::new(request);
    wait_for(|| request.borrow_mut().poll_response() == Ok(true));
}

#[test]
fn deferred_requests_are_bounded() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let _kept_open: Vec<_> = listener.incoming().collect();
    });
    let client: Orb = common::client();
    let url = format!("corbaloc::{address}/Silent");
    let object = client
        .string_to_object(&url)
        .expect("a URL")
        .expect("not nil");
    let mut requests = Vec::new();
    for _ in 0..deckwatch_orb::limits::OUTSTANDING_MAX {
        let mut request = number(&object, 1);
        assert_eq!(request.send_deferred(), Ok(()));
        requests.push(request);
    }
    let mut one_more = number(&object, 1);
    assert_eq!(
        one_more.send_deferred().unwrap_err().kind,
        Kind::NoResources
    );
    requests.pop();
    assert_eq!(one_more.send_deferred(), Ok(()));
}
