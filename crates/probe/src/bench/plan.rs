//! The parts of a bench in their order, and how long each will probably take.

use std::time::Duration;

use super::kind::Kind;
use super::run::Settings;
use crate::laboratory::condition::Places;
use crate::laboratory::foreign::JACORB;
use crate::laboratory::{Condition, OMNIORB, Variant};

/// One kind in one condition and variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) kind: Kind,
    pub(super) variant: Variant,
    /// The place of the condition among those asked for.
    pub(super) place: usize,
    /// How long it will probably take.
    pub(super) time: Duration,
}

/// All steps of a bench. `cases` is the number of cases of a step, `systems` are the foreign ones.
pub(super) fn steps(
    settings: &Settings,
    places: &[Places],
    systems: &[&str],
    cases: impl Fn(Kind, Variant) -> usize,
) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (place, at) in places.iter().enumerate() {
        for &kind in &settings.kinds {
            let is_known = steps.iter().any(|step| step.kind == kind);
            if kind.is_independent_of_condition() && is_known {
                continue;
            }
            for &variant in kind.variants(at.condition) {
                let systems = match variant {
                    // Foreign servers have no lanes.
                    Variant::Plain if kind == Kind::Attacks => Vec::new(),
                    Variant::Plain => systems.to_vec(),
                    Variant::Tls => only(OMNIORB, systems),
                    _ => Vec::new(),
                };
                let cases = cases(kind, variant);
                let time = time(settings, at, (kind, cases), &systems);
                let step = Step {
                    kind,
                    variant,
                    place,
                    time,
                };
                steps.push(step);
            }
        }
    }
    steps
}

/// `name`, if it is among `systems`.
fn only<'s>(name: &str, systems: &[&'s str]) -> Vec<&'s str> {
    let all = systems.iter().copied();
    all.filter(|it| *it == name).collect()
}

fn time(
    settings: &Settings,
    places: &Places,
    (kind, cases): (Kind, usize),
    foreign: &[&str],
) -> Duration {
    let rounds = whole(settings.setup.rounds);
    let systems = whole(foreign.len()) + 1;
    let turn = turn_time(run_budget(kind, settings.setup.run_budget));
    let starts = START_TIME * (2 * systems + 1);
    match kind {
        Kind::Counters => COUNTING_TIME * (systems + 1),
        Kind::Memory => MEMORY_TIME * systems * rounds,
        _ => {
            let more = match kind {
                Kind::Attacks => starts * whole(cases),
                Kind::Events => EVENT_COUNTING_TIME + (4 * MEMORY_TIME + MISSION_TIME) * rounds,
                _ => Duration::ZERO,
            };
            let jit = whole(usize::from(foreign.contains(&JACORB))) * (JIT_WARM_UPS - 1);
            let is_guarded = !matches!(kind, Kind::Objects | Kind::Attacks | Kind::Events);
            let guard = match places.are_judged() && is_guarded {
                true => (GUARD_TIME + turn / 2) * rounds,
                false => Duration::ZERO,
            };
            more + starts + turn * (whole(cases) * (systems * (rounds + 1) + jit)) + guard
        }
    }
}

