//! Describes hosts, network and loads of a run for its result.

use std::collections::BTreeMap;

use deckwatch_meter::result::{Environment, Fidelity};
use deckwatch_testbed::{Environment as Stand, Fidelity as NetworkFidelity, Testbed};

use super::Settings;
use super::child::{Child, Role};
use super::plans::Planner;
use super::station::{Place, Station};
use crate::mission::{DurationText, Location, Mission, REAL_NETWORK};

/// Describes the environment of the run.
pub(super) fn environment(
    mission: &Mission,
    settings: &Settings,
    planner: &Planner<'_>,
    children: &[Child],
) -> Environment {
    let stand = planner.testbed.map(Testbed::environment);
    let (kind, fallback_reason) = match stand {
        None => ("real", None),
        Some(Stand::Namespaces) => ("namespaces", None),
        Some(Stand::Loopback { .. }) if mission.is_on_loopback() => ("loopback", None),
        Some(Stand::Loopback { .. }) if !settings.emulation => (
            "loopback",
            Some("Emulation was switched off on the command line.".to_owned()),
        ),
        Some(Stand::Loopback { reason }) => ("loopback", Some(reason)),
    };
    let emulated = planner.testbed.filter(|_| kind == "namespaces");
    Environment {
        kind: kind.to_owned(),
        network: match (kind, emulated) {
            (_, Some(testbed)) => testbed.network().to_string(),
            ("real", None) => REAL_NETWORK.to_owned(),
            (_, None) => "loopback: no emulated network".to_owned(),
        },
        fidelity: emulated
            .and_then(|testbed| NetworkFidelity::of(testbed.network()).map(in_document)),
        fallback_reason,
        hosts: planner
            .stations
            .iter()
            .map(|station| (station.name.clone(), in_words(station)))
            .collect::<BTreeMap<_, _>>(),
        loads: loads(mission, children),
    }
}

/// Returns a host's address, and how it is reached if it is not emulated.
fn in_words(station: &Station) -> String {
    let address = station.address;
    match &station.place {
        Place::Emulated(_) => address.to_string(),
        Place::Here => format!("{address}, this machine"),
        Place::Far(reach) => format!("{address}, reached by {}", reach.in_words()),
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
        let bursts = of_host.filter_map(|child| child.load.as_ref()?.bursts);
        let burst = bursts.map(|bursts| bursts.ns_min).min();
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
    let machine = |host: usize| match &mission.hosts[host].location {
        Location::Far(reach) => Some(&reach.words),
        Location::Emulated | Location::Here { .. } => None,
    };
    let here = &mission.hosts[host].processors;
    let of_machine = |load: &&crate::mission::Load| machine(load.host) == machine(host);
    mission.loads.iter().filter(of_machine).any(|load| {
        let there = &mission.hosts[load.host].processors;
        // An empty list means all processors.
        here.is_empty()
            || there.is_empty()
            || here.iter().any(|processor| there.contains(processor))
    })
}
