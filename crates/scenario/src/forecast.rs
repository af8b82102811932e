//! Forecasts what a mission takes and what it can prove, without running it.

use std::time::Duration;

use deckwatch_carrier::carriers::CarrierRef;
use deckwatch_meter::pacing::drain;
use deckwatch_meter::result::LateBudget;
use deckwatch_meter::statistics::{Asked, InBursts, LateShare, allowed_share};
use deckwatch_os::schedule::affinity;
use deckwatch_testbed::{Emulation, Fidelity};
use serde::Serialize;

use crate::mission::{Host, Location, Mission, REAL_NETWORK, choose};
use crate::privilege::{self, Privilege};
use crate::reach::Reach;
use crate::room::Room;
use crate::stream::{Stream, StreamError, length, streams};

/// The forecast of a mission.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Name of the mission.
    pub mission: String,
    /// Name of the chosen variant.
    pub variant: Option<String>,
    /// Names of all variants in the file.
    pub variants: Vec<String>,
    /// The network's name.
    pub network: String,
    /// The far hosts, each with its address and how it is reached.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub far_hosts: Vec<String>,
    /// What the network does as a real one, a clause each; empty on loopback, and where all hosts are real.
    pub emulated: Vec<String>,
    /// What it does not.
    pub not_emulated: Vec<String>,
    /// Time from the first due message to the end of the drain, in seconds.
    pub duration_s: f64,
    /// Number of messages, counted once for each destination, warm-up included.
    pub messages: u64,
    /// Each flow over each carrier.
    pub streams: Vec<StreamForecast>,
    /// Number of processes of each role.
    pub processes: Vec<Processes>,
    /// The room that it needs in memory.
    pub room: Room,
    /// The privileges that the mission needs, and whether this process has them.
    pub privileges: Vec<Privilege>,
    /// Warnings about parts of the mission that may be mistakes.
    pub notes: Vec<String>,
}

/// One flow over one carrier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamForecast {
    /// Name of the flow.
    pub flow: String,
    /// Its carrier.
    pub carrier: CarrierRef,
    /// Number of destinations.
    pub destinations: usize,
    /// Mean number of messages per second to each destination.
    pub rate_hz: f64,
    /// Messages judged at each destination.
    pub judged: u64,
    /// Number of warm-up messages, which come first.
    pub warm_up: u64,
    /// Time from the run's start to the last due message, in seconds.
    pub duration_s: f64,
    /// Its late budget.
    pub budget: LateBudget,
    /// The largest burst of late messages for which the verdict must hold; more, if the run sees a longer disturbance.
    pub burst: u64,
    /// The least number of messages that proves the budget for such bursts, if none of them is late.
    pub needed: Option<u64>,
    /// The greatest number of late messages, evenly spread over the judged ones, with which the budget is still proved.
    /// `None` if the budget is not proved even with 0.
    pub late_max: Option<u64>,
}

/// Processes of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Processes {
    /// Their role.
    pub role: &'static str,
    /// How many.
    pub count: usize,
}

/// Makes the forecast of a mission.
///
/// # Errors
/// [`StreamError`] for a mission that cannot be run.
pub fn forecast(mission: &Mission) -> Result<Forecast, StreamError> {
    let streams = streams(mission)?;
    let forecasts: Vec<StreamForecast> = streams
        .iter()
        .map(|stream| of_stream(mission, stream))
        .collect();
    let end = |stream: &Stream| length(&stream.plan.schedule) + drain(stream.plan.deadline);
    let duration = streams.iter().map(end).max().unwrap_or(Duration::ZERO);
    let messages =
        |stream: &StreamForecast| (stream.judged + stream.warm_up) * stream.destinations as u64;
    let network = mission.emulates().then_some(&mission.network);
    let (emulated, not_emulated) = network
        .and_then(Fidelity::of)
        .map(|fidelity| (fidelity.emulated, fidelity.not_emulated))
        .unwrap_or_default();
    Ok(Forecast {
        mission: mission.name.clone(),
        variant: mission.variant.clone(),
        variants: mission.variants.clone(),
        network: network
            .map_or(REAL_NETWORK, |network| &network.name)
            .to_owned(),
        far_hosts: mission.far_hosts().map(far_host).collect(),
        emulated,
        not_emulated,
        duration_s: duration.as_secs_f64(),
        messages: forecasts.iter().map(messages).sum(),
        streams: forecasts,
        processes: processes(mission, &streams),
        room: Room::of(mission, &streams),
        privileges: privilege::needed(mission),
        notes: notes(mission),
    })
}

fn far_host((host, reach): (&Host, &Reach)) -> String {
    let (name, address) = (&host.name, reach.address);
    let (command, program) = (reach.in_words(), reach.program());
    format!("{name} ({address}) by `{command}`, which starts `{program}`")
}

fn of_stream(mission: &Mission, stream: &Stream) -> StreamForecast {
    let flow = &mission.flows[stream.flow];
    let schedule = &stream.plan.schedule;
    let judged = (schedule.expected_messages() - schedule.warm_up as f64).round() as u64;
    StreamForecast {
        flow: flow.name.clone(),
        carrier: stream.plan.carrier,
        destinations: flow.to.len(),
        rate_hz: schedule.arrivals.rate_hz(),
        judged,
        warm_up: schedule.warm_up,
        duration_s: length(schedule).as_secs_f64(),
        budget: flow.budget,
        burst: flow.burst(),
        needed: needed(flow.budget, flow.burst()),
        late_max: late_max(judged, flow.budget, flow.burst()),
    }
}

