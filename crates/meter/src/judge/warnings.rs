//! The warnings about a flow. Each fact is reported once, however many destinations it concerns.

use super::Terms;
use crate::caution::Caution;
use crate::limits::{SENDER_DEADLINE_DIVISOR, SENDER_LATE_SHARE_WARNED};
use crate::result::{Counts, DestinationResult, Warning};
use crate::words;

/// The facts to warn about at one destination.
pub(super) struct Noted {
    /// Its host.
    host: String,
    counts: Counts,
    /// Judged messages that the supplier sent later than a fraction of the deadline.
    sent_late: u64,
    /// Layers that the destination's stamps do not separate.
    merged: Vec<String>,
}

impl Noted {
    pub(super) fn new(result: &DestinationResult, sent_late: u64, merged: Vec<String>) -> Self {
        Self {
            host: result.host.clone(),
            counts: result.counts,
            sent_late,
            merged,
        }
    }
}

pub(super) fn warnings(destinations: &[Noted], terms: &Terms) -> Vec<Warning> {
    let sent_late = |noted: &Noted| {
        let most = noted.counts.due as f64 * SENDER_LATE_SHARE_WARNED;
        if noted.sent_late as f64 > most {
            noted.sent_late
        } else {
            0
        }
    };
    let counted = [
        worst(destinations, sent_late).map(|worst| Caution::ScheduleNotKept {
            of: worst.noted.counts.due,
            hosts: worst.hosts,
            number: worst.number,
            after: terms.deadline / SENDER_DEADLINE_DIVISOR,
            by_mission: terms.supplier_disturbed,
        }),
        worst(destinations, |noted| noted.counts.send_errors).map(|worst| Caution::SendErrors {
            hosts: worst.hosts,
            number: worst.number,
        }),
        worst(destinations, |noted| noted.counts.receive_overflows).map(|worst| {
            Caution::ReceiveOverflow {
                hosts: worst.hosts,
                number: worst.number,
            }
        }),
    ];
    counted
        .into_iter()
        .flatten()
        .chain(merged(destinations))
        .map(Warning::from)
        .collect()
}

/// The destination with the largest number, in words.
struct Worst<'a> {
    noted: &'a Noted,
    /// `SONAR`, or `17 destinations`.
    hosts: String,
    /// `19`, or `up to 19`.
    number: String,
}

/// Returns the worst of the destinations whose number is not 0; `None` if all are 0.
fn worst(destinations: &[Noted], number: impl Fn(&Noted) -> u64) -> Option<Worst<'_>> {
    let concerned = || destinations.iter().filter(|noted| number(noted) > 0);
    let noted = concerned().max_by_key(|noted| number(noted))?;
    let most = words::count(number(noted));
    let (hosts, number) = match concerned().count() {
        1 => (noted.host.clone(), most),
        count => (format!("{count} destinations"), format!("up to {most}")),
    };
    Some(Worst {
        noted,
        hosts,
        number,
    })
}

/// Returns the warnings about merged layers; destinations that lack the same stamps share one.
fn merged(destinations: &[Noted]) -> Vec<Caution> {
    let mut groups: Vec<(&[String], Vec<&str>)> = Vec::new();
    for noted in destinations.iter().filter(|noted| !noted.merged.is_empty()) {
        match groups
            .iter_mut()
            .find(|(merged, _)| *merged == noted.merged)
        {
            Some((_, hosts)) => hosts.push(&noted.host),
            None => groups.push((&noted.merged, vec![&noted.host])),
        }
    }
    groups
        .into_iter()
        .map(|(merged, hosts)| Caution::MergedLayers {
            hosts: match hosts[..] {
                [host] => host.to_owned(),
                _ => format!("{} destinations", hosts.len()),
            },
            layers: merged.join(", "),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::terms;

    fn noted(host: &str, sent_late: u64, send_errors: u64) -> Noted {
        Noted {
            host: host.to_owned(),
            counts: Counts {
                due: 8_000,
                send_errors,
                ..Counts::default()
            },
            sent_late,
            merged: Vec::new(),
        }
    }

    fn texts(destinations: &[Noted], terms: &Terms) -> Vec<String> {
        let texts = warnings(destinations, terms).into_iter();
        texts.map(|warning| warning.text).collect()
    }

    #[test]
    fn what_is_true_of_many_destinations_is_said_once_with_the_largest_number() {
        let destinations = [
            noted("SONAR", 1_800, 0),
            noted("RADAR", 1_900, 0),
            noted("HELM", 80, 7),
        ];
        assert_eq!(
            texts(&destinations, &terms()),
            [
                "To 2 destinations, up to 1,900 of 8,000 messages were sent more than 5 ms after they were due, by the supplier's own fault.",
                "To HELM, 7 sends returned an error."
            ],
            "a hundredth of them is not warned of"
        );
    }

    #[test]
    fn a_supplier_whose_host_the_mission_loads_is_not_at_fault() {
        let loaded = Terms {
            supplier_disturbed: true,
            ..terms()
        };
        assert_eq!(
            texts(&[noted("SONAR", 81, 0)], &loaded),
            [
                "To SONAR, 81 of 8,000 messages were sent more than 5 ms after they were due, held up on the supplier's host, which the mission loads."
            ]
        );
    }

    #[test]
    fn destinations_that_lack_the_same_stamps_are_named_together() {
        let lacking = |host: &str, layers: &str| Noted {
            merged: vec![layers.to_owned()],
            ..noted(host, 0, 0)
        };
        let destinations = [
            lacking("SONAR", "stack and network"),
            lacking("RADAR", "stack and network"),
            lacking("HELM", "network and wake-up"),
        ];
        assert_eq!(
            texts(&destinations, &terms()),
            [
                "At 2 destinations, stamps are missing; these layers are reported together: stack and network.",
                "At HELM, stamps are missing; these layers are reported together: network and wake-up."
            ]
        );
    }
}
