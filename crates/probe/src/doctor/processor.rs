//! The processors: frequency, idle states, and other users.

use super::{Finding, Root, Trials};
use crate::limits::{IDLE_STATES_MAX, PROCESSORS_MAX};

pub(super) fn findings(root: &Root, trials: &Trials) -> Vec<Finding> {
    [
        governor(root),
        idle_states(root),
        simultaneous_threads(root),
        Some(isolation(root)),
        interrupts(root),
        Some(virtualisation(root)),
        Some(stolen(trials)),
        pressure(trials),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const PROCESSORS: &str = "sys/devices/system/cpu";

/// Returns `None` if the kernel does not set the frequency, as in most virtual machines.
fn governor(root: &Root) -> Option<Finding> {
    let governor = root.read(&format!("{PROCESSORS}/cpu0/cpufreq/scaling_governor"))?;
    let steady = governor == "performance";
    let finding = Finding::new(
        "frequency governor",
        "A governor that follows the load makes rare messages slow and frequent ones fast: the rate decides the latency.",
        governor,
    );
    Some(finding.change_if(!steady, "sudo cpupower frequency-set -g performance"))
}

/// Returns `None` if the kernel has no idle driver.
fn idle_states(root: &Root) -> Option<Finding> {
    const DEEP_EXIT_US: i64 = 20;
    let driver = root.read(&format!("{PROCESSORS}/cpuidle/current_driver"))?;
    let state = |number| format!("{PROCESSORS}/cpu0/cpuidle/state{number}");
    let deepest = (0..IDLE_STATES_MAX)
        .map(state)
        .filter(|state| root.number(&format!("{state}/disable")) == Some(0))
        .filter_map(|state| {
            Some((
                root.number(&format!("{state}/latency"))?,
                root.read(&format!("{state}/name"))?,
            ))
        })
        .max();
    let exit_us = deepest.as_ref().map_or(0, |(exit_us, _)| *exit_us);
    let value = match deepest {
        Some((exit_us, name)) => format!("{driver}, deepest {name} with {exit_us} us to wake from"),
        None => format!("{driver}, no state enabled"),
    };
    let finding = Finding::new(
        "idle states",
        "A processor in its deepest idle state needs this time before it takes the interrupt of a message.",
        value,
    );
    Some(finding.note_if(
        exit_us > DEEP_EXIT_US,
        format!("sudo cpupower idle-set -D {DEEP_EXIT_US}"),
    ))
}

fn simultaneous_threads(root: &Root) -> Option<Finding> {
    let active = root.number(&format!("{PROCESSORS}/smt/active"))? == 1;
    let finding = Finding::new(
        "simultaneous threads",
        "Two threads of one core slow each other down.",
        if active { "on" } else { "off" },
    );
    Some(finding.note_if(
        active,
        format!("echo off | sudo tee /{PROCESSORS}/smt/control"),
    ))
}

fn isolation(root: &Root) -> Finding {
    const WORTH_ISOLATING: usize = 4;
    let count = processor_count(root);
    let isolated = root.read(&format!("{PROCESSORS}/isolated"));
    let value = match &isolated {
        Some(isolated) => format!("{isolated} of {count}"),
        None => format!("none of {count}"),
    };
    Finding::new(
        "isolated processors",
        "The scheduler puts only threads that ask for it on an isolated processor.",
        value,
    )
    .note_if(
        isolated.is_none() && count >= WORTH_ISOLATING,
        format!("Boot with `isolcpus=domain,managed_irq,2-{last} nohz_full=2-{last}`, and give hosts those processors", last = count - 1),
    )
    .note_if(count < 2, "Two processors let supplier and consumer run at once")
}

/// Returns `None` if interrupts cannot be directed to processors.
fn interrupts(root: &Root) -> Option<Finding> {
    let mask = root.read("proc/irq/default_smp_affinity")?;
    let isolated = root.read(&format!("{PROCESSORS}/isolated"));
    let isolated = isolated
        .as_deref()
        .map_or_else(Vec::new, processors_in_list);
    let reached = isolated
        .into_iter()
        .any(|processor| is_in_mask(&mask, processor));
    let finding = Finding::new(
        "interrupts",
        "A device's interrupt on a processor of real-time threads delays all of them.",
        format!("new ones go to processors of mask {mask}"),
    );
    Some(finding.note_if(
        reached,
        "Keep them off isolated processors: echo 3 | sudo tee /proc/irq/default_smp_affinity (3: the first two), and stop irqbalance",
    ))
}

/// The processors of a list such as `2-3,6`.
fn processors_in_list(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<usize>().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',')
        .filter_map(range)
        .flatten()
        .take(PROCESSORS_MAX)
        .collect()
}

/// Whether a processor is in a mask such as `ff,ffffffff`: hexadecimal, the highest word first.
fn is_in_mask(mask: &str, processor: usize) -> bool {
    let digit = mask.chars().rev().filter(|c| *c != ',').nth(processor / 4);
    digit
        .and_then(|digit| digit.to_digit(16))
        .is_some_and(|bits| bits >> (processor % 4) & 1 == 1)
}

fn virtualisation(root: &Root) -> Finding {
    let flags = root.read("proc/cpuinfo").unwrap_or_default();
    let flags = flags
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    let guest = flags
        .split_ascii_whitespace()
        .any(|flag| flag == "hypervisor");
    let product = root.read("sys/class/dmi/id/product_name");
    let value = match (guest, product) {
        (true, Some(product)) => format!("a virtual machine ({product})"),
        (true, None) => "a virtual machine".to_owned(),
        (false, _) => "none seen".to_owned(),
    };
    Finding::new(
        "virtualisation",
        "A hypervisor can take the processor away at any time. Only stolen time shows that, if the hypervisor reports it.",
        value,
    )
    .note_if(guest, "Trust percentiles, not maxima; for a final verdict measure on the ship's machine")
}

fn stolen(trials: &Trials) -> Finding {
    let seen = &trials.disturbance;
    let capacity = seen.duration.as_secs_f64() * f64::from(seen.processors.max(1));
    let share = share(seen.stolen.as_secs_f64(), capacity);
    Finding::new(
        "stolen time",
        "Processor time that the hypervisor gave to others: in the guest everything pauses.",
        format!(
            "{:.2}% over {:.1} s",
            share * 100.0,
            seen.duration.as_secs_f64()
        ),
    )
    .note_if(share > 0.0, "Move to a host with dedicated processors")
    .change_if(
        share > STOLEN_REFUSED,
        "Move to a host with dedicated processors",
    )
}

/// Returns `None` if the kernel has no such file.
fn pressure(trials: &Trials) -> Option<Finding> {
    let seen = &trials.disturbance;
    let share = share(
        seen.processor_pressure?.as_secs_f64(),
        seen.duration.as_secs_f64(),
    );
    let advice = "Stop other programs: `ps -eo pcpu,comm --sort=-pcpu | head`";
    let finding = Finding::new(
        "competition for processors",
        "The time that some runnable thread waited for a processor, without the load of a mission.",
        format!(
            "{:.1}% of {:.1} s",
            share * 100.0,
            seen.duration.as_secs_f64()
        ),
    );
    Some(
        finding
            .note_if(share > PRESSURE_NOTED, advice)
            .change_if(share > PRESSURE_REFUSED, advice),
    )
}

/// Above this share, one message in a hundred may be late because of stolen time alone.
const STOLEN_REFUSED: f64 = 0.01;
/// An idle desktop stays below this pressure.
const PRESSURE_NOTED: f64 = 0.05;
/// At this pressure, another program has the processor for half of the time.
const PRESSURE_REFUSED: f64 = 0.5;

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn processor_count(root: &Root) -> usize {
    let processors = root.read("proc/cpuinfo").unwrap_or_default();
    processors
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count()
        .max(1)
}
