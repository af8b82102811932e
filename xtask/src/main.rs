//! The project's own checks: `cargo xtask tidy`, `cargo xtask strangers`, `cargo xtask ci` and `cargo xtask mutants`.

mod ci;
mod mutants;
mod skips;
mod tests;
mod tidy;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy          floors, sizes, forbidden words, headers, clauses, early exits of tests, bounds of strangers
  strangers     writes docs/book/what-a-stranger-can-cost.md from the limits.rs of all crates
  ci            tidy, fmt, clippy, tests: every change must pass them
  mutants [--crate NAME] [--file PATH] [--minutes N] [--fresh]
                changes the code that judges, one place at a time, and shows what no test notices; takes an hour,
                a run that is interrupted goes on
";

fn main() -> ExitCode {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::run(&root),
        ["strangers"] => tidy::write_strangers(&root),
        ["ci"] => ci::run(&root),
        ["mutants", ..] => match mutants::Wish::parse(&arguments[1..]) {
            Some(wish) => mutants::run(&root, &wish),
            None => return usage(),
        },
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprint!("{USAGE}");
    ExitCode::from(2)
}
