//! The hosts' entries in the mission's file, as the remedies of a run need them.

use deckwatch_carrier::scheduling::SchedulingClass;
use deckwatch_meter::host_entry::HostEntry;
use deckwatch_os::schedule::affinity;

use super::Run;
use super::child::{Child, Role};
use super::watch::supplier_of;
use crate::mission::{Location, Mission};
use crate::stream::Stream;

impl Run<'_> {
    /// Returns the entry of a part's host, with the scheduling of the part's threads.
    pub(super) fn entry_of(&self, child: &Child) -> HostEntry {
        let mut entry = self.mission.hosts[child.host].entry.clone();
        let (stream, destination) = match child.role {
            Role::Supplier { stream } | Role::Channel { stream } => (stream, None),
            Role::Consumer {
                stream,
                destination,
            } => (stream, Some(destination)),
            _ => return entry,
        };
        let flow = self.planner.flow(&self.streams[stream]);
        let scheduling = match destination {
            Some(destination) => &flow.consumer_scheduling[destination],
            None => &flow.supplier_scheduling,
        };
        entry.priority = match scheduling.class {
            SchedulingClass::Other => None,
            SchedulingClass::Fifo { priority } | SchedulingClass::RoundRobin { priority } => {
                Some(priority)
            }
        };
        let warnings = child.ready.iter().flat_map(|ready| &ready.warnings);
        entry.refused = warnings
            .into_iter()
            .any(|warning| warning.kind == "scheduling-refused");
        entry.scheduled_by = flow.has_own.scheduling.then(|| flow.name.clone());
        let allowed = affinity().unwrap_or_default();
        entry.free_processor = free_processor(self.mission, child.host, &allowed);
        entry
    }

    /// Returns the entry of the host of a stream's supplier.
    pub(super) fn supplier_entry(&self, stream: &Stream) -> HostEntry {
        let index = usize::from(stream.plan.flow);
        let mut children = self.crew.children.iter();
        let supplier = children.find(|child| supplier_of(child.role) == Some(index));
        let of_host = &self.mission.hosts[self.planner.flow(stream).from];
        supplier.map_or_else(|| of_host.entry.clone(), |child| self.entry_of(child))
    }
}

/// Returns a processor of this machine that no other host of it uses, for a host that shares its own; `None` where
/// there is none, and for a host that shares none.
fn free_processor(mission: &Mission, host: usize, allowed: &[u32]) -> Option<u32> {
    let is_here = |index: usize| !matches!(mission.hosts[index].location, Location::Far(_));
    if !is_here(host) || mission.flows.iter().any(|flow| flow.has_own.processors) {
        return None;
    }
    let others = (0..mission.hosts.len()).filter(|&other| other != host && is_here(other));
    let others: Vec<&[u32]> = others
        .map(|other| mission.hosts[other].processors.as_slice())
        .collect();
    if others.iter().any(|processors| processors.is_empty()) {
        // It runs on every processor.
        return None;
    }
    let is_taken = |processor: &u32| others.iter().any(|list| list.contains(processor));
    let own = &mission.hosts[host].processors;
    if !own.is_empty() && !own.iter().any(is_taken) {
        return None;
    }
    let mut free = allowed.iter().filter(|processor| !is_taken(processor));
    free.next().copied()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn free(hosts: &str, allowed: &[u32]) -> Option<u32> {
        let text = format!(
            "name = \"m\"\nhosts = [{hosts}]\n[[flows]]\nname = \"F\"\nfrom = \"A\"\nto = [\"B\"]\noctets = 64\nrate_hz = 20\n\
             deadline = \"50ms\"\nlate = \"1 in 20\"\ncount = 100\ncarrier = \"udp\"\n"
        );
        let mission = Mission::parse(Path::new("m.toml"), &text, None).expect("sound");
        free_processor(&mission, 0, allowed)
    }

    #[test]
    fn a_processor_of_another_host_is_not_proposed() {
        let pinned = |a: &str, b: &str| format!("{{ name = \"A\"{a} }}, {{ name = \"B\"{b} }}");
        let on = |list: &str| format!(", processors = [{list}]");
        assert_eq!(free(&pinned("", &on("1")), &[0, 1]), Some(0));
        assert_eq!(free(&pinned("", &on("0")), &[0, 1]), Some(1));
        assert_eq!(free(&pinned(&on("0"), &on("0")), &[0, 1]), Some(1));
        assert_eq!(free(&pinned(&on("0"), &on("0, 1")), &[0, 1]), None);
        assert_eq!(
            free(&pinned(&on("0"), &on("1")), &[0, 1, 2]),
            None,
            "its own"
        );
        assert_eq!(free(&pinned("", ""), &[0, 1]), None, "B uses them all");
        assert_eq!(free(&pinned(&on("0"), ""), &[0, 1]), None);
    }
}
