//! Performance targets and our results against them.

mod table;

use deckwatch_meter::experiment::{
    Bound, EndNote, Measurement, PeerRatio, Ratio, Standing, TargetVerdict,
};

use super::case::{Beside, Case, Operation};
use super::counts::CLIENTS;
use super::guard::Guarded;
use super::kind::Kind;
use super::mission;
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

/// One target.
struct Target {
    measure: &'static str,
    kind: Kind,
    case: Case,
    variant: Variant,
    statistic: Statistic,
    over: Over,
    /// Without a bound, the result is shown and not judged.
    bound: Option<Bound>,
}

/// The results of `parts` against the targets.
pub(super) fn standings(parts: &[Part]) -> Vec<Standing> {
    let of_part = |part: &Part| -> Vec<Standing> {
        match part.kind {
            Kind::Counters => of_counts(part),
            Kind::Memory => of_memory(part),
            kind => (table::all()
                .filter(|target| target.kind == kind && target.variant == part.variant)
                .filter_map(|target| target.standing(part)))
            .chain(of_mission(part))
            .chain(of_event_counts(part))
            .chain(of_idle_consumers(part))
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
            Some(other) => round_by_round(self.statistic.value(), found, other?),
        };
        let ours = of(OURS).and_then(ratio);
        let others = all.iter().copied().filter(|found| {
            let is_other = other.flatten().is_some_and(|it| it.system == found.system);
            found.system != OURS && !is_other
        });
        let judged = match self.bound {
            Some(bound) => self.judge(part, bound, (of(OURS), other), ours),
            None => Judged::default(),
        };
        Some(Standing {
            measure: self.measure.to_owned(),
            condition: part.condition.clone(),
            ours,
            target: self
                .bound
                .map_or_else(|| "shown beside it".to_owned(), Bound::words),
            peers: others.filter_map(|it| peer(it, ratio(it))).collect(),
            verdict: judged.verdict,
            reason: judged.reason,
            rounds_more: judged.rounds_more,
        })
    }

    /// The verdict on the ratio of `found`, which is over that of `other` if there is one.
    fn judge(
        &self,
        part: &Part,
        bound: Bound,
        (found, other): (Option<&Measurement>, Option<Option<&Measurement>>),
        ratio: Option<Ratio>,
    ) -> Judged {
        if !part.is_judged {
            return Judged::not("targets are not judged in this condition");
        }
        let Some(ratio) = ratio else {
            return Judged::not("it was not measured");
        };
        let all = [found, other.flatten()].into_iter().flatten();
        let mut ends = all.flat_map(|it| &it.ends);
        if let Some(difference) = ends.find_map(EndNote::difference) {
            return Judged::not(&difference);
        }
        let guarded = match self.case.beside {
            // The target is over another system, and what slows the fan-out is in both ratios.
            Beside::RawTcp if self.kind == Kind::Events && other.is_none() => Guarded::Absent,
            Beside::RawTcp if self.kind == Kind::Events => Guarded::Holds,
            Beside::RawTcp => Guarded::of(part.baseline_check()),
            _ => Guarded::Holds,
        };
        let judged = Judged::of(ratio, bound);
        match guarded {
            Guarded::Holds => judged,
            Guarded::Fails(reason) => Judged::not(&reason),
            // A slowed baseline flatters: a target that is missed beside it is missed all the same.
            Guarded::Absent if judged.verdict == Some(TargetVerdict::Met) => Judged {
                verdict: Some(TargetVerdict::Open),
                reason: Some(unguarded(self.kind).to_owned()),
                rounds_more: None,
            },
            Guarded::Absent => judged,
        }
    }
}

/// The reason for a verdict that would be `met` with a guarded baseline.
const fn unguarded(kind: Kind) -> &'static str {
    match kind {
        Kind::Events => {
            "the baseline is unguarded: no second instrument shows that the raw fan-out was not slowed"
        }
        _ => {
            "the baseline is unguarded: nothing shows that raw TCP was not slowed (is sockperf installed?)"
        }
    }
}

/// A verdict with its reason.
#[derive(Debug, Default, PartialEq)]
struct Judged {
    verdict: Option<TargetVerdict>,
    reason: Option<String>,
    rounds_more: Option<usize>,
}

