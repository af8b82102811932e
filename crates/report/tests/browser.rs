//! The pages in a real browser: no complaint on its console, nothing asked of the network, and its script does what
//! it is there for.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::synthetic;
use deckwatch_meter::result::ResultDocument;
use deckwatch_meter::sample::Sample;
use deckwatch_report::{Run, page};

const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// What a browser made of a page.
struct Visit {
    /// The document after its script has run.
    dom: String,
    /// What was said on the console, one line each.
    console: Vec<String>,
}

fn browser() -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|path| path.is_file())
}

fn visit(browser: &Path, name: &str, html: &str, fragment: &str) -> Visit {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("browser")
        .join(name);
    std::fs::create_dir_all(&folder).expect("cargo's folder for test files");
    let path = folder.join("page.html");
    std::fs::write(&path, html).expect("a file");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
            "--virtual-time-budget=2000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .arg(format!("file://{}{fragment}", path.display()))
        .output()
        .expect("a browser that starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let console = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(str::to_owned)
        .collect();
    Visit {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        console,
    }
}

fn html((document, samples): (ResultDocument, Vec<Sample>)) -> String {
    page(&[Run::from_samples("folder", document, &samples)]).expect("a page")
}

#[test]
fn pages_open_without_a_complaint() {
    let Some(browser) = browser() else {
        return deckwatch_testkit::skip("chromium", "no browser of that kind is installed");
    };
    // The console is heard at all: otherwise silence would say nothing.
    let loud = visit(
        &browser,
        "loud",
        "<!doctype html><title>x</title><script>null.x</script>",
        "",
    );
    assert!(
        loud.console.iter().any(|line| line.contains("TypeError")),
        "{:?}",
        loud.console
    );
    let experiment = deckwatch_report::experiment_page(&synthetic::experiment()).expect("a page");
    for (name, html) in [
        ("nav", html(synthetic::nav())),
        ("fleet", html(synthetic::fleet())),
        ("nothing", html(synthetic::nothing())),
        ("hostile", html(synthetic::hostile())),
        ("experiment", experiment),
    ] {
        let visit = visit(&browser, name, &html, "");
        assert!(visit.console.is_empty(), "{name}: {:#?}", visit.console);
        assert!(
            visit.dom.contains("id=\"provenance\""),
            "{name} is not whole"
        );
        // The script has come to its end, where it shows the theme's button.
        assert!(
            !visit.dom.contains("type=\"button\" hidden"),
            "{name}: the script did not run"
        );
    }
}

#[test]
fn the_theme_can_be_asked_for_in_the_address() {
    let Some(browser) = browser() else {
        return deckwatch_testkit::skip("chromium", "no browser of that kind is installed");
    };
    let html = html(synthetic::nothing());
    assert!(
        visit(&browser, "dark", &html, "#dark")
            .dom
            .contains("<html lang=\"en\" data-theme=\"dark\">")
    );
    assert!(
        !visit(&browser, "either", &html, "")
            .dom
            .contains("<html lang=\"en\" data-theme")
    );
}

#[test]
fn pointing_at_a_curve_reads_its_value_and_a_figure_can_be_enlarged() {
    /// Points at the last vertex of the first curve, the greatest latency, and enlarges the first figure of gaps.
    const HAND: &str = "<script>{
        const svg = document.querySelector('.wide svg.chart');
        const numbers = svg.querySelector('path.curve').getAttribute('d').match(/[0-9.]+/g).map(Number);
        const at = new DOMPoint(numbers.at(-2), numbers.at(-1)).matrixTransform(svg.getScreenCTM());
        svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y }));
        document.querySelector('.enlarge').click();
    }</script>";
    let Some(browser) = browser() else {
        return deckwatch_testkit::skip("chromium", "no browser of that kind is installed");
    };
    let (document, samples) = synthetic::run("nav", &[synthetic::Flow::nav("udp")], 21);
    let greatest_us = document.flows[0].destinations[0].latency_ns["max"] as f64 / 1e3;
    let html = html((document, samples)).replace("</body>", &format!("{HAND}</body>"));
    let visit = visit(&browser, "hand", &html, "");
    assert!(visit.console.is_empty(), "{:#?}", visit.console);
    let tip = visit
        .dom
        .split("id=\"tip\"")
        .nth(1)
        .and_then(|rest| rest.split("</div>").next())
        .expect("the tip");
    assert!(tip.contains("udp\n0.25 % take"), "{tip}");
    let read_us: f64 = tip
        .split("take ")
        .nth(1)
        .and_then(|rest| rest.split(" µs").next())
        .and_then(|n| n.parse().ok())
        .expect("a time");
    assert!(
        (read_us / greatest_us - 1.0).abs() < 0.01,
        "read {read_us} µs of {greatest_us} µs"
    );
    assert!(visit.dom.contains("<figure class=\"enlarged\">"));
}

#[test]
fn a_page_asks_for_nothing_outside_itself() {
    let html = html(synthetic::nav());
    for reference in ["http://", "https://", "src=", "@import", "url("] {
        for (at, _) in html.match_indices(reference) {
            let rest = &html[at..(at + 60).min(html.len())];
            assert!(
                rest.starts_with("url(#hatch)") || rest.starts_with("http://www.w3.org/2000/svg"),
                "{rest}"
            );
        }
    }
}

#[test]
fn pointing_at_a_line_of_an_experiment_reads_both_its_axes() {
    const HAND: &str = "<script>{
        const svg = document.querySelector('svg.plot');
        const numbers = svg.querySelector('path.curve').getAttribute('d').match(/[0-9.]+/g).map(Number);
        const at = new DOMPoint(numbers.at(-2), numbers.at(-1)).matrixTransform(svg.getScreenCTM());
        svg.dispatchEvent(new PointerEvent('pointermove', { clientX: at.x, clientY: at.y }));
    }</script>";
    let Some(browser) = browser() else {
        return deckwatch_testkit::skip("chromium", "no browser of that kind is installed");
    };
    let html = deckwatch_report::experiment_page(&synthetic::experiment()).expect("a page");
    let html = html.replace("</body>", &format!("{HAND}</body>"));
    let visit = visit(&browser, "experiment-hand", &html, "");
    assert!(visit.console.is_empty(), "{:#?}", visit.console);
    assert!(
        visit
            .dom
            .contains("ours\npayload: 65.5 kB\nround trip, median: 75.6 µs"),
        "{}",
        visit.dom.split("id=\"tip\"").nth(1).unwrap_or_default()
    );
}
