//! Enumerations: numbers of 32 bits, of which only the first few are enumerators.

use zerocopy::{Immutable, IntoBytes};

use crate::traits::{parse_each, write_each};
use crate::{DecodeError, EncodeError, Parse, Reader, Write, Writer};

/// An enumeration; generated.
pub trait Enumerated: IntoBytes + Immutable + Copy {
    /// The enumerator of a number.
    fn of_number(number: u32) -> Option<Self>;
}

/// [`Write::write_slice`] for enumerators.
///
/// # Errors
/// As [`Write::write_slice`].
#[inline]
pub fn write_slice<T: Enumerated + Write>(
    slice: &[T],
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    if slice.is_empty() {
        return Ok(());
    }
    w.align(size_of::<u32>())?;
    if w.order().is_native() && w.stands_together(size_of_val(slice)) {
        return w.write_octets(slice.as_bytes());
    }
    write_each(slice, w)
}

/// [`Parse::parse_vec`] for enumerators.
///
/// # Errors
/// As [`Parse::parse_vec`].
#[inline]
pub fn parse_vec<'a, T: Enumerated + Parse<'a>>(
    r: &mut Reader<'a>,
    count: usize,
) -> Result<Vec<T>, DecodeError> {
    let mut ahead = *r;
    if r.order().is_native()
        && let Some(octets) = ahead.lend_run(size_of::<u32>(), count)
        && let Some(first) = T::of_number(0)
    {
        let mut is_known = true;
        let enumerators = octets.as_chunks().0.iter().map(|octets| {
            let enumerator = T::of_number(u32::from_ne_bytes(*octets));
            is_known &= enumerator.is_some();
            enumerator.unwrap_or(first)
        });
        let enumerators: Vec<T> = enumerators.collect();
        if is_known {
            r.go_to(ahead);
            return Ok(enumerators);
        }
    }
    parse_each(r, count)
}
