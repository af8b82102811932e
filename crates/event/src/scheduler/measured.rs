//! `DeckwatchScheduling::MeasuredTimes`: measured execution times are kept beside the declared ones. They change no
//! priority and refuse nothing; the anomalies of the schedule name what exceeds its declaration.

use std::borrow::Cow;
use std::sync::Arc;

use deckwatch_orb::SystemException;
use deckwatch_sched::{Anomaly, Measured, Measurements, Operations, Schedule};

use super::convert::{handle, handle_number};
use super::{Failure, SchedulingService, Service};
use crate::deckwatch_scheduling::{
    ExecutionTimes, MeasuredTimes, ReportedTimes, ReportedTimesReportExecutionTimesError,
};
use crate::handler_times::measured;
use crate::rtec_scheduler::UNKNOWNTASK;

/// The operations of [`MeasuredTimes`].
pub(super) const OPERATIONS: &[&[u8]] = &[b"report_execution_times", b"execution_times"];

impl Service {
    fn measured(&self) -> (Arc<Operations>, Measurements) {
        let state = self.state.lock("event.scheduler");
        (state.operations.clone(), state.measurements.clone())
    }

    /// Returns what the measured times say of a schedule of these operations. Analyses them if there is an overrun.
    ///
    /// # Errors
    /// TRANSIENT if too many analyses wait.
    pub(super) fn measured_anomalies(
        &self,
        operations: &Operations,
        schedule: &Schedule,
    ) -> Result<Vec<Anomaly>, SystemException> {
        let measurements = self.measured().1;
        if measurements.exceeding(operations).next().is_none() {
            return Ok(Vec::new());
        }
        let _analysis = self.shares.analysis()?;
        Ok(measurements.anomalies(operations, schedule))
    }
}

impl ReportedTimes for Service {
    fn report_execution_times(
        &self,
        times: &[ExecutionTimes],
    ) -> Result<(), ReportedTimesReportExecutionTimesError> {
        let unknown = ReportedTimesReportExecutionTimesError::UNKNOWNTASK(UNKNOWNTASK);
        let handles: Result<Vec<_>, Failure> = times.iter().map(|one| handle(one.handle)).collect();
        let handles = handles.map_err(|_| unknown.clone())?;
        let mut state = self.state.lock("event.scheduler");
        if handles.iter().any(|&of| state.operations.get(of).is_err()) {
            return Err(unknown);
        }
        for (of, one) in handles.into_iter().zip(times) {
            state.measurements.add(of, measured(one));
        }
        Ok(())
    }
}

impl MeasuredTimes for Service {
    fn execution_times<'a>(&'a self) -> Result<Cow<'a, [ExecutionTimes]>, SystemException> {
        let (_, measurements) = self.measured();
        let on_wire = measurements.all().map(|(of, measured)| ExecutionTimes {
            handle: handle_number(of),
            executions: measured.executions,
            exceeded: measured.exceeded,
            worst_case_ns: measured.worst_case_ns,
            longest_ns: measured.longest_ns,
            longest_elapsed_ns: measured.longest_elapsed_ns,
        });
        Ok(on_wire.collect::<Vec<_>>().into())
    }
}

impl SchedulingService {
    /// Returns the operations that took longer than they declare, by name.
    #[must_use]
    pub fn overruns(&self) -> Vec<(String, Measured)> {
        let (operations, measurements) = self.service.measured();
        let named = measurements.exceeding(&operations);
        named
            .map(|(of, measured)| {
                let name = &operations.infos()[of.index()].entry_point;
                (name.clone(), *measured)
            })
            .collect()
    }

    /// Returns in words which operations took longer than they declare, and which deadlines can be missed with the
    /// measured times. Analyses the operations twice if there is an overrun.
    #[must_use]
    pub fn measured_anomalies(&self) -> Vec<String> {
        let (operations, measurements) = self.service.measured();
        if measurements.exceeding(&operations).next().is_none() {
            return Vec::new();
        }
        let Ok(schedule) = Schedule::compute(&operations, self.service.options.settings) else {
            let named = self.overruns().into_iter();
            return named
                .map(|(name, measured)| format!("{name}: {measured}"))
                .collect();
        };
        let anomalies = measurements.anomalies(&operations, &schedule);
        let words = anomalies.iter().map(|one| one.describe(&operations));
        words.collect()
    }
}
