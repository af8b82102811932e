//! Messages of every kind come back as they were written, in every version and byte order; no octets make a parser
//! panic.

use deckwatch_cdr::{Parse, Write};
use deckwatch_giop::ior::{IiopProfile, IorRef};
use deckwatch_giop::*;
use proptest::prelude::*;

const VERSIONS: [Version; 3] = [Version::V1_0, Version::V1_1, Version::V1_2];
const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

fn formats() -> impl Iterator<Item = Format> {
    let of = |version| {
        ORDERS.map(|order| Format {
            codec: Codec::DEFAULT.with_version(version),
            order,
            ..Format::default()
        })
    };
    VERSIONS.into_iter().flat_map(of)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn requests(id: u32, key in prop::collection::vec(any::<u8>(), 0..20), operation in "[a-z_]{1,12}", value: f64, data: Vec<u8>, before in 0_usize..9) {
        prop_assume!(!value.is_nan());
        let contexts = [ServiceContext { id: 9, data: &data }, ServiceContext { id: 1, data: &[] }];
        for format in formats() {
            for response in [Response::Nothing, Response::Receipt, Response::Outcome] {
                let mut buffer = vec![0xEE; before];
                let header = RequestHeader { id, response, target: Target::Key(&key), operation: &operation, contexts: &contexts };
                let open = header.begin(&mut buffer, format).unwrap();
                value.write(&mut open.writer(&mut buffer)).unwrap();
                let size = open.finish(&mut buffer).unwrap();
                prop_assert_eq!(size, buffer.len() - before);
                let Message::Request(mut request) = Message::parse(&buffer[before..]).unwrap() else { panic!("no request") };
                prop_assert_eq!((request.id, request.operation, request.version), (id, operation.as_bytes(), format.codec.version));
                let is_1_2 = format.codec.version == Version::V1_2;
                let seen = if is_1_2 || response == Response::Nothing { response } else { Response::Outcome };
                prop_assert_eq!(request.response, seen);
                prop_assert_eq!(request.target.object_key(), Ok(&*key));
                prop_assert!(request.contexts.iter().eq(contexts));
                prop_assert_eq!(request.contexts.find(9), Some(&*data));
                prop_assert_eq!(f64::parse(&mut request.body), Ok(value));
                prop_assert_eq!(request.body.finish(), Ok(()));
            }
        }
    }

    #[test]
    fn replies(id: u32, data: Vec<u8>, value: i64) {
        let contexts = [ServiceContext { id: 9, data: &data }];
        for format in formats() {
            for status in [ReplyStatus::NoException, ReplyStatus::UserException, ReplyStatus::LocationForwardPerm, ReplyStatus::NeedsAddressingMode] {
                let mut buffer = Vec::new();
                let header = ReplyHeader { id, status, contexts: &contexts };
                let open = match header.begin(&mut buffer, format) {
                    Ok(open) => open,
                    Err(_) => {
                        prop_assert!(format.codec.version < Version::V1_2 && status as u32 > 3);
                        continue;
                    }
                };
                value.write(&mut open.writer(&mut buffer)).unwrap();
                open.finish(&mut buffer).unwrap();
                let Message::Reply(mut reply) = Message::parse(&buffer).unwrap() else { panic!("no reply") };
                prop_assert_eq!((reply.id, reply.status), (id, status));
                prop_assert!(reply.contexts.iter().eq(contexts));
                prop_assert_eq!(i64::parse(&mut reply.body), Ok(value));
            }
        }
    }

    #[test]
    fn a_reply_known_at_a_glance_is_what_the_parser_finds(id: u32, value: Option<i64>, with_context: bool, at in 0_usize..40, octet: Option<u8>) {
        let contexts = [ServiceContext { id: 9, data: &[] }];
        for format in formats() {
            let mut buffer = Vec::new();
            let header = ReplyHeader { id, status: ReplyStatus::NoException, contexts: &contexts[..usize::from(with_context)] };
            let open = header.begin(&mut buffer, format).unwrap();
            if let Some(value) = value {
                value.write(&mut open.writer(&mut buffer)).unwrap();
            }
            open.finish(&mut buffer).unwrap();
            // Our message, with one octet changed if the case asks for it.
            if let (Some(octet), Some(place)) = (octet, buffer.get_mut(at)) {
                *place = octet;
            }
            let is_whole = deckwatch_giop::Header::parse(buffer.first_chunk().unwrap()).is_ok_and(|header| !header.more_fragments);
            let found = match Message::parse(&buffer) {
                Ok(Message::Reply(reply)) if is_whole && reply.version == Version::V1_2 && reply.body.order().is_native() => {
                    let is_plain = reply.status == ReplyStatus::NoException && reply.contexts.is_empty();
                    is_plain.then(|| (reply.id, reply.body.position()))
                }
                _ => None,
            };
            prop_assert_eq!(Reply::plain_id(&buffer).map(|id| (id, Reply::PLAIN_BODY)), found);
            for end in 0..buffer.len() {
                prop_assert_eq!(Reply::plain_id(&buffer[..end]), None);
            }
        }
    }

    #[test]
    fn random_octets_never_make_a_parser_panic(mut octets: Vec<u8>, minor in 0_u8..3, flags in 0_u8..2, kind in 0_u8..8) {
        let _ = Message::parse(&octets);
        let mut message = b"GIOP\x01".to_vec();
        message.extend_from_slice(&[minor, flags, kind]);
        let size = octets.len() as u32;
        message.extend_from_slice(&if flags == 0 { size.to_be_bytes() } else { size.to_le_bytes() });
        message.append(&mut octets);
        if let Ok(Message::Request(request)) = Message::parse(&message) {
            let _ = request.target.object_key();
        }
    }

    #[test]
    fn references(type_id in "[ -~]{0,30}", host in "[a-z.]{1,20}", port: u16, key: Vec<u8>, minor in 0_u8..3, tag in 2_u32.., data: Vec<u8>) {
        let mut profile = IiopProfile::new(&host, port, &key);
        profile.minor = minor;
        if minor > 0 {
            profile.components = vec![ior::TaggedComponent { tag, data: data.clone() }, ior::alternate_address("b", 7).unwrap()];
            prop_assert!(profile.addresses().eq([(host, port), ("b".to_owned(), 7)]));
        }
        let mut reference = Ior::with_iiop(&type_id, &profile).unwrap();
        reference.profiles.push(ior::TaggedProfile { tag, data });
        let text = reference.to_string();
        prop_assert_eq!(text.parse::<Ior>(), Ok(reference.clone()));
        let profiles: Vec<_> = reference.iiop_profiles().collect();
        prop_assert_eq!(profiles, vec![Ok(profile)]);
    }
}

