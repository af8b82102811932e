//! Octets and tools that are not ours: transcripts of omniORB 4.2.5's `nameclt` and `omniNames` in GIOP 1.0, 1.1 and 1.2 (its messages above 8 KiB
//! come in fragments), and its tools `catior` and `genior`; transcripts of JacORB 3.9 with the interface of `interop/types.rs`, in the order of Java.

use deckwatch_cdr::{Parse, Reader, Write, Writer};
use deckwatch_giop::ior::{IiopProfile, alternate_address, code_sets::CodeSetInfo};
use deckwatch_giop::*;
use deckwatch_testkit as testkit;
use std::process::Command;

const VERSIONS: [(Version, &str); 3] = [
    (Version::V1_0, "1.0"),
    (Version::V1_1, "1.1"),
    (Version::V1_2, "1.2"),
];
const CALLS: [(&str, &str); 6] = [
    ("bind", "bind"),
    ("resolve", "resolve"),
    ("absent", "resolve"),
    ("list", "list"),
    ("unbind", "unbind"),
    ("long", "bind"),
];

/// The messages of one direction of a recorded connection, joined where they came in fragments, and how many frames they were.
fn messages(name: &str) -> (Vec<Vec<u8>>, usize) {
    recorded(&format!("omninames-{name}"))
}

fn recorded(name: &str) -> (Vec<Vec<u8>>, usize) {
    let path = format!("{}/tests/data/{name}.bin", env!("CARGO_MANIFEST_DIR"));
    let octets = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut rest = &octets[..];
    let mut assembly = Assembly::default();
    let (mut messages, mut frames) = (Vec::new(), 0);
    while !rest.is_empty() {
        let Ok(Frame::Message(_, size)) = Frame::parse(rest, 1 << 20) else {
            panic!("{path} ends within a message")
        };
        let (message, next) = rest.split_at(size);
        messages.extend(
            assembly
                .accept(message)
                .unwrap()
                .map(|whole| whole.octets().to_vec()),
        );
        rest = next;
        frames += 1;
    }
    assert_eq!(assembly.unfinished(), 0);
    (messages, frames)
}

/// The same request, formed by us.
fn formed_again(request: &Request<'_>, order: ByteOrder) -> Vec<u8> {
    let format = Format {
        codec: Codec::DEFAULT.with_version(request.version),
        order,
        ..Format::default()
    };
    let contexts: Vec<_> = request.contexts.iter().collect();
    let header = RequestHeader {
        id: request.id,
        response: request.response,
        target: request.target,
        operation: std::str::from_utf8(request.operation).unwrap(),
        contexts: &contexts,
    };
    let mut buffer = Vec::new();
    let open = header.begin(&mut buffer, format).unwrap();
    let mut body = request.body;
    // Without arguments nothing stands behind the header, no padding either.
    if body.remaining() > 0 {
        let arguments = body.read_octets(body.remaining()).unwrap();
        open.writer(&mut buffer).write_octets(arguments).unwrap();
    }
    open.finish(&mut buffer).unwrap();
    buffer
}

#[test]
fn recorded_requests_are_read_and_formed_again_alike() {
    for (version, text) in VERSIONS {
        for (call, operation) in CALLS {
            let (messages, frames) = messages(&format!("{text}-{call}.client"));
            let is_divided = call == "long" && version > Version::V1_0;
            assert_eq!(frames > messages.len(), is_divided, "{text} {call}");
            let requests: Vec<_> = messages
                .iter()
                .filter_map(|message| match Message::parse(message).unwrap() {
                    Message::Request(request) => Some((message, request)),
                    Message::CloseConnection => None,
                    other => panic!("{other:?}"),
                })
                .collect();
            let operations: Vec<_> = requests
                .iter()
                .map(|(_, request)| request.operation)
                .collect();
            assert_eq!(
                operations,
                [b"_is_a", operation.as_bytes()],
                "{text} {call}"
            );
            for (message, request) in requests {
                assert_eq!(
                    (request.version, request.response),
                    (version, Response::Outcome)
                );
                assert_eq!(request.target.object_key(), Ok(&b"NameService"[..]));
                // omniORB leaves what stood there before in padding and reserved octets; we write zeros.
                let again = formed_again(
                    &request,
                    Header::parse(message.first_chunk().unwrap()).unwrap().order,
                );
                let mut pairs = again.iter().zip(message);
                assert!(
                    again.len() == message.len()
                        && pairs.all(|(ours, theirs)| *ours == 0 || ours == theirs),
                    "{text} {call}"
                );
            }
        }
    }
}

