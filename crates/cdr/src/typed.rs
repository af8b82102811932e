//! Types with a TypeCode, and the TypeCodes of the built-in types.

use crate::{BoundedString, BoundedVec, Char, Fixed, LongDouble, TypeCode, WString};

/// A type with a TypeCode.
pub trait Typed {
    /// The TypeCode; cheap after the first call where the type caches it.
    fn type_code() -> TypeCode;

    /// The TypeCode that this value is inserted into an `any` with: for a valuetype that of the value's own type.
    fn own_type_code(&self) -> TypeCode {
        Self::type_code()
    }

    /// Whether a value with this TypeCode may be extracted as this type.
    fn accepts(type_code: &TypeCode) -> bool {
        type_code.equivalent(&Self::type_code())
    }
}

macro_rules! typed {
    ($($type:ty => $constructor:ident;)*) => { $(
        impl Typed for $type {
            fn type_code() -> TypeCode {
                TypeCode::$constructor()
            }
        }
    )* };
}

typed! {
    i16 => short; u16 => ushort; i32 => long; u32 => ulong; i64 => longlong; u64 => ulonglong;
    f32 => float; f64 => double;
    bool => boolean; u8 => octet; Char => char; char => wchar; LongDouble => longdouble;
    String => unbounded_string; str => unbounded_string; WString => unbounded_wstring; TypeCode => meta;
    () => void;
}

impl<const N: usize> Typed for BoundedString<N> {
    fn type_code() -> TypeCode {
        TypeCode::string(N as u32)
    }
}

impl<const D: u16, const S: i16> Typed for Fixed<D, S> {
    fn type_code() -> TypeCode {
        TypeCode::fixed(D, S)
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn type_code() -> TypeCode {
        TypeCode::sequence(&T::type_code(), 0)
    }
}

impl<T: Typed> Typed for [T] {
    fn type_code() -> TypeCode {
        TypeCode::sequence(&T::type_code(), 0)
    }
}

impl<T: Typed, const N: usize> Typed for BoundedVec<T, N> {
    fn type_code() -> TypeCode {
        TypeCode::sequence(&T::type_code(), N as u32)
    }
}

impl<T: Typed, const N: usize> Typed for [T; N] {
    fn type_code() -> TypeCode {
        TypeCode::array(&T::type_code(), N as u32)
    }
}

impl<T: Typed + ?Sized> Typed for &T {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}

impl<T: Typed> Typed for Box<T> {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}
