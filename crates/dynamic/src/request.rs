//! Calling an operation without a stub (CORBA 3.3 part 1, clause 11.2).

use std::fmt;
use std::time::Duration;

use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::{Any, DecodeError, EncodeError, Reader, TypeCode, Unwritten, Write, Writer};
use deckwatch_orb::{Completion, ObjectRef, PendingReply, SystemException, minor};

use crate::{NamedValue, raise};

/// A call of an operation: before it is sent, under way, or done. A request is used once.
///
/// ```
/// # use deckwatch_cdr::{Any, TypeCode};
/// # use deckwatch_dynamic::{CreateRequest, NamedValue};
/// # use deckwatch_orb::ObjectRef;
/// # fn square(calculator: &ObjectRef) -> Result<f64, Box<dyn std::error::Error>> {
/// let mut request = calculator.create_request("square");
/// request.add_arg(NamedValue::of_in("x", Any::from_value(&1.5)?));
/// request.set_return_type(TypeCode::double());
/// request.invoke()?;
/// let result = request.return_value().ok_or("the operation returns nothing")?;
/// Ok(result.extract()?)
/// # }
/// ```
#[derive(Debug)]
pub struct Request {
    target: ObjectRef,
    operation: String,
    arguments: Vec<NamedValue>,
    result: TypeCode,
    exceptions: Vec<TypeCode>,
    context: Option<Vec<(String, String)>>,
    return_value: Option<Any>,
    state: State,
}

#[derive(Debug)]
enum State {
    Unsent,
    Deferred(PendingReply),
    Retrieved,
    /// Invoked, or sent one-way.
    NotDeferred,
}

/// A user exception that the operation declares, with its type.
#[derive(Clone, Debug, PartialEq)]
pub struct UnknownUserException {
    /// The exception.
    pub exception: Any,
}

/// Why a dynamic request failed.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestError {
    /// The object raised one of the exceptions that the request declares.
    User(UnknownUserException),
    /// Any other failure. A user exception that the request does not declare is UNKNOWN with the standard's minor code
    /// 1.
    System(SystemException),
}

/// `Object::create_request` of the standard.
pub trait CreateRequest {
    /// Begins a request for an operation, without arguments, result and exceptions; an attribute `a` is `_get_a` and
    /// `_set_a`.
    #[must_use]
    fn create_request(&self, operation: &str) -> Request;
}

impl CreateRequest for ObjectRef {
    fn create_request(&self, operation: &str) -> Request {
        Request {
            target: self.clone(),
            operation: operation.to_owned(),
            arguments: Vec::new(),
            result: TypeCode::void(),
            exceptions: Vec::new(),
            context: None,
            return_value: None,
            state: State::Unsent,
        }
    }
}

impl Request {
    /// The object that is called.
    #[must_use]
    pub const fn target(&self) -> &ObjectRef {
        &self.target
    }

    /// The operation's name.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// Adds the next argument in the order of the IDL.
    pub fn add_arg(&mut self, argument: NamedValue) {
        self.arguments.push(argument);
    }

    /// The arguments. After the call `out` and `inout` arguments have the values of the reply.
    #[must_use]
    pub fn arguments(&self) -> &[NamedValue] {
        &self.arguments
    }

    /// Sets the type that the operation returns; `void` by default.
    pub fn set_return_type(&mut self, type_code: TypeCode) {
        self.result = type_code;
    }

    /// Adds an exception that the operation may raise.
    pub fn add_exception(&mut self, type_code: TypeCode) {
        self.exceptions.push(type_code);
    }

    /// Sets the properties of the context that go with the request, for operations that declare a context.
    pub fn set_context(&mut self, properties: &[(&str, &str)]) {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        self.context = Some(properties.iter().map(owned).collect());
    }

    /// What the operation returned; `None` before that, and for `void`.
    #[must_use]
    pub const fn return_value(&self) -> Option<&Any> {
        self.return_value.as_ref()
    }

    /// Calls the operation and waits for its results.
    ///
    /// # Errors
    /// [`RequestError`]; BAD_INV_ORDER with the standard's minor code 5 for a request that was used before.
    pub fn invoke(&mut self) -> Result<(), RequestError> {
        self.require_unsent(minor::REQUEST_INVOKED_AGAIN)?;
        self.state = State::NotDeferred;
        let results = self.target.invoke(
            &self.operation,
            |w| self.write_arguments(w),
            |r| self.read_results(r),
            |id, r| self.read_exception(id, r),
        )?;
        self.keep(results);
        Ok(())
    }

    /// Sends the request as a one-way, whatever the operation is, with the sync scope in force. There are no results.
    ///
    /// # Errors
    /// As [`ObjectRef::invoke_oneway`]; BAD_INV_ORDER with the standard's minor code 10 where it was called or sent
    /// before.
    pub fn send_oneway(&mut self) -> Result<(), SystemException> {
        self.require_unsent(minor::REQUEST_SENT_AGAIN)?;
        self.target
            .invoke_oneway(&self.operation, |w| self.write_arguments(w))?;
        self.state = State::NotDeferred;
        Ok(())
    }

