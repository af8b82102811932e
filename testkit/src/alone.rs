//! Tests that need a process of their own: they count what a whole process does, or change what a whole process has.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set in the child: the name of the test that it runs.
const ALONE: &str = "DECKWATCH_TEST_ALONE";

/// Runs `body`, which must be a closure of the test's own function, in a process in which no other test runs.
///
/// The same program is started again with this test's name. Its output is printed here.
///
/// # Panics
/// When the child fails or runs no test.
pub fn alone<F: FnOnce()>(body: F) {
    alone_with(body, |command| command);
}

/// The same, with the command of the child as `prepare` makes it of the usual one.
///
/// # Panics
/// When the child fails or runs no test.
pub fn alone_with<F: FnOnce()>(body: F, prepare: impl FnOnce(Command) -> Command) {
    let test = test_of::<F>();
    if std::env::var_os(ALONE).is_some_and(|name| name == test) {
        return body();
    }
    let program = std::env::current_exe().expect("a test runs from a file");
    let mut child = prepare(Command::new(program));
    child
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, test);
    let output = child.output().expect("the test's own program starts");
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{test} alone: {}", output.status);
    let has_run = text.contains("test result: ok. 1 passed");
    assert!(has_run, "no test has the name {test}");
}

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
///
/// # Panics
/// When the child fails or runs no test.
pub fn alone_as_nobody<F: FnOnce()>(body: F) {
    // The user nobody cannot read the directory of this program.
    let folder = std::env::temp_dir();
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let name = format!("deckwatch-nobody-{}-{number}", std::process::id());
    let copy = Copy(folder.join(name));
    alone_with(body, |own| {
        std::fs::copy(own.get_program(), &copy.0).expect("room for a copy that others may run");
        let mut child = Command::new(&copy.0);
        child.current_dir(&folder);
        if std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0) {
            child.uid(NOBODY).gid(NOBODY);
        }
        child
    });
}

/// The name of the test whose closure `F` is: its path without the program's own name.
fn test_of<F>() -> &'static str {
    let path = std::any::type_name::<F>();
    let (_program, path) = path.split_once("::").expect("a path");
    path.trim_end_matches("::{{closure}}")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_test_that_is_alone_runs_in_another_process() {
        static HAS_RUN: AtomicBool = AtomicBool::new(false);
        let is_child = std::env::var_os(ALONE).is_some();
        alone(|| HAS_RUN.store(true, Ordering::SeqCst));
        assert_eq!(HAS_RUN.load(Ordering::SeqCst), is_child);
    }

    #[test]
    fn a_test_that_fails_alone_fails() {
        let is_child = std::env::var_os(ALONE).is_some();
        let fail = || alone(|| panic!("on purpose"));
        if is_child {
            fail();
        }
        assert!(std::panic::catch_unwind(fail).is_err());
    }

    #[test]
    fn a_name_that_no_test_has_fails() {
        fn no_test() {
            alone(|| ());
        }
        let outcome = std::panic::catch_unwind(no_test);
        assert!(outcome.is_err());
    }
}
