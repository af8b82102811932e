//! Where a run keeps what it writes: the result folder, which stays, and a working folder in memory, which does not.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use deckwatch_meter::provenance::rfc3339;
use deckwatch_os::mapped::room_bytes;
use deckwatch_testbed::Owner;

use super::RunError;
use crate::limits::SAME_SECOND_MAX;

/// Makes a result folder that was not there: `wanted`, or one in `results/` named after the mission (or whatever else is run) and the time.
///
/// # Errors
/// [`RunError::Folder`], [`RunError::FolderTaken`].
pub fn make_result_folder(
    wanted: Option<&Path>,
    mission: &str,
    now: SystemTime,
) -> Result<PathBuf, RunError> {
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        move |error| RunError::Folder { path, error }
    };
    if let Some(wanted) = wanted {
        std::fs::create_dir_all(wanted).map_err(unwritable(wanted))?;
        let empty = std::fs::read_dir(wanted)
            .map_err(unwritable(wanted))?
            .next()
            .is_none();
        if !empty {
            return Err(RunError::FolderTaken {
                path: wanted.to_owned(),
            });
        }
        return Ok(wanted.to_owned());
    }
    let results = Path::new("results");
    std::fs::create_dir_all(results).map_err(unwritable(results))?;
    let name = format!("{}-{}", file_name(mission), compact(now));
    for attempt in 1..=SAME_SECOND_MAX {
        let suffix = if attempt == 1 {
            String::new()
        } else {
            format!("-{attempt}")
        };
        let folder = results.join(format!("{name}{suffix}"));
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(unwritable(&folder)(error)),
        }
    }
    Err(RunError::FolderTaken {
        path: results.join(name),
    })
}

/// A name as part of a file's name.
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

/// Date and time without punctuation, to the second: 20261121T094046Z.
fn compact(now: SystemTime) -> String {
    let text = rfc3339(now);
    let to_second = text.split('.').next().unwrap_or(&text);
    to_second.replace(['-', ':'], "") + "Z"
}

/// A folder for record files and captures, on a memory file system where there is room on one; removed when dropped.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// Makes one with room for `size_bytes`; in `otherwise` where memory has none.
    pub(super) fn make(size_bytes: u64, otherwise: &Path) -> Result<Self, RunError> {
        let memory = Path::new(MEMORY);
        let name = format!("{PREFIX}{}", Owner::this_process());
        if room_bytes(memory).is_ok_and(|room| room / 2 > size_bytes) {
            let path = memory.join(&name);
            if std::fs::create_dir(&path).is_ok() {
                return Ok(Self { path });
            }
        }
        let path = otherwise.join("work");
        std::fs::create_dir(&path).map_err(|error| RunError::Folder {
            path: path.clone(),
            error,
        })?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the working folders that runs that were killed have left in memory, and returns which. Another user's cannot be removed; they are that user's to clean.
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
        // The next run removes what this one cannot.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A memory file system that every Linux system has.
const MEMORY: &str = "/dev/shm";
/// Begins the name of a working folder; the owner follows.
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
        let made = make_result_folder(Some(&folder), "m", SystemTime::now()).expect("a new folder");
        std::fs::write(made.join("x"), "x").expect("writable");
        let error = make_result_folder(Some(&folder), "m", SystemTime::now());
        assert!(matches!(error, Err(RunError::FolderTaken { .. })));
        std::fs::remove_dir_all(&folder).expect("removable");
    }

    #[test]
    fn a_work_folder_is_gone_when_dropped_and_stands_elsewhere_where_memory_has_no_room() {
        let here = std::env::temp_dir().join(format!("deckwatch-work-{}", std::process::id()));
        std::fs::create_dir(&here).expect("writable");
        let work = WorkFolder::make(u64::MAX, &here).expect("a folder");
        assert!(work.path().starts_with(&here));
        let path = work.path().to_owned();
        drop(work);
        assert!(!path.exists());
        std::fs::remove_dir(&here).expect("empty");
    }
}
