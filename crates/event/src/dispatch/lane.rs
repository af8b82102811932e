//! A lane: one bounded queue and the threads that empty it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;

use deckwatch_orb::{Priority, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{ServedQueue, Unserved, WhenFull};

use super::{LaneReport, QueueFull, QueueOptions, QueueOrder, Task, Urgency};
use crate::raise::raise;

/// One queue and its threads.
pub(super) struct Lane<T> {
    pub(super) priority: Option<Priority>,
    /// It has no threads: its owner sends the tasks.
    is_by_hand: bool,
    options: QueueOptions,
    queue: ServedQueue<T>,
    dispatched: AtomicU64,
}

impl<T: Task> Lane<T> {
    /// With 0 `threads`, [`Lane::send_first`] sends the tasks.
    ///
    /// # Errors
    /// What `prepare` returns; NO_RESOURCES without a thread.
    pub(super) fn start(
        priority: Option<Priority>,
        threads: usize,
        options: QueueOptions,
        prepare: &Arc<dyn Fn(Option<Priority>) -> Result<(), SystemException> + Send + Sync>,
    ) -> Result<Arc<Self>, SystemException> {
        let lane = Arc::new(Self {
            priority,
            is_by_hand: threads == 0,
            options,
            queue: ServedQueue::with_capacity(options.len),
            dispatched: AtomicU64::new(0),
        });
        let name = priority.map_or("pool".to_owned(), |priority| priority.value().to_string());
        for _ in 0..threads {
            let (prepared, outcome) = mpsc::channel();
            let (thread, prepare) = (Arc::clone(&lane), Arc::clone(prepare));
            let started = std::thread::Builder::new()
                .name(format!("dispatch-{name}"))
                .spawn(move || {
                    let outcome = prepare(priority);
                    let is_ready = outcome.is_ok();
                    // The starter waits for it.
                    let _ = prepared.send(outcome);
                    if is_ready {
                        thread.serve();
                    }
                });
            let outcome = started
                .map_err(|_| raise(Kind::NoResources))
                .and_then(|_| outcome.recv().unwrap_or(Err(raise(Kind::NoResources))));
            outcome.inspect_err(|_| lane.close())?;
        }
        Ok(lane)
    }

    /// Queues a task, or drops one.
    pub(super) fn put(&self, urgency: Urgency, task: T) {
        let order = match self.options.order {
            QueueOrder::Arrival => 0,
            QueueOrder::Deadline => urgency.deadline_ns,
            QueueOrder::Laxity => urgency.deadline_ns.saturating_sub(urgency.worst_case_ns),
        };
        let when_full = match (self.options.when_full, self.options.order) {
            (QueueFull::DropNew, _) => WhenFull::DropNew,
            (QueueFull::DropFirst, QueueOrder::Arrival) => WhenFull::DropFirst,
            (QueueFull::DropFirst, QueueOrder::Deadline | QueueOrder::Laxity) => WhenFull::DropLast,
        };
        self.queue.put(order, task, when_full, |task, why| {
            task.drop_unsent(why == Unserved::Closed);
        });
    }

    pub(super) fn report(&self) -> LaneReport {
        LaneReport {
            priority: self.priority,
            dispatched: self.dispatched.load(Relaxed),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Drops what is lost first, if `may_drop` permits it.
    pub(super) fn drop_one(&self, may_drop: impl Fn(&T) -> bool) -> bool {
        let dropped = match self.options.order {
            QueueOrder::Arrival => self.queue.pop_if(may_drop),
            QueueOrder::Deadline | QueueOrder::Laxity => self.queue.pop_last_if(may_drop),
        };
        let has_dropped = dropped.is_some();
        if let Some(task) = dropped {
            task.drop_unsent(false);
        }
        has_dropped
    }

    pub(super) fn queue_is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn close(&self) {
        self.queue.close();
        // Threads would send what is queued.
        while self.is_by_hand && self.send_first() {}
    }

    /// Sends the first task of the queue. Returns false if there is none.
    pub(super) fn send_first(&self) -> bool {
        self.queue.serve_first(|task| self.send(task))
    }

    fn send(&self, task: T) {
        task.run();
        self.dispatched.fetch_add(1, Relaxed);
    }

    fn serve(&self) {
        self.queue.serve(|task| self.send(task));
    }
}
