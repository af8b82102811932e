//! The distributable thread of the calling thread, and its segments on this thread.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::{Completion, SystemException};
use deckwatch_os::schedule::processor_time;

use crate::table::Threads;
use crate::{IdType, SchedulingParameter, raise};

thread_local! {
    static ACTIVE: Cell<Option<Active>> = const { Cell::new(None) };
}

/// The distributable thread of a thread.
pub(crate) struct Active {
    pub(crate) threads: Arc<Threads>,
    pub(crate) id: IdType,
    pub(crate) outermost: Segment,
    pub(crate) nested: Vec<Segment>,
    /// The request that it arrived with. The end of that request ends the outermost segment. `None` if it began on this
    /// thread.
    request: Option<u32>,
    /// The thread's distributable thread before the request.
    before: Option<Box<Self>>,
}

pub(crate) struct Segment {
    pub(crate) name: String,
    /// As it was set.
    pub(crate) parameter: SchedulingParameter,
    pub(crate) implicit: Option<SchedulingParameter>,
    /// The processor time of the calling thread when the segment began. Zero if the parameter has no execution time:
    /// the clock is not read then.
    begun: Duration,
    /// Processor time that other threads have used for the segment's requests.
    elsewhere: Duration,
}

impl Segment {
    /// Begins a segment on the calling thread.
    pub(crate) fn begin(
        name: &str,
        parameter: SchedulingParameter,
        implicit: Option<SchedulingParameter>,
    ) -> Self {
        let has_time = parameter.execution_time.is_some();
        Self {
            name: name.to_owned(),
            parameter,
            implicit,
            begun: if has_time {
                processor_time()
            } else {
                Duration::ZERO
            },
            elsewhere: Duration::ZERO,
        }
    }

    /// Returns the parameter with the execution time that is left.
    pub(crate) fn remaining(&self) -> SchedulingParameter {
        let execution_time = self.parameter.execution_time.map(|stated| {
            let used = processor_time().saturating_sub(self.begun);
            stated.saturating_sub(used.saturating_add(self.elsewhere))
        });
        SchedulingParameter {
            execution_time,
            ..self.parameter
        }
    }
}

impl Active {
    /// Makes a distributable thread that begins here. The caller has counted it.
    pub(crate) const fn new(threads: Arc<Threads>, id: IdType, outermost: Segment) -> Self {
        Self {
            threads,
            id,
            outermost,
            nested: Vec::new(),
            request: None,
            before: None,
        }
    }

    pub(crate) fn innermost(&self) -> &Segment {
        self.nested.last().unwrap_or(&self.outermost)
    }

    /// Returns the parameter of the innermost segment, with the execution time that is left.
    pub(crate) fn remaining(&self) -> SchedulingParameter {
        self.innermost().remaining()
    }

    /// Takes the processor time that another thread has used for a request off the execution time of all segments.
    pub(crate) fn charge(&mut self, used: Duration) {
        for segment in self.nested.iter_mut().chain([&mut self.outermost]) {
            segment.elsewhere = segment.elsewhere.saturating_add(used);
        }
    }

    /// Returns the processor time that the request has used and its caller's thread has not. `None` if the parameter
    /// that arrived has no execution time.
    fn used_by_request(&self) -> Option<Duration> {
        let Segment {
            parameter,
            begun,
            elsewhere,
            ..
        } = &self.outermost;
        parameter.execution_time?;
        // A collocated call runs on its caller's thread, whose own clock counts it.
        let is_callers = |before: &Self| before.is_of(&self.threads) && before.id == self.id;
        let here = if self.before.as_deref().is_some_and(is_callers) {
            Duration::ZERO
        } else {
            processor_time().saturating_sub(*begun)
        };
        Some(here.saturating_add(*elsewhere))
    }

    /// Returns the parameter of the distributable thread that a one-way or deferred request starts; defaults to this
    /// segment's.
    pub(crate) fn implicit_parameter(&self) -> SchedulingParameter {
        let innermost = self.innermost();
        innermost.implicit.unwrap_or(innermost.parameter)
    }

    pub(crate) const fn came_with_request(&self) -> bool {
        self.request.is_some()
    }

    pub(crate) fn is_of(&self, threads: &Arc<Threads>) -> bool {
        Arc::ptr_eq(&self.threads, threads)
    }

    fn end_nested(&mut self) {
        while self.end_innermost() {}
    }

    /// Returns false if only the outermost segment is left.
    pub(crate) fn end_innermost(&mut self) -> bool {
        let Some(ended) = self.nested.pop() else {
            return false;
        };
        let outer = self.remaining();
        let scheduler = &self.threads.scheduler;
        scheduler.end_nested_scheduling_segment(&self.id, &ended.name, &outer);
        true
    }
}

/// Ends the remaining segments, also when the thread itself ends.
impl Drop for Active {
    fn drop(&mut self) {
        self.end_nested();
        if !self.came_with_request() {
            let scheduler = &self.threads.scheduler;
            scheduler.end_scheduling_segment(&self.id, &self.outermost.name);
        }
        self.threads.leave(self.id);
    }
}

/// Replaces the distributable thread of the calling thread.
pub(crate) fn replace(active: Option<Active>) -> Option<Active> {
    ACTIVE.replace(active)
}

/// Reads or changes the distributable thread of the calling thread. Meanwhile the calling thread has none: a scheduler
/// may call this function too.
pub(crate) fn with<T>(then: impl FnOnce(&mut Option<Active>) -> T) -> T {
    let mut active = ACTIVE.take();
    let outcome = then(&mut active);
    ACTIVE.set(active);
    outcome
}

/// Makes the distributable thread of a request that of the calling thread. The caller has counted it.
pub(crate) fn enter_request(
    threads: &Arc<Threads>,
    id: IdType,
    parameter: SchedulingParameter,
    request: u32,
) {
    let outermost = Segment::begin("", parameter, None);
    let mut active = Active::new(Arc::clone(threads), id, outermost);
    active.request = Some(request);
    active.before = ACTIVE.take().map(Box::new);
    ACTIVE.set(Some(active));
}

/// Returns the distributable thread of the calling thread if it arrived with this request, and the processor time that
/// the request has used, as [`Active::used_by_request`].
pub(crate) fn of_request(
    threads: &Arc<Threads>,
    request: u32,
) -> Option<(IdType, Option<Duration>)> {
    with(|active| {
        let active = active.as_ref()?;
        let is_it = active.is_of(threads) && active.request == Some(request);
        is_it.then(|| (active.id, active.used_by_request()))
    })
}

/// Restores the distributable thread that the calling thread had before its request. Ends the segments that the servant
/// has left open.
pub(crate) fn leave_request() {
    let mut active = ACTIVE.take();
    let before = active.as_mut().and_then(|active| active.before.take());
    ACTIVE.set(before.map(|before| *before));
    drop(active);
}

/// Checks for cancellation at a scheduling point.
///
/// # Errors
/// THREAD_CANCELLED for a cancelled thread. Its segments are ended, except the segment of the request that it serves.
pub(crate) fn require_active(
    active: &mut Option<Active>,
    completed: Completion,
) -> Result<(), SystemException> {
    match active {
        Some(thread) if thread.threads.is_cancelled(thread.id) => {
            end_here(active);
            Err(raise::thread_cancelled(completed))
        }
        _ => Ok(()),
    }
}

/// Ends the segments of the calling thread, except the segment of the request that it serves.
pub(crate) fn end_here(active: &mut Option<Active>) {
    if let Some(mut thread) = active.take() {
        thread.end_nested();
        if thread.came_with_request() {
            *active = Some(thread);
        }
    }
}
