//! The interface of schedulers (RTScheduling::Scheduler).

use std::fmt;

use deckwatch_orb::SystemException;

use crate::{IdType, SchedulingParameter};

/// A scheduler. The ORB calls it at every scheduling point of its distributable threads. [`crate::RankedScheduler`] has
/// four disciplines; an application may implement its own.
///
/// The thread that a method concerns calls it, except [`Scheduler::cancel`]. `id` is the id of the distributable
/// thread, `name` the name of the segment.
pub trait Scheduler: Send + Sync + 'static {
    /// Returns the name of the discipline.
    fn scheduling_discipline_name(&self) -> &str;

    /// Returns the position of a request with this parameter among those that wait for a thread of a lane. The lowest
    /// is served first, equal ones in the order of arrival. Requests without a distributable thread are served last.
    fn order(&self, parameter: &SchedulingParameter) -> u64;

    /// Called when a distributable thread begins.
    ///
    /// # Errors
    /// [`SegmentError::UnsupportedSchedulingDiscipline`] for a parameter without the fields that the discipline uses.
    /// The segment does not begin then.
    fn begin_new_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// Called when a nested segment begins.
    ///
    /// # Errors
    /// As [`Scheduler::begin_new_scheduling_segment`].
    fn begin_nested_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// Called when the innermost segment continues with another parameter.
    ///
    /// # Errors
    /// As [`Scheduler::begin_new_scheduling_segment`]. The segment continues unchanged.
    fn update_scheduling_segment(
        &self,
        id: &IdType,
        name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError>;

    /// Called when a distributable thread ends.
    fn end_scheduling_segment(&self, id: &IdType, name: &str);

    /// Called when a nested segment ends and the outer one continues. `outer` has the execution time that is left.
    fn end_nested_scheduling_segment(&self, id: &IdType, name: &str, outer: &SchedulingParameter);

    /// Called when the thread sends a request and waits for its reply, `_is_a` and its like included. `parameter` is
    /// sent with it and has the execution time that is left; the scheduler may change it. A request that is sent again
    /// to another target passes this point again, after [`Scheduler::receive_other`], as the standard's interceptors do.
    fn send_request(&self, id: &IdType, parameter: &mut SchedulingParameter) {
        let _ = (id, parameter);
    }

    /// Called once when the thread sends a one-way or deferred request, which starts a distributable thread of its own
    /// at the server. `id` is the id of that thread, and `parameter` the implicit parameter of the segment; the
    /// scheduler may change it. A request that is sent again carries the same.
    fn send_oneway(&self, id: &IdType, parameter: &mut SchedulingParameter) {
        let _ = (id, parameter);
    }

    /// Called when the reply has arrived: results or a user exception. `parameter` is that of the segment that
    /// continues, with the execution time that is left.
    fn receive_reply(&self, id: &IdType, parameter: &SchedulingParameter) {
        let _ = (id, parameter);
    }

    /// Called when the request has ended in a system exception.
    fn receive_exception(&self, id: &IdType, parameter: &SchedulingParameter) {
        self.receive_reply(id, parameter);
    }

    /// Called when the request is sent again to another target; [`Scheduler::send_request`] follows.
    fn receive_other(&self, id: &IdType, parameter: &SchedulingParameter) {
        self.receive_reply(id, parameter);
    }

    /// Called when a distributable thread arrives with a request, on the thread that serves it.
    ///
    /// # Errors
    /// The exception for the caller. The servant is not called then.
    fn receive_request(
        &self,
        id: &IdType,
        parameter: &SchedulingParameter,
    ) -> Result<(), SystemException> {
        let _ = (id, parameter);
        Ok(())
    }

    /// Called when the request has been served. The calling thread no longer runs the distributable thread.
    fn send_reply(&self, id: &IdType) {
        let _ = id;
    }

    /// Called when the request has raised a system exception.
    fn send_exception(&self, id: &IdType) {
        self.send_reply(id);
    }

    /// Called when the distributable thread has been cancelled. Its next scheduling point raises THREAD_CANCELLED.
    fn cancel(&self, id: &IdType) {
        let _ = id;
    }
}

/// Why a segment does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// RTScheduling::Current::UNSUPPORTED_SCHEDULING_DISCIPLINE: the parameter lacks a field that the discipline uses.
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
