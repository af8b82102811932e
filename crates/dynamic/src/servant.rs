//! Serving operations without a skeleton (CORBA 3.3 part 1, clause 12).

use std::borrow::Cow;

use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::{Any, EncodeError, Parse, Reader, Writer};
use deckwatch_orb::{
    Completion, Poa, Servant, ServerRequest, SystemException, SystemExceptionKind, minor,
};

use crate::{NamedValue, raise};

/// An object's implementation that gets operations by name, with types known at run time.
///
/// ```
/// # use deckwatch_cdr::{Any, TypeCode};
/// # use deckwatch_dynamic::{ArgMode, DynamicRequest, DynamicServant, NamedValue};
/// # use deckwatch_orb::{Poa, SystemException};
/// struct Calculator;
/// impl DynamicServant for Calculator {
///     fn primary_interface(&self, _object_id: &[u8], _poa: &Poa) -> String {
///         "IDL:Example/Calculator:1.0".to_owned()
///     }
///     fn invoke(&self, request: &mut DynamicRequest<'_>) -> Result<(), SystemException> {
///         if request.operation() != "square" {
///             return Err(request.unknown_operation());
///         }
///         let x = NamedValue::parameter("x", TypeCode::double(), ArgMode::In);
///         let x: f64 = request.arguments(vec![x])?[0].value.extract()?;
///         request.set_result(Any::from_value(&(x * x))?)
///     }
/// }
/// ```
pub trait DynamicServant: Send + Sync + 'static {
    /// The repository id of the most derived interface of an object.
    fn primary_interface(&self, object_id: &[u8], poa: &Poa) -> String;

    /// Whether an object has an interface besides its primary one and `Object` (`_is_a`).
    fn is_a(&self, _object_id: &[u8], _poa: &Poa, _interface: &str) -> bool {
        false
    }

    /// Whether the object does not exist (`_non_existent`).
    ///
    /// # Errors
    /// A system exception goes to the caller.
    fn non_existent(&self, _object_id: &[u8]) -> Result<bool, SystemException> {
        Ok(false)
    }

    /// Serves one request. A request with neither result nor exception returns `void`.
    ///
    /// # Errors
    /// The system exception for the caller; [`DynamicRequest::unknown_operation`] for an unknown operation.
    fn invoke(&self, request: &mut DynamicRequest<'_>) -> Result<(), SystemException>;
}

/// Makes a [`DynamicServant`] a [`Servant`] for an adapter.
#[derive(Debug)]
pub struct DynamicImplementation<S>(S);

impl<S: DynamicServant> DynamicImplementation<S> {
    /// Returns a servant for an adapter.
    #[must_use]
    pub const fn new(servant: S) -> Self {
        Self(servant)
    }

    /// The servant.
    #[must_use]
    pub const fn servant(&self) -> &S {
        &self.0
    }
}

impl<S: DynamicServant> Servant for DynamicImplementation<S> {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[]
    }

    fn primary_interface(&self, object_id: &[u8], poa: &Poa) -> Cow<'static, str> {
        Cow::Owned(self.0.primary_interface(object_id, poa))
    }

    fn is_a(&self, object_id: &[u8], poa: &Poa, interface: &[u8]) -> bool {
        let Ok(interface) = std::str::from_utf8(interface) else {
            return false;
        };
        self.0.primary_interface(object_id, poa) == interface
            || self.0.is_a(object_id, poa, interface)
    }

    fn non_existent(&self, object_id: &[u8]) -> Result<bool, SystemException> {
        self.0.non_existent(object_id)
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let Ok(operation) = std::str::from_utf8(request.operation()) else {
            return Err(unknown_operation());
        };
        let mut dynamic = DynamicRequest {
            operation,
            object_id: request.object_id(),
            unread: Some(request.arguments()),
            list: None,
            result: None,
            exception: None,
        };
        self.0.invoke(&mut dynamic)?;
        dynamic.reply(request)
    }
}

/// A request on its way through a dynamic servant (ServerRequest of clause 12.3).
#[derive(Debug)]
pub struct DynamicRequest<'r> {
    operation: &'r str,
    object_id: &'r [u8],
    /// A reader at the arguments, until they are read.
    unread: Option<Reader<'r>>,
    /// The parameters, once the arguments are read.
    list: Option<Vec<NamedValue>>,
    result: Option<Any>,
    exception: Option<Any>,
}

