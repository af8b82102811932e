//! One end of an experiment, started by the experiments and by nobody else.

use std::process::ExitCode;
use std::time::Duration;

use deckwatch_probe::experiment::{EndRole, ExperimentEnd, run_experiment_end};

/// One end of an experiment, started by the experiments and by nobody else
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    #[arg(value_parser = role)]
    role: EndRole,
    #[arg(long)]
    processor: Option<u32>,
    #[arg(long)]
    fifo: Option<u8>,
    #[arg(long, default_value_t = 0)]
    servant_delay_ns: u64,
    #[arg(long, default_value_t = 0)]
    servant_locks: u32,
    #[arg(long)]
    factors: bool,
    #[arg(long)]
    reference: Option<String>,
    #[arg(long, value_parser = pair::<usize>, default_value = "0,0")]
    sizes: (usize, usize),
    #[arg(long)]
    serving_fifo: Option<u8>,
    #[arg(long, value_parser = pair::<u8>)]
    lanes: Option<(u8, u8)>,
}

fn role(word: &str) -> Result<EndRole, String> {
    let found = EndRole::ALL.iter().find(|role| role.word() == word);
    found.copied().ok_or_else(|| "no role".to_owned())
}

/// Two numbers with a comma between them.
fn pair<T: std::str::FromStr>(text: &str) -> Result<(T, T), String> {
    let numbers = text.split_once(',');
    let numbers = numbers.and_then(|(one, other)| Some((one.parse().ok()?, other.parse().ok()?)));
    numbers.ok_or_else(|| "no pair of numbers".to_owned())
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    run_experiment_end(&ExperimentEnd {
        role: args.role,
        processor: args.processor,
        fifo: args.fifo,
        servant_delay: Duration::from_nanos(args.servant_delay_ns),
        servant_locks: args.servant_locks,
        factors: args.factors,
        reference: args.reference,
        sizes: args.sizes,
        serving_fifo: args.serving_fifo,
        lanes: args.lanes,
    })?;
    Ok(ExitCode::SUCCESS)
}
