//! Dispatching: which thread sends an event, and which event goes first.
//!
//! | dispatching | the event is sent by | order |
//! | --- | --- | --- |
//! | reactive | the thread that serves the supplier's push | arrival |
//! | pool | one of N threads, from one queue | of the queue |
//! | lanes | a thread of the lane of its priority, from the lane's queue | of the queue |
//!
//! A queue is bounded. What it has no place for is returned to its owner, who counts it: no event is lost silently.

mod lane;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::{Priority, SystemException, SystemExceptionKind as Kind};

use crate::limits::{DISPATCH_LANES_MAX, DISPATCH_QUEUE_MAX, DISPATCH_THREADS_MAX};
use crate::raise::raise;
use lane::Lane;

/// How a channel dispatches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Dispatching {
    /// The thread that serves the supplier's push sends the event.
    #[default]
    Reactive,
    /// Threads without a priority share one queue.
    Pool {
        /// Number of threads, at most [`DISPATCH_THREADS_MAX`]. With more than one, events may overtake each other.
        threads: usize,
        /// Their queue.
        queue: QueueOptions,
    },
    /// Threads of its own for each priority.
    Lanes(Vec<LaneOptions>),
}

/// One lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOptions {
    /// The CORBA priority of its threads. Each lane has another.
    pub priority: Priority,
    /// Number of threads. With more than one, events may overtake each other.
    pub threads: usize,
    /// The lane's queue.
    pub queue: QueueOptions,
}

/// One queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Events for one consumer each; at most [`DISPATCH_QUEUE_MAX`].
    pub len: usize,
    /// Which event leaves first.
    pub order: QueueOrder,
    /// What happens when it is full.
    pub when_full: QueueFull,
}

/// Which event leaves a queue first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOrder {
    /// First in, first out.
    #[default]
    Arrival,
    /// The earliest deadline: the arrival plus the deadline of the consumer's dependency.
    Deadline,
    /// The least laxity: the deadline minus the worst-case execution time.
    Laxity,
}

/// What a full queue drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueFull {
    /// The oldest event: a late consumer needs the newest state. In a queue by deadline or laxity, the event that is
    /// due last, or the new one if none is due later.
    #[default]
    DropFirst,
    /// The new event.
    DropNew,
}

/// What a lane has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneReport {
    /// The priority of its threads; `None` for a pool.
    pub priority: Option<Priority>,
    /// Event sets for one consumer each that its threads have sent.
    pub dispatched: u64,
}

/// What is dispatched.
pub(crate) trait Task: Send + 'static {
    /// Sends the event.
    fn run(self);
    /// The queue was full or held too many octets, or the dispatching has ended.
    fn drop_unsent(self, is_closed: bool);
}

/// The deadline of a task, for [`QueueOrder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Urgency {
    pub(crate) deadline_ns: u64,
    pub(crate) worst_case_ns: u64,
}

impl Urgency {
    /// Tasks without a deadline come last.
    pub(crate) const NONE: Self = Self {
        deadline_ns: u64::MAX,
        worst_case_ns: 0,
    };
}

/// Dispatches tasks until it is closed.
pub(crate) struct Dispatcher<T: Task> {
    /// By rising priority. None: reactive.
    lanes: Vec<Arc<Lane<T>>>,
    is_by_hand: bool,
    /// Tasks whose priority no lane has.
    missed: AtomicU64,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self {
            len: crate::limits::QUEUE_LEN_DEFAULT,
            order: QueueOrder::default(),
            when_full: QueueFull::default(),
        }
    }
}

impl QueueOrder {
    /// Returns its name, as command lines write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrival => "arrival",
            Self::Deadline => "deadline",
            Self::Laxity => "laxity",
        }
    }
}

impl Dispatching {
    /// The lanes, by rising priority.
    fn lanes(&self) -> Vec<(Option<Priority>, usize, QueueOptions)> {
        let mut lanes = match self {
            Self::Reactive => Vec::new(),
            Self::Pool { threads, queue } => vec![(None, *threads, *queue)],
            Self::Lanes(lanes) => lanes
                .iter()
                .map(|lane| (Some(lane.priority), lane.threads, lane.queue))
                .collect(),
        };
        lanes.sort_by_key(|lane| lane.0);
        lanes
    }

