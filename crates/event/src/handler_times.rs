//! Execution times of a consumer's handler, measured where it runs and reported to a scheduling service.
//!
//! A consumer wraps its servant in [`MeasuredConsumer`]. [`ReportedHandler`] finds the declared worst case in the
//! scheduling service and reports what was measured to it, whenever the consumer calls [`ReportedHandler::report`]. A
//! consumer without a right to the scheduling service reports to its own proxy: [`ReportedHandler::of_dependency`].

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use deckwatch_orb::{ObjectRef, SystemException};
use deckwatch_os::clock;
use deckwatch_sched::Measured;

use crate::deckwatch_scheduling::{
    ExecutionTimes, MeasuredTimesRef, ReportedTimesRef,
    ReportedTimesReportExecutionTimesError as ReportError,
};
use crate::received::{EventConsumer, ReceivedEvents};
use crate::rtec_event_comm::{Event, PushConsumer};
use crate::rtec_scheduler::{SchedulerGetError, SchedulerLookupError, SchedulerRef};
use crate::scheduler::UNIT_NS;

/// Execution times of a handler. Several threads may run it at once. Counting takes no lock and no memory.
#[derive(Debug, Default)]
pub struct HandlerTimes {
    worst_case_ns: u64,
    executions: AtomicU64,
    exceeded: AtomicU64,
    longest_ns: AtomicU64,
    longest_elapsed_ns: AtomicU64,
}

impl HandlerTimes {
    /// Creates the counters of a handler with this declared worst-case execution time.
    #[must_use]
    pub fn new(worst_case: Duration) -> Self {
        Self {
            worst_case_ns: u64::try_from(worst_case.as_nanos()).unwrap_or(u64::MAX),
            ..Self::default()
        }
    }

    /// Runs a handler and counts its processor time (CLOCK_THREAD_CPUTIME_ID) and its elapsed time.
    pub fn measure<T>(&self, handler: impl FnOnce() -> T) -> T {
        let start = (clock::monotonic_ns(), clock::thread_cpu_ns());
        let result = handler();
        let processor_ns = since(start.1, clock::thread_cpu_ns());
        self.count(processor_ns, since(start.0, clock::monotonic_ns()));
        result
    }

    fn count(&self, processor_ns: u64, elapsed_ns: u64) {
        self.executions.fetch_add(1, Relaxed);
        if processor_ns > self.worst_case_ns {
            self.exceeded.fetch_add(1, Relaxed);
        }
        self.longest_ns.fetch_max(processor_ns, Relaxed);
        self.longest_elapsed_ns.fetch_max(elapsed_ns, Relaxed);
    }

    /// Returns what was measured since the last report.
    #[must_use]
    pub fn read(&self) -> Measured {
        self.each(|counter| counter.load(Relaxed))
    }

    /// As [`Self::read`], and starts anew. An execution that ends meanwhile is counted here or in the next report.
    fn take(&self) -> Measured {
        self.each(|counter| counter.swap(0, Relaxed))
    }

    fn each(&self, read: impl Fn(&AtomicU64) -> u64) -> Measured {
        Measured {
            // First: a count of executions is never below one of those that exceeded.
            exceeded: read(&self.exceeded),
            executions: read(&self.executions),
            worst_case_ns: self.worst_case_ns,
            longest_ns: read(&self.longest_ns),
            longest_elapsed_ns: read(&self.longest_elapsed_ns),
        }
    }

    fn put_back(&self, taken: Measured) {
        self.executions.fetch_add(taken.executions, Relaxed);
        self.exceeded.fetch_add(taken.exceeded, Relaxed);
        self.longest_ns.fetch_max(taken.longest_ns, Relaxed);
        self.longest_elapsed_ns
            .fetch_max(taken.longest_elapsed_ns, Relaxed);
    }
}

fn since(start_ns: i64, end_ns: i64) -> u64 {
    u64::try_from(end_ns.saturating_sub(start_ns)).unwrap_or(0)
}

/// A consumer whose `push` is measured.
#[derive(Clone, Debug)]
pub struct MeasuredConsumer<C> {
    consumer: C,
    times: Arc<HandlerTimes>,
}

impl<C> MeasuredConsumer<C> {
    /// Wraps a consumer. Several consumers with one handler may share the counters.
    pub fn new(consumer: C, times: Arc<HandlerTimes>) -> Self {
        Self { consumer, times }
    }
}

impl<C: PushConsumer> PushConsumer for MeasuredConsumer<C> {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        self.times.measure(|| self.consumer.push(data))
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.consumer.disconnect_push_consumer()
    }
}

impl<C: EventConsumer> EventConsumer for MeasuredConsumer<C> {
    fn push(&self, events: ReceivedEvents<'_>) -> Result<(), SystemException> {
        self.times.measure(|| self.consumer.push(events))
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.consumer.disconnect_push_consumer()
    }
}

/// A handler whose execution times are reported to a scheduling service.
#[derive(Clone, Debug)]
pub struct ReportedHandler {
    handle: i32,
    times: Arc<HandlerTimes>,
    /// A scheduling service, or the proxy of the consumer.
    to: ReportedTimesRef,
}

