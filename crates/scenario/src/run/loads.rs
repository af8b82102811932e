//! The loads of a run: what they reached, in words and as data, and which missed their target.

use std::collections::BTreeMap;

use deckwatch_load::{Held, LoadReport, StressPlan, Unit};
use deckwatch_meter::result::{LoadReached, LoadResult};

use super::child::{Child, Role};
use crate::mission::{DurationText, Load, LoadWork, Location, Mission};

/// Describes each load, with what it reached. A loop that counts has the shortest measured duration of its burst, which
/// then ran undisturbed.
pub(super) fn in_words(mission: &Mission, children: &[Child]) -> Vec<String> {
    let of_load = |(index, load): (usize, &Load)| {
        let host = &mission.hosts[load.host];
        let reports: Vec<&LoadReport> = reports(index, children).collect();
        let processors = if host.processors.is_empty() {
            String::new()
        } else {
            format!(", processors {:?}", host.processors)
        };
        let work = match &load.work {
            LoadWork::Loops {
                processes,
                count,
                sleep,
            } => {
                let bursts = reports.iter().filter_map(|report| report.bursts);
                let burst = bursts.map(|bursts| bursts.ns_min).min();
                let took =
                    burst.map_or(String::new(), |ns| format!(" (at least {} us)", ns / 1000));
                let sleep = DurationText(*sleep);
                format!(
                    "{processes} processes, each counting to {count}{took} and sleeping {sleep}"
                )
            }
            LoadWork::Share { .. } | LoadWork::Net { .. } | LoadWork::Stress(_) => {
                let whole: Vec<String> = reports.iter().map(|report| report.to_string()).collect();
                whole.join("; ").replace('\n', "; ")
            }
        };
        format!("{}{processors}: {work}", host.name)
    };
    mission.loads.iter().enumerate().map(of_load).collect()
}

/// Returns each load as data, with what it reached.
pub(super) fn results(mission: &Mission, children: &[Child]) -> Vec<LoadResult> {
    let of_load = |(index, load): (usize, &Load)| {
        let mut result = LoadResult {
            host: mission.hosts[load.host].name.clone(),
            kind: kind(&load.work).to_owned(),
            must_hold: load.must_hold,
            reached: Vec::new(),
            counts: BTreeMap::new(),
        };
        for report in reports(index, children) {
            result.reached.extend(report.held.iter().map(reached));
            count(report, &mut result.counts);
        }
        result
    };
    mission.loads.iter().enumerate().map(of_load).collect()
}

const fn kind(work: &LoadWork) -> &'static str {
    match work {
        LoadWork::Loops { .. } => "loops",
        LoadWork::Share { .. } => "processor",
        LoadWork::Net { .. } => "link",
        LoadWork::Stress(StressPlan::Memory { .. }) => "memory",
        LoadWork::Stress(StressPlan::Disk { .. }) => "disk",
    }
}

fn reached(held: &Held) -> LoadReached {
    let unit = match held.unit {
        Unit::Share => "share",
        Unit::BitsPerS => "bits/s",
        Unit::Octets => "octets",
        Unit::OctetsPerS => "octets/s",
    };
    LoadReached {
        of: held.of.clone(),
        unit: unit.to_owned(),
        asked: held.asked,
        seconds: held.seconds,
        seconds_within: held.seconds_within,
        mean: held.mean,
        min: held.min,
        max: held.max,
        deviation: held.deviation,
        own_mean: held.own_mean,
        stolen_mean: held.stolen_mean,
        held: held.is_held(),
    }
}

/// Adds the counts of one process of a load.
fn count(report: &LoadReport, counts: &mut BTreeMap<String, f64>) {
    let mut add = |name: &str, count: f64| *counts.entry(name.to_owned()).or_default() += count;
    if let Some(bursts) = report.bursts {
        add("bursts", bursts.count as f64);
    }
    if let Some(sent) = report.sent {
        add("sent_messages", sent.messages as f64);
        add("sent_octets", sent.octets as f64);
        add("send_errors", sent.errors as f64);
        add("interface_drops", sent.interface_drops as f64);
        add("late_s_max", sent.late_max.as_secs_f64());
    }
    if let Some(received) = report.received {
        add("received_octets", received.octets as f64);
        add("received_datagrams", received.datagrams as f64);
        add("missing_datagrams", received.missing as f64);
        add("receive_overflows", received.overflows as f64);
    }
    if let Some(stressed) = &report.stressed {
        add("bogo_operations", stressed.operations as f64);
        add("processor_s", stressed.processor_time.as_secs_f64());
        let optional = [
            ("written_octets_per_s", stressed.written_octets_per_s),
            ("read_octets_per_s", stressed.read_octets_per_s),
            ("stalled_some_share", stressed.stalled_some),
            ("stalled_full_share", stressed.stalled_full),
        ];
        for (name, count) in optional {
            if let Some(count) = count {
                add(name, count);
            }
        }
    }
    // The shortest of all bursts is no sum.
    if let Some(bursts) = report.bursts {
        let shortest = counts
            .entry("burst_ns_min".to_owned())
            .or_insert(f64::INFINITY);
        *shortest = shortest.min(bursts.ns_min as f64);
    }
}

fn reports(load: usize, children: &[Child]) -> impl Iterator<Item = &LoadReport> {
    let of_load = children
        .iter()
        .filter(move |child| child.role == Role::Load { load });
    of_load.filter_map(|child| child.load.as_ref())
}

/// Returns the loads that missed their target: each in words, and whether the mission needs the target.
pub(super) fn missed(mission: &Mission, children: &[Child]) -> Vec<(String, bool)> {
    let of_load = |(index, load): (usize, &Load)| {
        let missed: Vec<String> = reports(index, children)
            .flat_map(|report| &report.held)
            .filter(|held| held.is_held() == Some(false))
            .map(ToString::to_string)
            .collect();
        let host = &mission.hosts[load.host].name;
        let words = format!("{host}, {}", missed.join("; "));
        (!missed.is_empty()).then_some((words, load.must_hold))
    };
    let all = mission.loads.iter().enumerate();
    all.filter_map(of_load).collect()
}

/// Whether the mission's own loads take processor time from a host.
pub(super) fn is_loaded(mission: &Mission, host: usize) -> bool {
    let machine = |host: usize| match &mission.hosts[host].location {
        Location::Far(reach) => Some(&reach.words),
        Location::Emulated | Location::Here { .. } => None,
    };
    let here = &mission.hosts[host].processors;
    let of_machine = |load: &&Load| machine(load.host) == machine(host);
    // The target of messages is loaded too.
    let sinks = mission
        .loads
        .iter()
        .any(|load| matches!(load.work, LoadWork::Net { to, .. } if machine(to) == machine(host)));
    sinks
        || mission.loads.iter().filter(of_machine).any(|load| {
            let there = &mission.hosts[load.host].processors;
            // An empty list means all processors.
            here.is_empty()
                || there.is_empty()
                || here.iter().any(|processor| there.contains(processor))
        })
}
