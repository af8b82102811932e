//! The hidden subcommand `laboratory-end`: one end of a bench or an experiment, which starts it.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

use deckwatch_probe::bench::Attack;
use deckwatch_probe::laboratory::{self, EndPlan, Inserted, Role, Variant, run_end};
use deckwatch_scenario::reach::FarFolder;

use crate::exit;
use crate::output::outln;

/// One end of a bench or an experiment, which start it themselves
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    #[arg(value_parser = role)]
    role: Role,
    #[arg(long)]
    processor: Option<u32>,
    #[arg(long)]
    fifo: Option<u8>,
    #[arg(long, value_parser = inserted)]
    inserted: Option<Inserted>,
    #[arg(long)]
    reference: Option<String>,
    #[arg(long, default_value_t = 1)]
    objects: usize,
    #[arg(long)]
    references: Option<PathBuf>,
    #[arg(long)]
    subjects: bool,
    #[arg(long, value_parser = variant)]
    variant: Option<Variant>,
    #[arg(long)]
    certificates: Option<PathBuf>,
    #[arg(long, value_parser = attack)]
    attack: Option<Attack>,
    #[arg(long, value_parser = lanes)]
    lanes: Option<(u8, u8)>,
    #[arg(long, default_value_t = 1)]
    clients: usize,
    #[arg(long)]
    factors: bool,
    #[arg(long)]
    serving_fifo: Option<u8>,
    #[arg(long)]
    listen: Option<String>,
    /// It is far from the measurement of this name
    #[arg(long)]
    run: Option<String>,
}

fn role(word: &str) -> Result<Role, String> {
    let found = Role::ALL.iter().find(|role| role.word() == word);
    found.copied().ok_or_else(|| "unknown role".to_owned())
}

fn variant(word: &str) -> Result<Variant, String> {
    let found = Variant::ALL.iter().find(|variant| variant.word() == word);
    found.copied().ok_or_else(|| "unknown variant".to_owned())
}

fn attack(word: &str) -> Result<Attack, String> {
    Attack::of_word(word).ok_or_else(|| "unknown attack".to_owned())
}

fn inserted(words: &str) -> Result<Inserted, String> {
    Inserted::of_words(words).ok_or_else(|| "unknown work".to_owned())
}

/// Parses two priorities, `HIGH,LOW`.
fn lanes(text: &str) -> Result<(u8, u8), String> {
    let numbers = text.split_once(',');
    let numbers = numbers.and_then(|(high, low)| Some((high.parse().ok()?, low.parse().ok()?)));
    numbers.ok_or_else(|| "not two priorities".to_owned())
}

/// Tells the coordinator why this end cannot be, in place of the first line.
pub(crate) fn refuse(error: &impl Display) -> anyhow::Result<ExitCode> {
    outln!("{}{error}", laboratory::REFUSED)?;
    Ok(exit::BAD_INPUT.into())
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _place = match args.run.as_deref().map(FarFolder::make).transpose() {
        Ok(place) => place,
        Err(error) => return refuse(&error),
    };
    run_end(&EndPlan {
        role: args.role,
        processor: args.processor,
        fifo: args.fifo,
        inserted: args.inserted.unwrap_or_default(),
        reference: args.reference,
        objects: args.objects,
        references: args.references,
        subjects: args.subjects,
        variant: args.variant.unwrap_or_default(),
        certificates: args.certificates,
        attack: args.attack,
        lanes: args.lanes,
        clients: args.clients,
        factors: args.factors,
        serving_fifo: args.serving_fifo,
        listen: args.listen,
        beats: args.run.is_some(),
    })?;
    Ok(ExitCode::SUCCESS)
}
