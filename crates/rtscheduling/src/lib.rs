//! Dynamic scheduling (RT-CORBA 1.2, module RTScheduling): distributable threads and their schedulers.
//!
//! A thread becomes a distributable thread when it begins a scheduling segment ([`Current::begin_scheduling_segment`]).
//! Its id and its scheduling parameter are sent with its calls in the service context SchedulingInfo. The thread that
//! serves a call continues as the same distributable thread. The [`Scheduler`] of an ORB orders the requests that wait
//! in a lane, and may set native priorities.
//!
//! An ORB has a scheduler if it is made with one ([`SchedulerBuilder::scheduler`]). Portable interceptors call the
//! scheduler, as the standard requires. An ORB without a scheduler has no cost for it.
//!
//! ```
//! use deckwatch_orb::Orb;
//! use deckwatch_rtscheduling::{RankedScheduler, SchedulerBuilder, SchedulerOrb, SchedulingParameter};
//!
//! let orb = Orb::builder().scheduler(RankedScheduler::most_important_first()).build().expect("an ORB");
//! let current = orb.rt_scheduler_current().expect("it has a scheduler");
//! let urgent = SchedulingParameter { importance: Some(7), ..SchedulingParameter::default() };
//! current.begin_scheduling_segment("alarm", urgent, None).expect("the parameter has an importance");
//! // Calls from here on carry the id of the thread and its importance.
//! current.end_scheduling_segment("alarm").expect("within the segment");
//! ```

#![forbid(unsafe_code)]

mod current;
mod id;
mod interceptor;
pub mod limits;
mod orb;
mod parameter;
mod raise;
mod ranked;
mod ready;
mod scheduler;
mod segments;
mod table;

pub use current::Current;
pub use id::IdType;
pub use orb::{SchedulerBuilder, SchedulerOrb};
pub use parameter::SchedulingParameter;
pub use ranked::{Band, Discipline, RankedScheduler};
pub use scheduler::{Scheduler, SegmentError};
pub use table::{DistributableThread, DtState};
