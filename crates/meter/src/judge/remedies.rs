//! Remedies that depend on the whole run: for each host that lost processor time, and for an UNPROVEN run too.

use super::invalid::{AGAINST_A_HYPERVISOR, AGAINST_A_QUOTA};
use crate::disturbance::{Disturbance, TakenTime};
use crate::result::{DestinationResult, FlowResult, VerdictKind};

/// Adds to the verdicts of a flow what to do against processor time that processes outside the run took: for each host
/// that lost time, not only for the worst. An UNPROVEN verdict with messages that came late has the remedies too, if
/// time was withheld that the run warns of. Call it when all verdicts of the flow stand.
pub fn add_remedies(flow: &mut FlowResult, disturbance: &Disturbance) {
    for one in &mut flow.destinations {
        let here = disturbance.at(one.index);
        let by_host = || here.most_taken_by_host().into_iter().map(TakenTime::remedy);
        let more: Vec<String> = match one.verdict.kind {
            VerdictKind::Unproven if came_late(one) => {
                by_host().chain(of_the_machine(&here)).collect()
            }
            VerdictKind::Invalid if named_one(one, &here) => by_host().collect(),
            _ => continue,
        };
        add(&mut one.verdict.remedies, more);
    }
    let kind = flow.verdict.kind;
    let alike = flow
        .destinations
        .iter()
        .filter(|it| it.verdict.kind == kind);
    for one in alike {
        add(&mut flow.verdict.remedies, one.verdict.remedies.clone());
    }
}

/// Whether messages came after the deadline: lost ones no process has delayed.
fn came_late(one: &DestinationResult) -> bool {
    one.counts.late > one.counts.lost
}

/// Whether the verdict is INVALID because of the thread that lost the most.
fn named_one(one: &DestinationResult, disturbance: &Disturbance) -> bool {
    let worst = disturbance.most_taken().map(TakenTime::remedy);
    worst.is_some_and(|remedy| one.verdict.remedies.contains(&remedy))
}

fn of_the_machine(disturbance: &Disturbance) -> Vec<String> {
    let all = [
        (disturbance.stolen_is_warned_of(), AGAINST_A_HYPERVISOR),
        (!disturbance.throttled.is_zero(), AGAINST_A_QUOTA),
    ];
    let some = all.into_iter().filter(|(holds, _)| *holds);
    some.map(|(_, remedy)| remedy.to_owned()).collect()
}

/// Adds those that are not there yet.
fn add(remedies: &mut Vec<String>, more: Vec<String>) {
    for remedy in more {
        if !remedies.contains(&remedy) {
            remedies.push(remedy);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::disturbance::tests::taken;
    use crate::host_entry::HostEntry;
    use crate::judge::tests::at_one;
    use crate::result::Verdict;

    /// Time taken from a thread on this host.
    fn at(host: &str, destination: Option<u16>, ms: u64) -> TakenTime {
        TakenTime {
            host: HostEntry::named(host),
            ..taken(destination, ms)
        }
    }

    /// A flow to two hosts with these verdicts; the second one's messages late and lost.
    fn flow(kinds: [VerdictKind; 2], remedies: &[String], late: u64, lost: u64) -> FlowResult {
        let verdict = |kind| Verdict {
            kind,
            reasons: vec!["So it is.".to_owned()],
            remedies: match kind {
                VerdictKind::Invalid => remedies.to_vec(),
                _ => Vec::new(),
            },
            messages_needed: None,
        };
        let mut flow = crate::samples::tests::flow_with("udp", verdict(kinds[1]));
        let mut one = at_one();
        one.verdict = verdict(kinds[0]);
        let mut two = one.clone();
        two.index = 1;
        two.verdict = verdict(kinds[1]);
        (two.counts.late, two.counts.lost) = (late, lost);
        flow.destinations = vec![one, two];
        flow
    }

    fn hosts(remedies: &[String]) -> Vec<&str> {
        let all = ["RTS", "SONAR", "RADAR", "TAP"];
        let named = |remedy: &String| all.into_iter().find(|host| remedy.contains(host));
        remedies.iter().filter_map(named).collect()
    }

    #[test]
    fn each_host_that_lost_time_has_a_remedy_in_an_invalid_run() {
        let disturbance = Disturbance {
            taken: vec![
                at("RTS", None, 100),
                at("SONAR", Some(1), 600),
                at("RTS", None, 200),
                at("RADAR", Some(0), 900),
                TakenTime {
                    delays_messages: false,
                    ..at("TAP", None, 2_000)
                },
            ],
            ..Disturbance::default()
        };
        let kinds = [VerdictKind::Pass, VerdictKind::Invalid];
        let worst = at("SONAR", Some(1), 600).remedy();
        let mut by_time = flow(kinds, &[worst], 12, 0);
        add_remedies(&mut by_time, &disturbance);
        let both = ["SONAR", "RTS"];
        assert_eq!(hosts(&by_time.destinations[1].verdict.remedies), both);
        assert_eq!(hosts(&by_time.verdict.remedies), both);
        assert!(by_time.destinations[0].verdict.remedies.is_empty());
        let mut by_clock = flow(kinds, &["Wait.".to_owned()], 12, 0);
        add_remedies(&mut by_clock, &disturbance);
        let of_both = &by_clock.destinations[1].verdict.remedies;
        assert_eq!(of_both[..], ["Wait."], "of another reason");
    }

    #[test]
    fn an_unproven_run_with_late_messages_names_what_took_the_time() {
        let unproven = [VerdictKind::Pass, VerdictKind::Unproven];
        let remedies = |late, lost, disturbance: &Disturbance| {
            let mut flow = flow(unproven, &[], late, lost);
            add_remedies(&mut flow, disturbance);
            assert_eq!(flow.verdict.remedies, flow.destinations[1].verdict.remedies);
            flow.verdict.remedies
        };
        let robbed = Disturbance {
            duration: Duration::from_secs(10),
            processors: 2,
            stolen: Duration::from_secs(1),
            throttled: Duration::from_millis(1),
            taken: vec![at("SONAR", Some(1), 30), at("RADAR", Some(0), 30)],
            ..Disturbance::default()
        };
        let found = remedies(6, 0, &robbed);
        assert!(
            found[0].starts_with("Stop burner (process 4711)"),
            "{found:?}"
        );
        assert_eq!(found[1..], [AGAINST_A_HYPERVISOR, AGAINST_A_QUOTA]);
        let little = Disturbance {
            stolen: Duration::from_millis(200),
            throttled: Duration::ZERO,
            taken: Vec::new(),
            ..robbed.clone()
        };
        assert!(remedies(6, 0, &little).is_empty(), "not warned of");
        assert!(remedies(0, 0, &robbed).is_empty(), "none is late");
        assert!(remedies(6, 6, &robbed).is_empty(), "all are lost");
    }
}
