//! Functions that the fuzz targets run; they panic where a promise of this crate is broken.

mod fragments;

pub use fragments::fragments;

use crate::invocation::Times;
use crate::ior::code_sets::CodeSetContext;
use crate::ior::policies::{BandValue, PriorityModelValue, ProtocolValue, parse_policies};
use crate::ior::{IiopProfileRef, LaneEndpoint, LocalLane, profile_tag};
use crate::{
    Assembly, Frame, Ior, Message, ObjectUrl, Parts, Target, context_id, parse_exception_detail,
    parse_priority_context, parse_priority_range_context,
};
use deckwatch_cdr::{Divided, Parse, Reader};

/// Most octets of a message in a fuzzed stream.
const SIZE_MAX: usize = 1 << 16;

/// Takes octets as they would come over a connection, and parses every message completely.
///
/// # Panics
/// When a frame does not have its stated length, or the parts of a message are not the message.
pub fn stream(mut octets: &[u8]) {
    let mut assembly = Assembly::new(SIZE_MAX);
    while let Ok(Frame::Message(_, size)) = Frame::parse(octets, SIZE_MAX) {
        let (message, rest) = octets.split_at(size);
        octets = rest;
        match assembly.accept(message) {
            Ok(Some(whole)) => {
                assert!(
                    whole.octets().len() <= SIZE_MAX,
                    "a joined message stays within the limit"
                );
                look_at(&whole);
                divide(whole.octets());
            }
            Ok(None) => {}
            Err(_) => return,
        }
    }
}

fn look_at(message: &Divided<'_>) {
    let Ok(message) = Message::parse_joined(message) else {
        return;
    };
    let mut body = match message {
        Message::Request(request) => {
            look_at_target(&request.target);
            assert_eq!(
                request.contexts.iter().count(),
                request.contexts.len(),
                "every context was walked over"
            );
            if let Some(data) = request.contexts.find(context_id::CODE_SETS) {
                let _ = CodeSetContext::from_octets(data).map(CodeSetContext::char_set);
            }
            if let Some(data) = request.contexts.find(context_id::INVOCATION_POLICIES) {
                let _ = Times::parse(data);
            }
            if let Some(data) = request.contexts.find(context_id::RT_CORBA_PRIORITY) {
                let _ = parse_priority_context(data);
            }
            if let Some(data) = request.contexts.find(context_id::RT_CORBA_PRIORITY_RANGE) {
                let _ = parse_priority_range_context(data);
            }
            request.body
        }
        Message::Reply(reply) => {
            assert_eq!(
                reply.contexts.iter().count(),
                reply.contexts.len(),
                "every context was walked over"
            );
            let id = context_id::EXCEPTION_DETAIL_MESSAGE;
            if let Some(data) = reply.contexts.find(id) {
                let _ = parse_exception_detail(data);
            }
            reply.body
        }
        Message::LocateRequest(request) => return look_at_target(&request.target),
        Message::LocateReply(reply) => reply.body,
        _ => return,
    };
    let _ = crate::SystemException::parse(&mut Reader::clone(&body))
        .map(|exception| exception.to_string());
    let _ = Ior::parse(&mut body).map(|ior| ior.explain());
}

/// Policies and lanes of a reference: accepted ones can be written and read again.
fn look_at_real_time(ior: &Ior) {
    for profile in ior.iiop_profiles().flatten() {
        for component in &profile.components {
            if let Ok(lanes) = LaneEndpoint::list_from_octets(&component.data)
                && let Ok(written) = LaneEndpoint::list_to_component(&lanes)
            {
                let again = LaneEndpoint::list_from_octets(&written.data);
                assert_eq!(again, Ok(lanes), "lanes come back");
            }
            if let Ok(lanes) = LocalLane::list_from_octets(&component.data)
                && let Ok(written) = LocalLane::list_to_component(&lanes)
            {
                let again = LocalLane::list_from_octets(&written.data);
                assert_eq!(again, Ok(lanes), "lanes come back");
            }
            for policy in parse_policies(&component.data).unwrap_or_default() {
                look_at_policy(&policy.value);
            }
        }
    }
}

fn look_at_policy(value: &[u8]) {
    let _ = PriorityModelValue::from_octets(value).map(PriorityModelValue::to_policy);
    if let Ok(bands) = BandValue::list_from_octets(value) {
        let written = BandValue::list_to_policy(&bands).expect("few enough");
        let again = BandValue::list_from_octets(&written.value);
        assert_eq!(again, Ok(bands), "bands come back");
    }
    if let Ok(protocols) = ProtocolValue::list_from_octets(value)
        && let Ok(written) = ProtocolValue::list_to_policy(&protocols)
    {
        let again = ProtocolValue::list_from_octets(&written.value);
        assert_eq!(again, Ok(protocols), "protocols come back");
    }
}

fn look_at_target(target: &Target<'_>) {
    let _ = target.object_key();
    if let Target::Reference { ior, .. } = target {
        for profile in ior
            .profiles()
            .filter(|profile| profile.tag == profile_tag::INTERNET_IOP)
        {
            let _ = IiopProfileRef::parse(profile.data).map(|profile| profile.components());
        }
    }
}

fn divide(message: &[u8]) {
    let mut assembly = Assembly::new(SIZE_MAX);
    let Ok(parts) = Parts::of(message, 64) else {
        return;
    };
    for part in parts {
        let part = [part.header(), part.data].concat();
        match assembly.accept(&part) {
            Ok(Some(whole)) => {
                return assert!(
                    whole.octets() == message,
                    "the parts of a message are the message"
                );
            }
            Ok(None) => {}
            Err(error) => panic!("a part of ours was refused: {error}"),
        }
    }
    panic!("the last part completes the message");
}

/// Reads text as a reference: an accepted one can be written and read again.
///
/// # Panics
/// When that does not hold.
pub fn reference(octets: &[u8]) {
    let Ok(text) = std::str::from_utf8(octets) else {
        return;
    };
    match text.parse::<ObjectUrl>() {
        Ok(ObjectUrl::Ior(ior)) => {
            let _ = ior.explain();
            look_at_real_time(&ior);
            assert_eq!(ior.to_string().parse(), Ok(ior), "a reference comes back");
        }
        Ok(ObjectUrl::Corbaloc(url)) => {
            let _ = url.to_ior("here");
            assert_eq!(
                url.to_string().parse(),
                Ok(url),
                "a corbaloc URL comes back"
            );
        }
        Ok(ObjectUrl::Corbaname(url)) => assert_eq!(
            url.to_string().parse(),
            Ok(url),
            "a corbaname URL comes back"
        ),
        Err(error) => assert!(
            error.offset <= text.len(),
            "an error is located within the text"
        ),
    }
}
