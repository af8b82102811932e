//! A host's entry as the file has it, for the remedies that replace it.

use deckwatch_meter::host_entry::{EntryScheduling, HostEntry};

use super::file;

impl file::Host {
    /// Returns the entry. `has_loads`: the file has a key `loads`.
    pub(super) fn entry(&self, has_loads: bool) -> HostEntry {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let words = self.reach.as_ref().map(|reach| {
            let words = reach.get_ref().iter();
            let words: Vec<String> = words.map(|word| quoted(word.get_ref())).collect();
            format!("[{}]", words.join(", "))
        });
        let text =
            |text: &Option<toml::Spanned<String>>| text.as_ref().map(|text| quoted(text.get_ref()));
        let others = [
            ("reach", words),
            ("address", text(&self.address)),
            ("program", text(&self.program)),
            ("lock_memory", self.lock_memory.map(|it| it.to_string())),
        ];
        let written = |(key, value): (&str, Option<String>)| Some(format!("{key} = {}", value?));
        HostEntry {
            processors: self
                .processors
                .as_ref()
                .map_or(Vec::new(), |list| list.get_ref().clone()),
            scheduling: self.scheduling.as_ref().map(|written| {
                let file::Scheduling {
                    class,
                    native_priority,
                } = *written.get_ref();
                EntryScheduling {
                    class: class.word(),
                    native_priority,
                }
            }),
            others: others.into_iter().filter_map(written).collect(),
            has_loads,
            ..HostEntry::named(self.name.get_ref())
        }
    }
}

impl file::SchedulingClass {
    /// Returns its word in a file.
    const fn word(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::RoundRobin => "round-robin",
        }
    }
}
