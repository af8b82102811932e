//! The folders of a run: the result folder, which stays, and a work folder in memory, which is removed.

use std::fs::{File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use deckwatch_meter::provenance::rfc3339;
use deckwatch_testbed::Owner;

use super::RunError;
use crate::limits::SAME_SECOND_MAX;
use crate::room::MEMORY;

/// A result folder, locked during the run. If the run made the folder and wrote nothing into it, the folder is removed.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    is_new: bool,
    /// Holds the lock. The kernel releases it when the process ends.
    _claim: Option<File>,
}

impl ResultFolder {
    /// Makes the result folder and locks it. That is `wanted`, which may exist if it is empty and not in use by another
    /// run. The default is a folder in `results/`, named after the mission, bench or experiment and the time.
    ///
    /// # Errors
    /// [`RunError::Folder`], [`RunError::FolderTaken`], [`RunError::FolderInUse`].
    pub fn make(wanted: Option<&Path>, mission: &str, now: SystemTime) -> Result<Self, RunError> {
        let Some(wanted) = wanted else {
            return Self::named(mission, now);
        };
        let path = wanted.to_owned();
        let is_new = !path.exists();
        std::fs::create_dir_all(&path).map_err(unwritable(&path))?;
        let folder = Self::claim(path, is_new)?;
        let mut held = std::fs::read_dir(&folder.path).map_err(unwritable(&folder.path))?;
        if held.next().is_some() {
            let path = folder.path.clone();
            return Err(RunError::FolderTaken { path });
        }
        Ok(folder)
    }

    /// Locks the folder of an earlier measurement, which goes on.
    ///
    /// # Errors
    /// [`RunError::Folder`], [`RunError::FolderInUse`].
    pub fn resume(path: &Path) -> Result<Self, RunError> {
        Self::claim(path.to_owned(), false)
    }

    fn claim(path: PathBuf, is_new: bool) -> Result<Self, RunError> {
        let claim = File::open(&path).map_err(unwritable(&path))?;
        let claim = match claim.try_lock() {
            Ok(()) => Some(claim),
            Err(TryLockError::WouldBlock) => return Err(RunError::FolderInUse { path }),
            // The file system does not support locks.
            Err(TryLockError::Error(_)) => None,
        };
        Ok(Self {
            path,
            is_new,
            _claim: claim,
        })
    }

    fn named(mission: &str, now: SystemTime) -> Result<Self, RunError> {
        let results = Path::new("results");
        std::fs::create_dir_all(results).map_err(unwritable(results))?;
        let name = format!("{}-{}", file_name(mission), compact(now));
        for attempt in 1..=SAME_SECOND_MAX {
            let suffix = if attempt == 1 {
                String::new()
            } else {
                format!("-{attempt}")
            };
            let path = results.join(format!("{name}{suffix}"));
            match std::fs::create_dir(&path) {
                // `create_dir` succeeds for one run only, so that no lock is needed.
                Ok(()) => {
                    return Ok(Self {
                        path,
                        is_new: true,
                        _claim: None,
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unwritable(&path)(error)),
            }
        }
        Err(RunError::FolderTaken {
            path: results.join(name),
        })
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        if self.is_new {
            // Fails if the folder is not empty; it is then kept.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> RunError {
    let path = path.to_owned();
    move |error| RunError::Folder { path, error }
}

/// Converts a name to a part of a file name.
pub(super) fn file_name(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') {
            c
        } else {
            '-'
        }
    };
    text.trim_start_matches('.').chars().map(plain).collect()
}

/// Formats date and time without punctuation, to the second: 20261121T094046Z.
fn compact(now: SystemTime) -> String {
    let text = rfc3339(now);
    let to_second = text.split('.').next().unwrap_or(&text);
    to_second.replace(['-', ':'], "") + "Z"
}

/// The folder for record files and captures in memory, removed when dropped.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    pub(super) fn make() -> Result<Self, RunError> {
        let path = Path::new(MEMORY).join(format!("{PREFIX}{}", Owner::this_process()));
        // Records and captures are the user's alone.
        let mut builder = std::fs::DirBuilder::new();
        builder
            .mode(0o700)
            .create(&path)
            .map_err(unwritable(&path))?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes work folders that killed runs have left in memory, and returns their paths. Those of other users cannot be
/// removed; that is left to their owners.
pub fn clean_work_folders() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(MEMORY) else {
        return Vec::new();
    };
    let left = |path: &PathBuf| {
        let owner = path
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix(PREFIX))
            .and_then(Owner::parse);
        owner.is_some_and(|(owner, _)| owner.has_ended())
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(left)
        .filter(|path| std::fs::remove_dir_all(path).is_ok())
        .collect()
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // An error is ignored: the next run removes what remains.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Prefix of a work folder's name; the owner follows.
const PREFIX: &str = "deckwatch-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_folders_are_named_after_mission_and_second() {
        let moment = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_795_254_046_700);
        assert_eq!(compact(moment), "20261121T094046Z");
        assert_eq!(file_name("../NAV data"), "-NAV-data");
    }

    #[test]
    fn a_folder_that_holds_something_is_not_written_into() {
        let folder = std::env::temp_dir().join(format!("deckwatch-folder-{}", std::process::id()));
        let make = || ResultFolder::make(Some(&folder), "m", SystemTime::now());
        let made = make().expect("a new folder");
        std::fs::write(made.path().join("x"), "x").expect("writable");
        drop(made);
        assert!(matches!(make(), Err(RunError::FolderTaken { .. })));
        std::fs::remove_dir_all(&folder).expect("removable");
    }

    #[test]
    fn a_folder_is_one_run_s_alone_and_goes_where_that_wrote_nothing() {
        let name = format!("deckwatch-claimed-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let make = || ResultFolder::make(Some(&folder), "m", SystemTime::now());
        let made = make().expect("a new folder");
        assert!(matches!(make(), Err(RunError::FolderInUse { .. })));
        drop(made);
        assert!(!folder.exists());
        std::fs::create_dir(&folder).expect("writable");
        drop(make().expect("an empty folder"));
        std::fs::remove_dir(&folder).expect("the user's, and still there");
    }

    #[test]
    fn a_work_folder_is_in_memory_and_gone_when_dropped() {
        let work = WorkFolder::make().expect("a folder");
        let path = work.path().to_owned();
        assert!(path.starts_with(MEMORY) && path.is_dir());
        let mode = std::fs::metadata(&path).expect("there").permissions();
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
            0o700
        );
        drop(work);
        assert!(!path.exists());
    }
}
