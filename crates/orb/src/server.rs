//! Answering requests: from a whole message to its reply.

mod collocated;
mod detours;
pub(crate) mod dispatch;
mod implicit_operations;
pub(crate) mod priority;
mod times;
pub(crate) mod upcall;
