//! One end of a bench, started by `deckwatch bench` and by nobody else.

use std::path::PathBuf;

use deckwatch_probe::bench::{EndPlan, Inserted, Role, Variant};

/// One end of a bench, started by `deckwatch bench` and by nobody else
#[derive(clap::Args)]
pub(super) struct Args {
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
    #[arg(long, value_parser = variant)]
    variant: Option<Variant>,
    #[arg(long)]
    lanes: bool,
    #[arg(long, default_value_t = 1)]
    clients: usize,
}

impl Args {
    pub(super) fn plan(self) -> EndPlan {
        EndPlan {
            role: self.role,
            processor: self.processor,
            fifo: self.fifo,
            inserted: self.inserted.unwrap_or_default(),
            reference: self.reference,
            objects: self.objects,
            references: self.references,
            variant: self.variant.unwrap_or_default(),
            lanes: self.lanes,
            clients: self.clients,
        }
    }
}

fn role(word: &str) -> Result<Role, String> {
    let found = Role::ALL.iter().find(|role| role.word() == word);
    found.copied().ok_or_else(|| "no role".to_owned())
}

fn variant(word: &str) -> Result<Variant, String> {
    let found = Variant::ALL.iter().find(|variant| variant.word() == word);
    found.copied().ok_or_else(|| "no way to wait".to_owned())
}

fn inserted(words: &str) -> Result<Inserted, String> {
    Inserted::of_words(words).ok_or_else(|| "nothing that can be done beside".to_owned())
}
