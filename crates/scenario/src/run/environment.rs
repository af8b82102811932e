//! Describes hosts, network and loads of a run for its result.

use std::collections::BTreeMap;

use deckwatch_load::LoadReport;
use deckwatch_meter::result::{Environment, Fidelity};
use deckwatch_testbed::{Environment as Stand, Fidelity as NetworkFidelity, Testbed};

use super::Settings;
use super::child::{Child, Role};
use super::plans::Planner;
use super::station::{Place, Station};
use crate::mission::{DurationText, Load, LoadWork, Location, Mission, REAL_NETWORK};

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

/// Describes each load, with what it reached. A loop that counts has the shortest measured duration of its burst, which
/// then ran undisturbed.
fn loads(mission: &Mission, children: &[Child]) -> Vec<String> {
    let in_words = |(index, load): (usize, &Load)| {
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
            LoadWork::Share { .. } | LoadWork::Net { .. } => {
                let whole: Vec<String> = reports.iter().map(|report| report.to_string()).collect();
                whole.join("; ").replace('\n', "; ")
            }
        };
        format!("{}{processors}: {work}", host.name)
    };
    mission.loads.iter().enumerate().map(in_words).collect()
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
