//! The scheduling segments of the calling thread (RTScheduling::Current).

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use deckwatch_orb::{Completion, Priority, RtCurrent, SystemException};

use crate::limits::SEGMENTS_DEEP_MAX;
use crate::segments::{self, Active, Segment};
use crate::table::Threads;
use crate::{DistributableThread, IdType, SchedulingParameter, SegmentError, raise, raise::own};

/// The distributable thread of the calling thread. It is the initial reference `RTScheduler_Current`. The standard's
/// `RTScheduling::Current` inherits the priority attribute; here [`deckwatch_orb::Orb::rt_current`] has it.
#[derive(Clone)]
pub struct Current {
    priority: RtCurrent,
    threads: Arc<Threads>,
}

impl Current {
    pub(crate) const fn new(priority: RtCurrent, threads: Arc<Threads>) -> Self {
        Self { priority, threads }
    }

    /// Begins a segment. The first segment of a thread makes it a distributable thread; further ones nest. `implicit`
    /// is the parameter of the distributable threads that one-way and deferred requests of the segment start at their
    /// servers. The default is `parameter`.
    ///
    /// # Errors
    /// [`SegmentError::UnsupportedSchedulingDiscipline`] for a parameter without the fields that the discipline uses;
    /// THREAD_CANCELLED, which ends all segments of the thread; NO_RESOURCES above
    /// [`crate::limits::DISTRIBUTABLE_THREADS_MAX`]; BAD_INV_ORDER within a segment of another ORB, and beyond
    /// [`SEGMENTS_DEEP_MAX`].
    pub fn begin_scheduling_segment(
        &self,
        name: &str,
        parameter: SchedulingParameter,
        implicit: Option<SchedulingParameter>,
    ) -> Result<(), SegmentError> {
        let segment = Segment::begin(name, parameter, implicit);
        segments::with(|active| match active {
            None => {
                *active = Some(self.begin_thread(IdType::fresh(), segment)?);
                Ok(())
            }
            Some(_) => {
                let active = self.own(active)?;
                if active.nested.len() >= SEGMENTS_DEEP_MAX {
                    return Err(raise::bad_inv_order(own::SEGMENTS_TOO_DEEP).into());
                }
                let scheduler = &self.threads.scheduler;
                scheduler.begin_nested_scheduling_segment(&active.id, name, &parameter)?;
                active.nested.push(segment);
                Ok(())
            }
        })
    }

    fn begin_thread(&self, id: IdType, segment: Segment) -> Result<Active, SegmentError> {
        let threads = &self.threads;
        threads.enter(id)?;
        let begun =
            threads
                .scheduler
                .begin_new_scheduling_segment(&id, &segment.name, &segment.parameter);
        begun.inspect_err(|_| threads.leave(id))?;
        Ok(Active::new(Arc::clone(threads), id, segment))
    }

    /// Continues the innermost segment with another name and other parameters.
    ///
    /// # Errors
    /// As [`Current::begin_scheduling_segment`]; BAD_INV_ORDER outside of any segment.
    pub fn update_scheduling_segment(
        &self,
        name: &str,
        parameter: SchedulingParameter,
        implicit: Option<SchedulingParameter>,
    ) -> Result<(), SegmentError> {
        segments::with(|active| {
            let active = self.own(active)?;
            let scheduler = &self.threads.scheduler;
            scheduler.update_scheduling_segment(&active.id, name, &parameter)?;
            let segment = Segment::begin(name, parameter, implicit);
            match active.nested.last_mut() {
                Some(innermost) => *innermost = segment,
                None => active.outermost = segment,
            }
            Ok(())
        })
    }

    /// Ends the innermost segment; the end of the outermost one ends the distributable thread. The name is ignored.
    ///
    /// # Errors
    /// THREAD_CANCELLED; BAD_INV_ORDER outside of any segment, and for the segment of a request that is being served.
    pub fn end_scheduling_segment(&self, _name: &str) -> Result<(), SystemException> {
        segments::with(|slot| {
            let active = self.own(slot)?;
            if active.end_innermost() {
                return Ok(());
            }
            if active.came_with_request() {
                return Err(raise::bad_inv_order(own::SEGMENT_MISSING));
            }
            *slot = None;
            Ok(())
        })
    }

