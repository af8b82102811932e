//! Mutants that have no place in the common build: cargo-mutants builds and tests them one by one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::ledger::{Ledger, Outcome};
use super::{Scope, Wish, choose, target_of};

/// Returns true if a mutant must be tried alone. A survivor without a reason is tried in each run, for a test of it may
/// have been written since; the common build has done that with its own.
pub(super) const fn is_left(known: Option<Outcome>, is_in_build: bool, has_reason: bool) -> bool {
    match known {
        None | Some(Outcome::Apart) => true,
        Some(Outcome::Survived) => !is_in_build && !has_reason,
        Some(_) => false,
    }
}

/// A run of cargo-mutants that is shorter tries nothing: first it tests the tree without a mutant.
pub(super) const LEFT_MIN: Duration = Duration::from_secs(60);

/// Has cargo-mutants try the mutants other than these.
pub(super) fn one_by_one(
    root: &Path,
    output: &Path,
    (name, scope, wish): (&str, &Scope, &Wish),
    known: &[&str],
    ledger: &mut Ledger,
    left: Option<Duration>,
) -> Result<()> {
    let folder = output.join("mutants.out");
    let _ = std::fs::remove_dir_all(&folder); // Absent before the first run.
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("previously_caught.txt"), known.join("\n"))?;
    let status = command(root, output, (name, scope, wish), left)
        .status()
        .context("cannot start cargo mutants")?;
    // 2 and 3: some survived, some ran out of time. 124: `timeout` has ended it.
    match status.code() {
        Some(0 | 2 | 3) => {}
        Some(124) => {
            eprintln!("{name}: time is up; the same command goes on where this run ended");
        }
        _ => bail!(
            "cargo mutants ended with {status}; its log is in {}",
            output.display()
        ),
    }
    for (file, outcome) in [
        ("caught.txt", Outcome::Caught),
        ("missed.txt", Outcome::Survived),
        ("timeout.txt", Outcome::TimedOut),
        ("unviable.txt", Outcome::Unviable),
    ] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        for mutant in text.lines() {
            ledger.note(mutant, outcome)?;
        }
    }
    Ok(())
}

fn command(
    root: &Path,
    output: &Path,
    (name, scope, wish): (&str, &Scope, &Wish),
    left: Option<Duration>,
) -> Command {
    let mut command = match left {
        Some(left) => {
            let mut command = Command::new("timeout");
            command.args(["--signal=INT", &left.as_secs().to_string(), "cargo"]);
            command
        }
        None => Command::new("cargo"),
    };
    command.args(["mutants", "--iterate", "--jobs", "1", "--colors", "never"]);
    command.args(["--cap-lints", "true", "--minimum-test-timeout", "30"]);
    command.arg("--output").arg(output);
    choose(&mut command, name, scope, &wish.files);
    // The build gets the choice of test programs too, or it would build all of them.
    let (programs, filters) = scope.tests_divided();
    for program in programs {
        command.arg(format!("--cargo-arg={program}"));
    }
    // The tests of a mutant take longer than its build.
    let optimised = format!("profile.dev.package.deckwatch-{name}.opt-level=1");
    command.arg(format!("--cargo-arg=--config={optimised}"));
    command.arg("--").args(filters);
    // The copy of the tree is a new folder each time; what it is built from is kept. The common build has another folder:
    // cargo takes the build scripts of one copy for those of the other, and they read files of their own.
    command.env("CARGO_TARGET_DIR", target_of(root, "alone"));
    // Nobody looks at a backtrace of a mutant.
    command.env("CARGO_PROFILE_DEV_DEBUG", "false");
    command.current_dir(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survivor_without_a_reason_is_tried_alone_again() {
        let survived = Some(Outcome::Survived);
        assert!(is_left(survived, false, false));
        assert!(!is_left(survived, false, true));
        // The common build has tried it.
        assert!(!is_left(survived, true, false));
        for outcome in [None, Some(Outcome::Apart)] {
            assert!(is_left(outcome, false, true));
        }
        for outcome in [Outcome::Caught, Outcome::Unviable, Outcome::TimedOut] {
            assert!(!is_left(Some(outcome), false, false));
        }
    }
}
