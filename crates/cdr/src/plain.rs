//! Structs whose CDR is their memory: numbers and octets without gaps. A slice of them is written by one copy, and lent
//! to a servant from the message.
//!
//! Memory and CDR are the same in this machine's byte order, where the first element stands at a multiple of its
//! largest alignment. Elsewhere (as with a `double` behind two `long`s) a sequence is written and read member by
//! member.

use std::borrow::Cow;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::traits::parse_each;
use crate::{Char, DecodeError, EncodeError, Parse, Reader, Writer};

/// A type whose values have the same octets in CDR and in memory. Generated for structs whose members leave no gaps.
pub trait Plain: FromBytes + IntoBytes + Immutable + KnownLayout + Copy {
    /// Alignment of its first number.
    const LEAD: usize;
    /// The largest alignment of its numbers.
    const ALIGNMENT: usize;
}

macro_rules! number {
    ($($type:ty)*) => { $(
        impl Plain for $type {
            const LEAD: usize = size_of::<Self>();
            const ALIGNMENT: usize = size_of::<Self>();
        }
    )* };
}

number! { u8 i16 u16 i32 u32 i64 u64 f32 f64 Char }

impl<T: Plain, const N: usize> Plain for [T; N] {
    const LEAD: usize = T::LEAD;
    const ALIGNMENT: usize = T::ALIGNMENT;
}

/// The largest alignment of a struct's members.
#[must_use]
pub const fn largest(alignments: &[usize]) -> usize {
    let (mut largest, mut index) = (1, 0);
    while index < alignments.len() {
        if alignments[index] > largest {
            largest = alignments[index];
        }
        index += 1;
    }
    largest
}

/// [`crate::Write::laid_out`] for such a struct.
///
/// # Errors
/// As [`crate::Write::laid_out`].
#[inline]
pub fn laid_out<'s, T: Plain>(
    slice: &'s [T],
    w: &mut Writer<'_>,
) -> Result<Option<&'s [u8]>, EncodeError> {
    if slice.is_empty() {
        return Ok(Some(&[]));
    }
    w.align(T::LEAD)?;
    let is_whole = w.order().is_native() && w.stands_together(size_of_val(slice));
    let is_aligned = w.phase().is_multiple_of(T::ALIGNMENT);
    Ok((is_whole && is_aligned).then(|| slice.as_bytes()))
}

/// [`Parse::parse_vec`] for such a struct.
///
/// # Errors
/// As [`Parse::parse_vec`].
#[inline]
pub fn parse_vec<'a, T: Plain + Parse<'a>>(
    r: &mut Reader<'a>,
    count: usize,
) -> Result<Vec<T>, DecodeError> {
    match lend::<T>(r, count) {
        Some(octets) => Ok(copied(octets)),
        None => parse_each(r, count),
    }
}

/// [`Parse::parse_cow`] for such a struct: borrows the octets where they are aligned in memory.
///
/// # Errors
/// As [`Parse::parse_vec`].
#[inline]
pub fn parse_cow<'a, T: Plain + Parse<'a>>(
    r: &mut Reader<'a>,
    count: usize,
) -> Result<Cow<'a, [T]>, DecodeError> {
    let Some(octets) = lend::<T>(r, count) else {
        return parse_each(r, count).map(Cow::Owned);
    };
    Ok(match <[T]>::ref_from_bytes(octets) {
        Ok(values) => Cow::Borrowed(values),
        Err(_) => Cow::Owned(copied(octets)),
    })
}

/// Returns the octets of `count` values where they equal the values in memory.
#[inline]
fn lend<'a, T: Plain>(r: &mut Reader<'a>, count: usize) -> Option<&'a [u8]> {
    if count == 0 || !r.order().is_native() {
        return None;
    }
    r.lend_whole(size_of::<T>(), count, (T::LEAD, T::ALIGNMENT))
}

#[inline]
fn copied<T: Plain>(octets: &[u8]) -> Vec<T> {
    let values = octets.chunks_exact(size_of::<T>());
    values
        .filter_map(|octets| T::read_from_bytes(octets).ok())
        .collect()
}