impl<'r> DynamicRequest<'r> {
    /// The operation's name.
    #[must_use]
    pub const fn operation(&self) -> &'r str {
        self.operation
    }

    /// The id of the called object within its adapter.
    #[must_use]
    pub const fn object_id(&self) -> &'r [u8] {
        self.object_id
    }

    /// Returns BAD_OPERATION, for operations that the servant does not have.
    #[must_use]
    pub fn unknown_operation(&self) -> SystemException {
        unknown_operation()
    }

    /// Declares the parameters, in the order of the IDL, and returns them with the values of the caller; those of `out`
    /// parameters stay as they are. The servant sets the values of `inout` and `out` parameters here or through
    /// [`DynamicRequest::parameters`].
    ///
    /// # Errors
    /// What is wrong with the arguments: mostly MARSHAL where they are of other types, IMP_LIMIT where they nest too
    /// deep or share too much, NO_IMPLEMENT for values that contain themselves and are shared between arguments, and
    /// BAD_PARAM for such as cannot be kept apart. BAD_INV_ORDER with the standard's minor code 7 where it is called
    /// again, be it after one that failed, or after an exception was set.
    pub fn arguments(
        &mut self,
        mut parameters: Vec<NamedValue>,
    ) -> Result<&mut [NamedValue], SystemException> {
        let unread = self.unread.take();
        let Some(mut unread) = unread.filter(|_| self.exception.is_none()) else {
            let minor = minor::ARGUMENTS_OUT_OF_ORDER;
            return Err(raise::bad_inv_order(minor, Completion::No));
        };
        let sent = parameters.iter().filter(|one| one.mode.is_sent());
        let types = sent.map(|one| &one.type_code);
        let values = Any::read_all(types, &mut unread)?;
        let sent = parameters.iter_mut().filter(|one| one.mode.is_sent());
        for (parameter, value) in sent.zip(values) {
            parameter.value = value;
        }
        Ok(self.list.insert(parameters))
    }

    /// The parameters; empty before [`DynamicRequest::arguments`].
    pub fn parameters(&mut self) -> &mut [NamedValue] {
        self.list.as_deref_mut().unwrap_or_default()
    }

    /// Sets the result of the operation. Not called for `void`.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor code 9 where it is called twice, before a successful
    /// [`DynamicRequest::arguments`], or after an exception was set.
    pub fn set_result(&mut self, result: Any) -> Result<(), SystemException> {
        if self.list.is_none() || self.result.is_some() || self.exception.is_some() {
            let minor = minor::RESULT_OUT_OF_ORDER;
            return Err(raise::bad_inv_order(minor, Completion::No));
        }
        self.result = Some(result);
        Ok(())
    }

    /// Sets the exception that the operation raises: a user or a system exception. The last one replaces others, and
    /// any result.
    ///
    /// # Errors
    /// BAD_PARAM with the standard's minor code 21 where the Any contains no exception.
    pub fn set_exception(&mut self, exception: Any) -> Result<(), SystemException> {
        if exception.type_code().unaliased().kind() != Kind::Except {
            return Err(raise::bad_param(minor::NOT_AN_EXCEPTION, Completion::Maybe));
        }
        self.exception = Some(exception);
        Ok(())
    }

    fn reply(self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        if let Some(exception) = self.exception {
            let code = exception.type_code().unaliased();
            let id = code.id().unwrap_or_default().as_bytes();
            if SystemExceptionKind::from_repository_id(id).is_some() {
                return Err(SystemException::parse(&mut exception.reader())?);
            }
            return request.raise_with(|w| exception.write_value(w));
        }
        let returned = self.list.unwrap_or_default();
        let write = |w: &mut Writer<'_>| -> Result<(), EncodeError> {
            if let Some(result) = &self.result {
                result.write_value(w)?;
            }
            let mut returned = returned
                .iter()
                .filter(|parameter| parameter.mode.is_returned());
            returned.try_for_each(|parameter| parameter.write(w))
        };
        request.reply_with(write)
    }
}

fn unknown_operation() -> SystemException {
    raise::bad_operation(minor::OPERATION_UNKNOWN, Completion::No)
}
