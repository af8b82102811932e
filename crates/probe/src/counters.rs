//! Counters of a process: system calls, futex calls, heap allocations, locks taken.
//!
//! The kernel's tracepoints and probes ([`deckwatch_os::perf`]) count from outside, so that any running program can be
//! counted as it is. Allocations are calls of the C library's allocator by any code in the process, the library
//! included. There are four kinds of locks:
//! * Mutexes and read-write locks of the C library's threads are its functions.
//! * Those of Rust's library are functions of the program only in a build without optimisation. In an optimised program
//!   they are inlined, and only a lock that is contended shows, as a futex call.
//! * Ours are inlined; [`deckwatch_sync::locks_taken`] counts them.
//! * Of those of a virtual machine only the futex calls are seen.

mod symbols;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use deckwatch_os::perf::{Entries, Event, EventCount};
use serde::Serialize;
use symbols::Table;

use crate::limits::{COUNTED_THREADS_MAX, KERNEL_FILE_LEN_MAX};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    /// System calls.
    SystemCalls,
    /// System calls that wait for a contended lock or a condition.
    FutexWaits,
    /// All futex calls: these waits, and what wakes them.
    FutexCalls,
    /// Calls of malloc and its relatives.
    Allocations,
    /// Calls that take a mutex or a read-write lock of the C library's threads.
    MutexLocks,
    /// Calls that take a `Mutex` or a `RwLock` of Rust's library.
    RustLocks,
}

impl Counted {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::SystemCalls,
        Self::FutexWaits,
        Self::FutexCalls,
        Self::Allocations,
        Self::MutexLocks,
        Self::RustLocks,
    ];

    /// The kinds of a program in another language.
    pub const ALL_BUT_RUST: [Self; 5] = [
        Self::SystemCalls,
        Self::FutexWaits,
        Self::FutexCalls,
        Self::Allocations,
        Self::MutexLocks,
    ];

    /// The functions of the C library whose calls are counted.
    const fn functions(self) -> &'static [&'static str] {
        match self {
            Self::SystemCalls | Self::FutexWaits | Self::FutexCalls | Self::RustLocks => &[],
            Self::Allocations => &[
                "malloc",
                "calloc",
                "realloc",
                "posix_memalign",
                "aligned_alloc",
                "memalign",
            ],
            Self::MutexLocks => &[
                "pthread_mutex_lock",
                "pthread_mutex_trylock",
                "pthread_mutex_timedlock",
                "pthread_mutex_clocklock",
                "pthread_rwlock_rdlock",
                "pthread_rwlock_wrlock",
            ],
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SystemCalls => "system calls",
            Self::FutexWaits => "waits for locks and conditions",
            Self::FutexCalls => "futex calls",
            Self::Allocations => "heap allocations",
            Self::MutexLocks => "mutex locks of the C library",
            Self::RustLocks => "locks of Rust's library",
        })
    }
}

/// Why events cannot be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CannotCount {
    /// The kernel refuses.
    #[error("The kernel does not count {what} here: {source}.")]
    Refused {
        /// The kind of event.
        what: Counted,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// The process has no known C library mapped.
    #[error("The process has no C library whose functions could be counted.")]
    NoLibrary,
    /// The program has no functions that take locks of Rust's library.
    #[error(
        "The program has none of the functions that take {}: they are inlined in an optimised build, and others have none.",
        Counted::RustLocks
    )]
    Inlined,
    /// One of the kernel's files, or the library, cannot be read.
    #[error("{path}: {source}.")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The process has more threads than can be counted.
    #[error("The process has more than {COUNTED_THREADS_MAX} threads.")]
    TooManyThreads,
}

/// Counts events of one process: of its present threads and of those that they start.
///
/// A thread that starts at the same time may be missed or counted twice: begin while the process is idle.
#[derive(Debug)]
pub struct Watch {
    counts: BTreeMap<Counted, Counting>,
    missing: BTreeMap<Counted, CannotCount>,
}

/// The running counts of one kind.
#[derive(Debug)]
struct Counting {
    of_threads: Vec<EventCount>,
    /// Dropped after its counts: the kernel keeps an event that is counted.
    _entries: Option<Entries>,
}

impl Watch {
    /// Starts counting `wanted` in the process `process`. Kinds that cannot be counted here are
    /// [missing](Self::missing).
    #[must_use]
    pub fn begin(process: u32, wanted: &[Counted]) -> Self {
        Self::begin_at((process, None), wanted)
    }

    /// As [`Self::begin`], of one thread of the process and those that it starts.
    #[must_use]
    pub fn begin_thread(process: u32, thread: u32, wanted: &[Counted]) -> Self {
        Self::begin_at((process, Some(thread)), wanted)
    }

    fn begin_at(at: Where, wanted: &[Counted]) -> Self {
        let mut watch = Self {
            counts: BTreeMap::new(),
            missing: BTreeMap::new(),
        };
        for &what in wanted {
            match begin(at, what) {
                Ok(counts) => drop(watch.counts.insert(what, counts)),
                Err(error) => drop(watch.missing.insert(what, error)),
            }
        }
        watch
    }

