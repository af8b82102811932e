//! Bodies of octets and of IDL types, written and read back in every form in which carriers send them.

use std::path::Path;

use super::*;

fn octets(size_bytes: u32) -> Result<Body, BodyError> {
    Body::new(&BodyPlan::Octets { size_bytes })
}

fn nav(sequence_member: &str) -> Result<Body, BodyError> {
    Body::new(&BodyPlan::Typed {
        idl_file: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../idl/deckwatch/nav.idl"),
        include_paths: Vec::new(),
        type_name: "Nav::NavData".to_owned(),
        sequence_member: sequence_member.to_owned(),
    })
}

/// Returns the sequence number found in each form: raw, framed, as an argument read whole and by the walk, in an `any`.
fn found(body: &mut Body, order: ByteOrder) -> [Option<u64>; 5] {
    let reader = body.sequence_reader();
    // As after a GIOP header of twelve octets and four more: alignment counts from the start of the message.
    let mut message = vec![0; 16];
    body.write(&mut Writer::new(&mut message).with_origin(0).with_order(order))
        .expect("written");
    let arguments = Reader::new(&message, order).at_position(16);
    let mut any = vec![0; 24];
    body.to_any()
        .expect("an any")
        .write(&mut Writer::new(&mut any).with_origin(0).with_order(order))
        .expect("written");
    [
        reader.read(body.octets()),
        reader.read_framed(body.framed()),
        body.clone().read(&mut arguments.clone()),
        reader.read_argument(arguments),
        reader.read_any(Reader::new(&any, order).at_position(24)),
    ]
}

#[test]
fn the_sequence_number_is_found_on_every_way() {
    for mut body in [
        octets(100).expect("of a usual size"),
        nav("sequence_number").expect("a type"),
    ] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for sequence in [0, 1, 0x0102_0304] {
                body.set_sequence(sequence);
                assert_eq!(found(&mut body, order), [Some(sequence); 5]);
            }
        }
    }
}

#[test]
fn a_nav_message_has_the_papers_384_octets() {
    let mut body = nav("sequence_number").expect("a type");
    assert_eq!(body.octets().len(), 384);
    assert_eq!(body.framed()[..4], [0, 0, 1, 128]);
    assert_eq!(body.sequence_max(), u64::from(u32::MAX));
    body.set_sequence(7);
    // Patching the encoding and marshalling the value give the same octets.
    let mut marshalled = Vec::new();
    body.write(&mut Writer::new(&mut marshalled).with_order(RAW_ORDER))
        .expect("written");
    assert_eq!(marshalled, body.octets());
}

#[test]
fn the_member_says_how_far_one_can_count() {
    assert_eq!(octets(8).expect("just enough").sequence_max(), u64::MAX);
    assert_eq!(nav("measured_ns").expect("a type").sequence_max(), u64::MAX);
    assert_eq!(nav("watch").expect("a type").sequence_max(), 0xFFFF);
    assert_eq!(nav("time_zone_min").expect("a type").sequence_max(), 0x7FFF);
    assert_eq!(
        nav("health.satellites_used")
            .expect("a type")
            .sequence_max(),
        0xFF
    );
}

#[test]
fn bodies_of_no_use_are_refused() {
    let of = |size_bytes| octets(size_bytes).map(|_| ());
    assert_eq!(of(7), Err(BodyError::TooSmall));
    assert_eq!(of(BODY_SIZE_MAX + 1), Err(BodyError::TooLarge));
    assert_eq!(of(8), Ok(()));
    let unknown = BodyPlan::Typed {
        idl_file: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../idl/deckwatch/nav.idl"),
        include_paths: Vec::new(),
        type_name: "Nav::Nothing".to_owned(),
        sequence_member: "sequence_number".to_owned(),
    };
    let Err(BodyError::Type(text)) = Body::new(&unknown) else {
        panic!("there is no such type")
    };
    assert!(text.contains("Nav::Nothing"), "{text}");
    for member in ["position.altitude_m", "nothing", "position"] {
        let Err(BodyError::Type(text)) = nav(member) else {
            panic!("{member}")
        };
        assert!(text.contains(member), "{text}");
    }
}

#[test]
fn what_is_no_such_value_has_no_sequence_number() {
    let mut body = nav("sequence_number").expect("a type");
    let reader = body.sequence_reader();
    assert_eq!(reader.read(&[0; 3]), None);
    assert_eq!(
        body.read(&mut Reader::new(&[0; 380], ByteOrder::Little)),
        None
    );
    let mut any = Vec::new();
    Any::from_value(&7_u32)
        .expect("an any")
        .write(&mut Writer::new(&mut any))
        .expect("written");
    assert_eq!(reader.read_any(Reader::new(&any, ByteOrder::NATIVE)), None);
}
