//! Whole pages of runs that never were. Each page is left in cargo's folder for test files, to be looked at.

use std::path::PathBuf;

use crate::synthetic;
use crate::synthetic::Flow;
use deckwatch_meter::result::{Published, ResultDocument, Verdict, VerdictKind};
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

/// Returns the words of a page between two marks, without its tags and drawings.
fn words_between(html: &str, from: &str, to: &str) -> String {
    let part = html
        .split(from)
        .nth(1)
        .and_then(|rest| rest.split(to).next());
    let part = part
        .expect("both marks")
        .replace("</tr>", "\n")
        .replace("</td>", " | ");
    let mut words = String::new();
    let mut is_tag = false;
    for c in part.replace("</th>", " | ").chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            c if !is_tag => words.push(c),
            _ => {}
        }
    }
    words.replace('\u{202f}', " ")
}

#[test]
fn variants_stand_in_one_table_and_each_figure_beside_the_papers_numbers() {
    let variant = |number: u32, late: &str| {
        let (mut document, samples) =
            synthetic::run("nav-paper", &[Flow::nav("event")], u64::from(number));
        document.mission = format!("nav-paper, fig{number}");
        document.variant = Some(format!("fig{number}"));
        document.published = Some(Published {
            source: "Talbert and Weaver, section IV".to_owned(),
            figure: format!("Fig. {number}. A caption"),
            late: late.to_owned(),
        });
        (document, samples)
    };
    let printed = ["21", "883", "49", "over 32,000", "none", "18", "8", "59"];
    let runs: Vec<_> = (11..)
        .zip(printed)
        .map(|(n, late)| ("x", variant(n, late)))
        .collect();
    let html = several("variants", runs);
    let table = words_between(&html, "id=\"variants\">", "</section>");
    for (number, late) in (11..).zip(printed) {
        let mut rows = table.lines();
        let row = rows
            .find(|row| row.starts_with(&format!("fig{number} |")))
            .expect("a row");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let figure = format!("Fig. {number}. A caption");
        assert_eq!(
            cells[1..5],
            [figure.as_str(), "NAV", "event", "400"],
            "{row}"
        );
        assert_eq!(cells[7], late, "{row}");
        let beside = format!(
            "<b>Fig. {number}. A caption</b><br>Talbert and Weaver, section IV: {late} late."
        );
        assert_eq!(html.matches(&beside).count(), 1, "{beside}");
    }
    assert!(html.contains("--columns:4"), "two rows of four figures");
    // Runs of different missions are no variants.
    let (mut other, samples) = variant(12, "883");
    other.provenance.mission_text.push('#');
    let html = several(
        "no-variants",
        vec![("a", variant(11, "21")), ("b", (other, samples))],
    );
    assert!(!html.contains("id=\"variants\""));
}

#[test]
fn a_fleet_folds_its_destinations_away() {
    let html = one("fleet", synthetic::fleet());
    assert!(html.contains("(worst of 17)") && html.contains("(worst of 18)"));
    assert_eq!(html.matches("data-label=\"verdict\"").count(), 35);
}

