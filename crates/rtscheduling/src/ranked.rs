//! Four schedulers: fixed priority, earliest deadline first, most important first, least laxity.

use std::cell::RefCell;
use std::fmt;
use std::io;

use deckwatch_orb::{Scheduling, SystemException};
use deckwatch_os::schedule::Class;
use deckwatch_sync::PiMutex;

use crate::ready::{self, Before, Key, ReadySet};
use crate::{IdType, Scheduler, SchedulingParameter, SegmentError, raise, raise::own};

/// Ranks distributable threads by one number, which it computes from their parameters. It orders the requests that wait
/// in a lane by that number. With a [`Band`] it also sets the native priorities of the distributable threads of this
/// process that are ready to run.
pub struct RankedScheduler {
    discipline: Discipline,
    ready: Option<PiMutex<ReadySet>>,
}

/// The order in which a [`RankedScheduler`] ranks threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discipline {
    /// The highest priority first.
    FixedPriority,
    /// The earliest deadline first.
    EarliestDeadlineFirst,
    /// The highest importance first.
    MostImportantFirst,
    /// The least laxity first: the time until the deadline minus the execution time that is left. Waiting threads lose
    /// laxity at the same rate, so that their order does not change with time. A thread that runs loses none. With a
    /// [`Band`], threads are ranked anew at each scheduling point of any of them.
    LeastLaxity,
}

/// Native priorities that a scheduler may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    scheduling: Scheduling,
    lowest: u8,
    highest: u8,
}

impl Band {
    /// Returns the band from `lowest` to `highest`, both included, of SCHED_FIFO or SCHED_RR.
    ///
    /// # Errors
    /// BAD_PARAM for an empty band, for one outside 1 to 99, and for the time-sharing class, which has no priorities.
    pub fn new(scheduling: Scheduling, lowest: u8, highest: u8) -> Result<Self, SystemException> {
        let is_real_time = scheduling != Scheduling::Other;
        if !is_real_time || lowest < 1 || lowest > highest || highest > 99 {
            return Err(raise::bad_param(own::BAND_MALFORMED));
        }
        Ok(Self {
            scheduling,
            lowest,
            highest,
        })
    }

    pub(crate) const fn lowest(&self) -> u8 {
        self.lowest
    }

    pub(crate) const fn highest(&self) -> u8 {
        self.highest
    }

    pub(crate) const fn class(&self, native: u8) -> Class {
        match self.scheduling {
            Scheduling::RoundRobin => Class::RoundRobin(native),
            _ => Class::Fifo(native),
        }
    }
}

thread_local! {
    /// The state of the calling thread before each time that it entered the ready set.
    static BEFORE: RefCell<Vec<Before>> = const { RefCell::new(Vec::new()) };
}

impl RankedScheduler {
    /// Returns a scheduler of this discipline that orders the queues of lanes and sets no native priorities.
    #[must_use]
    pub const fn new(discipline: Discipline) -> Self {
        Self {
            discipline,
            ready: None,
        }
    }

    /// Returns a scheduler with [`Discipline::FixedPriority`].
    #[must_use]
    pub const fn fixed_priority() -> Self {
        Self::new(Discipline::FixedPriority)
    }

    /// Returns a scheduler with [`Discipline::EarliestDeadlineFirst`].
    #[must_use]
    pub const fn earliest_deadline_first() -> Self {
        Self::new(Discipline::EarliestDeadlineFirst)
    }

    /// Returns a scheduler with [`Discipline::MostImportantFirst`].
    #[must_use]
    pub const fn most_important_first() -> Self {
        Self::new(Discipline::MostImportantFirst)
    }

    /// Returns a scheduler with [`Discipline::LeastLaxity`].
    #[must_use]
    pub const fn least_laxity() -> Self {
        Self::new(Discipline::LeastLaxity)
    }

    /// Sets the distributable threads of this process to native priorities of `band` by their rank. If the host does
    /// not permit them, the beginning of a segment raises NO_PERMISSION.
    #[must_use]
    pub fn within(mut self, band: Band) -> Self {
        self.ready = Some(PiMutex::new(ReadySet::new(band)));
        self
    }

    /// Returns the number by which threads are ranked; `None` if the parameter lacks a field that the discipline uses.
    fn key(&self, parameter: &SchedulingParameter) -> Option<Key> {
        match self.discipline {
            Discipline::FixedPriority => {
                let priority = parameter.priority?.value();
                Some(Key::fixed(u64::from(i16::MAX.abs_diff(priority))))
            }
            Discipline::MostImportantFirst => {
                let importance = parameter.importance?;
                Some(Key::fixed(u64::from(i16::MAX.abs_diff(importance))))
            }
            Discipline::EarliestDeadlineFirst => Some(Key::fixed(parameter.deadline?.time)),
            Discipline::LeastLaxity => {
                let left = ready::units(parameter.execution_time?);
                let deadline = parameter.deadline?.time;
                Some(Key {
                    value: deadline.saturating_sub(left),
                    value_max: deadline,
                })
            }
        }
    }

