//! Tests whose second half is run by a user who is permitted nothing.

use std::process::Command;

const AS_NOBODY: &str = "DECKWATCH_TEST_AS_NOBODY";
const NOBODY: u32 = 65_534;

/// Whether this is the second half.
pub(crate) fn is_here() -> bool {
    std::env::var_os(AS_NOBODY).is_some()
}

/// Runs the second half of this test: as nobody where this user is root, else as himself.
pub(crate) fn run(test: &str) {
    let folder = std::env::temp_dir();
    let copy = folder.join(format!("deckwatch-nobody-{}", std::process::id()));
    let own = std::env::current_exe().expect("the test runs from a file");
    std::fs::copy(own, &copy).expect("room for a copy that others may run");
    let mut child = Command::new(&copy);
    child
        .args(["--exact", test])
        .env(AS_NOBODY, "1")
        .current_dir(&folder);
    if std::fs::metadata("/proc/self").is_ok_and(|meta| is_root(&meta)) {
        use std::os::unix::process::CommandExt;
        child.uid(NOBODY).gid(NOBODY);
    }
    let outcome = child.output();
    std::fs::remove_file(&copy).expect("it is ours");
    let outcome = outcome.expect("it starts");
    let said = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

fn is_root(meta: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    meta.uid() == 0
}