    /// The counts until now.
    #[must_use]
    pub fn read(&self) -> Counts {
        let sum = |(what, counting): (&Counted, &Counting)| {
            let counts = counting.of_threads.iter();
            let read: Result<Vec<u64>, _> = counts.map(EventCount::read).collect();
            Some((*what, read.ok()?.iter().sum()))
        };
        Counts(self.counts.iter().filter_map(sum).collect())
    }

    /// The kinds that are not counted, and why.
    #[must_use]
    pub const fn missing(&self) -> &BTreeMap<Counted, CannotCount> {
        &self.missing
    }
}

/// Counts by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts(BTreeMap<Counted, u64>);

impl Counts {
    /// The count of one kind. Returns `None` if it was not counted.
    #[must_use]
    pub fn of(&self, what: Counted) -> Option<u64> {
        self.0.get(&what).copied()
    }

    /// The differences from `earlier` counts.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = |(what, count): (&Counted, &u64)| {
            Some((*what, count.saturating_sub(earlier.of(*what)?)))
        };
        Self(self.0.iter().filter_map(grown).collect())
    }
}

/// A process, and one thread of it or all.
type Where = (u32, Option<u32>);

fn begin(at: Where, what: Counted) -> Result<Counting, CannotCount> {
    let (process, _) = at;
    match what {
        Counted::SystemCalls => count_each(at, what, Event::SystemCalls),
        Counted::FutexWaits => count_each(at, what, Event::FutexWaits),
        Counted::FutexCalls => count_each(at, what, Event::FutexCalls),
        Counted::Allocations | Counted::MutexLocks => {
            let library = library(process)?;
            let is_wanted = |name: &[u8]| {
                let mut wanted = what.functions().iter();
                wanted.any(|it| it.as_bytes() == name)
            };
            let offsets = entries(&library, Table::Dynamic, &is_wanted)?;
            if offsets.is_empty() {
                return Err(CannotCount::NoLibrary);
            }
            count_entries(at, what, &library, &offsets)
        }
        Counted::RustLocks => {
            let program = PathBuf::from(format!("/proc/{process}/exe"));
            let offsets = entries(&program, Table::All, &symbols::is_rust_lock)?;
            if offsets.is_empty() {
                return Err(CannotCount::Inlined);
            }
            count_entries(at, what, &program, &offsets)
        }
    }
}

fn count_entries(
    at: Where,
    what: Counted,
    file: &Path,
    offsets: &[u64],
) -> Result<Counting, CannotCount> {
    let refused = |source| CannotCount::Refused { what, source };
    let entries = Entries::of(file, offsets).map_err(refused)?;
    let counting = count_each(at, what, Event::Entries(&entries))?;
    Ok(Counting {
        _entries: Some(entries),
        ..counting
    })
}

fn count_each(
    (process, thread): Where,
    what: Counted,
    event: Event<'_>,
) -> Result<Counting, CannotCount> {
    let mut of_threads = Vec::new();
    for thread in thread.map_or_else(|| threads(process), |thread| Ok(vec![thread]))? {
        match EventCount::of_thread(event, thread) {
            Ok(count) => of_threads.push(count),
            Err(source) if source.raw_os_error() == Some(NO_SUCH_THREAD) => {}
            Err(source) => return Err(CannotCount::Refused { what, source }),
        }
    }
    Ok(Counting {
        of_threads,
        _entries: None,
    })
}

/// ESRCH: the thread has ended meanwhile.
const NO_SUCH_THREAD: i32 = 3;

fn file(path: &Path) -> impl FnOnce(std::io::Error) -> CannotCount {
    let path = path.to_owned();
    move |source| CannotCount::File { path, source }
}

fn threads(process: u32) -> Result<Vec<u32>, CannotCount> {
    let path = PathBuf::from(format!("/proc/{process}/task"));
    let mut threads = Vec::new();
    for entry in std::fs::read_dir(&path).map_err(file(&path))? {
        let name = entry.map_err(file(&path))?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
        if threads.len() > COUNTED_THREADS_MAX {
            return Err(CannotCount::TooManyThreads);
        }
    }
    Ok(threads)
}

/// The file offsets of the functions in `file` whose names are wanted, each once: a function may have several names.
fn entries(
    path: &Path,
    table: Table,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<u64>, CannotCount> {
    let octets = std::fs::read(path).map_err(file(path))?;
    let mut offsets = symbols::function_offsets(&octets, table, is_wanted);
    offsets.sort_unstable();
    offsets.dedup();
    Ok(offsets)
}

/// The path of the C library that the process has mapped.
fn library(process: u32) -> Result<PathBuf, CannotCount> {
    use std::io::Read as _;
    let path = PathBuf::from(format!("/proc/{process}/maps"));
    let mut maps = String::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(KERNEL_FILE_LEN_MAX).read_to_string(&mut maps))
        .map_err(file(&path))?;
    let is_library = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name == "libc.so.6" || name.starts_with("libc-2.") || name.starts_with("ld-musl-")
    };
    let found = maps
        .lines()
        .filter_map(|line| line.split_ascii_whitespace().nth(5))
        .find(is_library);
    found.map(PathBuf::from).ok_or(CannotCount::NoLibrary)
}
