//! The state of the machine: what raw TCP and a system call take before and after the measurements. Ratios move with
//! it, so that two results are comparable only if their machines were in the same state.

use deckwatch_meter::experiment::MachineState;

use super::command::{Buffers, Command};
use super::kind::SMALL;
use super::plan::{state_time, state_variant};
use crate::laboratory::condition::Places;
use crate::laboratory::end::SYSTEM_CALLS;
use crate::laboratory::process::RunResult;
use crate::laboratory::program::Shape;
use crate::laboratory::samples::RunSummary;
use crate::laboratory::session::Session;
use crate::laboratory::system::Plan;
use crate::laboratory::{LaboratoryError, RAW, Role};

/// Measures the state `before` or `after` the runs in `places`. Returns `None` if the user wants to end.
pub(super) fn measure(
    session: &mut Session<'_>,
    places: &Places,
    when: &str,
) -> Result<Option<MachineState>, LaboratoryError> {
    session.show(0, format!("state of the machine {when} the runs"));
    let own = session.own();
    let shape = Shape {
        variant: state_variant(places.condition),
        ..Shape::default()
    };
    let both = (places.server, places.client);
    let mut raw = session.start(&Plan::pair(RAW, &own, Role::RAW, both, shape))?;
    let limits = session.limits();
    let round_trip = Command::raw(SMALL, (SMALL.size, SMALL.size), Buffers::default(), limits);
    let system_call = Command::of("system-call", limits);
    let mut found = Vec::new();
    // The first run is a warm-up.
    for command in [&round_trip, &round_trip, &system_call] {
        let ran = command.run(&mut raw, false)?;
        places.rest(limits.budget);
        let Some((ran, _)) = ran else {
            return Ok(None);
        };
        found.push(median(&ran));
    }
    session.spend(state_time(limits.budget) / 2);
    let [_, Some(round_trip), Some(system_call)] = found[..] else {
        return Err(LaboratoryError::EndFailed {
            what: "The state of the machine".to_owned(),
            reason: format!("too few round trips within {:?}", limits.budget),
        });
    };
    let state = machine_state(when, places.words(), round_trip, system_call);
    Ok(Some(state))
}

/// The state from the medians of round trips and of [`SYSTEM_CALLS`] system calls, each with the number of samples.
fn machine_state(
    when: &str,
    condition: String,
    round_trip: (f64, u64),
    system_call: (f64, u64),
) -> MachineState {
    MachineState {
        when: when.to_owned(),
        condition,
        raw_p50_ns: round_trip.0,
        raw_round_trips: round_trip.1,
        system_call_p50_ns: system_call.0 / SYSTEM_CALLS as f64,
        system_calls: system_call.1 * SYSTEM_CALLS as u64,
    }
}

/// The median of a run and the number of its samples.
fn median(ran: &RunResult) -> Option<(f64, u64)> {
    let count = match ran {
        RunResult::RoundTrips(all) => all.len() as u64,
        RunResult::Sum { .. } => return None,
    };
    Some((RunSummary::of(ran)?.p50_ns?, count))
}

/// The largest change of a median between before and after, as a share: of raw TCP or of a system call.
pub(super) fn change(states: &[MachineState]) -> f64 {
    let moved = |one: f64, other: f64| (one / other).max(other / one) - 1.0;
    let of = |before: &MachineState, after: &MachineState| {
        let raw = moved(before.raw_p50_ns, after.raw_p50_ns);
        raw.max(moved(before.system_call_p50_ns, after.system_call_p50_ns))
    };
    let pairs = states
        .windows(2)
        .filter(|two| two[0].condition == two[1].condition);
    pairs.map(|two| of(&two[0], &two[1])).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(condition: &str, raw_p50_ns: f64, system_call_p50_ns: f64) -> MachineState {
        MachineState {
            when: String::new(),
            condition: condition.to_owned(),
            raw_p50_ns,
            raw_round_trips: 1,
            system_call_p50_ns,
            system_calls: 1,
        }
    }

    #[test]
    fn a_change_of_state_is_seen_within_a_condition_and_not_between_two() {
        let states = [
            state("pinned", 10_000.0, 200.0),
            state("pinned", 11_000.0, 190.0),
            state("spinning", 7_000.0, 200.0),
            state("spinning", 7_000.0, 160.0),
        ];
        assert!((change(&states[..2]) - 0.1).abs() < 1e-9);
        assert!((change(&states[..3]) - 0.1).abs() < 1e-9);
        assert_eq!(change(&states), 0.25);
        assert_eq!(change(&states[..1]), 0.0);
    }

    #[test]
    fn a_sample_of_system_calls_is_as_many_calls() {
        let calls = SYSTEM_CALLS as u64;
        let sample_ns = 250.0 * SYSTEM_CALLS as f64;
        let state = machine_state("before", "here".to_owned(), (9e3, 7), (sample_ns, 3));
        assert_eq!((state.raw_p50_ns, state.raw_round_trips), (9e3, 7));
        assert_eq!(state.system_call_p50_ns, 250.0);
        assert_eq!(state.system_calls, 3 * calls);
    }

    #[test]
    fn a_median_is_of_round_trips_alone() {
        let times = |count| RunResult::RoundTrips(vec![7; count]);
        assert_eq!(median(&times(100)), Some((7.0, 100)));
        assert_eq!(median(&times(2)), None);
        let stream = RunResult::Sum {
            count: 9,
            elapsed_ns: 9,
        };
        assert_eq!(median(&stream), None);
    }
}
