//! An embedded store in a file, for services whose state outlives their process. Each committed transaction is durable.
//!
//! It adds to the database what a service needs beside it:
//!
//! * A file that could not be made whole is never left behind.
//! * After a failed write, for example to a full disk, the database is opened again before the next transaction.
//!   Meanwhile it can be read.
//! * A damaged file is an error, never a panic, and never an older state: each change is in both of the states that the
//!   database keeps.
//! * Rows have checksums ([`sum`]): a service knows a row that is not the one it wrote.

#![forbid(unsafe_code)]

mod overlay;
pub mod sum;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{PoisonError, RwLock};

use deckwatch_os::allowance;
use deckwatch_os::regular;
use redb::{
    Builder, ConcurrencyMode, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction,
    ReadableDatabase, StorageBackend, StorageError, TransactionError, WriteTransaction,
};

pub use redb;

use overlay::Overlay;

/// Implements `From` for the errors of a transaction. The error type has a variant `Database(Box<redb::Error>)`.
#[macro_export]
macro_rules! from_database {
    ($whole:ident: $($error:ident),+) => {$(
        impl From<$crate::redb::$error> for $whole {
            fn from(error: $crate::redb::$error) -> Self {
                Self::Database(Box::new(error.into()))
            }
        }
    )+};
    ($whole:ident) => {
        $crate::from_database!($whole: Error, TableError, StorageError, CommitError);
    };
}

/// Octets that must be writable before a database is opened again: more than its repair needs.
const PROBE_SIZE: usize = 1 << 20;

/// The part of the memory that the process may have that the cache of a database may take.
const CACHE_SHARE: u64 = 16;

/// Octets of such a cache at most: the default of the database.
const CACHE_SIZE_MAX: usize = 1 << 30;

/// A database on a disk, or in memory.
pub struct Store {
    database: RwLock<Opened>,
    open: Open,
    /// The file that is written to check that the disk accepts data.
    probe: Option<PathBuf>,
    /// Whether the database panicked: it is not used again.
    has_panicked: AtomicBool,
    /// See [`Store::rights_taken`].
    rights_taken: Option<u32>,
}

struct Opened {
    /// `None` if the database could not be opened again.
    database: Option<Access>,
    /// How many times the database has been opened again.
    turn: u64,
}

/// How a database is open.
enum Access {
    /// For reading and writing. The checksums of all pages match, unless it was made in this process.
    Whole(Database),
    /// For reading only, whatever the checksums of its pages are.
    Salvaged(ReadOnlyDatabase),
}

impl Access {
    fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        match self {
            Self::Whole(database) => database.begin_read(),
            Self::Salvaged(database) => database.begin_read(),
        }
    }

    fn begin_write(&self) -> Result<WriteTransaction, TransactionError> {
        match self {
            Self::Whole(database) => database.begin_write(),
            Self::Salvaged(_) => {
                let words = "it is damaged, and open for reading only".to_owned();
                Err(StorageError::Corrupted(words).into())
            }
        }
    }
}

type Open = Box<dyn Fn() -> Result<Access, DatabaseError> + Send + Sync>;

/// Fills a new database, and reads one that exists.
pub type Fill<'f> = &'f dyn Fn(&WriteTransaction) -> Result<(), redb::Error>;

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("has_panicked", &self.has_panicked)
            .finish_non_exhaustive()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let opened = self
            .database
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let database = opened.database.take();
        if *self.has_panicked.get_mut() {
            // After a panic the destructor of the database would panic, too: it is leaked.
            std::mem::forget(database);
        }
    }
}

impl Store {
    /// Opens the store in a file, or creates it. `fill` makes its tables unless they exist. The whole file is read, and
    /// the checksums of its pages are verified. Rights of others to a file that this user owns are taken from them.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use by another process, or is damaged.
    pub fn open(path: &Path, fill: Fill<'_>) -> Result<Self, redb::Error> {
        if path.exists() {
            examine_kind(path)?;
        } else {
            make(path, fill)?;
        }
        let private = path.to_owned();
        let (probe, path) = (beside(path, "probe"), path.to_owned());
        let open = move || verified().open(&path).map(Access::Whole);
        let mut store = Self::with(Box::new(open), Some(probe), fill)?;
        // Some file systems have no rights, and some cannot be written. The store serves there, too.
        store.rights_taken = regular::make_private(&private).ok().flatten();
        Ok(store)
    }