impl Judged {
    fn not(reason: &str) -> Self {
        Self {
            reason: Some(reason.to_owned()),
            ..Self::default()
        }
    }

    fn of(ratio: Ratio, bound: Bound) -> Self {
        let (verdict, rounds_more) = ratio.against(bound);
        let reason = match verdict {
            TargetVerdict::Open if ratio.lower.is_some() => "the interval has the bound inside",
            TargetVerdict::Open if ratio.is_widened => {
                "the ratios of successive rounds resemble each other"
            }
            TargetVerdict::Open => "too few rounds for an interval",
            _ => "",
        };
        Self {
            verdict: Some(verdict),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            rounds_more,
        }
    }

    /// The verdict on a count, which has no interval.
    fn of_count(count: Option<Ratio>, most: f64) -> Self {
        let Some(count) = count else {
            return Self::not("it was not counted: see what was skipped");
        };
        let verdict = if count.median <= most {
            TargetVerdict::Met
        } else {
            TargetVerdict::Missed
        };
        Self {
            verdict: Some(verdict),
            ..Self::default()
        }
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
}

/// Counts of a request, of all systems; of ours in both ways of serving.
fn of_counts(part: &Part) -> Vec<Standing> {
    const ROWS: [(&str, Variant, &str, f64); 7] = [
        (
            "heap allocations a request at the server",
            Variant::Plain,
            "allocations",
            0.0,
        ),
        (
            "mutex locks a request at the server, the C library's and ours",
            Variant::Plain,
            "mutex_locks",
            0.0,
        ),
        (
            "locks of Rust's library a request at the server",
            Variant::Plain,
            "rust_locks",
            0.0,
        ),
        (
            "futex calls a request at the server",
            Variant::Plain,
            "futex_calls",
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
        let judged = Judged::of_count(ours, bound + COUNT_SLACK);
        Standing {
            measure: measure.to_owned(),
            condition: part.condition.clone(),
            ours,
            target: format!("at most {bound:.0}"),
            peers: others.filter_map(|it| peer(it, of(it))).collect(),
            verdict: judged.verdict,
            reason: judged.reason,
            rounds_more: None,
        }
    };
    ROWS.into_iter().map(row).collect()
}

/// Events in a mission, over twice the time of a call in the same run.
fn of_mission(part: &Part) -> Vec<Standing> {
    const BOUNDS: [f64; mission::RATIOS.len()] = [0.9, 0.8];
    let Some(found) = part.mission() else {
        return Vec::new();
    };
    let row = |((carrier, value), bound): ((&str, &str), f64)| {
        let (ours, bound) = (found.ratio(value), Bound::AtMost(bound));
        let judged = match ours {
            _ if !part.is_judged => Judged::not("targets are not judged in this condition"),
            None => Judged::not("it was not measured"),
            Some(ours) => Judged::of(ours, bound),
        };
        Standing {
            measure: format!("`{carrier}` in a mission, p50 over twice that of `corba`"),
            condition: part.condition.clone(),
            ours,
            target: bound.words(),
            peers: Vec::new(),
            verdict: judged.verdict,
            reason: judged.reason,
            rounds_more: judged.rounds_more,
        }
    };
    mission::RATIOS.into_iter().zip(BOUNDS).map(row).collect()
}

/// Counts of an event at our channels and at its supplier and consumers. Only the allocations have a bound.
fn of_event_counts(part: &Part) -> impl Iterator<Item = Standing> + use<> {
    const ROWS: [(&str, &str, Option<f64>); 5] = [
        ("heap allocations at the channel", "allocations", Some(0.0)),
        ("heap allocations at the supplier", CLIENTS[0], Some(0.0)),
        ("heap allocations at all consumers", CLIENTS[1], Some(0.0)),
        ("mutex locks at the channel", "mutex_locks", None),
        ("system calls at the channel", "system_calls", None),
    ];
    let row = |(case, found): (Case, &Measurement)| {
        ROWS.map(|(what, key, bound)| {
            let ours = found.values.get(key).copied().map(Ratio::exactly);
            let judged = match bound {
                Some(bound) => Judged::of_count(ours, bound + COUNT_SLACK),
                None => Judged::default(),
            };
            Standing {
                measure: format!(
                    "{what}, {}{}",
                    case.operation.an_event(),
                    case.consumers.words()
                ),
                condition: part.condition.clone(),
                ours,
                target: bound.map_or_else(
                    || "shown beside it".to_owned(),
                    |bound| format!("at most {bound:.0}"),
                ),
                peers: Vec::new(),
                verdict: judged.verdict,
                reason: judged.reason,
                rounds_more: None,
            }
        })
    };
    let all: Vec<Standing> = part.event_counts().flat_map(row).collect();
    all.into_iter()
}

/// Resident octets of our channels for one idle consumer.
fn of_idle_consumers(part: &Part) -> impl Iterator<Item = Standing> {
    part.idle_consumers()
        .map(|(operation, are_apart, found)| of_idle_consumer(part, (operation, are_apart), found))
}

/// Consumers at one endpoint share a connection. Those with an endpoint each have a connection each, which is shown and
/// not judged.
fn of_idle_consumer(
    part: &Part,
    (operation, are_apart): (Operation, bool),
    found: &Measurement,
) -> Standing {
    let bound = Bound::AtMost(IDLE_CONSUMER_OCTETS_MAX);
    let ours = found.ratio("octets_per_consumer");
    let judged = match ours {
        _ if are_apart => Judged::default(),
        None => Judged::not("it was not measured"),
        Some(ours) => Judged::of(ours, bound),
    };
    let place = if are_apart {
        "an endpoint each"
    } else {
        "all at one endpoint"
    };
    let kind = match operation {
        Operation::RtPush => "real-time channel",
        _ => "channel",
    };
    Standing {
        measure: format!("memory of an idle consumer at the {kind}, {place}, octets"),
        condition: part.condition.clone(),
        ours,
        target: if are_apart {
            "shown beside it".to_owned()
        } else {
            format!("at most {IDLE_CONSUMER_OCTETS_MAX:.0}")
        },
        peers: Vec::new(),
        verdict: judged.verdict,
        reason: judged.reason,
        rounds_more: judged.rounds_more,
    }
}

/// 4 KiB.
const IDLE_CONSUMER_OCTETS_MAX: f64 = 4_096.0;

/// What a server does periodically falls on some requests: less than one in a hundred.
const COUNT_SLACK: f64 = 0.01;

/// Resident memory of all systems, in MB. It is judged by the ratio to omniORB's in the same rounds.
fn of_memory(part: &Part) -> Vec<Standing> {
    let row = |connections: usize| {
        let all = || (part.memory()).filter_map(|(it, found)| (it == connections).then_some(found));
        let of = |it: &Measurement| {
            let runs = it.runs.get("resident_octets")?.iter();
            Ratio::of(runs.map(|octets| octets / 1e6).collect())
        };
        let named = |name: &str| all().find(|it| it.system == name);
        let ours = named(OURS);
        let over = ours.zip(named(OMNIORB));
        let over = over.and_then(|(ours, it)| round_by_round("resident_octets", ours, it));
        let judged = over.map_or_else(
            || Judged::not("omniORB's was not measured"),
            |over| Judged::of(over, Bound::AtMost(1.0)),
        );
        let others = all().filter(|it| it.system != OURS);
        let measure = match connections {
            0 => "memory of an idle server, MB resident".to_owned(),
            count => format!("memory of a server with {count} connections, MB resident"),
        };
        Standing {
            measure,
            condition: part.condition.clone(),
            ours: ours.and_then(of),
            target: "at most omniORB's".to_owned(),
            peers: others.filter_map(|it| peer(it, of(it))).collect(),
            verdict: judged.verdict,
            reason: judged.reason,
            rounds_more: judged.rounds_more,
        }
    };
    part.connections().into_iter().map(row).collect()
}

/// The ratios of a value of one system over that of another in the same rounds.
fn round_by_round(value: &str, found: &Measurement, other: &Measurement) -> Option<Ratio> {
    let runs = |of: &Measurement| of.runs.get(value).cloned();
    let pairs = runs(found)?.into_iter().zip(runs(other)?);
    Ratio::of(pairs.map(|(one, two)| one / two).collect())
}

#[cfg(test)]
mod tests;
