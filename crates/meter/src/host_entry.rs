//! A host as the mission's file has it: what a remedy proposes must differ from it, and keep the rest of it.

use std::fmt;

use crate::disturbance::Taker;

/// The entry of a host in the mission's file, and what its threads have of it in the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEntry {
    /// Its name.
    pub name: String,
    /// Its processors; empty for all.
    pub processors: Vec<u32>,
    /// Its scheduling, if the entry has any.
    pub scheduling: Option<EntryScheduling>,
    /// Its other keys, as a file has them, for example `lock_memory = true`.
    pub others: Vec<String>,
    /// The real-time priority that the mission gives the threads concerned; `None` in the time-sharing class.
    pub priority: Option<u8>,
    /// The kernel refused that priority.
    pub refused: bool,
    /// The flow whose own `scheduling` the threads have, instead of the host's.
    pub scheduled_by: Option<String>,
    /// A processor that is neither the host's nor another host's.
    pub free_processor: Option<u32>,
    /// The file has a key `loads` already.
    pub has_loads: bool,
}

/// The scheduling of a host in the mission's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryScheduling {
    /// The class, as a file names it.
    pub class: &'static str,
    /// Its priority, if the file gives it.
    pub native_priority: Option<u8>,
}

impl fmt::Display for HostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl HostEntry {
    /// Returns the entry of a host of which the file says no more than its name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns what helps against processes outside the run that took the processor from this host.
    pub(crate) fn against(&self, by: Option<&Taker>) -> String {
        let name = &self.name;
        let process = by.map_or("the other processes".to_owned(), |by| {
            format!("{} (process {})", by.name, by.id)
        });
        let stop = format!("top {process}, or keep it off the processors of {name} (taskset)");
        let theirs = by.and_then(Taker::priority);
        let first = match self.priority {
            Some(_) if self.refused => format!("S{stop}. {}", self.when_refused()),
            // A higher priority would change nothing.
            Some(own) if theirs.is_none_or(|theirs| theirs < own) => format!("S{stop}."),
            own => match own.max(theirs).unwrap_or_default() {
                highest @ ..PRIORITY_MAX => {
                    let higher = self.with_priority((highest + 1).max(PRIORITY_USUAL));
                    format!("S{stop}. Or give the host a higher priority: {higher}.")
                }
                highest => format!("S{stop}. No priority above {highest} is left for {name}."),
            },
        };
        format!(
            "{first} If it is part of the mission, declare it: {}.",
            self.load()
        )
    }

    /// Returns what helps the supplier on this host to keep its schedule.
    pub(crate) fn to_keep_its_schedule(&self, real_time: bool) -> String {
        let name = &self.name;
        let first = match (real_time, self.priority) {
            (true, _) => {
                let move_it = match self.free_processor {
                    Some(free) => format!(
                        "give it a processor that no other host uses: {}; or ",
                        self.in_place(&self.entry(&[free], self.scheduling.as_ref()))
                    ),
                    None => String::new(),
                };
                format!(
                    "{name} has a real-time class already: {move_it}end what else runs on its processors, look for \
                     what stopped the supplier, or run on a quieter machine"
                )
            }
            (false, Some(_)) => {
                let refused = self.when_refused();
                refused.trim_end_matches('.').to_owned()
            }
            (false, None) => {
                let real_time = self.with_priority(PRIORITY_LOW);
                format!("Give the host a real-time class in the mission's file: {real_time}")
            }
        };
        format!(
            "{first}. If work on that host is part of the mission, declare it: {}. `deckwatch doctor` shows what \
             disturbs this machine.",
            self.load()
        )
    }

    fn when_refused(&self) -> String {
        format!(
            "The kernel refused the real-time class of {}: run as root, or with CAP_SYS_NICE.",
            self.name
        )
    }

    /// Returns what to write, and where, to give the threads this priority.
    fn with_priority(&self, priority: u8) -> String {
        let class = self.scheduling.as_ref().map(|written| written.class);
        let scheduling = EntryScheduling {
            class: class.filter(|class| *class != "other").unwrap_or("fifo"),
            native_priority: Some(priority),
        };
        let what = match &self.scheduled_by {
            Some(flow) => format!(
                "scheduling = {} in place of `scheduling` of the flow {flow}",
                scheduling.in_toml()
            ),
            None => self.in_place(&self.entry(&self.processors, Some(&scheduling))),
        };
        format!("{what} (needs CAP_SYS_NICE)")
    }

    fn in_place(&self, entry: &str) -> String {
        format!("{entry} in place of the host's entry in `hosts`")
    }

    /// Returns the whole entry, with these processors and this scheduling.
    fn entry(&self, processors: &[u32], scheduling: Option<&EntryScheduling>) -> String {
        let mut keys = vec![format!("name = \"{}\"", self.name)];
        keys.extend_from_slice(&self.others);
        if !processors.is_empty() {
            keys.push(format!("processors = {processors:?}"));
        }
        keys.extend(scheduling.map(|it| format!("scheduling = {}", it.in_toml())));
        format!("{{ {} }}", keys.join(", "))
    }

    /// Returns a load on this host to write, and where.
    fn load(&self) -> String {
        let name = &self.name;
        let load =
            format!("{{ hosts = [\"{name}\"], processes = 1, count = 500_000, sleep = \"1ms\" }}");
        if self.has_loads {
            format!("add {load} to `loads`")
        } else {
            format!("loads = [{load}] above the first [[flows]]")
        }
    }
}

