//! The thread that turns records into text and writes them.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use deckwatch_sync::{BoundedQueue, Popped, PushError};

use super::narrator::Narrator;
use super::record::Record;
use crate::limits::{TRACE_FLUSH_TIMEOUT, TRACE_RECORDS_MAX};
use crate::transport::Instant64;

/// The sink of the trace.
pub(crate) struct Sink(Box<dyn Write + Send>);

impl Sink {
    pub(crate) fn new(write: impl Write + Send + 'static) -> Self {
        Self(Box::new(write))
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

/// Opens `stderr`, or a file to append to.
///
/// # Errors
/// The error of the system if the file cannot be opened.
pub(crate) fn open_sink(place: &str) -> io::Result<Sink> {
    if place == "stderr" {
        return Ok(Sink::new(io::stderr()));
    }
    let file = OpenOptions::new().create(true).append(true).open(place)?;
    Ok(Sink::new(file))
}

pub(super) struct Printer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    ring: BoundedQueue<Record>,
    taken: AtomicU64,
    lost: AtomicU64,
    written: Mutex<u64>,
    progress: Condvar,
}

impl Printer {
    pub(super) fn start(sink: Sink, begun: Instant64) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            ring: BoundedQueue::with_capacity(TRACE_RECORDS_MAX),
            taken: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            written: Mutex::new(0),
            progress: Condvar::new(),
        });
        let thread = std::thread::Builder::new()
            .name("orb-trace".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.print(sink, begun)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Adds a record. If the ring is full the record is counted as lost.
    pub(super) fn take(&self, record: Record) {
        let counter = match self.shared.ring.push(record) {
            Ok(()) => &self.shared.taken,
            Err(PushError::Full(_)) => &self.shared.lost,
            Err(PushError::Closed(_)) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until all earlier records are written, up to a limit: the reader of the sink may be blocked.
    pub(super) fn flush(&self) {
        let taken = self.shared.taken.load(Ordering::Relaxed);
        let written = self
            .shared
            .written
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        drop(
            self.shared
                .progress
                .wait_timeout_while(written, TRACE_FLUSH_TIMEOUT, |written| *written < taken),
        );
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.flush();
        self.shared.ring.close();
        // A sink that is not read would block the thread for ever. In that case the thread is not joined.
        let is_done = {
            let written = self
                .shared
                .written
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *written >= self.shared.taken.load(Ordering::Relaxed)
        };
        if let Some(thread) = self.thread.take().filter(|_| is_done) {
            let _ = thread.join(); // A panic of it has no further effect.
        }
    }
}

impl Shared {
    fn print(&self, Sink(mut sink): Sink, begun: Instant64) {
        let mut narrator = Narrator::new(begun);
        let mut told_lost = 0;
        while let Popped::Value(record) = self.ring.pop(None) {
            let mut text = narrator.tell(&record);
            let lost = self.lost.load(Ordering::Relaxed);
            if lost != told_lost {
                text.push_str(&format!(
                    "({} records were lost: the trace was not written fast enough)\n",
                    lost - told_lost
                ));
                told_lost = lost;
            }
            let _ = sink.write_all(text.as_bytes()).and_then(|()| sink.flush());
            *self.written.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.progress.notify_all();
        }
    }
}
