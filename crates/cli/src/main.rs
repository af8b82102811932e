//! The deckwatch command: parses arguments, calls a library crate, prints.
//!
//! To add a subcommand `name`: write `name.rs` with `pub(crate) struct Args` (its doc comment is the help) and
//! `pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode>`; then add a `mod` line, and a line to its group in
//! the table.

#![forbid(unsafe_code)]

mod exit;
mod far_ends;
mod guarded;
mod idl_args;
mod laboratory;
mod live;
mod mission_args;
mod output;
mod overruns;
mod reference;
mod serve;
mod verdict_table;
mod words;

mod bench;
mod call;
mod carriers;
mod channel;
mod check;
mod clock;
mod costs;
mod doctor;
mod events;
mod grid;
mod idl;
mod invert;
mod invoke;
mod ior;
mod laboratory_end;
mod load;
mod marking;
mod marshal;
mod names;
mod overhead;
mod part;
mod relay;
mod report;
mod run;
mod schedule;
mod scheduler;
mod schema;
mod simulate;
mod soak;
mod sweep;
mod testbed;
mod tls;
mod verdicts;
mod version;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

/// Small requests for memory succeed for a while where large ones fail: a server reserves what its peers announce.
#[global_allocator]
static MEMORY: deckwatch_os::reserve::Reserving = deckwatch_os::reserve::Reserving;

/// Will every message arrive in time, and if not, which layer is to blame?
#[derive(Parser)]
#[command(name = "deckwatch", version, max_term_width = 110)]
#[command(help_template = HELP_TEMPLATE, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The subcommands stand in groups, which [`command`] writes in front of the options.
const HELP_TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}
{before-help}Options:
{options}{after-help}";

const EXIT_CODES: &str = "\
Exit status: 0 PASS or done, 1 FAIL, 2 usage or bad input, 3 UNPROVEN, 4 INVALID;
130 if Ctrl-C ended a measurement early (128 plus the number of the signal).
Set DECKWATCH_LOG (error, warn, info, debug, trace) to see what the program does.
`deckwatch COMMAND --help` describes one command, with examples.";

/// The enum that clap reads, the dispatch over it and the groups of the help, from one table.
macro_rules! subcommands {
    ($($group:literal { $($variant:ident => $module:ident),* $(,)? })*) => {
        #[derive(clap::Subcommand)]
        enum Command {
            $($($variant(Box<$module::Args>),)*)*
        }

        impl Command {
            fn run(self) -> anyhow::Result<ExitCode> {
                match self {
                    $($(Self::$variant(args) => $module::run(*args),)*)*
                }
            }

            /// Each group's heading, and the modules of its subcommands.
            const GROUPS: &'static [(&'static str, &'static [&'static str])] =
                &[$(($group, &[$(stringify!($module)),*])),*];
        }
    };
}

subcommands! {
    "Missions" {
        Run => run,
        Check => check,
        Schedule => schedule,
        Report => report,
        Schema => schema,
        Verdicts => verdicts,
        Carriers => carriers,
    }
    "Laboratory" {
        Testbed => testbed,
        Load => load,
        Doctor => doctor,
        Clock => clock,
    }
    "Measurements" {
        Bench => bench,
        Sweep => sweep,
        Overhead => overhead,
        Grid => grid,
        Invert => invert,
        Costs => costs,
        Invoke => invoke,
        Marshal => marshal,
        Soak => soak,
    }
    "CORBA tools" {
        Names => names,
        Channel => channel,
        Scheduler => scheduler,
        Events => events,
        Call => call,
        Ior => ior,
        Idl => idl,
    }
    "About" {
        Version => version,
    }
    // The other processes of a run, a testbed and a bench; hidden.
    "Processes" {
        Part => part,
        Relay => relay,
        LaboratoryEnd => laboratory_end,
    }
}

/// The command line with its subcommands in groups.
fn command() -> clap::Command {
    let command = Cli::command();
    let heading = command.get_styles().get_header();
    let name = command.get_styles().get_literal();
    let mut text = String::new();
    for (group, modules) in Command::GROUPS {
        let members = command.get_subcommands().filter(|subcommand| {
            let module = subcommand.get_name().replace('-', "_");
            !subcommand.is_hide_set() && modules.contains(&module.as_str())
        });
        let lines: Vec<String> = members
            .map(|subcommand| {
                let about = subcommand.get_about().map(ToString::to_string);
                format!(
                    "  {name}{:<10}{name:#}{}\n",
                    subcommand.get_name(),
                    about.unwrap_or_default()
                )
            })
            .collect();
        if !lines.is_empty() {
            text += &format!("\n{heading}{group}:{heading:#}\n{}", lines.concat());
        }
    }
    command.before_help(text.trim_end().to_owned())
}

fn main() -> ExitCode {
    deckwatch_os::memory::spare_address_space();
    let matches = command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
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
        // An error about a standard error that is closed would panic.
        .log_internal_errors(false)
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_each_visible_subcommand_once_under_its_group() {
        let help = command().render_help().to_string();
        for (group, _) in Command::GROUPS
            .iter()
            .filter(|(group, _)| *group != "Processes")
        {
            assert_eq!(help.matches(&format!("\n{group}:\n")).count(), 1, "{group}");
        }
        assert!(!help.contains("Processes"), "{help}");
        for subcommand in Cli::command().get_subcommands() {
            let line = format!("\n  {:<10}", subcommand.get_name());
            let expected = usize::from(!subcommand.is_hide_set());
            assert_eq!(help.matches(&line).count(), expected, "{line}");
        }
    }
}
