//! Describes hosts, network and loads of a run for its result.

use std::collections::BTreeMap;

use deckwatch_meter::result::Environment;
use deckwatch_testbed::{Environment as Stand, Testbed};

use super::Settings;
use super::child::Child;
use super::loads;
use super::plans::Planner;
use super::station::{Place, Station};
use crate::mission::{Mission, REAL_NETWORK};

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
        fidelity: emulated.and_then(|testbed| deckwatch_load::fidelity(testbed.network())),
        fallback_reason,
        hosts: planner
            .stations
            .iter()
            .map(|station| (station.name.clone(), in_words(station)))
            .collect::<BTreeMap<_, _>>(),
        loads: loads::in_words(mission, children),
        load_results: loads::results(mission, children),
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
