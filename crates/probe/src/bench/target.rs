//! Performance targets and our results against them.

mod table;

use deckwatch_meter::experiment::{Measurement, PeerRatio, Ratio, Standing};

use super::case::Case;
use super::kind::Kind;
use super::part::Part;
use crate::laboratory::{OMNIORB, OURS, Variant};

/// The statistic of a measurement that a target is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    P50,
    P99,
    /// Messages in a time.
    Rate,
}

/// The reference of a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// The baseline run of each pair.
    Baseline,
    /// The same ratio of that system, round by round.
    Peer(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One target.
struct Target {
    measure: &'static str,
    kind: Kind,
    case: Case,
    variant: Variant,
    statistic: Statistic,
    over: Over,
    bound: Bound,
}

/// The results of `parts` against the targets.
pub(super) fn standings(parts: &[Part]) -> Vec<Standing> {
    let of_part = |part: &Part| -> Vec<Standing> {
        match part.kind {
            Kind::Counters => of_counts(part),
            Kind::Memory => of_memory(part),
            kind => table::TARGETS
                .iter()
                .filter(|target| target.kind == kind && target.variant == part.variant)
                .filter_map(|target| target.standing(part))
                .collect(),
        }
    };
    parts.iter().flat_map(of_part).collect()
}

impl Target {
    /// Returns `None` if the part does not measure this target.
    fn standing(&self, part: &Part) -> Option<Standing> {
        let all: Vec<&Measurement> = part
            .cases()
            .filter_map(|(case, found)| (case == self.case).then_some(found))
            .collect();
        if !part.has_case(self.case) {
            return None;
        }
        let of = |name: &str| all.iter().copied().find(|found| found.system == name);
        let other = match self.over {
            Over::Baseline => None,
            Over::Peer(name) => Some(of(name)),
        };
        let ratio = |found: &Measurement| match other {
            None => found.ratio(self.statistic.value()),
            Some(other) => self.statistic.round_by_round(found, other?),
        };
        let ours = of(OURS).and_then(ratio);
        let others = all.iter().copied().filter(|found| {
            let is_other = other.flatten().is_some_and(|it| it.system == found.system);
            found.system != OURS && !is_other
        });
        let is_met = ours.map(|ours| self.bound.holds(ours.median));
        Some(Standing {
            measure: self.measure.to_owned(),
            condition: part.condition.clone(),
            ours,
            target: self.bound.words(),
            peers: others.filter_map(|it| peer(it, ratio(it))).collect(),
            is_met: is_met.filter(|_| part.is_judged),
        })
    }
}

fn peer(found: &Measurement, ratio: Option<Ratio>) -> Option<PeerRatio> {
    Some(PeerRatio {
        peer: found.system.clone(),
        ratio: ratio?,
    })
}

impl Statistic {
    /// The name of its ratio to the baseline.
    const fn value(self) -> &'static str {
        match self {
            Self::P50 => "p50_ratio",
            Self::P99 => "p99_ratio",
            Self::Rate => "rate_ratio",
        }
    }

    /// The ratios of one system over those of another in the same rounds.
    fn round_by_round(self, found: &Measurement, other: &Measurement) -> Option<Ratio> {
        let runs = |of: &Measurement| of.runs.get(self.value()).cloned();
        let pairs = runs(found)?.into_iter().zip(runs(other)?);
        Ratio::of(pairs.map(|(one, two)| one / two).collect())
    }
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtMost(bound) => format!("at most {bound:.2}"),
            Self::AtLeast(bound) => format!("at least {bound:.2}"),
        }
    }
}

/// Counts of a request, of all systems; of ours in both ways of serving.
fn of_counts(part: &Part) -> Vec<Standing> {
    const ROWS: [(&str, Variant, &str, f64); 5] = [
        (
            "heap allocations a request at the server",
            Variant::Plain,
            "allocations",
            0.0,
        ),
        (
            "mutex locks a request at the server",
            Variant::Plain,
            "mutex_locks",
            0.0,
        ),
        (
            "waits for locks and conditions a request at the server",
            Variant::Plain,
            "waits",
            0.0,
        ),
        (
            "system calls a request, its connection with its thread",
            Variant::Plain,
            "system_calls",
            2.0,
        ),
        (
            "system calls a request through a shared poller",
            Variant::SharedPoller,
            "system_calls",
            3.0,
        ),
    ];
    let row = |(measure, variant, key, bound): (&str, Variant, &str, f64)| {
        let of = |found: &Measurement| found.values.get(key).copied().map(Ratio::exactly);
        let all = || (part.counts()).filter_map(|(it, found)| (it == variant).then_some(found));
        let ours = all().find(|it| it.system == OURS).and_then(of);
        let others = all().filter(|it| it.system != OURS);
        Standing {
            measure: measure.to_owned(),
            condition: part.condition.clone(),
            ours,
            target: format!("at most {bound:.0}"),
            peers: others.filter_map(|it| peer(it, of(it))).collect(),
            is_met: ours.map(|ours| ours.median <= bound + COUNT_SLACK),
        }
    };
    ROWS.into_iter().map(row).collect()
}

