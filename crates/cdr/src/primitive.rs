//! Numbers, octets, booleans and characters: one aligned read or write each, whole slices at once.

use crate::room::{copied, room};
use crate::{
    Char, DecodeError, DecodeFact, EncodeError, LongDouble, Parse, ReadWindow, Reader, Write,
    WriteWindow, Writer, plain,
};
use std::borrow::Cow;
use zerocopy::{FromBytes, IntoBytes, TryFromBytes};

macro_rules! number {
    ($($type:ty, $bits:ty;)*) => { $(
        impl Write for $type {
            const SIZE_MAX: usize = 2 * size_of::<Self>() - 1;

            #[inline(always)]
            fn write_within(&self, window: &mut WriteWindow<'_>) {
                window.put(self.to_ne_bytes());
            }

            #[inline]
            fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
                let bits = <$bits>::from_ne_bytes(self.to_ne_bytes());
                w.write_aligned(if w.order().is_native() { bits } else { bits.swap_bytes() }.to_ne_bytes())
            }

            #[inline]
            fn laid_out<'s>(slice: &'s [Self], w: &mut Writer<'_>) -> Result<Option<&'s [u8]>, EncodeError> {
                plain::laid_out(slice, w)
            }
        }

        impl<'a> Parse<'a> for $type {
            const SIZE_MIN: usize = size_of::<Self>();
            const SIZE_MAX: usize = 2 * size_of::<Self>() - 1;

            #[inline(always)]
            fn parse_within(window: &mut ReadWindow<'_>) -> Self {
                Self::from_ne_bytes(window.take())
            }

            #[inline]
            fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                let bits = <$bits>::from_ne_bytes(r.read_aligned()?);
                Ok(Self::from_ne_bytes(if r.order().is_native() { bits } else { bits.swap_bytes() }.to_ne_bytes()))
            }

            #[inline]
            fn parse_vec(r: &mut Reader<'a>, count: usize) -> Result<Vec<Self>, DecodeError> {
                if count == 0 {
                    return Ok(Vec::new());
                }
                const SIZE: usize = size_of::<$type>();
                let Some(octets) = r.lend_run(SIZE, count) else {
                    let (elements, there) = parse_each(*r, count)?;
                    r.go_to(there);
                    return Ok(elements);
                };
                let octets = octets.as_chunks::<SIZE>().0;
                let mut elements = room(count, r)?;
                if r.order().is_native() {
                    elements.extend(octets.iter().map(|octets| Self::from_ne_bytes(*octets)));
                } else {
                    let swapped = |octets: &[u8; SIZE]| <$bits>::from_ne_bytes(*octets).swap_bytes().to_ne_bytes();
                    elements.extend(octets.iter().map(|octets| Self::from_ne_bytes(swapped(octets))));
                }
                Ok(elements)
            }
        }
    )* };
}

/// Numbers in several fragments of GIOP 1.1, or missing ones.
#[cold]
#[inline(never)]
fn parse_each<'a, T: Parse<'a>>(
    mut r: Reader<'a>,
    count: usize,
) -> Result<(Vec<T>, Reader<'a>), DecodeError> {
    let mut elements = room(r.admissible::<T>(count)?, &r)?;
    for _ in 0..count {
        elements.push(T::parse(&mut r)?);
    }
    Ok((elements, r))
}

number! {
    i16, u16;
    u16, u16;
    i32, u32;
    u32, u32;
    i64, u64;
    u64, u64;
    f32, u32;
    f64, u64;
}

impl Write for u8 {
    const SIZE_MAX: usize = 1;

    #[inline(always)]
    fn write_within(&self, window: &mut WriteWindow<'_>) {
        window.put([*self]);
    }

    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_u8(*self)
    }

    #[inline]
    fn laid_out<'s>(
        slice: &'s [Self],
        _: &mut Writer<'_>,
    ) -> Result<Option<&'s [u8]>, EncodeError> {
        Ok(Some(slice))
    }
}

impl<'a> Parse<'a> for u8 {
    const SIZE_MIN: usize = 1;
    const SIZE_MAX: usize = 1;

    #[inline(always)]
    fn parse_within(window: &mut ReadWindow<'_>) -> Self {
        let [octet] = window.take();
        octet
    }

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.read_u8()
    }

    #[inline]
    fn parse_vec(r: &mut Reader<'a>, count: usize) -> Result<Vec<Self>, DecodeError> {
        let octets = r.read_octets(count)?;
        copied(octets, r)
    }

    #[inline]
    fn parse_cow(r: &mut Reader<'a>, count: usize) -> Result<Cow<'a, [Self]>, DecodeError> {
        r.read_octets(count).map(Cow::Borrowed)
    }
}