#[test]
fn recorded_replies_give_results_and_exceptions() {
    for (version, text) in VERSIONS {
        for (call, _) in CALLS {
            let (messages, _) = messages(&format!("{text}-{call}.server"));
            let [is_a, outcome] = &messages[..] else {
                panic!("two replies")
            };
            let Ok(Message::Reply(mut is_a)) = Message::parse(is_a) else {
                panic!("a reply")
            };
            assert_eq!(
                (is_a.version, is_a.status, bool::parse(&mut is_a.body)),
                (version, ReplyStatus::NoException, Ok(true))
            );
            let Ok(Message::Reply(mut reply)) = Message::parse(outcome) else {
                panic!("a reply")
            };
            if call == "absent" {
                assert_eq!(reply.status, ReplyStatus::UserException);
                let id = reply.body.read_string_octets().unwrap();
                assert_eq!(id, b"IDL:omg.org/CosNaming/NamingContext/NotFound:1.0");
                continue;
            }
            assert_eq!(reply.status, ReplyStatus::NoException, "{text} {call}");
            if call == "resolve" {
                let ior = Ior::parse(&mut reply.body).unwrap();
                assert_eq!(ior.type_id, "IDL:Nav:1.0");
                let profile = ior.iiop_profiles().next().unwrap().unwrap();
                assert_eq!(
                    (&*profile.host, profile.port, profile.components.len()),
                    ("127.0.0.1", 1234, 2)
                );
                assert!(ior.explain().contains("made by omniORB"));
            }
            if matches!(call, "resolve" | "bind") {
                assert_eq!(reply.body.finish(), Ok(()));
            }
        }
    }
}

/// What omniORB offers: ISO 8859-1 inside, so that we speak UTF-8 with it by its conversion.
#[test]
fn code_sets_are_negotiated_with_a_recorded_reference() {
    let (messages, _) = messages("1.2-resolve.server");
    let Ok(Message::Reply(mut reply)) = Message::parse(&messages[1]) else {
        panic!("a reply")
    };
    let profile = Ior::parse(&mut reply.body)
        .unwrap()
        .iiop_profiles()
        .next()
        .unwrap()
        .unwrap();
    let info = CodeSetInfo::from_octets(profile.component(ior::component_tag::CODE_SETS).unwrap())
        .unwrap();
    assert_eq!(info.chars.native, ior::code_sets::ISO_8859_1);
    assert_eq!(
        info.negotiate().char_set(),
        Some(deckwatch_cdr::CharSet::Utf8)
    );
}

