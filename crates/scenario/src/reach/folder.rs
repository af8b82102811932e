//! The private folder of a part, of an end of a sweep or of a load on a far host. It is locked as long as the process
//! lives, and tells other runs
//! that the host is taken.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use deckwatch_testbed::Owner;

use crate::part::ProcessError;
use crate::room::MEMORY;

/// The place of one end of a run on a host: a folder in memory, removed when dropped.
#[derive(Debug)]
pub struct FarFolder {
    path: PathBuf,
    /// Holds the lock. The kernel releases it when the process ends.
    _claim: File,
}

impl FarFolder {
    /// Makes the folder of an end of this run, whose name has letters and digits alone. Removes what killed processes have left behind.
    ///
    /// # Errors
    /// [`ProcessError::Busy`] if ends of another run live on this host; [`ProcessError::Far`].
    pub fn make(run: &str) -> Result<Self, ProcessError> {
        let memory = Path::new(MEMORY);
        if memory.is_dir() {
            Self::make_in(memory, run)
        } else {
            Self::make_in(&std::env::temp_dir(), run)
        }
    }

    /// As [`Self::make`], and makes it the working directory of this process.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub fn enter(run: &str) -> Result<Self, ProcessError> {
        let folder = Self::make(run)?;
        std::env::set_current_dir(&folder.path).map_err(ProcessError::Far)?;
        Ok(folder)
    }

    fn make_in(base: &Path, run: &str) -> Result<Self, ProcessError> {
        if run.is_empty() || !run.chars().all(|c| c.is_ascii_alphanumeric()) {
            return Err(ProcessError::Plan("the run has no name".to_owned()));
        }
        let path = base.join(format!("{PREFIX}{run}-{}", Owner::this_process()));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(ProcessError::Far)?;
        let claim = File::open(&path).map_err(ProcessError::Far)?;
        // A file system without locks has the owner's name only.
        let _ = claim.try_lock();
        let folder = Self {
            path,
            _claim: claim,
        };
        // Looked for only now, so that of two runs that start at once at least one sees the other.
        match other_run(base, run) {
            Some(other) => Err(ProcessError::Busy { other }),
            None => Ok(folder),
        }
    }

    /// Returns its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for FarFolder {
    fn drop(&mut self) {
        // The next part on this host removes what remains.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Returns another run that has a living part on this host. Removes the folders of dead parts.
fn other_run(base: &Path, run: &str) -> Option<String> {
    let entries = std::fs::read_dir(base).ok()?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str());
        let parts = name.and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        let Some((of_run, owner)) = parts else {
            continue;
        };
        let has_ended = Owner::parse(owner).is_none_or(|(owner, _)| owner.has_ended());
        // A process in another container has no process id here, and holds the lock.
        if has_ended && !is_locked(&path) {
            let _ = std::fs::remove_dir_all(&path);
        } else if of_run != run {
            return Some(of_run.to_owned());
        }
    }
    None
}

fn is_locked(path: &Path) -> bool {
    File::open(path).is_ok_and(|claim| matches!(claim.try_lock(), Err(TryLockError::WouldBlock)))
}

/// Prefix of the name; the run and the owner follow.
const PREFIX: &str = "deckwatch-far-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_run_s_at_a_time_and_dead_parts_leave_nothing() {
        let base = std::env::temp_dir().join(format!("deckwatch-folders-{}", std::process::id()));
        std::fs::create_dir(&base).expect("writable");
        // A dead process: no process has the id 0.
        let left = base.join(format!("{PREFIX}old-dw999999999-1-0"));
        std::fs::create_dir(&left).expect("writable");
        let first = FarFolder::make_in(&base, "a").expect("free");
        assert!(!left.exists());
        let second = FarFolder::make_in(&base, "a").expect("the same run");
        let refused = FarFolder::make_in(&base, "b");
        assert!(matches!(refused, Err(ProcessError::Busy { other }) if other == "a"));
        drop((first, second));
        drop(FarFolder::make_in(&base, "b").expect("free again"));
        std::fs::remove_dir(&base).expect("nothing is left in it");
    }
}