    /// Runs `start` on a new distributable thread and returns when it has begun. The thread has
    /// * a segment of this name with `parameter`, by default the implicit parameter of the calling thread's segment;
    /// * a stack of `stack_size` octets; 0 means the default of the system;
    /// * the native priority of `base_priority`, if one is given, until the scheduler sets another.
    ///
    /// # Errors
    /// As [`Current::begin_scheduling_segment`] for the new thread; BAD_INV_ORDER outside of any segment; NO_RESOURCES
    /// if no thread can be started; the exceptions of [`RtCurrent::set_the_priority`].
    pub fn spawn(
        &self,
        start: impl FnOnce() + Send + 'static,
        name: &str,
        parameter: Option<SchedulingParameter>,
        implicit: Option<SchedulingParameter>,
        stack_size: usize,
        base_priority: Option<Priority>,
    ) -> Result<DistributableThread, SegmentError> {
        let own =
            segments::with(|active| Ok::<_, SegmentError>(self.own(active)?.implicit_parameter()))?;
        let (id, current) = (IdType::fresh(), self.clone());
        let (name, parameter) = (name.to_owned(), parameter.unwrap_or(own));
        let (here, begun) = sync_channel(1);
        let run = move || {
            let begin = || {
                if let Some(priority) = base_priority {
                    current.priority.set_the_priority(priority)?;
                }
                current.begin_thread(id, Segment::begin(&name, parameter, implicit))
            };
            let thread = begin();
            let outcome = thread.as_ref().map(|_| ()).map_err(|error| *error);
            // Cannot fail: the spawning thread waits for the outcome.
            let _ = here.send(outcome);
            if let Ok(thread) = thread {
                segments::replace(Some(thread));
                start();
                drop(segments::replace(None));
            }
        };
        let mut builder = std::thread::Builder::new().name("orb-spawned".to_owned());
        if stack_size != 0 {
            builder = builder.stack_size(stack_size);
        }
        let refused = raise::no_resources(own::THREAD_REFUSED);
        builder.spawn(run).map_err(|_| refused)?;
        begun.recv().map_err(|_| refused)??;
        Ok(DistributableThread {
            threads: Arc::clone(&self.threads),
            id,
        })
    }

    /// Returns the id of the distributable thread.
    ///
    /// # Errors
    /// BAD_INV_ORDER outside of any segment.
    pub fn id(&self) -> Result<IdType, SystemException> {
        self.see(|active| active.id)
    }

    /// Returns the distributable thread of this id if this ORB knows it: it began here, or a request of it is being
    /// served.
    #[must_use]
    pub fn lookup(&self, id: IdType) -> Option<DistributableThread> {
        self.threads.find(id)
    }

    /// Returns the parameter of the innermost segment as it was set, or as it arrived with the request.
    ///
    /// # Errors
    /// BAD_INV_ORDER outside of any segment.
    pub fn scheduling_parameter(&self) -> Result<SchedulingParameter, SystemException> {
        self.see(|active| active.innermost().parameter)
    }

    /// Returns how much of the execution time of the innermost segment is left: the stated one without the processor
    /// time that this thread has used since the segment began, and without that which servers have used for its calls.
    /// `None` if the parameter has no execution time.
    ///
    /// # Errors
    /// BAD_INV_ORDER outside of any segment.
    pub fn execution_time_left(&self) -> Result<Option<Duration>, SystemException> {
        self.see(|active| active.remaining().execution_time)
    }

    /// Returns the implicit parameter of the innermost segment.
    ///
    /// # Errors
    /// BAD_INV_ORDER outside of any segment.
    pub fn implicit_scheduling_parameter(
        &self,
    ) -> Result<Option<SchedulingParameter>, SystemException> {
        self.see(|active| active.innermost().implicit)
    }

    /// Returns the names of the segments of the calling thread, the innermost first. The segment of a request has an
    /// empty name.
    #[must_use]
    pub fn current_scheduling_segment_names(&self) -> Vec<String> {
        let names = |active: &Active| {
            let segments = active.nested.iter().rev();
            let segments = segments.chain([&active.outermost]);
            segments.map(|segment| segment.name.clone()).collect()
        };
        self.see(names).unwrap_or_default()
    }

    fn see<T>(&self, then: impl FnOnce(&Active) -> T) -> Result<T, SystemException> {
        segments::with(|active| match active {
            Some(active) if active.is_of(&self.threads) => Ok(then(active)),
            _ => Err(raise::bad_inv_order(own::SEGMENT_MISSING)),
        })
    }

    /// Returns the distributable thread of the calling thread, at a scheduling point.
    fn own<'a>(&self, active: &'a mut Option<Active>) -> Result<&'a mut Active, SystemException> {
        segments::require_active(active, Completion::No)?;
        let missing = raise::bad_inv_order(own::SEGMENT_MISSING);
        let active = active.as_mut().ok_or(missing)?;
        if active.is_of(&self.threads) {
            Ok(active)
        } else {
            Err(raise::bad_inv_order(own::SEGMENT_OF_ANOTHER))
        }
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current")
            .field("id", &self.id().ok())
            .field("scheduler", &self.threads)
            .finish_non_exhaustive()
    }
}
