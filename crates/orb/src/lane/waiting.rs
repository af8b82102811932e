//! Requests that wait within a lane: for a thread of it, or for their start time.

mod admission;
mod keeper;
mod start_time;

pub(crate) use keeper::{Behind, Neighbours, RequestBuffers, Waiting, WaitingRoom};
pub(crate) use start_time::EarlyRequests;
