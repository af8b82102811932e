//! A lane: one bounded queue and the threads that empty it.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::mpsc;

use deckwatch_orb::{Priority, SystemException, SystemExceptionKind as Kind};
use deckwatch_sync::{Bell, OrderedQueue};

use super::{LaneReport, QueueFull, QueueOptions, QueueOrder, Task, Urgency};
use crate::raise::raise;

/// One queue and its threads.
pub(super) struct Lane<T> {
    pub(super) priority: Option<Priority>,
    options: QueueOptions,
    queue: OrderedQueue<T>,
    /// Rings when a task is queued, and when the lane is closed.
    bell: Bell,
    is_closed: AtomicBool,
    /// Threads that send a task.
    busy: AtomicUsize,
    dispatched: AtomicU64,
}

impl<T: Task> Lane<T> {
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
            options,
            queue: OrderedQueue::with_capacity(options.len),
            bell: Bell::new(),
            is_closed: AtomicBool::new(false),
            busy: AtomicUsize::new(0),
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
        if self.is_closed.load(SeqCst) {
            return task.drop_unsent(true);
        }
        let order = match self.options.order {
            QueueOrder::Arrival => 0,
            QueueOrder::Deadline => urgency.deadline_ns,
            QueueOrder::Laxity => urgency.deadline_ns.saturating_sub(urgency.worst_case_ns),
        };
        let mut refused = self.queue.push(order, task).err();
        while let Some(task) = refused.take() {
            match (self.options.when_full, self.options.order) {
                (QueueFull::DropNew, _) => task.drop_unsent(false),
                (QueueFull::DropFirst, QueueOrder::Arrival) => {
                    if let Some(first) = self.queue.pop() {
                        first.drop_unsent(false);
                    }
                    refused = self.queue.push(order, task).err();
                }
                (QueueFull::DropFirst, QueueOrder::Deadline | QueueOrder::Laxity) => {
                    if let Some(last) = self.queue.push_for_last(order, task) {
                        last.drop_unsent(false);
                    }
                }
            }
        }
        self.bell.ring();
        // A concurrent close may have missed this task: the threads may be gone.
        while self.is_closed.load(SeqCst) {
            let Some(left) = self.queue.pop() else {
                return;
            };
            left.drop_unsent(true);
        }
    }

    pub(super) fn report(&self) -> LaneReport {
        LaneReport {
            priority: self.priority,
            dispatched: self.dispatched.load(Relaxed),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        // A thread counts as busy before it takes a task.
        self.queue.is_empty() && self.busy.load(SeqCst) == 0
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
        self.is_closed.store(true, SeqCst);
        self.bell.ring();
    }

    fn serve(&self) {
        loop {
            let turn = self.bell.turn();
            self.busy.fetch_add(1, SeqCst);
            let task = self.queue.pop();
            let is_empty = task.is_none();
            if let Some(task) = task {
                task.run();
                self.dispatched.fetch_add(1, Relaxed);
            }
            self.busy.fetch_sub(1, SeqCst);
            if !is_empty {
                continue;
            }
            if self.is_closed.load(SeqCst) {
                return;
            }
            self.bell.wait(turn);
        }
    }
}