#[test]
fn millions_of_samples_fit() {
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
fn what_a_network_does_not_emulate_stands_in_the_head_of_every_run() {
    const MISSING: &str = "transmission time at low load: 12 us a hop";
    let (mut document, samples) = synthetic::nav();
    let html = one("fidelity", (document.clone(), samples.clone()));
    // In the head, and among everything that is known of the run.
    assert_eq!(html.matches(MISSING).count(), 2);
    // A result that is older than the statement.
    document.environment.fidelity = None;
    let html = one("unstated", (document.clone(), samples.clone()));
    assert!(html.contains("not stated: the result is older"));
    document.environment.kind = "loopback".to_owned();
    let html = one("loopback", (document, samples));
    assert!(!html.contains("not emulated"));
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
        &[Flow {
            stalled: 0.2,
            ..Flow::nav("udp")
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

#[test]
fn however_many_destinations_and_runs_the_page_stays_within_its_bound() {
    let hosts = |n: usize| (0..n).map(|host| format!("CONSOLE-{host:04}")).collect();
    let many = |mission: &str, n: usize| {
        let flow = |carrier: &str| Flow {
            hosts: hosts(n),
            messages: 30,
            warm_up: 1,
            stalled: 0.1,
            ..Flow::nav(carrier)
        };
        synthetic::run(mission, &["udp", "tcp", "corba", "event"].map(flow), 11)
    };
    let html = one("thousands", many("thousands", 2500));
    assert!(
        html.len() <= limits::REPORT_BYTES_MAX,
        "{} octets",
        html.len()
    );
    assert!(html.contains("(worst of 2500)"));
    let missions = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let html = several(
        "eight",
        missions
            .iter()
            .map(|mission| (*mission, many(mission, 200)))
            .collect(),
    );
    assert!(
        html.len() <= limits::REPORT_BYTES_MAX,
        "{} octets",
        html.len()
    );
    assert_eq!(html.matches("class=\"head card").count(), 8);
}

#[test]
fn a_run_of_hundreds_of_flows_stays_within_the_bound() {
    let flow = |n: usize| Flow {
        name: format!("FLOW-{n}"),
        messages: 1000,
        stalled: 0.3,
        ..Flow::nav("tcp")
    };
    let mut flows: Vec<Flow> = (0..300).map(flow).collect();
    flows[299].lost = 0.9;
    let html = one("flows", synthetic::run("flows", &flows, 12));
    assert!(
        html.len() <= limits::REPORT_BYTES_MAX,
        "{} octets",
        html.len()
    );
    assert!(
        html.contains("none worse than these, are in result.json"),
        "what is left out is said"
    );
    assert!(
        html.contains("<h2>FLOW-299</h2>"),
        "the worst is never left out"
    );
}

#[test]
fn an_invalid_run_says_why_first() {
    let (mut document, samples) = synthetic::nav();
    document.verdict = Verdict {
        kind: VerdictKind::Invalid,
        reasons: vec!["The hypervisor withheld 4 s of processor time.".to_owned()],
        remedies: vec!["Take another machine.".to_owned()],
        messages_needed: None,
    };
    let html = one("invalid", (document, samples));
    let body = html.find("<main>").expect("a body");
    let (why, remedy, table) = (
        html.find("withheld 4 s").expect("why"),
        html.find("What to do: Take another machine.")
            .expect("what to do"),
        html.find("id=\"verdicts\"").expect("the table"),
    );
    assert!(body < why && why < remedy && remedy < table);
    assert!(html.contains("This run cannot be judged"));
}

#[test]
fn an_unproven_run_says_how_many_messages_more_and_how_long() {
    let html = one("unproven", synthetic::run("nav", &[Flow::nav("udp")], 13));
    let text = html.replace('\u{202f}', " ");
    assert!(
        text.contains("It takes 9585 more messages, 7 min 59 s at 20 Hz"),
        "exact binomial: ln 0.05 / ln(1 - 0.0003) less 400"
    );
}

#[test]
fn without_a_shared_clock_nothing_is_called_one_way_latency() {
    let (mut document, samples) = synthetic::run("nav", &[Flow::nav("udp")], 14);
    let shared = one("shared", (document.clone(), samples.clone()));
    assert!(shared.contains("latency, one way, from due to received"));
    document.provenance.clock.shared = false;
    let html = one("two-clocks", (document, samples));
    assert!(!html.contains("latency, one way"));
    assert!(html.contains("The two ends do not share a clock"));
}

#[test]
fn an_experiment_shows_its_figures_its_warnings_and_every_number() {
    let document = synthetic::experiment();
    let html = deckwatch_report::experiment_page(&document).expect("a page");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("experiment.html");
    std::fs::write(&path, &html).expect("cargo's folder for test files");
    assert_eq!(html.matches("class=\"chart plot\"").count(), 2);
    // Two curves in the figure of lines, three points each; two bars in each of two groups.
    assert_eq!(html.matches("class=\"curve ").count(), 2);
    assert_eq!(html.matches("<circle").count(), 6);
    assert_eq!(html.matches("class=\"column ").count(), 4);
    assert!(html.contains("This is a debug build.") && html.contains("not installed"));
    assert!(html.contains("round trip, median (log scale)"));
    assert!(!html.contains("<b>theirs"), "names are escaped");
    // Two hundred calls support a p90 and no p99.
    assert!(html.contains(">p90<") && !html.contains(">p99<"));
}
