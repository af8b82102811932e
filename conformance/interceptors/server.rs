//! Portable interceptors at the server, by clause (CORBA 3.3 part 1, clause 16.3). The other side's octets are made by
//! hand.

use std::sync::{Arc, Mutex};

use crate::common;
use crate::common::interceptor::{AtServer, Init, Log, RAISED, with_clients, with_servers};
use crate::common::message::{
    FORMS, LOCATION_FORWARD, NO_EXCEPTION, SYNC_NONE, SYNC_WITH_SERVER, SYSTEM_EXCEPTION,
    USER_EXCEPTION,
};
use crate::common::servant::{BASE_ID, PROBE_ID};
use crate::common::{OMG, Order, Over, World, in_each_world, over_each, wait_for};
use deckwatch_cdr::Any;
use deckwatch_orb::interceptor::{
    InterceptorError, OrbInitInfo, ReplyStatus, ServerRequestInfo, SlotError,
};
use deckwatch_orb::{
    Counter, ForwardRequest, ObjectRef, Orb, Policies, Servant, ServerRequest, SystemException,
    SystemExceptionKind as Kind, ThreadPolicy,
};

type Done = Result<(), InterceptorError>;

/// A service context id that nothing else uses.
const OURS: u32 = 0x4455_0001;

fn world<const N: usize>(
    over: Over,
    names: [&'static str; N],
    log: &Log,
    act: impl Fn(&str, &str, &mut ServerRequestInfo<'_>) -> Done + Send + Sync + 'static,
) -> World {
    World::with(over, with_servers(Orb::builder(), names, log, act))
}

fn quiet(_: &str, _: &str, _: &mut ServerRequestInfo<'_>) -> Done {
    Ok(())
}

/// The system exception in a reply: id and minor code.
fn raised(mut reply: common::message::Reply) -> (String, u32) {
    assert_eq!(reply.status, SYSTEM_EXCEPTION);
    (reply.body.string(), reply.body.u32())
}

const DENIED: &str = "IDL:omg.org/CORBA/NO_PERMISSION:1.0";

over_each! {
    fn starting_points_go_in_order_and_ending_points_back(over) {
        let log = Log::default();
        let world = world(over, ["a", "b"], &log, quiet);
        let mut wire = world.dial();
        let starting = ["a contexts", "b contexts", "a receive_request", "b receive_request"];
        for (operation, status, ending) in [
            ("ping", NO_EXCEPTION, ["b send_reply", "a send_reply"]),
            ("fail", SYSTEM_EXCEPTION, ["b send_exception", "a send_exception"]),
            ("_non_existent", NO_EXCEPTION, ["b send_reply", "a send_reply"]),
        ] {
            for form in FORMS {
                let answer = wire.ask(&world.request(form, operation).bare()).reply();
                assert_eq!(answer.status, status);
                assert_eq!(log.take(), [&starting[..], &ending[..]].concat());
            }
        }
        let request = world.request((2, Order::Big), "refuse");
        let answer = wire.ask(&request.with(|octets| { octets.u32(3); })).reply();
        assert_eq!(answer.status, USER_EXCEPTION);
        let ending = ["b send_exception", "a send_exception"];
        assert_eq!(log.take(), [&starting[..], &ending[..]].concat());
    }

    fn contexts_of_requests_are_read_and_those_of_replies_leave_the_results_where_they_are_read(over) {
        let log = Log::default();
        let world = world(over, ["a"], &log, |_, point, info| {
            let id = info.request_service_context(OURS)?.data[0].into();
            match point {
                "contexts" => info.add_reply_service_context(id, &[1], false)?,
                "send_reply" => {
                    assert_eq!(info.reply_service_context(id)?.data, [1]);
                    let twice = info.add_reply_service_context(id, &[2], false).unwrap_err();
                    assert_eq!((twice.kind, twice.minor), (Kind::BadInvOrder, OMG | 15));
                    info.add_reply_service_context(id, &[2, 3, 4, 5, 6], true)?;
                    info.add_reply_service_context(id + 1, &[7; 9], false)?;
                }
                _ => {}
            }
            Ok(())
        });
        let mut wire = world.dial();
        for form in FORMS {
            let request = world.request(form, "number").context(OURS, &[77]);
            let mut answer = wire.ask(&request.with(|octets| { octets.u64(1 << 40); })).reply();
            assert_eq!((answer.status, answer.body.u64()), (NO_EXCEPTION, 1 << 40));
            for said in [(77, vec![2, 3, 4, 5, 6]), (78, vec![7; 9])] {
                assert!(answer.contexts.contains(&said), "{form:?} {:?}", answer.contexts);
            }
            let request = world.request(form, "ping").context(OURS, &[78]);
            let answer = wire.ask(&request.bare()).reply();
            assert!(answer.contexts.contains(&(78, vec![2, 3, 4, 5, 6])));
            let request = world.request(form, "fail").context(OURS, &[79]);
            let answer = wire.ask(&request.bare()).reply();
            assert!(answer.contexts.contains(&(79, vec![1])));
            assert_eq!(raised(answer), (DENIED.to_owned(), 7));
        }
    }

    fn who_raises_at_a_starting_point_keeps_the_servant_out(over) {
        for at in ["contexts", "receive_request"] {
            let log = Log::default();
            let world = world(over, ["a", "b", "c"], &log, move |name, point, _| {
                if name == "b" && point == at { Err(RAISED.into()) } else { Ok(()) }
            });
            let mut wire = world.dial();
            let answer = wire.ask(&world.request((2, Order::Big), "ping").bare()).reply();
            assert_eq!(raised(answer), (DENIED.to_owned(), 99));
            assert_eq!(world.probe.calls(), 0);
            let expected: &[&str] = match at {
                "contexts" => &["a contexts", "b contexts", "a send_exception"],
                _ => &[
                    "a contexts", "b contexts", "c contexts", "a receive_request", "b receive_request",
                    "c send_exception", "b send_exception", "a send_exception",
                ],
            };
            assert_eq!(log.take(), expected);
        }
    }

    fn who_raises_at_an_ending_point_changes_what_the_others_and_the_caller_see(over) {
        let log = Log::default();
        let world = world(over, ["a", "b", "c"], &log, |name, point, info| {
            if (name, point) == ("a", "send_exception") {
                let any = info.sending_exception()?;
                assert_eq!(any.type_code().id(), Some(DENIED));
                assert_eq!(info.reply_status()?, ReplyStatus::SystemException);
            }
            if (name, point) == ("b", "send_reply") { Err(RAISED.into()) } else { Ok(()) }
        });
        let mut wire = world.dial();
        let answer = wire.ask(&world.request((2, Order::Big), "ping").bare()).reply();
        assert_eq!(raised(answer), (DENIED.to_owned(), 99));
        assert_eq!(world.probe.calls(), 1);
        let ended = log.take().split_off(6);
        assert_eq!(ended, ["c send_reply", "b send_reply", "a send_exception"]);
    }

    fn a_forward_request_sends_the_caller_elsewhere(over) {
        for at in ["contexts", "receive_request", "send_exception"] {
            let log = Log::default();
            let elsewhere: Arc<Mutex<Option<ObjectRef>>> = Arc::default();
            let target = Arc::clone(&elsewhere);
            let world = world(over, ["a", "b"], &log, move |name, point, info| {
                let forward_reference = target.lock().unwrap().clone().unwrap();
                if point == "send_other" {
                    assert_eq!(info.reply_status()?, ReplyStatus::LocationForward);
                    assert_eq!(info.forward_reference()?, &forward_reference);
                }
                if name == "b" && point == at {
                    return Err(ForwardRequest { forward_reference }.into());
                }
                Ok(())
            });
            let to = world.root.create_reference("IDL:conformance/Other:1.0").unwrap();
            *elsewhere.lock().unwrap() = Some(to.clone());
            let mut wire = world.dial();
            let answer = wire.ask(&world.request((2, Order::Big), "fail").bare());
            let mut answer = answer.reply();
            assert_eq!(answer.status, LOCATION_FORWARD);
            let ior = common::ior::Ior::read(&mut answer.body);
            assert_eq!(ior.text(Order::Big), common::ior::Ior::of_text(&to.to_string()).text(Order::Big));
            assert_eq!(log.take().last().map(String::as_str), Some("a send_other"));
        }
    }

    fn an_interceptor_knows_the_object_once_it_has_been_found(over) {
        let log = Log::default();
        let note = log.clone();
        let builder = Orb::builder().id("orb").server_id("server");
        let builder = with_servers(builder, ["a"], &log, move |_, point, info| {
            if point == "contexts" {
                for early in [info.object_id().map(drop), info.adapter_id().map(drop), info.adapter_name().map(drop), info.orb_id().map(drop), info.server_id().map(drop)] {
                    let early = early.unwrap_err();
                    assert_eq!((early.kind, early.minor), (Kind::BadInvOrder, OMG | 14));
                }
                return Ok(());
            }
            match info.object_id() {
                Ok(id) => {
                    let names = info.adapter_name()?;
                    note.note(format!("{} {names:?}", String::from_utf8_lossy(id)));
                    assert_eq!((info.orb_id()?, info.server_id()?), ("orb", "server"));
                    assert!(!info.adapter_id()?.is_empty());
                    assert_eq!(*info.server_policies()?, Policies::persistent());
                }
                Err(lost) => assert_eq!((lost.kind, lost.minor), (Kind::NoResources, OMG | 1)),
            }
            let is_about_to_be_called = point == "receive_request";
            assert_eq!(info.target_is_a(BASE_ID), if is_about_to_be_called { Ok(true) } else { info.target_is_a("") });
            if is_about_to_be_called {
                assert_eq!(info.target_most_derived_interface()?, PROBE_ID);
                assert!(!info.target_is_a("IDL:conformance/Other:1.0")?);
            } else {
                let late = info.target_most_derived_interface().unwrap_err();
                assert_eq!((late.kind, late.minor), (Kind::BadInvOrder, OMG | 14));
            }
            Ok(())
        });
        let world = World::with(over, builder);
        let manager = world.root.the_poa_manager();
        let poa = world.root.create_poa("outer", Some(manager), &Policies::persistent()).unwrap();
        let poa = poa.create_poa("inner", Some(manager), &Policies::persistent()).unwrap();
        poa.activate_object_with_id(b"object", world.probe.clone()).unwrap();
        let key = |id: &[u8]| {
            let reference = poa.create_reference_with_id(id, PROBE_ID).unwrap();
            reference.object_key().unwrap().to_vec()
        };
        let mut wire = world.dial();
        let ask = |id: &[u8]| common::Request::new((2, Order::Big), &key(id), "ping").bare();
        assert_eq!(wire.ask(&ask(b"object")).reply().status, NO_EXCEPTION);
        let facts = r#"object ["RootPOA", "outer", "inner"]"#;
        let expected = ["a contexts", "a receive_request", facts, "a send_reply", facts];
        assert_eq!(log.take(), expected);
        assert_eq!(wire.ask(&ask(b"other")).reply().status, SYSTEM_EXCEPTION);
        assert_eq!(log.take(), ["a contexts", "a send_exception"]);
    }

    fn each_question_is_answered_where_the_standard_has_it_and_refused_elsewhere(over) {
        let log = Log::default();
        let world = world(over, ["a"], &log, |_, point, info| {
            let refused = |answer: Result<(), SystemException>, allowed: bool| {
                let exception = answer.unwrap_err();
                let expected = if allowed { (Kind::NoResources, OMG | 1) } else { (Kind::BadInvOrder, OMG | 14) };
                assert_eq!((exception.kind, exception.minor), expected, "{point}");
            };
            let (first, second) = (point == "contexts", point == "receive_request");
            let replied = point == "send_reply";
            refused(info.arguments().map(drop), second || replied);
            refused(info.operation_context().map(drop), second || replied);
            refused(info.result().map(drop), replied);
            refused(info.exceptions().map(drop), !first);
            refused(info.contexts().map(drop), !first);
            refused(info.forward_reference().map(drop), false);
            refused(info.sending_exception().map(drop), false);
            if first || second {
                refused(info.reply_status().map(drop), false);
                refused(info.reply_service_context(OURS).map(drop), false);
            }
            let missing = info.request_service_context(OURS).unwrap_err();
            assert_eq!((missing.kind, missing.minor), (Kind::BadParam, OMG | 26));
            assert_eq!(info.slot(0), Err(SlotError::InvalidSlot));
            assert_eq!(info.set_slot(0, Any::empty()), Err(SlotError::InvalidSlot));
            assert_eq!((info.operation().as_str(), info.response_expected()), ("ping", true));
            Ok(())
        });
        let mut wire = world.dial();
        let answer = wire.ask(&world.request((2, Order::Big), "ping").bare()).reply();
        assert_eq!(answer.status, NO_EXCEPTION);
        assert_eq!(log.take().len(), 3);
    }

    fn one_ways_and_those_that_want_a_receipt_are_seen_to_their_end(over) {
        let log = Log::default();
        let world = world(over, ["a"], &log, quiet);
        let mut wire = world.dial();
        let one = |flags| world.request((2, Order::Big), "note").flags(flags).with(|octets| { octets.u32(1); });
        wire.say(&one(SYNC_NONE));
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").bare()).reply().status, NO_EXCEPTION);
        assert_eq!(log.take()[..3], ["a contexts", "a receive_request", "a send_reply"]);
        assert_eq!(wire.ask(&one(SYNC_WITH_SERVER)).reply().status, NO_EXCEPTION);
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").bare()).reply().status, NO_EXCEPTION);
        assert_eq!(log.take()[..3], ["a contexts", "a receive_request", "a send_other"]);
        assert_eq!(world.probe.notes(), [1, 1]);
    }

    fn an_interceptor_that_panics_is_unknown_to_the_caller_and_costs_nothing_else(over) {
        for at in ["contexts", "receive_request", "send_reply"] {
            let log = Log::default();
            let world = world(over, ["a", "b"], &log, move |name, point, info| {
                assert!(name != "b" || point != at || info.operation() != "ping", "an interceptor panics, as the test asked it to");
                Ok(())
            });
            let mut wire = world.dial();
            let answer = wire.ask(&world.request((2, Order::Big), "ping").bare()).reply();
            assert_eq!(raised(answer).0, "IDL:omg.org/CORBA/UNKNOWN:1.0");
            assert_eq!(log.take().last().map(String::as_str), Some("a send_exception"));
            let answer = wire.ask(&world.request((2, Order::Big), "octets").with(|octets| { octets.sequence(&[]); }));
            assert_eq!(answer.reply().status, NO_EXCEPTION);
        }
    }
}

/// Returns the value of slot 0 in its thread, and then stores twice that value there.
struct Slotted(Mutex<Option<Orb>>);

impl Servant for Slotted {
    fn repository_ids(&self) -> &'static [&'static str] {
        &["IDL:conformance/Slotted:1.0"]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let orb = self.0.lock().unwrap().clone().unwrap();
        let current = orb.pi_current();
        let value: u32 = current.slot(0).unwrap().extract().unwrap();
        let twice = Any::from_value(&(2 * value)).unwrap();
        current.set_slot(0, twice).unwrap();
        Ok(request.reply()?.write_u32(value)?)
    }
}

over_each! {
    fn what_is_put_into_a_slot_is_the_servants_and_what_it_leaves_there_the_ending_points(over) {
        let log = Log::default();
        let (seen, noted) = (log.clone(), log.clone());
        let builder = Orb::builder().initializer(Init(move |info: &mut OrbInitInfo| {
            let id = info.allocate_slot_id();
            let (seen, log) = (seen.clone(), noted.clone());
            let act = move |point: &str, info: &mut ServerRequestInfo<'_>| {
                match point {
                    "contexts" => {
                        assert!(info.slot(id).unwrap().is_empty(), "slots of one request are not another's");
                        let data = info.request_service_context(OURS)?.data[0];
                        info.set_slot(id, Any::from_value(&u32::from(data)).unwrap()).unwrap();
                    }
                    "receive_request" => {
                        let value: u32 = info.slot(id).unwrap().extract().unwrap();
                        info.set_slot(id, Any::from_value(&(value + 1)).unwrap()).unwrap();
                    }
                    _ => seen.note(format!("{:?}", info.slot(id).unwrap().extract::<u32>())),
                }
                Ok(())
            };
            let (name, act) = ("a", Box::new(act));
            info.add_server_request_interceptor(Arc::new(AtServer { name, log, act }))
        }));
        let world = World::with(over, builder);
        let manager = world.root.the_poa_manager();
        let on_main = Policies { thread: ThreadPolicy::MainThreadModel, ..Policies::default() };
        let main = world.root.create_poa("main", Some(manager), &on_main).unwrap();
        let running = world.orb.clone();
        let serves = std::thread::spawn(move || running.run());
        let servant = Arc::new(Slotted(Mutex::new(Some(world.orb.clone()))));
        for poa in [&world.root, &main] {
            let id = poa.activate_object(servant.clone()).unwrap();
            let reference = poa.id_to_reference(&id).unwrap();
            let mut wire = world.dial();
            for number in [3, 8] {
                let request = common::Request::new((2, Order::Big), reference.object_key().unwrap(), "slot");
                let answer = wire.ask(&request.context(OURS, &[number]).bare());
                let mut answer = answer.reply();
                assert_eq!((answer.status, answer.body.u32()), (NO_EXCEPTION, u32::from(number) + 1));
                let left = format!("Ok({})", 2 * (u32::from(number) + 1));
                assert_eq!(log.take(), ["a contexts", "a receive_request", "a send_reply", left.as_str()]);
            }
        }
        servant.0.lock().unwrap().take();
        world.orb.shutdown(true).unwrap();
        serves.join().unwrap().unwrap();
        wait_for(|| log.take() == ["a destroy"]);
    }
}