/// What a server does periodically falls on some requests: less than one in a hundred.
const COUNT_SLACK: f64 = 0.01;

/// Resident memory of all systems, in MB.
fn of_memory(part: &Part) -> Vec<Standing> {
    let row = |connections: usize| {
        let all = || (part.memory()).filter_map(|(it, found)| (it == connections).then_some(found));
        let of = |it: &Measurement| {
            let octets = it.values.get("resident_octets");
            octets.map(|octets| Ratio::exactly(octets / 1e6))
        };
        let named = |name: &str| all().find(|it| it.system == name).and_then(of);
        let (ours, omniorb) = (named(OURS), named(OMNIORB));
        let others = all().filter(|it| it.system != OURS);
        let measure = match connections {
            0 => "memory of an idle server, MB resident".to_owned(),
            count => format!("memory of a server with {count} connections, MB resident"),
        };
        Standing {
            measure,
            condition: part.condition.clone(),
            ours,
            target: "below omniORB's".to_owned(),
            peers: others.filter_map(|it| peer(it, of(it))).collect(),
            is_met: ours.zip(omniorb).map(|(ours, it)| ours.median < it.median),
        }
    };
    part.connections().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::kind;
    use super::super::part::About;
    use super::*;
    use crate::laboratory::process::RunResult;
    use crate::laboratory::samples::{Pairs, Samples};

    fn part(kind: Kind) -> Part {
        Part {
            kind,
            condition: "here".to_owned(),
            is_judged: true,
            variant: Variant::Plain,
            cases: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn streams(peers: &[(&str, u64)]) -> Part {
        let mut part = part(Kind::Stream);
        part.cases.push(kind::SMALL_STREAM);
        for (name, count) in peers {
            let mut pairs = Pairs::default();
            let ran = |count| RunResult::Sum {
                count,
                elapsed_ns: 1_000,
            };
            assert!(pairs.add(&ran(*count), &ran(100)));
            let found = pairs.system.measurement(name, "stream-octets", &[]);
            let about = About::Case(kind::SMALL_STREAM);
            part.add(about, found.expect("a pair"));
        }
        part
    }

    fn measured(values: &[(&str, f64)], system: &str) -> Measurement {
        let mut samples = Samples::default();
        for (name, value) in values {
            samples.add_value(name, *value);
        }
        samples.measurement(system, "here", &[]).expect("values")
    }

    #[test]
    fn a_rate_is_held_against_that_of_the_other_peer_in_the_same_rounds() {
        let met = |ours, theirs| standings(&[streams(&[(OURS, ours), (OMNIORB, theirs)])]);
        let [standing] = &met(75, 50)[..] else {
            panic!("one target");
        };
        assert_eq!(standing.ours.expect("both are there").median, 1.5);
        assert_eq!(standing.is_met, Some(true));
        // It is not held against itself.
        assert!(standing.peers.is_empty());
        assert_eq!(met(74, 50)[0].is_met, Some(false));
    }

    #[test]
    fn without_the_other_peer_or_elsewhere_nothing_is_judged() {
        let alone = standings(&[streams(&[(OURS, 75)])]);
        assert_eq!((alone[0].ours, alone[0].is_met), (None, None));
        let mut elsewhere = streams(&[(OURS, 75), (OMNIORB, 50)]);
        elsewhere.is_judged = false;
        let shown = &standings(&[elsewhere])[0];
        assert!(shown.ours.is_some() && shown.is_met.is_none());
    }

    #[test]
    fn memory_is_met_below_the_other_s_and_counts_at_most_at_their_bound() {
        let mut memory = part(Kind::Memory);
        for (system, size) in [(OURS, 5), (OMNIORB, 6)] {
            let octets = f64::from(size << 20);
            memory.add(
                About::Memory(0),
                measured(&[("resident_octets", octets)], system),
            );
        }
        assert_eq!(standings(&[memory])[0].is_met, Some(true));
        let mut counters = part(Kind::Counters);
        let counts = [
            ("allocations", 0.0),
            ("mutex_locks", 2.0),
            ("system_calls", 2.001),
        ];
        counters.add(About::Counts(Variant::Plain), measured(&counts, OURS));
        let met: Vec<_> = standings(&[counters]).iter().map(|it| it.is_met).collect();
        assert_eq!(met, [Some(true), Some(false), None, Some(true), None]);
    }
}
