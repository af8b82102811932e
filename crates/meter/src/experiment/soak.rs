//! The verdict of a soak: series over time, each judged by its trend, and checks that hold or do not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::VerdictKind;
use crate::statistics::{Trend, judge_trends};
use crate::words;

/// What a soak has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Soak {
    /// FAIL if a series or a check FAILs, else UNPROVEN if one is, else PASS.
    pub verdict: VerdictKind,
    /// Why it is not PASS, in sentences.
    pub reasons: Vec<String>,
    /// The seed of faults and clients.
    pub seed: u64,
    /// How long the servers were under load, in seconds.
    pub time_s: f64,
    /// The time after each start of a server that is not judged, in seconds.
    pub warm_up_s: f64,
    /// The series of every server.
    pub series: Vec<SoakSeries>,
    /// What must hold at any time.
    pub checks: Vec<SoakCheck>,
    /// The faults, in the order of their times.
    pub faults: Vec<SoakFault>,
}

/// One quantity of one server over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoakSeries {
    /// The server; [`MACHINE`] for the control.
    pub server: String,
    /// The quantity.
    pub quantity: Quantity,
    /// PASS, FAIL or UNPROVEN.
    pub verdict: VerdictKind,
    /// Why it is UNPROVEN, where that is not the width of the interval.
    pub reason: Option<String>,
    /// The judged trend; absent where there are too few points.
    pub trend: Option<SoakTrend>,
    /// Seconds and values. A server that starts anew begins a new segment.
    pub segments: Vec<Vec<(f64, f64)>>,
}

/// Growth over the whole time, in the unit of the quantity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoakTrend {
    /// The median of the judged points.
    pub level: f64,
    /// The growth that is allowed.
    pub allowed: f64,
    /// The growth.
    pub growth: f64,
    /// Its lower end; beyond the allowance it is a FAIL.
    pub growth_low: f64,
    /// Its upper end; within the allowance it is a PASS.
    pub growth_high: f64,
}

/// A condition that must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SoakCheck {
    /// The condition, in words.
    pub name: String,
    /// PASS or FAIL; UNPROVEN where it was never put to the test.
    pub verdict: VerdictKind,
    /// What was counted.
    pub found: String,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoakFault {
    /// When, in seconds after the start.
    pub at_s: f64,
    /// What.
    pub kind: String,
    /// The server.
    pub server: String,
    /// How long the server's calls were excused, in seconds; 0 where no call may fail for it.
    pub excused_s: f64,
}

/// A quantity that must not grow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Anonymous and shared resident memory, octets.
    Memory,
    /// Open descriptors.
    Descriptors,
    /// Threads.
    Threads,
    /// The 99th percentile of the time of calls, nanoseconds; of a channel, from push to receipt.
    P99,
}

/// The name of the control: round trips over plain TCP within the soak itself.
pub const MACHINE: &str = "machine";

impl Quantity {
    /// All, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Descriptors, Self::Threads, Self::P99];

    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Descriptors => "descriptors",
            Self::Threads => "threads",
            Self::P99 => "p99",
        }
    }

    /// The growth that is allowed over a whole soak at this level.
    #[must_use]
    pub fn allowed(self, level: f64) -> f64 {
        match self {
            // An allocator keeps some pages more of a process that works.
            Self::Memory => (level * 0.02).max(1_048_576.0),
            Self::Descriptors => 2.0,
            // A pool may start a thread once.
            Self::Threads => 1.0,
            Self::P99 => (level * 0.5).max(1_000_000.0),
        }
    }

    /// A value in words.
    #[must_use]
    pub fn words(self, value: f64) -> String {
        match self {
            Self::Memory => format!("{} KiB", rounded(value / 1_024.0, 0)),
            Self::Descriptors | Self::Threads => rounded(value, 1),
            Self::P99 => format!("{} ms", rounded(value / 1e6, 3)),
        }
    }
}

