//! What ends a sweep from outside: a full disk, and a network that cannot be.

use std::path::Path;
use std::process::{Command, Output};

use super::complaints;
use crate::measuring::folder;

/// Runs a shell script with a small file system at `folder`, in namespaces of its own. Returns `None` and counts a skip
/// where that is not permitted.
fn on_small_disk(folder: &Path, size: &str, script: &str) -> Option<Output> {
    let unshared = |script: String| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]);
        command.arg(env!("CARGO_BIN_EXE_deckwatch"));
        command.output()
    };
    let mount = format!("mount -t tmpfs -o size={size} none '{}'", folder.display());
    if !unshared(mount.clone()).is_ok_and(|tried| tried.status.success()) {
        deckwatch_testkit::skip("tmpfs", "file systems cannot be mounted here");
        return None;
    }
    let whole = format!("{mount} && cd '{}' && {script}", folder.display());
    Some(unshared(whole).expect("it runs"))
}

#[test]
fn a_full_disk_is_named_and_leaves_a_journal_that_goes_on_but_no_result() {
    let folder = folder("sweep-full-disk");
    std::fs::create_dir_all(&folder).expect("a folder");
    // The journal has some ten kilobytes a point.
    let script = "\
        words='--carriers=udp --sizes=64..512:64 --iterations=2 --messages=200'
        \"$0\" sweep --output full $words 2>&1 >/dev/null
        echo \"status $?\"; ls full
        mount -o remount,size=8m . || exit 9
        \"$0\" sweep --resume full $words 2>&1 >/dev/null
        echo \"resumed $?\"; ls full";
    let Some(output) = on_small_disk(&folder, "40k", script) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (before, after) = text.split_once("resumed 0").expect(&text);
    assert!(before.contains("status 2\njournal.jsonl\n"), "{text}");
    for word in ["full/journal.jsonl", "No space left on device"] {
        assert!(before.contains(word), "{word}: {text}");
    }
    assert!(!before.contains("result.json"), "{text}");
    assert!(after.contains("result.json"), "{text}");
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_result_that_finds_no_room_is_not_left_in_part() {
    for command in ["sweep", "overhead"] {
        let folder = folder(&format!("{command}-no-room"));
        std::fs::create_dir_all(&folder).expect("a folder");
        // Room for the journal. Then a file takes the rest before the result is written.
        let script = format!(
            "words='--carriers={} --sizes=64 --iterations=1 --messages=20'
             \"$0\" {command} --output whole $words >/dev/null || exit 8
             journal=$(wc -c <whole/journal.jsonl)
             rm -r whole
             mount -o remount,size=$((journal + 6000)) . || exit 9
             \"$0\" {command} --output full $words 2>&1 >/dev/null
             echo \"status $?\"; ls full",
            if command == "sweep" { "udp" } else { "corba" }
        );
        let Some(output) = on_small_disk(&folder, "8m", &script) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.ends_with("status 2\njournal.jsonl\n"), "{text}");
        for word in ["result.json", "No space left on device"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        let listed = text.lines().any(|line| line == "result.json");
        assert!(!listed, "{text}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}

#[test]
fn a_network_with_a_loop_or_a_link_of_rate_0_is_refused_at_its_line() {
    let folder = folder("sweep-no-network");
    std::fs::create_dir_all(&folder).expect("a folder");
    let link = |one: &str, other: &str, more: &str| {
        format!(
            "[[links]]\nbetween = [\"{one}\", \"{other}\"]\npreset = \"fast-ethernet\"\n{more}\n"
        )
    };
    let head = "name = \"n\"\nhosts = [\"A\", \"B\"]\nswitches = [\"s\", \"t\"]\n";
    let tree = link("A", "s", "") + &link("B", "t", "");
    let ring = link("s", "t", "") + &link("t", "s", "");
    let still = link("s", "t", "rate_mbit_s = 0");
    for (name, text, words) in [
        ("loop.toml", format!("{head}{tree}{ring}"), "loop"),
        ("still.toml", format!("{head}{tree}{still}"), "rate"),
    ] {
        let file = folder.join(name);
        std::fs::write(&file, text).expect("written");
        for command in ["sweep", "overhead"] {
            let result = folder.join("result");
            let mut run = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
            run.arg(command).arg("--output").arg(&result);
            run.arg(format!("--network={}", file.display()));
            run.args(["--from=A", "--to=B", "--sizes=64"]);
            let output = run.output().expect("it runs");
            let said = complaints(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(words) && said.contains(name), "{said}");
            // A place: a line number, or the line itself.
            assert!(
                said.contains(&format!("{name}:")) || said.contains("line"),
                "{said}"
            );
            assert!(!result.exists(), "{command}");
        }
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn sizes_that_have_no_room_for_a_number_are_refused_with_what_to_write_instead() {
    for command in ["sweep", "overhead", "grid"] {
        let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args([command, "--sizes", "1,4"])
            .output()
            .expect("it starts");
        let told = complaints(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {told}");
        assert!(told.contains("write 8 for the smallest"), "{told}");
    }
}
