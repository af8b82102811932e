//! `deckwatch events publish`: sends events.

mod input;

use std::process::ExitCode;

use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_idl::notation::Notation;
use deckwatch_probe::events::HEADER_DEFAULT;
use deckwatch_probe::events::channel::open;
use deckwatch_probe::events::sending::SendRate;

use super::at::ChannelArgs;
use super::sending::{Input, warn_of_type};
use super::types::type_code;
use super::watching::UntilArgs;
use crate::call::Surroundings;
use crate::idl_args::IdlArgs;
use crate::output::errln;
use crate::words;
use input::Values;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch events publish NAV '{type: \"sequence<long>\", value: [1, 2]}'
  deckwatch events publish NAV 7 8 9 --type 'unsigned long' --rate 2/s --count 100
  deckwatch events publish NAV --type Nav::NavData --idl idl/deckwatch/nav.idl --rate 20/s < events.jsonl

A value is written as for `deckwatch call`. Without values, each line of standard input is one event; JSON is such a text. \
A line of `echo --json` is an event, too, with its own type, header and payload.
The schedule is absolute: an overdue event is sent at once, and none is skipped. A send is late if it begins more than 1 ms \
after it was due.")]
pub(super) struct PublishArgs {
    #[command(flatten)]
    channel: ChannelArgs,
    /// Values of events; standard input without any
    #[arg(allow_negative_numbers = true)]
    values: Vec<String>,
    /// The type of every event; without it each value is {type: TYPE, value: VALUE}
    #[arg(long = "type", value_name = "TYPE")]
    type_text: Option<String>,
    #[command(flatten)]
    idl: IdlArgs,
    /// Type of the header, for a real-time channel; 16 and above are free for use
    #[arg(long, value_name = "NUMBER", default_value_t = HEADER_DEFAULT.r#type)]
    event_type: i32,
    /// Source of the header, for a real-time channel
    #[arg(long, value_name = "NUMBER", default_value_t = HEADER_DEFAULT.source)]
    source: i32,
    /// Send at this rate: 20/s, 6/min, 100/h
    #[arg(long, value_name = "RATE")]
    rate: Option<SendRate>,
    #[command(flatten)]
    until: UntilArgs,
    /// Print the counts as one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PublishArgs) -> anyhow::Result<ExitCode> {
    let model = match args.idl.model() {
        Ok(model) => model,
        Err(status) => return Ok(status),
    };
    let type_text = args.type_text.as_deref();
    let code = type_text.map(|text| type_code(&model, text)).transpose()?;
    let (found, first) = args.channel.split()?;
    let orb = deckwatch_orb::Orb::builder().build()?;
    let world = Surroundings { orb: &orb };
    let notation = Notation::new(&model, &world);
    let texts: Vec<&str> = (first.into_iter())
        .chain(args.values.iter().map(String::as_str))
        .collect();
    let mut values = Values::new(
        &notation,
        (code, Some(args.header())),
        &texts,
        args.is_repeated(),
    )?;
    let channel = open(&found.object)?;
    if channel.has_headers() {
        warn_of_type(args.event_type);
    }
    let sink = channel.supply(&[(args.event_type, args.source)])?;
    let mut without_payload = 0_u64;
    let status = args.until.send(sink, args.json, |sent| {
        let due = args.rate.map(|rate| rate.due(sent));
        let next = values.next(due)?;
        if let Input::Event(event, _) = &next
            && !channel.has_headers()
            && !event.payload.is_empty()
        {
            without_payload += 1;
        }
        Ok(next)
    })?;
    if without_payload > 0 {
        errln!(
            "{} events were sent without their payload: a COS channel takes the value alone.",
            words::count(without_payload)
        );
    }
    Ok(status)
}

impl PublishArgs {
    /// Returns the header of the events; a COS channel ignores it. Its time stamp is set when the event is sent.
    fn header(&self) -> EventHeader {
        EventHeader {
            r#type: self.event_type,
            source: self.source,
            ..HEADER_DEFAULT
        }
    }

    /// Whether the values are sent again and again.
    const fn is_repeated(&self) -> bool {
        self.until.count.is_some() || self.until.time.is_some()
    }
}
