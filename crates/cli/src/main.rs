//! The deckwatch command: parses arguments, calls a library crate, prints.
//!
//! To add a subcommand `name`: write `name.rs` with `pub(crate) struct Args` (its doc comment is the help) and
//! `pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode>`, then add one `mod` line and one line to the table.

#![forbid(unsafe_code)]

mod exit;
mod laboratory;
mod live;
mod mission_args;
mod output;
mod reference;
mod serve;
mod verdicts;
mod words;

mod bench;
mod call;
mod channel;
mod check;
mod costs;
mod doctor;
mod idl;
mod invert;
mod invoke;
mod ior;
mod laboratory_end;
mod marshal;
mod names;
mod part;
mod report;
mod run;
mod schema;
mod testbed;
mod version;

use std::process::ExitCode;

use clap::Parser;

/// Instruments for a mission's message load: does every message arrive in time, and why not where it does not.
#[derive(Parser)]
#[command(name = "deckwatch", version, max_term_width = 110)]
#[command(after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit status: 0 PASS or done, 1 FAIL, 2 usage or bad input, 3 UNPROVEN, 4 INVALID;
130 where Ctrl-C ended a measurement before its end (128 and the number of any signal that did).
Set DECKWATCH_LOG (error, warn, info, debug, trace) to see what the program does.";

/// The enum that clap reads and the dispatch over it, from one table.
macro_rules! subcommands {
    ($($variant:ident => $module:ident),* $(,)?) => {
        #[derive(clap::Subcommand)]
        enum Command {
            $($variant($module::Args),)*
        }

        impl Command {
            fn run(self) -> anyhow::Result<ExitCode> {
                match self {
                    $(Self::$variant(args) => $module::run(args),)*
                }
            }
        }
    };
}

subcommands! {
    Bench => bench,
    Call => call,
    Channel => channel,
    Check => check,
    Costs => costs,
    Doctor => doctor,
    LaboratoryEnd => laboratory_end,
    Idl => idl,
    Invert => invert,
    Invoke => invoke,
    Part => part,
    Ior => ior,
    Marshal => marshal,
    Names => names,
    Report => report,
    Run => run,
    Schema => schema,
    Testbed => testbed,
    Version => version,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    trace_to_stderr();
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => {
            exit::print_error(&error);
            exit::BAD_INPUT.into()
        }
    }
}

/// Sends `tracing` to stderr at the level that `DECKWATCH_LOG` names; only errors without it.
fn trace_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing::level_filters::LevelFilter::ERROR.into())
        .with_env_var("DECKWATCH_LOG")
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Where nobody takes what is said, saying so would panic.
        .log_internal_errors(false)
        .init();
}
