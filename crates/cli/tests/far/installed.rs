//! The program is copied to a far host that lacks it, and far machines are examined.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::hosts::{DECKWATCH, Machine, small_program};
use super::{flow, one_run_at_a_time, run, run_by, words};
use crate::watched::Folder;

/// A far host whose commands start in a folder of the test.
fn elsewhere(folder: &Path) -> Machine {
    let reach = [
        "env",
        "-C",
        &folder.display().to_string(),
        "PATH=/usr/bin:/bin",
    ];
    Machine {
        program: "deckwatch".to_owned(),
        ..Machine::new("FAR", &reach.map(str::to_owned), "127.0.0.1")
    }
}

fn mission(far: &Machine) -> String {
    let rest = "octets = 64\ncarrier = \"tcp\"\ndeadline = \"100ms\"\ncount = 10";
    format!(
        "name = \"installed\"\nhosts = [{{ name = \"HERE\", address = \"127.0.0.1\" }}, {}]\n{}",
        far.line(),
        flow("f", "FAR", "HERE", rest)
    )
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.map(|entry| entry.path()).flat_map(|path| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    });
    below.collect()
}

#[test]
fn a_program_is_copied_once_and_checked_by_its_digest() {
    let _alone = one_run_at_a_time();
    let home = Folder::new("far-home");
    let mission = mission(&elsewhere(home.path()));
    let made = Folder::new("far-small");
    let program = small_program(made.path());
    let run = |name| run_by(&program, &Folder::new(name), &mission, &["--install"]);
    let (first, document) = run("far-first");
    let document = document.unwrap_or_else(|| panic!("{}", words(&first)));
    assert_eq!(document.flows[0].destinations[0].counts.received, 10);
    assert!(
        words(&first).contains("Copied this program to FAR as .deckwatch/"),
        "{}",
        words(&first)
    );
    let [copy] = &files(home.path())[..] else {
        panic!("{:?}", files(home.path()));
    };
    assert!(std::fs::read(copy).expect("readable") == std::fs::read(&program).expect("readable"));
    // A copy that somebody changed is not used.
    std::fs::write(copy, "#!/bin/sh\nexit 3\n").expect("writable");
    let (again, document) = run("far-again");
    assert!(document.is_some(), "{}", words(&again));
    assert!(words(&again).contains("Copied"), "{}", words(&again));
    let (last, document) = run("far-last");
    assert!(document.is_some(), "{}", words(&last));
    assert!(!words(&last).contains("Copied"), "{}", words(&last));
    assert_eq!(files(home.path()), std::slice::from_ref(copy));
}

#[test]
fn a_copy_that_does_not_arrive_whole_is_refused_and_removed() {
    let home = Folder::new("far-narrow");
    // A `dd` that stops early.
    let tools = home.path().join("bin");
    std::fs::create_dir(&tools).expect("writable");
    let dd = tools.join("dd");
    std::fs::write(
        &dd,
        "#!/bin/sh\nhead -c 1000 > \"${1#of=}\"; cat > /dev/null\n",
    )
    .expect("writable");
    let made = Command::new("chmod").arg("755").arg(&dd).status();
    assert!(made.is_ok_and(|status| status.success()));
    let mut far = elsewhere(home.path());
    far.reach[3] = format!("PATH={}:/usr/bin:/bin", tools.display());
    let (output, document) = run(&Folder::new("far-cut"), &mission(&far), &["--install"]);
    assert!(document.is_none());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words(&output).contains("the digest of the copy differs"),
        "{}",
        words(&output)
    );
    assert_eq!(files(home.path()), [dd]);
}

#[test]
fn doctor_examines_a_far_machine_as_its_own_and_says_what_is_missing_there() {
    let doctor = |arguments: &[&str]| {
        let output = Command::new(DECKWATCH)
            .arg("doctor")
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        output.expect("it runs")
    };
    let far = doctor(&["--json", "--program", DECKWATCH, "--on", "env", "NAME=far"]);
    let text = String::from_utf8_lossy(&far.stdout).into_owned();
    assert!(matches!(far.status.code(), Some(0 | 1)), "{}", words(&far));
    assert!(text.contains("\"findings\":[{\"name\":\""), "{text}");
    let missing = doctor(&["--program", "/nowhere/deckwatch", "--on", "env"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        words(&missing).contains("gave no examination (status 127"),
        "{}",
        words(&missing)
    );
    let unsafe_word = doctor(&["--program", "x; true", "--on", "env"]);
    assert!(
        words(&unsafe_word).contains("cannot be the path"),
        "{}",
        words(&unsafe_word)
    );
}
