//! The first program of the book, built and run exactly as it is printed, in a folder outside of the workspace.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{FIRST, quotations};

/// The checkout as the printed `Cargo.toml` names it: beside the folder of the program.
const CHECKOUT: &str = "../deckwatch";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The files that the book prints: path and text.
fn printed(book: &str) -> Vec<(&str, String)> {
    let quotations = quotations(book);
    let whole = quotations.into_iter().filter_map(|one| {
        let path = one.file.strip_prefix(FIRST)?;
        Some((path, one.text.join("\n") + "\n"))
    });
    whole.collect()
}

fn book() -> String {
    std::fs::read_to_string(root().join("docs/book/corba-in-rust.md")).unwrap()
}

/// Builds the program in this folder with the crates and in the target folder of the workspace, where most of what it
/// needs is built already. Returns its path.
fn build(folder: &Path) -> PathBuf {
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let program = std::env::current_exe().unwrap();
    // target/PROFILE/deps/PROGRAM
    let profile = program.parent().and_then(Path::parent).unwrap();
    let target = profile.parent().unwrap();
    // As in the workspace, so that the crates of the registry are built once.
    let debug = std::env::var("CARGO_PROFILE_DEV_DEBUG");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--target-dir"])
        .arg(target)
        .env(
            "CARGO_PROFILE_DEV_DEBUG",
            debug.as_deref().unwrap_or("line-tables-only"),
        )
        .current_dir(folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{told}");
    target.join("debug/clock")
}

#[test]
fn the_first_program_builds_in_an_empty_folder_and_one_copy_calls_another() {
    let book = book();
    let folder = std::env::temp_dir().join(format!("deckwatch-first-{}", std::process::id()));
    let files = printed(&book);
    let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    assert_eq!(
        paths,
        ["Cargo.toml", "idl/clock.idl", "build.rs", "src/main.rs"]
    );
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace(CHECKOUT, root().to_str().unwrap())).unwrap();
    }
    let program = build(&folder);
    let mut server = Command::new(&program)
        .args(["-ORBListenEndpoints", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reference = String::new();
    let mut told = BufReader::new(server.stdout.take().unwrap());
    told.read_line(&mut reference).unwrap();
    let called = Command::new(&program).arg(reference.trim()).output();
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(
        String::from_utf8(called.unwrap().stdout).unwrap(),
        "42 ticks\n"
    );
}

#[test]
fn the_first_page_of_the_orbs_documentation_shows_the_same_program() {
    let page = std::fs::read_to_string(root().join("crates/orb/src/lib.rs")).unwrap();
    let book = book();
    let files = printed(&book);
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut inside = false;
    for line in page.lines().map_while(|line| line.strip_prefix("//!")) {
        match line.trim() {
            "```text" if !inside => {
                inside = true;
                blocks.push(Vec::new());
            }
            "```" => inside = false,
            line if inside => blocks.last_mut().unwrap().push(line),
            _ => {}
        }
    }
    assert!(blocks.len() >= 5, "{} blocks", blocks.len());
    for block in blocks {
        let is_in = |text: &str| {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            lines.windows(block.len()).any(|some| some == block)
        };
        assert!(
            files.iter().any(|(_, text)| is_in(text)),
            "the book's first program does not say so: {block:#?}"
        );
    }
}
