//! A series of variants: in their order, resumed, refused, and interrupted.

use super::*;

#[test]
fn variants_run_one_after_the_other_and_those_that_are_finished_only_once() {
    let folder = Folder::new("variants");
    let variants = |more: &[&str]| {
        let names = ["--variants", "loaded,two-destinations", "--carriers", "udp"];
        let output = command(&folder, &[&names[..], more].concat()).output();
        output.expect("it runs")
    };
    let first = variants(&["--duration", "300ms"]);
    let said = text(&first.stderr);
    assert!(said.contains("Variant 1 of 2, loaded: "), "{said}");
    assert!(
        said.contains("Variant 2 of 2, two-destinations: "),
        "{said}"
    );
    let documents = ["loaded", "two-destinations"].map(|variant| {
        let document = ResultDocument::load(&folder.result().join(variant).join("result.json"));
        let document = document.expect("a result");
        assert_eq!(document.variant.as_deref(), Some(variant));
        document
    });
    let worst = documents.iter().max_by_key(|one| one.verdict.kind);
    let status = worst.map(status_of);
    assert_eq!(first.status.code(), status, "{said}");
    let page = std::fs::read_to_string(folder.result().join("report.html")).expect("a report");
    assert!(page.contains("id=\"variants\""), "the table of variants");

    // One variant is lost, the other one is kept as it is.
    std::fs::remove_dir_all(folder.result().join("loaded")).expect("removed");
    let resumed = variants(&["--duration", "300ms", "--resume"]);
    let said = text(&resumed.stderr);
    assert!(
        said.contains("Variant 2 of 2, two-destinations: finished"),
        "{said}"
    );
    assert!(!said.contains("Variant 1 of 2, loaded: finished"), "{said}");
    let again = ResultDocument::load(&folder.result().join("two-destinations/result.json"));
    assert_eq!(again.expect("a result"), documents[1]);

    let other = variants(&["--duration", "400ms", "--resume"]);
    assert_eq!(other.status.code(), Some(2));
    let said = text(&other.stderr);
    assert!(said.contains("another number of messages"), "{said}");
}

#[test]
fn a_series_that_cannot_run_says_so_before_it_starts() {
    for (arguments, expected) in [
        (&["--variants", "loaded,loaded"][..], "named twice"),
        (&["--variants", "lodaed"], "has no variant `lodaed`"),
        (
            &["--variants", "loaded", "--variant", "long"],
            "cannot be used with",
        ),
        (&["--resume"], "--variants"),
    ] {
        let folder = Folder::new("no-variants");
        let output = command(&folder, arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!folder.result().exists());
    }
}

#[test]
fn an_interrupted_series_keeps_its_results_and_runs_the_interrupted_variant_again() {
    let folder = Folder::new("interrupted-variants");
    let names = ["--variants", "long,loaded", "--carriers", "udp"];
    let (run, lines) = start_and_await(&folder, &names, |line| line.contains(" left, "));
    signal("INT", run.id());
    let (output, said) = finish(run, lines);
    assert_eq!(output.status.code(), Some(130), "{said:?}");
    let ended = "1 result is kept in";
    assert!(said.iter().any(|line| line.contains(ended)), "{said:?}");
    assert!(folder.result().join("report.html").exists());
    assert!(folder.result().join("long/result.json").exists());

    let (run, lines) = start_and_await(&folder, &[&names[..], &["--resume"]].concat(), |line| {
        line.contains("Starting consumers")
    });
    assert!(!folder.result().join("long/result.json").exists());
    signal("INT", run.id());
    assert_eq!(finish(run, lines).0.status.code(), Some(130));
}
