//! Portable interceptors at the client, by clause (CORBA 3.3 part 1, clause 16.3). The other side's octets are made by
//! hand.

use std::sync::{Arc, Mutex};

use crate::common;
use crate::common::asynchronous::{ask, heard, same};
use crate::common::interceptor::{AtClient, Init, Log, RAISED, with_clients};
use crate::common::lanes::{LaneWorld, RT_CORBA_PRIORITY, propagated};
use crate::common::message::{
    CLOSE_CONNECTION, LOCATION_FORWARD, NO_EXCEPTION, REPLY, SYSTEM_EXCEPTION, USER_EXCEPTION,
};
use crate::common::rt::at;
use crate::common::servant::REFUSED_ID;
use crate::common::{Cursor, OMG, Over, Peer, Received, message, over_each};
use deckwatch_cdr::Any;
use deckwatch_dynamic::{CreateRequest, Poller};
use deckwatch_orb::interceptor::{
    ClientRequestInfo, InterceptorError, OrbInitInfo, ReplyStatus, SlotError, component_tag,
};
use deckwatch_orb::{
    Counter, ForwardRequest, ObjectRef, Orb, Policies, Policy, PolicyType, SetOverrideType,
    SyncScope, SystemException, SystemExceptionKind as Kind,
};

type Done = Result<(), InterceptorError>;

/// A service context id that nothing else uses.
const OURS: u32 = 0x4455_0001;

fn quiet(_: &str, _: &str, _: &mut ClientRequestInfo) -> Done {
    Ok(())
}

