//! What is said of malformed mission files: each `malformed/*.toml` beside the words expected of it.
//!
//! `DECKWATCH_BLESS=1 cargo test -p deckwatch-scenario --test scenario malformed` writes the words anew, to be read
//! before they are committed.

use std::path::{Path, PathBuf};

use deckwatch_scenario::mission::{LoadError, Mission};

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/malformed");
    let entries = std::fs::read_dir(folder).expect("the folder of malformed missions");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut missions: Vec<_> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    missions.sort();
    missions
}

#[test]
fn each_malformed_mission_is_told_as_it_should_be() {
    let bless = std::env::var_os("DECKWATCH_BLESS").is_some();
    // Paths in the words are relative to the crate, where tests run.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for path in files() {
        let relative = path.strip_prefix(root).expect("inside the crate");
        let error = Mission::load(relative, None).expect_err("a malformed mission");
        let words = error.to_string();
        let golden = path.with_extension("txt");
        if bless {
            std::fs::write(&golden, &words).expect("writable");
        }
        let expected = std::fs::read_to_string(&golden).unwrap_or_default();
        if words != expected {
            wrong.push(format!(
                "== {}\n-- expected\n{expected}\n-- said\n{words}",
                relative.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_fault_has_a_place_in_the_file_and_says_what_to_write() {
    for path in files() {
        let Err(LoadError::Malformed(faults)) = Mission::load(&path, None) else {
            panic!("{} should be malformed", path.display());
        };
        let text = std::fs::read_to_string(&path).expect("readable");
        for fault in faults.list() {
            assert!(
                fault.place.start <= text.len(),
                "{}: {fault:?}",
                path.display()
            );
            assert!(
                !fault.fact.is_empty() && !fault.help.is_empty(),
                "{}: {fault:?}",
                path.display()
            );
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_told_by_its_path() {
    let error = Mission::load(Path::new("tests/absent.toml"), None).expect_err("no such file");
    assert!(
        error
            .to_string()
            .starts_with("The file tests/absent.toml cannot be read"),
        "{error}"
    );
}

#[test]
fn a_folder_is_no_mission() {
    assert!(matches!(
        Mission::load(Path::new("tests"), None),
        Err(LoadError::Unreadable { .. })
    ));
}
