//! Object references as values: `Option`, whose `None` is the nil reference (CORBA 3.3 part 2, clause 7.6.2).
//!
//! The crate that defines references decides what they contain. This file has their optional form alone.

use crate::{DecodeError, EncodeError, Parse, Reader, TypeCode, Typed, Write, Writer};

/// An object reference that can be written.
pub trait WriteReference {
    /// Appends the reference.
    ///
    /// # Errors
    /// When it cannot be carried.
    fn write_reference(&self, w: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Appends the nil reference: an IOR with an empty type id and no profile.
    ///
    /// # Errors
    /// [`EncodeError::MessageTooLarge`].
    fn write_nil(w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_string_octets(b"")?;
        w.write_count(0)
    }
}

/// An object reference that can be read.
pub trait ParseReference: Sized {
    /// As [`Parse::SIZE_MIN`], of nil too: the count of a type id with its null, padding, and a count of profiles.
    const SIZE_MIN: usize = 12;

    /// Reads a reference; `None` for nil.
    ///
    /// # Errors
    /// When the octets are no reference.
    fn parse_reference(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError>;
}

impl<T: WriteReference + ?Sized> WriteReference for &T {
    fn write_reference(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        (**self).write_reference(w)
    }

    fn write_nil(w: &mut Writer<'_>) -> Result<(), EncodeError> {
        T::write_nil(w)
    }
}

impl<T: WriteReference> Write for Option<T> {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Some(reference) => reference.write_reference(w),
            None => T::write_nil(w),
        }
    }
}

impl<'a, T: ParseReference> Parse<'a> for Option<T> {
    const SIZE_MIN: usize = T::SIZE_MIN;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        T::parse_reference(r)
    }
}

impl<T: Typed + WriteReference> Typed for Option<T> {
    fn type_code() -> TypeCode {
        T::type_code()
    }

    fn own_type_code(&self) -> TypeCode {
        self.as_ref().map_or_else(T::type_code, T::own_type_code)
    }

    fn accepts(type_code: &TypeCode) -> bool {
        T::accepts(type_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;

    struct Never;

    impl WriteReference for Never {
        fn write_reference(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
            w.write_u8(9)
        }
    }

    #[test]
    fn nil_is_an_empty_type_id_and_no_profile() {
        let mut octets = Vec::new();
        let mut writer = Writer::new(&mut octets).with_order(ByteOrder::Big);
        None::<&Never>.write(&mut writer).unwrap();
        Some(&Never).write(&mut writer).unwrap();
        assert_eq!(octets, [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    }
}
