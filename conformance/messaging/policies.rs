//! Quality of service by clause (CORBA 3.3 part 1, clauses 8.9 and 17.2): sync scope, timeouts, rebind, and the levels
//! at which policies are set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common;
use crate::common::ior::Ior;
use crate::common::message::{
    CLOSE_CONNECTION, LOCATION_FORWARD, NO_EXCEPTION, SYNC_NONE, SYNC_WITH_SERVER,
    SYNC_WITH_TARGET, SYSTEM_EXCEPTION, done, done_if_wanted, reply,
};
use crate::common::servant::{call, call_with, note};
use crate::common::{FORMS, Lanes, OMG, Order, Over, Peer, World, message, over_each};
use deckwatch_cdr::Any;
use deckwatch_orb::{
    Completion, ObjectRef, Orb, Policy, PolicyErrorCode, PolicyType, RebindMode, SetOverrideType,
    SyncScope, SystemException, SystemExceptionKind as Kind,
};

fn with(object: &ObjectRef, policy: Policy) -> ObjectRef {
    object
        .set_policy_overrides(&[policy], SetOverrideType::AddOverride)
        .expect("one policy")
}

fn scoped(object: &ObjectRef, scope: SyncScope) -> ObjectRef {
    with(object, Policy::SyncScope(scope))
}

fn limited(object: &ObjectRef, wait_ms: u64) -> ObjectRef {
    with(
        object,
        Policy::RelativeRoundtripTimeout(Duration::from_millis(wait_ms)),
    )
}

/// A reference to a server that has stopped listening.
fn gone(over: Over, client: &Orb) -> ObjectRef {
    let world = World::new(over, Lanes::Many);
    let object = world.seen_by(client);
    drop(world);
    object
}

