//! `deckwatch events echo`: prints events.

use std::fmt::Write as _;
use std::process::ExitCode;

use deckwatch_idl::notation::Notation;
use deckwatch_meter::provenance::rfc3339;
use deckwatch_orb::Orb;
use deckwatch_probe::events::shown::{Decoded, Shown, plain_name};
use deckwatch_probe::events::{Event, Received};
use serde_json::to_string;

use super::at::ConsumerArgs;
use super::types::TypeArgs;
use super::watching::UntilArgs;
use crate::call::Surroundings;
use crate::output::outln;

#[derive(clap::Args)]
pub(super) struct EchoArgs {
    #[command(flatten)]
    consumer: ConsumerArgs,
    #[command(flatten)]
    types: TypeArgs,
    #[command(flatten)]
    until: UntilArgs,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Preferred line length of a printed event, in characters.
const WIDTH: usize = 110;

pub(super) fn run(args: &EchoArgs) -> anyhow::Result<ExitCode> {
    let model = match args.types.idl.model() {
        Ok(model) => model,
        Err(status) => return Ok(status),
    };
    let orb = Orb::builder().build()?;
    let world = Surroundings { orb: &orb };
    let notation = Notation::new(&model, &world);
    let shown = Shown::new(&notation).with_types(args.types.known(&model)?);
    let mut subscription = args.consumer.subscribe(&args.types, &model)?;
    let mut number = 0_u64;
    args.until.watch(&mut subscription, |received| {
        let Some(received) = received else {
            return Ok(());
        };
        number += 1;
        let decoded = shown.decode(&received.event);
        if args.json {
            outln!("{}", json(number, received, &decoded)?)
        } else {
            outln!("{}", text(received, &decoded))
        }
    })
}

fn json(number: u64, received: &Received, decoded: &Decoded) -> anyhow::Result<String> {
    let (label, value) = match &decoded.value {
        Ok(printed) => ("value", printed.json(usize::MAX)),
        Err(why) => ("unprinted", to_string(why)?),
    };
    let header = received.event.header.map_or_else(String::new, |header| {
        format!(
            ", \"header\": {{\"type\": {}, \"source\": {}, \"ttl\": {}, \"creation_time\": {}}}",
            header.r#type, header.source, header.ttl, header.creation_time
        )
    });
    let idl = if decoded.idl == decoded.type_name {
        String::new()
    } else {
        format!(", \"idl\": {}", to_string(&decoded.idl)?)
    };
    Ok(format!(
        "{{\"number\": {number}, \"received\": {}, \"received_monotonic_ns\": {}{header}, \"type\": {}{idl}, \
         \"{label}\": {value}{}}}",
        to_string(&rfc3339(received.at.utc))?,
        received.at.monotonic_ns,
        to_string(&decoded.type_name)?,
        payload(&received.event, decoded),
    ))
}

/// Returns the members of a line for the octets beside the value.
fn payload(event: &Event, decoded: &Decoded) -> String {
    let mut text = String::new();
    if decoded.value.is_ok() && !event.payload.is_empty() {
        text += ", \"payload\": \"x'";
        for octet in &event.payload {
            // Writing to a string cannot fail.
            let _ = write!(text, "{octet:02x}");
        }
        text += "'\"";
        if decoded.is_of_payload {
            text += ", \"value_of\": \"payload\"";
        }
    }
    text
}

fn text(received: &Received, decoded: &Decoded) -> String {
    let utc = rfc3339(received.at.utc);
    let time = utc.split_once('T').map_or(&*utc, |(_, time)| time);
    let header = received.event.header.map_or_else(String::new, |header| {
        format!("type {} source {}  ", header.r#type, header.source)
    });
    let head = format!("{time}  {header}{}  ", plain_name(&decoded.type_name));
    match &decoded.value {
        Ok(printed) => head.clone() + &printed.text(WIDTH.saturating_sub(head.chars().count())),
        Err(why) => format!("{head}({why})"),
    }
}