over_each! {
    fn a_call_of_an_orbs_own_object_passes_the_interceptors_of_both_its_sides(over) {
        let log = Log::default();
        let builder = with_clients(Orb::builder(), ["client"], &log, |_, point, info| {
            match point {
                "send_request" => info.add_request_service_context(OURS, &[5], false)?,
                _ => assert_eq!(info.reply_service_context(OURS)?.data, [6]),
            }
            Ok(())
        });
        let builder = with_servers(builder, ["server"], &log, |_, point, info| {
            assert_eq!(info.request_service_context(OURS)?.data, [5]);
            if point == "contexts" {
                info.add_reply_service_context(OURS, &[6], false)?;
            }
            Ok(())
        });
        let world = World::with(over, builder);
        for object in [world.object.clone(), world.seen_by(&world.orb)] {
            let pinged: Result<(), SystemException> =
                object.invoke("ping", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
            assert_eq!(pinged, Ok(()));
            let expected = [
                "client send_request", "server contexts", "server receive_request",
                "server send_reply", "client receive_reply",
            ];
            assert_eq!(log.take(), expected);
        }
        assert_eq!(world.orb.counters().read(Counter::ConnectionsMade), 0);
    }
}

in_each_world! {
    /// If no interceptor is registered, a reply has no service contexts.
    fn a_server_without_interceptors_says_nothing_with_its_replies(world) {
        let mut wire = world.dial();
        for form in FORMS {
            let answer = wire.ask(&world.request(form, "ping").context(OURS, &[1]).bare()).reply();
            assert_eq!((answer.status, answer.contexts), (NO_EXCEPTION, Vec::new()));
        }
    }
}
