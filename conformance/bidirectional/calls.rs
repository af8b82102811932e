//! Bidirectional GIOP by clause (CORBA 3.3 part 2, clause 9.9.1): requests and replies in both directions of one
//! connection. The other side's octets are made by hand.

use std::sync::Arc;

use crate::common::both::{Acceptor, NOWHERE, Opener, both, parse_number, ping};
use crate::common::message::{NO_EXCEPTION, REPLY, REQUEST, SYNC_NONE, SYSTEM_EXCEPTION, done};
use crate::common::{Over, Peer, Wire, wait_for};
use deckwatch_cdr::{Reader, Write};
use deckwatch_dynamic::Poller;
use deckwatch_orb::{Counter, Orb, Policy, Servant, SetOverrideType, SyncScope, SystemException};

#[test]
fn a_server_calls_back_over_the_connection_while_its_own_request_is_under_way() {
    let opener = Arc::new(Opener::new(&both()));
    let asks = Arc::clone(&opener);
    let peer = Peer::start(Over::Tcp, move |_, wire, tell| {
        while let Some(asked) = wire.hear() {
            // A one-way, a request and a LocateRequest, before the reply.
            wire.say(&asks.request(9, "note").flags(SYNC_NONE).with(|octets| {
                octets.u32(4);
            }));
            let number = asks.request(11, "number");
            let answer = wire.ask(&number.with(|octets| {
                octets.u64(1 << 33);
            }));
            wire.say(&done(&asked));
            tell(answer);
        }
    });
    let server = peer.seen_by(&opener.orb, 2);
    for calls in 1..4 {
        assert_eq!(ping(&server), Ok(()));
        let mut answer = peer.heard().reply();
        assert_eq!((answer.id, answer.status), (11, NO_EXCEPTION));
        assert_eq!(answer.body.u64(), 1 << 33);
        assert_eq!(opener.probe.notes(), vec![4; calls]);
    }
    let accepted = opener.orb.counters().read(Counter::ConnectionsAccepted);
    assert_eq!(accepted, 0);
}

#[test]
fn calls_of_many_threads_share_the_connection_and_each_gets_its_own_reply() {
    let opener = Opener::new(&both());
    // Replies to two requests at a time, the later one first.
    let peer = Peer::start(Over::Tcp, |_, wire, _| {
        while let (Some(one), Some(other)) = (wire.hear(), wire.hear()) {
            for asked in [other, one] {
                let number = asked.asked().body.u64();
                wire.say(&asked.answered(NO_EXCEPTION, |octets| {
                    octets.u64(number);
                }));
            }
        }
    });
    let server = peer.seen_by(&opener.orb, 2);
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let server = &server;
            scope.spawn(move || {
                for call in 0..50 {
                    let number = thread << 32 | call;
                    let got: Result<u64, SystemException> =
                        server.invoke("number", |w| number.write(w), parse_number, |_, _| Ok(None));
                    assert_eq!(got, Ok(number));
                }
            });
        }
    });
}

#[test]
fn a_server_asks_the_opener_over_its_connection_by_odd_numbers() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    server.keep(&mut wire, &[("elsewhere", 9), NOWHERE]);
    for round in 0..3 {
        wire.say(&server.request(4, "call").bare());
        let asked = wire.hear().expect("a request");
        assert_eq!(asked.kind(), REQUEST);
        let callback = asked.asked();
        assert_eq!(
            (callback.key, callback.operation.as_str()),
            (b"Fake".to_vec(), "ping")
        );
        assert_eq!(callback.id % 2, 1, "round {round}");
        wire.say(&done(&asked));
        let answer = wire.hear().expect("a reply").reply();
        assert_eq!((answer.id, answer.status), (4, NO_EXCEPTION));
    }
    // Callbacks between requests of the opener, and one-way callbacks.
    let kept = server.caller.kept();
    let calls = std::thread::spawn(move || ping(&kept));
    let asked = wire.hear().expect("a request");
    wire.say(&done(&asked));
    assert_eq!(calls.join().unwrap(), Ok(()));
    for scope in [SyncScope::None, SyncScope::WithTransport] {
        let policies = [Policy::SyncScope(scope)];
        let kept = server.caller.kept();
        let kept = kept.set_policy_overrides(&policies, SetOverrideType::AddOverride);
        assert_eq!(
            kept.unwrap().invoke_oneway("note", |w| 5_u32.write(w)),
            Ok(())
        );
        let note = wire.hear().expect("a request").asked();
        assert_eq!((note.operation.as_str(), note.response_flags), ("note", 0));
    }
    assert_eq!(
        server
            .orb
            .counters()
            .read(Counter::ConnectionsBidirectional),
        1
    );
    assert_eq!(server.orb.counters().read(Counter::ConnectionsMade), 0);
}

#[test]
fn a_servant_that_calls_back_leaves_a_thread_to_read_the_reply() {
    for others in [0, 2] {
        let builder = Orb::builder().threads(1 + others).dynamic_threads(0);
        let server = Acceptor::with(builder, &both());
        let mut wire = Wire::to(&server.orb);
        server.keep(&mut wire, &[NOWHERE]);
        let call = |wire: &mut Wire, id| {
            wire.say(&server.request(id, "call").bare());
            wire.hear().expect("something")
        };
        let waiting: Vec<_> = (0..others)
            .map(|number| call(&mut wire, 4 + 2 * u32::try_from(number).unwrap()))
            .collect();
        assert!(waiting.iter().all(|asked| asked.kind() == REQUEST));
        let mut refused = call(&mut wire, 100).reply();
        assert_eq!((refused.id, refused.status), (100, SYSTEM_EXCEPTION));
        assert_eq!(refused.body.string(), "IDL:omg.org/CORBA/TRANSIENT:1.0");
        for asked in &waiting {
            wire.say(&done(asked));
            assert_eq!(wire.hear().expect("a reply").reply().status, NO_EXCEPTION);
        }
    }
}

