//! Values of valuetypes, as Rust generated from IDL holds them (CORBA 3.3 part 1, clause 9; part 2, clause 9.3.4).
//!
//! A value is held by `Option<Arc<dyn PointValue>>`: `None` is null, and handles of one value share it. Sharing is kept
//! on the wire among everything that one message carries: within one `shared` read or write.

pub(crate) mod factory;
mod read;
mod write;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use crate::typecode::{Kind, VALUE_BASE_ID};
use crate::{
    DecodeError, EncodeError, ParseReference, Reader, TypeCode, Typed, WriteReference, Writer,
};

pub use factory::{
    ValueFactory, lookup_value_factory, register_value_factory, unregister_value_factory,
};
pub use read::ReadValues;
pub(crate) use read::shared as shared_read;
pub use write::{WriteValues, write_member};
pub(crate) use write::{WrittenChunks, shared as shared_write};

/// How the state of a value travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Members one after the other.
    Plain,
    /// As `Plain`, in chunks: a reader that knows a base alone passes over the rest.
    Truncatable,
    /// In chunks that [`CustomMarshal`] reads and writes.
    Custom,
}

/// What every value of a type has in common.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Repository ids: the type's own, then those of the bases that it may be truncated to, the closest first.
    pub ids: &'static [&'static str],
    /// How the state travels.
    pub form: Form,
}

/// A value of any valuetype: IDL's `ValueBase`. Code generated from IDL implements it.
pub trait ValueBase: Any + Debug + Send + Sync {
    /// Repository ids and form.
    fn about(&self) -> &'static About;

    /// The TypeCode of the value's own type.
    fn value_type_code(&self) -> TypeCode;

    /// Appends the state.
    ///
    /// # Errors
    /// As [`crate::Write::write`].
    fn write_state(&self, w: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Fills `slot`, where it is an `Option<Arc<T>>` of a type `T` that the value may be held as. [`narrow`] calls it.
    fn widen(self: Arc<Self>, slot: &mut dyn Any);

    /// Whether the other value has the same type and state.
    fn equals(&self, other: &dyn ValueBase) -> bool;
}

impl dyn ValueBase {
    /// The repository id of the value's own type.
    #[must_use]
    pub fn repository_id(&self) -> &'static str {
        self.about().ids[0]
    }

    /// Returns the value as this struct, if it is one.
    #[must_use]
    pub fn downcast_ref<T: ValueBase>(&self) -> Option<&T> {
        let value: &dyn Any = self;
        value.downcast_ref()
    }
}

impl PartialEq for dyn ValueBase {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

/// A struct that holds the state of a valuetype, or a boxed value.
pub trait State: ValueBase + Sized {
    /// Repository ids and form.
    const ABOUT: About;

    /// Reads the state.
    ///
    /// # Errors
    /// As [`crate::Parse::parse`].
    fn parse_state(r: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// The state of a custom valuetype in the user's own form. The IDL's streams are [`Writer`] and [`Reader`]: any type
/// with [`crate::Write`] and [`crate::Parse`] is written and read by them, values too.
pub trait CustomMarshal: Sized {
    /// Writes the state (marshal).
    ///
    /// # Errors
    /// As [`crate::Write::write`].
    fn marshal(&self, output: &mut Writer<'_>) -> Result<(), EncodeError>;

    /// Reads the state (unmarshal). What it leaves unread is passed over.
    ///
    /// # Errors
    /// As [`crate::Parse::parse`].
    fn unmarshal(input: &mut Reader<'_>) -> Result<Self, DecodeError>;
}

/// A type that IDL declares for values: `dyn PointValue`, or the struct of a value box.
pub trait Valuetype: 'static {
    /// The repository id.
    const REPOSITORY_ID: &'static str;

    /// How values of exactly this type are read; `None` for an abstract type.
    const FACTORY: Option<ValueFactory>;

    /// The TypeCode.
    fn declared_type_code() -> TypeCode;

    /// The value as its root base.
    fn into_base(self: Arc<Self>) -> Arc<dyn ValueBase>;
}

impl Valuetype for dyn ValueBase {
    const REPOSITORY_ID: &'static str = VALUE_BASE_ID;
    const FACTORY: Option<ValueFactory> = None;

    fn declared_type_code() -> TypeCode {
        TypeCode::value_base()
    }

    fn into_base(self: Arc<Self>) -> Arc<dyn ValueBase> {
        self
    }
}

/// Returns the value as `T` (a `dyn PointValue`, or a struct) where it is of that type or one derived from it.
#[must_use]
pub fn narrow<T: ?Sized + 'static>(value: Arc<dyn ValueBase>) -> Option<Arc<T>> {
    let mut slot: Option<Arc<T>> = None;
    value.widen(&mut slot);
    slot
}

/// Offers a value to a slot of one type. Generated code calls it for each type that the value may be held as.
pub fn offer<T: ?Sized + 'static>(slot: &mut dyn Any, value: impl FnOnce() -> Arc<T>) {
    if let Some(slot) = slot.downcast_mut::<Option<Arc<T>>>() {
        *slot = Some(value());
    }
}

impl<T: Valuetype + ?Sized> WriteReference for Arc<T> {
    fn write_reference(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        write::value(Self::clone(self).into_base(), w)
    }

