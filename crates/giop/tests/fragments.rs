//! Messages divided into fragments and joined again, and malformed fragments.

use deckwatch_cdr::{Parse, Write};
use deckwatch_giop::limits::FRAGMENTED_MESSAGES_MAX;
use deckwatch_giop::*;
use proptest::prelude::*;

fn request(version: Version, order: ByteOrder, id: u32, body: &[u8]) -> Vec<u8> {
    let format = Format {
        codec: Codec::DEFAULT.with_version(version),
        order,
        ..Format::default()
    };
    let mut buffer = Vec::new();
    let header = RequestHeader {
        id,
        response: Response::Outcome,
        target: Target::Key(b"key"),
        operation: "op",
        contexts: &[],
    };
    let open = header.begin(&mut buffer, format).unwrap();
    open.writer(&mut buffer).write_octets(body).unwrap();
    open.finish(&mut buffer).unwrap();
    buffer
}

fn parts(message: &[u8], size_max: usize) -> Vec<Vec<u8>> {
    Parts::of(message, size_max)
        .unwrap()
        .map(|part| [part.header(), part.data].concat())
        .collect()
}

/// The octets of a fragment of any version.
fn fragment(version: Version, id: u32, more: bool, data: &[u8]) -> Vec<u8> {
    let id = if version == Version::V1_2 {
        id.to_ne_bytes().to_vec()
    } else {
        Vec::new()
    };
    let size = (id.len() + data.len()) as u32;
    let header = Header {
        version,
        order: ByteOrder::NATIVE,
        more_fragments: more,
        kind: MessageKind::Fragment,
        size,
    };
    [&header.to_octets()[..], &id, data].concat()
}

/// `message` with the flag for more fragments.
fn unfinished(mut message: Vec<u8>) -> Vec<u8> {
    message[6] |= 2;
    message
}

proptest! {
    #[test]
    fn divided_messages_are_joined_to_what_they_were(bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 1..5), size_max in 0_usize..200, big: bool) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let messages: Vec<_> = bodies.iter().enumerate().map(|(id, body)| request(Version::V1_2, order, id as u32, body)).collect();
        let mut trains: Vec<_> = messages.iter().map(|message| parts(message, size_max).into_iter()).collect();
        let mut assembly = Assembly::default();
        let mut joined = 0;
        // The fragments of the messages alternate, as those of concurrent requests do.
        while joined < messages.len() {
            for (train, message) in trains.iter_mut().zip(&messages) {
                let Some(part) = train.next() else { continue };
                prop_assert!(part.len() <= size_max.max(limits::FRAGMENT_SIZE_MIN));
                prop_assert!(part.len() % 8 == 0 || train.len() == 0);
                prop_assert!(matches!(Frame::parse(&part, 1000), Ok(Frame::Message(_, size)) if size == part.len()));
                if let Some(whole) = assembly.accept(&part).unwrap() {
                    prop_assert_eq!(whole.octets(), &message[..]);
                    prop_assert_eq!(whole.ends(), &[] as &[u32]);
                    joined += 1;
                }
            }
        }
        prop_assert_eq!(assembly.unfinished(), 0);
    }

    #[test]
    fn random_trains_never_make_the_assembly_panic_or_pass_its_limit(steps in prop::collection::vec((0_u8..3, 0_u32..4, any::<bool>(), 0_usize..100), 0..60)) {
        let mut assembly = Assembly::new(500);
        for (kind, id, more, len) in steps {
            let message = match kind {
                0 => unfinished(request(Version::V1_2, ByteOrder::NATIVE, id, &vec![1; len])),
                1 => fragment(Version::V1_2, id, more, &vec![1; len]),
                _ => fragment(Version::V1_1, id, more, &vec![1; len]),
            };
            if let Ok(Some(whole)) = assembly.accept(&message) {
                prop_assert!(whole.octets().len() <= 500);
                prop_assert!(Message::parse_joined(&whole).is_ok());
            }
        }
    }
}

#[test]
fn fragments_of_giop_1_1_continue_the_one_unfinished_message() {
    let whole = request(Version::V1_1, ByteOrder::NATIVE, 5, b"abcdef");
    let mut first = whole[..whole.len() - 6].to_vec();
    let size = (first.len() - HEADER_SIZE) as u32;
    first[8..12].copy_from_slice(&size.to_ne_bytes());
    let mut assembly = Assembly::default();
    assert_eq!(assembly.accept(&unfinished(first)), Ok(None));
    assert_eq!(
        assembly.accept(&fragment(Version::V1_1, 0, true, b"abc")),
        Ok(None)
    );
    let last = fragment(Version::V1_1, 0, false, b"def");
    let joined = assembly.accept(&last).unwrap().unwrap();
    assert_eq!(joined.octets(), whole);
    let end = whole.len() as u32;
    assert_eq!(joined.ends(), [end - 6, end - 3, end]);
}

/// A GIOP 1.1 request whose values are aligned for fragments of `fragment_size` octets.
fn request_1_1(
    fragment_size: usize,
    order: ByteOrder,
    values: &[(u8, f64, u16, String)],
) -> Vec<u8> {
    let format = Format {
        codec: Codec::DEFAULT.with_version(Version::V1_1),
        order,
        fragment_size: Some(fragment_size),
        ..Format::default()
    };
    let mut buffer = Vec::new();
    let context = ServiceContext {
        id: context_id::CODE_SETS,
        data: &[0; 12],
    };
    let header = RequestHeader {
        id: 7,
        response: Response::Outcome,
        target: Target::Key(b"a key that is longer than the smallest fragment"),
        operation: "op",
        contexts: &[context],
    };
    let open = header.begin(&mut buffer, format).unwrap();
    let mut w = open.writer(&mut buffer);
    for (octet, number, short, text) in values {
        octet.write(&mut w).unwrap();
        number.write(&mut w).unwrap();
        short.write(&mut w).unwrap();
        text.write(&mut w).unwrap();
    }
    open.finish(&mut buffer).unwrap();
    buffer
}

