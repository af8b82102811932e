//! The end of requests over a bidirectional connection (CORBA 3.3 part 2, clause 9.9.1; part 1, clause 17.2.4): the
//! connection closes, the ORB shuts down, or the request times out. The other side's octets are made by hand.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use crate::common::both::{Acceptor, FORM, NOWHERE, Opener, announced, both, ping, time_in};
use crate::common::ior::{Ior, TAG_INTERNET_IOP, iiop_profile};
use crate::common::message::{CANCEL_REQUEST, CLOSE_CONNECTION, LOCATION_FORWARD, REQUEST, done};
use crate::common::{Order, Over, Peer, Wire, message, wait_for};
use deckwatch_cdr::{Reader, Write};
use deckwatch_dynamic::Poller;
use deckwatch_orb::{
    Completion, Counter, ObjectRef, Policy, SetOverrideType, SyncScope, SystemException,
    SystemExceptionKind as Kind, UtcT, own_minor,
};

#[test]
fn a_request_past_its_end_is_not_sent_on_to_where_it_is_forwarded() {
    let port = Arc::new(Mutex::new(0));
    let own = Arc::clone(&port);
    let end = Arc::new(Mutex::new(None));
    let awaited = Arc::clone(&end);
    let peer = Peer::answering(Over::Tcp, move |_, asked| {
        let here = ("127.0.0.1", *own.lock().unwrap());
        if asked.asked().key == b"Other" {
            return done(asked);
        }
        let end: UtcT = awaited.lock().unwrap().expect("one was set");
        wait_for(|| time_in(Duration::ZERO).time > end.time);
        let profile = iiop_profile(Order::Big, 2, here, b"Other", &[]);
        let other = Ior {
            type_id: String::new(),
            profiles: vec![(TAG_INTERNET_IOP, profile)],
        };
        asked.answered(LOCATION_FORWARD, |octets| other.write(octets))
    });
    *port.lock().unwrap() = peer.port();
    let opener = Opener::new(&both());
    let ending = || {
        let object = peer.seen_by(&opener.orb, 2);
        let time = time_in(Duration::from_secs(2));
        *end.lock().unwrap() = Some(time);
        let policies = [Policy::RequestEndTime(time)];
        let ending = object.set_policy_overrides(&policies, SetOverrideType::AddOverride);
        ending.unwrap()
    };
    let nothing = |_: &str, _: &mut Reader<'_>| Ok(None);
    let asked = |object: ObjectRef| {
        let poller = Poller::send(&object, "ping", |_| Ok(()))?;
        poller.poll("ping", u32::MAX, |_| Ok(()), nothing)
    };
    for ended in [ping(&ending()), asked(ending())] {
        let ended = ended.unwrap_err();
        let past = (Kind::Timeout, own_minor::END_TIME_PASSED);
        assert_eq!((ended.kind, ended.minor), past);
        assert_eq!(ended.completed, Completion::No);
    }
    assert_eq!(peer.heard_so_far(), 2);
}

#[test]
fn oneways_over_it_wait_for_their_start_and_are_not_sent_past_their_end() {
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        while let Some(heard) = wire.hear() {
            tell(heard);
        }
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let note = |time| {
        let policies = [Policy::SyncScope(SyncScope::WithTransport), time];
        let timed = server.set_policy_overrides(&policies, SetOverrideType::AddOverride);
        timed.unwrap().invoke_oneway("note", |w| 5_u32.write(w))
    };
    let wait = Duration::from_millis(100);
    let start = SystemTime::now() + wait;
    assert_eq!(note(Policy::RequestStartTime(time_in(wait))), Ok(()));
    assert!(SystemTime::now() >= start, "it was sent before its start");
    assert_eq!(peer.heard().asked().operation, "note");
    let past = UtcT::from_unix_ns(1_000_000_000, Duration::ZERO);
    let ended = note(Policy::RequestEndTime(past)).unwrap_err();
    let expected = (Kind::Timeout, own_minor::END_TIME_PASSED);
    assert_eq!((ended.kind, ended.minor), expected);
    assert_eq!(peer.heard_so_far(), 0);
}