    fn key_of_segment(&self, parameter: &SchedulingParameter) -> Result<Key, SegmentError> {
        self.key(parameter)
            .ok_or(SegmentError::UnsupportedSchedulingDiscipline)
    }

    /// Returns the key of a parameter that may lack what the discipline uses: last.
    fn key_or_last(&self, parameter: &SchedulingParameter) -> Key {
        self.key(parameter).unwrap_or(Key::fixed(u64::MAX))
    }

    fn enter(&self, key: Key) -> Result<(), SystemException> {
        if let Some(ready) = &self.ready {
            let before = ready.lock("scheduling.enter").enter(key);
            let before = before.map_err(|error| denied(&error))?;
            BEFORE.with_borrow_mut(|kept| kept.push(before));
        }
        Ok(())
    }

    fn change(&self, key: Key) -> Result<(), SystemException> {
        let change = |ready: &PiMutex<ReadySet>| ready.lock("scheduling.change").change(key);
        let changed = self.ready.as_ref().map_or(Ok(()), change);
        changed.map_err(|error| denied(&error))
    }

    fn leave(&self) {
        let Some(ready) = &self.ready else {
            return;
        };
        match BEFORE.try_with(|kept| kept.borrow_mut().pop()) {
            Ok(Some(before)) => ready.lock("scheduling.leave").leave(&before),
            Ok(None) => {}
            // The thread ends within its segments, and its thread-local values have been destroyed.
            Err(_) => ready.lock("scheduling.leave").forget(),
        }
    }

    fn set_waits(&self, waits: bool, parameter: &SchedulingParameter) {
        if let Some(ready) = &self.ready {
            let key = self.key_or_last(parameter);
            // The priorities were permitted when the thread entered.
            let _ = ready.lock("scheduling.wait").set_waits(waits, key);
        }
    }
}

fn denied(error: &io::Error) -> SystemException {
    match error.kind() {
        io::ErrorKind::PermissionDenied => raise::no_permission(own::PRIORITY_DENIED),
        _ => raise::no_resources(0),
    }
}

impl Scheduler for RankedScheduler {
    fn scheduling_discipline_name(&self) -> &str {
        match self.discipline {
            Discipline::FixedPriority => "fixed priority",
            Discipline::EarliestDeadlineFirst => "earliest deadline first",
            Discipline::MostImportantFirst => "most important first",
            Discipline::LeastLaxity => "least laxity",
        }
    }

    fn order(&self, parameter: &SchedulingParameter) -> u64 {
        self.key_or_last(parameter).value
    }

    fn begin_new_scheduling_segment(
        &self,
        _id: &IdType,
        _name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError> {
        Ok(self.enter(self.key_of_segment(parameter)?)?)
    }

    fn begin_nested_scheduling_segment(
        &self,
        _id: &IdType,
        _name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError> {
        Ok(self.change(self.key_of_segment(parameter)?)?)
    }

    fn update_scheduling_segment(
        &self,
        _id: &IdType,
        _name: &str,
        parameter: &SchedulingParameter,
    ) -> Result<(), SegmentError> {
        Ok(self.change(self.key_of_segment(parameter)?)?)
    }

    fn end_scheduling_segment(&self, _id: &IdType, _name: &str) {
        self.leave();
    }

    fn end_nested_scheduling_segment(
        &self,
        _id: &IdType,
        _name: &str,
        outer: &SchedulingParameter,
    ) {
        // The priority of the outer segment was permitted before.
        let _ = self.change(self.key_or_last(outer));
    }

    fn send_request(&self, _id: &IdType, parameter: &mut SchedulingParameter) {
        self.set_waits(true, parameter);
    }

    fn receive_reply(&self, _id: &IdType, parameter: &SchedulingParameter) {
        self.set_waits(false, parameter);
    }

    fn receive_request(
        &self,
        _id: &IdType,
        parameter: &SchedulingParameter,
    ) -> Result<(), SystemException> {
        self.enter(self.key_or_last(parameter))
    }

    fn send_reply(&self, _id: &IdType) {
        self.leave();
    }
}

impl fmt::Debug for RankedScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankedScheduler")
            .field("discipline", &self.discipline)
            .field("sets_priorities", &self.ready.is_some())
            .finish()
    }
}