#[test]
fn every_form_of_target_names_the_key() {
    let reference = Ior::with_iiop("IDL:X:1.0", &IiopProfile::new("h", 1, b"key")).unwrap();
    let mut octets = Vec::new();
    reference
        .write(&mut deckwatch_cdr::Writer::new(&mut octets))
        .unwrap();
    let ior = IorRef::parse(&mut deckwatch_cdr::Reader::new(&octets, ByteOrder::NATIVE)).unwrap();
    let profile = ior.profiles().next().unwrap();
    for target in [
        Target::Key(b"key"),
        Target::Profile(profile),
        Target::Reference { selected: 0, ior },
    ] {
        let mut buffer = Vec::new();
        let header = LocateRequestHeader { id: 4, target };
        header.write(&mut buffer, Format::default()).unwrap();
        let Message::LocateRequest(request) = Message::parse(&buffer).unwrap() else {
            panic!("no LocateRequest")
        };
        assert_eq!(
            (request.id, request.target.object_key()),
            (4, Ok(&b"key"[..]))
        );
    }
    assert!(Target::Reference { selected: 1, ior }.object_key().is_err());
}

#[test]
fn small_messages_come_back_in_every_version() {
    for format in formats() {
        let mut buffer = Vec::new();
        write_cancel_request(&mut buffer, format, 77).unwrap();
        assert!(matches!(
            Message::parse(&buffer),
            Ok(Message::CancelRequest { id: 77 })
        ));
        buffer.clear();
        write_close_connection(&mut buffer, format.codec.version);
        assert!(matches!(
            Message::parse(&buffer),
            Ok(Message::CloseConnection)
        ));
        buffer.clear();
        write_message_error(&mut buffer, format.codec.version);
        assert!(matches!(Message::parse(&buffer), Ok(Message::MessageError)));
        buffer.clear();
        let header = LocateReplyHeader {
            id: 3,
            status: LocateStatus::ObjectHere,
        };
        header
            .begin(&mut buffer, format)
            .unwrap()
            .finish(&mut buffer)
            .unwrap();
        let Message::LocateReply(reply) = Message::parse(&buffer).unwrap() else {
            panic!("no LocateReply")
        };
        assert_eq!((reply.id, reply.status), (3, LocateStatus::ObjectHere));
    }
}

#[test]
fn a_body_that_stays_empty_has_no_padding() {
    let mut buffer = Vec::new();
    let header = RequestHeader {
        id: 1,
        response: Response::Outcome,
        target: Target::Key(b"k"),
        operation: "op",
        contexts: &[],
    };
    let size = header
        .begin(&mut buffer, Format::default())
        .unwrap()
        .finish(&mut buffer)
        .unwrap();
    assert_eq!(size % 8, 4);
    let Message::Request(request) = Message::parse(&buffer).unwrap() else {
        panic!("no request")
    };
    assert_eq!(request.body.finish(), Ok(()));
}

#[test]
fn a_message_above_its_limit_leaves_nothing_behind() {
    let mut buffer = vec![1, 2, 3];
    let format = Format {
        size_max: 30,
        ..Format::default()
    };
    let header = RequestHeader {
        id: 1,
        response: Response::Outcome,
        target: Target::Key(b"a long key"),
        operation: "op",
        contexts: &[],
    };
    assert_eq!(
        header.begin(&mut buffer, format).unwrap_err(),
        deckwatch_cdr::EncodeError::MessageTooLarge
    );
    assert_eq!(buffer, [1, 2, 3]);
}

#[test]
fn malformed_reference_texts_are_located() {
    let error = |text: &str| text.parse::<Ior>().unwrap_err().to_string();
    assert_eq!(error("  OIR:00"), "expected IOR: at character 3");
    assert_eq!(
        error("IOR:0x00"),
        "expected a hexadecimal digit at character 6"
    );
    assert_eq!(
        error("IOR:000"),
        "expected a hexadecimal digit at character 8"
    );
    assert!(
        error("IOR:00")
            .starts_with("the digits from character 7 on are no reference: the octets end")
    );
}
