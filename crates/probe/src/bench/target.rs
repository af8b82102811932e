//! What is aimed at, and how we stand: the table.

use super::case::{Case, Operation};
use super::document::{CountResult, MemoryResult, Part, PeerRatio, PeerResult, Ratio, Standing};
use super::kind::{self, Kind};
use super::variant::Variant;

/// What of a case's result is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    P50,
    P99,
    /// What is carried in a time.
    Rate,
}

/// What it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// What its runs were paired with.
    Baseline,
    /// The same of that peer, round by round.
    Peer(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One thing that is aimed at.
struct Target {
    measure: &'static str,
    kind: Kind,
    case: Case,
    variant: Variant,
    statistic: Statistic,
    over: Over,
    bound: Bound,
}

const fn target(
    measure: &'static str,
    kind: Kind,
    case: Case,
    statistic: Statistic,
    bound: Bound,
) -> Target {
    Target {
        measure,
        kind,
        case,
        variant: Variant::Plain,
        statistic,
        over: Over::Baseline,
        bound,
    }
}

const OMNIORB: &str = "omniorb";

const TARGETS: [Target; 17] = {
    use Bound::{AtLeast, AtMost};
    use Kind::{Call, Objects, Priority, Rate, Stream};
    use Statistic::{P50, P99};
    const RATED: Case = kind::SMALL.every(kind::RATE_PERIOD_NS);
    const URGENT: Case = kind::SMALL.every(kind::PRIORITY_PERIOD_NS);
    const MANY: Case = kind::SMALL.beside(super::case::Beside::OneObject);
    [
        target(
            "two-way 64 B, p50 over raw TCP",
            Call,
            kind::SMALL,
            P50,
            AtMost(1.06),
        ),
        target(
            "two-way 64 B, p99 over raw TCP",
            Call,
            kind::SMALL,
            P99,
            AtMost(1.15),
        ),
        Target {
            over: Over::Peer(OMNIORB),
            ..target(
                "two-way 64 B, p50 over omniORB's",
                Call,
                kind::SMALL,
                P50,
                AtMost(1.0),
            )
        },
        Target {
            variant: Variant::SharedPoller,
            ..target(
                "two-way 64 B through a shared poller, p50 over raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(1.12),
            )
        },
        Target {
            variant: Variant::SharedMemory,
            ..target(
                "two-way 64 B through shared memory, p50 over raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(0.6),
            )
        },
        Target {
            variant: Variant::Spinning,
            ..target(
                "two-way 64 B on a spinning lane, p50 over spinning raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(1.10),
            )
        },
        Target {
            variant: Variant::SpinningSharedMemory,
            ..target(
                "two-way 64 B through shared memory, spinning, p50 over spinning raw TCP",
                Call,
                kind::SMALL,
                P50,
                AtMost(0.15),
            )
        },
        target(
            "two-way 8 KiB octets, p50 over raw TCP",
            Call,
            Case::new(Operation::Octets, 8_192),
            P50,
            AtMost(1.10),
        ),
        target(
            "two-way 64 KiB ComplexStruct both ways, p50 over raw TCP",
            Call,
            Case::new(Operation::Structs, 65_536),
            P50,
            AtMost(2.5),
        ),
        target(
            "one call every 10 ms, p50 over raw TCP",
            Rate,
            RATED,
            P50,
            AtMost(1.15),
        ),
        target(
            "one-way 64 KiB octets, rate over raw TCP",
            Stream,
            kind::LARGE_STREAM,
            Statistic::Rate,
            AtLeast(0.95),
        ),
        target(
            "sink of ComplexStruct, rate over octets",
            Stream,
            kind::STRUCTS,
            Statistic::Rate,
            AtLeast(0.60),
        ),
        target(
            "sink of a struct laid out as its CDR, rate over octets",
            Stream,
            kind::PLAIN,
            Statistic::Rate,
            AtLeast(0.95),
        ),
        Target {
            over: Over::Peer(OMNIORB),
            ..target(
                "one-way 64 B, messages a second over omniORB's",
                Stream,
                kind::SMALL_STREAM,
                Statistic::Rate,
                AtLeast(1.5),
            )
        },
        target(
            "many objects active, p50 over one",
            Objects,
            MANY,
            P50,
            AtMost(1.03),
        ),
        target(
            "high priority beside many low, p50 over raw TCP",
            Priority,
            URGENT,
            P50,
            AtMost(1.2),
        ),
        target(
            "high priority beside many low, p99 over raw TCP",
            Priority,
            URGENT,
            P99,
            AtMost(1.2),
        ),
    ]
};

/// The table of what these parts found.
pub(super) fn standings(parts: &[Part]) -> Vec<Standing> {
    let of_part = |part: &Part| -> Vec<Standing> {
        match part.kind {
            Kind::Counters => counted(part),
            Kind::Memory => remembered(part),
            kind => TARGETS
                .iter()
                .filter(|target| target.kind == kind && target.variant == part.variant)
                .filter_map(|target| target.standing(part))
                .collect(),
        }
    };
    parts.iter().flat_map(of_part).collect()
}

impl Target {
    /// None where the part has nothing of it.
    fn standing(&self, part: &Part) -> Option<Standing> {
        let case = part.cases.iter().find(|found| found.case == self.case)?;
        let of = |name: &str| case.peers.iter().find(|peer| peer.peer == name);
        let other = match self.over {
            Over::Baseline => None,
            Over::Peer(name) => Some(of(name)),
        };
        let ratio = |peer: &PeerResult| match other {
            None => self.statistic.of(peer),
            Some(other) => self.statistic.round_by_round(peer, other?),
        };
        let ours = of(OURS).and_then(ratio);
        let others = case.peers.iter().filter(|peer| {
            peer.peer != OURS && other.flatten().is_none_or(|other| other.peer != peer.peer)
        });
        let peer_ratio = |peer: &PeerResult| {
            Some(PeerRatio {
                peer: peer.peer.clone(),
                ratio: ratio(peer)?,
            })
        };
        let is_met = ours.map(|ours| self.bound.holds(ours.median));
        Some(Standing {
            measure: self.measure.to_owned(),
            condition: part.condition.clone(),
            ours,
            target: self.bound.words(),
            peers: others.filter_map(peer_ratio).collect(),
            is_met: is_met.filter(|_| part.is_judged),
        })
    }
}

const OURS: &str = "deckwatch";

impl Statistic {
    fn of(self, peer: &PeerResult) -> Option<Ratio> {
        match self {
            Self::P50 => peer.p50_ratio,
            Self::P99 => peer.p99_ratio,
            Self::Rate => Some(peer.rate_ratio),
        }
    }

    /// The peer's ratios over those of another in the same rounds.
    fn round_by_round(self, peer: &PeerResult, other: &PeerResult) -> Option<Ratio> {
        let of = |pair: &super::document::Pair| match self {
            Self::P50 => pair.p50(),
            Self::P99 => pair.p99(),
            Self::Rate => pair.rate(),
        };
        let pairs = peer.pairs.iter().zip(&other.pairs);
        Ratio::of(
            pairs
                .filter_map(|(one, two)| Some(of(one)? / of(two)?))
                .collect(),
        )
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

/// Counts of a request, of all peers; ours in both ways of serving.
fn counted(part: &Part) -> Vec<Standing> {
    type Of = fn(&CountResult) -> Option<f64>;
    let rows: [(&str, Variant, Of, f64); 5] = [
        (
            "heap allocations a request at the server",
            Variant::Plain,
            |counts| counts.allocations,
            0.0,
        ),
        (
            "mutex locks a request at the server",
            Variant::Plain,
            |counts| counts.mutex_locks,
            0.0,
        ),
        (
            "waits for locks and conditions a request at the server",
            Variant::Plain,
            |counts| counts.waits,
            0.0,
        ),
        (
            "system calls a request, its connection with its thread",
            Variant::Plain,
            |counts| counts.system_calls,
            2.0,
        ),
        (
            "system calls a request through a shared poller",
            Variant::SharedPoller,
            |counts| counts.system_calls,
            3.0,
        ),
    ];
    let row = |(measure, variant, of, bound): (&str, Variant, Of, f64)| {
        let found = |name: &str| {
            let mut all = part.counts.iter();
            let is_it = |it: &&CountResult| it.peer == name && it.variant == variant;
            all.find(is_it).and_then(of).map(Ratio::exactly)
        };
        let others = part
            .counts
            .iter()
            .filter(|it| it.peer != OURS && variant == Variant::Plain);
        let peers = others.filter_map(|it| {
            Some(PeerRatio {
                peer: it.peer.clone(),
                ratio: Ratio::exactly(of(it)?),
            })
        });
        let ours = found(OURS);
        Standing {
            measure: measure.to_owned(),
            condition: part.condition.clone(),
            ours,
            target: format!("at most {bound:.0}"),
            peers: peers.collect(),
            is_met: ours.map(|ours| ours.median <= bound + COUNT_SLACK),
        }
    };
    rows.into_iter().map(row).collect()
}

/// What a server does by the clock falls on some requests: less than one in a hundred.
const COUNT_SLACK: f64 = 0.01;

/// Resident memory, of all peers, in MB.
fn remembered(part: &Part) -> Vec<Standing> {
    let mut counts: Vec<usize> = part.memory.iter().map(|it| it.connections).collect();
    counts.sort_unstable();
    counts.dedup();
    let row = |connections: usize| {
        let all = || {
            part.memory
                .iter()
                .filter(|it| it.connections == connections)
        };
        let of = |it: &MemoryResult| Ratio::exactly(it.resident_octets as f64 / 1e6);
        let named = |name: &str| all().find(|it| it.peer == name).map(of);
        let (ours, omniorb) = (named(OURS), named(OMNIORB));
        let others = all().filter(|it| it.peer != OURS);
        let what = match connections {
            0 => "idle server".to_owned(),
            count => format!("server with {count} connections"),
        };
        Standing {
            measure: format!("memory of an {what}, MB resident").replace("an server", "a server"),
            condition: part.condition.clone(),
            ours,
            target: "below omniORB's".to_owned(),
            peers: others
                .map(|it| PeerRatio {
                    peer: it.peer.clone(),
                    ratio: of(it),
                })
                .collect(),
            is_met: ours.zip(omniorb).map(|(ours, it)| ours.median < it.median),
        }
    };
    counts.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::document::{CaseResult, Kept};
    use super::super::process::Ran;
    use super::*;

    fn part(kind: Kind) -> Part {
        Part {
            kind,
            condition: "here".to_owned(),
            is_judged: true,
            variant: Variant::Plain,
            cases: Vec::new(),
            counts: Vec::new(),
            memory: Vec::new(),
            baseline_check: None,
        }
    }

    fn streams(peers: &[(&str, u64)]) -> Part {
        let of = |(name, count): &(&str, u64)| {
            let mut kept = Kept::default();
            let ran = |count| Ran::Sum {
                count,
                elapsed_ns: 1_000,
            };
            assert!(kept.keep(&ran(*count), &ran(100)));
            PeerResult::of(name, &kept).expect("a pair")
        };
        let mut part = part(Kind::Stream);
        part.cases.push(CaseResult {
            case: kind::SMALL_STREAM,
            count: 64,
            request_octets: 156,
            reply_octets: 0,
            peers: peers.iter().map(of).collect(),
        });
        part
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
        memory.memory = [(OURS, 5), (OMNIORB, 6)]
            .map(|(peer, size)| MemoryResult {
                peer: peer.to_owned(),
                connections: 0,
                resident_octets: size << 20,
                anonymous_octets: 0,
            })
            .to_vec();
        assert_eq!(standings(&[memory])[0].is_met, Some(true));
        let mut counters = part(Kind::Counters);
        counters.counts.push(CountResult {
            peer: OURS.to_owned(),
            variant: Variant::Plain,
            requests: 1,
            allocations: Some(0.0),
            mutex_locks: Some(2.0),
            waits: None,
            system_calls: Some(2.001),
        });
        let met: Vec<_> = standings(&[counters]).iter().map(|it| it.is_met).collect();
        assert_eq!(met, [Some(true), Some(false), None, Some(true), None]);
    }
}
