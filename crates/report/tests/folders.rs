//! Folders as runs leave them, and as accidents leave them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::synthetic;
use deckwatch_meter::result::ResultDocument;
use deckwatch_meter::sample::Sample;
use deckwatch_meter::samples::SampleWriter;
use deckwatch_report::{REPORT_FILE, RESULT_FILE, ReportError, SAMPLES_FILE, build, limits, write};

fn folder(name: &str, (document, samples): &(ResultDocument, Vec<Sample>)) -> PathBuf {
    let folder = empty_folder(name);
    fs::write(
        folder.join(RESULT_FILE),
        serde_json::to_vec_pretty(document).expect("a document"),
    )
    .expect("a file");
    let mut writer =
        SampleWriter::create(&folder.join(SAMPLES_FILE), &document.flows).expect("a file");
    writer.write(samples).expect("samples");
    writer.finish().expect("a whole file");
    folder
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("folders")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("cargo's folder for test files");
    folder
}

fn refused(folder: &Path) -> String {
    build(&[folder.to_path_buf()])
        .expect_err("a refusal")
        .to_string()
}

#[test]
fn a_report_from_files_is_the_report_from_memory() {
    let (document, samples) = synthetic::nav();
    let folder = folder("nav-files", &(document.clone(), samples.clone()));
    let path = write(&folder).expect("a report");
    assert_eq!(path, folder.join(REPORT_FILE));
    let run = deckwatch_report::Run::from_samples("nav-files", document, &samples);
    assert!(
        fs::read_to_string(&path).expect("the report")
            == deckwatch_report::page(&[run]).expect("a page")
    );
    assert!(!folder.join("report.html.partial").exists());
}

#[test]
fn a_missing_folder_is_named() {
    let text = refused(Path::new("/nowhere/at/all"));
    assert!(
        text.starts_with("/nowhere/at/all/result.json: cannot be read"),
        "{text}"
    );
    assert!(text.contains("name the folder that a run wrote"), "{text}");
}

