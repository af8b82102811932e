//! What decides who goes first (RTScheduling::Scheduler).

use std::fmt;

use super::{IdType, SchedulingParameter};
use crate::SystemException;

/// A scheduler, told of every step of the distributable threads of its ORB. [`super::RankedScheduler`] has four disciplines; an
/// application may bring its own.
///
/// Each word is called by the thread it is about, but for [`Scheduler::cancel`]. `id` is the distributable thread's, `name` the segment's.
pub trait Scheduler: Send + Sync + 'static {
    /// The name of the discipline (`scheduling_discipline_name`).
    fn scheduling_discipline_name(&self) -> &str;

    /// Where a request of this parameter stands among those that wait for a thread of a lane: the lowest is served first, and among
    /// equals the one that came first. Called for each request that waits; requests of no distributable thread stand behind all others.
    fn order(&self, parameter: &SchedulingParameter) -> u64;

    /// A distributable thread begins.
    ///
    /// # Errors
    /// [`SegmentError::UnsupportedSchedulingDiscipline`] for a parameter it cannot go by; the segment does not begin then.
    fn begin_new_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// A segment begins within another.
    ///
    /// # Errors
    /// As [`Scheduler::begin_new_scheduling_segment`].
    fn begin_nested_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// The innermost segment goes on with another parameter.
    ///
    /// # Errors
    /// As [`Scheduler::begin_new_scheduling_segment`]; the segment goes on as before then.
    fn update_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// A distributable thread ends.
    fn end_scheduling_segment(&self, id: &IdType, name: &str);

    /// A segment ends, and the one around it goes on.
    fn end_nested_scheduling_segment(&self, id: &IdType, name: &str, outer: &SchedulingParameter);

    /// The thread is about to make a call; `parameter` is what travels with it, and may be changed.
    fn send_request(&self, id: &IdType, parameter: &mut SchedulingParameter) {
        let _ = (id, parameter);
    }

    /// The thread is about to send a request whose reply it does not wait for. That begins a distributable thread of its own at the
    /// server: `id` is that one's, and `parameter`, which may be changed, the implicit one of the segment.
    fn send_oneway(&self, id: &IdType, parameter: &mut SchedulingParameter) {
        let _ = (id, parameter);
    }

    /// The call has been answered by results or a user exception.
    fn receive_reply(&self, id: &IdType) {
        let _ = id;
    }

    /// The call has failed.
    fn receive_exception(&self, id: &IdType) {
        self.receive_reply(id);
    }

    /// A distributable thread arrives with a request, on the thread that is to serve it.
    ///
    /// # Errors
    /// What the request is answered by; it is not served then.
    fn receive_request(
        &self,
        id: &IdType,
        parameter: &SchedulingParameter,
    ) -> Result<(), SystemException> {
        let _ = (id, parameter);
        Ok(())
    }

    /// The request has been served; its thread is the lane's again.
    fn send_reply(&self, id: &IdType) {
        let _ = id;
    }

    /// The request has raised a system exception.
    fn send_exception(&self, id: &IdType) {
        self.send_reply(id);
    }

    /// The distributable thread has been cancelled; it hears of it at its next scheduling point.
    fn cancel(&self, id: &IdType) {
        let _ = id;
    }
}

/// Why a segment does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// RTScheduling::Current::UNSUPPORTED_SCHEDULING_DISCIPLINE: the parameter lacks what the scheduler goes by.
    UnsupportedSchedulingDiscipline,
    /// THREAD_CANCELLED, or what else stands in the way.
    System(SystemException),
}

impl From<SystemException> for SegmentError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedSchedulingDiscipline => {
                f.write_str("The parameter lacks what the scheduler goes by.")
            }
            Self::System(exception) => fmt::Display::fmt(exception, f),
        }
    }
}

impl std::error::Error for SegmentError {}
