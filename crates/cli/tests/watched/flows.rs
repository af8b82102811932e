//! Missions of a few flows between three hosts.

use deckwatch_meter::result::{Counts, FlowResult};

/// Returns a flow from RTS over a carrier, of which one message in ten may be late.
pub(crate) fn flow(carrier: &str, to: &str, rest: &str) -> String {
    format!(
        "[[flows]]\nname = \"NAV-{carrier}\"\nfrom = \"RTS\"\nto = [\"{to}\"]\ncarrier = \"{carrier}\"\nlate = \"1 in 10\"\nwarm_up = \"100ms\"\n{rest}\n"
    )
}

/// Returns a mission on an emulated network, if that is permitted. The tests hold on loopback too.
pub(crate) fn mission(name: &str, flows: impl Iterator<Item = String>) -> String {
    let hosts = "hosts = [{ name = \"RTS\" }, { name = \"SONAR\" }, { name = \"PLOT\" }]";
    format!(
        "name = \"{name}\"\n{hosts}\n{}",
        flows.collect::<Vec<_>>().concat()
    )
}

/// Returns the counts at the first destination.
pub(crate) fn counts(flow: &FlowResult) -> Counts {
    flow.destinations[0].counts
}