#[test]
fn a_damaged_document_is_named_with_line_and_column() {
    let folder = folder("damaged-document", &synthetic::nothing());
    let path = folder.join(RESULT_FILE);
    let whole = fs::read_to_string(&path).expect("the document");
    fs::write(&path, &whole[..whole.len() / 2]).expect("a file");
    let text = refused(&folder);
    assert!(
        text.contains("result.json: is damaged")
            && text.contains("line ")
            && text.contains("column "),
        "{text}"
    );
    fs::write(&path, b"\xff\xfe not json").expect("a file");
    assert!(refused(&folder).contains("result.json: is damaged"));
    fs::write(&path, r#"{"schema_version": 1, "mission": 7}"#).expect("a file");
    assert!(
        refused(&folder).contains("invalid type"),
        "{}",
        refused(&folder)
    );
}

#[test]
fn a_document_of_a_later_version_is_not_called_damaged() {
    let folder = empty_folder("later");
    fs::write(
        folder.join(RESULT_FILE),
        r#"{"schema_version": 999, "novelty": []}"#,
    )
    .expect("a file");
    let text = refused(&folder);
    assert!(
        text.contains("schema version 999") && text.contains("use the deckwatch that wrote it"),
        "{text}"
    );
}

#[test]
fn missing_and_damaged_samples_are_named() {
    let folder = folder("damaged-samples", &synthetic::nothing());
    let path = folder.join(SAMPLES_FILE);
    let whole = fs::read(&path).expect("samples");
    fs::write(&path, &whole[..whole.len() - 20]).expect("a file");
    let text = refused(&folder);
    assert!(
        text.contains("samples.parquet") && text.contains("restore the file"),
        "{text}"
    );
    fs::remove_file(&path).expect("the file");
    let text = refused(&folder);
    assert!(
        text.contains("samples.parquet") && text.contains("No such file"),
        "{text}"
    );
}

#[test]
fn no_folder_and_too_many_folders_are_refused_before_any_is_read() {
    assert!(matches!(build(&[]), Err(ReportError::NoFolder)));
    let many = vec![PathBuf::from("/nowhere"); limits::RUNS_MAX + 1];
    assert!(matches!(
        build(&many),
        Err(ReportError::TooManyFolders { count: 9, .. })
    ));
}

#[test]
fn a_report_that_cannot_be_written_says_where() {
    let text = deckwatch_report::write_page(Path::new("/nowhere/report.html"), "")
        .expect_err("a refusal")
        .to_string();
    assert!(
        text.starts_with("/nowhere/report.html: cannot be written"),
        "{text}"
    );
}

#[test]
fn an_experiments_folder_needs_no_samples_and_a_later_version_is_named() {
    let folder = empty_folder("experiment");
    let mut document = synthetic::experiment();
    let path = folder.join(RESULT_FILE);
    document.save(&path).expect("written");
    let page = fs::read_to_string(write(&folder).expect("a report")).expect("the report");
    assert!(page == deckwatch_report::experiment_page(&document).expect("a page"));
    document.schema_version = 99;
    document.save(&path).expect("written");
    assert!(refused(&folder).contains("schema version 99"));
}

/// Saves a sweep over `network` in a folder of this name.
fn sweep(name: &str, network: &str) -> PathBuf {
    let folder = empty_folder(name);
    let mut document = synthetic::experiment();
    document.experiment = "sweep".to_owned();
    document
        .parameters
        .insert("network".to_owned(), network.to_owned());
    document.save(&folder.join(RESULT_FILE)).expect("written");
    folder
}

#[test]
fn sweeps_of_two_networks_stand_in_the_same_figures_with_the_networks_names() {
    let lan = sweep("sweep-lan", "fast-ethernet: 100 Mb/s; from A to B");
    let local = sweep("sweep-local", "loopback");
    let page = build(&[lan, local]).expect("a page");
    assert_eq!(
        page.matches("<figure>").count(),
        2,
        "a figure for each title"
    );
    for label in ["ours, fast-ethernet", "ours, loopback"] {
        assert!(page.contains(&format!("</span>{label}</span>")), "{label}");
        assert!(
            page.contains(&format!("<summary>{label}: 3 meas")),
            "{label}"
        );
    }
    assert!(page.contains("network \u{b7} loopback") && page.contains("<dt>rounds</dt>"));
    assert!(
        page.contains("loopback: This is a debug build."),
        "whose warning it is"
    );
    assert!(page.contains("omniorb, loopback"), "where it was skipped");
}

#[test]
fn sweeps_over_one_network_have_the_names_of_their_folders() {
    let folders = [sweep("before", "loopback"), sweep("after", "loopback")];
    let page = build(&folders).expect("a page");
    assert!(
        page.contains("</span>ours, before</span>") && page.contains("</span>ours, after</span>")
    );
    let twice = [folders[0].clone(), folders[0].clone()];
    let page = build(&twice).expect("a page");
    assert!(
        page.contains("before (2)</span>"),
        "the same folder twice has a number"
    );
}

#[test]
fn experiments_of_several_kinds_are_not_compared() {
    let first = sweep("a-sweep", "loopback");
    let other = empty_folder("a-marshal");
    let document = synthetic::experiment();
    document.save(&other.join(RESULT_FILE)).expect("written");
    let text = build(&[first.clone(), other.clone()])
        .expect_err("two kinds")
        .to_string();
    assert!(
        text.starts_with("a-marshal: is of `marshal`, and the first folder of `sweep`"),
        "{text}"
    );
    assert!(
        build(&[other.clone(), other]).is_err(),
        "a kind without merged figures"
    );
    let run = folder("a-run", &synthetic::nothing());
    let text = build(&[first, run])
        .expect_err("a run beside a sweep")
        .to_string();
    assert!(text.contains("cannot be compared with runs"), "{text}");
}

#[test]
fn a_bench_of_the_old_schema_is_named_with_its_version() {
    let folder = empty_folder("old-bench");
    let old = r#"{"schema_version": 2, "bench": "call", "parts": []}"#;
    fs::write(folder.join(RESULT_FILE), old).expect("written");
    let text = refused(&folder);
    assert!(
        text.contains("bench-2") && text.contains("measure again"),
        "{text}"
    );
}
