//! Dynamic scheduling (RT-CORBA 1.2, module RTScheduling): distributable threads, which go from host to host with their calls, and
//! schedulers that rank them.
//!
//! A thread becomes a distributable one when it begins a scheduling segment ([`Current::begin_scheduling_segment`]). Its id and its
//! scheduling parameters travel with its calls, so that the thread that serves a call goes on as the same distributable thread. The
//! [`Scheduler`] of an ORB decides who goes first: it orders the requests that wait in a lane, and may set native priorities.

mod current;
mod id;
mod journey;
mod parameter;
mod ranked;
mod ready;
mod scheduler;
mod table;

pub use current::Current;
pub use id::IdType;
pub(crate) use journey::{Departure, Visit};
pub use parameter::SchedulingParameter;
pub(crate) use parameter::Traveller;
pub use ranked::{Band, Discipline, RankedScheduler};
pub use scheduler::{Scheduler, SegmentError};
pub(crate) use table::SchedulingCore;
pub use table::{DistributableThread, DtState};