    /// The rights that the file of the store had, in the form of `chmod`, if others had some and they were taken.
    #[must_use]
    pub const fn rights_taken(&self) -> Option<u32> {
        self.rights_taken
    }

    /// Opens the store in a file, which stays as it is: what is written ends with the process. The checksums of its
    /// pages are verified.
    ///
    /// # Errors
    /// As [`Store::open`], and when there is no such file.
    pub fn examine(path: &Path, fill: Fill<'_>) -> Result<Self, redb::Error> {
        examine_kind(path)?;
        let path = path.to_owned();
        let open = move || {
            let overlay = Overlay::new(file_of(&path)?)?;
            verified().create_with_backend(overlay).map(Access::Whole)
        };
        Self::with(Box::new(open), None, fill)
    }

    /// Reads the store in a damaged file, which stays as it is. No checksum of a page is verified: the rows must have
    /// checksums of their own, and what is read of them may be wrong, or an error, or missing. It cannot be changed.
    ///
    /// # Errors
    /// As [`Store::examine`], and when the header of the database cannot be read.
    pub fn salvage(path: &Path) -> Result<Self, redb::Error> {
        examine_kind(path)?;
        let path = path.to_owned();
        let open = move || {
            let overlay = Overlay::new(file_of(&path)?)?;
            overlay.mark_closed().map_err(StorageError::Io)?;
            // Of all ways to open a database, that of a reader beside a writer alone needs no sound pages: it expects
            // that the writer has verified them.
            builder()
                .set_concurrency_mode(ConcurrencyMode::SingleWriter)
                .open_read_only_with_backend(overlay)
                .map(Access::Salvaged)
        };
        Self::with(Box::new(open), None, &|_| Ok(()))
    }

    /// A store that ends with the process.
    ///
    /// # Errors
    /// When memory cannot be allocated.
    pub fn in_memory(fill: Fill<'_>) -> Result<Self, redb::Error> {
        Self::on(redb::backends::InMemoryBackend::new, fill)
    }

    /// A store on another kind of storage; `backend` is called each time it is opened.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn on<B: StorageBackend>(
        backend: impl Fn() -> B + Send + Sync + 'static,
        fill: Fill<'_>,
    ) -> Result<Self, redb::Error> {
        let open = move || builder().create_with_backend(backend()).map(Access::Whole);
        Self::with(Box::new(open), None, fill)
    }

    fn with(open: Open, probe: Option<PathBuf>, fill: Fill<'_>) -> Result<Self, redb::Error> {
        let opened = guarded(|| {
            // After a panic the destructor of the database would panic, too: it is leaked.
            let database = ManuallyDrop::new(open()?);
            let written = match &*database {
                Access::Whole(database) => write_first(database, fill),
                Access::Salvaged(_) => Ok(()),
            };
            let database = ManuallyDrop::into_inner(database);
            written.map(|()| database)
        });
        let opened = Opened {
            database: Some(opened.unwrap_or_else(|()| Err(damaged()))?),
            turn: 0,
        };
        Ok(Self {
            database: RwLock::new(opened),
            open,
            probe,
            has_panicked: AtomicBool::new(false),
            rights_taken: None,
        })
    }

    /// Reads in one transaction.
    ///
    /// # Errors
    /// When the store cannot be read, and those of `read`.
    pub fn look<T, E: From<redb::Error>>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.guarded(|| read(&self.begin(Access::begin_read)?))
    }

    /// Changes the store in one transaction, unless `change` returns an error. The change is durable when this returns.
    ///
    /// # Errors
    /// When the store cannot be written, and those of `change`.
    pub fn change<T, E: From<redb::Error>>(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.guarded(|| {
            let write = self.begin(Access::begin_write)?;
            let done = change(&write)?;
            write.commit().map_err(redb::Error::from)?;
            // The change is durable already. If this fails, the next change or the next start does it.
            let _ = self.commit_again();
            Ok(done)
        })
    }

    /// Commits without a change. The database keeps its last two states, and goes back to the older one if the newer
    /// one is damaged. After this both have the same content.
    fn commit_again(&self) -> Result<(), redb::Error> {
        Ok(self.begin(Access::begin_write)?.commit()?)
    }

    /// Runs a part that uses the database. After a panic the store only returns errors.
    fn guarded<T, E: From<redb::Error>>(&self, run: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if self.has_panicked.load(Relaxed) {
            return Err(damaged().into());
        }
        guarded(run).unwrap_or_else(|()| {
            self.has_panicked.store(true, Relaxed);
            Err(damaged().into())
        })
    }

    /// Begins a transaction. After a failed write, for example to a full disk, a database must be opened again before
    /// it can be written.
    fn begin<T>(
        &self,
        begin: impl Fn(&Access) -> Result<T, TransactionError>,
    ) -> Result<T, redb::Error> {
        let begun = || {
            let held = self.database.read().unwrap_or_else(PoisonError::into_inner);
            match &held.database {
                Some(database) => (begin(database), held.turn),
                None => (Err(StorageError::PreviousIo.into()), held.turn),
            }
        };
        match begun() {
            (Err(TransactionError::Storage(StorageError::PreviousIo)), turn) => {
                self.open_again(turn)?;
                Ok(begun().0?)
            }
            (begun, _) => Ok(begun?),
        }
    }

    /// Opens the database again, unless another thread has done so since `turn`. While nothing can be written, the
    /// database stays open for reading.
    fn open_again(&self, turn: u64) -> Result<(), redb::Error> {
        let mut held = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if held.turn != turn {
            return Ok(());
        }
        if let Some(probe) = &self.probe {
            let written = std::fs::write(probe, [0; PROBE_SIZE]);
            let _ = std::fs::remove_file(probe); // It may be gone already.
            written.map_err(StorageError::Io)?;
        }
        // The file must be closed first: it cannot be opened twice.
        drop(held.database.take());
        held.database = Some((self.open)()?);
        held.turn += 1;
        Ok(())
    }
}

