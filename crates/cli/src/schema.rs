//! `deckwatch schema`: the JSON Schemas of mission, schedule, access and network files, and of audit logs.

use std::process::ExitCode;

use crate::output::outln;

/// Print the JSON Schema of mission, schedule, access or network files, or of an audit log
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  deckwatch schema > mission-1.json\n  deckwatch schema schedule > schedule-1.json"
)]
pub(crate) struct Args {
    /// The kind of file
    #[arg(value_name = "KIND", default_value = "mission", value_parser = ["mission", "schedule", "access", "audit", "network"])]
    kind: String,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let audit;
    let schema = match args.kind.as_str() {
        "audit" => {
            audit = deckwatch_audit::schema();
            &audit
        }
        "schedule" => deckwatch_scenario::schedule::schema(),
        "access" => deckwatch_scenario::access::schema(),
        "network" => deckwatch_scenario::network::schema(),
        _ => deckwatch_scenario::mission::schema(),
    };
    outln!("{}", serde_json::to_string_pretty(schema)?)?;
    Ok(ExitCode::SUCCESS)
}
