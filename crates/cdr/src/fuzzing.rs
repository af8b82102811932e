//! Functions that the fuzz targets run; they panic where a promise of this crate is broken.

mod valuetypes;

pub use valuetypes::valuetypes;

use crate::divided::HEADER_SIZE;
use crate::value::{Value, read_value, write_value};
use crate::{
    Any, ByteOrder, CharSet, Codec, DecodeFact, Divided, Parse, Reader, TypeCode, Version, Write,
    Writer,
};

/// Parses an Any in the byte order, version and code set that the first octet selects. An accepted Any can be read as a
/// tree and written in another form, where it is equal.
///
/// # Panics
/// When one of these does not hold.
pub fn any(octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else {
        return;
    };
    let order = order_of(*flags);
    let version = if flags & 2 == 0 {
        Version::V1_2
    } else {
        Version::V1_1
    };
    let chars = if flags & 4 == 0 {
        CharSet::Utf8
    } else {
        CharSet::Latin1
    };
    let codec = Codec::DEFAULT.with_version(version).with_chars(chars);
    let reader = Reader::new(octets, order)
        .with_codec(codec)
        .with_phase(usize::from(flags >> 3));
    let _ = TypeCode::parse(&mut reader.clone()).map(|code| code.to_string());
    let mut after = reader;
    let Ok(any) = Any::parse(&mut after) else {
        return;
    };
    // An opaque state keeps its form.
    let utf8 = Codec::DEFAULT.with_chars(CharSet::Utf8);
    let (other, codec) = any.sole_form().unwrap_or((order.opposite(), utf8));
    let mut again = Vec::new();
    let w = Writer::new(&mut again).with_order(other);
    any.write(&mut w.with_codec(codec))
        .expect("an accepted Any can be written");
    let mut r = Reader::new(&again, other).with_codec(codec);
    let parsed = Any::parse(&mut r).expect("a written Any can be parsed");
    r.finish().expect("a written Any is parsed whole");
    assert!(
        parsed.type_code() == any.type_code(),
        "the type stays the same"
    );
    assert!(
        any.type_code().equivalent(parsed.type_code()),
        "an equal type is equivalent"
    );
    if any.is_opaque() {
        return opaque(&any);
    }
    value(&any, order);
    divided(&any, order, 24 + 8 * usize::from(flags >> 5));
    let _ = Value::default_for(any.type_code());
}

/// The byte order that the first octet of an input selects.
const fn order_of(flags: u8) -> ByteOrder {
    if flags & 1 == 0 {
        ByteOrder::Big
    } else {
        ByteOrder::Little
    }
}

/// An opaque state comes back from a tree, and from another place in a message.
fn opaque(any: &Any) {
    let Ok(value) = any.to_dynamic() else {
        return;
    };
    let tree = Any::from_dynamic(any.type_code(), &value).expect("a read value can be written");
    let (order, codec) = any
        .sole_form()
        .unwrap_or((ByteOrder::NATIVE, Codec::DEFAULT));
    let mut octets = vec![0; 4];
    let w = Writer::new(&mut octets).with_origin(0).with_order(order);
    tree.write(&mut w.with_codec(codec))
        .expect("a tree can be written");
    let mut r = Reader::new(&octets, order).with_codec(codec).at_position(4);
    let back = Any::parse(&mut r).expect("a written tree can be parsed");
    assert!(back == tree, "a written tree is the same");
}

/// An Any is equal in fragments of GIOP 1.1, all but the last of this size with the header.
fn divided(any: &Any, order: ByteOrder, fragment_size: usize) {
    let codec = Codec::DEFAULT.with_chars(CharSet::Utf8);
    let mut octets = vec![0; HEADER_SIZE];
    let mut w = Writer::new(&mut octets)
        .with_origin(0)
        .with_order(order)
        .with_codec(codec)
        .with_fragments(fragment_size);
    w.windowed(64, |w| any.write(w).and_then(|()| any.write(w)))
        .expect("an accepted Any can be written in fragments");
    let ends = (fragment_size..octets.len()).step_by(fragment_size - HEADER_SIZE);
    let ends: Vec<u32> = ends.map(|end| end as u32).collect();
    let message = Divided::new(&octets, &ends);
    let mut r = Reader::of_divided(&message, order, HEADER_SIZE).with_codec(codec);
    for _ in 0..2 {
        let parsed = Any::parse(&mut r).expect("a divided Any can be parsed");
        assert!(parsed == *any, "a divided Any is the same");
    }
    r.finish().expect("a divided Any is parsed whole");
}

const SHARED: [DecodeFact; 3] = [
    DecodeFact::ValueCyclic,
    DecodeFact::ValueTooLarge,
    DecodeFact::NestingTooDeep,
];

/// The value of an accepted Any can be read as a tree and written again as it was.
fn value(any: &Any, order: ByteOrder) {
    let mut r = any.reader();
    let value = match read_value(any.type_code(), &mut r) {
        Ok(value) => value,
        // A tree contains no cyclic value, and shared values at each of their places, which may be deep.
        Err(error) if SHARED.contains(&error.fact) && any.holds_values() => return,
        Err(_) => {
            // Only the limit on parts may refuse what the walk accepted.
            assert!(
                any.reader().remaining() >= crate::limits::VALUE_PARTS_MAX / 64,
                "an accepted value can be read"
            );
            return;
        }
    };
    let mut octets = Vec::new();
    let utf8 = Codec::DEFAULT.with_chars(CharSet::Utf8);
    write_value(
        any.type_code(),
        &value,
        &mut Writer::new(&mut octets).with_order(order).with_codec(utf8),
    )
    .expect("a read value can be written");
}
