//! Reads our files with foreign programs, for tests: Python modules that may be absent.

use std::path::Path;
use std::process::Command;

use deckwatch_testkit::skip;

/// Returns what a Python program prints about a file. If its module is not installed, counts a skip and returns `None`.
/// `DECKWATCH_PYTHON` selects another interpreter.
pub(crate) fn python(module: &str, program: &str, file: &Path) -> Option<String> {
    let python = std::env::var_os("DECKWATCH_PYTHON").unwrap_or_else(|| "python3".into());
    let there = Command::new(&python)
        .args(["-c", &format!("import {module}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if !there {
        let package = module.split('.').next().unwrap_or(module);
        skip(
            &format!("python-{package}"),
            "the module is not installed; name a Python that has it in DECKWATCH_PYTHON",
        );
        return None;
    }
    let output = Command::new(&python)
        .args(["-c", program])
        .arg(file)
        .output()
        .expect("python was there");
    assert!(
        output.status.success(),
        "{module}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