fn orb<const N: usize>(
    names: [&'static str; N],
    log: &Log,
    act: impl Fn(&str, &str, &mut ClientRequestInfo) -> Done + Send + Sync + 'static,
) -> Orb {
    let builder = Orb::builder().round_trip_timeout(common::PATIENCE);
    let built = with_clients(builder, names, log, act).build();
    built.expect("nothing is refused")
}

/// A reply with this status and a service context, in the form of the request.
fn replied(asked: &Received, status: u32, body: impl FnOnce(&mut common::Octets)) -> Vec<u8> {
    let asked = asked.asked();
    message(asked.form, REPLY, |octets| {
        if asked.form.0 == 2 {
            octets.u32(asked.id).u32(status);
            octets.u32(1).u32(OURS).sequence(&[4, 5]).align(8);
        } else {
            octets.u32(1).u32(OURS).sequence(&[4, 5]);
            octets.u32(asked.id).u32(status);
        }
        body(octets);
    })
}

fn ping(object: &ObjectRef) -> Result<(), SystemException> {
    object.invoke("ping", |_| Ok(()), |_| Ok(()), |_, _| Ok(None))
}

/// A peer that replies without results.
fn pong(over: Over) -> Peer {
    Peer::answering(over, |_, asked| replied(asked, NO_EXCEPTION, |_| ()))
}

/// Makes a request to which an interceptor adds a service context, and checks that it arrives. Returns the ending point
/// that the interceptor reached.
fn travels(over: Over, minor: u8, request: impl Fn(&ObjectRef)) -> String {
    let log = Log::default();
    let peer = Peer::answering(over, |_, asked| match asked.asked().response_flags {
        0 => Vec::new(),
        _ => replied(asked, NO_EXCEPTION, |_| ()),
    });
    let client = orb(["a"], &log, |_, point, info| {
        if point == "send_request" {
            info.add_request_service_context(OURS, &[1, 2, 3], false)?;
            assert_eq!(info.request_service_context(OURS)?.data, [1, 2, 3]);
        }
        if point == "receive_reply" {
            assert_eq!(info.reply_service_context(OURS)?.data, [4, 5]);
            let missing = info.reply_service_context(OURS + 1).unwrap_err();
            assert_eq!((missing.kind, missing.minor), (Kind::BadParam, OMG | 26));
        }
        Ok(())
    });
    request(&peer.seen_by(&client, minor));
    let contexts = peer.heard().asked().contexts;
    assert!(contexts.contains(&(OURS, vec![1, 2, 3])), "{contexts:?}");
    let [first, last] = <[String; 2]>::try_from(log.take()).expect("two points");
    assert_eq!(first, "a send_request");
    last
}

over_each! {
    fn starting_points_go_in_order_and_ending_points_back(over) {
        let (log, peer) = (Log::default(), pong(over));
        let client = orb(["a", "b"], &log, quiet);
        assert_eq!(ping(&peer.seen_by(&client, 2)), Ok(()));
        let expected = ["a send_request", "b send_request", "b receive_reply", "a receive_reply"];
        assert_eq!(log.take(), expected);
        client.shutdown(true).expect("it ends");
        assert_eq!(log.take(), ["a destroy", "b destroy"]);
    }

    fn an_interceptor_that_panics_is_unknown_to_the_caller_and_costs_nothing_else(over) {
        let log = Log::default();
        let peer = Peer::answering_all(over, |_, asked| replied(asked, NO_EXCEPTION, |_| ()));
        let panics_at = Arc::new(Mutex::new("nowhere"));
        let at = Arc::clone(&panics_at);
        let client = orb(["a", "b"], &log, move |name, point, _| {
            assert!(name != "b" || point != *at.lock().unwrap(), "an interceptor panics, as the test asked it to");
            Ok(())
        });
        let object = peer.seen_by(&client, 2);
        let asynchronously = || {
            let poller = Poller::send(&object, "ping", |_| Ok(()))?;
            poller.poll("ping", u32::MAX, |_| Ok(()), |_, _| Ok(None))
        };
        for point in ["send_request", "receive_reply"] {
            *panics_at.lock().unwrap() = point;
            log.take();
            let called: [&dyn Fn() -> Result<(), SystemException>; 2] =
                [&|| ping(&object), &asynchronously];
            for call in called {
                let raised = call().map_err(|exception| exception.kind);
                assert_eq!(raised, Err(Kind::Unknown));
                assert_eq!(log.take().last().map(String::as_str), Some("a receive_exception"));
            }
            *panics_at.lock().unwrap() = "nowhere";
            assert_eq!((ping(&object), asynchronously()), (Ok(()), Ok(())));
        }
    }

    fn an_asynchronous_request_that_is_sent_again_may_be_sent_elsewhere(over) {
        let (log, elsewhere) = (Log::default(), pong(over));
        let peer = Peer::start(over, |_, wire, _| {
            if let Some(asked) = wire.hear() {
                wire.say(&message(asked.form(), CLOSE_CONNECTION, |_| ()));
                wire.end();
            }
        });
        let named: Arc<Mutex<Option<ObjectRef>>> = Arc::default();
        let to = Arc::clone(&named);
        let client = orb(["a"], &log, move |_, point, info| {
            if point == "receive_other" && info.reply_status() == Ok(ReplyStatus::TransportRetry) {
                let forward_reference = to.lock().unwrap().clone().expect("the test names it");
                return Err(ForwardRequest { forward_reference }.into());
            }
            Ok(())
        });
        *named.lock().unwrap() = Some(elsewhere.seen_by(&client, 2));
        let poller = Poller::send(&peer.seen_by(&client, 2), "ping", |_| Ok(())).unwrap();
        let outcome: Result<(), SystemException> =
            poller.poll("ping", u32::MAX, |_| Ok(()), |_, _| Ok(None));
        assert_eq!(outcome, Ok(()));
        assert_eq!(elsewhere.heard_so_far(), 1);
        *named.lock().unwrap() = None;
    }

    fn what_is_added_travels_with_every_kind_of_request_and_reply_contexts_come_back(over) {
        for minor in pong(over).minors() {
            let ended = travels(over, minor, |object| assert_eq!(ping(object), Ok(())));
            assert_eq!(ended, "a receive_reply");
            for (scope, expected) in [
                (SyncScope::None, "a receive_other"),
                (SyncScope::WithTransport, "a receive_other"),
                (SyncScope::WithTarget, "a receive_reply"),
            ] {
                let ended = travels(over, minor, |object| {
                    let policies = [Policy::SyncScope(scope)];
                    let object = object.set_policy_overrides(&policies, SetOverrideType::AddOverride);
                    assert_eq!(object.unwrap().invoke_oneway("note", |_| Ok(())), Ok(()));
                });
                assert_eq!(ended, expected, "{scope:?}");
            }
            let ended = travels(over, minor, |object| {
                let mut deferred = object.create_request("ping");
                deferred.send_deferred().unwrap();
                deferred.response().unwrap();
            });
            assert_eq!(ended, "a receive_reply");
        }
    }

    fn an_exception_is_seen_with_its_id_and_value(over) {
        let log = Log::default();
        let peer = Peer::answering(over, |count, asked| match count {
            0 => replied(asked, USER_EXCEPTION, |octets| {
                octets.string(REFUSED_ID).u32(1);
            }),
            _ => replied(asked, SYSTEM_EXCEPTION, |octets| {
                octets.string("IDL:omg.org/CORBA/NO_PERMISSION:1.0").u32(7).u32(1);
            }),
        });
        let note = log.clone();
        let client = orb(["a"], &log, move |_, point, info| {
            if point == "receive_exception" {
                let any = info.received_exception()?;
                let (id, code) = (info.received_exception_id()?, any.type_code());
                note.note(format!("{:?} {id} {}", info.reply_status()?, code.id().unwrap()));
            }
            Ok(())
        });
        let object = peer.seen_by(&client, 2);
        assert_eq!(ping(&object).unwrap_err().kind, Kind::Unknown);
        assert_eq!(ping(&object).unwrap_err().kind, Kind::NoPermission);
        let unknown = "IDL:omg.org/CORBA/UNKNOWN:1.0";
        let denied = "IDL:omg.org/CORBA/NO_PERMISSION:1.0";
        let expected = [
            "a send_request".to_owned(),
            "a receive_exception".to_owned(),
            format!("UserException {REFUSED_ID} {unknown}"),
            "a send_request".to_owned(),
            "a receive_exception".to_owned(),
            format!("SystemException {denied} {denied}"),
        ];
        assert_eq!(log.take(), expected);
    }

    fn who_raises_at_a_starting_point_keeps_the_request_and_is_not_told_of_the_end(over) {
        let (log, peer) = (Log::default(), pong(over));
        let client = orb(["a", "b", "c"], &log, |name, point, _| match (name, point) {
            ("b", "send_request") => Err(RAISED.into()),
            _ => Ok(()),
        });
        let object = peer.seen_by(&client, 2);
        assert_eq!(ping(&object), Err(RAISED));
        assert_eq!(log.take(), ["a send_request", "b send_request", "a receive_exception"]);
        assert_eq!(object.invoke_oneway("note", |_| Ok(())), Err(RAISED));
        assert!(object.create_request("ping").send_deferred().is_err());
        assert_eq!(peer.heard_so_far(), 0);
    }

    fn who_raises_at_an_ending_point_changes_what_the_others_and_the_caller_see(over) {
        let (log, peer) = (Log::default(), pong(over));
        let client = orb(["a", "b", "c"], &log, |name, point, _| match (name, point) {
            ("b", "receive_reply") => Err(RAISED.into()),
            _ => Ok(()),
        });
        assert_eq!(ping(&peer.seen_by(&client, 2)), Err(RAISED));
        let ended = log.take().split_off(3);
        assert_eq!(ended, ["c receive_reply", "b receive_reply", "a receive_exception"]);
    }

    fn a_forward_request_has_another_object_asked_and_is_other_to_those_outside(over) {
        let (log, here, there) = (Log::default(), pong(over), pong(over));
        let elsewhere: Arc<Mutex<Option<ObjectRef>>> = Arc::default();
        let target = Arc::clone(&elsewhere);
        let client = orb(["a", "b"], &log, move |name, point, info| {
            let forward = target.lock().unwrap().clone();
            if point == "receive_other" {
                assert_eq!(info.reply_status()?, ReplyStatus::LocationForward);
                assert_eq!(info.forward_reference()?, forward.as_ref().unwrap());
            }
            if let ("b", "send_request", Some(forward_reference)) = (name, point, forward)
                && info.effective_target() != forward_reference
            {
                return Err(ForwardRequest { forward_reference }.into());
            }
            Ok(())
        });
        *elsewhere.lock().unwrap() = Some(there.seen_by(&client, 2));
        assert_eq!(ping(&here.seen_by(&client, 2)), Ok(()));
        assert_eq!(here.heard_so_far(), 0);
        assert_eq!(there.heard().asked().operation, "ping");
        let expected = [
            "a send_request", "b send_request", "a receive_other",
            "a send_request", "b send_request", "b receive_reply", "a receive_reply",
        ];
        assert_eq!(log.take(), expected);
    }

    fn an_exception_can_be_turned_into_a_forward(over) {
        // Deferred requests use another connection, and a peer serves one connection after the other.
        for is_deferred in [false, true] {
            let (log, there) = (Log::default(), pong(over));
            let here = Peer::answering(over, |_, asked| {
                replied(asked, SYSTEM_EXCEPTION, |octets| {
                    octets.string("IDL:omg.org/CORBA/NO_PERMISSION:1.0").u32(7).u32(1);
                })
            });
            let elsewhere: Arc<Mutex<Option<ObjectRef>>> = Arc::default();
            let target = Arc::clone(&elsewhere);
            let client = orb(["a", "b"], &log, move |name, point, _| match (name, point) {
                ("b", "receive_exception") => {
                    let forward_reference = target.lock().unwrap().clone().unwrap();
                    Err(ForwardRequest { forward_reference }.into())
                }
                _ => Ok(()),
            });
            *elsewhere.lock().unwrap() = Some(there.seen_by(&client, 2));
            let object = here.seen_by(&client, 2);
            if is_deferred {
                let mut deferred = object.create_request("ping");
                deferred.send_deferred().unwrap();
                assert_eq!(deferred.response(), Ok(()));
            } else {
                assert_eq!(ping(&object), Ok(()));
            }
            let ended = log.take().split_off(2);
            let expected = [
                "b receive_exception", "a receive_other",
                "a send_request", "b send_request", "b receive_reply", "a receive_reply",
            ];
            assert_eq!(ended, expected);
        }
    }

    fn a_server_that_forwards_is_other_and_the_request_begins_anew(over) {
        let (log, there) = (Log::default(), pong(over));
        let to = there.ior(2, b"There");
        let here = Peer::answering(over, move |_, asked| {
            replied(asked, LOCATION_FORWARD, |octets| to.write(octets))
        });
        let note = log.clone();
        let client = orb(["a"], &log, move |_, _, info| {
            let effective = info.effective_target();
            let is_forwarded = effective != *info.target();
            let profile = info.effective_profile();
            assert_eq!(effective.ior().profiles, [profile]);
            note.note(if is_forwarded { "elsewhere" } else { "here" });
            Ok(())
        });
        assert_eq!(ping(&here.seen_by(&client, 2)), Ok(()));
        let expected = [
            "a send_request", "here", "a receive_other", "here",
            "a send_request", "elsewhere", "a receive_reply", "elsewhere",
        ];
        assert_eq!(log.take(), expected);
    }

    fn a_deferred_request_that_is_given_up_ends_too(over) {
        let log = Log::default();
        let peer = Peer::answering(over, |_, _| Vec::new());
        let note = log.clone();
        let client = orb(["a"], &log, move |_, point, info| {
            if point == "receive_other" {
                note.note(format!("{:?}", info.reply_status()?));
            }
            Ok(())
        });
        let mut deferred = peer.seen_by(&client, 2).create_request("ping");
        deferred.send_deferred().unwrap();
        drop(deferred);
        assert_eq!(log.take(), ["a send_request", "a receive_other", "Unknown"]);
    }

    fn each_question_is_answered_where_the_standard_has_it_and_refused_elsewhere(over) {
        let (log, peer) = (Log::default(), pong(over));
        let client = orb(["a"], &log, |_, point, info| {
            let (before, reply) = (point == "send_request", point == "receive_reply");
            let refused = |answer: Result<(), SystemException>, allowed: bool| {
                let exception = answer.unwrap_err();
                let expected = if allowed { (Kind::NoResources, OMG | 1) } else { (Kind::BadInvOrder, OMG | 14) };
                assert_eq!((exception.kind, exception.minor), expected, "{point}");
            };
            refused(info.arguments().map(drop), before || reply);
            refused(info.result().map(drop), reply);
            refused(info.exceptions().map(drop), true);
            refused(info.contexts().map(drop), true);
            refused(info.operation_context().map(drop), true);
            refused(info.forward_reference().map(drop), false);
            refused(info.received_exception().map(drop), false);
            refused(info.received_exception_id().map(drop), false);
            if before {
                refused(info.reply_status().map(drop), false);
                refused(info.reply_service_context(OURS).map(drop), false);
                info.add_request_service_context(OURS, &[1], false)?;
                let twice = info.add_request_service_context(OURS, &[2], false).unwrap_err();
                assert_eq!((twice.kind, twice.minor), (Kind::BadInvOrder, OMG | 15));
                info.add_request_service_context(OURS, &[3], true)?;
            } else {
                refused(info.add_request_service_context(OURS, &[3], true), false);
                assert_eq!(info.reply_status()?, ReplyStatus::Successful);
            }
            assert_eq!(info.operation(), "ping");
            assert!(info.response_expected());
            assert_eq!(info.request_policy(PolicyType::RELATIVE_RT_TIMEOUT)?, Some(Policy::RelativeRoundtripTimeout(common::PATIENCE)));
            let unknown = info.request_policy(PolicyType(4_711)).unwrap_err();
            assert_eq!((unknown.kind, unknown.minor), (Kind::InvPolicy, OMG | 2));
            let missing = info.effective_component(component_tag::SSL_SEC_TRANS).unwrap_err();
            assert_eq!((missing.kind, missing.minor), (Kind::BadParam, OMG | 28));
            assert_eq!(info.slot(0), Err(SlotError::InvalidSlot));
            Ok(())
        });
        assert_eq!(ping(&peer.seen_by(&client, 2)), Ok(()));
        assert_eq!(log.take().len(), 2);
        let contexts = peer.heard().asked().contexts;
        assert!(contexts.contains(&(OURS, vec![3])));
    }

    fn a_deferred_request_that_is_sent_again_keeps_the_slots_and_contexts_of_its_first_attempt(over) {
        let log = Log::default();
        let there = Peer::answering(over, |_, asked| same(asked));
        let to = there.ior(2, b"There");
        let here = Peer::answering(over, move |_, asked| {
            asked.answered(LOCATION_FORWARD, |octets| to.write(octets))
        });
        let note = log.clone();
        let builder = Orb::builder().initializer(Init({
            let log = log.clone();
            move |info: &mut OrbInitInfo| {
                let id = info.allocate_slot_id();
                let note = note.clone();
                let act = move |point: &str, info: &mut ClientRequestInfo| {
                    let value = info.slot(id).unwrap().extract::<u32>();
                    let earlier = info.earlier_service_context(OURS).map(|context| context.data.to_vec());
                    note.note(format!("{value:?} {} {:?}", info.is_repeated(), earlier.ok()));
                    if point == "send_request" {
                        info.add_request_service_context(OURS, &[7], false)?;
                    }
                    Ok(())
                };
                let (name, act, log) = ("a", Box::new(act), log.clone());
                info.add_client_request_interceptor(Arc::new(AtClient { name, log, act }))
            }
        }));
        let orb = builder.build().unwrap();
        orb.pi_current().set_slot(0, Any::from_value(&7_u32).unwrap()).unwrap();
        assert_eq!(heard(&ask(&here.seen_by(&orb, 2), 3)), Ok(3));
        let first = "Ok(7) false None";
        let second = "Ok(7) true Some([7])";
        let expected = [
            "a send_request", first, "a receive_other", first,
            "a send_request", second, "a receive_reply", second,
        ];
        assert_eq!(log.take(), expected);
    }

    fn slots_go_with_the_request_and_an_interceptor_knows_its_own_calls_by_them(over) {
        let (log, peer) = (Log::default(), pong(over));
        let client: Arc<Mutex<Option<(Orb, ObjectRef)>>> = Arc::default();
        let within = Arc::clone(&client);
        let note = log.clone();
        let builder = Orb::builder().initializer(Init({
            let log = log.clone();
            move |info: &mut OrbInitInfo| {
                let id = info.allocate_slot_id();
                assert_eq!(id, 0);
                let (within, note) = (Arc::clone(&within), note.clone());
                let act = move |point: &str, info: &mut ClientRequestInfo| {
                    let value = info.slot(id).unwrap().extract::<u32>();
                    note.note(format!("{value:?}"));
                    if point == "send_request" && value == Ok(7) {
                        // The interceptor also sees its own call; the value in the slot tells the two apart.
                        let (orb, object) = within.lock().unwrap().clone().unwrap();
                        let current = orb.pi_current();
                        assert!(current.slot(id).unwrap().is_empty());
                        current.set_slot(id, Any::from_value(&8_u32).unwrap()).unwrap();
                        assert_eq!(ping(&object), Ok(()));
                    }
                    Ok(())
                };
                let (name, act, log) = ("a", Box::new(act), log.clone());
                info.add_client_request_interceptor(Arc::new(AtClient { name, log, act }))
            }
        }));
        let orb = builder.build().unwrap();
        let object = peer.seen_by(&orb, 2);
        *client.lock().unwrap() = Some((orb.clone(), object.clone()));
        let current = orb.pi_current();
        assert!(current.slot(0).unwrap().is_empty());
        current.set_slot(0, Any::from_value(&7_u32).unwrap()).unwrap();
        assert_eq!(current.set_slot(1, Any::empty()), Err(SlotError::InvalidSlot));
        assert_eq!(ping(&object), Ok(()));
        assert_eq!(current.slot(0).unwrap().extract::<u32>(), Ok(7));
        let expected = [
            "a send_request", "Ok(7)", "a send_request", "Ok(8)", "a receive_reply", "Ok(8)",
            "a receive_reply", "Ok(7)",
        ];
        assert_eq!(log.take(), expected);
        client.lock().unwrap().take();
    }

    fn a_connection_that_has_closed_is_replaced_without_the_interceptors_seeing_it(over) {
        let log = Log::default();
        let peer = Peer::start(over, |_, wire, tell| {
            if let Some(asked) = wire.hear() {
                let answer = replied(&asked, NO_EXCEPTION, |_| ());
                let farewell = message(asked.form(), CLOSE_CONNECTION, |_| ());
                tell(asked);
                wire.say(&[answer, farewell].concat());
            }
        });
        let client = orb(["a"], &log, quiet);
        let object = peer.seen_by(&client, 2);
        for _ in 0..3 {
            assert_eq!(ping(&object), Ok(()));
            assert_eq!(log.take(), ["a send_request", "a receive_reply"]);
        }
        assert_eq!(peer.heard_so_far(), 3);
    }
}

#[test]
fn the_priority_of_a_call_comes_back_with_its_reply_also_within_one_orb() {
    let (log, told) = (Log::default(), Log::default());
    let notes = told.clone();
    let builder = Orb::builder().round_trip_timeout(common::PATIENCE);
    let builder = with_clients(builder, ["a"], &log, move |_, point, info| {
        if point == "receive_reply" {
            let echoed = info.reply_service_context(RT_CORBA_PRIORITY).unwrap();
            notes.note(Cursor::encapsulated(echoed.data).u16().to_string());
        }
        Ok(())
    });
    let world = LaneWorld::with(Over::Tcp, builder);
    let policies = Policies {
        priority_model: propagated(5),
        ..Policies::default()
    };
    let poa = world.adapter("a", &policies);
    let id = poa.activate_object(world.servant()).unwrap();
    let object = poa.id_to_reference(&id).unwrap();
    for number in [5, 90] {
        assert_eq!(at(&world.orb, number, || ping(&object)), Ok(()));
    }
    let here = world.orb.counters().read(Counter::CollocatedCalls);
    assert_eq!(
        (here, told.take()),
        (2, vec!["5".to_owned(), "90".to_owned()])
    );
}
