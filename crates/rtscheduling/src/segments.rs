//! The distributable thread of the calling thread, and its segments on this thread.

use std::cell::Cell;
use std::sync::Arc;

use deckwatch_orb::{Completion, SystemException};

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
    pub(crate) parameter: SchedulingParameter,
    pub(crate) implicit: Option<SchedulingParameter>,
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

    pub(crate) fn parameter(&self) -> SchedulingParameter {
        self.innermost().parameter
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
        let outer = self.parameter();
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
    let outermost = Segment {
        name: String::new(),
        parameter,
        implicit: None,
    };
    let mut active = Active::new(Arc::clone(threads), id, outermost);
    active.request = Some(request);
    active.before = ACTIVE.take().map(Box::new);
    ACTIVE.set(Some(active));
}

/// Returns the distributable thread of the calling thread if it arrived with this request.
pub(crate) fn id_of_request(threads: &Arc<Threads>, request: u32) -> Option<IdType> {
    with(|active| {
        let active = active.as_ref()?;
        (active.is_of(threads) && active.request == Some(request)).then_some(active.id)
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