fn output_of(program: &std::path::Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn catior_reads_our_references() {
    let Some(catior) = testkit::program("catior") else {
        return;
    };
    for minor in 0..3 {
        let mut profile = IiopProfile::new("nav.example", 2809, b"ke\xFFy");
        profile.minor = minor;
        if minor > 0 {
            profile.components = vec![
                CodeSetInfo::ours().to_component().unwrap(),
                alternate_address("backup.example", 77).unwrap(),
            ];
        }
        let text = Ior::with_iiop("IDL:deckwatch/Nav:1.0", &profile)
            .unwrap()
            .to_string();
        let seen = output_of(&catior, &[&text]);
        assert!(
            seen.contains("Type ID: \"IDL:deckwatch/Nav:1.0\""),
            "{seen}"
        );
        assert!(
            seen.contains(&format!("IIOP 1.{minor} nav.example 2809 \"ke\\xffy\"")),
            "{seen}"
        );
        if minor > 0 {
            assert!(
                seen.contains("TAG_ALTERNATE_IIOP_ADDRESS backup.example 77"),
                "{seen}"
            );
            assert!(seen.contains("char native code set:       UTF-8"), "{seen}");
        }
    }
}

#[test]
fn references_of_genior_are_read_and_written_again_octet_for_octet() {
    let Some(genior) = testkit::program("genior") else {
        return;
    };
    let text = output_of(&genior, &["IDL:deckwatch/Nav:1.0", "nav.example", "2809"]);
    let ior: Ior = text.parse().unwrap();
    assert_eq!(ior.type_id, "IDL:deckwatch/Nav:1.0");
    let profile = ior.iiop_profiles().next().unwrap().unwrap();
    assert_eq!(
        (&*profile.host, profile.port, profile.minor),
        ("nav.example", 2809, 2)
    );
    // genior writes in this machine's byte order, as we do.
    assert_eq!(ior.to_string(), text.trim());
    let again = Ior::with_iiop(&ior.type_id, &profile).unwrap();
    assert_eq!(again, ior);
}

#[test]
fn a_recorded_reference_is_forwarded_in_either_order() {
    let (messages, _) = messages("1.2-resolve.server");
    let Ok(Message::Reply(mut reply)) = Message::parse(&messages[1]) else {
        panic!("a reply")
    };
    let ior = Ior::parse(&mut reply.body).unwrap();
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let mut octets = Vec::new();
        ior.write(&mut Writer::new(&mut octets).with_order(order))
            .unwrap();
        assert_eq!(
            Ior::parse(&mut Reader::new(&octets, order)).as_ref(),
            Ok(&ior)
        );
    }
}

#[test]
fn jacorbs_requests_are_read_and_formed_again_alike() {
    for (version, text) in VERSIONS {
        let (messages, _) = recorded(&format!("jacorb-{text}.client"));
        let mut oneways = 0;
        for message in &messages {
            let Ok(Message::Request(request)) = Message::parse(message) else {
                panic!("a request")
            };
            assert_eq!(request.version, version);
            assert_eq!(
                request.response == Response::Nothing,
                request.operation == b"note"
            );
            oneways += usize::from(request.response == Response::Nothing);
            // Code sets are agreed upon from version 1.1 on.
            let has_code_sets = request.contexts.find(context_id::CODE_SETS).is_some();
            assert!(!has_code_sets || version > Version::V1_0);
            let again = formed_again(&request, ByteOrder::Big);
            assert_eq!(&again, message, "{text} {request:?}");
        }
        assert_eq!(oneways, 2);
        // Those of wide text are not in 1.0.
        let count = if version == Version::V1_0 { 20 } else { 22 };
        assert_eq!(messages.len(), count, "{text}");
    }
}

#[test]
fn jacorbs_replies_give_results_and_exceptions() {
    for (version, text) in VERSIONS {
        let (messages, _) = recorded(&format!("jacorb-{text}.server"));
        let (mut raised, mut failed) = (Vec::new(), Vec::new());
        for message in &messages {
            let Ok(Message::Reply(mut reply)) = Message::parse(message) else {
                panic!("a reply")
            };
            assert_eq!(reply.version, version);
            match reply.status {
                ReplyStatus::NoException => {}
                ReplyStatus::UserException => {
                    raised.push(reply.body.read_string_octets().unwrap().to_vec());
                }
                ReplyStatus::SystemException => {
                    let exception = SystemException::parse(&mut reply.body).unwrap();
                    assert_eq!(reply.body.finish(), Ok(()));
                    failed.push((exception.kind, exception.minor, exception.completed));
                }
                other => panic!("{other:?}"),
            }
        }
        raised.sort();
        let closed = b"IDL:Deckwatch/Interop/Closed:1.0".to_vec();
        let refused = b"IDL:Deckwatch/Interop/Refused:1.0".to_vec();
        assert_eq!(raised, [closed.clone(), closed, refused], "{text}");
        let refusal = (SystemExceptionKind::NoPermission, 7, Completion::Yes);
        assert_eq!(failed, [refusal], "{text}");
    }
}
