//! The ledger of skipped tests: a test that cannot run here appends a line to the file named by `DECKWATCH_SKIPS`.
//!
//! `interop/gaps.toml` lists the skips that are allowed, each with its reason; in CI any other fails the run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The file that tests append to, and what is allowed to stand in it.
pub(crate) struct Ledger {
    path: PathBuf,
    allowed: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Gaps {
    #[serde(default)]
    skip: Vec<AllowedSkip>,
}

#[derive(Deserialize)]
struct AllowedSkip {
    what: String,
    reason: String,
}

impl Ledger {
    /// Empties the ledger.
    pub(crate) fn start(root: &Path) -> Result<Self> {
        let gaps_path = root.join("interop/gaps.toml");
        let text = std::fs::read_to_string(&gaps_path)
            .with_context(|| format!("cannot read {}", gaps_path.display()))?;
        let gaps: Gaps = toml::from_str(&text)
            .with_context(|| format!("cannot understand {}", gaps_path.display()))?;
        if let Some(bare) = gaps.skip.iter().find(|skip| skip.reason.trim().is_empty()) {
            bail!(
                "interop/gaps.toml: the skip of \"{}\" has no reason",
                bare.what
            );
        }
        let folder = root.join("target");
        std::fs::create_dir_all(&folder)?;
        let path = folder.canonicalize()?.join("skips.txt");
        std::fs::write(&path, "")?;
        Ok(Self {
            path,
            allowed: gaps.skip.into_iter().map(|skip| skip.what).collect(),
        })
    }

    /// Where tests append.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Prints the skips; in CI an unlisted one is an error.
    pub(crate) fn settle(&self) -> Result<()> {
        let text = std::fs::read_to_string(&self.path)?;
        let skipped: BTreeSet<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        for line in &skipped {
            eprintln!("skipped: {line}");
        }
        let unlisted: Vec<&&str> = skipped
            .iter()
            .filter(|line| {
                !self
                    .allowed
                    .contains(line.split(':').next().unwrap_or(line).trim())
            })
            .collect();
        eprintln!(
            "{} tests skipped, {} of them not listed in interop/gaps.toml",
            skipped.len(),
            unlisted.len()
        );
        if !unlisted.is_empty() && std::env::var_os("CI").is_some() {
            bail!("a skip that interop/gaps.toml does not list fails in CI");
        }
        Ok(())
    }
}
