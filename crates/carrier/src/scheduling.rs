//! Applies the scheduling of a plan. Each request that the kernel refuses becomes a warning with its remedy.

use std::fmt::Display;
use std::time::Duration;

use deckwatch_meter::caution::Caution;
use deckwatch_meter::result::Warning;
use deckwatch_os::memory;
use deckwatch_os::schedule::{self, Class};
use serde::{Deserialize, Serialize};

use crate::limits::REAL_TIME_UNBLOCKED_MAX;

/// Scheduling of the threads that send, receive or forward messages. What the kernel refuses is reported in `ready`,
/// and the part runs without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduling {
    /// The scheduling class.
    pub class: SchedulingClass,
    /// Processors to run on (those of the host, or those that the flow chooses of them); empty for all.
    pub cpus: Vec<u32>,
    /// Locks the memory of the process, so that it takes no page faults.
    pub lock_memory: bool,
}

/// A scheduling class with its priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SchedulingClass {
    /// The time-sharing class.
    #[default]
    Other,
    /// SCHED_FIFO.
    Fifo {
        /// 1..=99.
        priority: u8,
    },
    /// SCHED_RR.
    RoundRobin {
        /// 1..=99.
        priority: u8,
    },
}

/// Applies the scheduling to the process. Call it before threads are created: they inherit the processors.
pub(crate) fn prepare_process(scheduling: &Scheduling, handle_for: Duration) -> Vec<Warning> {
    let mut refused = Vec::new();
    if !scheduling.cpus.is_empty()
        && let Err(error) = schedule::set_affinity(&scheduling.cpus)
    {
        let cpus = &scheduling.cpus;
        refused.push(refusal(
            format_args!("Processors {cpus:?}"),
            &error,
            "name processors that exist here and that this process may use (see `taskset -p $$`)",
        ));
    }
    if scheduling.class != SchedulingClass::Other {
        let unblocked = handle_for
            .saturating_mul(2)
            .saturating_add(REAL_TIME_UNBLOCKED_MAX);
        if let Err(error) = schedule::limit_real_time(unblocked) {
            refused.push(refusal(
                "The limit of real-time processor time",
                &error,
                "raise the hard limit (ulimit -R)",
            ));
        }
    }
    if scheduling.lock_memory
        && let Err(error) = memory::lock_on_fault()
    {
        refused.push(refusal(
            "Locked memory",
            &error,
            "give CAP_IPC_LOCK, or raise the limit (ulimit -l unlimited)",
        ));
    }
    refused
}

/// Applies the scheduling to the calling thread, which handles messages.
pub(crate) fn prepare_thread(scheduling: &Scheduling) -> Vec<Warning> {
    memory::prefault_stack();
    schedule::set_timer_slack(Duration::from_nanos(1));
    let class = match scheduling.class {
        SchedulingClass::Other => return Vec::new(),
        SchedulingClass::Fifo { priority } => Class::Fifo(priority),
        SchedulingClass::RoundRobin { priority } => Class::RoundRobin(priority),
    };
    match schedule::set_class(class) {
        Ok(()) => Vec::new(),
        Err(error) => vec![refusal(
            class,
            &error,
            "give CAP_SYS_NICE, or raise the limit (ulimit -r 99); in a container the group may have no real-time budget (cpu.rt_runtime_us)",
        )],
    }
}

/// Returns the scheduling in words: what was requested, and what the kernel refused.
pub(crate) fn in_words(scheduling: &Scheduling, refused: &[Warning]) -> String {
    let class = match scheduling.class {
        SchedulingClass::Other => "SCHED_OTHER".to_owned(),
        SchedulingClass::Fifo { priority } => format!("SCHED_FIFO {priority}"),
        SchedulingClass::RoundRobin { priority } => format!("SCHED_RR {priority}"),
    };
    let mut words = vec![class];
    if !scheduling.cpus.is_empty() {
        let cpus: Vec<String> = scheduling.cpus.iter().map(u32::to_string).collect();
        words.push(format!("processors {}", cpus.join(" ")));
    }
    if scheduling.lock_memory {
        words.push("locked memory".to_owned());
    }
    let asked = words.join(", ");
    if refused.is_empty() {
        asked
    } else {
        format!("asked for {asked}; in part refused")
    }
}

fn refusal(what: impl Display, error: &std::io::Error, remedy: &'static str) -> Warning {
    let (what, error) = (what.to_string(), error.to_string());
    Caution::SchedulingRefused {
        what,
        error,
        remedy,
    }
    .into()
}
