//! `deckwatch events publish`: sends events.

mod input;

use std::process::ExitCode;

use deckwatch_idl::notation::Notation;
use deckwatch_probe::events::channel::open;
use deckwatch_probe::events::sending::SendRate;

use super::at::ChannelArgs;
use super::types::type_code;
use super::watching::UntilArgs;
use crate::call::Surroundings;
use crate::idl_args::IdlArgs;
use input::Values;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  deckwatch events publish NAV '{type: \"sequence<long>\", value: [1, 2]}'
  deckwatch events publish NAV 7 8 9 --type 'unsigned long' --rate 2/s --count 100
  deckwatch events publish NAV --type Nav::NavData --idl idl/deckwatch/nav.idl --rate 20/s < events.jsonl

A value is written as for `deckwatch call`. Without values, each line of standard input is one event; JSON is such a text.
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
    let mut values = Values::new(&notation, code, &texts, args.is_repeated())?;
    let sink = open(&found.object)?.supply()?;
    args.until.send(sink, args.json, |sent| {
        let due = args.rate.map(|rate| rate.due(sent));
        values.next(due)
    })
}

impl PublishArgs {
    /// Whether the values are sent again and again.
    const fn is_repeated(&self) -> bool {
        self.until.count.is_some() || self.until.time.is_some()
    }
}
