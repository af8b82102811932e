//! `deckwatch version`: prints version, commit and profile of this program.

use std::process::ExitCode;

use serde::Serialize;

use crate::output::outln;

/// Show version, commit and profile of this program
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  deckwatch version\n  deckwatch version --json")]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Version, commit and profile, as in the provenance of a result.
#[derive(Serialize)]
pub(crate) struct Build {
    pub(crate) version: &'static str,
    pub(crate) commit: Option<&'static str>,
    pub(crate) profile: &'static str,
}

/// The build of this program.
pub(crate) const BUILD: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: option_env!("DECKWATCH_COMMIT"),
    profile: if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    },
};

impl Build {
    /// Returns version, commit and profile in words: a far host must have the same.
    pub(crate) fn in_words(&self) -> String {
        let commit = self
            .commit
            .map_or(String::new(), |commit| format!(" ({commit})"));
        format!("{}{commit} {}", self.version, self.profile)
    }
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.json {
        outln!("{}", serde_json::to_string(&BUILD)?)?;
    } else {
        let commit = BUILD.commit.unwrap_or("not built in a checkout");
        outln!("deckwatch {} ({commit}, {})", BUILD.version, BUILD.profile)?;
    }
    Ok(ExitCode::SUCCESS)
}
