//! Events that cannot be encoded for a consumer: values in the other byte order, texts that its code sets do not cover.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::{PATIENCE, World, number};
use deckwatch_cdr::typecode::ValueModifier;
use deckwatch_cdr::{Any, ByteOrder, Reader, TypeCode, WString, Write as _, Writer};
use deckwatch_event::limits;
use deckwatch_giop::Ior;
use deckwatch_giop::ior::IiopProfile;
use deckwatch_giop::ior::code_sets::{CodeSetComponent, CodeSetInfo, ISO_8859_1};
use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{ObjectRef, Orb};

/// Pushes a custom value in the other byte order. Returns the reply's status.
fn push_in_the_other_order(server: &Orb, proxy: &ObjectRef) -> u32 {
    let order = ByteOrder::NATIVE.opposite();
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(order);
    let mut write = || {
        w.write_octets(b"GIOP\x01\x02")?;
        w.write_octets(&[u8::from(order == ByteOrder::Little), 0])?;
        // The message size, the request id, the response flags, the target by its key.
        w.write_u32(0)?;
        w.write_u32(1)?;
        w.write_octets(&[3, 0, 0, 0, 0, 0])?;
        w.write_octet_sequence(proxy.object_key().expect("an IIOP profile"))?;
        "push".write(&mut w)?;
        w.write_u32(0)?;
        w.align(8)?;
        let custom = ValueModifier::Custom;
        TypeCode::value("IDL:C:1.0", "C", custom, None, &[]).write(&mut w)?;
        w.write_u32(0x7fff_ff0a)?;
        "IDL:C:1.0".write(&mut w)?;
        // A chunk of a number, and the end.
        w.write_u32(4)?;
        w.write_u32(7)?;
        w.write_u32(u32::MAX)
    };
    write().expect("a few octets");
    let size = w.position() - 12;
    w.patch_u32(8, size as u32);
    let Endpoint::Tcp { host, port } = &server.endpoints()[0] else {
        panic!("it listens by TCP");
    };
    let mut peer = TcpStream::connect((host.as_str(), *port)).expect("it listens");
    peer.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    peer.write_all(&octets).expect("it reads");
    let mut reply = [0; 24];
    peer.read_exact(&mut reply).expect("it answers");
    let order = ByteOrder::from_flag(reply[6] & 1).expect("a byte order");
    let mut status = Reader::new(&reply[16..20], order);
    status.read_u32().expect("a status")
}

/// Returns a reference to the object as a server with this GIOP minor version and these code sets would publish it.
pub(crate) fn published_by(
    minor: u8,
    sets: Option<&CodeSetInfo>,
    object: &ObjectRef,
    orb: &Orb,
) -> ObjectRef {
    let Endpoint::Tcp { host, port } = &orb.endpoints()[0] else {
        panic!("it listens by TCP");
    };
    let key = object.object_key().expect("an IIOP profile");
    let component = sets.map(|sets| sets.to_component().expect("a few octets"));
    let profile = IiopProfile {
        minor,
        components: component.into_iter().collect(),
        ..IiopProfile::new(host, *port, key)
    };
    let ior = Ior::with_iiop(object.type_id(), &profile).expect("a reference");
    let object = orb.string_to_object(&ior.to_string()).expect("an IOR");
    object.expect("not nil")
}

#[test]
fn events_that_cannot_be_written_for_a_consumer_are_not_held_against_it() {
    let world = World::new();
    let (consumer, events) = world.consumer();
    // For GIOP 1.0 the events have to be marshalled again, which a custom value does not allow in the other order.
    let _proxy = world.connect(published_by(0, None, &consumer, &world.user));
    let supplier = world.supplier();
    for _ in 0..=limits::FAILURES_MAX {
        assert_eq!(push_in_the_other_order(&world.server, supplier.object()), 0);
    }
    supplier.push(&number(1)).unwrap();
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)));
    assert_eq!(
        world.served.counts().failed,
        u64::from(limits::FAILURES_MAX) + 1
    );
    world.channel.destroy().unwrap();
    world.end();
}

#[test]
fn texts_that_a_consumer_has_no_code_set_for_are_not_held_against_it() {
    let world = World::new();
    let narrow = CodeSetInfo {
        chars: CodeSetComponent {
            native: ISO_8859_1,
            conversion: Vec::new(),
        },
        wide: CodeSetComponent::default(),
    };
    let takers = [(0, None), (2, Some(&narrow))].map(|(minor, sets)| {
        let (reference, events) = world.consumer();
        world.connect(published_by(minor, sets, &reference, &world.user));
        events
    });
    let supplier = world.supplier();
    let texts = [
        Any::from_value(&WString::from("a")).unwrap(),
        Any::from_value(&'a').unwrap(),
        Any::from_value("\u{20ac}").unwrap(),
    ];
    for text in &texts {
        for _ in 0..=limits::FAILURES_MAX {
            supplier.push(text).unwrap();
        }
        supplier.push(&number(1)).unwrap();
        for events in &takers {
            assert_eq!(events.recv_timeout(PATIENCE), Ok(Some(1)), "after {text:?}");
        }
    }
    let counts = world.served.counts();
    let unwritten = takers.len() * texts.len() * (limits::FAILURES_MAX as usize + 1);
    assert_eq!(
        (counts.failed, counts.consumers_lost),
        (unwritten as u64, 0)
    );
    world.channel.destroy().unwrap();
    world.end();
}