    /// # Errors
    /// BAD_PARAM for lanes without a thread or a place, out of bounds, or two of one priority.
    fn check(&self) -> Result<(), SystemException> {
        let lanes = self.lanes();
        let threads: usize = lanes.iter().map(|lane| lane.1).sum();
        let is_sound = lanes.len() <= DISPATCH_LANES_MAX
            && threads <= DISPATCH_THREADS_MAX
            && (*self == Self::Reactive || !lanes.is_empty())
            && lanes.iter().all(|(_, threads, queue)| {
                *threads > 0 && (1..=DISPATCH_QUEUE_MAX).contains(&queue.len)
            })
            && lanes.windows(2).all(|pair| pair[0].0 != pair[1].0);
        is_sound.then_some(()).ok_or_else(|| raise(Kind::BadParam))
    }
}

impl<T: Task> Dispatcher<T> {
    /// Starts the threads. Each calls `prepare` with the priority of its lane before it serves. If `is_by_hand`, there
    /// are no threads: see [`Dispatcher::turn`].
    ///
    /// # Errors
    /// BAD_PARAM for options out of bounds; what `prepare` returns; NO_RESOURCES without a thread.
    pub(crate) fn start(
        options: &Dispatching,
        is_by_hand: bool,
        prepare: &Arc<dyn Fn(Option<Priority>) -> Result<(), SystemException> + Send + Sync>,
    ) -> Result<Self, SystemException> {
        options.check()?;
        // If a lane cannot start, the drop closes those before it.
        let mut dispatcher = Self {
            lanes: Vec::new(),
            is_by_hand,
            missed: AtomicU64::new(0),
        };
        for (priority, threads, queue) in options.lanes() {
            let threads = if is_by_hand { 0 } else { threads };
            let lane = Lane::start(priority, threads, queue, prepare)?;
            dispatcher.lanes.push(lane);
        }
        Ok(dispatcher)
    }

    /// Sends a task, or queues it in the lane of its priority. A priority without a lane goes to the nearest lower
    /// lane, else to the lowest, and is counted. A task without a priority goes to the lowest lane.
    pub(crate) fn dispatch(&self, priority: Option<Priority>, urgency: Urgency, task: T) {
        let Some(lowest) = self.lanes.first() else {
            return task.run();
        };
        let not_above = self
            .lanes
            .partition_point(|lane| lane.priority <= priority)
            .checked_sub(1);
        let lane = not_above.map_or(lowest, |index| &self.lanes[index]);
        if priority.is_some() && lane.priority.is_some() && lane.priority != priority {
            self.missed.fetch_add(1, Relaxed);
        }
        lane.put(urgency, task);
    }

    /// Returns true if it has no threads.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.is_by_hand
    }

    /// Sends the first task of a lane; lanes count by rising priority. Returns false if there is none.
    pub(crate) fn turn(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|lane| lane.send_first())
    }

    /// The priority of the most urgent lane. `None` without lanes.
    pub(crate) fn highest(&self) -> Option<Priority> {
        self.lanes.last().and_then(|lane| lane.priority)
    }

    /// Tasks whose priority no lane had.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Relaxed)
    }

    /// What each lane has done, by rising priority.
    pub(crate) fn reports(&self) -> Vec<LaneReport> {
        self.lanes.iter().map(|lane| lane.report()).collect()
    }

    /// Returns true if no queue holds a task.
    pub(crate) fn is_idle(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_idle())
    }

    /// Drops a task of the lowest lane that has one, if `may_drop` permits it: the first, or the last one due. Returns
    /// whether it has dropped one.
    pub(crate) fn drop_one(&self, may_drop: impl Fn(&T) -> bool) -> bool {
        let mut lanes = self.lanes.iter();
        let lowest = lanes.find(|lane| !lane.queue_is_empty());
        lowest.is_some_and(|lane| lane.drop_one(may_drop))
    }

    /// Refuses further tasks. The threads send what is queued, and end.
    pub(crate) fn close(&self) {
        for lane in &self.lanes {
            lane.close();
        }
    }
}

impl<T: Task> Drop for Dispatcher<T> {
    fn drop(&mut self) {
        self.close();
    }
}
