//! The scheduling segments of the calling thread (RTScheduling::Current).

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use super::table::SchedulingCore;
use super::{DistributableThread, IdType, Scheduler, SchedulingParameter, SegmentError};
use crate::orb::{Orb, OrbCore};
use crate::rt::Priority;
use crate::{Completion, SystemException, raise, raise::own};

/// The distributable thread that the calling thread goes on as; `RTScheduler_Current` among the standard's initial references. (The priority
/// that the standard's `RTScheduling::Current` inherits is [`crate::Orb::rt_current`]'s.)
#[derive(Clone)]
pub struct Current {
    orb: Arc<OrbCore>,
    core: Arc<SchedulingCore>,
}

thread_local! {
    static ACTIVE: Cell<Option<Active>> = const { Cell::new(None) };
}

/// The distributable thread that a thread goes on as.
pub(super) struct Active {
    pub(super) core: Arc<SchedulingCore>,
    pub(super) id: IdType,
    outermost: Segment,
    nested: Vec<Segment>,
    /// It came with a request, whose end ends the outermost segment.
    is_visit: bool,
}

struct Segment {
    name: String,
    parameter: SchedulingParameter,
    implicit: Option<SchedulingParameter>,
}

impl Active {
    /// One that came with a request, and has been counted. It takes no memory.
    pub(super) const fn visit(
        core: Arc<SchedulingCore>,
        id: IdType,
        parameter: SchedulingParameter,
    ) -> Self {
        Self {
            core,
            id,
            outermost: Segment {
                name: String::new(),
                parameter,
                implicit: None,
            },
            nested: Vec::new(),
            is_visit: true,
        }
    }

    fn innermost(&self) -> &Segment {
        self.nested.last().unwrap_or(&self.outermost)
    }

    pub(super) fn parameter(&self) -> SchedulingParameter {
        self.innermost().parameter
    }

    /// That of a thread which a request without a waiting caller begins: where none is said, the segment's own.
    pub(super) fn implicit_parameter(&self) -> SchedulingParameter {
        let innermost = self.innermost();
        innermost.implicit.unwrap_or(innermost.parameter)
    }

    fn end_nested(&mut self) {
        while self.end_innermost() {}
    }

    /// False: only the outermost segment is left.
    fn end_innermost(&mut self) -> bool {
        let Some(ended) = self.nested.pop() else {
            return false;
        };
        let outer = self.parameter();
        let scheduler = &self.core.scheduler;
        scheduler.end_nested_scheduling_segment(&self.id, &ended.name, &outer);
        true
    }
}

/// Ends what is left of it, in whatever way its thread has come here.
impl Drop for Active {
    fn drop(&mut self) {
        self.end_nested();
        if !self.is_visit {
            let scheduler = &self.core.scheduler;
            scheduler.end_scheduling_segment(&self.id, &self.outermost.name);
        }
        self.core.go(self.id);
    }
}

/// Puts another in the place of what the calling thread goes on as.
pub(super) fn replace(active: Option<Active>) -> Option<Active> {
    ACTIVE.replace(active)
}

/// Looks at, or changes, what the calling thread goes on as. Meanwhile it goes on as nothing: a scheduler may ask.
pub(super) fn with<T>(then: impl FnOnce(&mut Option<Active>) -> T) -> T {
    let mut active = ACTIVE.take();
    let outcome = then(&mut active);
    ACTIVE.set(active);
    outcome
}

/// A scheduling point.
///
/// # Errors
/// THREAD_CANCELLED for one that has been cancelled: its segments here have ended then, but for that of the request that it serves.
pub(super) fn require_active(
    active: &mut Option<Active>,
    completed: Completion,
) -> Result<(), SystemException> {
    match active {
        Some(thread) if thread.core.is_cancelled(thread.id) => {
            end_here(active);
            Err(raise::thread_cancelled(0, completed))
        }
        _ => Ok(()),
    }
}

/// Ends the segments of a thread here, but for that of the request that it serves.
pub(super) fn end_here(active: &mut Option<Active>) {
    if let Some(mut thread) = active.take() {
        thread.end_nested();
        if thread.is_visit {
            *active = Some(thread);
        }
    }
}

impl Current {
    pub(crate) const fn new(orb: Arc<OrbCore>, core: Arc<SchedulingCore>) -> Self {
        Self { orb, core }
    }