impl ReportedHandler {
    /// Finds the operation of a handler in a scheduling service, with its declared worst case.
    ///
    /// # Errors
    /// UNKNOWN_TASK if the service has no operation of this name; the exceptions of the calls.
    pub fn find(scheduler: &ObjectRef, entry_point: &str) -> Result<Self, SchedulerLookupError> {
        let operations = SchedulerRef::unchecked_narrow(scheduler.clone());
        let handle = operations.lookup(entry_point)?;
        let info = operations.get(handle).map_err(|error| match error {
            SchedulerGetError::UNKNOWNTASK(unknown) => SchedulerLookupError::UNKNOWNTASK(unknown),
            SchedulerGetError::SYNCHRONIZATIONFAILURE(failure) => {
                SchedulerLookupError::SYNCHRONIZATIONFAILURE(failure)
            }
            SchedulerGetError::System(exception) => SchedulerLookupError::System(exception),
        })?;
        let worst_case_ns = info.worst_case_execution_time.saturating_mul(UNIT_NS);
        Ok(Self {
            handle,
            times: Arc::new(HandlerTimes::new(Duration::from_nanos(worst_case_ns))),
            to: ReportedTimesRef::unchecked_narrow(scheduler.clone()),
        })
    }

    /// Returns the handler of an operation that a dependency of a real-time channel's consumer names. It reports to the
    /// consumer's proxy, so that the consumer needs no right but to consume. The handle and the declared worst case are
    /// those of the schedule.
    #[must_use]
    pub fn of_dependency(proxy: &ObjectRef, handle: i32, worst_case: Duration) -> Self {
        Self {
            handle,
            times: Arc::new(HandlerTimes::new(worst_case)),
            to: ReportedTimesRef::unchecked_narrow(proxy.clone()),
        }
    }

    /// Returns the handle of its operation, which the consumer's QoS names.
    #[must_use]
    pub fn handle(&self) -> i32 {
        self.handle
    }

    /// Returns its counters.
    #[must_use]
    pub fn times(&self) -> &Arc<HandlerTimes> {
        &self.times
    }

    /// Reports what was measured since the last report. What a failed call would have reported stays for the next one.
    ///
    /// # Errors
    /// UNKNOWN_TASK if the service no longer has the operation, or no dependency of the proxy's consumer names it;
    /// BAD_OPERATION from a service or a proxy of TAO's, which take no measured times; the exceptions of the call.
    pub fn report(&self) -> Result<(), ReportError> {
        let taken = self.times.take();
        if taken.executions == 0 {
            return Ok(());
        }
        let times = ExecutionTimes {
            handle: self.handle,
            executions: taken.executions,
            exceeded: taken.exceeded,
            worst_case_ns: taken.worst_case_ns,
            longest_ns: taken.longest_ns,
            longest_elapsed_ns: taken.longest_elapsed_ns,
        };
        let reported = self.to.report_execution_times(&[times]);
        reported.inspect_err(|_| self.times.put_back(taken))
    }
}

/// Returns what was reported to a scheduling service, with the name of each operation.
///
/// # Errors
/// BAD_OPERATION from a service of TAO's; the exceptions of the calls.
pub fn reported(scheduler: &ObjectRef) -> Result<Vec<(String, Measured)>, SystemException> {
    let service = MeasuredTimesRef::unchecked_narrow(scheduler.clone());
    let operations = SchedulerRef::unchecked_narrow(scheduler.clone());
    let mut all = Vec::new();
    for times in service.execution_times()? {
        let info = match operations.get(times.handle) {
            Ok(info) => info,
            Err(SchedulerGetError::System(exception)) => return Err(exception),
            // No operation of a service vanishes.
            Err(_) => continue,
        };
        all.push((info.entry_point, measured(&times)));
    }
    Ok(all)
}

pub(crate) fn measured(times: &ExecutionTimes) -> Measured {
    Measured {
        executions: times.executions,
        exceeded: times.exceeded,
        worst_case_ns: times.worst_case_ns,
        longest_ns: times.longest_ns,
        longest_elapsed_ns: times.longest_elapsed_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the processor busy until the thread has used this much processor time.
    fn work_for(ns: i64) {
        let end_ns = clock::thread_cpu_ns() + ns;
        while clock::thread_cpu_ns() < end_ns {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn an_execution_counts_with_its_processor_time_not_with_the_time_that_it_waits() {
        let times = HandlerTimes::new(Duration::from_micros(200));
        let slept = times.measure(|| {
            // Longer than the worst case, but without the processor.
            clock::sleep_until(clock::monotonic_ns() + 2_000_000);
            7
        });
        assert_eq!(slept, 7);
        let read = times.read();
        assert!(read.longest_elapsed_ns >= 2_000_000, "{read:?}");
        assert!(read.longest_ns < read.longest_elapsed_ns, "{read:?}");
        times.measure(|| work_for(400_000));
        let read = times.read();
        assert_eq!((read.executions, read.worst_case_ns), (2, 200_000));
        assert!(read.longest_ns >= 400_000 && read.exceeded >= 1, "{read:?}");
    }

    #[test]
    fn only_executions_above_the_worst_case_exceed_it_and_a_report_starts_anew() {
        let times = HandlerTimes::new(Duration::from_nanos(100));
        for processor_ns in [99, 100, 101, 7] {
            times.count(processor_ns, 2 * processor_ns);
        }
        let expected = Measured {
            executions: 4,
            exceeded: 1,
            worst_case_ns: 100,
            longest_ns: 101,
            longest_elapsed_ns: 202,
        };
        assert_eq!(times.read(), expected);
        assert_eq!(times.take(), expected);
        times.count(50, 60);
        times.put_back(expected);
        let both = Measured {
            executions: 5,
            ..expected
        };
        assert_eq!(times.read(), both);
    }
}
