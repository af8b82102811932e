//! Many clients that call at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, PoisonError, RwLock};

use deckwatch_os::clock::monotonic_ns;

use super::commands::Samples;
use super::{EndPlan, place};

/// Calls from one thread for each of `clients`. All begin at once and call without pause until the time is reached.
pub(super) fn call_together<'c, C: Sync, F: FnMut() -> Result<(), String>>(
    plan: &EndPlan,
    (budget_ns, samples): (i64, &mut Samples),
    clients: &'c [C],
    prepare: impl Fn(&'c C) -> F + Sync,
) -> Result<(), String> {
    let begun = Barrier::new(clients.len());
    let calls = AtomicU64::new(0);
    let begin_ns = monotonic_ns();
    let is_cancelled = RwLock::new(false);
    let one = |client: &'c C| -> Result<(), String> {
        place(plan.fifo);
        let mut call = prepare(client);
        if *is_cancelled
            .read()
            .map_err(|_| "the start of the load has panicked")?
        {
            return Ok(());
        }
        begun.wait();
        let until_ns = monotonic_ns() + budget_ns;
        let mut made = 0;
        while monotonic_ns() < until_ns {
            call()?;
            made += 1;
        }
        calls.fetch_add(made, Ordering::Relaxed);
        Ok(())
    };
    let one = &one;
    std::thread::scope(|scope| {
        // The lock holds all threads until the last is started, or has failed to start.
        let mut cancelled = is_cancelled.write().unwrap_or_else(PoisonError::into_inner);
        let start = |client| std::thread::Builder::new().spawn_scoped(scope, move || one(client));
        let threads: Result<Vec<_>, _> = clients.iter().map(start).collect();
        *cancelled = threads.is_err();
        drop(cancelled);
        let cannot = |error| format!("a thread of the load cannot be started: {error}");
        let threads = threads.map_err(cannot)?;
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err("a thread of the load has panicked".to_owned()))
        })
    })?;
    let elapsed_ns = (monotonic_ns() - begin_ns).unsigned_abs();
    samples.set_sum(calls.load(Ordering::Relaxed), elapsed_ns);
    Ok(())
}