over_each! {
    fn each_sync_scope_has_its_response_flags(over) {
        let peer = Peer::answering(over, |_, asked| done_if_wanted(asked));
        let client = common::client();
        for minor in peer.minors() {
            for (scope, flags_1_2, expected_before) in [
                (SyncScope::None, SYNC_NONE, 0),
                (SyncScope::WithTransport, SYNC_NONE, 0),
                (SyncScope::WithServer, SYNC_WITH_SERVER, 1),
                (SyncScope::WithTarget, SYNC_WITH_TARGET, 1),
            ] {
                assert_eq!(note(&scoped(&peer.seen_by(&client, minor), scope), 1), Ok(()));
                let flags = peer.heard().asked().response_flags;
                assert_eq!(flags, if minor == 2 { flags_1_2 } else { expected_before }, "{scope:?} in 1.{minor}");
            }
        }
    }

    fn sync_scope_means_nothing_to_a_call_that_has_results(over) {
        let peer = Peer::answering(over, |_, asked| done(asked));
        let client = common::client();
        for scope in [SyncScope::None, SyncScope::WithTransport, SyncScope::WithServer] {
            assert_eq!(call(&scoped(&peer.seen_by(&client, 2), scope), "ping"), Ok(()));
            assert_eq!(peer.heard().asked().response_flags, SYNC_WITH_TARGET);
        }
    }

    fn a_oneway_waits_for_the_answer_of_its_scope_and_for_no_other(over) {
        for scope in [SyncScope::WithServer, SyncScope::WithTarget] {
            let answered = Arc::new(AtomicBool::new(false));
            let peer = Peer::answering(over, {
                let answered = Arc::clone(&answered);
                move |_, asked| {
                    answered.store(true, Ordering::SeqCst);
                    done(asked)
                }
            });
            let client = common::client();
            assert_eq!(note(&scoped(&peer.seen_by(&client, 2), scope), 1), Ok(()));
            assert!(answered.load(Ordering::SeqCst), "{scope:?} returned before the answer");
        }
        for scope in [SyncScope::None, SyncScope::WithTransport] {
            let peer = Peer::silent(over);
            let client = common::client();
            assert_eq!(note(&scoped(&peer.seen_by(&client, 2), scope), 1), Ok(()));
            peer.heard();
        }
    }

    fn with_server_is_answered_before_the_servant_has_finished(over) {
        let world = World::new(over, Lanes::Many);
        let mut wire = world.dial();
        let request = world.request((2, Order::Big), "meet").flags(SYNC_WITH_SERVER).bare();
        // The servant waits at its gate, so this reply cannot hold its result.
        assert_eq!(wire.ask(&request).reply().status, NO_EXCEPTION);
        world.probe.gate.wait_for_arrivals(1);
        world.probe.gate.open();
    }

    fn with_target_is_answered_after_the_servant_has_finished_in_every_version(over) {
        let world = World::new(over, Lanes::Many);
        for (id, form) in (0..).zip(FORMS) {
            let request = world.request(form, "note").flags(SYNC_WITH_TARGET).id(id).with(|o| { o.u32(id); });
            assert_eq!(world.dial().ask(&request).reply().status, NO_EXCEPTION);
            assert_eq!(world.probe.notes().last(), Some(&id));
        }
    }

    fn with_server_learns_of_a_missing_object_and_with_target_of_what_the_servant_raised(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let object = world.seen_by(&client);
        let failing = |scope| scoped(&object, scope).invoke_oneway("fail", |_| Ok(()));
        assert_eq!(failing(SyncScope::WithTarget), Err(SystemException::new(Kind::NoPermission, 7, Completion::Yes)));
        for scope in [SyncScope::None, SyncScope::WithTransport, SyncScope::WithServer] {
            assert_eq!(failing(scope), Ok(()), "{scope:?}");
        }
        let id = world.root.reference_to_id(&world.object).unwrap();
        world.root.deactivate_object(&id).unwrap();
        for scope in [SyncScope::WithServer, SyncScope::WithTarget] {
            assert_eq!(failing(scope).unwrap_err().kind, Kind::ObjectNotExist, "{scope:?}");
        }
        for scope in [SyncScope::None, SyncScope::WithTransport] {
            assert_eq!(failing(scope), Ok(()), "{scope:?}");
        }
    }

    fn with_transport_learns_that_nobody_listens_and_none_does_not(over) {
        let client = common::client();
        let object = gone(over, &client);
        for scope in [SyncScope::WithTransport, SyncScope::WithServer, SyncScope::WithTarget] {
            let raised = note(&scoped(&object, scope), 1).unwrap_err();
            assert_eq!((raised.kind, raised.completed), (Kind::Transient, Completion::No), "{scope:?}");
        }
        assert_eq!(note(&scoped(&object, SyncScope::None), 1), Ok(()));
    }

    fn a_forward_is_followed_by_the_scopes_that_hear_of_it(over) {
        for scope in [SyncScope::WithServer, SyncScope::WithTarget] {
            let world = World::new(over, Lanes::Many);
            let ior = Ior::of_text(&world.orb.object_to_string(&world.object));
            let peer = Peer::answering(over, move |_, asked| {
                reply((2, Order::Big), asked.asked().id, LOCATION_FORWARD, |o| ior.write(o))
            });
            let client = common::client();
            assert_eq!(note(&scoped(&peer.seen_by(&client, 2), scope), 5), Ok(()));
            common::wait_for(|| world.probe.notes() == [5]);
        }
    }

    fn a_round_trip_that_takes_too_long_is_timeout_and_may_have_completed(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        for wait_ms in [5, 60] {
            let begun = Instant::now();
            let raised = call(&limited(&peer.seen_by(&client, 2), wait_ms), "ping").unwrap_err();
            assert_eq!((raised.kind, raised.completed), (Kind::Timeout, Completion::Maybe));
            assert!(begun.elapsed() >= Duration::from_millis(wait_ms));
        }
    }

    fn a_round_trip_in_time_is_not_disturbed_by_its_limit(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let object = limited(&world.seen_by(&client), 60_000);
        assert_eq!(call_with(&object, "octets", &vec![1_u8, 2]), Ok(vec![1, 2]));
    }

    fn a_reply_that_comes_too_late_is_not_taken_for_that_of_the_next_call(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        let object = world.seen_by(&client);
        assert_eq!(call(&limited(&object, 20), "meet").unwrap_err().kind, Kind::Timeout);
        world.probe.gate.open();
        for value in 0..50_u64 {
            assert_eq!(call_with(&object, "number", &value), Ok(value));
        }
    }

    fn a_round_trip_limit_counts_through_forwards(over) {
        let silent = Peer::silent(over);
        let ior = silent.ior(2, b"Fake");
        let peer = Peer::answering(over, move |_, asked| {
            reply((2, Order::Big), asked.asked().id, LOCATION_FORWARD, |o| ior.write(o))
        });
        let client = common::client();
        let raised = call(&limited(&peer.seen_by(&client, 2), 50), "ping").unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::Timeout, Completion::Maybe));
        silent.heard();
    }

    fn a_request_that_cannot_be_delivered_in_time_is_timeout_and_was_not_completed(over) {
        // The peer accepts and never reads; data beyond the size of the buffers cannot be sent.
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let peer = Peer::start(over, move |_, _, _| {
            let _ = held.recv(); // The test may be over.
        });
        let client = common::client();
        let object = with(&peer.seen_by(&client, 2), Policy::RelativeRequestTimeout(Duration::from_millis(50)));
        let raised = call_with(&object, "octets", &vec![0_u8; 12 << 20]).unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::Timeout, Completion::No));
        drop(hold);
    }

    fn transparent_rebinding_follows_and_reconnects_without_a_word(over) {
        let world = World::new(over, Lanes::Many);
        let (peer, client) = forwarding_later(over, &world);
        let object = with(&peer.seen_by(&client, 2), Policy::Rebind(RebindMode::Transparent));
        for _ in 0..3 {
            assert_eq!(call(&object, "ping"), Ok(()));
        }
        assert_eq!(world.probe.calls(), 2);
    }

    fn no_rebind_makes_a_forward_of_a_bound_reference_rebind(over) {
        let world = World::new(over, Lanes::Many);
        let (peer, client) = forwarding_later(over, &world);
        let object = with(&peer.seen_by(&client, 2), Policy::Rebind(RebindMode::NoRebind));
        assert_eq!(call(&object, "ping"), Ok(()));
        let raised = call(&object, "ping").unwrap_err();
        assert_eq!((raised.kind, raised.completed), (Kind::Rebind, Completion::No));
        assert_eq!(world.probe.calls(), 0);
    }

    fn no_reconnect_makes_a_closed_connection_rebind_and_no_rebind_does_not(over) {
        for (mode, second) in [(RebindMode::NoRebind, Ok(())), (RebindMode::NoReconnect, Err(Kind::Rebind))] {
            let peer = Peer::start(over, |_, wire, tell| {
                let asked = wire.hear().expect("a request");
                wire.say(&done(&asked));
                wire.say(&message((2, Order::Big), CLOSE_CONNECTION, |_| ()));
                tell(asked);
                // A request that crosses the CloseConnection message is read and gets no reply.
                while wire.hear().is_some() {}
            });
            let client = common::client();
            let object = with(&peer.seen_by(&client, 2), Policy::Rebind(mode));
            assert_eq!(call(&object, "ping"), Ok(()));
            peer.heard();
            assert_eq!(call(&object, "ping").map_err(|raised| raised.kind), second, "{mode:?}");
        }
    }

    fn validate_connection_binds_a_reference_now(over) {
        let world = World::new(over, Lanes::Many);
        let client = common::client();
        assert_eq!(world.seen_by(&client).validate_connection(), Ok(true));
        assert_eq!(world.probe.calls(), 0, "the servant is not called");
        assert_eq!(gone(over, &client).validate_connection().unwrap_err().kind, Kind::Transient);
    }

    fn what_is_set_closer_to_the_call_wins(over) {
        let peer = Peer::answering(over, |_, asked| done_if_wanted(asked));
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let flags = |object: &ObjectRef| {
            note(object, 1).unwrap();
            peer.heard().asked().response_flags
        };
        assert_eq!(flags(&object), SYNC_NONE);
        let set = |scope| [Policy::SyncScope(scope)];
        client.policy_manager().set_policy_overrides(&set(SyncScope::WithTarget), SetOverrideType::AddOverride).unwrap();
        assert_eq!(flags(&object), SYNC_WITH_TARGET);
        client.policy_current().set_policy_overrides(&set(SyncScope::WithServer), SetOverrideType::AddOverride).unwrap();
        assert_eq!(flags(&object), SYNC_WITH_SERVER);
        // Other threads do not have the override.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| note(&object, 1));
            assert_eq!(other.join().unwrap(), Ok(()));
        });
        assert_eq!(peer.heard().asked().response_flags, SYNC_WITH_TARGET);
        assert_eq!(flags(&scoped(&object, SyncScope::None)), SYNC_NONE);
        // SET_OVERRIDE with an empty list removes all overrides.
        client.policy_current().set_policy_overrides(&[], SetOverrideType::SetOverride).unwrap();
        assert_eq!(flags(&object), SYNC_WITH_TARGET);
    }

    fn an_exception_of_the_server_reaches_a_oneway_with_target_in_every_version(over) {
        let peer = Peer::answering(over, |_, asked| {
            asked.answered(SYSTEM_EXCEPTION, |o| {
                o.string("IDL:omg.org/CORBA/NO_RESOURCES:1.0").u32(3).u32(1);
            })
        });
        let client = common::client();
        for minor in peer.minors() {
            let raised = note(&scoped(&peer.seen_by(&client, minor), SyncScope::WithTarget), 1);
            assert_eq!(raised, Err(SystemException::new(Kind::NoResources, 3, Completion::No)), "1.{minor}");
        }
    }
}

