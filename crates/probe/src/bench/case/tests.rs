//! What a case sends, how it is named, and which of its operations are streams.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deckwatch_giop::ior::IiopProfile;
use deckwatch_orb::{Orb, OrbBuilder, Servant};

use super::*;
use crate::laboratory::end::servant;
use crate::laboratory::idl::deckwatch_bench::BenchRef;

/// Relays connections to `address`, and counts the octets of each direction.
fn relay(address: SocketAddr, counts: &Arc<[AtomicUsize; 2]>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let counts = Arc::clone(counts);
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(address).expect("the server");
            let clones = (near.try_clone(), far.try_clone());
            let (near_back, far_back) = (clones.0.expect("same"), clones.1.expect("same"));
            let (there, back) = (Arc::clone(&counts), Arc::clone(&counts));
            std::thread::spawn(move || carry(far_back, near_back, &back[1]));
            std::thread::spawn(move || carry(near, far, &there[0]));
        }
    });
    port
}

fn carry(mut from: TcpStream, mut to: TcpStream, count: &AtomicUsize) {
    let mut octets = [0; 4_096];
    while let Ok(got @ 1..) = from.read(&mut octets) {
        // Counted before it is sent: a client that has the reply finds all of it counted.
        count.fetch_add(got, Ordering::SeqCst);
        if to.write_all(&octets[..got]).is_err() {
            return;
        }
    }
}

#[test]
fn raw_messages_have_the_sizes_that_ours_have_on_the_wire() {
    let server = Orb::builder()
        .listen("127.0.0.1:0")
        .and_then(OrbBuilder::build)
        .expect("a server");
    let servant: Arc<dyn Servant> = servant::of_bench();
    let root = server.root_poa().expect("a root adapter");
    let reference = root.servant_to_reference(&servant).expect("a reference");
    root.the_poa_manager().activate().expect("active");
    let text = reference.to_string();
    let ior: Ior = text.parse().expect("our own");
    let mut profile: IiopProfile = ior.iiop_profiles().flatten().next().expect("IIOP");
    let counts = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    profile.port = relay(SocketAddr::from(([127, 0, 0, 1], profile.port)), &counts);
    profile.host = "127.0.0.1".to_owned();
    let through = Ior::with_iiop("", &profile).expect("fits").to_string();
    let client = Orb::builder().build().expect("a client");
    let object = client.string_to_object(&through).expect("sound");
    let echo = BenchRef::unchecked_narrow(object.expect("not nil"));
    // The first message of a connection has a service context more than the others: code sets.
    echo.send_octets(&[]).expect("sent");
    while echo.calls().expect("answered") == 0 {}
    let counted = || [0, 1].map(|way: usize| counts[way].load(Ordering::SeqCst));
    for size in [64, 65, 71, 1_024, 65_536] {
        for operation in Operation::ALL {
            let case = Case::new(operation, size);
            let count = case.count();
            let before = counted();
            let called = match operation {
                Operation::Octets => echo.echo_octets(&vec![1; count]).map(drop),
                Operation::Structs => {
                    let data = vec![element(); count];
                    echo.echo_complex_sequence(&data).map(drop)
                }
                Operation::SinkOctets => echo.sink_octets(&vec![1; count]),
                Operation::SinkStructs => echo.sink_complex_sequence(&vec![element(); count]),
                Operation::SinkPlain => echo.sink_plain_sequence(&vec![plain(); count]),
                Operation::Resolve
                | Operation::Push
                | Operation::PushStream
                | Operation::RtPush
                | Operation::RtPushStream => panic!("no call"),
                Operation::StreamOctets => {
                    // The connection for one-ways is another; its first message has the code sets too.
                    let sent = || counted()[0] - before[0];
                    echo.send_octets(&vec![1; count]).expect("sent");
                    let (there, _) = case.message_sizes(&text).expect("our own");
                    let until = Instant::now() + Duration::from_secs(10);
                    while sent() < there && Instant::now() < until {
                        std::thread::yield_now();
                    }
                    assert_eq!(sent(), there, "{case:?}");
                    continue;
                }
            };
            called.expect("answered");
            let after = counted();
            let sizes = case.message_sizes(&text).expect("our own");
            assert_eq!(
                (after[0] - before[0], after[1] - before[1]),
                sizes,
                "{case:?}"
            );
        }
    }
    server.shutdown(true).expect("it ends");
}

