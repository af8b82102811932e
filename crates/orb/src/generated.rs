//! Support for Rust code generated from IDL: marshalling of typed references, errors of operations, and reply handlers.

use std::fmt;
use std::sync::Arc;

use crate::{AsynchronousReply, Deliver, ObjectRef, Result, SystemException};

#[doc(hidden)]
pub use deckwatch_cdr as cdr;

/// The result of serving a request or delivering a reply.
pub type Served = Result<()>;

/// Passes a reply to a handler.
pub type DeliverTo<H> = fn(&H, AsynchronousReply) -> Served;

/// Returns the closure that passes a reply to a handler, if there is one.
pub fn deliver<H: ?Sized + Send + Sync + 'static>(
    handler: Option<Arc<H>>,
    by: DeliverTo<H>,
) -> Option<Deliver> {
    handler.map(|handler| -> Deliver { Box::new(move |reply| by(&handler, reply)) })
}

/// Calls an operation. If there is a handler, it gets the reply.
///
/// # Errors
/// As [`ObjectRef::send_callback`].
pub fn send<H: ?Sized + Send + Sync + 'static>(
    object: &ObjectRef,
    operation: &str,
    arguments: impl Fn(&mut cdr::Writer<'_>) -> std::result::Result<(), cdr::EncodeError>,
    handler: Option<Arc<H>>,
    by: DeliverTo<H>,
) -> Served {
    object.send_callback(operation, arguments, deliver(handler, by))
}

/// Implements a typed reference, except its operations: narrowing, marshalling, its TypeCode.
#[doc(hidden)]
#[macro_export]
macro_rules! reference {
    ($name:ident, $id:literal, $idl_name:literal) => {
        impl $name {
            /// The interface's repository id.
            pub const REPOSITORY_ID: &'static str = $id;

            /// Returns the object as a reference of this interface, or `None` if it has another. Calls `_is_a` if the
            /// reference does not name the interface.
            ///
            /// # Errors
            /// The exception of that call.
            pub fn narrow(
                object: &$crate::ObjectRef,
            ) -> ::std::result::Result<::std::option::Option<Self>, $crate::SystemException> {
                ::std::result::Result::Ok(object.is_a(Self::REPOSITORY_ID)?.then(|| Self(object.clone())))
            }

            /// Returns the object as a reference of this interface, without a check. Operations that the object does
            /// not have raise BAD_OPERATION.
            #[must_use]
            pub fn unchecked_narrow(object: $crate::ObjectRef) -> Self {
                Self(object)
            }

            /// Returns the untyped reference.
            #[must_use]
            pub fn object(&self) -> &$crate::ObjectRef {
                &self.0
            }
        }

        impl ::std::convert::From<$name> for $crate::ObjectRef {
            fn from(reference: $name) -> Self {
                reference.0
            }
        }

        impl $crate::generated::cdr::WriteReference for $name {
            fn write_reference(
                &self,
                w: &mut $crate::generated::cdr::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::cdr::EncodeError> {
                $crate::generated::cdr::WriteReference::write_reference(&self.0, w)
            }
        }

        impl $crate::generated::cdr::ParseReference for $name {
            fn parse_reference(
                r: &mut $crate::generated::cdr::Reader<'_>,
            ) -> ::std::result::Result<::std::option::Option<Self>, $crate::generated::cdr::DecodeError> {
                let object = <$crate::ObjectRef as $crate::generated::cdr::ParseReference>::parse_reference(r)?;
                ::std::result::Result::Ok(object.map(Self))
            }
        }

        $crate::generated::cdr::typed! { $name, $crate::generated::cdr::TypeCode::interface($id, $idl_name) }
    };
}

/// Implements the error of an operation: one variant for each exception that the operation raises, and `System`.
#[doc(hidden)]
#[macro_export]
macro_rules! operation_error {
    ($name:ident { $($variant:ident($exception:path)),+ }) => {
        $(impl ::std::convert::From<$exception> for $name {
            fn from(exception: $exception) -> Self {
                Self::$variant(exception)
            }
        })+

        impl ::std::convert::From<$crate::SystemException> for $name {
            fn from(exception: $crate::SystemException) -> Self {
                Self::System(exception)
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$variant(exception) => exception.fmt(f),)+
                    Self::System(exception) => $crate::generated::write_exception(exception, f),
                }
            }
        }

        impl ::std::error::Error for $name {}
    };
}

/// Writes a system exception with its words, if this thread has them.
///
/// # Errors
/// Those of the formatter.
pub fn write_exception(exception: &SystemException, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    fmt::Display::fmt(exception, f)?;
    match crate::exception_detail(exception) {
        Some(detail) => write!(f, ". {detail}"),
        None => Ok(()),
    }
}

/// Returns BAD_OPERATION, which a skeleton raises for an operation that its interface does not have.
#[must_use]
pub const fn unknown_operation() -> SystemException {
    SystemException::new(
        crate::SystemExceptionKind::BadOperation,
        crate::minor::OPERATION_UNKNOWN,
        crate::Completion::No,
    )
}

/// Implements methods with the methods of the same names of `$by`: `arc` (the value of an `Arc`) or a type.
#[doc(hidden)]
#[macro_export]
macro_rules! forward {
    (arc $(fn $method:ident $(<$a:lifetime>)? (
        &$($b:lifetime)? self $(, $name:ident: $ty:ty)* $(,)?
    ) -> $result:ty;)*) => {
        $(fn $method $(<$a>)? (&$($b)? self $(, $name: $ty)*) -> $result {
            (**self).$method($($name),*)
        })*
    };
    ($by:ident $(fn $method:ident $(<$a:lifetime>)? (
        &$($b:lifetime)? self $(, $name:ident: $ty:ty)* $(,)?
    ) -> $result:ty;)*) => {
        $(fn $method $(<$a>)? (&$($b)? self $(, $name: $ty)*) -> $result {
            $by::$method(self $(, $name)*)
        })*
    };
}
