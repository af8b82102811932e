//! GIOP messages, service contexts, IORs and object URLs (CORBA 3.3 part 2, clauses 7.6 and 9); no socket, no clock.
//!
//! [`Frame`] finds the extent of a message in octets as they arrive. [`Message::parse`] reads a message and borrows
//! from it. The `begin` of each header appends one to a caller's buffer. Bad octets end in a [`ProtocolError`];
//! [`limits`] bounds the others.

#![forbid(unsafe_code)]

mod assembly;
mod context;
mod error;
mod exception;
mod exception_detail;
mod explain;
mod foreign_minor;
mod fragment;
mod frame;
pub mod fuzzing;
mod header;
pub mod invocation;
pub mod ior;
pub mod limits;
mod listen_point;
mod locate;
mod message;
pub mod minor;
mod open;
pub mod own_minor;
mod priority_context;
mod reply;
mod request;
mod target;
pub mod url;
mod utc;

pub use assembly::Assembly;
pub use context::{ServiceContext, ServiceContexts, context_id};
pub use deckwatch_cdr::{ByteOrder, Codec, Version};
pub use error::ProtocolError;
pub use exception::{Completion, SystemException, SystemExceptionKind};
pub use exception_detail::{exception_detail_context, parse_exception_detail};
pub use explain::Explanation;
pub use fragment::{Part, Parts};
pub use frame::Frame;
pub use header::{HEADER_SIZE, Header, MessageKind};
pub use ior::Ior;
pub use listen_point::ListenPoint;
pub use locate::{
    LocateReply, LocateReplyHeader, LocateRequest, LocateRequestHeader, LocateStatus,
};
pub use message::{Fragment, Message};
pub use open::{
    Format, OpenMessage, write_cancel_request, write_close_connection, write_message_error,
};
pub use priority_context::{
    parse_priority_context, parse_priority_range_context, priority_context, priority_range_context,
};
pub use reply::{Reply, ReplyHeader, ReplyStatus};
pub use request::{Request, RequestHeader, Response};
pub use target::{TaggedProfileRef, Target};
pub use url::{Corbaloc, Corbaname, ObjectUrl};
pub use utc::UtcT;
