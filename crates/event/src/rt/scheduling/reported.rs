//! Execution times that consumers report to their proxies go on to the scheduler.

use super::{Scheduling, Source};
use crate::deckwatch_scheduling::{
    ExecutionTimes, ReportedTimes as _, ReportedTimesRef,
    ReportedTimesReportExecutionTimesError as ReportError,
};
use crate::rtec_scheduler::UNKNOWNTASK;

impl Scheduling {
    /// # Errors
    /// UNKNOWN_TASK for a handle that the scheduler does not have, or of a schedule without one; the exceptions of the
    /// scheduler: BAD_OPERATION from TAO's.
    pub(in crate::rt) fn report(&self, times: &[ExecutionTimes]) -> Result<(), ReportError> {
        match &self.source {
            Source::Own(service) => service.report_execution_times(times),
            Source::Other(scheduler) => {
                let to = ReportedTimesRef::unchecked_narrow(scheduler.object().clone());
                to.report_execution_times(times)
            }
            Source::Fixed(_) => Err(UNKNOWNTASK.into()),
        }
    }
}