impl EntryScheduling {
    fn in_toml(&self) -> String {
        let class = self.class;
        match self.native_priority {
            Some(priority) => format!("{{ class = \"{class}\", native_priority = {priority} }}"),
            None => format!("{{ class = \"{class}\" }}"),
        }
    }
}

/// The highest priority proposed: at 99 run threads of the kernel that must not wait.
const PRIORITY_MAX: u8 = 98;
/// The priority proposed against other processes, if it is high enough.
const PRIORITY_USUAL: u8 = 80;
/// The priority proposed where no other process is known.
const PRIORITY_LOW: u8 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn taker(class: &str) -> Taker {
        Taker {
            name: "audhog".to_owned(),
            id: 4711,
            class: class.to_owned(),
        }
    }

    /// Host `B` on processor 1, in SCHED_FIFO at this priority.
    fn fifo(priority: u8) -> HostEntry {
        HostEntry {
            processors: vec![1],
            scheduling: Some(EntryScheduling {
                class: "fifo",
                native_priority: Some(priority),
            }),
            others: vec!["lock_memory = true".to_owned()],
            priority: Some(priority),
            ..HostEntry::named("B")
        }
    }

    #[test]
    fn a_host_is_named_in_sentences() {
        assert_eq!(format!("at {}", HostEntry::named("SONAR")), "at SONAR");
    }

    #[test]
    fn a_proposed_priority_is_above_the_takers_and_the_hosts_own_and_keeps_the_entry() {
        let against = fifo(80).against(Some(&taker("SCHED_FIFO 90")));
        assert_eq!(
            against,
            "Stop audhog (process 4711), or keep it off the processors of B (taskset). Or give the host a higher priority: \
             { name = \"B\", lock_memory = true, processors = [1], scheduling = { class = \"fifo\", native_priority = 91 } } \
             in place of the host's entry in `hosts` (needs CAP_SYS_NICE). If it is part of the mission, declare it: \
             loads = [{ hosts = [\"B\"], processes = 1, count = 500_000, sleep = \"1ms\" }] above the first [[flows]]."
        );
        let proposes = |host: &HostEntry, class: &str| {
            let text = host.against(Some(&taker(class)));
            let (_, rest) = text.split_once("native_priority = ")?;
            rest.split(' ').next()?.parse::<u8>().ok()
        };
        assert_eq!(proposes(&HostEntry::named("B"), "SCHED_OTHER"), Some(80));
        assert_eq!(proposes(&HostEntry::named("B"), "SCHED_RR 85"), Some(86));
        assert_eq!(proposes(&fifo(85), "SCHED_FIFO 85"), Some(86));
        assert_eq!(proposes(&fifo(20), "SCHED_FIFO 30"), Some(80));
        assert_eq!(proposes(&fifo(80), "SCHED_FIFO 97"), Some(98));
    }

    #[test]
    fn no_priority_is_proposed_that_would_change_nothing() {
        for (host, class) in [
            (fifo(80), "SCHED_FIFO 98"),
            (fifo(99), "SCHED_FIFO 99"),
            (fifo(80), "SCHED_OTHER"),
            (fifo(80), "SCHED_FIFO 79"),
        ] {
            let text = host.against(Some(&taker(class)));
            assert!(text.starts_with("Stop audhog (process 4711)"), "{text}");
            assert!(!text.contains("native_priority"), "{class}: {text}");
        }
        let refused = HostEntry {
            refused: true,
            ..fifo(80)
        };
        for text in [
            refused.against(Some(&taker("SCHED_OTHER"))),
            refused.to_keep_its_schedule(false),
        ] {
            assert!(text.contains("refused the real-time class of B"), "{text}");
            assert!(!text.contains("native_priority"), "{text}");
        }
    }

    #[test]
    fn a_proposed_processor_is_free_and_leaves_the_scheduling() {
        let alone = fifo(80);
        let text = alone.to_keep_its_schedule(true);
        assert!(!text.contains("processors = "), "{text}");
        let free = HostEntry {
            free_processor: Some(2),
            ..fifo(80)
        };
        let text = free.to_keep_its_schedule(true);
        assert!(
            text.contains(
                "{ name = \"B\", lock_memory = true, processors = [2], scheduling = { class = \"fifo\", native_priority = 80 } } in place of"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_holds_in_the_file_is_what_is_replaced() {
        let by_flow = HostEntry {
            scheduled_by: Some("NAV".to_owned()),
            has_loads: true,
            ..fifo(80)
        };
        let text = by_flow.against(Some(&taker("SCHED_FIFO 90")));
        assert!(
            text.contains(
                "scheduling = { class = \"fifo\", native_priority = 91 } in place of `scheduling` of the flow NAV"
            ),
            "{text}"
        );
        assert!(text.contains("declare it: add { hosts = [\"B\"]"), "{text}");
        assert!(text.contains("sleep = \"1ms\" } to `loads`."), "{text}");
        let round = HostEntry {
            scheduling: Some(EntryScheduling {
                class: "round-robin",
                native_priority: None,
            }),
            ..fifo(80)
        };
        let text = round.against(Some(&taker("SCHED_FIFO 90")));
        assert!(
            text.contains("{ class = \"round-robin\", native_priority = 91 }"),
            "{text}"
        );
    }
}
