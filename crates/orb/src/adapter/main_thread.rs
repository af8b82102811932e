//! Work for the main thread: the upcalls of adapters with MAIN_THREAD_MODEL (CORBA 3.3 part 1, 15.3.8.1).
//!
//! The main thread is the first that calls `Orb::run` or `Orb::perform_work`. A thread of a lane that has read such a
//! request waits until it is served.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use super::wait_permits::{Patience, permit};
use crate::{Completion, SystemException, minor, raise, raise::own};

type Job = Box<dyn FnOnce() + Send>;

/// The queue of the main thread.
#[derive(Default)]
pub(crate) struct MainThread {
    work: Mutex<Work>,
    changed: Condvar,
}

#[derive(Default)]
struct Work {
    requests: VecDeque<Job>,
    /// Servants to etherealize. This goes on after the last request.
    etherealizations: VecDeque<Job>,
    main: Option<ThreadId>,
    /// Whether new requests are refused.
    is_closed: bool,
}

thread_local! {
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether the calling thread is doing such work.
pub(crate) fn is_here() -> bool {
    WORKS.get()
}

impl MainThread {
    /// Has the main thread serve a request, and waits at most `within` for the result.
    ///
    /// # Errors
    /// TRANSIENT if the calling thread may not wait or the main thread has ended, TIMEOUT after `within`.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        patience: Patience<'_>,
        within: Option<Duration>,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SystemException> {
        let _hold = permit(patience)?;
        let gone = raise::transient(minor::REQUEST_DISCARDED, Completion::No);
        let (answer, answered) = sync_channel(1);
        let job = Box::new(move || {
            let _ = answer.send(job()); // The receiver may be gone.
        });
        let mut work = self.work();
        if work.is_closed {
            return Err(gone);
        }
        work.requests.push_back(job);
        drop(work);
        self.changed.notify_all();
        let Some(within) = within else {
            return answered.recv().map_err(|_| gone);
        };
        answered.recv_timeout(within).map_err(|error| match error {
            RecvTimeoutError::Timeout => raise::timeout(own::TIMED_OUT_WAITING, Completion::Maybe),
            RecvTimeoutError::Disconnected => gone,
        })
    }

    /// Queues `job` for the main thread.
    pub(super) fn send(&self, job: impl FnOnce() + Send + 'static) {
        self.work().etherealizations.push_back(Box::new(job));
        self.changed.notify_all();
    }

    /// Makes the calling thread the main thread, unless there is one.
    pub(crate) fn claim(&self) {
        self.work().main.get_or_insert(thread::current().id());
    }

    /// Returns whether the calling thread is the main thread.
    pub(crate) fn is_main(&self) -> bool {
        self.work().is_mine()
    }

    /// Returns whether the calling thread is the main thread and has work.
    pub(crate) fn is_pending(&self) -> bool {
        let work = self.work();
        work.is_mine() && !(work.requests.is_empty() && work.etherealizations.is_empty())
    }

    /// Does one job, if the calling thread is the main thread. Returns whether there was one.
    pub(crate) fn perform(&self) -> bool {
        let mut work = self.work();
        let job = work.next_of_mine();
        drop(work);
        job.map(perform).is_some()
    }

    /// Does jobs while `goes_on`. The code that ends it calls [`MainThread::tell`].
    pub(crate) fn perform_while(&self, goes_on: impl Fn() -> bool) {
        let mut work = self.work();
        while goes_on() {
            work = match work.next_of_mine() {
                Some(job) => {
                    drop(work);
                    perform(job);
                    self.work()
                }
                None => self
                    .changed
                    .wait(work)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Wakes the threads in [`MainThread::perform_while`].
    pub(crate) fn tell(&self) {
        drop(self.work());
        self.changed.notify_all();
    }

    /// Drops the requests that have not started, and refuses new ones.
    pub(super) fn close(&self) {
        let mut work = self.work();
        work.is_closed = true;
        let requests = std::mem::take(&mut work.requests);
        drop(work);
        drop(requests);
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    fn is_mine(&self) -> bool {
        self.main == Some(thread::current().id())
    }

    fn next_of_mine(&mut self) -> Option<Job> {
        if !self.is_mine() {
            return None;
        }
        self.requests
            .pop_front()
            .or_else(|| self.etherealizations.pop_front())
    }
}

fn perform(job: Job) {
    let outer = WORKS.replace(true);
    job();
    WORKS.set(outer);
}
