//! ORB initializers and codecs, by clause (CORBA 3.3 part 1, clauses 16.7 and 16.8).

use std::sync::Arc;

use crate::common;
use crate::common::interceptor::{Init, Log, with_clients};
use crate::common::{OMG, Order};
use deckwatch_cdr::{Any, TypeCode};
use deckwatch_orb::interceptor::{
    Codec, CodecError, CodecFactory, Encoding, OrbInitError, OrbInitInfo, OrbInitializer,
    PolicyFactory, SlotError,
};
use deckwatch_orb::{
    BuildError, Orb, Policy, PolicyErrorCode, PolicyType, SystemExceptionKind as Kind,
};

/// An initializer that logs its calls.
struct Watching(Log);

impl OrbInitializer for Watching {
    fn pre_init(&self, info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        let early = info.resolve_initial_references("Known").unwrap_err();
        let OrbInitError::System(exception) = early else {
            panic!("a system exception, not {early:?}");
        };
        assert_eq!(
            (exception.kind, exception.minor),
            (Kind::BadInvOrder, OMG | 14)
        );
        self.0
            .note(format!("pre_init {} {:?}", info.orb_id(), info.arguments()));
        Ok(())
    }

    fn post_init(&self, info: &mut OrbInitInfo) -> Result<(), OrbInitError> {
        let known = info.resolve_initial_references("Known")?;
        info.register_initial_reference("Again", &known)?;
        let taken = info.register_initial_reference("Again", &known);
        assert_eq!(taken, Err(OrbInitError::InvalidName));
        let unknown = info.resolve_initial_references("Unknown");
        assert_eq!(unknown, Err(OrbInitError::InvalidName));
        assert!(
            info.codec_factory()
                .create_codec(Encoding::cdr_encaps(2))
                .is_ok()
        );
        let current = info.orb()?.pi_current();
        assert!(
            matches!(current.slot(0), Err(SlotError::System(exception)) if exception.minor == OMG | 14)
        );
        self.0.note("post_init");
        Ok(())
    }
}

#[test]
fn initializers_see_the_orb_before_and_after_its_references_can_be_resolved() {
    let log = Log::default();
    let mut arguments = ["program", "-ORBid", "named", "--other"]
        .map(str::to_owned)
        .to_vec();
    let builder = Orb::builder().arguments(&mut arguments).unwrap();
    let builder = builder
        .initial_reference("Known", "corbaloc::127.0.0.1:1/Known")
        .initializer(Watching(log.clone()));
    let orb = builder.build().unwrap();
    assert!(orb.resolve_initial_references("Again").is_ok());
    let given = r#"["program", "-ORBid", "named", "--other"]"#;
    assert_eq!(
        log.take(),
        [format!("pre_init named {given}"), "post_init".to_owned()]
    );
}

#[test]
fn a_name_is_taken_once_and_no_name_as_often_as_one_likes() {
    let log = Log::default();
    let twice = with_clients(Orb::builder(), ["a", "a"], &log, |_, _, _| Ok(())).build();
    let duplicate = BuildError::Initializer(OrbInitError::DuplicateName);
    assert_eq!(twice.unwrap_err(), duplicate);
    assert!(
        with_clients(Orb::builder(), ["", ""], &log, |_, _, _| Ok(()))
            .build()
            .is_ok()
    );
}

/// Creates a timeout policy with a policy type of its own.
struct Seconds;

impl PolicyFactory for Seconds {
    fn create_policy(&self, _: PolicyType, value: &Any) -> Result<Policy, PolicyErrorCode> {
        let seconds = value
            .extract::<u32>()
            .map_err(|_| PolicyErrorCode::BadPolicyType)?;
        let limit = std::time::Duration::from_secs(seconds.into());
        Ok(Policy::RelativeRoundtripTimeout(limit))
    }
}

#[test]
fn a_policy_factory_makes_the_policies_of_its_kind_and_a_kind_has_one() {
    let kind = PolicyType(0x4455_0000);
    let builder = Orb::builder().initializer(Init(move |info: &mut OrbInitInfo| {
        info.register_policy_factory(kind, Arc::new(Seconds))?;
        let twice = info
            .register_policy_factory(kind, Arc::new(Seconds))
            .unwrap_err();
        assert!(matches!(twice, OrbInitError::System(exception) if exception.minor == OMG | 16));
        Ok(())
    }));
    let orb = builder.build().unwrap();
    let seven = Any::from_value(&7_u32).unwrap();
    let limit = std::time::Duration::from_secs(7);
    assert_eq!(
        orb.create_policy(kind, &seven),
        Ok(Policy::RelativeRoundtripTimeout(limit))
    );
    assert_eq!(
        orb.create_policy(PolicyType(4_711), &seven),
        Err(PolicyErrorCode::BadPolicy)
    );
}

fn codec(minor: u8) -> Codec {
    CodecFactory
        .create_codec(Encoding::cdr_encaps(minor))
        .unwrap()
}

#[test]
fn a_codec_reads_back_what_it_has_written_with_and_without_its_type() {
    let text = Any::from_value(&"drei".to_owned()).unwrap();
    for minor in 0..3 {
        let codec = codec(minor);
        assert_eq!(
            codec.decode(&codec.encode(&text).unwrap()),
            Ok(text.clone())
        );
        let bare = codec.encode_value(&text).unwrap();
        assert_eq!(
            codec.decode_value(&bare, text.type_code()),
            Ok(text.clone())
        );
    }
    // Encoded by hand: byte order, padding, length, characters, NUL. The other form starts with the
    // TypeCode.
    let mut by_hand = common::Octets::encapsulation(Order::Big);
    by_hand.string("drei");
    assert_eq!(
        codec(2).decode_value(&by_hand.octets, text.type_code()),
        Ok(text.clone())
    );
    let mut by_hand = common::Octets::encapsulation(Order::Big);
    by_hand.u32(18).u32(0).string("drei");
    assert_eq!(codec(2).decode(&by_hand.octets), Ok(text));
}

#[test]
fn a_codec_refuses_what_is_no_encapsulation_and_what_is_of_another_type() {
    let codec = codec(2);
    for octets in [&[][..], &[7, 0], &[0, 0, 0, 0, 9, 9, 9, 9]] {
        let refused = codec.decode(octets);
        assert!(
            matches!(refused, Err(CodecError::FormatMismatch(_))),
            "{octets:?}"
        );
    }
    let short = codec
        .encode_value(&Any::from_value(&7_u16).unwrap())
        .unwrap();
    let read = codec.decode_value(&short, &TypeCode::ulonglong());
    assert_eq!(read, Err(CodecError::TypeMismatch));
    let wide = Any::from_value(&'x').unwrap();
    let refused = self::codec(0).encode(&wide);
    assert!(
        matches!(refused, Err(CodecError::InvalidTypeForEncoding(_))),
        "{refused:?}"
    );
    for (format, major, minor) in [(1, 1, 2), (0, 2, 0), (0, 1, 9)] {
        let encoding = Encoding {
            format,
            major_version: major,
            minor_version: minor,
        };
        assert!(CodecFactory.create_codec(encoding).is_err());
    }
}
