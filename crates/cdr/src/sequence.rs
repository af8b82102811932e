//! Sequences: a count and the elements.

use crate::{ByteOrder, Codec, DecodeError, EncodeError, Parse, Reader, Unwritten, Write, Writer};
use std::borrow::Cow;

impl<T: Write> Write for [T] {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_count(self.len())?;
        T::write_slice(self, w)
    }

    #[inline]
    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        w.write_count(self.len())?;
        T::write_slice_last(self, w)
    }

    #[inline]
    fn sole_form(&self) -> Option<(ByteOrder, Codec)> {
        self.iter().find_map(T::sole_form)
    }
}

impl<T: Write> Write for Vec<T> {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.as_slice().write(w)
    }

    #[inline]
    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        self.as_slice().write_last(w)
    }

    #[inline]
    fn sole_form(&self) -> Option<(ByteOrder, Codec)> {
        self.as_slice().sole_form()
    }
}

impl<T: Write + Clone> Write for Cow<'_, [T]> {
    #[inline]
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).write(w)
    }

    #[inline]
    fn write_last(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        (**self).write_last(w)
    }
}

impl<'a, T: Parse<'a>> Parse<'a> for Vec<T> {
    const SIZE_MIN: usize = 4;

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.read_count(T::SIZE_MIN)?;
        T::parse_vec(r, count)
    }
}

impl<'a, T: Parse<'a> + Clone> Parse<'a> for Cow<'a, [T]> {
    const SIZE_MIN: usize = 4;

    #[inline]
    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.read_count(T::SIZE_MIN)?;
        T::parse_cow(r, count)
    }
}
