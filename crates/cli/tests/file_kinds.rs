//! Pipes, folders and devices in the place of files, over the commands that read a file: each ends with exit status 2
//! and names the file.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::faults::end_of;

/// Command lines. `FILE` is the file that is read, or `FOLDER` holds it under the name beside the line.
const COMMANDS: &[(&str, &str)] = &[
    ("run FILE", ""),
    ("check FILE", ""),
    (
        "check scenarios/nav.toml --network FOLDER/net.toml",
        "net.toml",
    ),
    ("testbed up --network FOLDER/net.toml", "net.toml"),
    ("schedule FILE", ""),
    ("schedule scenarios/schedule-nav.toml --measured FILE", ""),
    ("sweep --hosts FILE --from A --to B", ""),
    ("report FOLDER", "result.json"),
    ("names serve --access FILE", ""),
    ("names serve --tls-certificate FILE --tls-key FILE", ""),
    ("names check FILE", ""),
    ("names export --store FILE", ""),
    ("names import --store NEW FILE", ""),
    ("names gc --store FILE", ""),
    ("names list --names FILE", ""),
    ("channel --access FILE", ""),
    ("channel --typed FILE --interface X", ""),
    ("events list --names FILE", ""),
    ("events replay FILE --dry-run", ""),
    ("call --list --idl FILE", ""),
    ("call --idl idl/deckwatch/echo.idl FILE echo", ""),
    ("ior FILE", ""),
    ("idl FILE", ""),
];

/// As [`COMMANDS`]; these make the file if there is none.
const MAKERS: &[&str] = &[
    "names serve --store FILE",
    "names serve --audit FILE",
    "channel --store FILE",
];

/// Runs a command, and returns its exit status and all that it wrote. Fails if it does not end.
fn run(words: &[&str]) -> (Option<i32>, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(words)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    end_of(process)
}

/// What stands in the place of a file, and a word for it in the error.
fn kinds(folder: &Path) -> [(PathBuf, &'static str); 4] {
    let (pipe, inner) = (folder.join("pipe"), folder.join("folder"));
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a FIFO");
    std::fs::create_dir(&inner).expect("a folder");
    [
        (pipe, "pipe"),
        (inner, "directory"),
        (PathBuf::from("/dev/zero"), "device"),
        (folder.join("missing"), "o such file"),
    ]
}

#[test]
fn what_is_no_regular_file_is_refused_by_each_command_and_named() {
    let scratch = tempfile::tempdir().expect("a folder");
    let new = scratch.path().join("new").display().to_string();
    let makers = MAKERS.iter().map(|line| (*line, ""));
    for (path, kind) in kinds(scratch.path()) {
        let makers = makers.clone().filter(|_| kind != "o such file");
        for (index, (line, name)) in COMMANDS.iter().copied().chain(makers).enumerate() {
            let folder = scratch.path().join(format!("{kind}-{index}"));
            std::fs::create_dir(&folder).expect("a folder");
            let file = if name.is_empty() {
                path.clone()
            } else {
                folder.join(name)
            };
            if !name.is_empty() && kind != "o such file" {
                symlink(&path, &file).expect("a link");
            }
            let (file, folder) = (file.display().to_string(), folder.display().to_string());
            let filled = |word: &str| {
                let word = word.replace("FILE", &file).replace("FOLDER", &folder);
                word.replace("NEW", &new)
            };
            let words: Vec<String> = line.split(' ').map(filled).collect();
            let (status, said) = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(status, Some(2), "{line}, {kind}: {said}");
            assert!(said.contains(&file), "{line}, {kind}: {said}");
            // A certificate is refused in words of its own.
            let words = [kind, "not a regular file", "entity not found"];
            let is_told = words.iter().any(|word| said.contains(word));
            assert!(is_told, "{line}, {kind}: {said}");
        }
    }
    assert!(!Path::new(&new).exists(), "a store without names was kept");
}

/// One that cannot be used leaves the others.
#[test]
fn a_pipe_in_the_place_of_a_manifest_is_named_in_the_list_of_carriers() {
    let scratch = tempfile::tempdir().expect("a folder");
    let adapter = scratch.path().join("odd");
    std::fs::create_dir(&adapter).expect("a folder");
    let manifest = adapter.join("carrier.toml");
    mkfifoat(CWD, &manifest, Mode::RUSR | Mode::WUSR).expect("a FIFO");
    let folder = scratch.path().display().to_string();
    let (status, said) = run(&["carriers", "--adapters", &folder]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains(&*manifest.to_string_lossy()), "{said}");
    assert!(said.contains("pipe (FIFO)"), "{said}");
}
