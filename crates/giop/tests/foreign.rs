//! Octets and tools of foreign ORBs:
//! - transcripts of omniORB 4.2.5's `nameclt` and `omniNames` in GIOP 1.0, 1.1 and 1.2 (messages above 8 KiB are in
//!   fragments), and its tools `catior` and `genior`;
//! - transcripts of JacORB 3.9 with the interface of `interop/types.rs`, in Java's byte order;
//! - references and transcripts of TAO 2.2.2 with real-time CORBA, from the programs of `interop/lanes.rs`.

use deckwatch_cdr::{Parse, Reader, Write, Writer};
use deckwatch_giop::ior::policies::{
    BandValue, PolicyValue, PriorityModelValue, ProtocolValue, parse_policies, policies_component,
    policy_type,
};
use deckwatch_giop::ior::{
    IiopProfile, LaneEndpoint, alternate_address, code_sets::CodeSetInfo, component_tag,
};
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

/// The messages of one direction of a recorded connection, with fragments joined, and the number of frames.
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

/// The same request, written by our code.
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
    // Without arguments, nothing follows the header, no padding either.
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
                let again = formed_again(
                    &request,
                    Header::parse(message.first_chunk().unwrap()).unwrap().order,
                );
                assert!(alike_but_for_padding(&again, message), "{text} {call}");
                assert_reads_as(&again, &request);
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

/// omniORB offers ISO 8859-1 as its native code set and UTF-8 as a conversion code set; we choose UTF-8.
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
        info.negotiate(profile.orb_type()).char_set(),
        Some(deckwatch_cdr::CharSet::Utf8)
    );
}

/// TAO offers the same code sets, but converts UTF-8 wrongly.
#[test]
fn tao_is_spoken_to_in_its_own_iso_8859_1() {
    let profile = profile_of_tao("pool");
    let info = CodeSetInfo::from_octets(profile.component(component_tag::CODE_SETS).unwrap());
    let info = info.unwrap();
    assert_eq!(info.chars.native, ior::code_sets::ISO_8859_1);
    assert_eq!(info.chars.conversion, [ior::code_sets::UTF_8]);
    let chosen = info.negotiate(profile.orb_type()).char_set();
    assert_eq!(chosen, Some(deckwatch_cdr::CharSet::Latin1));
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
    // genior writes in this machine's byte order, as our code does.
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
            // Code sets are negotiated from version 1.1 on.
            let has_code_sets = request.contexts.find(context_id::CODE_SETS).is_some();
            assert!(!has_code_sets || version > Version::V1_0);
            let again = formed_again(&request, ByteOrder::Big);
            assert_eq!(&again, message, "{text} {request:?}");
        }
        assert_eq!(oneways, 2);
        // Requests with wide strings do not exist in 1.0.
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

/// Checks that our octets are read like theirs: a zero of ours may be more than padding.
#[track_caller]
fn assert_reads_as(ours: &[u8], theirs: &Request<'_>) {
    let Ok(Message::Request(ours)) = Message::parse(ours) else {
        panic!("a request");
    };
    let told = |request: &Request<'_>| {
        let body = request.body.bytes().get(request.body.position()..);
        let contexts = request.contexts.iter();
        let contexts = contexts.map(|context| (context.id, context.data.to_vec()));
        (
            (request.version, request.id, request.response),
            request.target.object_key().map(<[u8]>::to_vec),
            request.operation.to_vec(),
            contexts.collect::<Vec<_>>(),
            // Without arguments, the header may end before the aligned start of a body.
            body.unwrap_or_default().to_vec(),
        )
    };
    assert_eq!(told(&ours), told(theirs));
}

/// Whether the octets are equal except for padding. TAO and omniORB do not clear padding; our code writes zeros. Any
/// zero of ours counts as padding, so the decoded messages must be compared too.
fn alike_but_for_padding(ours: &[u8], theirs: &[u8]) -> bool {
    let mut pairs = ours.iter().zip(theirs);
    ours.len() == theirs.len() && pairs.all(|(ours, theirs)| *ours == 0 || ours == theirs)
}

