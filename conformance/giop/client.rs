//! GIOP by clause (CORBA 3.3 part 2, clauses 9.4 to 9.6), at the client: hand-written servers send octets made by hand.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::common;
use crate::common::ior::Ior;
use crate::common::message::{
    CANCEL_REQUEST, CLOSE_CONNECTION, LOCATE_REPLY, LOCATE_REQUEST, LOCATION_FORWARD,
    LOCATION_FORWARD_PERM, MESSAGE_ERROR, MORE_FRAGMENTS, NEEDS_ADDRESSING_MODE, NO_EXCEPTION,
    REPLY, REQUEST, SYNC_NONE, SYNC_WITH_TARGET, SYSTEM_EXCEPTION, USER_EXCEPTION, done, mirror,
    reply,
};
use crate::common::servant::{REFUSED_ID, call, call_with, note};
use crate::common::{Lanes, OMG, ORDERS, Order, Over, Peer, Received, World, message, over_each};
use deckwatch_cdr::limits::UNWRITTEN_SIZE_MIN;
use deckwatch_cdr::{DecodeError, Reader, Write};
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Orb, Policy, SetOverrideType, SyncScope, SystemException,
    SystemExceptionKind as Kind,
};

/// A peer that sends this reply to every request, and the reference to its object.
fn answered(
    over: Over,
    minor: u8,
    answer: impl Fn(&Received) -> Vec<u8> + Send + 'static,
) -> (Peer, Orb, ObjectRef) {
    let peer = Peer::answering(over, move |_, asked| answer(asked));
    let client = common::client();
    let object = peer.seen_by(&client, minor);
    (peer, client, object)
}

