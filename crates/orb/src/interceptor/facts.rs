//! What client and server interceptors have in common.

use deckwatch_cdr::typecode::Member;
use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, TypeCode};

use crate::contexts::ExtraContext;
use crate::{Completion, ServiceContext, SystemException, minor, raise};

/// How a request ended (PortableInterceptor::ReplyStatus).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum ReplyStatus {
    /// It was served; a one-way without a reply was sent.
    Successful = 0,
    /// A system exception.
    SystemException = 1,
    /// A user exception.
    UserException = 2,
    /// It is forwarded to another object.
    LocationForward = 3,
    /// It is sent again over another connection.
    TransportRetry = 4,
    /// Unknown: the call was abandoned.
    Unknown = 5,
}

/// The operation is not allowed at this interception point.
pub(super) fn out_of_place() -> SystemException {
    raise::bad_inv_order(minor::CALL_OUT_OF_PLACE, Completion::No)
}

/// The operation is not supported: stubs and skeletons keep no values of arguments and results.
pub(super) fn not_available() -> SystemException {
    raise::no_resources(minor::OPERATION_NOT_SUPPORTED_HERE, Completion::No)
}

/// # Errors
/// BAD_INV_ORDER unless `may_ask`.
pub(super) fn require(may_ask: bool) -> Result<(), SystemException> {
    may_ask.then_some(()).ok_or_else(out_of_place)
}

pub(super) fn find(
    contexts: &[ExtraContext],
    id: u32,
) -> Result<ServiceContext<'_>, SystemException> {
    let found = contexts.iter().find(|(known, _)| *known == id);
    let (id, data) = found.ok_or_else(no_context)?;
    Ok(ServiceContext { id: *id, data })
}

pub(super) fn no_context() -> SystemException {
    raise::bad_param(minor::SERVICE_CONTEXT_UNKNOWN, Completion::No)
}

/// Adds a service context. With `replace`, replaces an existing one of the same id.
pub(super) fn add(
    contexts: &mut Vec<ExtraContext>,
    id: u32,
    data: &[u8],
    replace: bool,
) -> Result<(), SystemException> {
    match contexts.iter_mut().find(|(known, _)| *known == id) {
        None => contexts.push((id, data.to_vec())),
        Some((_, before)) if replace => *before = data.to_vec(),
        Some(_) => {
            let twice = minor::SERVICE_CONTEXT_ADDED_TWICE;
            return Err(raise::bad_inv_order(twice, Completion::No));
        }
    }
    Ok(())
}

/// Returns a system exception as an Any.
pub(super) fn any_of(exception: SystemException) -> Any {
    let completion = TypeCode::enumeration(
        "IDL:omg.org/CORBA/completion_status:1.0",
        "completion_status",
        &["COMPLETED_YES", "COMPLETED_NO", "COMPLETED_MAYBE"],
    );
    let members = [
        Member {
            name: "minor",
            type_code: &TypeCode::ulong(),
        },
        Member {
            name: "completed",
            type_code: &completion,
        },
    ];
    let kind = exception.kind;
    let code = TypeCode::exception(kind.repository_id(), kind.name(), &members);
    let completed = Value::Enum(exception.completed as u32);
    let value = Value::Struct(vec![Value::ULong(exception.minor), completed]);
    let any = Any::from_dynamic(&code, &value);
    debug_assert!(any.is_ok(), "a system exception is a value of its type");
    any.unwrap_or_default()
}

/// Returns the exception that stands for a user exception of unknown type.
pub(super) fn any_of_unknown() -> Any {
    any_of(raise::unknown(
        minor::UNKNOWN_USER_EXCEPTION,
        Completion::Yes,
    ))
}
