//! Operations whose types are known at run time only: the dynamic invocation interface (CORBA 3.3 part 1, clause 11).

mod named_value;
mod request;

pub use named_value::{ArgMode, NamedValue};
pub use request::{Request, RequestError, UnknownUserException};