    /// Begins a segment. The first of a thread makes it a distributable one; one within another is nested in it. `implicit` is the parameter
    /// of the threads that its one-way and deferred requests begin at their servers; none: `parameter`.
    ///
    /// # Errors
    /// [`SegmentError::UnsupportedSchedulingDiscipline`] for a parameter that the scheduler cannot go by; THREAD_CANCELLED, with which all
    /// segments of the thread end; NO_RESOURCES above [`crate::limits::DISTRIBUTABLE_THREADS_MAX`]; BAD_INV_ORDER within a segment of
    /// another ORB, and beyond [`crate::limits::SEGMENTS_DEEP_MAX`].
    pub fn begin_scheduling_segment(
        &self,
        name: &str,
        parameter: SchedulingParameter,
        implicit: Option<SchedulingParameter>,
    ) -> Result<(), SegmentError> {
        let segment = Segment {
            name: name.to_owned(),
            parameter,
            implicit,
        };
        with(|active| match active {
            None => {
                *active = Some(self.begin_thread(IdType::fresh(), segment)?);
                Ok(())
            }
            Some(_) => {
                let active = self.own(active)?;
                if active.nested.len() >= crate::limits::SEGMENTS_DEEP_MAX {
                    return Err(raise::bad_inv_order(own::SEGMENTS_TOO_DEEP, Completion::No).into());
                }
                let scheduler = &self.core.scheduler;
                scheduler.begin_nested_scheduling_segment(&active.id, name, &parameter)?;
                active.nested.push(segment);
                Ok(())
            }
        })
    }

    fn begin_thread(&self, id: IdType, segment: Segment) -> Result<Active, SegmentError> {
        let core = &self.core;
        core.come(id)?;
        let begun =
            core.scheduler
                .begin_new_scheduling_segment(&id, &segment.name, &segment.parameter);
        begun.inspect_err(|_| core.go(id))?;
        Ok(Active {
            core: Arc::clone(core),
            id,
            outermost: segment,
            nested: Vec::new(),
            is_visit: false,
        })
    }

    /// Goes on in the innermost segment with other parameters.
    ///
    /// # Errors
    /// As [`Current::begin_scheduling_segment`]; BAD_INV_ORDER outside of any segment.
    pub fn update_scheduling_segment(
        &self,
        name: &str,
        parameter: SchedulingParameter,
        implicit: Option<SchedulingParameter>,
    ) -> Result<(), SegmentError> {
        with(|active| {
            let active = self.own(active)?;
            let scheduler = &self.core.scheduler;
            scheduler.update_scheduling_segment(&active.id, name, &parameter)?;
            let segment = Segment {
                name: name.to_owned(),
                parameter,
                implicit,
            };
            match active.nested.last_mut() {
                Some(innermost) => *innermost = segment,
                None => active.outermost = segment,
            }
            Ok(())
        })
    }

    /// Ends the innermost segment, and with the outermost the distributable thread. The name says no more than the caller wants to remember.
    ///
    /// # Errors
    /// THREAD_CANCELLED; BAD_INV_ORDER outside of any segment, and for that which came with the request that is served.
    pub fn end_scheduling_segment(&self, _name: &str) -> Result<(), SystemException> {
        with(|slot| {
            let active = self.own(slot)?;
            if active.end_innermost() {
                return Ok(());
            }
            if active.is_visit {
                return Err(raise::bad_inv_order(own::SEGMENT_MISSING, Completion::No));
            }
            *slot = None;
            Ok(())
        })
    }

