//! Whole pages of runs that never were. Each page is left in cargo's folder for test files, to be looked at.

mod synthetic;

use std::path::PathBuf;

use deckwatch_meter::result::ResultDocument;
use deckwatch_meter::sample::Sample;
use deckwatch_report::{Run, limits, page};

fn one(name: &str, (document, samples): (ResultDocument, Vec<Sample>)) -> String {
    several(name, vec![(name, (document, samples))])
}

fn several(name: &str, runs: Vec<(&str, (ResultDocument, Vec<Sample>))>) -> String {
    let runs: Vec<Run> = runs
        .into_iter()
        .map(|(folder, (document, samples))| Run::from_samples(folder, document, &samples))
        .collect();
    let html = page(&runs).expect("a page");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
    std::fs::write(&path, &html).expect("cargo's folder for test files");
    println!("{}: {} octets", path.display(), html.len());
    html
}

#[test]
fn a_mission_over_four_carriers_shows_each_of_them() {
    let html = one("nav", synthetic::nav());
    for carrier in ["udp", "tcp", "corba", "event"] {
        assert!(
            html.contains(&format!("{carrier} → SONAR")),
            "{carrier} has no figure of gaps"
        );
    }
    assert!(html.len() < 600_000, "{} octets", html.len());
}

#[test]
fn a_fleet_folds_its_destinations_away() {
    let html = one("fleet", synthetic::fleet());
    assert!(html.contains("(worst of 17)") && html.contains("(worst of 18)"));
    assert_eq!(html.matches("data-label=\"verdict\"").count(), 35);
}

#[test]
fn two_million_samples_fit() {
    let html = one("large", synthetic::large());
    assert!(html.len() < 1_000_000, "{} octets", html.len());
}

#[test]
fn a_run_in_which_nothing_came_says_so_and_names_the_dead() {
    let html = one("nothing", synthetic::nothing());
    assert!(html.contains("Nothing was received"));
    assert!(html.contains("consumer of NAV over udp at SONAR: killed by signal 9"));
}

#[test]
fn hostile_names_stay_text() {
    let html = one("hostile", synthetic::hostile());
    assert_eq!(html.matches("<script").count(), 1, "our own");
    assert!(!html.contains("<img"));
    assert!(!html.contains("\" onload"));
    assert!(html.contains("{{ 7*7 }}"), "a name is no template");
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    assert!(html.len() < limits::REPORT_BYTES_MAX);
}

#[test]
fn runs_side_by_side_say_in_what_they_differ() {
    let mut loaded = synthetic::run(
        "nav-loaded",
        &[synthetic::Flow {
            stalled: 0.2,
            ..synthetic::Flow::nav("udp")
        }],
        7,
    );
    loaded
        .0
        .environment
        .loads
        .push("20 processes on RTS, each counting to 500000".to_owned());
    loaded
        .0
        .provenance
        .machine
        .insert("governor".to_owned(), "powersave".to_owned());
    let html = several("compare", vec![("a", synthetic::nav()), ("b", loaded)]);
    assert!(html.contains("Side by side"));
    assert!(html.contains("<th>governor</th><td>performance</td><td>powersave</td>"));
    assert!(html.contains("not in this run"), "tcp is only in the first");
}
