//! Arrays: elements without a count.

use crate::{DecodeError, EncodeError, Parse, Reader, Write, Writer};

impl<T: Write, const N: usize> Write for [T; N] {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        T::write_slice(self, w)
    }
}

impl<'a, T: Parse<'a>, const N: usize> Parse<'a> for [T; N] {
    const SIZE_MIN: usize = if N * T::SIZE_MIN == 0 {
        1
    } else {
        N * T::SIZE_MIN
    };

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.nested(|r| parse_array(r))
    }
}

/// Elements are read into options, which the compiler removes for `Copy` elements; arrays in IDL are short.
#[inline]
fn parse_array<'a, T: Parse<'a>, const N: usize>(
    r: &mut Reader<'a>,
) -> Result<[T; N], DecodeError> {
    let mut failure = None;
    let elements: [Option<T>; N] = std::array::from_fn(|_| {
        if failure.is_some() {
            return None;
        }
        T::parse(r).map_err(|error| failure = Some(error)).ok()
    });
    match failure {
        Some(error) => Err(error),
        // No failure was recorded, so every element is there.
        None => Ok(elements.map(|element| {
            element.unwrap_or_else(|| unreachable!("an element without failure is there"))
        })),
    }
}
