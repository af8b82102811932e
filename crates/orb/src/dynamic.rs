//! Operations whose types are known at run time only: the dynamic invocation and skeleton interfaces
//! (CORBA 3.3 part 1, clauses 11 and 12).

mod named_value;
mod request;
mod servant;
mod several;

pub use named_value::{ArgMode, NamedValue};
pub use request::{Request, RequestError, UnknownUserException};
pub use servant::{DynamicImplementation, DynamicRequest, DynamicServant};
