//! Describes hosts, network and loads of a run for its result.

use std::collections::BTreeMap;

use deckwatch_meter::result::{Environment, Fidelity};
use deckwatch_testbed::{Environment as Stand, Fidelity as NetworkFidelity, Host, Testbed};

use super::Settings;
use super::child::{Child, Role};
use crate::mission::{DurationText, Mission};

/// Describes the environment of the run.
pub(super) fn environment(
    mission: &Mission,
    settings: &Settings,
    testbed: &Testbed,
    children: &[Child],
) -> Environment {
    let (kind, fallback_reason) = match testbed.environment() {
        Stand::Namespaces => ("namespaces", None),
        Stand::Loopback { .. } if mission.is_on_loopback() => ("loopback", None),
        Stand::Loopback { .. } if !settings.emulation => (
            "loopback",
            Some("Emulation was switched off on the command line.".to_owned()),
        ),
        Stand::Loopback { reason } => ("loopback", Some(reason)),
    };
    let address = |host: &Host| (host.name().to_owned(), host.address().to_string());
    Environment {
        kind: kind.to_owned(),
        network: if kind == "loopback" {
            "loopback: no emulated network".to_owned()
        } else {
            testbed.network().to_string()
        },
        fidelity: if kind == "loopback" {
            None
        } else {
            NetworkFidelity::of(testbed.network()).map(in_document)
        },
        fallback_reason,
        hosts: testbed
            .hosts()
            .iter()
            .map(address)
            .collect::<BTreeMap<_, _>>(),
        loads: loads(mission, children),
    }
}

fn in_document(fidelity: NetworkFidelity) -> Fidelity {
    Fidelity {
        emulated: fidelity.emulated,
        not_emulated: fidelity.not_emulated,
    }
}

/// Describes each load, with the shortest measured duration of its counting loop: the loop then ran undisturbed.
fn loads(mission: &Mission, children: &[Child]) -> Vec<String> {
    let in_words = |load: &crate::mission::Load| {
        let host = &mission.hosts[load.host];
        let of_host = children
            .iter()
            .filter(|child| child.role == Role::Load { host: load.host });
        let reports = of_host.filter_map(|child| child.load);
        let burst = reports.map(|report| report.burst_ns_min).min();
        let took = burst.map_or(String::new(), |ns| format!(" (at least {} us)", ns / 1000));
        let processors = if host.processors.is_empty() {
            String::new()
        } else {
            format!(", processors {:?}", host.processors)
        };
        format!(
            "{}{processors}: {} processes, each counting to {}{took} and sleeping {}",
            host.name,
            load.processes,
            load.count,
            DurationText(load.sleep)
        )
    };
    mission.loads.iter().map(in_words).collect()
}

/// Whether the mission's own loads take processor time from a host.
pub(super) fn is_loaded(mission: &Mission, host: usize) -> bool {
    let here = &mission.hosts[host].processors;
    mission.loads.iter().any(|load| {
        let there = &mission.hosts[load.host].processors;
        // An empty list means all processors.
        here.is_empty()
            || there.is_empty()
            || here.iter().any(|processor| there.contains(processor))
    })
}
