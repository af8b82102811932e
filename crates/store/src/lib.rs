//! An embedded store in a file, for services whose state outlives their process. Each committed transaction is durable.
//!
//! It adds to the database what a service needs beside it:
//!
//! * A file that could not be made whole is never left behind.
//! * After a failed write, for example to a full disk, the database is opened again before the next transaction.
//!   Meanwhile it can be read.
//! * A damaged file is an error, never a panic.

#![forbid(unsafe_code)]

use std::fmt;
use std::io::ErrorKind;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageBackend, StorageError,
    TransactionError, WriteTransaction,
};

pub use redb;

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

/// A database on a disk, or in memory.
pub struct Store {
    database: RwLock<Opened>,
    open: Open,
    /// The file that is written to check that the disk accepts data.
    probe: Option<PathBuf>,
}

#[derive(Debug)]
struct Opened {
    /// `None` if the database could not be opened again.
    database: Option<Database>,
    /// How many times the database has been opened again.
    turn: u64,
}

type Open = Box<dyn Fn() -> Result<Database, DatabaseError> + Send + Sync>;

/// Fills a new database, and reads one that exists.
pub type Fill<'f> = &'f dyn Fn(&WriteTransaction) -> Result<(), redb::Error>;

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the store in a file, or creates it. `fill` makes its tables unless they exist.
    ///
    /// # Errors
    /// When the file cannot be opened, is in use by another process, or is damaged.
    pub fn open(path: &Path, fill: Fill<'_>) -> Result<Self, redb::Error> {
        if path.exists() {
            verify(path)?;
        } else {
            make(path, fill)?;
        }
        let (probe, path) = (beside(path, "probe"), path.to_owned());
        Self::with(Box::new(move || Database::create(&path)), Some(probe), fill)
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
        let open = move || Database::builder().create_with_backend(backend());
        Self::with(Box::new(open), None, fill)
    }

    fn with(open: Open, probe: Option<PathBuf>, fill: Fill<'_>) -> Result<Self, redb::Error> {
        let database = open()?;
        write_first(&database, fill)?;
        let opened = Opened {
            database: Some(database),
            turn: 0,
        };
        Ok(Self {
            database: RwLock::new(opened),
            open,
            probe,
        })
    }

    /// Begins to read.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn read(&self) -> Result<ReadTransaction, redb::Error> {
        self.begin(Database::begin_read)
    }

    /// Begins to write. What is committed is durable.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn write(&self) -> Result<WriteTransaction, redb::Error> {
        self.begin(Database::begin_write)
    }

    /// Begins a transaction. After a failed write, for example to a full disk, a database must be opened again before
    /// it can be written.
    fn begin<T>(
        &self,
        begin: impl Fn(&Database) -> Result<T, TransactionError>,
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

/// Reads the whole file and verifies its checksums.
fn verify(path: &Path) -> Result<(), redb::Error> {
    // The database asserts much of what it reads. After a panic in it its destructor would panic, too: it is leaked.
    let verified = catch_unwind(AssertUnwindSafe(|| -> Result<bool, redb::Error> {
        let mut database = ManuallyDrop::new(Database::create(path)?);
        let is_sound = database.check_integrity()?;
        if is_sound {
            drop(ManuallyDrop::into_inner(database));
        }
        Ok(is_sound)
    }));
    match verified {
        Ok(Ok(true)) => Ok(()),
        Ok(Err(error)) => Err(error),
        Ok(Ok(false)) | Err(_) => {
            let reason = "its content does not match its checksums";
            Err(redb::Error::Corrupted(reason.to_owned()))
        }
    }
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

fn write_first(database: &Database, fill: Fill<'_>) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    fill(&write)?;
    write.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests;
