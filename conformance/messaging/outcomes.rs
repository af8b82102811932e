//! Outcomes of asynchronous calls, by clause (CORBA 3.3 part 1, clause 17.6): forwards, closed connections, timeouts,
//! shutdown of the ORB. The other side's octets are made by hand.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::common;
use crate::common::asynchronous::{answering_when_let, ask, heard, poll, poller, same, system};
use crate::common::message::{
    CANCEL_REQUEST, CLOSE_CONNECTION, LOCATION_FORWARD, NEEDS_ADDRESSING_MODE, NO_EXCEPTION, reply,
};
use crate::common::{OMG, Over, Peer, message, over_each, wait_for};
use deckwatch_cdr::{Write, Writer};
use deckwatch_dynamic::Poller;
use deckwatch_orb::{Completion, Counter, Policy, SetOverrideType, SystemExceptionKind as Kind};
use deckwatch_os::shared::RING_SIZE;

over_each! {
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
        let (peer, open) = answering_when_let(over);
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
        let ended = Poller::send(&hurried, "number", slow).unwrap_err();
        assert_eq!((ended.kind, ended.completed), (Kind::Timeout, Completion::No));
        open.send(()).unwrap();
        assert_eq!(poll(&first, u32::MAX), Ok(1));
        assert_eq!(peer.heard_so_far(), 1);
    }

    fn a_reply_to_a_request_that_was_never_made_is_not_late(over) {
        let peer = Peer::answering(over, |_, asked| {
            let unknown = reply(asked.form(), asked.asked().id.wrapping_add(1), NO_EXCEPTION, |_| ());
            [unknown, same(asked)].concat()
        });
        let client = common::client();
        assert_eq!(heard(&ask(&peer.seen_by(&client, 2), 3)), Ok(3));
        assert_eq!(client.counters().read(Counter::RepliesToNobody), 1);
        assert_eq!(client.counters().read(Counter::LateReplies), 0);
    }

    fn a_late_reply_hurts_nobody(over) {
        let mut late = None;
        let peer = Peer::answering(over, move |count, asked| {
            // The reply to the first call is sent late, together with a later reply.
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
}

#[test]
fn nothing_follows_a_cancellation_that_had_room_for_a_part_of_itself() {
    let (open, opened) = channel();
    let peer = Peer::start(Over::Shared, move |index, wire, tell| {
        if index == 0 {
            let _ = opened.recv(); // Sent, or the test is over.
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
        Poller::send(&object, "number", |w| w.write_octets(&octets)).expect("it is sent")
    };
    let measure = Peer::silent(Over::Shared);
    let _measured = begun(&measure, 8);
    let head = measure.heard().octets.len() - 8;
    // Fills the ring except for half the size of a CancelRequest.
    let first = begun(&peer, RING_SIZE - 8 - head);
    drop(first);
    let second = poller(&peer.seen_by(&client, 2), 2);
    open.send(()).unwrap();
    assert_eq!(peer.heard().octets.len(), RING_SIZE - 8);
    assert_eq!(poll(&second, u32::MAX), Ok(2));
}
