//! What Rust generated from IDL stands on: marshalling of records whose members need no further checks, and TypeCodes.

use crate::typecode::{Member, TypeCode, ValueMember};
use crate::{DecodeError, EncodeError, Parse, Reader, UserException, Write, Writer};

/// As [`Parse::parse`], for a type that the place of the call tells.
///
/// # Errors
/// As [`Parse::parse`].
#[inline(always)]
pub fn parse<'a, T: Parse<'a>>(r: &mut Reader<'a>) -> Result<T, DecodeError> {
    T::parse(r)
}

/// As [`Write::write`].
///
/// # Errors
/// As [`Write::write`].
#[inline(always)]
pub fn write<T: Write + ?Sized>(value: &T, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    value.write(w)
}

/// Runs `read`; values that it reads may be shared between all its parts.
///
/// # Errors
/// Those of `read`.
pub fn share_read<T>(
    r: &mut Reader<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    crate::valuetype::shared_read(r, read)
}

/// Runs `write`; values that it writes are shared between all its parts.
///
/// # Errors
/// Those of `write`.
pub fn share_write(
    w: &mut Writer<'_>,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    crate::valuetype::shared_write(w, write)
}

/// Writes the repository id and the members of an exception whose values are shared.
///
/// # Errors
/// As [`Write::write`].
pub fn share_exception<E: UserException>(
    exception: &E,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    w.write_string_octets(E::REPOSITORY_ID.as_bytes())?;
    share_write(w, |w| exception.write(w))
}

/// Declares `$r`: a mutable borrow of the reader, with room for shared values.
#[doc(hidden)]
#[macro_export]
macro_rules! share {
    ($r:ident, $reader:expr) => {
        let reader = $reader;
        let values = $crate::valuetype::ReadValues::default();
        let parts = reader.parts(&values);
        let $r = &mut reader.with_parts(&parts);
    };
}

/// A member to build a TypeCode of.
#[must_use]
pub const fn member<'m>(name: &'m str, type_code: &'m TypeCode) -> Member<'m> {
    Member { name, type_code }
}

/// A member of a valuetype's state to build a TypeCode of.
#[must_use]
pub const fn state<'m>(name: &'m str, type_code: &'m TypeCode, is_public: bool) -> ValueMember<'m> {
    ValueMember {
        name,
        type_code,
        is_public,
    }
}

/// Returns the sum of sizes; the largest number if it exceeds that.
#[must_use]
pub const fn sum(mut sizes: &[usize]) -> usize {
    let mut sum = 0_usize;
    while let [size, rest @ ..] = sizes {
        sum = sum.saturating_add(*size);
        sizes = rest;
    }
    sum
}

