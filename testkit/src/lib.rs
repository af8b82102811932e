//! What tests share: processes of their own, skips that are counted, foreign programs that may be absent, damage to
//! files, a disk in memory, and the processor time of other processes.

#![forbid(unsafe_code)]

mod alone;
pub mod certificates;
pub mod damage;
mod disk;
mod others;

pub use alone::{alone, alone_as_nobody, alone_with};
pub use disk::Disk;
pub use others::OtherProcesses;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Counts a test that cannot run on this machine. `what` is the word that `interop/gaps.toml` may list; `why` says what
/// is missing.
///
/// The line goes to standard error and, where `cargo xtask ci` runs the test, into its ledger with the test's name: a
/// skip never looks like a pass. Only the test's own thread has that name, so call this there.
///
/// # Panics
/// Panics if the ledger is named but cannot be written.
pub fn skip(what: &str, why: &str) {
    eprintln!("skipped: {what}: {why}");
    note(&format!("{what}: {}", why.replace('\n', " ")));
}

/// Counts a part that a test leaves out: the test checks something else all the same.
///
/// # Panics
/// As [`skip`].
pub fn skip_part(what: &str, why: &str) {
    skip(what, why);
    did_a_part();
}

/// Notes that a test checks something although it has counted a skip, for example in a function that it called. The
/// ledger then counts it as a test that has left out a part.
///
/// # Panics
/// As [`skip`].
pub fn did_a_part() {
    note("did a part");
}

/// Appends a line to the ledger.
fn note(line: &str) {
    let Some(path) = std::env::var_os("DECKWATCH_SKIPS") else {
        return;
    };
    let mut ledger = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .expect("the skip ledger opens");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a thread without a name");
    // One write: other tests append at the same time.
    ledger
        .write_all(format!("{test}\t{line}\n").as_bytes())
        .expect("the skip ledger takes a line");
}

/// The ids of this process's threads whose name is wanted. The kernel keeps the first 15 octets of a name.
///
/// # Panics
/// Panics if the kernel does not list the threads.
#[must_use]
pub fn threads(is_wanted: impl Fn(&str) -> bool) -> Vec<u32> {
    let threads = std::fs::read_dir("/proc/self/task").expect("the kernel lists them");
    let named = threads.filter_map(|thread| {
        let thread = thread.ok()?;
        let comm = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        let id = thread.file_name().to_str()?.parse().ok()?;
        is_wanted(comm.trim_end()).then_some(id)
    });
    named.collect()
}

/// The path of a program on PATH, or a counted skip.
#[must_use]
pub fn program(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    });
    if found.is_none() {
        skip(name, "the program is not installed");
    }
    found
}