/// Borrows a slice of `octet`, `char` or `boolean` elements from the octets.
fn lend<'a, T: TryFromBytes + zerocopy::Immutable + zerocopy::KnownLayout + zerocopy::Unaligned>(
    r: &mut Reader<'a>,
    count: usize,
    fact: DecodeFact,
) -> Result<&'a [T], DecodeError> {
    let start = r.position();
    let octets = r.read_octets(count)?;
    <[T]>::try_ref_from_bytes(octets).map_err(|_| DecodeError::new(fact, start))
}

impl Write for bool {
    const SIZE_MAX: usize = 1;

    #[inline(always)]
    fn write_within(&self, window: &mut WriteWindow<'_>) {
        window.put([u8::from(*self)]);
    }

    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_u8(u8::from(*self))
    }

    #[inline]
    fn laid_out<'s>(
        slice: &'s [Self],
        _: &mut Writer<'_>,
    ) -> Result<Option<&'s [u8]>, EncodeError> {
        Ok(Some(slice.as_bytes()))
    }
}

impl<'a> Parse<'a> for bool {
    const SIZE_MIN: usize = 1;
    const SIZE_MAX: usize = 1;

    #[inline(always)]
    fn parse_within(window: &mut ReadWindow<'_>) -> Self {
        let [octet] = window.take();
        window.refuse_if(octet > 1);
        octet == 1
    }

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        match r.read_u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::new(
                DecodeFact::BooleanNotZeroOrOne,
                r.position() - 1,
            )),
        }
    }

    #[inline]
    fn parse_vec(r: &mut Reader<'a>, count: usize) -> Result<Vec<Self>, DecodeError> {
        let octets = r.read_octets(count)?;
        if octets.iter().fold(0, |all, octet| all | octet) > 1 {
            return Err(DecodeError::new(
                DecodeFact::BooleanNotZeroOrOne,
                r.position() - count,
            ));
        }
        let mut values = room(count, r)?;
        values.extend(octets.iter().map(|octet| *octet == 1));
        Ok(values)
    }

    #[inline]
    fn parse_cow(r: &mut Reader<'a>, count: usize) -> Result<Cow<'a, [Self]>, DecodeError> {
        lend(r, count, DecodeFact::BooleanNotZeroOrOne).map(Cow::Borrowed)
    }
}

impl Write for Char {
    const SIZE_MAX: usize = 1;

    #[inline(always)]
    fn write_within(&self, window: &mut WriteWindow<'_>) {
        window.put([self.0]);
    }

    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_u8(self.0)
    }

    #[inline]
    fn laid_out<'s>(
        slice: &'s [Self],
        _: &mut Writer<'_>,
    ) -> Result<Option<&'s [u8]>, EncodeError> {
        Ok(Some(slice.as_bytes()))
    }
}

impl<'a> Parse<'a> for Char {
    const SIZE_MIN: usize = 1;
    const SIZE_MAX: usize = 1;

    #[inline(always)]
    fn parse_within(window: &mut ReadWindow<'_>) -> Self {
        let [octet] = window.take();
        Self(octet)
    }

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.read_u8().map(Self)
    }

    #[inline]
    fn parse_vec(r: &mut Reader<'a>, count: usize) -> Result<Vec<Self>, DecodeError> {
        let values = Self::parse_cow(r, count)?;
        copied(&values, r)
    }

    #[inline]
    fn parse_cow(r: &mut Reader<'a>, count: usize) -> Result<Cow<'a, [Self]>, DecodeError> {
        let octets = r.read_octets(count)?;
        // Any octet is a `Char`, so the cast cannot fail; the empty slice only satisfies the types.
        Ok(Cow::Borrowed(
            <[Self]>::ref_from_bytes(octets).unwrap_or_default(),
        ))
    }
}

impl Write for LongDouble {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.align(8)?;
        w.write_octets(&if w.order().is_native() {
            self.0.to_ne_bytes()
        } else {
            self.0.swap_bytes().to_ne_bytes()
        })
    }
}

impl<'a> Parse<'a> for LongDouble {
    const SIZE_MIN: usize = 16;

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.align(8);
        let octets = r.read_octets(16)?;
        let bits = u128::from_ne_bytes(
            *octets
                .first_chunk()
                .ok_or_else(|| r.error(DecodeFact::Truncated))?,
        );
        Ok(Self(if r.order().is_native() {
            bits
        } else {
            bits.swap_bytes()
        }))
    }
}