/// A peer that replies to the first request, and forwards later requests to the world's object.
fn forwarding_later(over: Over, world: &World) -> (Peer, Orb) {
    let ior = Ior::of_text(&world.orb.object_to_string(&world.object));
    let peer = Peer::answering(over, move |count, asked| {
        if count == 0 {
            return done(asked);
        }
        reply((2, Order::Big), asked.asked().id, LOCATION_FORWARD, |o| {
            ior.write(o)
        })
    });
    (peer, common::client())
}

#[test]
fn policies_are_made_by_number_and_value_and_refused_by_the_standards_reasons() {
    let short = |value: i16| Any::from_value(&value).unwrap();
    let time = Any::from_value(&50_000_u64).unwrap();
    for (number, value, policy) in [
        (23, short(1), Ok(Policy::Rebind(RebindMode::NoRebind))),
        (24, short(3), Ok(Policy::SyncScope(SyncScope::WithTarget))),
        (
            31,
            time.clone(),
            Ok(Policy::RelativeRequestTimeout(Duration::from_millis(5))),
        ),
        (
            32,
            time.clone(),
            Ok(Policy::RelativeRoundtripTimeout(Duration::from_millis(5))),
        ),
        (24, short(9), Err(PolicyErrorCode::BadPolicyValue)),
        (24, time.clone(), Err(PolicyErrorCode::BadPolicyType)),
        (999_999, time, Err(PolicyErrorCode::BadPolicy)),
    ] {
        assert_eq!(
            Policy::create(PolicyType(number), &value),
            policy,
            "{number}"
        );
    }
}

