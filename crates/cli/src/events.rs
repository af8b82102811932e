//! `deckwatch events`: looks into any event channel.

mod at;
mod delay;
mod echo;
mod hz;
mod list;
mod progress;
mod publish;
mod record;
mod replay;
mod sending;
mod types;
mod watching;

use std::process::ExitCode;

/// Look into any event channel: list, print, measure, send, record and replay
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch events list
  deckwatch events echo NAV --names corbaloc::ship:2809/NameService
  deckwatch events echo --ior nav.ior --type Nav::NavData --json --count 10
  deckwatch events hz NAV --window 10s
  deckwatch events delay NAV --stamp measured_ns
  deckwatch events publish NAV '{type: \"unsigned long\", value: 7}'
  deckwatch events publish NAV --type Nav::NavData --idl idl/deckwatch/nav.idl --rate 20/s < events.jsonl
  deckwatch events record NAV -o nav.events
  deckwatch events replay nav.events NAV --speed 2

The channel is any COS or real-time event channel, ours or that of another ORB. A consumer listens at the address of this host that leads \
to the channel; `--listen` names another. Ctrl-C and SIGTERM disconnect and leave no proxy in the channel.

Exit status: 0 done, also when a signal ends a command without `--count` and `--for`; 1 fewer events than `--count` asked for;
2 bad input, or the channel does not answer; 130 if Ctrl-C ended it before `--count` or `--for` (128 plus the signal's number).")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the channels of a naming service, with consumers, suppliers, queues, drops and rates
    List(list::ListArgs),
    /// Print events, decoded by their TypeCode or by an IDL file
    Echo(echo::EchoArgs),
    /// Measure rate, inter-arrival times and gaps
    Hz(hz::HzArgs),
    /// Measure the age of events by a stamp in them
    Delay(delay::DelayArgs),
    /// Send events, given as arguments or as lines of standard input
    Publish(publish::PublishArgs),
    /// Write events to a file that survives a crash
    Record(record::RecordArgs),
    /// Send the events of such a file, with their gaps, faster or slower
    Replay(replay::ReplayArgs),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    // Before anything is connected: from here on a signal only ends the loops.
    deckwatch_os::signal::catch_ending()?;
    match &args.action {
        Action::List(args) => list::run(args),
        Action::Echo(args) => echo::run(args),
        Action::Hz(args) => hz::run(args),
        Action::Delay(args) => delay::run(args),
        Action::Publish(args) => publish::run(args),
        Action::Record(args) => record::run(args),
        Action::Replay(args) => replay::run(args),
    }
}