    /// Sends the request and does not wait for its reply. All asynchronous calls to one server share a connection. The
    /// request is cancelled at the server if it is dropped before its response was taken.
    ///
    /// # Errors
    /// The exception that kept it from being sent; NO_RESOURCES above [`deckwatch_orb::limits::OUTSTANDING_MAX`];
    /// BAD_INV_ORDER with the standard's minor code 10 for a request that was used before.
    pub fn send_deferred(&mut self) -> Result<(), SystemException> {
        self.require_unsent(minor::REQUEST_SENT_AGAIN)?;
        let write = |w: &mut Writer<'_>| self.write_arguments(w);
        let sent = self.target.send_deferred(&self.operation, write)?;
        self.state = State::Deferred(sent);
        Ok(())
    }

    /// Whether [`Request::response`] would not wait: the reply is here, or will never come.
    ///
    /// # Errors
    /// BAD_INV_ORDER with the standard's minor codes: 11 before it was sent, 12 after the response was taken, 13 where
    /// it was not deferred.
    pub fn poll_response(&mut self) -> Result<bool, SystemException> {
        match &self.state {
            State::Deferred(reply) => reply.wait(Some(Duration::ZERO)),
            state => Err(state.no_response()),
        }
    }

    /// The reply of a request that was deferred, until [`Request::response`] takes it.
    pub(crate) fn reply(&self) -> Option<&PendingReply> {
        match &self.state {
            State::Deferred(reply) => Some(reply),
            _ => None,
        }
    }

    /// Waits for the reply of a deferred request, and takes its results.
    ///
    /// # Errors
    /// As [`Request::invoke`] and [`Request::poll_response`]; TRANSIENT where the calling thread is the last that could
    /// read the reply: another thread may still fetch it.
    pub fn response(&mut self) -> Result<(), RequestError> {
        let reply = match std::mem::replace(&mut self.state, State::Retrieved) {
            State::Deferred(reply) => reply,
            state => {
                let exception = state.no_response();
                self.state = state;
                return Err(exception.into());
            }
        };
        if let Err(exception) = reply.wait(None) {
            self.state = State::Deferred(reply);
            return Err(exception.into());
        }
        let taken = reply.take_or_call_again(
            |w| self.write_arguments(w),
            |r| self.read_results(r),
            |id, r| self.read_exception(id, r),
        );
        let ended = raise::bad_inv_order(minor::ORB_SHUT_DOWN, Completion::Maybe);
        let results = taken.unwrap_or_else(|| Err(ended.into()))?;
        self.keep(results);
        Ok(())
    }

    fn require_unsent(&self, minor: u32) -> Result<(), SystemException> {
        match self.state {
            State::Unsent => Ok(()),
            _ => Err(raise::bad_inv_order(minor, Completion::No)),
        }
    }

    fn write_arguments(&self, w: &mut Writer<'_>) -> Result<Unwritten<'_>, EncodeError> {
        let sent = self.arguments.iter();
        let mut sent = sent.filter(|argument| argument.mode.is_sent());
        let mut next = sent.next();
        while let Some(argument) = next {
            next = sent.next();
            if next.is_none() && self.context.is_none() {
                return argument.write_last(w);
            }
            argument.write(w)?;
        }
        let Some(properties) = &self.context else {
            return Ok(().into());
        };
        w.write_count(2 * properties.len())?;
        for (name, value) in properties {
            name.write(w)?;
            value.write(w)?;
        }
        Ok(().into())
    }

    fn read_results(&self, r: &mut Reader<'_>) -> Result<Results, DecodeError> {
        let returns = self.result.unaliased().kind() != Kind::Void;
        let returned = self.arguments.iter();
        let returned = returned.filter(|argument| argument.mode.is_returned());
        let types = returned.map(|argument| &argument.type_code);
        let result = returns.then_some(&self.result);
        let mut values = Any::read_all(result.into_iter().chain(types), r)?.into_iter();
        Ok(Results {
            return_value: if returns { values.next() } else { None },
            arguments: values.collect(),
        })
    }

    fn keep(&mut self, results: Results) {
        self.return_value = results.return_value;
        let arguments = self.arguments.iter_mut();
        let returned = arguments.filter(|argument| argument.mode.is_returned());
        for (argument, value) in returned.zip(results.arguments) {
            argument.value = value;
        }
    }

    fn read_exception(
        &self,
        id: &str,
        r: &mut Reader<'_>,
    ) -> Result<Option<RequestError>, DecodeError> {
        let mut known = self.exceptions.iter().map(TypeCode::unaliased);
        let Some(code) = known.find(|code| code.id() == Some(id)) else {
            return Ok(None);
        };
        let exception = Any::read_members(code, r)?;
        let raised = UnknownUserException { exception };
        Ok(Some(RequestError::User(raised)))
    }
}

/// The contents of a reply.
struct Results {
    return_value: Option<Any>,
    /// Those of `inout` and `out` arguments in order.
    arguments: Vec<Any>,
}

impl State {
    /// Why there is no response to ask for.
    fn no_response(&self) -> SystemException {
        let minor = match self {
            Self::Unsent => minor::REQUEST_NOT_SENT,
            Self::Retrieved => minor::RESPONSE_RETRIEVED,
            Self::NotDeferred | Self::Deferred(_) => minor::REQUEST_NOT_DEFERRED,
        };
        raise::bad_inv_order(minor, Completion::No)
    }
}

impl From<SystemException> for RequestError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl fmt::Display for UnknownUserException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object raised {}", self.exception.type_code())
    }
}

impl std::error::Error for UnknownUserException {}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(exception) => exception.fmt(f),
            Self::System(exception) => exception.fmt(f),
        }
    }
}

impl std::error::Error for RequestError {}