/// Returns the least number of messages that proves a budget for bursts of at most `burst`, if none of them is late.
#[must_use]
pub fn needed(budget: LateBudget, burst: u64) -> Option<u64> {
    LateShare::new(0, &[], Asked::by_mission(burst))
        .messages_needed(budget)
        .if_none_late
}

/// Returns the greatest number of late messages among `judged` with which the budget is still proved for bursts of at
/// most `burst`. `None` if 0 is too many.
#[must_use]
pub fn late_max(judged: u64, budget: LateBudget, burst: u64) -> Option<u64> {
    let allowed = allowed_share(budget);
    let proved = |late: u64| {
        let in_bursts = InBursts {
            late: late as f64,
            count: judged as f64,
            burst,
        };
        in_bursts.is_within(allowed)
    };
    if !proved(0) {
        return None;
    }
    let (mut proved_with, mut not_with) = (0, judged);
    while not_with - proved_with > 1 {
        let middle = proved_with + (not_with - proved_with) / 2;
        if proved(middle) {
            proved_with = middle;
        } else {
            not_with = middle;
        }
    }
    Some(proved_with)
}

fn processes(mission: &Mission, streams: &[Stream]) -> Vec<Processes> {
    let has_channel = |stream: &&Stream| stream.plan.carrier.needs().channel.is_some();
    let channels = streams.iter().filter(has_channel).count();
    let has_broker = |stream: &&Stream| stream.plan.carrier.needs().broker;
    let brokers = streams.iter().filter(has_broker).count();
    let consumers = streams
        .iter()
        .map(|stream| mission.flows[stream.flow].to.len())
        .sum();
    let loads = mission
        .loads
        .iter()
        .map(|load| load.processes() as usize)
        .sum();
    let emulated = mission
        .hosts
        .iter()
        .filter(|host| host.location == Location::Emulated);
    let taps = match emulated.count() {
        // They share one interface.
        count @ 1.. if mission.is_on_loopback() => mission.hosts.len() - count + 1,
        _ => mission.hosts.len(),
    };
    let all = [
        ("coordinator", 1),
        ("naming service", usize::from(channels > 0)),
        ("event channel", channels),
        ("broker", brokers),
        ("supplier", streams.len()),
        ("consumer", consumers),
        ("packet tap", taps),
        ("load", loads),
    ];
    let some = all.into_iter().filter(|&(_, count)| count > 0);
    some.map(|(role, count)| Processes { role, count })
        .collect()
}

fn notes(mission: &Mission) -> Vec<String> {
    let mut notes = absent_processors(mission);
    if mission.auto_emulation && mission.emulates() {
        let (emulation, why) = choose(mission);
        let chosen = match emulation {
            Emulation::Shaper => "Shapers of the kernel carry",
            Emulation::Relay | Emulation::SpinningRelay => "A relay carries",
        };
        notes.push(format!("{chosen} the frames (emulation auto): {why}."));
    }
    for flow in &mission.flows {
        let period = 1.0 / flow.arrivals.rate_hz();
        if flow.deadline.as_secs_f64() > LONG_DEADLINE_PERIODS * period {
            notes.push(format!(
                "Flow {} has a deadline of more than {LONG_DEADLINE_PERIODS} periods; is its unit right?",
                flow.name
            ));
        }
    }
    notes
}

/// Returns a note for each host with a processor that this process may not use. `run` refuses such a mission.
fn absent_processors(mission: &Mission) -> Vec<String> {
    let Ok(allowed) = affinity() else {
        return Vec::new();
    };
    let absent = |host: &Host| {
        let processor = host
            .processors
            .iter()
            .find(|processor| !allowed.contains(processor))?;
        Some(format!(
            "Host {} asks for processor {processor}, and here there are {allowed:?}; name other processors before it is run.",
            host.name
        ))
    };
    let here = mission
        .hosts
        .iter()
        .filter(|host| !matches!(host.location, Location::Far(_)));
    here.filter_map(absent).collect()
}

/// A deadline of more periods than this is noted as a probable mistake: so old a message is rarely worth waiting for.
const LONG_DEADLINE_PERIODS: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    const NAV: LateBudget = LateBudget {
        late: 3,
        of: 10_000,
    };

    #[test]
    fn a_budget_of_3_in_10_000_needs_9985_messages_none_of_them_late() {
        // (1 - 0.0003)^n <= 0.05 first holds for n = ln 0.05 / ln 0.9997 = 9984.3.
        assert_eq!(needed(NAV, 1), Some(9985));
        assert_eq!(late_max(9984, NAV, 1), None);
        assert_eq!(late_max(9985, NAV, 1), Some(0));
    }

    #[test]
    fn bursts_of_ten_need_ten_times_the_messages() {
        assert_eq!(needed(NAV, 10), Some(99_843));
        assert_eq!(late_max(99_842, NAV, 10), None);
        assert_eq!(late_max(99_843, NAV, 10), Some(0));
    }

    #[test]
    fn a_hundred_thousand_messages_prove_3_in_10_000_with_20_late_and_not_with_21() {
        // P(X <= 20 | n = 100,000, p = 0.0003) = 0.0353; P(X <= 21) = 0.0544.
        assert_eq!(late_max(100_000, NAV, 1), Some(20));
    }
}