fn whole(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The time of one run of a kind. Rare calls and events to many consumers need longer runs, which stay below the kernel's limit for real-time threads.
pub(super) fn run_budget(kind: Kind, usual: Duration) -> Duration {
    match kind {
        Kind::Rate | Kind::Priority | Kind::Attacks | Kind::Events => REAL_TIME_RUN.min(usual * 3),
        _ => usual,
    }
}

/// Two runs of this time, each with a rest.
pub(super) fn turn_time(budget: Duration) -> Duration {
    budget * 3
}

/// What is measured before and after the runs of a condition.
pub(super) const fn state_time(usual: Duration) -> Duration {
    usual.saturating_mul(6)
}

/// Longer runs of real-time threads that never sleep are throttled by the kernel once a second.
pub(super) const REAL_TIME_RUN: Duration = Duration::from_millis(850);

/// Pairs that warm up a just-in-time compiler.
pub(super) const JIT_WARM_UPS: u32 = 8;

/// A start of one process.
const START_TIME: Duration = Duration::from_millis(50);
/// A run of sockperf with its warm-up.
const GUARD_TIME: Duration = Duration::from_millis(1_800);
/// The counted runs of one system.
pub(super) const COUNTING_TIME: Duration = Duration::from_secs(2);
/// The counted runs of our channel.
pub(super) const EVENT_COUNTING_TIME: Duration = Duration::from_secs(8);
/// A server that gets its connections, or a channel that gets its consumers.
pub(super) const MEMORY_TIME: Duration = Duration::from_millis(500);

/// A mission with its start and its end.
pub(super) const MISSION_TIME: Duration = Duration::from_secs(5);

/// The condition in which a spinning raw TCP is measured for the state of the machine.
pub(super) const fn state_variant(condition: Condition) -> Variant {
    match condition {
        Condition::Spinning => Variant::Spinning,
        _ => Variant::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::program::Place;
    use crate::laboratory::{Inserted, Setup};

    fn planned(kinds: &[Kind], conditions: &[Condition], rounds: usize) -> Vec<Step> {
        planned_with(kinds, conditions, rounds, &[])
    }

    fn planned_with(
        kinds: &[Kind],
        conditions: &[Condition],
        rounds: usize,
        foreign: &[&str],
    ) -> Vec<Step> {
        let settings = Settings {
            setup: Setup {
                program: "deckwatch".into(),
                version: String::new(),
                rounds,
                run_budget: Duration::from_millis(100),
                inserted: Inserted::Nothing,
                without: Vec::new(),
            },
            kinds: kinds.to_vec(),
            calls: Vec::new(),
            conditions: conditions.to_vec(),
            objects: 1,
            low_clients: 1,
            connections: 1,
        };
        let place = Place {
            processor: None,
            fifo: None,
        };
        let places = |condition: &Condition| Places {
            condition: *condition,
            is_refused: false,
            server: place,
            client: place,
            own: Vec::new(),
        };
        let places: Vec<Places> = conditions.iter().map(places).collect();
        steps(&settings, &places, foreign, |_, _| 2)
    }

    #[test]
    fn the_state_of_the_machine_is_measured_by_ends_that_spin_if_those_of_the_condition_do() {
        let spinning = state_variant(Condition::Spinning);
        assert_eq!(spinning, Variant::Spinning);
        for condition in [
            Condition::Pinned,
            Condition::TwoCores,
            Condition::Apart,
            Condition::Default,
        ] {
            assert_eq!(state_variant(condition), Variant::Plain);
        }
    }

    #[test]
    fn memory_is_measured_once_and_calls_in_every_condition() {
        let both = [Condition::TwoCores, Condition::Default];
        let found = planned(&[Kind::Memory, Kind::Call], &both, 1);
        let found: Vec<_> = found.iter().map(|step| (step.kind, step.place)).collect();
        assert_eq!(found, [(Kind::Memory, 0), (Kind::Call, 0), (Kind::Call, 1)]);
        assert_eq!(planned(&[Kind::Memory], &both, 1).len(), 1);
        assert_eq!(planned(&[Kind::Call, Kind::Memory], &both, 1).len(), 3);
    }

    #[test]
    fn a_contest_takes_its_rounds_and_a_warm_up_and_the_guard_where_it_is_judged() {
        let of = |condition, rounds| planned(&[Kind::Stream], &[condition], rounds)[0].time;
        let starts = START_TIME * 3;
        let turn = Duration::from_millis(300);
        assert_eq!(of(Condition::Default, 9), starts + turn * 2 * 10);
        let guard = (GUARD_TIME + turn / 2) * 9;
        assert_eq!(of(Condition::Pinned, 9), starts + turn * 2 * 10 + guard);
    }

    /// The step of a kind with two cases in 9 rounds, where `foreign` are installed.
    fn time_of(kind: Kind, variant: Variant, foreign: &[&str]) -> Duration {
        let all = planned_with(&[kind], &[Condition::TwoCores], 9, foreign);
        let step = all.into_iter().find(|step| step.variant == variant);
        step.expect("a step").time
    }

    #[test]
    fn each_kind_takes_the_time_of_its_runs() {
        let plain = |kind, foreign: &[&str]| time_of(kind, Variant::Plain, foreign);
        let turn = Duration::from_millis(300);
        // Runs of three times the usual length.
        let long = turn * 3;
        // Ours and two others: counted, ours twice.
        assert_eq!(plain(Kind::Counters, &["a", "b"]), COUNTING_TIME * 4);
        assert_eq!(plain(Kind::Memory, &["a", "b"]), MEMORY_TIME * 3 * 9);
        let starts = |systems: u32| START_TIME * (2 * systems + 1);
        let objects = plain(Kind::Objects, &["a"]);
        assert_eq!(objects, starts(2) + turn * 2 * 2 * 10);
        let jit = plain(Kind::Objects, &[JACORB]);
        assert_eq!(jit, objects + turn * 2 * (JIT_WARM_UPS - 1));
        let attacks = starts(1) * 2 + starts(1) + long.min(REAL_TIME_RUN * 3) * 2 * 10;
        assert_eq!(plain(Kind::Attacks, &["a"]), attacks);
        let events = EVENT_COUNTING_TIME + (MEMORY_TIME * 4 + MISSION_TIME) * 9;
        let runs = long.min(REAL_TIME_RUN * 3) * 2 * 2 * 10;
        assert_eq!(plain(Kind::Events, &["a"]), events + starts(2) + runs);
    }

    #[test]
    fn only_omniorb_is_measured_over_tls() {
        let of = |foreign: &[&str]| time_of(Kind::Tls, Variant::Tls, foreign);
        assert_eq!(of(&["a", JACORB]), of(&[]));
        assert!(of(&["a", OMNIORB]) > of(&[]));
    }

    #[test]
    fn runs_of_rare_calls_are_longer_and_below_the_limit_of_the_kernel() {
        let usual = Duration::from_millis(100);
        for kind in [Kind::Rate, Kind::Priority, Kind::Attacks, Kind::Events] {
            assert_eq!(run_budget(kind, usual), usual * 3);
            assert_eq!(run_budget(kind, usual * 3), REAL_TIME_RUN);
        }
        assert_eq!(run_budget(Kind::Call, usual), usual);
        assert_eq!(turn_time(usual), usual * 3);
        assert_eq!(state_time(usual), usual * 6);
    }
}