#[test]
fn a_push_takes_its_event_on_the_wire_and_no_reply() {
    let key = IiopProfile::new("127.0.0.1", 1, &[7; 20]);
    let reference = Ior::with_iiop("", &key).expect("fits").to_string();
    let of = |size| {
        let case = Case::push(Operation::Push, size, Consumers::apart(35));
        case.message_sizes(&reference).expect("our own")
    };
    let (small, large) = (of(0), of(384));
    assert_eq!((small.1, large.1), (0, 0));
    assert_eq!(large.0 - small.0, 384 - 1);
}

#[test]
fn as_many_octets_as_structs_take_are_called() {
    let case = Case::new(Operation::Structs, 65_536);
    assert_eq!((case.count(), case.as_octets().count()), (1_638, 65_520));
}

#[test]
fn an_operation_of_calls_is_known_by_its_word() {
    for operation in Operation::ALL.into_iter().chain([Operation::Resolve]) {
        assert_eq!(Operation::of_word(operation.word()), Some(operation));
    }
    for other in ["", "octet", Operation::Push.word()] {
        assert_eq!(Operation::of_word(other), None, "{other}");
    }
}

#[test]
fn a_resolve_takes_its_name_there_and_a_reference_back() {
    let sizes = |key_len: usize, id_len: usize| {
        let key = IiopProfile::new("127.0.0.1", 1, &vec![7; key_len]);
        let reference = Ior::with_iiop("", &key).expect("fits").to_string();
        let case = Case::new(Operation::Resolve, id_len);
        case.message_sizes(&reference).expect("our own")
    };
    let (there, back) = sizes(20, 16);
    assert_eq!(sizes(20, 32), (there + 16, back));
    assert_eq!(sizes(36, 16), (there + 16, back + 16));
    let name = resolved_name(3);
    assert_eq!((name.id.as_str(), name.kind.as_str()), ("nnn", ""));
}

#[test]
fn a_real_time_event_has_its_type_one_hop_and_its_payload() {
    let Event { header, data } = real_time_event(7, 5);
    assert_eq!((header.r#type, header.source, header.ttl), (7, 1, 1));
    assert_eq!(data.payload, [3; 5]);
}

#[test]
fn words_name_the_operation_its_consumers_and_what_it_is_beside() {
    let call = Case::new(Operation::Octets, 64);
    assert_eq!(call.words(), "octets");
    let attack = Attack::ALL[0];
    for (beside, words) in [
        (Beside::UntunedRawTcp, "octets beside untuned raw TCP"),
        (Beside::Octets, "octets beside octets"),
        (Beside::OneObject, "octets, many objects"),
        (Beside::PlainCalls, "octets beside plain calls"),
        (Beside::NoOthers, "octets, consumers of other events"),
        (Beside::NoLoad, "octets, a load of low priority"),
        (
            Beside::NoAttack(attack),
            &format!("octets, under {}", attack.word()),
        ),
    ] {
        assert_eq!(call.beside(beside).words(), words);
    }
    let push = |consumers| Case::push(Operation::Push, 384, consumers);
    for (consumers, words, command) in [
        (
            Consumers::together(1),
            "push to one consumer",
            "push/1/together",
        ),
        (
            Consumers::together(35),
            "push to 35 consumers at one endpoint",
            "push/35/together",
        ),
        (
            Consumers::apart(35),
            "push to 35 consumers, an endpoint each",
            "push/35/apart",
        ),
    ] {
        let case = push(consumers);
        assert_eq!(
            (case.words(), case.command()),
            (words.to_owned(), command.to_owned())
        );
        assert!(case.is_push() && !call.is_push());
    }
    assert_eq!(call.command(), "octets");
}

#[test]
fn calls_under_an_attack_come_at_the_period_of_a_high_lane() {
    for attack in Attack::ALL {
        let case = Case::under(attack);
        assert_eq!(case.period_ns, Some(kind::PRIORITY_PERIOD_NS));
    }
}

#[test]
fn only_one_ways_and_pushes_without_pause_are_streams() {
    let streams = [
        Operation::StreamOctets,
        Operation::PushStream,
        Operation::RtPushStream,
    ];
    let others = [Operation::Push, Operation::RtPush, Operation::Resolve];
    for operation in Operation::ALL.into_iter().chain(streams).chain(others) {
        let is_stream = streams.contains(&operation);
        assert_eq!(
            Case::new(operation, 64).is_stream(),
            is_stream,
            "{operation:?}"
        );
    }
}