#[test]
fn no_servant_waits_for_an_asynchronous_reply_that_none_but_its_thread_could_read() {
    for threads in [1, 2] {
        let builder = Orb::builder().threads(threads).dynamic_threads(0);
        let server = Acceptor::with(builder, &both());
        let mut wire = Wire::to(&server.orb);
        server.keep(&mut wire, &[NOWHERE]);
        for operation in ["poll", "await", "fetch"] {
            wire.say(&server.request(4, operation).bare());
            let asked = wire.hear().expect("a request");
            assert_eq!(asked.kind(), REQUEST, "{operation}");
            if threads == 2 {
                wire.say(&done(&asked));
            }
            // The server cancels a request that its caller no longer waits for.
            let answer = std::iter::from_fn(|| wire.hear()).find(|heard| heard.kind() == REPLY);
            let mut answer = answer.expect("a reply").reply();
            assert_eq!(answer.id, 4);
            if threads == 2 {
                assert_eq!(answer.status, NO_EXCEPTION, "{operation}");
                continue;
            }
            assert_eq!(answer.status, SYSTEM_EXCEPTION, "{operation}");
            let raised = answer.body.string();
            assert_eq!(raised, "IDL:omg.org/CORBA/TRANSIENT:1.0", "{operation}");
        }
    }
}

#[test]
fn asynchronous_calls_go_over_it_both_ways_and_end_with_it() {
    let acceptor = Acceptor::new(&both());
    let mut wire = Wire::to(&acceptor.orb);
    acceptor.keep(&mut wire, &[NOWHERE]);
    let told = |count| {
        wait_for(|| acceptor.caller.told.lock().unwrap().len() == count);
        acceptor.caller.told.lock().unwrap().clone()
    };
    let send = |wire: &mut Wire| {
        wire.say(&acceptor.request(4, "send").bare());
        // The reply may come before the callback or after it.
        let (one, other) = (wire.hear().unwrap(), wire.hear().unwrap());
        let asked = [one, other].into_iter().find(|one| one.kind() == REQUEST);
        asked.expect("a call over this very connection")
    };
    let asked = send(&mut wire);
    assert_eq!(asked.asked().id % 2, 1);
    wire.say(&done(&asked));
    assert_eq!(told(1), [true]);
    // The connection closes while this call waits.
    send(&mut wire);
    drop(wire);
    assert_eq!(told(2), [true, false]);
    assert_eq!(acceptor.orb.counters().read(Counter::ConnectionsMade), 0);

    // Calls by the opener of the connection: several at a time, replies in any order.
    let peer = Peer::start(Over::Tcp, |_, wire, tell| {
        let asked: Vec<_> = (0..3).map_while(|_| wire.hear()).collect();
        for asked in asked.iter().rev() {
            wire.say(&done(asked));
        }
        asked.into_iter().for_each(tell);
        let _ = wire.hear(); // Until the end.
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let pollers = [(); 3].map(|()| Poller::send(&server, "ping", |_| Ok(())).unwrap());
    for poller in &pollers {
        let nothing = |_: &str, _: &mut Reader<'_>| Ok(None);
        let polled = poller.poll::<_, SystemException>("ping", u32::MAX, |_| Ok(()), nothing);
        assert_eq!(polled, Ok(()));
        assert_eq!(peer.heard().asked().id % 2, 0);
    }
    assert_eq!(opener.orb.counters().read(Counter::ConnectionsMade), 1);
    // The poller is dropped, so nothing waits for this reply.
    drop(Poller::send(&server, "ping", |_| Ok(())).unwrap());
}

#[test]
fn two_orbs_of_ours_ask_each_other_over_one_connection() {
    let (opener, server) = (Opener::new(&both()), Acceptor::new(&both()));
    let root = server.orb.root_poa().unwrap();
    let poa = root.find_poa("both", false).unwrap();
    let servant: Arc<dyn Servant> = server.caller.clone();
    let text = poa.servant_to_reference(&servant).unwrap().to_string();
    let seen = opener.orb.string_to_object(&text).unwrap().unwrap();
    let keep: Result<(), SystemException> = seen.invoke(
        "keep",
        |w| Some(opener.object.clone()).write(w),
        |_| Ok(()),
        |_, _| Ok(None),
    );
    assert_eq!(keep, Ok(()));
    for _ in 0..50 {
        let call: Result<(), SystemException> =
            seen.invoke("call", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
        assert_eq!(call, Ok(()));
        let note: Result<(), SystemException> =
            seen.invoke("note", |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
        assert_eq!(note, Ok(()));
    }
    wait_for(|| opener.probe.notes().len() == 50);
    assert_eq!(opener.probe.calls(), 100);
    assert_eq!(opener.orb.counters().read(Counter::ConnectionsAccepted), 0);
    assert_eq!(server.orb.counters().read(Counter::ConnectionsAccepted), 1);
    assert_eq!(server.orb.counters().read(Counter::ConnectionsMade), 0);
}