    /// Runs `start` on a new thread that is distributable from its beginning: it has a segment of this name, with `parameter` (none: the
    /// implicit one of the calling thread's segment), a stack of so many octets (0: as the system has it) and, until the scheduler says
    /// otherwise, the native priority of `base_priority` (none: as threads of the process begin). Returns when it has begun.
    ///
    /// # Errors
    /// As [`Current::begin_scheduling_segment`] for the new thread; BAD_INV_ORDER outside of any segment; NO_RESOURCES where no thread is to
    /// be had; what [`crate::RtCurrent::set_the_priority`] raises.
    pub fn spawn(
        &self,
        start: impl FnOnce() + Send + 'static,
        name: &str,
        parameter: Option<SchedulingParameter>,
        implicit: Option<SchedulingParameter>,
        stack_size: usize,
        base_priority: Option<Priority>,
    ) -> Result<DistributableThread, SegmentError> {
        let own = with(|active| Ok::<_, SegmentError>(self.own(active)?.implicit_parameter()))?;
        let (id, current) = (IdType::fresh(), self.clone());
        let segment = Segment {
            name: name.to_owned(),
            parameter: parameter.unwrap_or(own),
            implicit,
        };
        let (here, begun) = sync_channel(1);
        let run = move || {
            let begin = || {
                if let Some(priority) = base_priority {
                    Orb::of(Arc::clone(&current.orb))
                        .rt_current()
                        .set_the_priority(priority)?;
                }
                current.begin_thread(id, segment)
            };
            let thread = begin();
            let outcome = thread.as_ref().map(|_| ()).map_err(|error| *error);
            let _starter_waits = here.send(outcome);
            if let Ok(thread) = thread {
                replace(Some(thread));
                start();
                drop(replace(None));
            }
        };
        let mut builder = std::thread::Builder::new().name("orb-spawned".to_owned());
        if stack_size != 0 {
            builder = builder.stack_size(stack_size);
        }
        let refused = raise::no_resources(own::THREAD_REFUSED, Completion::No);
        builder.spawn(run).map_err(|_| refused)?;
        begun.recv().map_err(|_| refused)??;
        Ok(DistributableThread {
            core: Arc::clone(&self.core),
            id,
        })
    }

    /// The id of the distributable thread.
    ///
    /// # Errors
    /// BAD_INV_ORDER outside of any segment.
    pub fn id(&self) -> Result<IdType, SystemException> {
        self.see(|active| active.id)
    }

    /// The distributable thread of this id, where it is known to this ORB: it began here, or a request of it is being served.
    #[must_use]
    pub fn lookup(&self, id: IdType) -> Option<DistributableThread> {
        self.core.find(id)
    }

    /// The parameter of the innermost segment.
    ///
    /// # Errors
    /// BAD_INV_ORDER outside of any segment.
    pub fn scheduling_parameter(&self) -> Result<SchedulingParameter, SystemException> {
        self.see(Active::parameter)
    }

    /// The implicit parameter of the innermost segment.
    ///
    /// # Errors
    /// BAD_INV_ORDER outside of any segment.
    pub fn implicit_scheduling_parameter(
        &self,
    ) -> Result<Option<SchedulingParameter>, SystemException> {
        self.see(|active| active.innermost().implicit)
    }

    /// The names of the segments that the thread has here, the innermost first; that which came with a request has none.
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
        with(|active| match active {
            Some(active) if Arc::ptr_eq(&active.core, &self.core) => Ok(then(active)),
            _ => Err(raise::bad_inv_order(own::SEGMENT_MISSING, Completion::No)),
        })
    }

    /// The thread at a scheduling point.
    fn own<'a>(&self, active: &'a mut Option<Active>) -> Result<&'a mut Active, SystemException> {
        require_active(active, Completion::No)?;
        let missing = raise::bad_inv_order(own::SEGMENT_MISSING, Completion::No);
        let active = active.as_mut().ok_or(missing)?;
        if Arc::ptr_eq(&active.core, &self.core) {
            Ok(active)
        } else {
            Err(raise::bad_inv_order(
                own::SEGMENT_OF_ANOTHER,
                Completion::No,
            ))
        }
    }
}

impl Orb {
    /// The scheduling segments of the calling thread, where the ORB has a scheduler; `RTScheduler_Current` among the standard's initial
    /// references.
    #[must_use]
    pub fn rt_scheduler_current(&self) -> Option<Current> {
        let core = self.0.scheduling.as_ref()?;
        Some(Current::new(Arc::clone(&self.0), Arc::clone(core)))
    }

    /// The scheduler that [`crate::OrbBuilder::scheduler`] has given the ORB; `RTScheduler` among the standard's initial references.
    #[must_use]
    pub fn rt_scheduler(&self) -> Option<Arc<dyn Scheduler>> {
        let core = self.0.scheduling.as_ref()?;
        Some(Arc::clone(&core.scheduler))
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current")
            .field("id", &self.id().ok())
            .field("core", &self.core)
            .finish_non_exhaustive()
    }
}
