//! An audit log: who connected, what was refused, and who changed what, as lines of JSON.
//!
//! A record goes into a bounded queue and never blocks its sender. A thread writes the lines. What the queue does not
//! take, and what the disk does not take, is counted, and the count is written as soon as there is room. Records have no
//! contents of messages and no keys.

#![forbid(unsafe_code)]

mod file;
pub mod limits;
mod record;
mod shares;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use deckwatch_orb::{AccessEvent, AccessLog};
use file::{Lines, RotatedFile};
pub use record::{Event, Record};
use shares::Shares;

/// How a log is kept.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// The file. Earlier ones have `.1`, `.2` and so on behind its name.
    pub file: PathBuf,
    /// Octets of a file before the next one is begun.
    pub size_max: u64,
    /// Earlier files that are kept, at most [`limits::FILES_KEPT_MAX`].
    pub kept: u32,
}

impl AuditOptions {
    /// A log in this file, with the default sizes.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            size_max: limits::FILE_SIZE_DEFAULT,
            kept: limits::FILES_KEPT_DEFAULT,
        }
    }
}

/// A log; a handle that is cheap to clone. The end of the last handle writes what waits.
#[derive(Clone)]
pub struct Audit(Arc<Inner>);

struct Inner {
    queue: SyncSender<Entry>,
    /// `None` once the log is closed.
    writer: Mutex<Option<JoinHandle<()>>>,
    dropped: Arc<AtomicU64>,
}

/// What the queue holds.
enum Entry {
    Record(Box<Record>),
    End,
}

impl Audit {
    /// Opens a log, and writes that it has begun.
    ///
    /// # Errors
    /// When the file cannot be opened or is no regular file, or the thread cannot be started.
    pub fn open(options: &AuditOptions) -> io::Result<Self> {
        let kept = options.kept.min(limits::FILES_KEPT_MAX);
        let file = RotatedFile::open(&options.file, options.size_max, kept)?;
        let audit = Self::over(file)?;
        audit.record(Record::new(Event::Started));
        Ok(audit)
    }

    fn over(lines: impl Lines) -> io::Result<Self> {
        let (queue, entries) = sync_channel(limits::QUEUE_LEN_MAX);
        let dropped = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&dropped);
        let writer = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_all(lines, &entries, &counted))?;
        Ok(Self(Arc::new(Inner {
            queue,
            writer: Mutex::new(Some(writer)),
            dropped,
        })))
    }

    /// Queues a record. A full queue drops it, and counts that.
    pub fn record(&self, record: Record) {
        if self
            .0
            .queue
            .try_send(Entry::Record(Box::new(record)))
            .is_err()
        {
            self.0.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Writes what waits, and that the log ends. Later records are dropped.
    pub fn close(&self) {
        self.0.close();
    }
}

impl AccessLog for Audit {
    fn note(&self, event: &AccessEvent<'_>) {
        self.record(Record::of(event));
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Inner {
    fn close(&self) {
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(writer) = writer {
            // The writer takes entries until this one, so that this does not wait for ever.
            let _ = self.queue.send(Entry::End); // The writer may have panicked.
            let _ = writer.join(); // As above.
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// Writes records until the end.
fn write_all(mut lines: impl Lines, queue: &Receiver<Entry>, dropped: &AtomicU64) {
    let mut lost = 0;
    let mut unsaid = 0;
    let mut has_ended = false;
    let mut shares = Shares::new(Instant::now());
    while !has_ended {
        let record = match queue.recv() {
            Ok(Entry::Record(record)) => *record,
            Ok(Entry::End) | Err(_) => {
                has_ended = true;
                Record::new(Event::Ended)
            }
        };
        for (peer, mut more) in shares.take_left_out(Instant::now(), has_ended) {
            say(&mut lines, Event::Dropped, Some(peer), &mut more);
            lost += more;
        }
        if !shares.admit(&record) {
            continue;
        }
        unsaid += dropped.swap(0, Relaxed);
        say(&mut lines, Event::Dropped, None, &mut unsaid);
        say(&mut lines, Event::Lost, None, &mut lost);
        if lost > 0 || lines.write_line(&record.line()).is_err() {
            lost += 1;
        }
    }
}

/// Writes how many records are missing, of one peer or of all, if there are any. The count stays until it is written.
fn say(lines: &mut impl Lines, event: Event, peer: Option<String>, count: &mut u64) {
    if *count == 0 {
        return;
    }
    let record = Record {
        peer,
        count: Some(*count),
        ..Record::new(event)
    };
    if lines.write_line(&record.line()).is_ok() {
        *count = 0;
    }
}

/// Returns the schema of a line of a log (JSON Schema 2020-12), which is published in `docs/schema/audit-1.json`.
#[must_use]
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Record);
    schema.insert("title".to_owned(), "Deckwatch audit log, one line".into());
    schema.to_value()
}
