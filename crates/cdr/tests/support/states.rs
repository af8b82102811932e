//! Values whose state only their own code can read, written by hand.

#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../../../../conformance/common/valuetypes.rs"]
pub(crate) mod valuetypes;

use deckwatch_cdr::typecode::{Member, ValueModifier};
use deckwatch_cdr::{
    Any, ByteOrder, DecodeFact, EncodeError, Parse, Reader, TypeCode, Write, Writer,
};

pub(crate) const CUSTOM: &str = "IDL:C:1.0";
pub(crate) const POINT: &str = "IDL:Point:1.0";

pub(crate) const ONE_ID: u32 = 0x7fff_ff02;
pub(crate) const ID_LIST: u32 = 0x7fff_ff06;
pub(crate) const CHUNKED: u32 = 8;

pub(crate) fn valuetype(
    id: &str,
    modifier: ValueModifier,
    members: &[(&str, &TypeCode)],
) -> TypeCode {
    valuetypes::valuetype(id, modifier, None, members)
}

/// `custom valuetype C { public double d; };`
pub(crate) fn custom() -> TypeCode {
    valuetype(CUSTOM, ValueModifier::Custom, &[("d", &TypeCode::double())])
}

pub(crate) fn point() -> TypeCode {
    valuetype(POINT, ValueModifier::None, &[("x", &TypeCode::long())])
}

pub(crate) fn structure(members: &[(&str, &TypeCode)]) -> TypeCode {
    let members = members.iter();
    let members = members.map(|(name, type_code)| Member { name, type_code });
    TypeCode::structure("IDL:S:1.0", "S", &members.collect::<Vec<_>>())
}

pub(crate) fn interface() -> TypeCode {
    TypeCode::abstract_interface("IDL:I:1.0", "I")
}

pub(crate) fn chunk(w: &mut Writer<'_>, content: impl FnOnce(&mut Writer<'_>)) {
    w.write_u32(0).expect("room");
    let start = w.position();
    content(w);
    w.patch_u32(start - 4, (w.position() - start) as u32);
}

/// The end tag of all values that are still open.
pub(crate) fn end(w: &mut Writer<'_>) {
    w.write_u32(u32::MAX).expect("room");
}

/// An indirection to the octet `target`.
pub(crate) fn back_to(target: usize, w: &mut Writer<'_>) {
    w.write_u32(u32::MAX).expect("room");
    let back = w.position() - target;
    w.write_u32((back as u32).wrapping_neg()).expect("room");
}

/// A number, an aligned double, and a string.
pub(crate) fn a_chunk(w: &mut Writer<'_>) {
    chunk(w, |w| {
        w.write_u32(7).expect("room");
        0.5_f64.write(w).expect("room");
        "text".write(w).expect("room");
    });
}

pub(crate) fn a_custom(w: &mut Writer<'_>) {
    w.write_u32(ONE_ID | CHUNKED).expect("room");
    CUSTOM.write(w).expect("room");
    a_chunk(w);
    end(w);
}

pub(crate) fn octets(
    code: &TypeCode,
    order: ByteOrder,
    write: impl FnOnce(&mut Writer<'_>),
) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut w = Writer::new(&mut octets).with_order(order);
    code.write(&mut w).expect("a TypeCode");
    write(&mut w);
    octets
}

pub(crate) fn parsed(octets: &[u8], order: ByteOrder) -> Result<Any, DecodeFact> {
    let mut r = Reader::new(octets, order);
    let any = Any::parse(&mut r).map_err(|error| error.fact)?;
    r.finish().map_err(|error| error.fact)?;
    Ok(any)
}

pub(crate) fn written(any: &Any, order: ByteOrder) -> Result<Vec<u8>, EncodeError> {
    let mut octets = Vec::new();
    any.write(&mut Writer::new(&mut octets).with_order(order))?;
    Ok(octets)
}