/// Implements `Write` and `Parse` for a struct or an exception: its members in order. The members of `fixed` ones need
/// no heap: they can be marshalled within a window too. `plain` ones are fixed, and have the same octets in CDR and in
/// memory. Items behind the members are added to `Write`.
#[doc(hidden)]
#[macro_export]
macro_rules! record {
    (plain $name:ident { $($field:ident: $ty:ty),+ $(,)? }) => {
        impl $crate::plain::Plain for $name {
            const LEAD: usize = [$(<$ty as $crate::plain::Plain>::LEAD),+][0];
            const ALIGNMENT: usize = $crate::plain::largest(&[$(<$ty as $crate::plain::Plain>::ALIGNMENT),+]);
        }

        $crate::record! {
            @fixed $name { $($field: $ty),+ }
            write {
                #[inline]
                fn laid_out<'s>(
                    slice: &'s [Self],
                    w: &mut $crate::Writer<'_>,
                ) -> ::std::result::Result<::std::option::Option<&'s [u8]>, $crate::EncodeError> {
                    $crate::plain::laid_out(slice, w)
                }
            }
            parse 'a {
                #[inline]
                fn parse_vec(
                    r: &mut $crate::Reader<'a>,
                    count: usize,
                ) -> ::std::result::Result<::std::vec::Vec<Self>, $crate::DecodeError> {
                    $crate::plain::parse_vec(r, count)
                }

                #[inline]
                fn parse_cow(
                    r: &mut $crate::Reader<'a>,
                    count: usize,
                ) -> ::std::result::Result<::std::borrow::Cow<'a, [Self]>, $crate::DecodeError> {
                    $crate::plain::parse_cow(r, count)
                }
            }
        }
    };
    (fixed $name:ident { $($field:ident: $ty:ty),+ $(,)? } $($write:item)*) => {
        $crate::record! { @fixed $name { $($field: $ty),+ } write { $($write)* } parse 'a {} }
    };
    (@fixed $name:ident { $($field:ident: $ty:ty),+ } write { $($write:item)* } parse $a:lifetime { $($parse:item)* }) => {
        impl $crate::Write for $name {
            const SIZE_MAX: usize = $crate::generated::sum(&[$(<$ty as $crate::Write>::SIZE_MAX),+]);

            #[inline(always)]
            fn write_within(&self, w: &mut $crate::WriteWindow<'_>) {
                $($crate::Write::write_within(&self.$field, w);)+
            }

            $crate::record! { @write $($field)+ }
            $($write)*
        }

        impl<$a> $crate::Parse<$a> for $name {
            const SIZE_MAX: usize = $crate::generated::sum(&[$(<$ty as $crate::Parse<$a>>::SIZE_MAX),+]);

            #[inline(always)]
            fn parse_within(r: &mut $crate::ReadWindow<'_>) -> Self {
                Self { $($field: <$ty as $crate::Parse<$a>>::parse_within(r)),+ }
            }

            $crate::record! { @parse $a $($field: $ty),+ }
            $($parse)*
        }
    };
    ($name:ident { $($field:ident: $ty:ty),+ $(,)? } $($write:item)*) => {
        impl $crate::Write for $name {
            $crate::record! { @write $($field)+ }
            $($write)*
        }

        impl<'a> $crate::Parse<'a> for $name {
            $crate::record! { @parse 'a $($field: $ty),+ }
        }
    };
    ($name:ident {}) => {
        impl $crate::Write for $name {
            #[inline]
            fn write(&self, _: &mut $crate::Writer<'_>) -> ::std::result::Result<(), $crate::EncodeError> {
                ::std::result::Result::Ok(())
            }
        }

        impl<'a> $crate::Parse<'a> for $name {
            const SIZE_MIN: usize = 1;

            #[inline]
            fn parse(_: &mut $crate::Reader<'a>) -> ::std::result::Result<Self, $crate::DecodeError> {
                ::std::result::Result::Ok(Self)
            }
        }
    };
    (@write $($field:ident)+) => {
        #[inline]
        fn write(&self, w: &mut $crate::Writer<'_>) -> ::std::result::Result<(), $crate::EncodeError> {
            $($crate::Write::write(&self.$field, w)?;)+
            ::std::result::Result::Ok(())
        }
    };
    (@parse $a:lifetime $($field:ident: $ty:ty),+) => {
        const SIZE_MIN: usize = $crate::generated::sum(&[$(<$ty as $crate::Parse<$a>>::SIZE_MIN),+]);

        #[inline]
        fn parse(r: &mut $crate::Reader<$a>) -> ::std::result::Result<Self, $crate::DecodeError> {
            ::std::result::Result::Ok(Self { $($field: <$ty as $crate::Parse<$a>>::parse(r)?),+ })
        }
    };
}

/// Implements `Typed` by a TypeCode that is built once.
#[doc(hidden)]
#[macro_export]
macro_rules! typed {
    ($name:ident, $code:expr) => {
        impl $crate::Typed for $name {
            fn type_code() -> $crate::TypeCode {
                static CODE: ::std::sync::LazyLock<$crate::TypeCode> =
                    ::std::sync::LazyLock::new(|| $code);
                CODE.clone()
            }
        }
    };
}
