//! GIOP by clause (CORBA 3.3 part 2, clauses 9.4 and 9.5), at the server: tests send octets made by hand and check the
//! octets of the replies.

use crate::common;
use crate::common::ior::{Ior, Profile};
use crate::common::message::{
    CANCEL_REQUEST, CLOSE_CONNECTION, LOCATE_REPLY, MESSAGE_ERROR, NO_EXCEPTION, REPLY, SYNC_NONE,
    SYNC_WITH_SERVER, USER_EXCEPTION, locate,
};
use crate::common::servant::{BASE_ID, PROBE_ID, REFUSED_ID, call};
use crate::common::{Address, FORMS, OMG, Order, World, in_each_world, message, wait_for};

const BAD_OPERATION: &str = "IDL:omg.org/CORBA/BAD_OPERATION:1.0";
const OBJECT_NOT_EXIST: &str = "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0";
const MARSHAL: &str = "IDL:omg.org/CORBA/MARSHAL:1.0";
const COMPLETED_YES: u32 = 0;
const COMPLETED_NO: u32 = 1;
const UNKNOWN_OBJECT: u32 = 0;
const OBJECT_HERE: u32 = 1;
const OBJECT_FORWARD: u32 = 2;

in_each_world! {
    fn every_version_and_byte_order_is_answered_in_its_own_version(world) {
        for form in FORMS {
            let mut wire = world.dial();
            let answer = wire.ask(&world.request(form, "octets").with(|o| { o.sequence(b"abc"); }));
            assert_eq!(answer.octets[4..6], [1, form.0], "{form:?}");
            assert_eq!(answer.kind(), REPLY);
            let mut reply = answer.reply();
            assert_eq!((reply.id, reply.status), (7, NO_EXCEPTION), "{form:?}");
            assert_eq!(reply.body.sequence(), b"abc", "{form:?}");
            assert_eq!(reply.body.rest(), b"", "{form:?}");
        }
    }

    fn versions_may_change_from_message_to_message(world) {
        let mut wire = world.dial();
        for (id, form) in (1..).zip(FORMS) {
            let answer = wire.ask(&world.request(form, "ping").id(id).bare());
            assert_eq!((answer.minor(), answer.reply().id), (form.0, id));
        }
    }

    fn the_flags_of_a_whole_message_are_its_byte_order_alone(world) {
        for form in FORMS {
            let answer = world.dial().ask(&world.request(form, "ping").bare());
            assert_eq!(answer.flags() & !1, 0, "{form:?}");
        }
    }

    fn what_does_not_begin_with_giop_is_answered_by_a_message_error_and_the_end(world) {
        let mut wire = world.dial();
        let answer = wire.ask(b"GIOQ\x01\x02\x00\x00\x00\x00\x00\x00");
        assert_eq!((answer.kind(), answer.octets.len()), (MESSAGE_ERROR, 12));
        wire.expect_end();
        world.expect_served();
    }

    fn a_greater_version_is_answered_by_a_message_error_of_the_highest_known_and_the_end(world) {
        for (major, minor) in [(1, 3), (1, 255), (2, 0), (0, 9)] {
            let mut wire = world.dial();
            let mut octets = world.request((2, Order::Little), "ping").bare();
            octets[4..6].copy_from_slice(&[major, minor]);
            let answer = wire.ask(&octets);
            assert_eq!(answer.kind(), MESSAGE_ERROR);
            assert_eq!(answer.octets[4..6], [1, 2], "for {major}.{minor}");
            wire.expect_end();
        }
        world.expect_served();
    }

    fn an_unknown_message_type_is_answered_by_a_message_error(world) {
        for (form, kind) in [((0, Order::Big), 7), ((1, Order::Little), 8), ((2, Order::Big), 8), ((2, Order::Big), 255)] {
            let mut wire = world.dial();
            assert_eq!(wire.ask(&message(form, kind, |_| ())).kind(), MESSAGE_ERROR);
            wire.expect_end();
        }
        world.expect_served();
    }

    fn reserved_flags_are_refused(world) {
        for (minor, flags) in [(0, 2), (0, 4), (1, 4), (2, 0x80)] {
            let mut wire = world.dial();
            let mut octets = world.request((minor, Order::Big), "ping").bare();
            octets[6] |= flags;
            assert_eq!(wire.ask(&octets).kind(), MESSAGE_ERROR, "1.{minor} {flags:#x}");
            wire.expect_end();
        }
    }

    fn replies_are_for_clients_and_a_server_refuses_them(world) {
        for kind in [REPLY, LOCATE_REPLY] {
            let mut wire = world.dial();
            let octets = message((2, Order::Big), kind, |o| { o.u32(7).u32(0).u32(0); });
            assert_eq!(wire.ask(&octets).kind(), MESSAGE_ERROR);
            wire.expect_end();
        }
    }

    fn the_size_counts_all_octets_behind_the_header(world) {
        // Two messages in one write; only their sizes separate them.
        let mut wire = world.dial();
        let both = [
            world.request((1, Order::Big), "octets").id(1).with(|o| { o.sequence(&[1; 33]); }),
            world.request((2, Order::Little), "octets").id(2).with(|o| { o.sequence(&[2; 7]); }),
        ].concat();
        wire.say(&both);
        let mut answers = [wire.hear().unwrap().reply(), wire.hear().unwrap().reply()];
        answers.sort_by_key(|reply| reply.id);
        let [mut first, mut second] = answers;
        assert_eq!((first.body.sequence(), second.body.sequence()), (vec![1; 33], vec![2; 7]));
    }

    fn request_ids_come_back_as_they_were(world) {
        let mut wire = world.dial();
        for id in [0, 1, 0x8000_0000, u32::MAX] {
            for form in FORMS {
                assert_eq!(wire.ask(&world.request(form, "ping").id(id).bare()).reply().id, id);
            }
        }
    }

    fn a_request_that_expects_no_response_gets_none(world) {
        let mut wire = world.dial();
        for (id, form) in (0..).zip(FORMS) {
            wire.say(&world.request(form, "note").flags(SYNC_NONE).id(id).with(|o| { o.u32(id); }));
        }
        // A request that fails gets no response either.
        wire.say(&world.request((2, Order::Big), "fail").flags(SYNC_NONE).id(90).bare());
        wire.say(&world.request((2, Order::Big), "nonsense").flags(SYNC_NONE).id(91).bare());
        let first = wire.ask(&world.request((2, Order::Big), "ping").id(99).bare());
        assert_eq!(first.reply().id, 99);
        assert_eq!(world.probe.notes(), [0, 1, 2, 3, 4, 5]);
    }

    fn a_request_with_server_scope_is_answered_without_a_body(world) {
        let mut wire = world.dial();
        let request = world.request((2, Order::Big), "note").flags(SYNC_WITH_SERVER).with(|o| { o.u32(5); });
        let reply = wire.ask(&request).reply();
        assert_eq!((reply.id, reply.status, reply.body.rest()), (7, NO_EXCEPTION, &[][..]));
        wait_for(|| world.probe.notes() == [5]);
        // The server sends one reply only.
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").id(8).bare()).reply().id, 8);
    }

    fn response_flags_that_the_standard_does_not_have_are_refused(world) {
        for flags in [2, 4, 0x80, 0xff] {
            let mut wire = world.dial();
            let answer = wire.ask(&world.request((2, Order::Big), "ping").flags(flags).bare());
            assert_eq!(answer.kind(), MESSAGE_ERROR, "{flags:#x}");
            wire.expect_end();
        }
        world.expect_served();
    }

    fn reserved_octets_and_the_principal_are_passed_over(world) {
        for form in FORMS {
            let mut request = world.request(form, "octets");
            request.reserved = [0xff; 3];
            request.principal = b"somebody".to_vec();
            let mut reply = world.dial().ask(&request.with(|o| { o.sequence(b"x"); })).reply();
            assert_eq!(reply.body.sequence(), b"x", "{form:?}");
        }
    }

    fn unknown_service_contexts_are_passed_over(world) {
        for form in FORMS {
            let request = world.request(form, "octets").context(0x4242_4242, b"whatever").context(0, &[]).context(9, &[1, 2, 3]);
            let mut reply = world.dial().ask(&request.with(|o| { o.sequence(b"x"); })).reply();
            assert_eq!((reply.status, reply.body.sequence()), (NO_EXCEPTION, b"x".to_vec()), "{form:?}");
        }
    }

    fn the_body_of_1_2_begins_at_a_multiple_of_eight_and_of_no_other_version(world) {
        for form in FORMS {
            // Service contexts of different lengths put the end of the header at every alignment. The argument itself
            // needs an alignment of 4 only.
            for length in 0..8 {
                let request = world.request(form, "octets").context(0x4242_4242, &vec![0; length]);
                let mut reply = world.dial().ask(&request.with(|o| { o.sequence(b"abc"); })).reply();
                assert_eq!((reply.status, reply.body.sequence()), (NO_EXCEPTION, b"abc".to_vec()), "{form:?} {length}");
                assert_eq!(reply.body.rest(), b"");
            }
        }
    }

    fn a_body_that_stays_empty_is_not_padded(world) {
        let answer = world.dial().ask(&world.request((2, Order::Big), "ping").bare());
        assert_eq!(answer.octets.len(), 12 + 12, "request id, status and no service contexts");
    }

    fn every_addressing_of_1_2_reaches_the_object(world) {
        let (tag, profile) = world.profile();
        let mut ior = common::ior::Ior::of_text(&world.orb.object_to_string(&world.object));
        ior.profiles.insert(0, (0x4242_4242, b"of another protocol".to_vec()));
        let targets = [
            Address::Key(world.key.clone()),
            Address::Profile(tag, profile),
            Address::Reference(1, ior),
        ];
        for target in targets {
            for order in common::ORDERS {
                let request = world.request((2, order), "octets").target(target.clone());
                let mut reply = world.dial().ask(&request.with(|o| { o.sequence(b"abc"); })).reply();
                assert_eq!(reply.body.sequence(), b"abc", "{target:?}");
                let mut located = world.dial().ask(&locate((2, order), 3, &target)).body();
                assert_eq!((located.u32(), located.u32()), (3, OBJECT_HERE), "{target:?}");
            }
        }
    }

    fn an_addressing_that_names_no_object_of_ours_hurts_nobody(world) {
        let ior = common::ior::Ior { type_id: String::new(), profiles: vec![world.profile()] };
        let targets = [
            Address::Profile(0x4242_4242, b"not IIOP".to_vec()),
            Address::Profile(0, b"\0".to_vec()),
            Address::Reference(1, ior),
        ];
        for target in targets {
            let answer = world.dial().ask(&world.request((2, Order::Big), "ping").target(target.clone()).bare());
            let (_, _, completed) = answer.reply().exception();
            assert_eq!(completed, COMPLETED_NO, "{target:?}");
        }
        let mut wire = world.dial();
        let mut octets = world.request((2, Order::Big), "ping").bare();
        octets[21] = 9;
        assert_eq!(wire.ask(&octets).kind(), MESSAGE_ERROR);
        world.expect_served();
    }

    fn an_operation_that_is_not_there_is_bad_operation(world) {
        for form in FORMS {
            let raised = world.dial().ask(&world.request(form, "nonsense").bare()).reply().exception();
            assert_eq!(raised, (BAD_OPERATION.to_owned(), OMG | 2, COMPLETED_NO), "{form:?}");
        }
    }

    fn arguments_that_are_cut_short_are_marshal(world) {
        for form in FORMS {
            let short = world.request(form, "octets").with(|o| { o.u32(100).raw(b"few"); });
            let (id, _, completed) = world.dial().ask(&short).reply().exception();
            assert_eq!((id.as_str(), completed), (MARSHAL, COMPLETED_NO), "{form:?}");
        }
    }

    fn a_user_exception_is_its_repository_id_and_its_members(world) {
        for form in FORMS {
            let mut reply = world.dial().ask(&world.request(form, "refuse").with(|o| { o.u32(17); })).reply();
            assert_eq!(reply.status, USER_EXCEPTION, "{form:?}");
            assert_eq!((reply.body.string(), reply.body.u32()), (REFUSED_ID.to_owned(), 17), "{form:?}");
            assert_eq!(reply.body.rest(), b"");
        }
    }

    fn a_system_exception_is_its_repository_id_minor_code_and_completion(world) {
        for form in FORMS {
            let raised = world.dial().ask(&world.request(form, "fail").bare()).reply().exception();
            assert_eq!(raised, ("IDL:omg.org/CORBA/NO_PERMISSION:1.0".to_owned(), 7, COMPLETED_YES), "{form:?}");
        }
    }

    fn an_unknown_key_is_object_not_exist(world) {
        for form in FORMS {
            let request = common::Request::new(form, b"nobody", "ping");
            let (id, _, completed) = world.dial().ask(&request.bare()).reply().exception();
            assert_eq!((id.as_str(), completed), (OBJECT_NOT_EXIST, COMPLETED_NO), "{form:?}");
        }
    }

    fn every_object_says_what_it_is_under_the_operations_of_object(world) {
        for form in FORMS {
            let mut wire = world.dial();
            for (id, expected) in [(PROBE_ID, 1), (BASE_ID, 1), ("IDL:omg.org/CORBA/Object:1.0", 1), ("IDL:Other:1.0", 0)] {
                let mut reply = wire.ask(&world.request(form, "_is_a").with(|o| { o.string(id); })).reply();
                assert_eq!(reply.body.u8(), expected, "{id}");
            }
            for operation in ["_non_existent", "_not_existent"] {
                assert_eq!(wire.ask(&world.request(form, operation).bare()).reply().body.u8(), 0);
                let nobody = common::Request::new(form, b"nobody", operation).bare();
                assert_eq!(wire.ask(&nobody).reply().exception().0, OBJECT_NOT_EXIST);
            }
            let raised = wire.ask(&world.request(form, "_interface").bare()).reply().exception();
            assert_eq!(raised.0, "IDL:omg.org/CORBA/INTF_REPOS:1.0");
        }
    }

    fn a_locate_request_tells_whether_the_object_is_here(world) {
        for form in FORMS {
            let mut wire = world.dial();
            for (id, key, status) in [(1, world.key.as_slice(), OBJECT_HERE), (2, b"nobody", UNKNOWN_OBJECT)] {
                let answer = wire.ask(&locate(form, id, &Address::Key(key.to_vec())));
                assert_eq!((answer.kind(), answer.minor()), (LOCATE_REPLY, form.0));
                let mut body = answer.body();
                assert_eq!((body.u32(), body.u32(), body.rest()), (id, status, &[][..]), "{form:?}");
            }
        }
        assert_eq!(world.probe.calls(), 0, "the servant is not called");
    }

    fn a_locate_request_for_what_is_elsewhere_is_answered_by_where(world) {
        let elsewhere = World::new(world.over, common::Lanes::Many);
        world.orb.register_plain_key(b"There", &elsewhere.seen_by(&world.orb)).unwrap();
        for form in FORMS {
            let answer = world.dial().ask(&locate(form, 9, &Address::Key(b"There".to_vec())));
            let mut body = answer.body();
            assert_eq!((body.u32(), body.u32()), (9, OBJECT_FORWARD), "{form:?}");
            let ior = Ior::read(&mut body);
            assert_eq!(Profile::read(&ior.profiles[0].1).key, elsewhere.key, "{form:?}");
        }
    }

    fn a_request_that_is_cancelled_while_it_is_served_is_answered_all_the_same(world) {
        let mut wire = world.dial();
        wire.say(&world.request((2, Order::Big), "meet").id(4).bare());
        world.probe.gate.wait_for_arrivals(1);
        wire.say(&message((2, Order::Big), CANCEL_REQUEST, |o| { o.u32(4); }));
        world.probe.gate.open();
        let answer = wire.hear().expect("a reply").reply();
        assert_eq!((answer.id, answer.status), (4, NO_EXCEPTION));
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").id(5).bare()).reply().id, 5);
    }

    fn a_cancellation_of_a_request_that_was_never_made_is_passed_over(world) {
        for form in FORMS {
            let mut wire = world.dial();
            wire.say(&message(form, CANCEL_REQUEST, |o| { o.u32(4); }));
            assert_eq!(wire.ask(&world.request(form, "ping").id(5).bare()).reply().id, 5, "{form:?}");
        }
    }

    fn a_message_error_of_the_client_ends_the_connection(world) {
        for form in FORMS {
            let mut wire = world.dial();
            wire.say(&message(form, MESSAGE_ERROR, |_| ()));
            wire.expect_end();
        }
        world.expect_served();
    }

    fn a_client_of_1_2_may_close_in_order(world) {
        let mut wire = world.dial();
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").bare()).reply().id, 7);
        wire.say(&message((2, Order::Big), CLOSE_CONNECTION, |_| ()));
        wire.expect_end();
        world.expect_served();
    }

    fn a_server_that_ends_says_close_connection_first(world) {
        let mut wire = world.dial();
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").bare()).reply().id, 7);
        world.orb.shutdown(true).expect("it ends");
        let farewell = wire.hear().expect("a farewell");
        assert_eq!((farewell.kind(), farewell.octets.len()), (CLOSE_CONNECTION, 12));
        wire.expect_end();
    }

    fn every_request_gets_one_reply_however_its_octets_are_cut(world) {
        let all: Vec<Vec<u8>> = (0..300)
            .map(|id| {
                let form = FORMS[id as usize % FORMS.len()];
                match id % 4 {
                    0 => world.request(form, "ping").id(id).bare(),
                    1 => world.request(form, "octets").id(id).with(|o| { o.sequence(&vec![7; id as usize]); }),
                    2 => locate(form, id, &Address::Key(world.key.clone())),
                    _ => world.request(form, "note").flags(SYNC_NONE).id(id).with(|o| { o.u32(id); }),
                }
            })
            .collect();
        let octets = all.concat();
        std::thread::scope(|scope| {
            for seed in 1..5_u64 {
                let mut wire = world.dial();
                let octets = &octets;
                scope.spawn(move || {
                    let (mut rest, mut state) = (&octets[..], seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    while !rest.is_empty() {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        // Each part is from a few octets to several messages long.
                        let size = 1 + (state % 8) as usize * (state >> 8 & 63) as usize;
                        let (now, later) = rest.split_at(size.min(rest.len()));
                        wire.say(now);
                        rest = later;
                    }
                    let mut answered: Vec<u32> = (0..225)
                        .map(|_| {
                            let answer = wire.hear().expect("an answer");
                            if answer.kind() == LOCATE_REPLY { answer.body().u32() } else { answer.reply().id }
                        })
                        .collect();
                    answered.sort_unstable();
                    let expected: Vec<u32> = (0..300).filter(|id| id % 4 != 3).collect();
                    assert_eq!(answered, expected, "seed {seed}");
                });
            }
        });
        wait_for(|| world.probe.notes().len() == 4 * 75);
    }

    fn oneways_of_a_connection_are_served_in_the_order_they_came(world) {
        let mut wire = world.dial();
        let all: Vec<u8> = (0..200)
            .flat_map(|value| world.request((2, Order::Big), "note").flags(SYNC_NONE).id(value).with(|o| { o.u32(value); }))
            .collect();
        wire.say(&all);
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").id(999).bare()).reply().id, 999);
        wait_for(|| world.probe.notes().len() == 200);
        assert!(world.probe.notes().into_iter().eq(0..200));
    }

    fn a_connection_that_ends_within_a_message_hurts_nobody(world) {
        let whole = world.request((2, Order::Big), "octets").with(|o| { o.sequence(&[1; 100]); });
        for end in [1, 11, 12, 13, 60, whole.len() - 1] {
            let mut wire = world.dial();
            wire.say(&whole[..end]);
            wire.end();
            wire.expect_end();
        }
        world.expect_served();
        let client = common::client();
        assert_eq!(call(&world.seen_by(&client), "ping"), Ok(()));
    }
}

common::over_each! {
    fn a_server_says_farewell_behind_the_replies_it_owes(over) {
        let world = World::new(over, common::Lanes::Many);
        let mut wire = world.dial();
        for id in 1..4 {
            wire.say(&world.request((2, Order::Big), "meet").id(id).bare());
        }
        world.probe.gate.wait_for_arrivals(3);
        world.orb.shutdown(false).expect("it begins to end");
        world.probe.gate.open();
        let mut owed: Vec<u32> = (0..3).map(|_| wire.hear().expect("a reply").reply().id).collect();
        owed.sort_unstable();
        assert_eq!(owed, [1, 2, 3]);
        assert_eq!(wire.hear().expect("a farewell").kind(), CLOSE_CONNECTION);
        wire.expect_end();
    }

    fn requests_of_one_connection_do_not_wait_for_each_other_however_they_arrive(over) {
        // In each round, the third request arrives at another moment of the first two.
        for round in 0..100 {
            let lanes = [common::Lanes::Many, common::Lanes::Adopted][round % 2];
            let world = World::new(over, lanes);
            let mut wire = world.dial();
            let request = |id| world.request((2, Order::Big), "meet").id(id).bare();
            wire.say(&[request(1), request(2)].concat());
            for _ in 0..round % 20 {
                std::thread::yield_now();
            }
            wire.say(&request(3));
            world.probe.gate.wait_for_arrivals(3);
            world.probe.gate.open();
            let mut served: Vec<u32> = (0..3).map(|_| wire.hear().expect("a reply").reply().id).collect();
            served.sort_unstable();
            assert_eq!(served, [1, 2, 3]);
        }
    }

    fn replies_of_one_connection_come_in_the_order_they_are_ready(over) {
        // More than one thread is needed: the first request waits in the servant.
        let world = World::new(over, common::Lanes::Many);
        let mut wire = world.dial();
        wire.say(&world.request((2, Order::Big), "meet").id(1).bare());
        world.probe.gate.wait_for_arrivals(1);
        assert_eq!(wire.ask(&world.request((2, Order::Big), "ping").id(2).bare()).reply().id, 2);
        world.probe.gate.open();
        assert_eq!(wire.hear().expect("the first's").reply().id, 1);
    }
}
