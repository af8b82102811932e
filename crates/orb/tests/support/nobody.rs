//! Tests that run as a user without permissions.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const NOBODY: u32 = 65_534;

static COPIES: AtomicU32 = AtomicU32::new(0);

/// A copy of this program; its file is removed on drop.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // The child process has no copy, so its removal fails.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs `body` in a process of its own: as the user nobody if this user is root, else as this user.
pub(crate) fn alone_as_nobody<F: FnOnce()>(body: F) {
    // The user nobody cannot read the directory of this program.
    let folder = std::env::temp_dir();
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let name = format!("deckwatch-nobody-{}-{number}", std::process::id());
    let copy = Copy(folder.join(name));
    deckwatch_testkit::alone_with(body, |own| {
        std::fs::copy(own.get_program(), &copy.0).expect("room for a copy that others may run");
        let mut child = Command::new(&copy.0);
        child.current_dir(&folder);
        if std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0) {
            child.uid(NOBODY).gid(NOBODY);
        }
        child
    });
}