proptest! {
    #[test]
    fn values_in_fragments_of_giop_1_1_are_aligned_from_their_fragment(values in prop::collection::vec((any::<u8>(), -1e9_f64..1e9, any::<u16>(), "[a-z]{0,40}"), 0..12), size_max in 0_usize..200, big: bool) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let message = request_1_1(size_max, order, &values);
        let parts = parts(&message, size_max);
        prop_assert!(parts[..parts.len() - 1].iter().all(|part| part.len() % 8 == 0));
        let mut assembly = Assembly::default();
        let mut joined = None;
        for part in &parts {
            prop_assert!(part.len() <= size_max.max(limits::FRAGMENT_SIZE_MIN));
            if let Some(whole) = assembly.accept(part).unwrap() {
                joined = Some((whole.octets().to_vec(), whole.ends().to_vec()));
            }
        }
        let (octets, ends) = joined.unwrap();
        let joined = deckwatch_cdr::Divided::new(&octets, &ends);
        let Ok(Message::Request(request)) = Message::parse_joined(&joined) else { panic!("a request") };
        prop_assert_eq!((request.id, request.operation, request.contexts.len()), (7, &b"op"[..], 1));
        prop_assert_eq!(request.contexts.find(context_id::CODE_SETS), Some(&[0; 12][..]));
        let mut r = request.body;
        for (octet, number, short, text) in &values {
            prop_assert_eq!(u8::parse(&mut r), Ok(*octet));
            prop_assert_eq!(f64::parse(&mut r), Ok(*number));
            prop_assert_eq!(u16::parse(&mut r), Ok(*short));
            let parsed = String::parse(&mut r);
            prop_assert_eq!(parsed.as_ref(), Ok(text));
        }
        prop_assert_eq!(r.finish(), Ok(()));
    }
}

#[test]
fn a_cancel_request_ends_the_train_of_giop_1_1_that_it_names() {
    let whole = request_1_1(32, ByteOrder::NATIVE, &[]);
    let parts = parts(&whole, 32);
    let mut assembly = Assembly::default();
    // The first fragment does not contain the request id yet.
    assert_eq!(assembly.accept(&parts[0]), Ok(None));
    assert!(!assembly.cancel(7));
    assert_eq!(assembly.accept(&parts[1]), Ok(None));
    assert!(!assembly.cancel(8) && assembly.cancel(7));
    assert_eq!(
        assembly.accept(&parts[2]),
        Err(ProtocolError::FragmentUnexpected)
    );
}

#[test]
fn fragments_without_data_take_no_memory() {
    for version in [Version::V1_1, Version::V1_2] {
        let first = unfinished(request(version, ByteOrder::NATIVE, 1, &[7; 40]));
        let mut assembly = Assembly::default();
        assert_eq!(assembly.accept(&first), Ok(None));
        let held = assembly.held();
        for _ in 0..1000 {
            assert_eq!(assembly.accept(&fragment(version, 1, true, b"")), Ok(None));
        }
        assert_eq!(assembly.held(), held);
        assert!(
            assembly
                .accept(&fragment(version, 1, false, b""))
                .unwrap()
                .is_some()
        );
    }
}

#[test]
fn trains_that_lie_are_refused() {
    let start = |id| unfinished(request(Version::V1_2, ByteOrder::NATIVE, id, &[7; 40]));
    let mut assembly = Assembly::default();
    assert_eq!(
        assembly.accept(&fragment(Version::V1_2, 1, false, b"x")),
        Err(ProtocolError::FragmentUnexpected)
    );
    assert_eq!(assembly.accept(&start(1)), Ok(None));
    assert_eq!(
        assembly.accept(&start(1)),
        Err(ProtocolError::FragmentsMixed)
    );
    assert_eq!(
        assembly.accept(&fragment(Version::V1_2, 2, false, b"x")),
        Err(ProtocolError::FragmentUnexpected)
    );
    assert_eq!(
        assembly.accept(&fragment(Version::V1_1, 1, false, b"x")),
        Err(ProtocolError::FragmentUnexpected)
    );
    for id in 2..=FRAGMENTED_MESSAGES_MAX as u32 {
        assert_eq!(assembly.accept(&start(id)), Ok(None));
    }
    assert_eq!(
        assembly.accept(&start(99)),
        Err(ProtocolError::FragmentsTooMany)
    );
    assert!(assembly.cancel(2) && !assembly.cancel(2));
    assert_eq!(assembly.accept(&start(99)), Ok(None));
    let mut small = Assembly::new(start(1).len() + 3);
    assert_eq!(small.accept(&start(1)), Ok(None));
    assert_eq!(
        small.accept(&fragment(Version::V1_2, 1, true, b"four")),
        Err(ProtocolError::MessageTooLarge)
    );
    assert_eq!(
        small.accept(&start(1)[..20]),
        Err(ProtocolError::SizeMismatch)
    );
}

#[test]
fn a_fragment_of_the_other_byte_order_is_refused() {
    let other = ByteOrder::NATIVE.opposite();
    let mut assembly = Assembly::default();
    let first = unfinished(request(Version::V1_2, other, 1_u32, &[7; 40]));
    assert_eq!(assembly.accept(&first), Ok(None));
    assert_eq!(
        assembly.accept(&fragment(Version::V1_2, 1, false, b"x")),
        Err(ProtocolError::FragmentsMixed)
    );
}
