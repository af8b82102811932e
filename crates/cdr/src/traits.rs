//! The traits that generated code uses (`spec/mapping.md`).

use crate::limits::WINDOW_VALUE_SIZE_MAX;
use crate::room::room;
use crate::{
    ByteOrder, Codec, DecodeError, EncodeError, ReadWindow, Reader, Unwritten, WriteWindow, Writer,
};
use std::borrow::Cow;

/// A value that can be written as CDR.
pub trait Write {
    /// Most octets that the value takes at any position, padding included; `usize::MAX` where there is no bound, or the
    /// value cannot be written within a window.
    const SIZE_MAX: usize = usize::MAX;

    /// Writes the value within a window, in this machine's byte order. Where the window refuses the value, the caller
    /// writes it by [`Write::write`] instead; the octets in the window are then void. Called only where
    /// [`Write::SIZE_MAX`] is at most [`WINDOW_VALUE_SIZE_MAX`].
    #[inline]
    fn write_within(&self, _: &mut WriteWindow<'_>) {
        unreachable!("a value without a bound is not written within a window")
    }

    /// Appends the value.
    ///
    /// # Errors
    /// When the value cannot be carried: see [`EncodeError`].
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Appends the last value of a message. May return octets at its end that are worth leaving where they stand.
    ///
    /// # Errors
    /// As [`Write::write`].
    #[inline]
    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        self.write(w).map(Unwritten::from)
    }

    /// Returns the byte order and codec that the value needs: those of an [opaque](crate::Any::is_opaque) `any`, by
    /// itself or in a sequence. Members of structs are not checked.
    #[inline]
    fn sole_form(&self) -> Option<(ByteOrder, Codec)> {
        None
    }

    /// Returns the octets of a slice in memory where they equal its CDR at the position to which this aligns the
    /// writer.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`].
    #[inline]
    fn laid_out<'s>(slice: &'s [Self], w: &mut Writer<'_>) -> Result<Option<&'s [u8]>, EncodeError>
    where
        Self: Sized,
    {
        let _ = (slice, w);
        Ok(None)
    }

    /// Appends the elements of a slice, without a count: in one copy where their memory is laid out as CDR.
    ///
    /// # Errors
    /// As [`Write::write`].
    #[inline]
    fn write_slice(slice: &[Self], w: &mut Writer<'_>) -> Result<(), EncodeError>
    where
        Self: Sized,
    {
        match Self::laid_out(slice, w)? {
            Some(octets) => w.write_octets(octets),
            None => write_each(slice, w),
        }
    }

    /// As [`Write::write_slice`], for the last value of a message: see [`Write::write_last`].
    ///
    /// # Errors
    /// As [`Write::write`].
    #[inline]
    fn write_slice_last<'s>(
        slice: &'s [Self],
        w: &mut Writer<'_>,
    ) -> Result<Unwritten<'s>, EncodeError>
    where
        Self: Sized,
    {
        match Self::laid_out(slice, w)? {
            Some(octets) => w.write_last_octets(octets),
            None => Self::write_slice(slice, w).map(Unwritten::from),
        }
    }
}

/// A value that can be read from CDR, and may borrow from it.
pub trait Parse<'a>: Sized {
    /// Fewest octets a value can take on the wire; bounds what a length field may claim. At least 1.
    const SIZE_MIN: usize;

    /// As [`Write::SIZE_MAX`].
    const SIZE_MAX: usize = usize::MAX;

    /// Reads the value within a window, in this machine's byte order. Where the window refuses the value, the result is
    /// void. Called only where [`Parse::SIZE_MAX`] is at most [`WINDOW_VALUE_SIZE_MAX`].
    #[inline]
    fn parse_within(_: &mut ReadWindow<'_>) -> Self {
        unreachable!("a value without a bound is not read within a window")
    }

    /// Reads the value.
    ///
    /// # Errors
    /// When the octets are no such value: see [`crate::DecodeFact`].
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError>;

    /// Marks the value as truncated. Only an `any` keeps the mark ([`Any::is_truncated`](crate::Any::is_truncated)).
    #[inline]
    fn note_truncated(&mut self) {}

    /// Reads `count` elements into one exactly sized block. The caller has checked `count` against what remains
    /// ([`Reader::read_count`]).
    ///
    /// # Errors
    /// As [`Parse::parse`]; also when sequences nest deeper than [`crate::limits::NESTING_MAX`].
    #[inline]
    fn parse_vec(r: &mut Reader<'a>, count: usize) -> Result<Vec<Self>, DecodeError> {
        parse_each(r, count)
    }

    /// Reads `count` elements. Borrows them where memory and CDR are the same (`octet`, `char`, `boolean`,
    /// [`crate::plain::Plain`] structs).
    ///
    /// # Errors
    /// As [`Parse::parse_vec`].
    #[inline]
    fn parse_cow(r: &mut Reader<'a>, count: usize) -> Result<Cow<'a, [Self]>, DecodeError>
    where
        Self: Clone,
    {
        Self::parse_vec(r, count).map(Cow::Owned)
    }
}

/// Writes elements one by one, within windows where they fit.
#[inline]
pub(crate) fn write_each<T: Write>(slice: &[T], w: &mut Writer<'_>) -> Result<(), EncodeError> {
    let mut rest = slice;
    if T::SIZE_MAX <= WINDOW_VALUE_SIZE_MAX {
        rest = w.write_within(slice);
    }
    w.windowed(size_of_val(rest), |w| {
        rest.iter().try_for_each(|element| element.write(w))
    })
}

/// Reads elements one by one, within windows where they fit.
#[inline]
pub(crate) fn parse_each<'a, T: Parse<'a>>(
    r: &mut Reader<'a>,
    count: usize,
) -> Result<Vec<T>, DecodeError> {
    r.nested(|r| {
        let count = r.admissible::<T>(count)?;
        let mut elements = if T::SIZE_MAX <= WINDOW_VALUE_SIZE_MAX {
            r.parse_within(count)?
        } else {
            room(count, r)?
        };
        for _ in elements.len()..count {
            elements.push(T::parse(r)?);
        }
        Ok(elements)
    })
}

/// An exception declared in IDL. `write` writes the members only; the repository id goes before them.
pub trait UserException: Write + std::error::Error {
    /// For instance `IDL:omg.org/CosNaming/NamingContext/NotFound:1.0`.
    const REPOSITORY_ID: &'static str;
}

impl<T: Write + ?Sized> Write for &T {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).write(w)
    }

    #[inline]
    fn sole_form(&self) -> Option<(ByteOrder, Codec)> {
        (**self).sole_form()
    }

    #[inline]
    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        (**self).write_last(w)
    }
}

impl<T: Write> Write for Box<T> {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).write(w)
    }

    #[inline]
    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        (**self).write_last(w)
    }
}

impl<'a, T: Parse<'a>> Parse<'a> for Box<T> {
    const SIZE_MIN: usize = T::SIZE_MIN;
    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        r.nested(T::parse).map(Box::new)
    }
}