#[test]
fn policies_of_priorities_routing_and_order_are_told_to_be_unsupported() {
    let value = Any::from_value(&1_i16).unwrap();
    // Policy types: priorities 25 and 26; routing and hops 33 and 34; queue order 35.
    for number in [25, 26, 33, 34, 35] {
        assert_eq!(
            Policy::create(PolicyType(number), &value),
            Err(PolicyErrorCode::UnsupportedPolicy),
            "{number}"
        );
    }
}

#[test]
fn two_policies_of_one_kind_are_bad_param_and_an_unknown_kind_is_inv_policy() {
    let client = common::client();
    let object = client
        .string_to_object("corbaloc::ship/K")
        .unwrap()
        .unwrap();
    let twice = [
        Policy::SyncScope(SyncScope::None),
        Policy::SyncScope(SyncScope::WithTarget),
    ];
    for raised in [
        object
            .set_policy_overrides(&twice, SetOverrideType::AddOverride)
            .map(drop),
        client
            .policy_manager()
            .set_policy_overrides(&twice, SetOverrideType::AddOverride),
        client
            .policy_current()
            .set_policy_overrides(&twice, SetOverrideType::SetOverride),
    ] {
        assert_eq!(
            raised,
            Err(SystemException::new(
                Kind::BadParam,
                OMG | 30,
                Completion::No
            ))
        );
    }
    assert_eq!(
        object.client_policy(PolicyType(999_999)).unwrap_err().kind,
        Kind::InvPolicy
    );
}

#[test]
fn overrides_are_told_as_they_were_set_and_the_original_reference_keeps_its_own() {
    let client = common::client();
    let object = client
        .string_to_object("corbaloc::ship/K")
        .unwrap()
        .unwrap();
    let policies = [
        Policy::SyncScope(SyncScope::WithServer),
        Policy::Rebind(RebindMode::NoReconnect),
    ];
    let changed = object
        .set_policy_overrides(&policies, SetOverrideType::SetOverride)
        .unwrap();
    assert!(object.policy_overrides(&[]).is_empty());
    let mut told = changed.policy_overrides(&[]);
    told.sort_by_key(|policy| policy.policy_type().0);
    assert_eq!(told, [policies[1], policies[0]]);
    assert_eq!(
        changed.policy_overrides(&[PolicyType::SYNC_SCOPE]),
        [policies[0]]
    );
    let added = changed
        .set_policy_overrides(
            &[Policy::SyncScope(SyncScope::None)],
            SetOverrideType::AddOverride,
        )
        .unwrap();
    assert_eq!(
        added.policy_overrides(&[PolicyType::SYNC_SCOPE]),
        [Policy::SyncScope(SyncScope::None)]
    );
    assert_eq!(added.policy_overrides(&[]).len(), 2);
    assert_eq!(
        added.client_policy(PolicyType::REBIND),
        Ok(Some(policies[1]))
    );
}
