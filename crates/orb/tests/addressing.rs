//! How a client addresses the object: by its key, until the server requests another addressing disposition (CORBA 3.3
//! part 2, clauses 9.4.2.3 and 9.4.3.3).

use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use deckwatch_cdr::Write;
use deckwatch_giop::ior::{IiopProfile, profile_tag};
use deckwatch_giop::{Format, Frame, Ior, Message, ReplyHeader, ReplyStatus, Target};
use deckwatch_orb::{Completion, Counter, Orb, SystemException, SystemExceptionKind as Kind};

const KEY: &[u8] = b"the key";

/// For each request at the server: the disposition, the index of the selected profile, and the key.
type Seen = Vec<(u16, Option<u32>, Vec<u8>)>;

/// Reads the next message. Returns `None` if the client has closed the connection.
fn next_message(stream: &mut TcpStream, octets: &mut Vec<u8>) -> Option<Vec<u8>> {
    loop {
        if let Frame::Message(_, size) = Frame::parse(octets, usize::MAX).expect("GIOP") {
            return Some(octets.drain(..size).collect());
        }
        let mut some = [0; 512];
        let count = stream.read(&mut some).expect("octets");
        if count == 0 {
            return None;
        }
        octets.extend_from_slice(&some[..count]);
    }
}

fn seen(target: &Target<'_>) -> (u16, Option<u32>, Vec<u8>) {
    let key = target.object_key().expect("a key").to_vec();
    match *target {
        Target::Key(_) => (0, None, key),
        Target::Profile(_) => (1, None, key),
        Target::Reference { selected, .. } => (2, Some(selected), key),
    }
}

/// A server that replies to each request with NEEDS_ADDRESSING_MODE and the next of these dispositions, then with
/// success.
fn server(wants: Vec<u16>) -> (String, JoinHandle<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let iiop = IiopProfile::new("127.0.0.1", port, KEY);
    let mut ior = Ior::with_iiop("IDL:deckwatch/Bench:1.0", &iiop).expect("a reference");
    // The selected profile is not the first.
    let mut other = ior.profiles[0].clone();
    other.tag = profile_tag::MULTIPLE_COMPONENTS;
    other.data = vec![0, 0, 0, 0, 0, 0, 0, 0];
    ior.profiles.insert(0, other);
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let (mut octets, mut all, mut wants) = (Vec::new(), Vec::new(), wants.into_iter());
        while let Some(message) = next_message(&mut stream, &mut octets) {
            let Ok(Message::Request(request)) = Message::parse(&message) else {
                panic!("a request")
            };
            all.push(seen(&request.target));
            let wanted = wants.next();
            let status = match wanted {
                Some(_) => ReplyStatus::NeedsAddressingMode,
                None => ReplyStatus::NoException,
            };
            let (id, contexts) = (request.id, &[][..]);
            let header = ReplyHeader {
                id,
                status,
                contexts,
            };
            let mut reply = Vec::new();
            let open = header.begin(&mut reply, Format::default()).expect("room");
            wanted
                .map_or(Ok(()), |wanted| wanted.write(&mut open.writer(&mut reply)))
                .expect("room");
            open.finish(&mut reply).expect("a size");
            stream.write_all(&reply).expect("a reader");
        }
        all
    });
    (ior.to_string(), serving)
}

/// Calls twice. Returns the outcomes and what the server received.
fn call_twice(wants: Vec<u16>) -> ([Result<(), SystemException>; 2], Seen, u64) {
    let (reference, serving) = server(wants);
    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(&reference).expect("an IOR");
    let object = object.expect("an object");
    let call = || {
        object.invoke(
            "op",
            |_| Ok(()),
            |_| Ok(()),
            |_, _| Ok(None::<SystemException>),
        )
    };
    let outcomes = [call(), call()];
    let again = orb.counters().read(Counter::Readdressings);
    drop(object);
    orb.shutdown(true).expect("it ends");
    (outcomes, serving.join().expect("the server ends"), again)
}

#[test]
fn a_client_asks_again_in_the_addressing_mode_that_the_server_needs_and_keeps_to_it() {
    let key = || KEY.to_vec();
    let (outcomes, seen, again) = call_twice(vec![1]);
    assert_eq!(outcomes, [Ok(()), Ok(())]);
    assert_eq!(seen, [(0, None, key()), (1, None, key()), (1, None, key())]);
    assert_eq!(again, 1);
    let (outcomes, seen, again) = call_twice(vec![2]);
    assert_eq!(outcomes, [Ok(()), Ok(())]);
    let whole = (2, Some(1), key());
    assert_eq!(seen, [(0, None, key()), whole.clone(), whole]);
    assert_eq!(again, 1);
    let (outcomes, seen, _) = call_twice(vec![2, 1]);
    assert_eq!(outcomes, [Ok(()), Ok(())]);
    let modes: Vec<_> = seen.iter().map(|(mode, ..)| *mode).collect();
    assert_eq!(modes, [0, 2, 1, 1]);
}

#[test]
fn a_server_that_is_content_with_no_addressing_mode_fails_the_call_without_end_of_asking() {
    for wants in [vec![0, 7], vec![7, 0], vec![1, 1], vec![1, 2, 0, 1, 2, 0]] {
        let (outcomes, seen, _) = call_twice(wants.clone());
        // The server serves one connection only, so the second call fails.
        let exception = outcomes[0].expect_err("no mode pleases it");
        assert_eq!(
            (exception.kind, exception.completed),
            (Kind::CommFailure, Completion::No),
            "{wants:?}"
        );
        assert!(seen.len() <= 3, "{wants:?}");
    }
}