/// A number with so many decimals, and 0 without a sign.
fn rounded(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|digit| matches!(digit, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

impl Soak {
    /// Judges the series and puts them together with the checks. The warm-up of each segment is drawn and not judged.
    #[must_use]
    pub fn judged(self) -> Self {
        let mut soak = self;
        judge_series(&mut soak.series, soak.time_s, soak.warm_up_s);
        let of_series = soak.series.iter().filter(|series| series.server != MACHINE);
        let of_series = of_series.map(|series| (series.verdict, series.words()));
        let of_checks = soak.checks.iter();
        let of_checks =
            of_checks.map(|check| (check.verdict, format!("{}: {}", check.name, check.found)));
        let mut all: Vec<(VerdictKind, String)> = of_series.chain(of_checks).collect();
        soak.verdict = all
            .iter()
            .map(|(kind, _)| *kind)
            .max()
            .unwrap_or(VerdictKind::Unproven);
        all.retain(|(kind, _)| *kind != VerdictKind::Pass);
        all.sort_by_key(|(kind, _)| std::cmp::Reverse(*kind));
        let reason = |(kind, words): (VerdictKind, String)| format!("{}: {words}", kind.word());
        soak.reasons = all.into_iter().map(reason).collect();
        soak
    }
}

impl SoakSeries {
    /// A series that is not judged yet.
    #[must_use]
    pub fn new(server: &str, quantity: Quantity, segments: Vec<Vec<(f64, f64)>>) -> Self {
        Self {
            server: server.to_owned(),
            quantity,
            verdict: VerdictKind::Unproven,
            reason: None,
            trend: None,
            segments,
        }
    }

    /// What was found, in a sentence without its verdict.
    #[must_use]
    pub fn words(&self) -> String {
        let head = format!("{} of {}", self.quantity.word(), self.server);
        let of = |value| self.quantity.words(value);
        let found = self.trend.map(|trend| {
            format!(
                "level {}, growth {} ({} to {}), allowed {}",
                of(trend.level),
                of(trend.growth),
                of(trend.growth_low),
                of(trend.growth_high),
                of(trend.allowed)
            )
        });
        let parts = [found, self.reason.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        format!("{head}: {}", parts.join("; "))
    }

    fn is_control(&self) -> bool {
        self.server == MACHINE
    }

    /// The trend after the warm-up of each segment, and how many points it has.
    fn measured(&self, warm_up_s: f64) -> (Option<Trend>, usize) {
        let judged = |segment: &Vec<(f64, f64)>| -> Vec<(f64, f64)> {
            let from_s = segment.first().map_or(0.0, |point| point.0) + warm_up_s;
            let points = segment.iter().copied();
            points.filter(|point| point.0 >= from_s).collect()
        };
        let segments: Vec<Vec<(f64, f64)>> = self.segments.iter().map(judged).collect();
        let points = segments.iter().map(Vec::len).sum();
        (Trend::of(&segments), points)
    }
}

/// Judges all series but the control together. A p99 that grows while the control grows too is UNPROVEN: the machine
/// itself became slower.
fn judge_series(series: &mut [SoakSeries], time_s: f64, warm_up_s: f64) {
    let measured: Vec<(Option<Trend>, usize)> =
        series.iter().map(|one| one.measured(warm_up_s)).collect();
    let allowed = |index: usize, trend: &Trend| series[index].quantity.allowed(trend.level());
    let tested: Vec<(usize, &Trend, f64)> = measured
        .iter()
        .enumerate()
        .filter_map(|(index, (trend, _))| trend.as_ref().map(|trend| (index, trend)))
        .map(|(index, trend)| (index, trend, allowed(index, trend)))
        .collect();
    let (control, tested): (Vec<_>, Vec<_>) = tested
        .into_iter()
        .partition(|(index, _, _)| series[*index].is_control());
    let control_grows = control.iter().any(|(_, trend, _)| {
        // Any growth of the control is enough to doubt a growth of calls.
        judge_trends(&[(*trend, 0.0)], time_s)[0].kind == VerdictKind::Fail
    });
    let judge = |tested: &[(usize, &Trend, f64)]| {
        let pairs: Vec<(&Trend, f64)> = tested.iter().map(|one| (one.1, one.2)).collect();
        judge_trends(&pairs, time_s)
    };
    let judged = judge(&tested).into_iter().chain(judge(&control));
    let found: Vec<(usize, SoakTrend, VerdictKind)> = tested
        .iter()
        .chain(&control)
        .zip(judged)
        .map(|(&(index, trend, allowed), judged)| {
            let trend = SoakTrend {
                level: trend.level(),
                allowed,
                growth: judged.growth,
                growth_low: judged.growth_low,
                growth_high: judged.growth_high,
            };
            (index, trend, judged.kind)
        })
        .collect();
    for (one, (_, points)) in series.iter_mut().zip(&measured) {
        one.verdict = VerdictKind::Unproven;
        one.reason = Some(format!(
            "{} after the warm-up are too few for a trend",
            words::points(*points)
        ));
    }
    for (index, trend, kind) in found {
        let one = &mut series[index];
        (one.trend, one.verdict, one.reason) = (Some(trend), kind, None);
        let is_doubtful = one.quantity == Quantity::P99 && kind == VerdictKind::Fail;
        if is_doubtful && one.is_control() {
            one.verdict = VerdictKind::Unproven;
            one.reason = Some("the machine itself became slower; no verdict on it".to_owned());
        } else if is_doubtful && control_grows {
            one.verdict = VerdictKind::Unproven;
            one.reason = Some("round trips over plain TCP became slower meanwhile too".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value every second for 200 seconds.
    fn series(server: &str, quantity: Quantity, value: impl Fn(f64) -> f64) -> SoakSeries {
        let point = |n: i32| (f64::from(n), value(f64::from(n)));
        SoakSeries::new(server, quantity, vec![(0..200).map(point).collect()])
    }

    fn soak(series: Vec<SoakSeries>, checks: Vec<SoakCheck>) -> Soak {
        let soak = Soak {
            verdict: VerdictKind::Unproven,
            reasons: Vec::new(),
            seed: 1,
            time_s: 200.0,
            warm_up_s: 40.0,
            series,
            checks,
            faults: Vec::new(),
        };
        soak.judged()
    }

    fn steady() -> SoakSeries {
        series("names", Quantity::Memory, |at| 8e6 + (at * 7.0) % 11.0)
    }

    #[test]
    fn growth_in_the_warm_up_is_not_judged_and_a_leak_after_it_fails() {
        let warm = |at: f64| 8e6 + at.min(40.0) * 1e6 + (at * 7.0) % 11.0;
        let found = soak(vec![series("names", Quantity::Memory, warm)], Vec::new());
        assert_eq!(found.verdict, VerdictKind::Pass, "{:?}", found.reasons);
        let leak = |at: f64| 8e6 + at * 1e5 + (at * 7.0) % 11.0;
        let found = soak(
            vec![steady(), series("channel", Quantity::Memory, leak)],
            Vec::new(),
        );
        assert_eq!(found.verdict, VerdictKind::Fail);
        assert!(
            found.reasons[0].starts_with("FAIL: memory of channel: level"),
            "{:?}",
            found.reasons
        );
        assert_eq!(found.reasons.len(), 1);
    }

    #[test]
    fn a_leak_whose_residuals_are_small_and_depend_on_each_other_fails_among_many() {
        // The medians of blocks of a server that leaked 256 octets a call for a minute, in KiB.
        let medians = [
            4_852, 5_048, 5_256, 5_536, 5_734, 5_932, 6_144, 6_352, 6_548, 6_756, 6_952, 7_200,
            7_368, 7_532, 7_780,
        ];
        let point = |(n, kib): (usize, &i32)| (n as f64 / 4.0, f64::from(*kib) * 1_024.0);
        let each = medians.iter().flat_map(|kib| std::iter::repeat_n(kib, 13));
        let points = each.enumerate().map(point).collect();
        let mut leak = SoakSeries::new("names", Quantity::Memory, vec![points]);
        leak.segments[0].insert(0, (-40.0, 4e6));
        let mut all: Vec<SoakSeries> = (0..23).map(|_| steady()).collect();
        all.push(leak);
        let found = soak(all, Vec::new());
        assert_eq!(found.reasons.len(), 1, "{:?}", found.reasons);
        assert_eq!(found.verdict, VerdictKind::Fail, "{:?}", found.reasons);
    }

    #[test]
    fn a_leak_in_each_of_many_short_lives_is_seen() {
        let life = |from: f64| {
            (0..100)
                .map(f64::from)
                .map(move |n| (from + n, 30.0 + (n / 8.0).floor()))
                .collect()
        };
        let lives = vec![life(0.0), life(100.0)];
        let found = soak(
            vec![SoakSeries::new("names", Quantity::Descriptors, lives)],
            Vec::new(),
        );
        assert_eq!(found.verdict, VerdictKind::Fail, "{:?}", found.reasons);
    }

    #[test]
    fn values_have_their_unit_and_nothing_has_no_sign() {
        let words = [
            Quantity::Memory.words(-1_048_576.0),
            Quantity::Memory.words(-12.0),
            Quantity::Threads.words(-0.04),
            Quantity::P99.words(1_234_567.0),
        ];
        assert_eq!(words, ["-1024 KiB", "0 KiB", "0.0", "1.235 ms"]);
    }

    #[test]
    fn a_share_of_the_level_may_be_added_and_a_little_where_the_level_is_small() {
        let allowed = Quantity::ALL.map(|one| (one.word(), one.allowed(1e9), one.allowed(10.0)));
        assert_eq!(
            allowed,
            [
                ("memory", 2e7, 1_048_576.0),
                ("descriptors", 2.0, 2.0),
                ("threads", 1.0, 1.0),
                ("p99", 5e8, 1e6)
            ]
        );
    }

    #[test]
    fn few_points_prove_nothing_and_are_told() {
        let short = SoakSeries::new(
            "names",
            Quantity::Threads,
            vec![vec![(0.0, 1.0), (50.0, 1.0)]],
        );
        let found = soak(vec![steady(), short], Vec::new());
        assert_eq!(found.verdict, VerdictKind::Unproven);
        let reason =
            "UNPROVEN: threads of names: 1 point after the warm-up are too few for a trend";
        assert_eq!(found.reasons, [reason]);
    }

    #[test]
    fn slower_calls_on_a_slower_machine_prove_nothing() {
        let slower = |at: f64| 1e6 + at * 5e4 + (at * 7.0) % 11.0;
        let calls = || series("names", Quantity::P99, slower);
        let found = soak(
            vec![
                calls(),
                series(MACHINE, Quantity::P99, |at| 1e5 + (at * 7.0) % 11.0),
            ],
            Vec::new(),
        );
        assert_eq!(found.verdict, VerdictKind::Fail, "{:?}", found.reasons);
        let found = soak(
            vec![calls(), series(MACHINE, Quantity::P99, slower)],
            Vec::new(),
        );
        assert_eq!(found.verdict, VerdictKind::Unproven, "{:?}", found.reasons);
        assert!(
            found.reasons[0].ends_with("became slower meanwhile too"),
            "{:?}",
            found.reasons
        );
        let steady_calls = series("names", Quantity::P99, |at| 1e6 + (at * 7.0) % 11.0);
        let leak = series("names", Quantity::Memory, |at| 8e6 + at * 1e5);
        let others = soak(
            vec![steady_calls, leak, series(MACHINE, Quantity::P99, slower)],
            Vec::new(),
        );
        let kinds: Vec<VerdictKind> = others.series.iter().map(|one| one.verdict).collect();
        let expected = [VerdictKind::Pass, VerdictKind::Fail, VerdictKind::Unproven];
        assert_eq!(kinds, expected, "a slower machine leaks nothing");
        let control = &found.series[1];
        assert_eq!(control.verdict, VerdictKind::Unproven, "it is a control");
    }

    #[test]
    fn a_check_that_does_not_hold_fails_whatever_the_series() {
        let check = |verdict| SoakCheck {
            name: "bindings".to_owned(),
            verdict,
            found: "1 lost".to_owned(),
        };
        let found = soak(vec![steady()], vec![check(VerdictKind::Pass)]);
        assert_eq!((found.verdict, found.reasons.len()), (VerdictKind::Pass, 0));
        let found = soak(vec![steady()], vec![check(VerdictKind::Fail)]);
        assert_eq!(found.verdict, VerdictKind::Fail);
        assert_eq!(found.reasons, ["FAIL: bindings: 1 lost"]);
    }
}
