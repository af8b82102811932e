//! What the compiler does not check: floors, sizes, words, headers, clauses, early exits of tests, bounds that
//! strangers reach. Each breach names its file and line and what to do.

mod clauses;
mod early;
mod floors;
mod sizes;
mod strangers;
mod words;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// One thing that is not as the house wants it.
pub(crate) struct Breach {
    file: PathBuf,
    line: usize,
    text: String,
}

impl Breach {
    fn new(file: &Path, line: usize, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.text)
    }
}

/// A file of the tree, by its path from the root.
pub(crate) struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path
            .extension()
            .is_some_and(|extension| extension == "rs")
    }

    /// Tests, benches, examples, fuzz targets and xtask: leaves, with laxer rules. The gateway is none: it is a product
    /// in a workspace of its own.
    fn is_leaf(&self) -> bool {
        let first = self
            .path
            .components()
            .next()
            .map(|part| part.as_os_str().to_owned());
        let folders = ["tests", "benches", "examples"];
        first.is_some_and(|first| first != "crates" && first != "gateway")
            || self
                .path
                .iter()
                .any(|part| folders.iter().any(|folder| part == *folder))
    }

    /// The crate's short name, for a file under `crates/`.
    fn crate_name(&self) -> Option<&str> {
        self.path
            .strip_prefix("crates")
            .ok()?
            .iter()
            .next()?
            .to_str()
    }
}

/// Walks every rule.
pub(crate) fn run(root: &Path) -> Result<()> {
    let sources = sources(root)?;
    let mut breaches = floors::check(root, &sources)?;
    breaches.extend(sizes::check(root, &sources)?);
    breaches.extend(words::check(&sources));
    breaches.extend(clauses::check(root, &sources)?);
    breaches.extend(early::check(&sources));
    breaches.extend(strangers::check(root, &sources));
    for breach in &breaches {
        eprintln!("{breach}");
    }
    match breaches.len() {
        0 => {
            eprintln!("tidy: {} files in order", sources.len());
            Ok(())
        }
        count => bail!("tidy found {count} breaches"),
    }
}

/// Writes the page of the bounds that strangers reach.
pub(crate) fn write_strangers(root: &Path) -> Result<()> {
    let breaches = strangers::write(root, &sources(root)?)?;
    for breach in &breaches {
        eprintln!("{breach}");
    }
    match breaches.len() {
        0 => Ok(()),
        count => bail!("{count} bounds are left out"),
    }
}

/// Every text file that git knows or would take.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .context("tidy needs git to list the tree's files")?;
    let list = String::from_utf8(output.stdout)?;
    let mut sources = Vec::new();
    for name in list.split('\0').filter(|name| !name.is_empty()) {
        let Ok(octets) = std::fs::read(root.join(name)) else {
            continue;
        };
        if let Ok(text) = String::from_utf8(octets) {
            sources.push(Source {
                path: PathBuf::from(name),
                text,
            });
        }
    }
    Ok(sources)
}
