//! The interface of schedulers (RTScheduling::Scheduler).

use std::fmt;

use deckwatch_orb::SystemException;

use crate::{IdType, SchedulingParameter};

/// A scheduler. The ORB calls it at every scheduling point of its distributable threads. [`crate::RankedScheduler`] has four disciplines; an
/// application may write its own.
///
/// Each method is called by the thread that it concerns, except [`Scheduler::cancel`]. `id` is the id of the distributable thread, `name`
/// the name of the segment.
pub trait Scheduler: Send + Sync + 'static {
    /// Returns the name of the discipline.
    fn scheduling_discipline_name(&self) -> &str;

    /// Returns the place of a request with this parameter among those that wait for a thread of a lane. The lowest is served first, equal
    /// ones in the order of arrival. Requests of no distributable thread are served after all others.
    fn order(&self, parameter: &SchedulingParameter) -> u64;

    /// A distributable thread begins.
    ///
    /// # Errors
    /// [`SegmentError::UnsupportedSchedulingDiscipline`] for a parameter that lacks what the discipline uses; the segment does not begin.
    fn begin_new_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// A segment begins, nested in another.
    ///
    /// # Errors
    /// As [`Scheduler::begin_new_scheduling_segment`].
    fn begin_nested_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// The innermost segment continues with another parameter.
    ///
    /// # Errors
    /// As [`Scheduler::begin_new_scheduling_segment`]; the segment continues unchanged.
    fn update_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// A distributable thread ends.
    fn end_scheduling_segment(&self, id: &IdType, name: &str);

    /// A nested segment ends, and the outer one continues.
    fn end_nested_scheduling_segment(&self, id: &IdType, name: &str, outer: &SchedulingParameter);

    /// The thread sends a request and waits for its reply. `parameter` travels with it; the scheduler may change it.
    fn send_request(&self, id: &IdType, parameter: &mut SchedulingParameter) {
        let _ = (id, parameter);
    }

    /// The thread sends a one-way or deferred request, which starts a distributable thread of its own at the server. `id` is the id of
    /// that thread, and `parameter` the implicit parameter of the segment; the scheduler may change it.
    fn send_oneway(&self, id: &IdType, parameter: &mut SchedulingParameter) {
        let _ = (id, parameter);
    }

    /// The reply is here: results or a user exception.
    fn receive_reply(&self, id: &IdType) {
        let _ = id;
    }

    /// The request has ended in a system exception.
    fn receive_exception(&self, id: &IdType) {
        self.receive_reply(id);
    }

    /// The request is sent again to another place; [`Scheduler::send_request`] follows.
    fn receive_other(&self, id: &IdType) {
        self.receive_reply(id);
    }

    /// A distributable thread arrives with a request, on the thread that serves it.
    ///
    /// # Errors
    /// The exception that the caller gets; the servant is not called then.
    fn receive_request(
        &self,
        id: &IdType,
        parameter: &SchedulingParameter,
    ) -> Result<(), SystemException> {
        let _ = (id, parameter);
        Ok(())
    }

    /// The request has been served; its thread belongs to the lane again.
    fn send_reply(&self, id: &IdType) {
        let _ = id;
    }

    /// The request has raised a system exception.
    fn send_exception(&self, id: &IdType) {
        self.send_reply(id);
    }

    /// The distributable thread has been cancelled. Its next scheduling point raises THREAD_CANCELLED.
    fn cancel(&self, id: &IdType) {
        let _ = id;
    }
}

/// Why a segment does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// RTScheduling::Current::UNSUPPORTED_SCHEDULING_DISCIPLINE: the parameter lacks what the discipline uses.
    UnsupportedSchedulingDiscipline,
    /// THREAD_CANCELLED, or another system exception.
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
                f.write_str("The parameter lacks what the discipline of the scheduler uses.")
            }
            Self::System(exception) => fmt::Display::fmt(exception, f),
        }
    }
}

impl std::error::Error for SegmentError {}
