//! The streams of a mission. A stream is one flow over one carrier, and has a schedule of its own.

use std::time::Duration;

use deckwatch_carrier::plan::StreamPlan;
use deckwatch_meter::pacing::{Arrivals, Schedule, ScheduleError};

use crate::mission::Mission;

/// One flow over one carrier.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Index of the flow in [`Mission::flows`].
    pub flow: usize,
    /// The part of the plan that all its processes share. Its index is the one in the result document.
    pub plan: StreamPlan,
}

/// The reason why a mission's streams cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// With the values of the command line, the schedule cannot be kept.
    #[error("The schedule of flow {flow} cannot be kept: {fact}")]
    Schedule {
        /// The flow.
        flow: String,
        /// Why.
        fact: ScheduleError,
    },
    /// The flow has more messages than its sequence number can count.
    #[error(
        "Flow {flow} sends {messages} messages, and its member `{member}` counts only to {sequence_max}. Send fewer, or carry the sequence number in a wider member."
    )]
    SequenceTooNarrow {
        /// The flow.
        flow: String,
        /// The member.
        member: String,
        /// Messages of the schedule, warm-up included.
        messages: u64,
        /// The largest number that the member holds.
        sequence_max: u64,
    },
    /// There are more streams than a result can number.
    #[error("The mission has {0} streams (flows times carriers); at most 65535 can be told apart.")]
    TooMany(usize),
}

/// Returns the streams of a mission, by flow and carrier. The schedules of a flow's streams are offset by its period
/// divided by their number, so that no two send at once.
///
/// # Errors
/// [`StreamError`].
pub fn streams(mission: &Mission) -> Result<Vec<Stream>, StreamError> {
    let count = mission.flows.iter().map(|flow| flow.carriers.len()).sum();
    if count > usize::from(u16::MAX) {
        return Err(StreamError::TooMany(count));
    }
    let mut streams = Vec::with_capacity(count);
    for (index, flow) in mission.flows.iter().enumerate() {
        for (position, &carrier) in flow.carriers.iter().enumerate() {
            let schedule = Schedule {
                start_ns: 0,
                offset: offset(&flow.arrivals, position, flow.carriers.len()),
                arrivals: flow.arrivals.clone(),
                extent: flow.extent,
                warm_up: flow.warm_up,
            };
            schedule.check().map_err(|fact| StreamError::Schedule {
                flow: flow.name.clone(),
                fact,
            })?;
            let messages = schedule.expected_messages() as u64;
            if let Some(sequence_max) = flow.sequence_max.filter(|&max| messages > max) {
                return Err(StreamError::SequenceTooNarrow {
                    flow: flow.name.clone(),
                    member: flow.sequence_member().to_owned(),
                    messages,
                    sequence_max,
                });
            }
            streams.push(Stream {
                flow: index,
                plan: StreamPlan {
                    flow: streams.len() as u16,
                    name: flow.name.clone(),
                    carrier,
                    body: flow.body.clone(),
                    schedule,
                    deadline: flow.deadline,
                },
            });
        }
    }
    Ok(streams)
}

fn offset(arrivals: &Arrivals, position: usize, count: usize) -> Duration {
    let period = match *arrivals {
        Arrivals::Periodic { period } | Arrivals::Bursts { period, .. } => period,
        Arrivals::Poisson { mean_period, .. } => mean_period,
    };
    period * position as u32 / count.max(1) as u32
}

/// Returns the time from the run's start to the last message of a schedule; the mean for a Poisson process.
#[must_use]
pub fn length(schedule: &Schedule) -> Duration {
    let rate_hz = schedule.arrivals.rate_hz();
    let seconds = schedule.expected_messages() / rate_hz;
    schedule.offset + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 2)
}

/// Returns the longest time that a schedule may last: its [`length`], and for a Poisson process six standard deviations
/// more. One schedule in a thousand million exceeds that.
#[must_use]
pub fn length_max(schedule: &Schedule) -> Duration {
    let spread_s = match schedule.arrivals {
        Arrivals::Poisson { mean_period, .. } => {
            6.0 * schedule.expected_messages().sqrt() * mean_period.as_secs_f64()
        }
        Arrivals::Periodic { .. } | Arrivals::Bursts { .. } => 0.0,
    };
    length(schedule) + Duration::try_from_secs_f64(spread_s).unwrap_or(Duration::MAX / 4)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::mission::Overrides;

    const MISSION: &str = r#"
        name = "m"
        hosts = [{ name = "A" }, { name = "B" }]
        [[flows]]
        name = "f"
        octets = 64
        from = "A"
        to = ["B"]
        carrier = "udp"
        rate_hz = 20
        deadline = "50ms"
        late = "1 in 10"
        count = 100
        [[flows]]
        name = "g"
        octets = 64
        from = "B"
        to = ["A"]
        carrier = "tcp"
        rate_hz = 10
        arrivals = "poisson"
        deadline = "50ms"
        late = "1 in 10"
        duration = "10s"
    "#;

    fn streams_of(overrides: &Overrides) -> Vec<Stream> {
        let mission = Mission::parse(Path::new("m.toml"), MISSION, None).expect("sound");
        streams(&mission.with(overrides)).expect("streams")
    }

    #[test]
    fn carriers_of_one_flow_are_set_apart_by_the_period_divided_by_their_number() {
        let carriers = Some(
            deckwatch_carrier::carriers::CarrierRef::all()
                .take(4)
                .collect(),
        );
        let streams = streams_of(&Overrides {
            carriers,
            ..Overrides::default()
        });
        let offsets: Vec<_> = streams[..4]
            .iter()
            .map(|stream| stream.plan.schedule.offset.as_micros())
            .collect();
        assert_eq!(offsets, [0, 12_500, 25_000, 37_500]);
        let indices: Vec<_> = streams
            .iter()
            .map(|stream| (stream.plan.flow, stream.flow))
            .collect();
        assert_eq!(
            indices,
            [
                (0, 0),
                (1, 0),
                (2, 0),
                (3, 0),
                (4, 1),
                (5, 1),
                (6, 1),
                (7, 1)
            ]
        );
    }

    #[test]
    fn a_seed_on_the_command_line_keeps_flows_apart() {
        let seed = |overrides| match streams_of(&overrides)[1].plan.schedule.arrivals {
            Arrivals::Poisson { seed, .. } => seed,
            _ => panic!("the second flow is a Poisson process"),
        };
        assert_eq!(seed(Overrides::default()), 2);
        assert_eq!(
            seed(Overrides {
                seed: Some(70),
                ..Overrides::default()
            }),
            71
        );
    }

    #[test]
    fn a_poisson_schedule_ends_before_its_longest_length() {
        let schedule = &streams_of(&Overrides::default())[1].plan.schedule;
        let last = schedule.dues().last().expect("messages");
        assert!(Duration::from_nanos(last.due_ns as u64) < length_max(schedule));
        assert!(length_max(schedule) > length(schedule));
    }
}