#[test]
fn a_connection_that_its_server_closes_is_replaced_and_one_that_breaks_is_a_failure() {
    let opener = Opener::new(&both());
    let peer = Peer::start(Over::Tcp, |index, wire, tell| {
        let asked = wire.hear().expect("a request");
        match index {
            0 => wire.say(&message(FORM, CLOSE_CONNECTION, |_| ())),
            1 => {
                wire.say(&done(&asked));
                let _ = wire.hear(); // It is not answered.
            }
            _ => wire.say(&done(&asked)),
        }
        tell(asked);
    });
    let server = peer.seen_by(&opener.orb, 2);
    assert_eq!(
        ping(&server).map_err(|exception| exception.completed),
        Err(Completion::No)
    );
    assert_eq!(ping(&server), Ok(()));
    let lost = ping(&server).unwrap_err();
    assert_eq!(
        (lost.kind, lost.completed),
        (Kind::CommFailure, Completion::Maybe)
    );
    assert_eq!(ping(&server), Ok(()));
    for _ in 0..3 {
        assert!(announced(&peer.heard()).is_some());
    }
}

#[test]
fn a_call_that_is_given_up_is_cancelled_and_its_late_reply_hurts_nobody() {
    let opener = Opener::new(&both());
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        let asked = wire.hear().expect("a request");
        wire.say(&done(&asked));
        let given_up = wire.hear().expect("a request");
        let cancel = wire.hear().expect("a cancel request");
        tell(cancel);
        wire.say(&done(&given_up));
        while let Some(asked) = wire.hear() {
            wire.say(&done(&asked));
        }
    });
    let server = peer.seen_by(&opener.orb, 2);
    // The connection is open, so the timeout below covers the request alone.
    assert_eq!(ping(&server), Ok(()));
    let hasty = server.with_round_trip_timeout(Some(Duration::from_millis(500)));
    assert_eq!(ping(&hasty).unwrap_err().kind, Kind::Timeout);
    assert_eq!(peer.heard().kind(), CANCEL_REQUEST);
    assert_eq!(ping(&server), Ok(()));
    assert_eq!(opener.orb.counters().read(Counter::RepliesToNobody), 1);
}

#[test]
fn the_end_of_its_orb_ends_an_asynchronous_call_over_it() {
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        while let Some(heard) = wire.hear() {
            tell(heard);
        }
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let poller = Poller::send(&server, "ping", |_| Ok(())).unwrap();
    assert_eq!(peer.heard().kind(), REQUEST);
    opener.orb.shutdown(true).unwrap();
    let nothing = |_: &str, _: &mut Reader<'_>| Ok(None);
    let ended = poller.poll::<(), SystemException>("ping", u32::MAX, |_| Ok(()), nothing);
    let ended = ended.unwrap_err();
    assert_eq!((ended.kind, ended.minor), (Kind::BadInvOrder, 0x4f4d_0004));
}

#[test]
fn a_callback_that_the_end_of_the_connection_finds_waiting_fails() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    server.keep(&mut wire, &[NOWHERE]);
    for farewell in [false, true] {
        let kept = server.caller.kept();
        let calls = std::thread::spawn(move || ping(&kept));
        if farewell {
            // The connection is closed, and the address in the reference has no listener.
            let gone = calls.join().unwrap().unwrap_err();
            assert_eq!(gone.kind, Kind::Transient);
            continue;
        }
        assert!(wire.hear().is_some());
        wire.end();
        wire = Wire::to(&server.orb);
        let lost = calls.join().unwrap().unwrap_err();
        assert_eq!(
            (lost.kind, lost.completed),
            (Kind::CommFailure, Completion::Maybe)
        );
    }
}

#[test]
fn a_servant_whose_peer_ends_its_side_instead_of_answering_it_hears_of_that_and_still_answers() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    server.keep(&mut wire, &[NOWHERE]);
    // Without a timeout, only the close of the connection ends the call.
    let without_end = server.caller.kept().with_round_trip_timeout(None);
    *server.caller.kept.lock().unwrap() = Some(without_end);
    wire.say(&server.request(4, "call").bare());
    assert_eq!(wire.hear().expect("its callback").kind(), REQUEST);
    wire.end();
    let answer = wire.hear().expect("the answer to what was asked");
    assert_eq!(answer.reply().id, 4);
    let (lost, _, completed) = answer.reply().exception();
    assert_eq!(lost, "IDL:omg.org/CORBA/COMM_FAILURE:1.0");
    assert_eq!(completed, Completion::Maybe as u32);
    wire.expect_end();
}