    fn write_nil(w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_u32(crate::walk::tags::NULL_TAG)
    }
}

impl<T: Valuetype + ?Sized> ParseReference for Arc<T> {
    const SIZE_MIN: usize = 4;

    fn parse_reference(r: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        read::value(r)
    }
}

impl<T: Valuetype + ?Sized> Typed for Arc<T> {
    fn type_code() -> TypeCode {
        T::declared_type_code()
    }

    fn own_type_code(&self) -> TypeCode {
        Self::clone(self).into_base().value_type_code()
    }

    /// Whether it is a value; whether it can be held as `T` is seen when it is read.
    fn accepts(type_code: &TypeCode) -> bool {
        matches!(type_code.unaliased().kind(), Kind::Value | Kind::ValueBox)
    }
}

/// Implements `ValueBase` and `State` for the struct of a valuetype: its base, if any, and its own members in order.
#[doc(hidden)]
#[macro_export]
macro_rules! valuetype {
    ($name:ident as [$($held:ty),*] ids [$($id:literal),+] $form:ident { $($base:ident: $base_ty:ty)? } { $($field:ident: $ty:ty),* } code $code:expr) => {
        $crate::valuetype! { @base $name as [$($held),*] code $code }
        $crate::valuetype! { @id $name $($id),+ }

        impl $crate::valuetype::State for $name {
            const ABOUT: $crate::valuetype::About = $crate::valuetype::About {
                ids: &[$($id),+],
                form: $crate::valuetype::Form::$form,
            };

            $crate::valuetype! { @parse $form { $($base: $base_ty)? } { $($field: $ty),* } }
        }

        impl $name {
            $crate::valuetype! { @write $form { $($base)? } { $($field)* } }
        }
    };
    (box $name:ident $id:literal $ty:ty, code $code:expr) => {
        $crate::valuetype! { @base $name as [] code $code }
        $crate::valuetype! { @id $name $id }

        impl $crate::valuetype::State for $name {
            const ABOUT: $crate::valuetype::About = $crate::valuetype::About {
                ids: &[$id],
                form: $crate::valuetype::Form::Plain,
            };

            fn parse_state(r: &mut $crate::Reader<'_>) -> ::std::result::Result<Self, $crate::DecodeError> {
                <$ty as $crate::Parse<'_>>::parse(r).map(Self)
            }
        }

        impl $name {
            fn _write_state(&self, w: &mut $crate::Writer<'_>) -> ::std::result::Result<(), $crate::EncodeError> {
                $crate::valuetype::write_member(&self.0, w)
            }
        }

        impl ::std::ops::Deref for $name {
            type Target = $ty;
            fn deref(&self) -> &$ty {
                &self.0
            }
        }

        impl ::std::convert::From<$ty> for $name {
            fn from(value: $ty) -> Self {
                Self(value)
            }
        }

        $crate::valuetype! { @declared $name, $id, ::std::option::Option::Some($crate::valuetype::ValueFactory::of::<$name>()), <$name>::_type_code() }
    };
    (@base $name:ident as [$($held:ty),*] code $code:expr) => {
        impl $name {
            pub(crate) fn _type_code() -> $crate::TypeCode {
                static CODE: ::std::sync::LazyLock<$crate::TypeCode> = ::std::sync::LazyLock::new(|| $code);
                CODE.clone()
            }
        }

        impl $crate::valuetype::ValueBase for $name {
            fn about(&self) -> &'static $crate::valuetype::About {
                &<Self as $crate::valuetype::State>::ABOUT
            }

            fn value_type_code(&self) -> $crate::TypeCode {
                Self::_type_code()
            }

            fn write_state(&self, w: &mut $crate::Writer<'_>) -> ::std::result::Result<(), $crate::EncodeError> {
                self._write_state(w)
            }

            fn widen(self: ::std::sync::Arc<Self>, slot: &mut dyn ::std::any::Any) {
                $($crate::valuetype::offer::<$held>(slot, || self.clone());)*
                $crate::valuetype::offer::<dyn $crate::valuetype::ValueBase>(slot, || self.clone());
                $crate::valuetype::offer::<Self>(slot, || self);
            }

            fn equals(&self, other: &dyn $crate::valuetype::ValueBase) -> bool {
                other.downcast_ref::<Self>() == ::std::option::Option::Some(self)
            }
        }
    };
    (@parse Custom { $($base:ident: $base_ty:ty)? } { $($field:ident: $ty:ty),* }) => {
        fn parse_state(r: &mut $crate::Reader<'_>) -> ::std::result::Result<Self, $crate::DecodeError> {
            <Self as $crate::valuetype::CustomMarshal>::unmarshal(r)
        }
    };
    (@parse $form:ident {} {}) => {
        fn parse_state(_: &mut $crate::Reader<'_>) -> ::std::result::Result<Self, $crate::DecodeError> {
            ::std::result::Result::Ok(Self {})
        }
    };
    (@parse $form:ident { $($base:ident: $base_ty:ty)? } { $($field:ident: $ty:ty),* }) => {
        fn parse_state(r: &mut $crate::Reader<'_>) -> ::std::result::Result<Self, $crate::DecodeError> {
            ::std::result::Result::Ok(Self {
                $($base: <$base_ty as $crate::valuetype::State>::parse_state(r)?,)?
                $($field: <$ty as $crate::Parse<'_>>::parse(r)?),*
            })
        }
    };
    (@write Custom { $($base:ident)? } { $($field:ident)* }) => {
        fn _write_state(&self, w: &mut $crate::Writer<'_>) -> ::std::result::Result<(), $crate::EncodeError> {
            <Self as $crate::valuetype::CustomMarshal>::marshal(self, w)
        }
    };
    (@write $form:ident {} {}) => {
        fn _write_state(&self, _: &mut $crate::Writer<'_>) -> ::std::result::Result<(), $crate::EncodeError> {
            ::std::result::Result::Ok(())
        }
    };
    (@write $form:ident { $($base:ident)? } { $($field:ident)* }) => {
        fn _write_state(&self, w: &mut $crate::Writer<'_>) -> ::std::result::Result<(), $crate::EncodeError> {
            $($crate::valuetype::ValueBase::write_state(&self.$base, w)?;)?
            $($crate::valuetype::write_member(&self.$field, w)?;)*
            ::std::result::Result::Ok(())
        }
    };
    (@id $name:ident $id:literal $(, $base:literal)*) => {
        impl $name {
            /// The repository id.
            pub const REPOSITORY_ID: &'static str = $id;
        }
    };
    (@deref $name:ident $base:ident: $base_ty:ty) => {
        impl ::std::ops::Deref for $name {
            type Target = $base_ty;
            fn deref(&self) -> &$base_ty {
                &self.$base
            }
        }

        impl ::std::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut $base_ty {
                &mut self.$base
            }
        }
    };
    (@held $held:ident $accessor:ident $name:ident $id:literal) => {
        impl ::std::ops::Deref for dyn $held {
            type Target = $name;
            fn deref(&self) -> &$name {
                self.$accessor()
            }
        }

        $crate::valuetype! { @equal $held }
        $crate::valuetype! { @declared dyn $held, $id, ::std::option::Option::Some($crate::valuetype::ValueFactory::of::<$name>()), $name::_type_code() }
    };
    (@abstract $held:ident $id:literal code $code:expr) => {
        $crate::valuetype! { @equal $held }
        $crate::valuetype! { @declared dyn $held, $id, ::std::option::Option::None, $code }
    };
    (@equal $held:ident) => {
        impl ::std::cmp::PartialEq for dyn $held {
            fn eq(&self, other: &Self) -> bool {
                self.equals(other)
            }
        }
    };
    (@declared $declared:ty, $id:literal, $factory:expr, $code:expr) => {
        impl $crate::valuetype::Valuetype for $declared {
            const REPOSITORY_ID: &'static str = $id;
            const FACTORY: ::std::option::Option<$crate::valuetype::ValueFactory> = $factory;

            fn declared_type_code() -> $crate::TypeCode {
                $code
            }

            fn into_base(self: ::std::sync::Arc<Self>) -> ::std::sync::Arc<dyn $crate::valuetype::ValueBase> {
                self
            }
        }
    };
}