/// Opens the file of an overlay. It is locked as one that is written.
fn file_of(path: &Path) -> Result<File, StorageError> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.map_err(StorageError::Io)
}

/// Refuses what is no store: a file that lost all its content, which the database would take for a new one, and pipes
/// and devices.
fn examine_kind(path: &Path) -> Result<(), redb::Error> {
    regular::check(path).map_err(StorageError::Io)?;
    if std::fs::metadata(path).map_err(StorageError::Io)?.len() == 0 {
        return Err(redb::Error::Corrupted("it is empty".to_owned()));
    }
    Ok(())
}

/// A database keeps pages that it has read, up to the lesser of its default and a part of what the process may have.
fn builder() -> Builder {
    let mut builder = Database::builder();
    let allowed = [allowance::memory(), allowance::address_space()];
    if let Some(least) = allowed.into_iter().flatten().min() {
        let part = usize::try_from(least / CACHE_SHARE).unwrap_or(usize::MAX);
        builder.set_cache_size(part.min(CACHE_SIZE_MAX));
    }
    builder
}

/// Opens a database with a check of all its pages.
fn verified() -> Builder {
    let mut builder = builder();
    builder.set_check_integrity_on_open(true);
    builder
}

/// Runs a part that uses the database, which asserts much of what it reads. Returns `Err` if it panicked.
fn guarded<T>(run: impl FnOnce() -> T) -> Result<T, ()> {
    catch_unwind(AssertUnwindSafe(run)).map_err(drop)
}

fn damaged() -> redb::Error {
    redb::Error::Corrupted("its content does not match its checksums".to_owned())
}

/// The name of a file beside `path` that no other running process uses.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{what}-{}", std::process::id()));
    beside.into()
}

/// Creates an empty store beside the file and links it there once it is complete. A partly written store, as a full
/// disk leaves it, could never be opened.
fn make(path: &Path, fill: Fill<'_>) -> Result<(), redb::Error> {
    let fresh = &beside(path, "new");
    // An earlier process with the same id may have left one.
    let _ = std::fs::remove_file(fresh); // There may be none.
    // Only its user may read it.
    regular::open_private(fresh, OpenOptions::new().write(true).create_new(true))
        .map_err(StorageError::Io)?;
    let made = Database::create(fresh)
        .map_err(redb::Error::from)
        .and_then(|database| write_first(&database, fill));
    let linked = made.and_then(|()| match std::fs::hard_link(fresh, path) {
        // Some file systems do not support hard links.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            std::fs::rename(fresh, path).map_err(|error| StorageError::Io(error).into())
        }
        _linked_or_made_by_another => Ok(()),
    });
    let _ = std::fs::remove_file(fresh); // It may be gone already.
    linked
}

/// Fills the database, and commits twice: see [`Store::commit_again`].
fn write_first(database: &Database, fill: Fill<'_>) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    fill(&write)?;
    write.commit()?;
    Ok(database.begin_write()?.commit()?)
}

#[cfg(test)]
mod tests;
