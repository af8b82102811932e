//! `deckwatch events record`: writes events to a file.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use deckwatch_meter::provenance::{machine, rfc3339};
use deckwatch_os::clock::monotonic_ns;
use deckwatch_probe::events::recording::{End, Head, Recorder};
use deckwatch_probe::events::subscription::Next;
use serde::Serialize;

use super::at::ConsumerArgs;
use super::progress::Progress;
use super::types::TypeArgs;
use super::watching::UntilArgs;
use crate::output::{errln, outln};
use crate::words;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch events record NAV -o nav.events
  deckwatch events record NAV -o nav.events --for 10min --type Nav::NavData

Each event is one write: a recorder that is killed loses the events that it has received and not yet written, and at most the \
last record is torn. `deckwatch events replay` finds that. Ctrl-C ends the recording in order: all that was received is written. \
So does the end or the death of the channel.")]
pub(super) struct RecordArgs {
    #[command(flatten)]
    consumer: ConsumerArgs,
    /// The file, which must not exist
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    types: TypeArgs,
    #[command(flatten)]
    until: UntilArgs,
    /// Print the counts as one JSON object
    #[arg(long)]
    json: bool,
}

/// The counts of a recording.
#[derive(Serialize)]
struct Counts {
    #[serde(flatten)]
    end: End,
    /// Octets in the file before its end.
    size_bytes: u64,
}

pub(super) fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let model = match args.types.idl.model() {
        Ok(model) => model,
        Err(status) => return Ok(status),
    };
    let file = args.output.display();
    let cannot_write = || format!("cannot write {file}");
    let mut subscription = args.consumer.subscribe(&args.types, &model)?;
    let head = head(args.consumer.name());
    let mut recorder =
        Recorder::create(&args.output, &head, monotonic_ns()).with_context(cannot_write)?;
    let mut progress = Progress::new(None);
    let mut taken = 0;
    let watched = args.until.watch(&mut subscription, |received| {
        if let Some(received) = received {
            recorder.add(received).with_context(cannot_write)?;
            taken += 1;
        }
        progress.show(recorder.events(), || {
            format!(
                "{} events, {} octets",
                words::count(recorder.events()),
                words::count(recorder.size_bytes())
            )
        });
        Ok(())
    });
    drop(progress);
    // Whatever ended it, the file gets its end and the channel its proxy back.
    subscription.disconnect();
    let (mut losses, mut unwanted) = (subscription.losses(), subscription.counts().unwanted);
    while let Ok(Next::Event(_)) = subscription.next(Duration::ZERO) {
        if args.until.count == Some(taken) {
            unwanted += 1;
        } else {
            losses.dropped += 1;
        }
    }
    drop(subscription);
    let (kept, size) = (recorder.events(), recorder.size_bytes());
    let ended = recorder.finish(losses, unwanted).with_context(cannot_write);
    let status = watched.with_context(|| {
        format!(
            "the recording has ended; {} events are kept in {file}",
            words::count(kept)
        )
    })?;
    let end = ended?;
    if args.json {
        let size_bytes = size;
        outln!("{}", serde_json::to_string(&Counts { end, size_bytes })?)?;
    } else {
        print_end(&end, size, &file);
    }
    Ok(status)
}

/// Prints what has been recorded.
fn print_end(end: &End, size_bytes: u64, file: &impl Display) {
    let events = usize::try_from(end.events).unwrap_or(usize::MAX);
    errln!(
        "Recorded {} {} ({} octets) in {file}.",
        words::count(end.events),
        words::plural("event", events),
        words::count(size_bytes)
    );
    if end.unwritten > 0 {
        errln!(
            "{} events have a state that cannot be written; they are not in the file.",
            words::count(end.unwritten)
        );
    }
}

fn head(channel: &str) -> Head {
    let mut facts = machine();
    Head {
        started: rfc3339(SystemTime::now()),
        channel: channel.to_owned(),
        host: facts.remove("host_name").unwrap_or_default(),
        deckwatch: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