/// The profile in a recorded reference of a real-time server of TAO.
fn profile_of_tao(name: &str) -> IiopProfile {
    let path = format!("{}/tests/data/tao-{name}.ior", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let ior: Ior = text.trim().parse().unwrap();
    assert_eq!(ior.type_id, "IDL:Deckwatch/Witness:1.0");
    assert!(ior.explain().contains("made by TAO"));
    ior.iiop_profiles().next().unwrap().unwrap()
}

/// Recorded of TAO 2.2.2 with its SSLIOP. TLS has the port behind the plain one: 7401 and 7402, a second endpoint has 7403
/// and 7404, the first lane of the real-time server 7411 and 7412. TAO leaves octets of padding as the memory was.
#[test]
fn references_of_taos_ssliop_offer_tls_at_its_port() {
    let path = format!("{}/tests/data/tao-ssliop.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut names = Vec::new();
    for line in text.lines() {
        let (name, ior) = line.split_once(' ').unwrap();
        let ior: Ior = ior.parse().unwrap();
        let profiles: Vec<IiopProfile> = ior.iiop_profiles().map(Result::unwrap).collect();
        assert_eq!(profiles.len(), if name == "two-endpoints" { 2 } else { 1 });
        let first = if name == "real-time" { 7_411 } else { 7_401 };
        for (profile, port) in profiles.iter().zip([first, 7_403]) {
            assert_eq!(profile.port, port, "{name}");
            assert_eq!(
                profile.tls_addresses(),
                [("127.0.0.1".to_owned(), port + 1)],
                "{name}"
            );
            // With `-SSLNoProtection` the server takes plain requests too.
            assert_eq!(profile.requires_tls(), name != "no-protection", "{name}");
        }
        names.push(name);
    }
    assert_eq!(
        names,
        [
            "default",
            "no-protection",
            "two-endpoints",
            "iiop-1.1",
            "real-time"
        ]
    );
}

#[test]
fn lanes_that_tao_tells_are_read_and_written_again() {
    let port_of_second = [("lanes", 38_171), ("bands", 35_343)];
    for (name, priorities) in [
        ("lanes", &[5, 90][..]),
        ("bands", &[10, 60]),
        // If the caller's priority does not choose the lane, TAO gives its endpoint the priority -1.
        ("declared", &[-1]),
        ("pool", &[-1]),
    ] {
        let profile = profile_of_tao(name);
        let component = profile.component(component_tag::TAO_ENDPOINTS).unwrap();
        let lanes = LaneEndpoint::list_from_octets(component).unwrap();
        let told: Vec<i16> = lanes.iter().map(|lane| lane.priority).collect();
        assert_eq!(told, priorities, "{name}");
        assert_eq!(
            (&lanes[0].host, lanes[0].port),
            (&profile.host, profile.port)
        );
        if let Some(second) = lanes.get(1) {
            assert!(port_of_second.contains(&(name, second.port)));
        }
        if cfg!(target_endian = "little") {
            let again = LaneEndpoint::list_to_component(&lanes).unwrap();
            assert!(alike_but_for_padding(&again.data, component), "{name}");
            assert_eq!(LaneEndpoint::list_from_octets(&again.data), Ok(lanes));
        }
    }
}

#[test]
fn policies_that_tao_tells_are_read_and_written_again() {
    let model = |model, server_priority| PriorityModelValue {
        model,
        server_priority,
    };
    let band = |low, high| BandValue { low, high };
    let bands = [band(0, 49), band(50, i16::MAX)];
    let protocols = [ProtocolValue::Tcp {
        buffers: [65_535, 65_535],
        keep_alive: false,
        dont_route: false,
        no_delay: true,
    }];
    for (name, expected) in [
        ("lanes", vec![model(0, 5).to_policy()]),
        ("declared", vec![model(1, 90).to_policy()]),
        ("pool", vec![model(0, 7).to_policy()]),
        (
            "bands",
            vec![
                ProtocolValue::list_to_policy(&protocols),
                BandValue::list_to_policy(&bands),
                model(0, 10).to_policy(),
            ],
        ),
    ] {
        let expected: Vec<PolicyValue> = expected.into_iter().map(Result::unwrap).collect();
        let profile = profile_of_tao(name);
        let component = profile.component(component_tag::POLICIES).unwrap();
        let policies = parse_policies(component).unwrap();
        let numbers = |list: &[PolicyValue]| -> Vec<u32> {
            list.iter().map(|policy| policy.policy_type).collect()
        };
        assert_eq!(numbers(&policies), numbers(&expected), "{name}");
        for policy in &policies {
            let value = &policy.value;
            match policy.policy_type {
                policy_type::PRIORITY_MODEL => {
                    let read = PriorityModelValue::from_octets(value).unwrap().to_policy();
                    assert!(expected.contains(&read.unwrap()), "{name}");
                }
                policy_type::PRIORITY_BANDED_CONNECTION => {
                    assert_eq!(
                        BandValue::list_from_octets(value).as_deref(),
                        Ok(&bands[..])
                    );
                }
                _ => {
                    let read = ProtocolValue::list_from_octets(value);
                    assert_eq!(read.as_deref(), Ok(&protocols[..]));
                }
            }
        }
        if cfg!(target_endian = "little") {
            let again = policies_component(&expected).unwrap();
            assert!(alike_but_for_padding(&again.data, component), "{name}");
            assert_eq!(parse_policies(&again.data), Ok(expected));
        }
    }
}

#[test]
fn priorities_that_taos_requests_say_are_read_whatever_its_padding_holds() {
    let (messages, _) = recorded("tao-lanes.client");
    let mut said = Vec::new();
    let mut padding = 0;
    for message in &messages {
        let Ok(Message::Request(request)) = Message::parse(message) else {
            panic!("a request")
        };
        assert_eq!(request.operation, b"served_at");
        let context = request.contexts.find(context_id::RT_CORBA_PRIORITY);
        let context = context.expect("the object has the priorities of its callers");
        said.push(parse_priority_context(context).unwrap());
        padding |= context[1];
        let again = formed_again(&request, ByteOrder::Little);
        // TAO pads a header without arguments to a multiple of 8. Except for the size in the first twelve octets, the
        // rest equals ours.
        assert_eq!(message.len(), again.len().next_multiple_of(8));
        let (ours, theirs) = (&again[HEADER_SIZE..], &message[HEADER_SIZE..again.len()]);
        assert!(alike_but_for_padding(ours, theirs), "{request:?}");
        assert_reads_as(&again, &request);
    }
    // One connection for each lane, and two calls on each.
    assert_eq!(said, [5, 5, 90, 90]);
    assert_ne!(padding, 0, "else this shows nothing");
}

#[test]
fn taos_replies_say_the_priority_again_and_what_it_does_not_know_is_bad_operation() {
    let (messages, _) = recorded("tao-pool.server");
    let mut said = Vec::new();
    for message in &messages {
        let Ok(Message::Reply(mut reply)) = Message::parse(message) else {
            panic!("a reply")
        };
        assert_eq!(reply.status, ReplyStatus::NoException);
        let context = reply.contexts.find(context_id::RT_CORBA_PRIORITY);
        let context = context.map(|data| parse_priority_context(data).unwrap());
        said.push((context, i16::parse(&mut reply.body).unwrap()));
    }
    // The last caller had no priority: the priority of the server's policy counts.
    let expected = [
        (Some(0), 0),
        (Some(77), 77),
        (Some(32_767), 32_767),
        (None, 7),
    ];
    assert_eq!(said, expected);
    let (messages, _) = recorded("tao-bands.server");
    let Ok(Message::Reply(mut unknown)) = Message::parse(&messages[0]) else {
        panic!("the answer to _bind_priority_band")
    };
    assert_eq!(unknown.status, ReplyStatus::SystemException);
    let exception = SystemException::parse(&mut unknown.body).unwrap();
    assert_eq!(exception.kind, SystemExceptionKind::BadOperation);
}