over_each! {
    fn a_request_of_each_version_has_the_form_of_its_version(over) {
        let (peer, client, _) = answered(over, 2, mirror);
        for minor in peer.minors() {
            assert_eq!(call_with(&peer.seen_by(&client, minor), "number", &7_u64), Ok(7));
            let heard = peer.heard();
            assert_eq!((heard.kind(), heard.octets[4], heard.minor(), heard.flags() & !1), (REQUEST, 1, minor, 0));
            let asked = heard.asked();
            assert_eq!((asked.key.as_slice(), asked.operation.as_str()), (&b"Fake"[..], "number"));
            assert_eq!(asked.response_flags, if minor == 2 { SYNC_WITH_TARGET } else { 1 });
            assert!(asked.reserved.iter().all(|octet| *octet == 0));
            assert_eq!(asked.body.rest().len(), if minor == 2 { 8 } else { asked.body.rest().len() });
        }
    }

    fn long_octets_at_the_end_of_a_request_arrive_whole_whatever_is_waited_for(over) {
        let peer = Peer::answering_all(over, |_, asked| match asked.asked().response_flags {
            SYNC_NONE => Vec::new(),
            _ => mirror(asked),
        });
        let client = common::client();
        let scopes = [SyncScope::None, SyncScope::WithTransport, SyncScope::WithServer, SyncScope::WithTarget];
        let lens = [UNWRITTEN_SIZE_MIN - 1, UNWRITTEN_SIZE_MIN, 300_001];
        for (minor, len) in peer.minors().flat_map(|minor| lens.map(|len| (minor, len))) {
            let object = peer.seen_by(&client, minor);
            let sent: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
            let expect_heard = || {
                let heard = peer.heard();
                assert_eq!(heard.octets.len(), 12 + heard.body().rest().len());
                assert!(heard.asked().body.sequence() == sent, "{len} octets in 1.{minor}");
            };
            assert!(call_with(&object, "octets", &sent).as_ref() == Ok(&sent));
            expect_heard();
            for scope in scopes {
                let scoped = object.set_policy_overrides(&[Policy::SyncScope(scope)], SetOverrideType::AddOverride);
                let scoped = scoped.expect("one policy");
                assert_eq!(scoped.invoke_oneway("octets", |w| sent.write_last(w)), Ok(()));
                expect_heard();
            }
        }
    }

    fn a_request_without_arguments_ends_with_its_header(over) {
        let (peer, _client, object) = answered(over, 2, done);
        assert_eq!(call(&object, "ping"), Ok(()));
        let heard = peer.heard();
        let stated = heard.body();
        assert_eq!(heard.asked().body.rest(), b"");
        // Request id, flags and reserved octets, addressing disposition, key, operation, and an empty service context
        // list.
        assert_eq!(stated.rest().len(), 4 + 4 + 4 + 4 + 4 + 4 + 5 + 3 + 4);
    }

    fn a_oneway_says_that_it_expects_nothing(over) {
        let peer = Peer::start(over, |_, wire, tell| {
            while let Some(message) = wire.hear() {
                tell(message);
            }
        });
        let client = common::client();
        for minor in peer.minors() {
            let object = peer.seen_by(&client, minor);
            for value in 0..3 {
                note(&object, value).unwrap();
            }
            for value in 0..3 {
                let mut asked = peer.heard().asked();
                assert_eq!((asked.response_flags, asked.body.u32()), (SYNC_NONE, value), "1.{minor}");
            }
        }
    }

    fn requests_under_way_on_one_connection_have_ids_of_their_own(over) {
        let (peer, _client, object) = answered(over, 2, done);
        let mut ids = Vec::new();
        for _ in 0..20 {
            assert_eq!(call(&object, "ping"), Ok(()));
            ids.push(peer.heard().asked().id);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 20);
    }

    fn replies_are_read_in_either_byte_order_and_every_version(over) {
        for order in ORDERS {
            for minor in 0..3 {
                let (_peer, _client, object) = answered(over, 2, move |asked| {
                    let id = asked.asked().id;
                    reply((minor, order), id, NO_EXCEPTION, |o| { o.u64(0x0102_0304_0506_0708); })
                });
                assert_eq!(call_with(&object, "number", &1_u64), Ok(0x0102_0304_0506_0708), "1.{minor} {order:?}");
            }
        }
    }

    fn service_contexts_of_replies_that_are_not_understood_are_passed_over(over) {
        for length in 0..8 {
            let (_peer, _client, object) = answered(over, 2, move |asked| {
                let id = asked.asked().id;
                message((2, Order::Big), REPLY, |o| {
                    o.u32(id).u32(NO_EXCEPTION).u32(2).u32(0x4242_4242).sequence(&vec![1; length]).u32(9).sequence(&[]);
                    // The body starts at a multiple of 8 after any header.
                    o.align(8).sequence(b"results");
                })
            });
            assert_eq!(call_with(&object, "octets", &Vec::<u8>::new()), Ok(b"results".to_vec()), "{length}");
        }
    }

    fn the_body_of_a_request_of_1_2_begins_at_a_multiple_of_eight(over) {
        let (peer, client, _) = answered(over, 2, mirror);
        for minor in peer.minors() {
            // Keys of different lengths put the end of the header at every alignment.
            for length in 1..9 {
                let ior = peer.ior(minor, &vec![b'k'; length]).text(Order::Big);
                let object = client.string_to_object(&ior).unwrap().unwrap();
                assert_eq!(call_with(&object, "octets", &b"abc".to_vec()), Ok(b"abc".to_vec()));
                let mut body = peer.heard().asked().body;
                assert_eq!((body.sequence(), body.rest()), (b"abc".to_vec(), &[][..]), "1.{minor} {length}");
            }
        }
    }

    fn a_user_exception_is_given_to_whoever_knows_its_id(over) {
        for order in ORDERS {
            let (_peer, _client, object) = answered(over, 2, move |asked| {
                reply((2, order), asked.asked().id, USER_EXCEPTION, |o| { o.string(REFUSED_ID).u32(17); })
            });
            let raised: Result<(), Raised> = object.invoke("refuse", |_| Ok(()), |_| Ok(()), known);
            assert_eq!(raised, Err(Raised::Refused(17)));
            // A caller that does not know the user exception gets UNKNOWN, COMPLETED_YES.
            let unknown = call(&object, "refuse").unwrap_err();
            assert_eq!(unknown, SystemException::new(Kind::Unknown, OMG | 1, Completion::Yes));
        }
    }

    fn a_system_exception_is_raised_as_it_came(over) {
        for (id, kind, minor) in [
            ("IDL:omg.org/CORBA/NO_PERMISSION:1.0", Kind::NoPermission, 99),
            ("IDL:omg.org/CORBA/TRANSACTION_ROLLEDBACK:1.0", Kind::TransactionRolledback, OMG | 1),
            ("IDL:somebody/elses:1.0", Kind::Unknown, OMG | 2),
        ] {
            for (number, completed) in [(0, Completion::Yes), (1, Completion::No), (2, Completion::Maybe)] {
                let (_peer, _client, object) = answered(over, 2, move |asked| {
                    reply((2, Order::Big), asked.asked().id, SYSTEM_EXCEPTION, |o| { o.string(id).u32(minor).u32(number); })
                });
                assert_eq!(call(&object, "ping"), Err(SystemException::new(kind, minor, completed)));
            }
        }
    }

    fn a_location_forward_is_followed_without_a_word_and_remembered(over) {
        for (status, minor) in [(LOCATION_FORWARD, 1), (LOCATION_FORWARD, 2), (LOCATION_FORWARD_PERM, 2)] {
            for order in ORDERS {
                let world = World::new(over, Lanes::Many);
                let text = world.orb.object_to_string(&world.object);
                let (peer, _client, object) = answered(over, minor, move |asked| {
                    let ior = common::ior::Ior::of_text(&text);
                    reply((minor, order), asked.asked().id, status, |o| ior.write(o))
                });
                assert_eq!(call_with(&object, "octets", &b"abc".to_vec()), Ok(b"abc".to_vec()));
                let long = vec![7_u8; UNWRITTEN_SIZE_MIN];
                assert!(call_with(&object, "octets", &long) == Ok(long));
                assert_eq!((peer.heard_so_far(), world.probe.calls()), (1, 2));
            }
        }
    }

    fn where_the_forward_has_ended_the_first_address_is_asked_again(over) {
        let first = World::new(over, Lanes::Many);
        let second = World::new(over, Lanes::Many);
        let texts = [&first, &second].map(|world| world.orb.object_to_string(&world.object));
        let mut count = 0;
        let peer = Peer::answering(over, move |_, asked| {
            let ior = common::ior::Ior::of_text(&texts[count.min(1)]);
            count += 1;
            reply((2, Order::Big), asked.asked().id, LOCATION_FORWARD, |o| ior.write(o))
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        assert_eq!(call(&object, "ping"), Ok(()));
        first.orb.shutdown(true).expect("it ends");
        assert_eq!(call(&object, "ping"), Ok(()));
        assert_eq!((peer.heard_so_far(), second.probe.calls()), (2, 1));
    }

    fn a_forward_without_end_is_given_up(over) {
        let own = Arc::new(OnceLock::<Ior>::new());
        let peer = Peer::answering(over, {
            let own = Arc::clone(&own);
            move |_, asked| {
                let ior = own.get().expect("set before the call");
                reply((2, Order::Big), asked.asked().id, LOCATION_FORWARD, |o| ior.write(o))
            }
        });
        own.set(peer.ior(2, b"Fake")).expect("set once");
        let client = common::client();
        let raised = call(&peer.seen_by(&client, 2), "ping").unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::Transient, Completion::No));
        assert!(peer.heard_so_far() <= deckwatch_orb::limits::FORWARDS_MAX);
    }

    fn a_server_that_wants_another_addressing_gets_it(over) {
        for wanted in [1_u16, 2] {
            let (peer, _client, object) = answered(over, 2, move |asked| {
                if asked.asked().addressing == wanted {
                    return done(asked);
                }
                asked.answered(NEEDS_ADDRESSING_MODE, |o| { o.u16(wanted); })
            });
            assert_eq!(call(&object, "ping"), Ok(()));
            let modes = [peer.heard().asked().addressing, peer.heard().asked().addressing];
            assert_eq!(modes, [0, wanted]);
        }
    }

    fn a_request_that_a_farewell_left_unanswered_is_sent_again_on_another_connection(over) {
        for minor in [1, 2] {
            let peer = Peer::start(over, move |index, wire, tell| {
                let asked = wire.hear().expect("a request");
                wire.say(&done(&asked));
                tell(asked);
                if index == 0 {
                    // The peer reads the next request on this connection and sends only CloseConnection.
                    tell(wire.hear().expect("a second request"));
                    wire.say(&message((minor, Order::Big), CLOSE_CONNECTION, |_| ()));
                }
            });
            let client = common::client();
            let object = peer.seen_by(&client, minor);
            assert_eq!(call(&object, "ping"), Ok(()));
            assert_eq!(call_with(&object, "octets", &Vec::<u8>::new()).map_err(|raised| raised.kind), Err(Kind::Marshal), "an answer without results");
            let operations = [(); 3].map(|()| peer.heard().asked().operation);
            assert_eq!(operations, ["ping", "octets", "octets"], "1.{minor}");
        }
    }

    fn a_farewell_on_a_connection_just_made_says_that_nothing_was_done(over) {
        let peer = Peer::start(over, |_, wire, tell| {
            tell(wire.hear().expect("a request"));
            wire.say(&message((2, Order::Big), CLOSE_CONNECTION, |_| ()));
        });
        let client = common::client();
        let raised = call(&peer.seen_by(&client, 2), "ping").unwrap_err();
        assert!(matches!(raised.kind, Kind::CommFailure | Kind::Transient), "{raised:?}");
        assert_eq!(raised.completed, Completion::No);
    }

    fn a_farewell_to_an_idle_connection_is_no_failure(over) {
        let peer = Peer::start(over, |_, wire, tell| {
            let asked = wire.hear().expect("a request");
            wire.say(&done(&asked));
            tell(asked);
            wire.say(&message((2, Order::Big), CLOSE_CONNECTION, |_| ()));
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        for _ in 0..3 {
            assert_eq!(call(&object, "ping"), Ok(()));
            peer.heard();
        }
    }

    fn a_client_closes_the_connection_that_a_farewell_has_ended(over) {
        let peer = Peer::start(over, |_, wire, tell| {
            let asked = wire.hear().expect("a request");
            wire.say(&done(&asked));
            wire.say(&message((2, Order::Big), CLOSE_CONNECTION, |_| ()));
            // The client closes this connection before the peer serves the next one. A request may have crossed the
            // CloseConnection message.
            while let Some(crossing) = wire.hear() {
                assert_eq!(crossing.kind(), REQUEST);
            }
            tell(asked);
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        assert_eq!(call(&object, "ping"), Ok(()));
        assert_eq!(call(&object, "ping"), Ok(()));
        peer.heard();
        client.shutdown(true).expect("it ends");
        peer.heard();
    }

    fn a_connection_lost_without_a_farewell_is_a_comm_failure_that_may_have_completed(over) {
        let peer = Peer::start(over, |_, wire, tell| tell(wire.hear().expect("a request")));
        let client = common::client();
        let raised = call(&peer.seen_by(&client, 2), "ping").unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::CommFailure, Completion::Maybe));
        peer.heard();
        assert_eq!(peer.heard_so_far(), 0, "it is not sent again");
    }

    fn a_message_error_or_nonsense_instead_of_a_reply_is_a_comm_failure(over) {
        let answers = [
            message((2, Order::Big), MESSAGE_ERROR, |_| ()),
            message((0, Order::Big), MESSAGE_ERROR, |_| ()),
            b"GIOP\x01\x02\x00\x4d\x00\x00\x00\x00".to_vec(),
            b"GIOP\x02\x00\x00\x01\x00\x00\x00\x00".to_vec(),
            message((2, Order::Big), REPLY, |o| { o.u32(1); }),
            message((2, Order::Big), REQUEST, |o| { o.u32(1); }),
        ];
        for answer in answers {
            let (_peer, _client, object) = answered(over, 2, move |_| answer.clone());
            let raised = call(&object, "ping").unwrap_err();
            assert_eq!((raised.kind, raised.completed), (Kind::CommFailure, Completion::Maybe));
        }
    }

    fn a_reply_of_an_unknown_status_is_refused(over) {
        let (_peer, client, object) = answered(over, 2, |asked| reply((2, Order::Big), asked.asked().id, 77, |_| ()));
        let raised = call(&object, "ping").unwrap_err();
        assert!(matches!(raised.kind, Kind::CommFailure | Kind::Marshal), "{raised:?}");
        assert_eq!(client.counters().read(Counter::RequestsSent), 1);
    }

    fn a_reply_that_is_shorter_than_its_results_is_marshal_and_was_done(over) {
        let (_peer, _client, object) = answered(over, 2, |asked| {
            reply((2, Order::Big), asked.asked().id, NO_EXCEPTION, |o| { o.u32(1000).raw(b"few"); })
        });
        let raised = call_with(&object, "octets", &Vec::<u8>::new()).unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::Marshal, Completion::Yes));
    }

    fn a_reply_to_nobody_is_passed_over(over) {
        let (_peer, client, object) = answered(over, 2, |asked| {
            let id = asked.asked().id;
            let stray = reply((2, Order::Big), id ^ 0x4000_0000, NO_EXCEPTION, |o| { o.u64(666); });
            [stray, reply((2, Order::Big), id, NO_EXCEPTION, |o| { o.u64(5); })].concat()
        });
        assert_eq!(call_with(&object, "number", &1_u64), Ok(5));
        assert_eq!(client.counters().read(Counter::RepliesToNobody), 1);
    }

    fn a_reply_in_fragments_is_read_as_if_it_had_come_whole(over) {
        for minor in [1, 2] {
            for order in ORDERS {
                let (_peer, _client, object) = answered(over, minor, move |asked| {
                    let id = asked.asked().id;
                    let data: Vec<u8> = (0..120).collect();
                    let mut whole = reply((minor, order), id, NO_EXCEPTION, |o| { o.sequence(&data); });
                    let rest = whole.split_off(48);
                    let (middle, last) = rest.split_at(48);
                    let size = message((minor, order), REPLY, |o| { o.raw(&whole[12..]); });
                    whole[6] |= MORE_FRAGMENTS;
                    whole[8..12].copy_from_slice(&size[8..12]);
                    let part = |data: &[u8]| message((minor, order), common::message::FRAGMENT, |o| {
                        if minor == 2 {
                            o.u32(id);
                        }
                        o.raw(data);
                    });
                    let mut second = part(middle);
                    second[6] |= MORE_FRAGMENTS;
                    [whole, second, part(last)].concat()
                });
                let expected: Vec<u8> = (0..120).collect();
                assert_eq!(call_with(&object, "octets", &Vec::new()), Ok(expected), "1.{minor} {order:?}");
            }
        }
    }

    fn large_requests_go_out_in_fragments(over) {
        let peer = Peer::start(over, |_, wire, tell| {
            while let Some(first) = wire.hear() {
                let (form, mut more) = (first.form(), first.flags() & MORE_FRAGMENTS != 0);
                let mut joined = first.octets.clone();
                joined[6] &= !MORE_FRAGMENTS;
                tell(first);
                while more {
                    let part = wire.hear().expect("the next fragment");
                    more = part.flags() & MORE_FRAGMENTS != 0;
                    joined.extend(&part.octets[if form.0 == 2 { 16 } else { 12 }..]);
                    tell(part);
                }
                wire.say(&mirror(&Received { octets: joined }));
            }
        });
        let client = Orb::builder().round_trip_timeout(common::PATIENCE).fragment_size(1024).build().unwrap();
        let payload: Vec<u8> = (0..4_000).map(|index| index as u8).collect();
        for minor in peer.minors() {
            assert_eq!(call_with(&peer.seen_by(&client, minor), "octets", &payload), Ok(payload.clone()), "1.{minor}");
            let mut part = peer.heard();
            let id = part.body().u32();
            let mut parts = 1;
            while part.flags() & MORE_FRAGMENTS != 0 {
                assert!(part.octets.len() <= 1024 && part.octets.len().is_multiple_of(8));
                part = peer.heard();
                assert_eq!((part.kind(), part.minor()), (common::message::FRAGMENT, minor));
                if minor == 2 {
                    assert_eq!(part.body().u32(), id, "each fragment of 1.2 names its request");
                }
                parts += 1;
            }
            assert_eq!(parts > 1, minor > 0, "1.{minor}");
        }
    }

    fn a_call_that_is_given_up_is_cancelled(over) {
        for minor in 0..3 {
            // The client does not use the connection again; the peer serves one connection at a time.
            let peer = Peer::start(over, |_, wire, tell| {
                while let Some(message) = wire.hear() {
                    tell(message);
                }
            });
            if !peer.minors().contains(&minor) {
                continue;
            }
            let client = common::client();
            let hurried = peer.seen_by(&client, minor).with_round_trip_timeout(Some(Duration::from_millis(20)));
            assert_eq!(call(&hurried, "ping").unwrap_err().kind, Kind::Timeout);
            let id = peer.heard().asked().id;
            let cancel = peer.heard();
            assert_eq!((cancel.kind(), cancel.minor(), cancel.body().u32()), (CANCEL_REQUEST, minor, id));
        }
    }

    fn a_forward_for_good_replaces_the_address_and_one_for_now_does_not(over) {
        for (status, asked_again) in [(LOCATION_FORWARD, 1), (LOCATION_FORWARD_PERM, 0)] {
            let world = World::new(over, Lanes::Many);
            let text = world.orb.object_to_string(&world.object);
            let peer = Peer::answering(over, move |_, asked| {
                let ior = Ior::of_text(&text);
                reply((2, Order::Big), asked.asked().id, status, |o| ior.write(o))
            });
            let client = common::client();
            let object = peer.seen_by(&client, 2);
            assert_eq!(call(&object, "ping"), Ok(()));
            peer.heard();
            world.orb.shutdown(true).expect("it ends");
            assert!(call(&object, "ping").is_err());
            assert_eq!(peer.heard_so_far().min(1), asked_again, "status {status}");
        }
    }

    fn a_client_that_asks_where_an_object_is_heeds_the_answer(over) {
        for (status, expected) in [(0, Ok(false)), (1, Ok(true)), (2, Ok(true))] {
            let world = World::new(over, Lanes::Many);
            let ior = Ior::of_text(&world.orb.object_to_string(&world.object));
            let peer = Peer::answering(over, move |_, asked| {
                assert_eq!(asked.kind(), LOCATE_REQUEST);
                let id = asked.body().u32();
                message(asked.form(), LOCATE_REPLY, |o| {
                    o.u32(id).u32(status);
                    if status == 2 {
                        ior.write(o);
                    }
                })
            });
            let client = common::client();
            let object = peer.seen_by(&client, 2);
            assert_eq!(object.validate_connection(), expected, "status {status}");
            peer.heard();
            if status == 2 {
                assert_eq!(call(&object, "ping"), Ok(()));
                assert_eq!((peer.heard_so_far(), world.probe.calls()), (0, 1));
            }
        }
    }

    fn locate_replies_to_nobody_hurt_nobody(over) {
        let (_peer, _client, object) = answered(over, 2, |asked| {
            let stray = message((2, Order::Big), LOCATE_REPLY, |o| { o.u32(0x4000_0000).u32(1); });
            [stray, done(asked)].concat()
        });
        let called = call(&object, "ping");
        assert!(matches!(called, Ok(()) | Err(SystemException { kind: Kind::CommFailure, .. })), "{called:?}");
    }
}

#[derive(Debug, PartialEq)]
enum Raised {
    Refused(u32),
    System(SystemException),
}

impl From<SystemException> for Raised {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

fn known(id: &str, members: &mut Reader<'_>) -> Result<Option<Raised>, DecodeError> {
    Ok(if id == REFUSED_ID {
        Some(Raised::Refused(members.read_u32()?))
    } else {
        None
    })
}
