//! `deckwatch schedule` as a user sees it: its exit statuses, the assignment, what to change, and the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn deckwatch(arguments: &[&str]) -> Output {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(arguments)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "140")
        .output()
        .expect("the program starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("UTF-8")
}

fn file(folder: &Path, draw: &str) -> String {
    let operation = |name: &str, cost: &str, period: &str| {
        format!(
            "[[operations]]\nname = \"{name}\"\nworst_case = \"{cost}\"\nperiod = \"{period}\"\n"
        )
    };
    let text = format!(
        "name = \"example\"\n{}{}{}",
        operation("track", "3ms", "7ms"),
        operation("filter", "3ms", "12ms"),
        operation("draw", draw, "20ms")
    );
    let path = folder.join("example.toml");
    std::fs::write(&path, text).expect("a file");
    path.display().to_string()
}

#[test]
fn a_feasible_schedule_ends_with_status_0_and_a_page_with_its_critical_instant() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html").display().to_string();
    let output = deckwatch(&["schedule", "scenarios/schedule-nav.toml", "--report", &page]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        printed.starts_with("Schedule navigation, rms: feasible"),
        "{printed}"
    );
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("From the critical instant of") && html.contains("<svg"));
}

#[test]
fn an_infeasible_schedule_ends_with_status_1_and_says_what_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let late = file(folder.path(), "6ms");
    let output = deckwatch(&["schedule", &late]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(printed.contains("22 ms LATE"), "{printed}");
    assert!(
        printed.contains("reduce worst_case of draw from 6 ms to 5 ms"),
        "{printed}"
    );
    // The utilisation is below one, so that deadlines order the same operations in time.
    let output = deckwatch(&["schedule", &late, "--strategy", "edf"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

#[test]
fn the_overhead_of_the_command_line_replaces_the_file_s() {
    let folder = tempfile::tempdir().expect("a folder");
    let exact = file(folder.path(), "5ms");
    let output = deckwatch(&["schedule", &exact, "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(document["operations"][2]["response_ns"], 20_000_000);
    assert_eq!(document["operations"][2]["response_is_exact"], true);
    let output = deckwatch(&["schedule", &exact, "--overhead", "100us"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let output = deckwatch(&["schedule", &exact, "--overhead", "measured", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(document["overhead_ns"].as_u64() > Some(0));
    let source = document["overhead_source"].as_str().unwrap_or_default();
    assert!(
        source.contains("99th percentile of 10000 dispatches"),
        "{source}"
    );
    let output = deckwatch(&["schedule", &exact, "--overhead", "100"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("\"50ms\""),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_malformed_file_ends_with_status_2_and_a_caret_below_the_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = file(folder.path(), "5 minutes");
    let output = deckwatch(&["schedule", &wrong]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("example.toml:12:14: error: `worst_case` must be"),
        "{said}"
    );
    assert!(said.contains("^^^^^^^^^^^"), "{said}");
    let output = deckwatch(&["schedule", "absent.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("absent.toml cannot be read"));
}

#[test]
fn a_full_processor_whose_hyperperiod_overflows_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().expect("a folder");
    // A quarter of the processor each, with periods that have no common multiple below 584 years.
    let operation = |quarter: u64| {
        format!(
            "[[operations]]\nname = \"of {quarter}\"\nworst_case = \"{quarter}ns\"\nperiod = \"{}ns\"\n",
            4 * quarter
        )
    };
    let operations = [1_000_003, 1_000_033, 1_000_037, 1_000_039].map(operation);
    let path = folder.path().join("full.toml");
    let whole = format!(
        "name = \"full\"\nstrategy = \"edf\"\n{}",
        operations.concat()
    );
    std::fs::write(&path, whole).expect("a file");
    let output = deckwatch(&["schedule", &path.display().to_string()]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for expected in [
        "the hyperperiod is longer than 584 years",
        "a common multiple",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}
