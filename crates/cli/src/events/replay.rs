//! `deckwatch events replay`: sends the events of a file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_probe::events::HEADER_DEFAULT;
use deckwatch_probe::events::channel::open;
use deckwatch_probe::events::recording::{Survey, Tail, Wanted};
use deckwatch_probe::events::replay::{Pace, Replay};

use super::at::ChannelArgs;
use super::progress::Progress;
use super::sending::{Input, warn_of_type};
use super::types::TypeArgs;
use super::watching::UntilArgs;
use crate::output::{errln, outln};
use crate::words;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch events replay nav.events NAV
  deckwatch events replay nav.events NAV --speed 2 --loop
  deckwatch events replay nav.events NAV --speed 0               as fast as the channel takes the events
  deckwatch events replay nav.events --dry-run                   print the schedule, and send nothing

The gaps are those at which the recorder received the events. The schedule is absolute: an overdue event is sent at once, and \
none is skipped. With `--loop`, the mean gap lies between two rounds. All of the file is checked before anything is sent. If an event in it is damaged, the events before it are sent, with a warning.")]
pub(super) struct ReplayArgs {
    /// The recording
    file: PathBuf,
    #[command(flatten)]
    channel: ChannelArgs,
    /// So many times as fast as recorded; 0 for as fast as possible
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Begin again at the end, until a signal, `--count` or `--for`
    #[arg(long = "loop")]
    is_looped: bool,
    /// Print due time and type of each event, and send nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    types: TypeArgs,
    /// Type of the header of events that were recorded without one, for a real-time channel
    #[arg(long, value_name = "NUMBER", default_value_t = HEADER_DEFAULT.r#type)]
    event_type: i32,
    /// Source of that header
    #[arg(long, value_name = "NUMBER", default_value_t = HEADER_DEFAULT.source)]
    event_source: i32,
    #[command(flatten)]
    until: UntilArgs,
    /// Print the counts, or the lines of `--dry-run`, as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let model = match args.types.idl.model() {
        Ok(model) => model,
        Err(status) => return Ok(status),
    };
    let pace = Pace {
        speed: args.speed,
        is_looped: args.is_looped,
    };
    let opened = Replay::open(&args.file, args.types.selection(&model)?, pace);
    let cannot_read = || format!("cannot replay {}", args.file.display());
    let (replay, survey) = opened.with_context(cannot_read)?;
    tell(&survey);
    if args.dry_run {
        return schedule(args, replay);
    }
    let found = args.channel.find()?;
    let channel = open(&found.object)?;
    let header = EventHeader {
        r#type: args.event_type,
        source: args.event_source,
        ..HEADER_DEFAULT
    };
    let sink = channel.supply(&headers(channel.has_headers(), header, &survey.wanted))?;
    let (mut replay, mut progress) = (replay, Progress::new(Some(survey.events)));
    args.until.send(sink, args.json, |sent| {
        let of = survey.events.max(1);
        progress.show(sent % of, || {
            format!("{} of {} events", words::count(sent % of), words::count(of))
        });
        let due = replay.read().with_context(cannot_read)?;
        Ok(due.map_or(Input::End, |mut due| {
            due.event.header.get_or_insert(header);
            Input::Event(due.event, due.after)
        }))
    })
}

/// Returns type and source of the events that are sent, and warns of what the channel changes in them.
fn headers(has_headers: bool, header: EventHeader, wanted: &Wanted) -> Vec<(i32, i32)> {
    let mut headers: Vec<_> = wanted.headers.iter().copied().collect();
    if has_headers && wanted.without_header > 0 {
        headers.push((header.r#type, header.source));
        errln!(
            "{} events of the recording have no header: they are sent with type {} and source {} (`--event-type`, \
             `--event-source`).",
            words::count(wanted.without_header),
            header.r#type,
            header.source
        );
        warn_of_type(header.r#type);
    }
    if !has_headers && wanted.with_header > 0 {
        errln!(
            "A COS channel takes the value alone: {} events of the recording lose their header, and {} of them their payload.",
            words::count(wanted.with_header),
            words::count(wanted.with_payload)
        );
    }
    headers
}

/// Prints the schedule.
fn schedule(args: &ReplayArgs, mut replay: Replay) -> anyhow::Result<ExitCode> {
    if args.is_looped && args.until.count.is_none() {
        bail!("a schedule with `--loop` has no end: `--count N` gives it one");
    }
    let mut number = 0;
    while args.until.count != Some(number)
        && let Some(due) = replay.read()?
    {
        number += 1;
        let after = due.after.unwrap_or_default();
        let code = due.event.data.type_code();
        let name = code
            .id()
            .map_or_else(|| code.to_string(), ToOwned::to_owned);
        if args.json {
            let name = serde_json::to_string(&name)?;
            outln!("{{\"due_ns\": {}, \"type\": {name}}}", after.as_nanos())?;
        } else {
            let name = deckwatch_probe::events::shown::plain_name(&name);
            outln!("{}.{:09}  {name}", after.as_secs(), after.subsec_nanos())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what the recording lacks: dropped events, its end, or a torn tail.
fn tell(survey: &Survey) {
    let events = words::count(survey.events);
    if let Tail::Ended(end) = &survey.tail
        && let Some(dropped @ 1..) = end.dropped_by_channel
    {
        errln!(
            "While it was recorded, the channel dropped {} events.",
            words::count(dropped)
        );
    }
    match &survey.tail {
        Tail::Ended(end) if end.dropped > 0 => errln!(
            "The recording lacks {} events, which came faster than they were written.",
            words::count(end.dropped)
        ),
        Tail::Ended(_) => {}
        Tail::Open => {
            errln!("The recording was not ended in order; its {events} events are whole.")
        }
        Tail::Torn(octets) => errln!(
            "The last {} octets of the recording are torn; the {events} events before them are whole.",
            words::count(*octets)
        ),
        Tail::Damaged { offset, fact } => errln!(
            "The record at octet {offset} is damaged ({fact}). The {events} events before it are whole; those behind it are \
             not sent."
        ),
    }
}

fn speed(text: &str) -> anyhow::Result<f64> {
    match text.parse::<f64>() {
        // Slower or faster, due times are beyond what a clock counts.
        Ok(speed) if speed == 0.0 || (1e-6..=1e6).contains(&speed) => Ok(speed.abs()),
        _ => bail!("expected 0, or a factor from 0.000001 to 1000000, for example 2"),
    }
}
